"""Targets of tests that are no machine here."""

from dojo_core.targets.gpu.limits import gpu
from dojo_core.targets.snitch.limits import target

GPU = gpu("gpu", "a GPU", warp=32)
SNITCH = target()
