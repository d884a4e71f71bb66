"""Every target by name: the Dojo's own and those of installed packages, found by entry points alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dojo_core.plugins import Unusable, load
from dojo_core.plugins import names as names_in
from dojo_core.program.target import Target

if TYPE_CHECKING:
    from dojo_core.measure.measurement import Origin
    from dojo_core.targets.backend import Backend

GROUP = "dojo.targets"
AT = "@"  # stands between a target's name and a machine's


class UnknownTarget(ValueError):
    """Raised with a sentence: the known targets, or why that of a package cannot be used."""


def names() -> tuple[str, ...]:
    """Of all targets, the default one first."""
    return names_in(GROUP)


def backend(name: str) -> Backend:
    """The target of that name, or on another machine, ``target@machine``. Raises UnknownTarget."""
    base, _, machine = name.partition(AT)
    try:
        found: Backend = load(GROUP, base)
    except KeyError:
        raise UnknownTarget(f"There is no target {base!r}. The targets are: {', '.join(names())}.") from None
    except Unusable as fault:
        raise UnknownTarget(str(fault)) from None
    try:
        return found.on(machine) if machine else found
    except ValueError as fault:
        raise UnknownTarget(str(fault)) from None


def base(name: str) -> str:
    """A target's name without a machine's: what its workers and the records call it."""
    return name.partition(AT)[0]


def bring(name: str, told: str) -> None:
    """Hear from a game what the machine of ``target@machine`` is. Raises ValueError with a sentence."""
    target, _, machine = name.partition(AT)
    if machine:
        backend(target).bring(machine, told)


def backends() -> tuple[Backend, ...]:
    """All that can be used."""
    found = []
    for name in names():
        try:
            found.append(backend(name))
        except UnknownTarget:
            continue
    return tuple(found)


def target(name: str) -> Target:
    """The limits of the target of that name. Raises UnknownTarget."""
    return backend(name).limits


def origins() -> list[Origin]:
    """What gives programs a number here (the first answer may take as long as a device's worker's start)."""
    found = (each.clock().origin for each in backends())
    return [origin for origin in found if origin is not None]
