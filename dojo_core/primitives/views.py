"""Views: transposes, reshapes, slices and broadcasts. None costs a pass where it can be an index."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dojo_core.primitives.array import (
    Array,
    BuildError,
    Factors,
    axis_of,
    between,
    borders,
    coalesced,
    regrouped,
    split,
)
from dojo_core.primitives.builder import Builder
from dojo_core.program.affine import Affine


def axis_number(array: Array, axis: int) -> int:
    """An axis counted from 0, from one that may be counted from the end. Raises BuildError beyond."""
    rank = len(array.axes)
    if not -rank <= axis < rank:
        raise BuildError(
            f"There is no axis {axis} in an array of {rank}: take one from {-rank} to {rank - 1}."
        )
    return axis % rank


def transpose(b: Builder, array: Array, axes: Sequence[int] | None = None) -> Array:
    """The axes in another order; reversed where none is given."""
    order = [axis_number(array, a) for a in axes] if axes is not None else list(range(len(array.axes)))[::-1]
    if sorted(order) != list(range(len(array.axes))):
        raise BuildError(f"{list(axes or ())} is no order of the {len(array.axes)} axes: name each once.")
    images: dict[int, Affine] = {}
    for axis in order:
        for number in array.numbers(axis):
            images[number] = Affine.iterator(len(images))
    return array.with_axes([array.axes[a] for a in order], images)


def squeeze(b: Builder, array: Array, axes: Sequence[int] | None = None) -> Array:
    """Without these axes of size 1, or without all."""
    if axes is None:
        gone = {k for k, size in enumerate(array.shape) if size == 1}
    else:
        gone = {axis_number(array, a) for a in axes}
    for axis in gone:
        if array.shape[axis] != 1:
            raise BuildError(f"Axis {axis} has the size {array.shape[axis]}: only one of size 1 can go.")
    return Array(array.dtype, array.operand, tuple(a for k, a in enumerate(array.axes) if k not in gone))


def unsqueeze(b: Builder, array: Array, axes: Sequence[int]) -> Array:
    """With axes of size 1 at these places of the result."""
    rank = len(array.axes) + len(axes)
    places = {a % rank for a in axes if -rank <= a < rank}
    if len(places) != len(axes):
        raise BuildError(f"{list(axes)} are no {len(axes)} places among {rank} axes.")
    old = iter(array.axes)
    return Array(array.dtype, array.operand, tuple(() if k in places else next(old) for k in range(rank)))


def broadcast(b: Builder, array: Array, shape: Sequence[int]) -> Array:
    """As NumPy broadcasts: axes of size 1 repeated, and axes added in front."""
    given = array.shape
    missing = len(shape) - len(given)
    fits = missing >= 0 and all(
        old in (1, new) for old, new in zip(given, shape[max(missing, 0) :], strict=True)
    )
    if not fits:
        raise BuildError(f"An array of the shape {list(given)} is not broadcast to {list(shape)}.")
    axes = [axis_of(size) for size in shape[:missing]]
    images: dict[int, Affine] = {}
    number = sum(map(len, axes))
    for k, size in enumerate(shape[missing:]):
        if given[k] == size:
            for old in array.numbers(k):
                images[old] = Affine.iterator(number + old - array.numbers(k).start)
        axes.append(array.axes[k] if given[k] == size else axis_of(size))
        number += len(axes[-1])
    return array.with_axes(axes, images)


def joint_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that all are broadcast to. Raises BuildError where there is none."""
    rank = max(map(len, shapes), default=0)
    result: list[int] = []
    for k in range(rank):
        sizes = {shape[k - rank + len(shape)] for shape in shapes if k - rank + len(shape) >= 0} - {1}
        if len(sizes) > 1:
            raise BuildError(f"Shapes {', '.join(str(list(s)) for s in shapes)} are not broadcast together.")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def matched(b: Builder, arrays: Sequence[Array]) -> list[Array]:
    """Broadcast to one shape, and each axis of the same factors in all."""
    shape = joint_shape([array.shape for array in arrays])
    return same_factors(b, [broadcast(b, array, shape) for array in arrays])


def same_factors(b: Builder, arrays: Sequence[Array]) -> list[Array]:
    """Arrays of one shape with the same factors; copied where no factors are common to all."""
    if any(array.empty for array in arrays):
        return list(arrays)
    ranks = range(len(arrays[0].axes) if arrays else 0)
    while True:
        axes: list[Factors] = []
        for k in ranks:
            using = [array for array in arrays if set(array.numbers(k)) & set(array.used)]
            ends = set().union(*(borders(a.axes[k]) for a in using)) or borders(axis_of(arrays[0].shape[k]))
            factors = between(ends)
            if factors is None:
                break
            axes.append(factors)
        else:
            return [split(_freed(array), axes) for array in arrays]
        arrays = [b.copy(a) if len(a.axes[k]) > 1 and a in using else a for a in arrays]


def _freed(array: Array) -> Array:
    """With a single factor along each axis on which no element depends."""
    used = set(array.used)
    axes: list[Factors] = []
    images: dict[int, Affine] = {}
    for k, axis in enumerate(array.axes):
        numbers = array.numbers(k)
        first = sum(map(len, axes))
        if set(numbers) & used:
            images |= {n: Affine.iterator(first + n - numbers.start) for n in numbers}
            axes.append(axis)
        else:
            axes.append(axis_of(math.prod(axis)))
    return array.with_axes(axes, images)


def plain(b: Builder, array: Array, axis: int) -> Array:
    """With one factor along an axis; copied where its place is no affine form."""
    if len(array.axes[axis]) <= 1:
        return array
    array = coalesced(array) if set(array.numbers(axis)) & set(array.used) else _freed(array)
    return array if len(array.axes[axis]) <= 1 else b.copy(array)


def reshape(b: Builder, array: Array, shape: Sequence[int]) -> Array:
    """Another shape of the same elements in row-major order; a -1 stands for what is left.

    A view wherever old and new sizes have common factors: (3, 4) to (12,) or (2, 6) and back; (3, 4) to
    (4, 3) is a copy.
    """
    sizes = list(shape)
    count = math.prod(array.shape)
    if sizes.count(-1) == 1:
        rest = -math.prod(sizes)
        if rest == 0 or count % rest:
            raise BuildError(f"{count} elements have no shape {list(shape)}.")
        sizes[sizes.index(-1)] = count // rest
    if min(sizes, default=0) < 0 or math.prod(sizes) != count:
        raise BuildError(f"{count} elements have no shape {list(shape)}.")
    axes = [axis_of(size) for size in sizes]
    if array.empty:
        return Array(array.dtype, array.operand, tuple(axes))
    flat = coalesced(regrouped(array, [len(array.factors)]))
    ends = borders(flat.axes[0])
    new = borders(tuple(size for axis in axes for size in axis))
    factors = between(ends | new)
    if factors is None:
        flat = b.copy(flat)
        factors = between(borders(flat.axes[0]) | new)
        assert factors is not None
    fine = split(flat, [factors])
    counts: list[int] = []
    taken = iter(factors)
    for size in sizes:
        number, reach = 0, 1
        while reach < size:
            reach *= next(taken)
            number += 1
        counts.append(number)
    return coalesced(regrouped(fine, counts))


def slice_(
    b: Builder,
    array: Array,
    axis: int,
    start: int | None = None,
    stop: int | None = None,
    step: int = 1,
) -> Array:
    """Every ``step``-th place along an axis, as Python slices do: a negative step goes backwards."""
    axis = axis_number(array, axis)
    if step == 0:
        raise BuildError("A slice has a step other than 0.")
    begin, end, step = slice(start, stop, step).indices(array.shape[axis])
    return places(b, array, axis, begin, len(range(begin, end, step)), step)


def places(b: Builder, array: Array, axis: int, start: int, count: int, step: int = 1) -> Array:
    """``count`` places along an axis from ``start`` on, ``step`` apart (which may be negative)."""
    if start == 0 and step == 1 and count == array.shape[axis]:
        return array
    array = plain(b, array, axis)
    return along(array, axis, (axis_of(count),), lambda k: k * step + start)


def flip(b: Builder, array: Array, axis: int) -> Array:
    """Backwards along an axis."""
    axis = axis_number(array, axis)
    size = array.shape[axis]
    return places(b, array, axis, size - 1, size, -1) if size > 1 else array


def window(b: Builder, array: Array, axis: int, width: int, stride: int = 1, dilation: int = 1) -> Array:
    """A view with one axis replaced by its places ``p``, and the taps ``t`` as a last axis:
    ``axis = p*stride + t*dilation``.

    Places where the window would reach beyond the axis do not exist.
    """
    axis = axis_number(array, axis)
    reach = (width - 1) * dilation + 1
    size = array.shape[axis]
    if width < 1 or stride < 1 or dilation < 1 or reach > size:
        raise BuildError(
            f"A window of {width} with stride {stride} and dilation {dilation} does not fit an axis "
            f"of {size}."
        )
    array = plain(b, array, axis)
    count = (size - reach) // stride + 1
    rank = len(array.axes)
    rows = along(array, axis, (axis_of(count), axis_of(width)), lambda p, t: p * stride + t * dilation)
    return transpose(b, rows, [k for k in range(rank + 1) if k != axis + 1] + [axis + 1])


def along(array: Array, axis: int, new: Sequence[Factors], form: Callable[..., Affine]) -> Array:
    """An axis of at most one factor replaced by others; ``form`` gives the old place from the new ones."""
    axes = (*array.axes[:axis], *new, *array.axes[axis + 1 :])
    first = array.numbers(axis).start
    shift = sum(map(len, new)) - len(array.axes[axis])
    number, iterators = first, []
    for factors in new:
        iterators.append(Affine.iterator(number) if factors else Affine())
        number += len(factors)
    images = {n: Affine.iterator(n + shift) for n in range(first + len(array.axes[axis]), len(array.factors))}
    if array.axes[axis]:
        images[first] = form(*iterators)
    return array.with_axes(axes, images)
