"""What installed packages add to the Dojo: objects found by entry points, each loaded when it is asked for.

The Dojo's own are found in the same way. A package that cannot be used costs a sentence (``faults``), never
the start: what it would have added is not there. docs/packages.md tells how to write one.
"""

from __future__ import annotations

import logging
import re
from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint
from threading import RLock
from typing import Any, TypeVar

from dojo_core.checkout import OURS, entries

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # without a log people are told the sentence alone

API = 1  # of the interfaces that packages are written for: they say DOJO_API = 1, and another is refused
# By the group of entry points what one of them is called.
GROUPS = {"dojo.targets": "target", "dojo.moves": "move", "dojo.agents": "agent", "dojo.kernels": "kernel"}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_SHOWN = 300  # characters of what a package's exception says


T = TypeVar("T")


_tables: list[Extended[Any]] = []


class Extended(UserDict[str, T]):
    """A table of ours, with what packages bring behind it.

    They are asked when it is first looked into, not as it is imported: the module of a package that is
    imported first imports it, and is not there yet.
    """

    def __init__(
        self, own: dict[str, T], more: Callable[[Mapping[str, T]], Mapping[str, T]] = lambda own: {}
    ) -> None:
        """``more``: from ours, what is to be added."""
        self.own, self.more = own, more
        self._lock = RLock()
        _tables.append(self)

    @cached_property
    def data(self) -> dict[str, T]:  # type: ignore[override]
        with self._lock:
            if "data" not in self.__dict__:
                self.__dict__["data"] = dict(self.own)  # what a package finds that looks as it is loaded
                self.__dict__["data"].update(self.more(self.own))
            table: dict[str, T] = self.__dict__["data"]
            return table

    def __setitem__(self, key: str, value: T) -> None:
        self.__dict__.get("data", self.own)[key] = value


class Unusable(Exception):
    """An entry cannot be used; ``str()`` is a sentence that names its package."""


@dataclass(frozen=True)
class Group:
    """The entries of one group by name, in order; and a sentence for each that is left out."""

    entries: dict[str, EntryPoint]
    faults: tuple[str, ...]


@cache
def _installed() -> dict[str, list[EntryPoint]]:
    """By group, read at once: each question to importlib reads every package's metadata."""
    every = entries(*GROUPS)
    return {name: [entry for entry in every if entry.group == name] for name in GROUPS}


@cache
def group(name: str) -> Group:
    """The Dojo's own entries in the order of its metadata, which nobody else's replace, then others' by
    package."""
    candidates = sorted(_installed()[name], key=lambda e: (_package(e) != OURS, _package(e)))
    found: dict[str, EntryPoint] = {}
    faults = []
    for entry in candidates:
        first = found.get(entry.name)
        if not _NAME.fullmatch(entry.name):
            faults.append(
                f"The package {_package(entry)} offers a {GROUPS[name]} named {entry.name!r:.40}: a name has "
                "small letters, digits and underscores. It is left out."
            )
        elif first is None:
            found[entry.name] = entry
        elif (_package(first), first.value) != (_package(entry), entry.value):  # not one found on two paths
            faults.append(
                f"The packages {_package(first)} and {_package(entry)} both offer a {GROUPS[name]} named "
                f"{entry.name}: that of {_package(first)} is used. Uninstall one of them."
            )
    return Group(found, tuple(faults))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value.partition(":")[0]


_loaded: dict[tuple[str, str], Any] = {}  # by group and name; Unusable where it cannot be used
_failures: dict[tuple[str, str], str] = {}


def load(name: str, key: str, kind: type | tuple[type, ...] = object) -> Any:
    """An entry of a group: an object of that kind, or what its class makes. Raises KeyError where there is
    none of that name, and Unusable."""
    if key not in group(name).entries:
        raise KeyError(key)
    if (name, key) not in _loaded:
        _loaded[name, key] = _load_entry(name, key)
    entry = _loaded[name, key]
    if isinstance(entry, Unusable):
        raise entry
    if not isinstance(entry, kind):
        kinds = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        raise refused(name, key, f"is of the type {type(entry).__name__}, not {kinds}")
    return entry


def _load_entry(name: str, key: str) -> Any:
    entry = group(name).entries[key]
    try:
        made_for = getattr(import_module(entry.module.partition(".")[0]), "DOJO_API", API)
        if made_for != API:
            why = f"was made for another version of the Dojo (interface {made_for!r:.20}, here it is {API})"
            return refused(name, key, why, "update one of them")
        loaded = entry.load()
        loaded = loaded() if isinstance(loaded, type) else loaded
        called = getattr(loaded, "name", key)
    except (Exception, SystemExit) as fault:  # a package of anybody's: whatever it raises
        log.exception("loading %s of %s", key, _package(entry))
        return refused(
            name, key, f"cannot be loaded ({_in_words(fault)})", "tell its authors, or uninstall it"
        )
    return loaded if called == key else refused(name, key, f"calls itself {called!r:.40}")


def _in_words(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}".removesuffix(": ")[:_SHOWN]


def refused(name: str, key: str, why: str, remedy: str = "tell its authors") -> Unusable:
    """Note that an entry is not used: the exception that says so. ``why`` goes on a sentence about it."""
    sentence = f"The {GROUPS[name]} {key} of the package {package(name, key)} {why}: {remedy}."
    _failures[name, key] = sentence
    return Unusable(sentence)


def failed(name: str, key: str, fault: BaseException) -> str:
    """Note that something of an entry raised what it never should as it was used; gives the sentence. The log
    has the traceback of the first one."""
    about = f"The {GROUPS[name]} {key} of the package {package(name, key)}"
    sentence = f"{about} failed ({_in_words(fault)}): tell its authors."
    if (name, key) not in _failures:
        _failures[name, key] = sentence
        log.error("using %s of %s", key, package(name, key), exc_info=fault)
    return sentence


def package(name: str, key: str) -> str:
    """The distribution that an entry is of; the Dojo's own where there is no entry of that name."""
    entry = group(name).entries.get(key)
    return OURS if entry is None else _package(entry)


def brought() -> dict[str, dict[str, list[str]]]:
    """By package and group the names that it brings and that are not left out."""
    by_package: dict[str, dict[str, list[str]]] = {}
    for name in GROUPS:
        for key in group(name).entries:
            by_package.setdefault(package(name, key), {}).setdefault(name, []).append(key)
    return by_package


def names(name: str) -> tuple[str, ...]:
    """The names in a group, loaded or not."""
    return tuple(group(name).entries)


def usable(name: str, kind: type | tuple[type, ...]) -> dict[str, Any]:
    """All in a group by name; what cannot be used is left out (``faults`` tells)."""
    loaded = {}
    for key in names(name):
        try:
            loaded[key] = load(name, key, kind)
        except Unusable:
            continue
    return loaded


def added(name: str, kind: type | tuple[type, ...], taken: Any) -> dict[str, Any]:
    """As ``usable``, without those whose name is among ``taken``: nothing replaces what there is."""
    loaded = usable(name, kind)
    for key in [key for key in loaded if key in taken]:
        refused(name, key, "has the name of one that there is", "it has to be renamed")
        del loaded[key]
    return loaded


def all_faults() -> tuple[str, ...]:
    """As ``faults``, after a look into every table that this process has imported."""
    for table in _tables:
        len(table)
    return faults()


def faults() -> tuple[str, ...]:
    """A sentence for each entry that is not used, or failed, as far as was found out until now."""
    if not _installed.cache_info().currsize:
        return ()
    return tuple(sentence for name in GROUPS for sentence in group(name).faults) + tuple(_failures.values())
