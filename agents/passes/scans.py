"""Recurrences along rows: several rows side by side.

``y[i,j+1] = y[i,j] + x[i,j+1]`` waits for the number before it, some cycles each time. Rows do not wait for
each other: with several in turn a core has something to do meanwhile.
"""

from __future__ import annotations

from agents.passes.structure import below, body_at, innermost, only, scope_of, unmarked_at
from agents.passes.threads import BALANCED, balance, independent
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Leaf, Path, Program
from dojo_core.recipes import Sketch

ROWS = (4, 2)  # side by side
STREAMS = 8  # rows of all arrays at once: what begins as far apart shares few places of a near cache


def recur_side_by_side(sketch: Sketch) -> None:
    """Run several rows of each recurrence in turn, where rows are independent and a loop is a recurrence."""
    for provenance in [sketch.provenance(path) for path in innermost(sketch.program)]:
        with sketch.attempt():
            _interleave(sketch, sketch.path(provenance))


def _interleave(sketch: Sketch, path: Path) -> None:
    program, around = sketch.program, path[:-1]
    leaves = below(program, path)
    if not around or not unmarked_at(program, around) or not _recurs(leaves):
        raise NoSuchPlace("It is no recurrence in a row.")
    if not independent(sketch, around):
        raise NoSuchPlace("Its rows hang on each other.")
    size, streams = scope_of(program, around).size, _streams(program, leaves)
    rows = only(
        n
        for n in ROWS
        if n * streams <= STREAMS
        and size % n == 0
        and (len(around) > 1 or balance(size // n, sketch.context.target.threads) >= BALANCED)
    )
    sketch.play("split_scope", sketch.place(around), rows)
    row = (*around, 0)
    if path[-1]:
        sketch.play("fission_scope", sketch.place(row), sketch.place((*row, path[-1])))
        row = (*around, 1)
    if len(body_at(sketch.program, row)) > 1:
        sketch.play("fission_scope", sketch.place(row), sketch.place((*row, 1)))
    sketch.play("interchange", sketch.place(row))
    sketch.play("unroll", sketch.place((*row, 0)))


def _recurs(leaves: list[Leaf]) -> bool:
    """Does an iteration read, before it writes there, another element of an array that it writes?"""
    return any(
        access.array == later.op.target.array and access.index != later.op.target.index
        for n, leaf in enumerate(leaves)
        for later in leaves[n:]
        for access in leaf.op.reads
    )


def _streams(program: Program, leaves: list[Leaf]) -> int:
    """How many arrays in memory a row goes along."""
    arrays = {access.array for leaf in leaves for access in leaf.op.elements}
    return sum(program.buffer_of[array].location == "heap" for array in arrays)
