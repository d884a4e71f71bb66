"""Which targets' programs get seconds here."""

from __future__ import annotations

from dojo_core.targets.cuda.measurer import gpu_fault
from dojo_core.targets.target import GPUS, SIMULATED


def timed(target: str) -> bool:
    """The CPU always; CUDA where there is a GPU (the first answer may take as long as its worker's start)."""
    return target not in (*GPUS, *SIMULATED) or (target == "cuda" and not gpu_fault())
