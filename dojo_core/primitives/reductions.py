"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dojo_core.primitives.array import Array, BuildError, Factors
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.conditions import Condition, guard_of
from dojo_core.primitives.elementwise import convert, elementwise, formula, identity, iterator
from dojo_core.primitives.views import axis_number, broadcast, same_factors
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import HALVES, key_of
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
    if accumulation in ("max", "min"):  # along axes on which nothing depends it is the same element again
        array, forms = _first_along_unused(array, forms, gone)
    if where is None and not array.empty and not any(array.numbers(k) for k in gone):
        result = convert(b, array, wanted)
        return result if keepdims else without(result, gone)
    return _accumulated(b, accumulation, "", [array], gone, keepdims, start, wanted, where, forms)


def _first_along_unused(array: Array, forms: list[Array], gone: Sequence[int]) -> tuple[Array, list[Array]]:
    """Without the factors of axes to reduce on which neither an array nor a condition depends."""
    used = set(array.used).union(*(form.used for form in forms))
    axes: list[Factors] = []
    images: dict[int, Affine] = {}
    for k, axis in enumerate(array.axes):
        left = [n for n in array.numbers(k) if k not in gone or n in used or array.factors[n] == 0]
        images |= {n: Affine.iterator(sum(map(len, axes)) + d) for d, n in enumerate(left)}
        axes.append(tuple(array.factors[n] for n in left) if len(left) < len(axis) else axis)
    return array.with_axes(axes, images), [form.with_axes(axes, images) for form in forms]


def _accumulated(
    b: Builder,
    accumulation: str,
    function: str,
    operands: Sequence[Array],
    gone: Sequence[int],
    keepdims: bool,
    start: Number,
    wanted: str,
    where: Condition | None = None,
    forms: Sequence[Array] = (),
) -> Array:
    """A function of operands of the same axes accumulated over some: its first value, the terms, one nest."""
    axes, factors = operands[0].axes, operands[0].factors
    left = [() if k in gone else axis for k, axis in enumerate(axes)]
    kept = [n for k in range(len(axes)) if k not in gone for n in operands[0].numbers(k)]
    over = [n for n in range(len(factors)) if n not in kept]
    if 0 in factors:
        result = Array(wanted, start, tuple(left))
        return result if keepdims else without(result, gone)
    wide = "f32" if wanted in HALVES and accumulation in ("+", "*") else wanted
    relevant = {n for each in (*operands, *forms) for n in each.used}
    used = [n for n in kept if n in relevant]
    depths = {n: Affine.iterator(d) for d, n in enumerate((*used, *over))}
    sizes = [factors[n] for n in used]
    target = Access(b.temporary(wide, sizes), tuple(depths[n] for n in used))
    first = Op(target, "", "", (start,))
    guard = guard_of(where, forms, depths)
    term = Op(
        target, accumulation, function, tuple(substituted(o.operand, depths) for o in operands), guard or ()
    )
    body = [first, *(nest([factors[n] for n in over], (term,)) if guard is not None else ())]
    if wide != wanted:
        narrow = Access(b.temporary(wanted, sizes), target.index)
        body.append(Op(narrow, "", wanted, (target,)))
        target = narrow
    b.add(*nest(sizes, tuple(body)))
    index = tuple(Affine.iterator(kept.index(n)) for n in used)
    result = Array(wanted, Access(target.array, index), tuple(left))
    return result if keepdims else without(result, gone)


def conditional(b: Builder, array: Array, where: Condition | None) -> tuple[Array, list[Array]]:
    """An array with the forms of a condition over its axes, all of the same factors."""
    if where is None:
        return array, []
    array, *forms = same_factors(b, [array, *(broadcast(b, form, array.shape) for form in where.forms)])
    return array, forms


def without(array: Array, gone: Sequence[int]) -> Array:
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
    size = array.shape[axis]
    if not size:
        raise BuildError(f"Axis {axis} has no elements: there is no largest and no least.")
    places = iterator(b, array.shape, axis, dtype)
    if last:
        places = elementwise(b, "-", size - 1, places)
    value, place = arg_reduce_over(b, accumulation, array, [axis], places, keepdims)
    return value, elementwise(b, "-", size - 1, place) if last else place


def arg_reduce_over(
    b: Builder, accumulation: str, array: Array, axes: Sequence[int], places: Array, keepdims: bool = False
) -> tuple[Array, Array]:
    """The largest or least over axes, and the least of the ``places`` of those equal to it.

    An element and its place are one key, so that it is one pass.
    """
    array, places = same_factors(b, [array, broadcast(b, places, array.shape)])
    gone = axes_of(array, axes)
    dtype, compared = key_of(array.dtype)
    start = Number(identity(accumulation, dtype))
    key = _accumulated(b, accumulation, f"{accumulation}key", [array, places], gone, keepdims, start, dtype)
    value = elementwise(b, "keyvalue", key, dtype=compared)
    place = elementwise(b, "keyindex", key, dtype="i64")
    return convert(b, value, array.dtype), convert(b, place, places.dtype)
