"""Writes at places that are data."""

from __future__ import annotations

from collections.abc import Sequence

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder, joined, nest
from dojo_core.primitives.copies import fresh, write
from dojo_core.primitives.gathering import index_of, within
from dojo_core.primitives.views import broadcast, same_factors
from dojo_core.program.affine import Affine
from dojo_core.program.tables import Index
from dojo_core.program.tree import Access, Op


def scatter(
    b: Builder, base: Array, updates: Array, places: Sequence[Array | int], accumulate: str = ""
) -> Array:
    """A copy of ``base`` into which each element of ``updates`` is written, or accumulated (``+ * max min``).

    ``places`` say where, for each axis of ``base``: an integer array that is broadcast to the shape of
    ``updates``, or the number of an axis of ``updates``, whose place it is then. Of two updates of one
    element the later comes last, row by row. Indices count from the end where they are negative; those not
    known to lie in the axis are brought into it, as ``gather`` does.

    Raises BuildError where an axis has no place, or an update lies beyond an axis.
    """
    if len(places) != len(base.axes):
        raise BuildError(f"{len(places)} places are given for {len(base.axes)} axes.")
    if any(isinstance(p, int) and updates.shape[p] > n for n, p in zip(base.shape, places, strict=True)):
        raise BuildError(f"Updates of the shape {list(updates.shape)} go beyond {list(base.shape)}.")
    result = fresh(b, base.dtype, base.shape)
    write(b, result, "", base)
    if base.empty or updates.empty:
        return result
    # An axis of one element has no index.
    by_axis = [(size, place) for size, place in zip(base.shape, places, strict=True) if size > 1]
    indices = [within(b, place, size) for size, place in by_axis if isinstance(place, Array)]
    updates, *indices = same_factors(b, [updates, *(broadcast(b, i, updates.shape) for i in indices)])
    looked_up = iter(indices)
    index: list[Index] = []
    for size, place in by_axis:
        if isinstance(place, int):
            index.append(joined(updates.axes[place], [*map(Affine.iterator, updates.numbers(place))]))
        else:
            index.append(index_of(next(looked_up), size))
    assert isinstance(result.operand, Access)
    op = Op(Access(result.operand.array, tuple(index)), accumulate, "", (updates.operand,))
    b.add(*nest(updates.factors, (op,)))
    return result
