"""Scans: running sums, products, maxima along an axis."""

from __future__ import annotations

from dojo_core.primitives.array import Array, filled
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.copies import fresh, write
from dojo_core.primitives.elementwise import convert, identity
from dojo_core.primitives.views import axis_number, flip, places
from dojo_core.program.dtypes import HALVES


def scan(
    b: Builder,
    accumulation: str,
    array: Array,
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
    name: str = "",
) -> Array:
    """The accumulation (``+ * max min``) of all elements along an axis up to each, or up to the one before
    it.

    ``exclusive`` leaves each element itself out, so that the first is the identity; ``reverse`` begins at the
    end. Those of f16 and bf16 are computed in f32 and rounded once.
    """
    axis = axis_number(array, axis)
    start = identity(accumulation, array.dtype)
    if array.empty:
        return array
    given = flip(b, array, axis) if reverse else array
    size = array.shape[axis]
    wide = "f32" if array.dtype in HALVES else array.dtype
    running = fresh(b, wide, array.shape, name)
    first = filled(start, wide, ()) if exclusive else places(b, given, axis, 0, 1)
    write(b, places(b, running, axis, 0, 1), "", first)
    if size > 1:
        write(
            b,
            places(b, running, axis, 1, size - 1),
            accumulation,
            places(b, running, axis, 0, size - 1),
            places(b, given, axis, 0 if exclusive else 1, size - 1),
        )
    result = convert(b, running, array.dtype)
    return flip(b, result, axis) if reverse else result
