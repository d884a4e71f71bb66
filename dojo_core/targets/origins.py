"""Which targets' programs get seconds here, and by which machine."""

from __future__ import annotations

from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Origin
from dojo_core.targets.cuda.measurer import gpu_fault, gpu_measurer
from dojo_core.targets.target import GPUS, SIMULATED


def timed(target: str) -> bool:
    """The CPU always; CUDA where there is a GPU (the first answer may take as long as its worker's start)."""
    return target not in (*GPUS, *SIMULATED) or (target == "cuda" and not gpu_fault())


def origin(target: str) -> Origin | None:
    """What times a target's programs here; None where nothing does."""
    if not timed(target):
        return None
    if target == "cuda":
        return gpu_measurer().origin
    machine = this_machine()
    return Origin(target, machine.fingerprint, machine.details)


def origins() -> list[Origin]:
    """All there are here (the first answer may take as long as ``timed``'s)."""
    return [found for found in map(origin, ("cpu", "cuda")) if found is not None]
