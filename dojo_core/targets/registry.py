"""Every target by name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from dojo_core.program.target import Target

# Every target: its name, and the module whose ``target()`` gives it.
TARGETS = {
    "cpu": "dojo_core.targets.cpu.limits",
    "cuda": "dojo_core.targets.cuda.limits",
    "hip": "dojo_core.targets.hip.limits",
    "snitch": "dojo_core.targets.snitch.limits",
}

GPUS = ("cuda", "hip")  # of these: what the emulator runs and what has no time without the device
SIMULATED = ("snitch",)  # of these: what runs on a model; its times are cycles, one a nanosecond


NO_TABLES = "GPU targets have no constant tables yet: play this program on the CPU."


class UnknownTarget(ValueError):
    """Raised with a sentence that lists the known targets."""


@cache
def target(name: str) -> Target:
    """The target of that name. Raises UnknownTarget."""
    if name not in TARGETS:
        raise UnknownTarget(f"There is no target {name!r}. The targets are: {', '.join(TARGETS)}.")
    found: Target = import_module(TARGETS[name]).target()
    return found
