"""Instructions that add several products at once to each lane of a sum, such as vpdpbusd for bytes."""

from __future__ import annotations

from dataclasses import dataclass

from agents.passes.nests import leaf_at, order
from agents.passes.structure import only, uses
from agents.passes.tiles import Tile
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Leaf, Program, Provenance
from dojo_core.program.unification import meaning
from dojo_core.recipes import Sketch


@dataclass(frozen=True)
class Dot:
    """An instruction by its name, and how many terms of a sum a lane takes at once."""

    name: str
    terms: int


def dot_for(sketch: Sketch, operation: Provenance, tile: Tile) -> Dot | None:
    """The instruction of the target that a sum's dtypes fit, in the lanes of a tile."""
    leaf = leaf_at(sketch, operation)
    for name, lanes in sorted(sketch.context.target.instructions):
        program, meant = meaning(name, lanes)
        if (
            lanes == tile.width
            and len(meant.scopes) == 2
            and _kind(program, meant) == _kind(sketch.program, leaf)
        ):
            return Dot(name, meant.scopes[1].size)
    return None


def _kind(program: Program, leaf: Leaf) -> tuple[str, str, str, list[str]]:
    dtypes = [program.buffer_of[access.array].dtype for access in (leaf.op.target, *leaf.op.reads)]
    return leaf.op.accumulate, leaf.op.function, dtypes[0], sorted(dtypes[1:])


def split_terms(sketch: Sketch, operation: Provenance, dot: Dot) -> Provenance:
    """Split the longest run of a sum's terms for a lane; gives the scope over those that it takes at once.

    Raises NoSuchPlace where none divides.
    """
    leaf = leaf_at(sketch, operation)
    summed = [d for d in range(len(leaf.scopes)) if not uses(leaf.op.target, d)]
    depth = only(
        d for d in sorted(summed, key=lambda d: -leaf.scopes[d].size) if not leaf.scopes[d].size % dot.terms
    )
    if leaf.scopes[depth].size == dot.terms:
        return leaf.scopes[depth].provenance
    sketch.play("split_scope", sketch.place(leaf.path[: depth + 1]), dot.terms)
    return sketch.provenance((*leaf.path[: depth + 1], 0))


def pack_terms(sketch: Sketch, operation: Provenance, name: str, dot: Dot) -> None:
    """Have a packed panel hold, for each column, the terms that a lane takes at once side by side."""
    leaf = leaf_at(sketch, operation)
    panel = only(a for a in leaf.op.reads if a.array == name)
    dim = only(k for k, form in enumerate(panel.index) if form.uses(len(leaf.scopes) - 1))
    copy = only(other for other in sketch.program.leaves if other.op.target.array == name)
    depth = max(copy.op.target.index[dim].depths)
    sketch.play("split_scope", sketch.place(copy.path[: depth + 1]), dot.terms)
    inside = sketch.provenance((*copy.path[: depth + 1], 0))
    around = [s.provenance for s in leaf_at(sketch, copy.op.provenance).scopes[depth:]]
    order(sketch, copy.op.provenance, [*(each for each in around if each != inside), inside])
    sketch.play("unroll", sketch.place(sketch.path(inside)))
    sketch.play("split_dim", name, dim, dot.terms)
    for k in range(dim + 1, len(buffer_named(sketch.program, name).dims) - 1):
        sketch.play("swap_dims", name, k, k + 1)


def use_dot(sketch: Sketch, operation: Provenance, tile: Tile, dot: Dot) -> None:
    """Run the lanes of a tile as the instruction, and write out the loops over the tile."""
    path = leaf_at(sketch, operation).path[:-2]
    sketch.play("use_instruction", sketch.place(path), dot.name)
    for _ in range((tile.vectors > 1) + (tile.rows > 1)):
        path = path[:-1]
        sketch.play("unroll", sketch.place(path))
