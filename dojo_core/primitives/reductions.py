"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.conditions import Condition, guard_of
from dojo_core.primitives.elementwise import convert, formula, identity, iterator
from dojo_core.primitives.views import axis_number, broadcast, same_factors
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import HALVES
from dojo_core.program.tree import Access, Number, Op, substituted


def axes_of(array: Array, axes: Sequence[int] | int | None) -> tuple[int, ...]:
    """Axes counted from 0; all where none are named."""
    if axes is None:
        return tuple(range(len(array.axes)))
    named = (axes,) if isinstance(axes, int) else tuple(axes)
    numbers = tuple(axis_number(array, axis) for axis in named)
    if len(set(numbers)) < len(numbers):
        raise BuildError(f"The axes {list(named)} name one twice.")
    return numbers


def reduce(
    b: Builder,
    accumulation: str,
    array: Array,
    axes: Sequence[int] | int | None = None,
    keepdims: bool = False,
    dtype: str | None = None,
    where: Condition | None = None,
) -> Array:
    """The accumulation (``+ * max min``) over axes, all where none are named, of those elements ``where`` a
    condition on the places holds.

    The result has the array's dtype, or a wider one that is asked for. Sums and products that are to be f16
    or bf16 are accumulated in f32 and rounded once. Over an axis without elements the result is the
    accumulation's identity.
    """
    wanted = dtype or array.dtype
    start = Number(identity(accumulation, wanted))
    gone = axes_of(array, axes)
    array, forms = conditional(b, array, where)
    left = [() if k in gone else axis for k, axis in enumerate(array.axes)]
    kept = [n for k in range(len(left)) if k not in gone for n in array.numbers(k)]
    over = [n for k in gone for n in array.numbers(k)]
    over.sort()
    if any(array.factors[n] == 0 for n in (*kept, *over)):
        result = Array(wanted, start, tuple(left))
        return result if keepdims else _without(result, gone)
    if accumulation in ("max", "min"):
        # Along others it is the same element again.
        over = [n for n in over if n in array.used or any(n in form.used for form in forms)]
    if not over and where is None:
        images = {n: Affine.iterator(d) for d, n in enumerate(kept)}
        result = convert(b, array.with_axes(left, images), wanted)
        return result if keepdims else _without(result, gone)
    wide = "f32" if wanted in HALVES and accumulation in ("+", "*") else wanted
    used = [n for n in kept if n in array.used or any(n in form.used for form in forms)]
    depths = {n: Affine.iterator(d) for d, n in enumerate((*used, *over))}
    sizes = [array.factors[n] for n in used]
    target = Access(b.temporary(wide, sizes), tuple(depths[n] for n in used))
    first = Op(target, "", "", (start,))
    guard = guard_of(where, forms, depths)
    term = Op(target, accumulation, "", (substituted(array.operand, depths),), guard or ())
    body = [first, *(nest([array.factors[n] for n in over], (term,)) if guard is not None else ())]
    if wide != wanted:
        narrow = Access(b.temporary(wanted, sizes), target.index)
        body.append(Op(narrow, "", wanted, (target,)))
        target = narrow
    b.add(*nest(sizes, tuple(body)))
    index = tuple(Affine.iterator(kept.index(n)) for n in used)
    result = Array(wanted, Access(target.array, index), tuple(left))
    return result if keepdims else _without(result, gone)


def conditional(b: Builder, array: Array, where: Condition | None) -> tuple[Array, list[Array]]:
    """An array with the forms of a condition over its axes, all of the same factors."""
    if where is None:
        return array, []
    array, *forms = same_factors(b, [array, *(broadcast(b, form, array.shape) for form in where.forms)])
    return array, forms


def _without(array: Array, gone: Sequence[int]) -> Array:
    return Array(array.dtype, array.operand, tuple(a for k, a in enumerate(array.axes) if k not in gone))


def mean(b: Builder, array: Array, axes: Sequence[int] | int | None = None, keepdims: bool = False) -> Array:
    """The mean over axes; f16 and bf16 are summed and divided in f32."""
    numbers = axes_of(array, axes)
    count = math.prod(array.shape[k] for k in numbers)
    wide = "f32" if array.dtype in HALVES else array.dtype
    total = reduce(b, "+", array, numbers, keepdims, dtype=wide)
    return formula(b, "total / count", dtype=array.dtype, total=total, count=count)


def arg_reduce(
    b: Builder,
    accumulation: str,
    array: Array,
    axis: int,
    keepdims: bool = False,
    last: bool = False,
    dtype: str = "i64",
) -> tuple[Array, Array]:
    """The largest (``max``) or least (``min``) along an axis, and the place of the first of equals, or of
    the ``last``.
    """
    axis = axis_number(array, axis)
    if not array.shape[axis]:
        raise BuildError(f"Axis {axis} has no elements: there is no largest and no least.")
    places = iterator(b, array.shape, axis, dtype)
    return arg_reduce_over(b, accumulation, array, [axis], places, keepdims, last)


def arg_reduce_over(
    b: Builder,
    accumulation: str,
    array: Array,
    axes: Sequence[int],
    places: Array,
    keepdims: bool = False,
    last: bool = False,
) -> tuple[Array, Array]:
    """The largest or least over axes, and the least (``last``: greatest) of the ``places`` of those equal to
    it.

    The text form has no such operation: the elements are compared with the result.
    """
    value = reduce(b, accumulation, array, axes, keepdims=True)
    at = formula(
        b,
        "select(x == m, i, none)",
        dtype=places.dtype,
        x=array,
        m=value,
        i=places,
        none=-math.inf if last else math.inf,
    )
    place = reduce(b, "max" if last else "min", broadcast(b, at, array.shape), axes, keepdims=True)
    if keepdims:
        return value, place
    return _without(value, axes), _without(place, axes)
