"""Which inputs are worst for the moves that may lie behind a program.

A program's text does not tell the line that led to it. So whoever verifies one under the policy ``algebraic``
draws from the worst inputs of all moves that a line from its start may have (``measure/worst_pool.py``).
"""

from __future__ import annotations

from dojo_core.measure.patterns import PATTERNS
from dojo_core.moves.core import REGISTRY
from dojo_core.program.tree import Program


def worst_inputs(program: Program, policy: str) -> tuple[str, ...]:
    """The patterns on which some move that a line from this start may have is worst, in the order of drawing.

    None for a program with sums of f16 or bf16, which lose digits in any order: no such move touches them.
    """
    narrow = (
        leaf.op.accumulate and program.buffer_of[leaf.op.target.array].dtype in ("f16", "bf16")
        for leaf in program.leaves
    )
    if policy != "algebraic" or any(narrow):
        return ()
    functions = {leaf.op.function for leaf in program.leaves}
    declared = {n for move in REGISTRY.values() if move.rewrites in functions for n in move.worst_inputs}
    return tuple(name for name in PATTERNS if name in declared)
