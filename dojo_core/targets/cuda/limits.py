"""CUDA: NVIDIA GPUs."""

from __future__ import annotations

from functools import cache

from dojo_core.targets.gpu.limits import GpuTarget, gpu


@cache
def target() -> GpuTarget:
    """The CUDA target."""
    return gpu("cuda", "NVIDIA GPU (CUDA)", warp=32)
