"""Copies: what no view can be. Concatenations, paddings, tiles."""

from __future__ import annotations

from collections.abc import Sequence

from dojo_core.primitives.array import Array, BuildError, axis_of, filled
from dojo_core.primitives.builder import Builder, nest
from dojo_core.primitives.views import axis_number, broadcast, places, same_factors, unsqueeze
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Op, substituted

PAD_MODES = ("constant", "edge", "reflect", "wrap")


def fresh(b: Builder, dtype: str, shape: Sequence[int], name: str = "") -> Array:
    """An array that nothing has written yet, for ``write`` into views of it."""
    axes = tuple(map(axis_of, shape))
    count = sum(map(len, axes))
    key = b.temporary(dtype, [size for axis in axes for size in axis], name)
    return Array(dtype, Access(key, tuple(map(Affine.iterator, range(count)))), axes)


def write(b: Builder, target: Array, function: str, *values: Array, accumulate: str = "") -> None:
    """A pass that writes a view of a fresh array, element by element, or accumulates into it.

    Along axes on which the target does not depend a sum goes.
    """
    if target.empty:
        return
    target, *operands = same_factors(b, [target, *(broadcast(b, value, target.shape) for value in values)])
    used = sorted(set(target.used).union(*(each.used for each in operands)))
    depths = {n: Affine.iterator(d) for d, n in enumerate(used)}
    place = substituted(target.operand, depths)
    assert isinstance(place, Access)
    op = Op(place, accumulate, function, tuple(substituted(each.operand, depths) for each in operands))
    b.add(*nest([target.factors[n] for n in used], (op,)))


def concatenate(b: Builder, arrays: Sequence[Array], axis: int, name: str = "") -> Array:
    """Arrays one after the other along an axis; each is a pass of its own."""
    if not arrays:
        raise BuildError("There is nothing to concatenate: give at least one array.")
    axis = axis_number(arrays[0], axis)
    shapes = [list(array.shape) for array in arrays]
    others = {tuple(s[:axis] + s[axis + 1 :]) for s in shapes}
    dtypes = {array.dtype for array in arrays}
    if len(others) > 1 or len({len(s) for s in shapes}) > 1:
        raise BuildError(f"Shapes {', '.join(map(str, shapes))} do not go together along axis {axis}.")
    if len(dtypes) > 1:
        raise BuildError(f"{' and '.join(sorted(dtypes))} do not go into one array: convert them.")
    present = [array for array in arrays if array.shape[axis]]
    if len(present) < 2 or any(array.empty for array in present):
        return (present or list(arrays))[0]
    shape = shapes[0]
    shape[axis] = sum(array.shape[axis] for array in present)
    whole = fresh(b, arrays[0].dtype, shape, name)
    start = 0
    for array in present:
        size = array.shape[axis]
        write(b, places(b, whole, axis, start, size), "", array)
        start += size
    return whole


def split(b: Builder, array: Array, sizes: Sequence[int], axis: int) -> list[Array]:
    """The parts along an axis, of these sizes: views."""
    axis = axis_number(array, axis)
    if sum(sizes) != array.shape[axis] or min(sizes, default=0) < 0:
        raise BuildError(f"Parts of {list(sizes)} do not make an axis of {array.shape[axis]}.")
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [places(b, array, axis, start, size) for start, size in zip(starts, sizes, strict=True)]


def stack(b: Builder, arrays: Sequence[Array], axis: int) -> Array:
    """Arrays of one shape along a new axis."""
    return concatenate(b, [unsqueeze(b, array, [axis]) for array in arrays], axis)


def tile(b: Builder, array: Array, repeats: Sequence[int]) -> Array:
    """Each axis repeated as often as it says: a view, for the repetition is a factor of its own."""
    if len(repeats) != len(array.axes) or min(repeats, default=0) < 0:
        raise BuildError(f"{list(repeats)} does not say for each of {len(array.axes)} axes how often.")
    if 0 in repeats or array.empty:
        return filled(0, array.dtype, [s * r for s, r in zip(array.shape, repeats, strict=True)])
    axes = []
    images: dict[int, Affine] = {}
    count = 0
    for k, repeat in enumerate(repeats):
        front = axis_of(repeat)
        count += len(front)
        for n in array.numbers(k):
            images[n] = Affine.iterator(count)
            count += 1
        axes.append((*front, *array.axes[k]))
    return array.with_axes(axes, images)


def pad(
    b: Builder,
    array: Array,
    pads: Sequence[tuple[int, int]],
    mode: str = "constant",
    value: int | float = 0,
    name: str = "",
) -> Array:
    """A copy with places added before and after along each axis; a negative number takes some away.

    ``mode`` is as in NumPy: ``constant`` (``value``), ``edge``, ``reflect`` (without the border), ``wrap``.
    """
    if mode not in PAD_MODES:
        raise BuildError(f"There is no padding {mode!r}: there are {', '.join(PAD_MODES)}.")
    if len(pads) != len(array.axes):
        raise BuildError(f"{len(pads)} paddings are given for {len(array.axes)} axes.")
    for axis, (before, after) in enumerate(pads):
        cut = (max(-before, 0), max(-after, 0))
        if sum(cut) > array.shape[axis]:
            raise BuildError(
                f"Padding by {before} and {after} takes more than there is of an axis of {array.shape[axis]}."
            )
        array = places(b, array, axis, cut[0], array.shape[axis] - sum(cut))
    grown = [(max(before, 0), max(after, 0)) for before, after in pads]
    if not any(map(sum, grown)):
        return array
    shape = [size + sum(ends) for size, ends in zip(array.shape, grown, strict=True)]
    if mode == "constant" and array.empty:
        return filled(value, array.dtype, shape)
    if array.empty:
        raise BuildError(f"An array without elements has nothing to pad with in mode {mode}.")
    whole = fresh(b, array.dtype, shape, name)
    inside = [before for before, _ in grown]
    if mode == "constant":
        write(b, whole, "", filled(value, array.dtype, ()))
    write(b, _region(b, whole, inside, array.shape), "", array)
    if mode != "constant":
        _mirror(b, whole, array.shape, grown, mode)
    return whole


def _region(b: Builder, array: Array, starts: Sequence[int], sizes: Sequence[int]) -> Array:
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        array = places(b, array, axis, start, size)
    return array


def _mirror(
    b: Builder, whole: Array, inner: Sequence[int], grown: Sequence[tuple[int, int]], mode: str
) -> None:
    """Fill what is around the inside from itself, axis by axis: later axes see earlier ones complete."""
    starts = [before for before, _ in grown]
    sizes = list(inner)
    for axis, (before, after) in enumerate(grown):
        size = inner[axis]
        starts[axis], sizes[axis] = 0, before + size + after
        # All of the axis, within what is complete along the others.
        line = _region(b, whole, starts, sizes)
        kind = "edge" if size == 1 else mode
        begin, end = before, before + size
        while begin > 0:
            count = _chunk(kind, size, begin)
            start, step = {
                "edge": (begin, 0),
                "wrap": (begin - count + size, 1),
                "reflect": (begin + count, -1),
            }[kind]
            source = places(b, line, axis, start, count if step else 1, step or 1)
            begin -= count
            write(b, places(b, line, axis, begin, count), "", source)
        while end < sizes[axis]:
            count = _chunk(kind, size, sizes[axis] - end)
            start, step = {"edge": (end - 1, 0), "wrap": (end - size, 1), "reflect": (end - 2, -1)}[kind]
            source = places(b, line, axis, start, count if step else 1, step or 1)
            write(b, places(b, line, axis, end, count), "", source)
            end += count


def _chunk(mode: str, size: int, left: int) -> int:
    """How many places are filled at once from what is filled."""
    return left if mode == "edge" else min(left, size if mode == "wrap" else size - 1)
