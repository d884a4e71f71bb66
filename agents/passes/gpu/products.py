"""Products and their operands, found by structure; and the sum of one cut into parts (split-K).

Few tiles would leave processors idle and the others without a second block to hide the first one's loads:
then the terms are cut into parts, whose sums are added up afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.passes.gpu.threads import cut, lift, to_heap
from agents.passes.structure import leaf_of, scope_of, stride, uses
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Access, Leaf, Path, Provenance, Scope
from dojo_core.recipes import Sketch

SHORTEST = 128  # terms of a part, below which adding the parts up costs too much


@dataclass(frozen=True)
class Product:
    rows: Provenance
    columns: Provenance
    terms: Provenance
    left: Access  # uses rows and terms
    right: Access  # uses terms and columns


def find_product(
    sketch: Sketch, operation: Provenance, rows_of: int, columns_of: int, terms_of: int
) -> Product:
    """A sum of products that tiles of so many rows, columns and terms divide. Raises NoSuchPlace."""
    program = sketch.program
    leaf = product_leaf(sketch, operation)
    if leaf.op.accumulate != "+" or leaf.op.function != "*" or leaf.op.guard or len(leaf.op.reads) != 2:
        raise NoSuchPlace("Not a sum of products.")
    target = leaf.op.target
    if {program.buffer_of[a.array].dtype for a in (target, *leaf.op.reads)} != {"f32"}:
        raise NoSuchPlace("Tiles are for f32.")
    spatial = [d for d in range(len(leaf.scopes)) if uses(target, d)]
    summed = [d for d in range(len(leaf.scopes)) if d not in spatial]
    if len(spatial) < 2 or summed != [len(leaf.scopes) - 1] or any(s.mark for s in leaf.scopes):
        raise NoSuchPlace("Not one sum in two scopes or more.")
    rows, columns, terms = spatial[-2], spatial[-1], summed[0]
    one, two = leaf.op.reads
    left, right = (one, two) if uses(one, rows) else (two, one)
    if (
        [uses(left, d) for d in (rows, columns, terms)] != [True, False, True]
        or [uses(right, d) for d in (rows, columns, terms)] != [False, True, True]
        or stride(program, left, terms) != 1
        or stride(program, right, columns) != 1
        or stride(program, target, columns) != 1
        or leaf.scopes[rows].size % rows_of
        or leaf.scopes[columns].size % columns_of
        or leaf.scopes[terms].size % terms_of
    ):
        raise NoSuchPlace("Its operands do not lie as a tile takes them, or no tile divides them.")
    i, j, k = (leaf.scopes[d].provenance for d in (rows, columns, terms))
    return Product(i, j, k, left, right)


def product_leaf(sketch: Sketch, operation: Provenance) -> Leaf:
    leaf = leaf_of(sketch.program, operation)
    if leaf is None or not leaf.op.accumulate:
        raise NoSuchPlace("No sum.")
    return leaf


def spread(
    sketch: Sketch, operation: Provenance, contraction: Product, tile: int, step: int, most: int
) -> None:
    """Where tiles of so many results are fewer than ``most``, cut the terms into parts with sums of their
    own, each of whole steps, as in a batch of products."""
    leaf = product_leaf(sketch, operation)
    tiles = math.prod(scope.size for scope in leaf.scopes[:-1]) // tile
    terms = leaf.scopes[-1].size
    fitting = [n for n in range(1, terms // SHORTEST + 1) if terms % (n * step) == 0]
    parts = next((n for n in fitting if n * tiles >= most), fitting[-1] if fitting else 1)
    if parts == 1:
        return
    part, _ = cut(sketch, contraction.terms, terms // parts)
    place, top = sketch.place(leaf.path), len(sketch.path(contraction.rows)) - 1
    name = fresh_name(sketch.program, "p" + place.array[:20])
    sketch.play("split_reduction", Place(place.array, place.number, len(leaf.scopes) - 1), name)
    to_heap(sketch, name)
    before, after = (scope.provenance for scope in _beside(sketch, part))
    for each in (part, after):
        for depth in range(len(sketch.path(each)) - 1, 0, -1):
            path = sketch.path(each)
            sketch.play("fission_scope", sketch.place(path[:depth]), sketch.place(path[: depth + 1]))
    for each in (before, part):
        lift(sketch, each, top)
    k = len(buffer_named(sketch.program, name).dims) - 1
    sketch.play("swap_dims", name, k - 1, k)
    sketch.play("swap_dims", name, k - 2, k - 1)


def _beside(sketch: Sketch, provenance: Provenance) -> tuple[Scope, Scope]:
    """The scopes before and after one."""
    path = sketch.path(provenance)
    if path[-1] == 0:
        raise NoSuchPlace("The partial results stand elsewhere.")
    return (
        scope_of(sketch.program, (*path[:-1], path[-1] - 1)),
        scope_of(sketch.program, (*path[:-1], path[-1] + 1)),
    )


@dataclass(frozen=True)
class Blocks:
    """A product whose tiles are blocks of the grid, with sums of their own: how the sums begin, are added up
    and are stored, the scope over the steps of a sum, and that over the terms of one."""

    top: Path  # of a block
    sums: str
    parts: tuple[Provenance, Provenance, Provenance]
    terms: Provenance
    step: Provenance


def into_blocks(sketch: Sketch, operation: Provenance, found: Product, sizes: tuple[int, int, int]) -> Blocks:
    """Cut a product into tiles of so many rows and columns, of which each keeps its sums in a buffer, and
    these into steps of so many terms."""
    array = product_leaf(sketch, operation).op.target.array
    rows_outer, rows = cut(sketch, found.rows, sizes[0])
    block, columns = cut(sketch, found.columns, sizes[1])
    lift(sketch, block, len(sketch.path(rows_outer)))
    sums = fresh_name(sketch.program, array + "s")
    sketch.play("stage_write", array, sketch.place(sketch.path(block)), sums)
    to_heap(sketch, sums)
    for depth in (len(sketch.path(columns)), len(sketch.path(rows))):
        path = sketch.path(operation)
        sketch.play("fission_scope", sketch.place(path[:depth]), sketch.place(path[: depth + 1]))
    top = sketch.path(block)
    start, product, store = (sketch.provenance((*top, n)) for n in range(3))
    terms, step = cut(sketch, found.terms, sizes[2])
    lift(sketch, terms, len(top))
    return Blocks(top, sums, (start, product, store), terms, step)
