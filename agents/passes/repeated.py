"""Matrices that are read again at each step, in the order in which tiles read them.

A recurrence multiplies its state by the same weights at every step: ``h[t+1] = f(h[t]*w)``. A tile of columns
takes a few lines of each row, and the rows lie far apart: each line comes from a page of its own, ahead of
which no prefetcher runs. In a copy that has a tile's lines side by side, made once, they come one after the
other at every step.
"""

from __future__ import annotations

import math

from agents.passes.nests import leaf_at, order
from agents.passes.packing import APART
from agents.passes.structure import depths_of, only, uses
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Provenance
from dojo_core.recipes import Sketch

AGAIN = 8  # times that a matrix is read, from which on a copy pays
SHARE = 8  # of a core's cache, the share that a matrix may take and is read well enough where it is


def order_what_repeats(sketch: Sketch) -> None:
    """Copy matrices of tiled products in the order in which each step of a loop reads them anew."""
    for leaf in sketch.program.leaves:
        if leaf.op.accumulate and sketch.program.buffer_of[leaf.op.target.array].location == "register":
            with sketch.attempt():
                _copy(sketch, leaf.op.provenance)


def _copy(sketch: Sketch, operation: Provenance) -> None:
    leaf = leaf_at(sketch, operation)
    matrix, columns = _matrix(sketch, leaf)
    name = fresh_name(sketch.program, "p" + matrix.array[:20])
    sketch.play("stage_read", matrix.array, "root", name)
    copy = only(other for other in sketch.program.leaves if other.op.target.array == name)
    terms = copy.scopes[0].provenance
    sketch.play("split_scope", sketch.place(copy.path[:2]), columns)
    sketch.play("split_dim", name, 1, columns)
    sketch.play("swap_dims", name, 0, 1)
    _, panels, inside = (scope.provenance for scope in leaf_at(sketch, copy.op.provenance).scopes)
    order(sketch, copy.op.provenance, [panels, terms, inside])


def _matrix(sketch: Sketch, leaf: Leaf) -> tuple[Access, int]:
    """What is read along a tile's lanes, and the columns of a tile.

    Raises NoSuchPlace where it is no matrix in memory that a loop around reads again and again.
    """
    program, cache = sketch.program, sketch.context.target.cache_bytes
    matrix = only(a for a in leaf.op.reads if uses(a, len(leaf.scopes) - 1))
    buffer = program.buffer_of[matrix.array]
    used = depths_of(matrix)
    again = math.prod(scope.size for scope in leaf.scopes[: min(used)])
    if again < AGAIN or matrix.indirect or len(matrix.index) != 2 or buffer.location != "heap":
        raise NoSuchPlace("It is not read again and again.")
    if any(
        matrix.array in {a.array for a in other.op.elements} for other in program.leaves if other is not leaf
    ):
        raise NoSuchPlace("Others go over it in another order, or write it.")
    apart = buffer.dims[1].size * DTYPE_BYTES[buffer.dtype]
    if apart < APART or buffer.bytes <= cache // SHARE:
        raise NoSuchPlace("It is read well enough where it is.")
    terms, columns = map(affine, matrix.index)
    if not terms.depths or not columns.depths or columns.const:
        raise NoSuchPlace("It is not read tile by tile.")
    step = columns.coefficient(min(columns.depths))
    if step <= 1:
        raise NoSuchPlace("It is one tile.")
    return matrix, step
