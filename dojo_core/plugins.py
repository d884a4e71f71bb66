"""What installed packages add to the Dojo: objects found by entry points, each loaded when it is asked for.

The Dojo's own are found in the same way. A package that cannot be used costs a sentence (``faults``), never
the start: what it would have added is not there.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

log = logging.getLogger(__name__)

API = 1  # of the interfaces that packages are written for; a group and a package meet only at the same one
OURS = "dojo"  # the distribution whose entries stand first, and that nobody else's replace
GROUPS = ("dojo.targets", "dojo.moves", "dojo.agents", "dojo.kernels")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")


class Unusable(Exception):
    """A package's entry cannot be used; ``str()`` is a sentence that names the package."""


@dataclass(frozen=True)
class Group:
    """The entries of one group by name, in order; and a sentence for each that is left out."""

    entries: dict[str, EntryPoint]
    faults: tuple[str, ...]


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


@cache
def group(name: str) -> Group:
    """The Dojo's own entries in the order of its metadata, then others' by package."""
    found = sorted(entry_points(group=name), key=lambda e: "" if _package(e) == OURS else _package(e))
    entries: dict[str, EntryPoint] = {}
    faults = []
    for entry in found:
        first = entries.get(entry.name)
        kind = name.rpartition(".")[2].removesuffix("s")
        if not _NAME.fullmatch(entry.name):
            faults.append(
                f"The package {_package(entry)} offers a {kind} named {entry.name!r:.40}: a name has small "
                "letters, digits and underscores. It is left out."
            )
        elif first is None:
            entries[entry.name] = entry
        elif (_package(first), first.value) != (_package(entry), entry.value):  # not one found on two paths
            faults.append(
                f"The packages {_package(first)} and {_package(entry)} both offer a {kind} named "
                f"{entry.name}: that of {_package(first)} is used. Uninstall one of them."
            )
    return Group(entries, tuple(faults))


_failures: dict[tuple[str, str], str] = {}


@cache
def _loaded(name: str, key: str) -> Any:
    entry = group(name).entries[key]
    kind = name.rpartition(".")[2].removesuffix("s")
    try:
        found = entry.load()
        found = found() if isinstance(found, type) else found
        made_for = getattr(found, "api", API)
    except Exception as fault:  # a package of anybody's: whatever it raises
        log.exception("loading %s of %s", key, _package(entry))
        told = f"{type(fault).__name__}: {fault}"[:300]
        return Unusable(
            f"The {kind} {key} of the package {_package(entry)} cannot be loaded ({told}): "
            "tell its authors, or uninstall it."
        )
    if made_for != API:
        return Unusable(
            f"The {kind} {key} of the package {_package(entry)} was made for another version of the Dojo "
            f"(interface {made_for!r:.20}, here it is {API}): update one of them."
        )
    return found


def load(name: str, key: str) -> Any:
    """An entry of a group: an object, or what its class makes. Raises KeyError where there is none of that
    name, and Unusable."""
    if key not in group(name).entries:
        raise KeyError(key)
    found = _loaded(name, key)
    if isinstance(found, Unusable):
        _failures[name, key] = str(found)
        raise found
    return found


def names(name: str) -> tuple[str, ...]:
    """The names in a group, loaded or not."""
    return tuple(group(name).entries)


def added(name: str) -> dict[str, Any]:
    """What other packages have in a group, by name; what cannot be loaded is left out (``faults`` tells)."""
    found = {}
    for key, entry in group(name).entries.items():
        if _package(entry) != OURS:
            try:
                found[key] = load(name, key)
            except Unusable:
                continue
    return found


def faults() -> tuple[str, ...]:
    """A sentence for each entry that is not used, as far as was found out until now."""
    return tuple(told for name in GROUPS for told in group(name).faults) + tuple(_failures.values())
