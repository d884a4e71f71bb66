"""Rows of a product that several scopes go over, in an order that is not their memory's: one matrix of them.

Windows of an image, or a sequence from its end, times one matrix of weights are the rows of one product::

    2 2 7 7 1152 384 y[{0}*98+{1}*49+{2}*7+{3},{4}] += x[{0},{2},{1},{3},{5}]*w[{5},{4}]

No scope has more than a few rows, which could share what a tile reads of ``w``. In a copy that has them in
the order of the results they are 196, and the copy costs little: each of its numbers goes into a whole row.
"""

from __future__ import annotations

import math
from itertools import pairwise

from agents.passes.contractions import find
from agents.passes.nests import isolate, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of, uses, widths_for
from agents.passes.tiles import MOST_ROWS
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Leaf, Provenance
from dojo_core.recipes import Sketch

ENOUGH = 4 * MOST_ROWS  # rows of one scope: tiles of these alone do as well
GROWTH = 2  # times an array's cells that the copy may have: windows that overlap have more


def copy_rows_in_order(sketch: Sketch, operation: Provenance) -> None:
    """Copy the rows of a product in the order of its results, and make one scope of those that go over them.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        _copy(sketch, operation)


def _copy(sketch: Sketch, operation: Provenance) -> None:
    contraction = find(sketch, operation)
    widths = widths_for(sketch.program, [leaf_at(sketch, operation)], sketch.context.target)
    columns = scope_of(sketch.program, sketch.path(contraction.columns)).size
    if contraction.rows is None or columns < min(widths, default=columns + 1):
        raise NoSuchPlace("No rows share anything, or a copy would take as long as the product.")
    leaf = leaf_at(sketch, operation)
    row = len(sketch.path(contraction.rows)) - 1
    number = only(k for k, form in enumerate(leaf.op.target.index) if form.uses(row))
    rows = _along(leaf, number)
    reads = [access for access in leaf.op.reads if any(uses(access, depth) for depth in rows)]
    if len(reads) != 1 or reads[0].indirect or leaf.scopes[row].size >= ENOUGH:
        raise NoSuchPlace("One scope has rows enough, or there is more to be copied than rows.")
    isolate(sketch, operation)
    if not _in_order(leaf, reads[0], rows):
        _stage(sketch, operation, reads[0], rows)
    others = [o.op for o in sketch.program.leaves if o.op.target.array == leaf.op.target.array]
    _merge(sketch, operation, number)
    for other in others:
        if other.provenance != operation:
            with sketch.attempt():  # what sets the results first
                _merge(sketch, other.provenance, number)


def _along(leaf: Leaf, number: int) -> list[int]:
    """The depths of the scopes that an index of the results goes over cell by cell, outermost first.

    Raises NoSuchPlace where it is one scope, or where cells are left out.
    """
    terms = sorted(affine(leaf.op.target.index[number]).terms, key=lambda term: -term[1])
    rows = [depth for depth, _ in terms]
    if len(rows) < 2 or not _in_order(leaf, leaf.op.target, rows):
        raise NoSuchPlace("Its rows are those of one scope, or no run of them.")
    return rows


def _in_order(leaf: Leaf, access: Access, rows: list[int]) -> bool:
    """Would one scope do for several, as far as an access goes?"""
    return all(
        form.coefficient(outer) == leaf.scopes[inner].size * form.coefficient(inner)
        for form in map(affine, access.index)
        for outer, inner in pairwise(rows)
    )


def _stage(sketch: Sketch, operation: Provenance, read: Access, rows: list[int]) -> None:
    """Read the rows from a copy, in which they are one dimension."""
    leaf = leaf_at(sketch, operation)
    spatial = depths_of(leaf.op.target)
    outer = [d for d in sorted(spatial & depths_of(read)) if d not in rows]
    sums = [d for d in range(len(leaf.scopes)) if d not in spatial]
    inner = [d for d in sorted(spatial) if d not in (*outer, *rows)]
    cells = math.prod(leaf.scopes[d].size for d in (*outer, *rows, *sums) if uses(read, d))
    if cells > GROWTH * sketch.program.buffer_of[read.array].cells:
        raise NoSuchPlace("The rows are windows that overlap.")
    order(sketch, operation, [leaf.scopes[d].provenance for d in (*outer, *rows, *sums, *inner)])
    name = fresh_name(sketch.program, "r" + read.array[:20])
    within = len(outer) + len(rows)
    sketch.play("stage_read", read.array, sketch.place(leaf_at(sketch, operation).path[:within]), name)
    sketch.play("set_location", name, "heap")
    sketch.play("materialise_dims", name, *range(within))
    isolate(sketch, operation)
    for _ in rows[1:]:
        sketch.play("merge_dims", name, len(outer))


def _merge(sketch: Sketch, operation: Provenance, number: int) -> None:
    """Make one scope of those that an index of an operation's results goes over."""
    isolate(sketch, operation)
    leaf = leaf_at(sketch, operation)
    rows = _along(leaf, number)
    others = [depth for depth in range(len(leaf.scopes)) if depth not in rows]
    arranged = [d for d in others if d < min(rows)] + rows + [d for d in others if d > min(rows)]
    order(sketch, operation, [leaf.scopes[d].provenance for d in arranged])
    for _ in rows[1:]:
        sketch.play("merge_scopes", sketch.place(leaf_at(sketch, operation).path[: min(rows) + 1]))
