"""Sums that no vector takes: single numbers, kept in registers while they grow.

A result in memory waits for its own store between two terms; in a register it does not, and the terms of a
small window are written out.
"""

from __future__ import annotations

from agents.passes.structure import depths_of, leaf_of
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

SMALL = 16  # terms that are written out


def sum_in_registers(sketch: Sketch) -> None:
    """Sum in a register whatever is summed in memory still, where its terms stand innermost."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        with sketch.attempt():
            _sum(sketch, provenance)


def _sum(sketch: Sketch, operation: Provenance) -> None:
    leaf = leaf_of(sketch.program, operation)
    if leaf is None or any(scope.mark in ("u", "v") for scope in leaf.scopes):
        raise NoSuchPlace("It is written out already.")
    array = leaf.op.target.array
    results = 1 + max(depths_of(leaf.op.target), default=-1)
    alone = all(len(scope.body) == 1 for scope in leaf.scopes[results:])
    if (
        results == len(leaf.scopes)
        or not results
        or not alone
        or sketch.program.buffer_of[array].location == "register"
    ):
        raise NoSuchPlace("Its terms do not stand innermost, or it has a register.")
    name = fresh_name(sketch.program, "acc")
    sketch.play("stage_write", array, sketch.place(leaf.path[:results]), name)
    sketch.play("set_location", name, "register")
    leaf = leaf_of(sketch.program, operation)
    assert leaf is not None
    terms = 1
    for depth in reversed(range(results, len(leaf.scopes))):
        terms *= leaf.scopes[depth].size
        if terms > SMALL or not sketch.may("unroll", sketch.place(leaf.path[: depth + 1])):
            break
