"""Targets of tests that are no machine here."""

from dataclasses import replace

from dojo_core.moves.examples import WIDE
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.targets.gpu.limits import gpu
from dojo_core.targets.snitch.limits import target

GPU = gpu("gpu", "a GPU", warp=32)
SNITCH = target()
# A processor with every machine instruction that there is.
ABLE = replace(
    WIDE,
    instructions=frozenset((name, lanes) for name, each in INSTRUCTIONS.items() for lanes in each.needs),
)
