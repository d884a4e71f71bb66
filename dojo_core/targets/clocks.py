"""Which targets' programs get seconds here, and by which machine."""

from __future__ import annotations

from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Clock
from dojo_core.targets.cuda.measurer import gpu_fault, gpu_measurer
from dojo_core.targets.target import GPUS, SIMULATED


def timed(target: str) -> bool:
    """The CPU always; CUDA where there is a GPU (the first answer may take as long as its worker's start)."""
    return target not in (*GPUS, *SIMULATED) or (target == "cuda" and not gpu_fault())


def clock(target: str) -> Clock | None:
    """What times a target's programs here; None where nothing does."""
    if not timed(target):
        return None
    if target == "cuda":
        return gpu_measurer().clock
    machine = this_machine()
    return Clock(target, machine.fingerprint, machine.details)


def clocks() -> list[Clock]:
    """All there are here."""
    return [found for found in map(clock, ("cpu", "cuda")) if found is not None]
