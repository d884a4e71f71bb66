"""The start program as it runs once to set the tolerances: long ones in an order of loops that ends soon.

A start program is naive: its sums read columns, on one thread. What matters here is only by how much its
results are off, and that comes from the order in which each of them is summed. So loops are exchanged and
given to threads where every result is still summed in the same order; a product of 512x4096x4096 takes a
second, not forty.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dojo_core.moves.core import Context, Move, Refusal
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.places import place_of
from dojo_core.program.marks import lane_stride
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Leaf, Path, Program, Provenance, Scope

LONG = 2**28  # operations that take about a second


def runs_long(program: Program) -> bool:
    """Does a run of it take about a second, or longer?"""
    return sum(math.prod(scope.size for scope in leaf.scopes) for leaf in program.leaves) >= LONG


@lru_cache(maxsize=64)
def hastened(start: Program) -> Program:
    """A program whose results are the start program's to the last bit, but for the compiler's liberties."""
    if not runs_long(start):
        return start
    position = context(start, DEFAULT_TARGET, "strict")  # strict: nothing is summed in another order
    for provenance in [leaf.op.provenance for leaf in start.leaves if leaf.op.accumulate]:
        position = _rows_innermost(position, provenance)
    for number, node in enumerate(position.program.body):
        path: Path = (number,)
        while isinstance(node, Scope) and node.size == 1:
            node, path = node.body[0], (*path, 0)
        if isinstance(node, Scope):
            position = _played(position, "parallelize", path) or position
    return position.program


def _rows_innermost(position: Context, provenance: Provenance) -> Context:
    """Exchange the two innermost scopes of a sum that would then go along rows, not columns."""
    leaf = _leaf(position.program, provenance)
    inner, outer = len(leaf.scopes) - 1, len(leaf.scopes) - 2
    if (
        outer < 0
        or _along_rows(position.program, leaf, inner)
        or not _along_rows(position.program, leaf, outer)
    ):
        return position
    return _played(position, "interchange", leaf.path[:inner]) or position


def _leaf(program: Program, provenance: Provenance) -> Leaf:
    return next(leaf for leaf in program.leaves if leaf.op.provenance == provenance)


def _along_rows(program: Program, leaf: Leaf, depth: int) -> bool:
    strides = (lane_stride(a, program.buffer_of[a.array], depth) for a in leaf.op.reads)
    return all(stride in (0, 1) for stride in strides)


def _played(position: Context, move: str, path: Path) -> Context | None:
    result = outcome(position, Move(move, (place_of(position.program, path),)))
    return None if isinstance(result, Refusal) else context(result, position.target, position.policy)
