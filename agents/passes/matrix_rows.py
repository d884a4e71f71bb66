"""A matrix in memory times a vector: rows side by side, each a stream of its own.

``y[i] += a[i,k]*x[k]`` reads ``a`` once. A core keeps more of memory at work with several rows than with one,
and takes each number of ``x`` from a near cache once for all of them. Lanes go along ``k``.
"""

from __future__ import annotations

import math

from agents.passes.contractions import Contraction, initialisation
from agents.passes.inner_products import keep_lanes, nest_by_tiles
from agents.passes.nests import isolate, join_shared, leaf_at
from agents.passes.structure import depths_of, only, stride, uses, widths_for
from agents.passes.threads import BALANCED, balance
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.dependence import has_vector_form
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

ROWS = 4  # side by side


def rows_side_by_side(sketch: Sketch, operation: Provenance) -> None:
    """Tile a matrix times a vector whose matrix no core's cache holds; other sums stay as they are."""
    with sketch.attempt():
        _tile(sketch, operation)


def _tile(sketch: Sketch, operation: Provenance) -> None:
    program, target = sketch.program, sketch.context.target
    leaf = leaf_at(sketch, operation)
    plain = leaf.op.accumulate == "+" and leaf.op.function == "*" and not leaf.op.guard
    if not plain or not has_vector_form(leaf) or any(scope.mark for scope in leaf.scopes):
        raise NoSuchPlace("No sum of products.")
    if len(leaf.op.reads) != 2 or any(access.indirect for access in leaf.op.elements):
        raise NoSuchPlace("Its operands are not two arrays' elements.")
    depths = range(len(leaf.scopes))
    rows = only(d for d in depths if stride(program, leaf.op.target, d) == 1)
    matrix = [access for access in leaf.op.reads if uses(access, rows)]
    terms = only(
        d
        for d in depths
        if not uses(leaf.op.target, d) and all(stride(program, a, d) == 1 for a in leaf.op.reads)
    )
    widths = widths_for(program, [leaf], target)
    length = leaf.scopes[terms].size
    width = only(w for w in widths if length % w == 0 and length >= ROWS * w)
    if len(matrix) != 1 or program.buffer_of[matrix[0].array].bytes <= target.cache_bytes:
        raise NoSuchPlace("It is no matrix times a vector, or a cache has the matrix.")
    spatial = depths_of(leaf.op.target)
    if not all(uses(matrix[0], depth) for depth in spatial):
        raise NoSuchPlace("Several vectors share the matrix.")
    others, count = [leaf.scopes[d].size for d in spatial if d != rows], leaf.scopes[rows].size
    if count % ROWS or balance(math.prod(others) * count // ROWS, target.threads) < BALANCED:
        raise NoSuchPlace("Its rows do not go by so many, and these among threads.")
    columns, lanes = leaf.scopes[rows].provenance, leaf.scopes[terms].provenance
    contraction = Contraction(operation, columns, None, None)
    first = initialisation(sketch, operation, contraction)
    isolate(sketch, operation)
    if first is not None:
        isolate(sketch, first.sum)
    path = sketch.path(lanes)
    sketch.play("split_scope", sketch.place(path), width)
    lanes = sketch.provenance((*path, 0))
    nests = [contraction] if first is None else [first, contraction]
    join_shared(sketch, [nest_by_tiles(sketch, nest, 1, ROWS, lanes) for nest in nests])
    keep_lanes(sketch, operation, lanes, ROWS)
