"""Elements chosen by indices: known ones, which are views, and those that are data."""

from __future__ import annotations

from typing import Any

import numpy as np

from dojo_core.primitives.array import Array, BuildError, axis_of
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.constants import lookup
from dojo_core.primitives.elementwise import formula, iterator
from dojo_core.primitives.reductions import reduce
from dojo_core.primitives.views import axis_number, broadcast, plain, transpose, unsqueeze
from dojo_core.program.affine import Affine
from dojo_core.program.tables import Indirect, composed
from dojo_core.program.tree import Access, Number


def gather(b: Builder, array: Array, indices: Array | np.ndarray[Any, Any] | int, axis: int) -> Array:
    """The elements at the indices along an axis, which the indices' axes replace, as NumPy's ``take``.

    Indices count from the end where they are negative. Known ones (NumPy's, or numbers and iterators) are a
    view; an array's are compared with every place. Raises BuildError for a known index beyond the axis.
    """
    axis = axis_number(array, axis)
    if not isinstance(indices, Array):
        return take(b, array, np.asarray(indices), axis)
    if indices.empty or array.empty:
        axes = (*array.axes[:axis], *indices.axes, *array.axes[axis + 1 :])
        return Array(array.dtype, Number(0), axes)
    return _compared(b, array, indices, axis)


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


def _compared(b: Builder, array: Array, indices: Array, axis: int) -> Array:
    """By comparison with every place: what there is while the text form has no indices that are data."""
    size, rank, inner = array.shape[axis], len(array.axes), len(indices.axes)
    # Axes: those before, those of the indices, those behind, the places.
    order = [k for k in range(rank) if k != axis] + [axis]
    spread = transpose(b, array, order)
    spread = unsqueeze(b, spread, range(axis, axis + inner))
    behind = rank - axis - 1
    at = unsqueeze(b, indices, range(-behind - 1, 0)) if behind + 1 else indices
    shape = (*array.shape[:axis], *indices.shape, *array.shape[axis + 1 :], size)
    places = iterator(b, shape, len(shape) - 1, indices.dtype)
    counted = formula(b, "select(i < 0, i + n, i)", i=at, n=size)
    chosen = formula(b, "select(i == k, x, 0)", dtype=array.dtype, i=counted, k=places, x=spread)
    return reduce(
        b, "max" if array.dtype == "bool" else "+", broadcast(b, chosen, shape), -1, dtype=array.dtype
    )
