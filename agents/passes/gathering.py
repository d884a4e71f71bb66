"""Windows that step over columns: what they read is gathered first, so that vectors find it side by side.

A convolution of stride 2 reads every second column of a row, which no vector load takes. With a copy of what
each term of the sum reads for each result (im2col: Chellapilla, Puri, Simard, 2006) it is a matrix product.
"""

from __future__ import annotations

from agents.passes.contractions import find, initialisation, isolate, leaf_at, order
from agents.passes.dense import flatten
from agents.passes.structure import only, stride, widths_for
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tables import affine
from dojo_core.program.tree import Birth
from dojo_core.recipes import Sketch


def gather_windows(sketch: Sketch, operation: Birth) -> None:
    """Gather what a sum over strided windows reads, and make one run of its results.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        _gather(sketch, operation)


def _gather(sketch: Sketch, operation: Birth) -> None:
    found = find(sketch, operation, strided=True)
    isolate(sketch, operation)
    first = initialisation(sketch, operation, found)
    if first is None or found.rows is None or found.panel is not None:
        raise NoSuchPlace("It has no rows that share a window, or nothing sets the result to a number first.")
    isolate(sketch, first.sum)
    leaf = leaf_at(sketch, operation)
    widths = widths_for(sketch.program, leaf, sketch.context.target.vector_widths)
    column = len(sketch.path(found.columns)) - 1
    window = only(a for a in leaf.op.reads if stride(sketch.program, a, column) not in (0, 1))
    target = tuple(map(affine, leaf.op.target.index))
    down = [form.depths[0] for form in target[-2:] if len(form.terms) == 1]
    if not widths or window.indirect or len(down) != 2 or down[1] != column:
        raise NoSuchPlace("Its results are no rows of columns.")
    row = len(sketch.path(found.rows)) - 1
    kept = {d for form in leaf.op.target.index for d in form.depths}
    others = [d for d in range(len(leaf.scopes)) if d in kept and d not in (row, *down)]
    sums = [d for d in range(len(leaf.scopes)) if d not in kept]
    order(sketch, operation, [leaf.scopes[d].birth for d in (*others, *sums, *down, row)])

    # One number for each term and each result, then all of them before the sum.
    around = leaf_at(sketch, operation).path[:-1]
    name = fresh_name(sketch.program, "g" + window.array[:20])
    sketch.play("stage_read", window.array, sketch.place(around[: len(leaf.scopes) - 1]), name)
    sketch.play("set_location", name, "heap")
    dims = buffer_named(sketch.program, name).dims
    sketch.play("materialise_dims", name, *range(len(dims)))
    isolate(sketch, operation)
    leaf = leaf_at(sketch, operation)
    births = [scope.birth for scope in leaf.scopes]
    gathered = find(sketch, operation)
    assert gathered.columns == births[-2] and gathered.rows == births[-1]
    flatten(sketch, (first, gathered), name, widths)
