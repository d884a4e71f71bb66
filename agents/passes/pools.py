"""Windows side by side, as average pooling has them: rows of a window are added up first, in whole vectors.

``s[i,j] += x[i*a+k,j*b+l]`` has windows of b columns, each next to the one before, so that a row of windows
is a run of neighbours in memory. Added up along k these runs take a vector for each instruction, whatever
number of columns a window has; what is left to add up for each window is a single row. Lanes along j do
without for narrow windows (vectors.py).
"""

from __future__ import annotations

import math

from agents.passes.nests import isolate, leaf_at, order
from agents.passes.structure import depths_of, only, stride, widths_for
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.program.marks import APART
from dojo_core.program.tree import DTYPE_BYTES, Provenance
from dojo_core.recipes import Sketch

LONG = 5  # vectors in a row of windows at least
FEW = 2  # rows of a window that are too few
SHARE = 4  # of a core's first cache, the share that a row of windows may take


def add_rows_of_windows(sketch: Sketch, operation: Provenance) -> None:
    """Split a sum over windows that lie side by side; other sums stay as they are."""
    with sketch.attempt():
        _split(sketch, operation)


def _split(sketch: Sketch, operation: Provenance) -> None:
    program, target, leaf = sketch.program, sketch.context.target, leaf_at(sketch, operation)
    op = leaf.op
    if not op.accumulate or op.function or op.guard or any(scope.mark for scope in leaf.scopes):
        raise NoSuchPlace("No sum of what an array has.")
    if any(access.indirect for access in op.elements):
        raise NoSuchPlace("Where it reads is data.")
    depths, spatial, read = range(len(leaf.scopes)), depths_of(op.target), only(op.reads)
    sums = [d for d in depths if d not in spatial]
    column = only(d for d in sums if stride(program, read, d) == 1)
    width = leaf.scopes[column].size
    window = only(
        d
        for d in spatial
        if stride(program, op.target, d) == 1 and stride(program, read, d) == width and read.index[-1].uses(d)
    )
    if width <= APART:
        raise NoSuchPlace("Vectors take what windows as narrow as this have for neighbours.")
    run = width * leaf.scopes[window].size
    widths = widths_for(program, [leaf], target)
    if not widths or run < LONG * widths[0] or leaf.scopes[window].size == 1:
        raise NoSuchPlace("A row of windows is short.")
    if run * DTYPE_BYTES[program.buffer_of[op.target.array].dtype] * SHARE > target.first_cache_bytes:
        raise NoSuchPlace("A row of windows is too long for a near cache.")
    rows = [d for d in sums if d != column]
    if math.prod(leaf.scopes[d].size for d in rows) <= FEW:
        raise NoSuchPlace("A window is few rows.")
    others = [d for d in spatial if d != window]
    isolate(sketch, operation)
    scopes = leaf_at(sketch, operation).scopes
    order(sketch, operation, [scopes[d].provenance for d in (*sorted(others), *rows, window, column)])
    leaf = leaf_at(sketch, operation)
    depth = len(leaf.scopes) - 1
    place = sketch.place(leaf.path)
    name = fresh_name(sketch.program, "q" + op.target.array[:20])
    sketch.play("split_reduction", Place(place.array, place.number, depth), name)
    sketch.play("merge_dims", name, len(others))
    for leaf in sketch.program.leaves:
        if leaf.op.target.array == name:
            sketch.play("merge_scopes", sketch.place(sketch.path(leaf.scopes[-2].provenance)))
