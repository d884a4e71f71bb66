"""Sums in parts: a long loop's terms are added up part by part, and then the parts.

A sum of n terms, one after the other, has n rounding errors, each of what has been summed so far. In parts,
as a BLAS goes by blocks of some hundred terms, these are of smaller sums, and few are of large ones. What a
tile has summed waits in the first-level cache meanwhile, for a step in 512. Source: Blanchard, Higham and
Mary, "A class of fast and accurate summation algorithms", SISC 42(3), 2020.
"""

from __future__ import annotations

from agents.passes.nests import join_shared, leaf_at
from agents.passes.structure import only, uses
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Leaf, Provenance
from dojo_core.recipes import Sketch

MANY, PART = 1024, 512  # iterations over a sum's terms from which on it has parts, and of a part at most
SHORTEST = 128  # of a part: shorter ones take more to add up


def sum_in_parts(sketch: Sketch) -> None:
    """Split long loops whose terms are summed in registers; where a move is refused, one stays as it is."""
    for operation in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate == "+"]:
        with sketch.attempt():
            _split(sketch, operation)


def _split(sketch: Sketch, operation: Provenance) -> None:
    leaf = leaf_at(sketch, operation)
    total = sketch.program.buffer_of[leaf.op.target.array]
    depth = only(
        d for d, scope in enumerate(leaf.scopes) if scope.size >= MANY and not uses(leaf.op.target, d)
    )
    if total.location != "register" or total.dtype != "f32" or leaf.scopes[-1].mark != "v":
        raise NoSuchPlace("No vectors in registers are summed.")
    size = leaf.scopes[depth].size
    part = max(n for n in range(1, PART + 1) if size % n == 0)
    if part < SHORTEST:
        raise NoSuchPlace("No part of many terms divides them.")
    sketch.play("split_scope", sketch.place(leaf.path[: depth + 1]), part)
    place, name = sketch.place(leaf_at(sketch, operation).path), fresh_name(sketch.program, "part")
    sketch.play("split_reduction", Place(place.array, place.number, depth), name)
    join_shared(sketch, [[leaf.scopes[depth].provenance] for leaf in _touching(sketch, name)])
    dims = buffer_named(sketch.program, name).dims
    sketch.play("reuse_dims", name, next(k for k, dim in enumerate(dims) if dim.materialised))
    sketch.play("set_location", total.name, "stack")
    sketch.play("set_location", name, "register")


def _touching(sketch: Sketch, array: str) -> list[Leaf]:
    """The operations that write or read an array."""
    return [leaf for leaf in sketch.program.leaves if array in {a.array for a in leaf.op.elements}]
