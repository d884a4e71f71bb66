"""The largest or least few along an axis, in their order, and where they stand."""

from __future__ import annotations

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.elementwise import convert, elementwise, identity
from dojo_core.primitives.reductions import arg_reduce
from dojo_core.primitives.views import axis_number, plain
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import key_of
from dojo_core.program.tables import IndexArray, Indirect, Lookup
from dojo_core.program.tree import Access, Number, Op, Scope, substituted


def top(b: Builder, accumulation: str, array: Array, axis: int, count: int) -> tuple[Array, Array]:
    """The ``count`` largest (``max``) or least (``min``) along an axis, and their places (i64): the most
    extreme comes first, and of equals the first one.

    Each is one pass over the keys of what is left. Raises BuildError where there are not so many.
    """
    axis = axis_number(array, axis)
    size = array.shape[axis]
    if not 0 < count <= size:
        raise BuildError(f"There is no first {count} of {size}.")
    if count == 1:
        return arg_reduce(b, accumulation, array, axis, keepdims=True)
    array = plain(b, array, axis)
    (along,) = array.numbers(axis)
    rows = [n for n in range(len(array.factors)) if n != along]
    sizes = [array.factors[n] for n in rows]
    row = tuple(map(Affine.iterator, range(len(rows))))
    outer, inner = Affine.iterator(len(rows)), Affine.iterator(len(rows) + 1)
    dtype, compared = key_of(array.dtype)
    none = Number(identity(accumulation, dtype))
    names = [
        b.temporary(kind, [*sizes, n])
        for kind, n in ((dtype, size), (dtype, count), ("i64", count), ("i64", count))
    ]
    left, found, at, place = (Access(name, (*row, outer)) for name in names)
    element = substituted(array.operand, {**dict(zip(rows, row, strict=True)), along: outer})
    # Keys differ, and their places lie within the axis; that the text does not know.
    index = Indirect.make([(Lookup(IndexArray(place.array, 0, size - 1), (*row, outer)), 1)], Affine())
    step = Op(found, accumulation, "", (Access(left.array, (*row, inner)),))
    taken = (
        Op(found, "", "", (none,)),
        *nest([size], (step,)),
        Op(at, "", "keyindex", (found,)),
        Op(place, "", "min", (at, Number(size - 1))),
        Op(Access(left.array, (*row, index)), "", "", (none,)),
    )
    made = nest([size], (Op(left, "", f"{accumulation}key", (element, outer)),))
    b.add(*nest(sizes, (*made, Scope(count, taken))))

    axes = tuple((count,) if k == axis else axis_ for k, axis_ in enumerate(array.axes))
    cells = tuple(map(Affine.iterator, (*rows, along)))
    keys, places = (Array(d, Access(a.array, cells), axes) for d, a in ((dtype, found), ("i64", place)))
    return convert(b, elementwise(b, "keyvalue", keys, dtype=compared), array.dtype), places
