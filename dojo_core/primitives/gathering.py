"""Elements chosen by indices: known ones, which are views, and those that are data."""

from __future__ import annotations

from typing import Any

import numpy as np

from dojo_core.primitives.array import Array, BuildError, Factors, axis_of
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.constants import lookup
from dojo_core.primitives.elementwise import formula
from dojo_core.primitives.views import axis_number, plain
from dojo_core.program.affine import Affine
from dojo_core.program.tables import Index, IndexArray, Indirect, Lookup, affine, composed
from dojo_core.program.tree import Access, Number


def gather(b: Builder, array: Array, indices: Array | np.ndarray[Any, Any] | int, axis: int) -> Array:
    """The elements at the indices along an axis, which the indices' axes replace, as NumPy's ``take``.

    Indices count from the end where they are negative. Known ones (NumPy's, or numbers and iterators) are a
    view, and so are an array's, which the text reads through. Raises BuildError for a known index beyond.
    """
    axis = axis_number(array, axis)
    if not isinstance(indices, Array):
        return take(b, array, np.asarray(indices), axis)
    if indices.empty or array.empty:
        axes = (*array.axes[:axis], *indices.axes, *array.axes[axis + 1 :])
        return Array(array.dtype, Number(0), axes)
    return _through(b, array, indices, axis)


def take(b: Builder, array: Array, indices: np.ndarray[Any, Any], axis: int) -> Array:
    """``gather`` by known indices."""
    axis = axis_number(array, axis)
    size = array.shape[axis]
    new = tuple(map(axis_of, indices.shape))
    if not indices.size or array.empty:
        return Array(array.dtype, Number(0), (*array.axes[:axis], *new, *array.axes[axis + 1 :]))
    if indices.min() < -size or indices.max() >= size:
        bad = int(indices.max() if indices.max() >= size else indices.min())
        raise BuildError(
            f"The index {bad} is beyond an axis of {size}: indices run from {-size} to {size - 1}."
        )
    array = plain(b, array, axis)
    axes = (*array.axes[:axis], *new, *array.axes[axis + 1 :])
    places = np.where(indices < 0, indices + size, indices)
    core = places.reshape([n for n in places.shape if n != 1])
    first = array.numbers(axis).start
    count = sum(map(len, new))
    index = lookup(b, core, [Affine.iterator(first + k) for k in range(count)])
    if index is None:
        raise BuildError(
            f"{indices.size} known indices are too many for a table: give them as an input of the kernel."
        )
    shift = count - len(array.axes[axis])
    images: dict[int, Any] = {n: Affine.iterator(n) for n in range(first)}
    images |= {n: Affine.iterator(n + shift) for n in range(first, len(array.factors))}
    if array.axes[axis]:
        images[first] = index
    operand = array.operand
    if isinstance(operand, Access):
        forms = [f for f in operand.index if f.uses(first)] if array.axes[axis] else []
        if isinstance(index, Indirect) and any(isinstance(f, Indirect) and f.looks_up(first) for f in forms):
            return take(b, b.copy(array), indices, axis)
        chosen = tuple(
            composed(f, images) if isinstance(f, Affine) else _recomposed(f, images) for f in operand.index
        )
        return Array(array.dtype, Access(operand.array, chosen), axes)
    if isinstance(operand, Affine) and operand.uses(first) and isinstance(index, Indirect):
        return take(b, b.copy(array), indices, axis)
    affine = {n: form for n, form in images.items() if isinstance(form, Affine)}
    return array.with_axes(axes, affine)


def _recomposed(form: Indirect, images: dict[int, Any]) -> Any:
    """An index through tables with its iterators replaced, those of the lookups by affine forms."""
    affine = {n: image for n, image in images.items() if isinstance(image, Affine)}
    lookups = [(k.substitute(affine), c) for k, c in form.lookups]
    rest = composed(form.rest, images)
    more = Indirect.make(lookups, Affine())
    return more + rest if isinstance(more, Indirect) else rest + more


def _through(b: Builder, array: Array, indices: Array, axis: int) -> Array:
    """A view through an array of indices, which are counted from the front and kept in range first.

    One beyond the axis is the nearest that there is: the text form reads nothing outside of an array.
    """
    size = array.shape[axis]
    array = plain(b, array, axis)
    if not isinstance(array.operand, Access) or any(isinstance(f, Indirect) for f in array.operand.index):
        array = b.copy(array)
        array = plain(b, array, axis)
    text = (
        "max(min(i, last), 0)"
        if indices.dtype.startswith("u")
        else "max(min(select(i < 0, i + n, i), last), 0)"
    )
    named: dict[str, Any] = (
        {"last": size - 1} if indices.dtype.startswith("u") else {"last": size - 1, "n": size}
    )
    at = formula(b, text, i=indices, **named)
    at = at if isinstance(at.operand, Access) else b.copy(at)
    operand, inner = array.operand, at.axes
    axes = (*array.axes[:axis], *inner, *array.axes[axis + 1 :])
    if not array.axes[axis]:  # one place, whatever the index
        return _spread(array, axis, inner)
    assert isinstance(at.operand, Access) and isinstance(operand, Access)
    first, count = array.numbers(axis).start, sum(map(len, inner))
    moved = {n: Affine.iterator(first + n) for n in range(count)}
    places = tuple(form.substitute(moved) for form in at.operand.index)
    source = IndexArray(at.operand.array, 0, size - 1)
    b.index_arrays.add(source.name)
    images: dict[int, Index] = {n: Affine.iterator(n) for n in range(first)}
    images |= {n: Affine.iterator(n + count - 1) for n in range(first + 1, len(array.factors))}
    images[first] = Indirect.make([(Lookup(source, tuple(affine(f) for f in places)), 1)], Affine())
    index = tuple(composed(affine(form), images) for form in operand.index)
    return Array(array.dtype, Access(operand.array, index), axes)


def _spread(array: Array, axis: int, inner: tuple[Factors, ...]) -> Array:
    """An axis of one place repeated along others."""
    first, count = array.numbers(axis).start, sum(map(len, inner))
    images = {n: Affine.iterator(n if n < first else n + count) for n in range(len(array.factors))}
    return array.with_axes((*array.axes[:axis], *inner, *array.axes[axis + 1 :]), images)
