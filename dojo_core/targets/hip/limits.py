"""HIP: AMD GPUs of the CDNA family, whose waves have 64 lanes."""

from __future__ import annotations

from functools import cache

from dojo_core.targets.gpu.limits import GpuTarget, gpu


@cache
def target() -> GpuTarget:
    """The HIP target."""
    return gpu("hip", "AMD GPU (HIP)", warp=64)
