"""Sums over everything: partial sums that blocks add up by themselves, then one block for these."""

from __future__ import annotations

from agents.passes.gpu.bands import ENOUGH, band
from agents.passes.gpu.threads import cut, divisor, to_heap
from agents.passes.structure import leaf_of, scope_of, uses
from dojo_core.moves.places import Place, fresh_name
from dojo_core.program.tree import Op, Provenance, Scope
from dojo_core.recipes import Sketch

LONG = 1 << 14  # terms that one block would be slow to add up


def spread_sums(sketch: Sketch) -> None:
    """Cut long sums at the root into parts, and make a block of what then stands at the root alone."""
    for provenance in [node.provenance for node in sketch.program.body if isinstance(node, Scope)]:
        with sketch.attempt():
            _spread(sketch, provenance)
    for provenance in [node.provenance for node in sketch.program.body]:
        node = sketch.program.node(sketch.path(provenance))
        if isinstance(node, Op) or not (node.mark or band(sketch, provenance)):
            sketch.may("wrap", sketch.place(sketch.path(provenance)), 1)


def _spread(sketch: Sketch, provenance: Provenance) -> None:
    scope = scope_of(sketch.program, sketch.path(provenance))
    if (
        scope.size < LONG
        or not all(isinstance(child, Op) for child in scope.body)
        or band(sketch, provenance)
    ):
        return
    sums = [child.provenance for child in scope.body if isinstance(child, Op) and child.accumulate]
    cut(sketch, provenance, scope.size // divisor(scope.size, ENOUGH))
    for each in sums:
        leaf = leaf_of(sketch.program, each)
        if leaf is not None and not uses(leaf.op.target, 0):
            place = sketch.place(leaf.path)
            name = fresh_name(sketch.program, "p" + place.array[:20])
            sketch.play("split_reduction", Place(place.array, place.number, 0), name)
            to_heap(sketch, name)
