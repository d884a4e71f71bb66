"""Which targets' programs get seconds here, and by which machine."""

from __future__ import annotations

from dojo_core.measure.load import load_is_told
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Origin
from dojo_core.targets.cuda.measurer import gpu_fault, gpu_measurer
from dojo_core.targets.registry import GPUS, SIMULATED
from dojo_core.targets.snitch.measurer import origin_of_the_model

GPU_DRIFT = 1.03


def timed(target: str) -> bool:
    """The CPU always, Snitch by its model; CUDA where there is a GPU (the first answer may take as long as
    its worker's start)."""
    return target not in GPUS or (target == "cuda" and not gpu_fault())


def origin(target: str) -> Origin | None:
    """What times a target's programs here; None where nothing does."""
    if not timed(target):
        return None
    if target == "cuda":
        return gpu_measurer().origin
    if target in SIMULATED:
        return origin_of_the_model()
    machine = this_machine()
    return Origin(target, machine.fingerprint, machine.details, load_is_told())


def steadiness(target: str) -> float | None:
    """By which factor two times of one program differ at most, whatever this computer does meanwhile: a
    model's cycles by none, a GPU's times by little. None: the CPU's, which other processes share."""
    if target in SIMULATED:
        return 1.0
    return GPU_DRIFT if target in GPUS else None


def gauged(target: str) -> bool:
    """Whether a target's times here say what else the machine did."""
    here = origin(target)
    return here is not None and here.gauged


def origins() -> list[Origin]:
    """All there are here (the first answer may take as long as ``timed``'s)."""
    return [found for found in map(origin, ("cpu", "cuda", *SIMULATED)) if found is not None]
