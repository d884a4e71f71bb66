"""Every target by name: the Dojo's own and those of installed packages, found by entry points alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dojo_core import plugins
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
    return plugins.names(GROUP)


_usable: dict[str, Backend] = {}


def backend(name: str) -> Backend:
    """The target of that name, or on another machine, ``target@machine``; guarded. Raises UnknownTarget."""
    from dojo_core.targets.backend import Backend
    from dojo_core.targets.guarded import Guarded

    name, _, machine = name.partition(AT)
    if name not in _usable:
        try:
            loaded = plugins.load(GROUP, name, Backend)
        except KeyError:
            message = f"There is no target {name!r}. The targets are: {', '.join(names())}."
            raise UnknownTarget(message) from None
        except plugins.Unusable as fault:
            raise UnknownTarget(str(fault)) from None
        try:
            _usable[name] = Guarded(loaded)
        except Exception as fault:
            raise UnknownTarget(plugins.failed(GROUP, name, fault)) from fault
    try:
        return _usable[name].on(machine) if machine else _usable[name]
    except ValueError as fault:
        raise UnknownTarget(str(fault)) from None


def base(name: str) -> str:
    """A target's name without a machine's: what workers and the records call it."""
    return name.partition(AT)[0]


def bring(name: str, told: str) -> None:
    """Hear from a game what the machine of ``target@machine`` is. Raises ValueError with a sentence."""
    target, _, machine = name.partition(AT)
    if machine:
        backend(target).bring(machine, told)


def backends() -> tuple[Backend, ...]:
    """All that can be used."""
    usable = []
    for name in names():
        try:
            usable.append(backend(name))
        except UnknownTarget:
            continue
    return tuple(usable)


def target(name: str) -> Target:
    """The limits of the target of that name. Raises UnknownTarget."""
    return backend(name).limits


def origins() -> list[Origin]:
    """What gives programs a number here (the first answer may take as long as a device's worker's start)."""
    numbering = (each.clock().origin for each in backends())
    return [origin for origin in numbering if origin is not None]
