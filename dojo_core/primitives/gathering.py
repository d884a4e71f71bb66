"""Elements chosen by indices, known ones and those that are data: both are views."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dojo_core.primitives.array import Array, BuildError, Factors, axis_of
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.constants import lookup
from dojo_core.primitives.contractions import contract_named
from dojo_core.primitives.elementwise import formula
from dojo_core.primitives.views import axis_number, plain
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import INTEGERS, extremes, holds
from dojo_core.program.tables import Index, IndexArray, Indirect, Lookup, affine, composed, plus
from dojo_core.program.tree import Access, Number, Operand


def gather(b: Builder, array: Array, indices: Array | np.ndarray[Any, Any] | int, axis: int) -> Array:
    """The elements at the indices along an axis, which the indices' axes replace, as NumPy's ``take``.

    A view, whether the indices are known or an integer array: the text reads through it. Indices count from
    the end where they are negative. Those that are data and not known to lie in the axis, by the domain of an
    input say, are brought into it by a pass over them; known ones beyond it are a BuildError.
    """
    axis = axis_number(array, axis)
    if not isinstance(indices, Array):
        return take(b, array, np.asarray(indices), axis)
    if indices.empty or array.empty:
        axes = (*array.axes[:axis], *indices.axes, *array.axes[axis + 1 :])
        return Array(array.dtype, Number(0), axes)
    indices = within(b, indices, array.shape[axis])
    return _placed(b, array, axis, indices.axes, index_of(indices, array.shape[axis]))


def within(b: Builder, indices: Array, size: int) -> Array:
    """Indices as places of an axis, copied where they are looked up themselves; else unchanged where they are
    known to lie in it. Raises BuildError for what is no integer."""
    if indices.dtype not in INTEGERS:
        raise BuildError(f"Indices are integers, not {indices.dtype}: convert them.")
    low, high = _range(b, indices)
    if low >= 0 and high < size:
        looked_up = isinstance(indices.operand, Access) and indices.operand.indirect
        return b.copy(indices) if looked_up else indices
    if low >= 0:
        return formula(b, "min(i, n - 1)", dtype=indices.dtype, i=indices, n=size)
    dtype = "i32" if holds("i32", indices.dtype) else "i64"
    return formula(b, "min(max(select(i < 0, i + n, i), 0), n - 1)", dtype=dtype, i=indices, n=size)


def index_of(places: Array, size: int) -> Index:
    """What ``within`` made, as an index of an axis over the iterators of its factors."""
    operand = places.operand
    if isinstance(operand, Access):
        source = IndexArray(operand.array, 0, size - 1)
        return Indirect.make([(Lookup(source, tuple(map(affine, operand.index))), 1)], Affine())
    return operand if isinstance(operand, Affine) else Affine((), int(operand.value))


def _range(b: Builder, indices: Array) -> tuple[int, int]:
    """Between which values indices surely lie."""
    operand = indices.operand
    if isinstance(operand, Number):
        return int(operand.value), int(operand.value)
    if isinstance(operand, Affine):
        return operand.bounds(indices.factors)
    domain = b.inputs[operand.array].domain if operand.array in b.inputs else None
    return (math.ceil(domain[0]), math.floor(domain[1])) if domain else extremes(indices.dtype)


def gather_along(b: Builder, array: Array, indices: Array, axis: int) -> Array:
    """The elements at the indices along an axis, each at its own place of the other axes, as NumPy's
    ``take_along_axis``: a view, as ``gather`` gives it. Other axes of size 1 are broadcast.
    """
    axis = axis_number(array, axis)
    rank = len(array.axes)
    if len(indices.axes) != rank:
        raise BuildError(
            f"Indices of the shape {list(indices.shape)} do not go along an axis of {list(array.shape)}."
        )
    names = [f"a{k}" for k in range(rank)]
    placed = [f"i{k}" if k == axis else name for k, name in enumerate(names)]
    gathered = gather(b, array, indices, axis)
    return contract_named(b, [(*names[:axis], *placed, *names[axis + 1 :])], tuple(placed), [gathered])


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
    places = np.where(indices < 0, indices + size, indices)
    core = places.reshape([n for n in places.shape if n != 1])
    index = lookup(b, core, [Affine.iterator(k) for k in range(sum(map(len, new)))])
    if index is None:
        raise BuildError(
            f"{indices.size} known indices are too many for a table: give them as an input of the kernel."
        )
    return _placed(b, array, axis, new, index)


def _placed(b: Builder, array: Array, axis: int, new: Sequence[Factors], index: Index) -> Array:
    """An axis replaced by others; ``index`` is the place along it, over their iterators alone."""
    array = plain(b, array, axis)
    if isinstance(index, Indirect) and not _is_affine(array.operand, array.numbers(axis)):
        array = b.copy(array)  # no index goes through another
    axes = (*array.axes[:axis], *new, *array.axes[axis + 1 :])
    images: dict[int, Index] = {**_shifted(array, axis, new)}
    if array.axes[axis]:
        first = array.numbers(axis).start
        forward = {n: Affine.iterator(n + first) for n in range(sum(map(len, new)))}
        images[first] = index.substitute(forward)
    operand = array.operand
    if not isinstance(operand, Access):
        return array.with_axes(axes, {n: form for n, form in images.items() if isinstance(form, Affine)})
    chosen = tuple(
        composed(f, images) if isinstance(f, Affine) else _recomposed(f, images) for f in operand.index
    )
    return Array(array.dtype, Access(operand.array, chosen), axes)


def _shifted(array: Array, axis: int, new: Sequence[Factors]) -> dict[int, Affine]:
    """Where the iterators of the other axes are once an axis is replaced."""
    numbers = array.numbers(axis)
    shift = sum(map(len, new)) - len(numbers)
    images = {n: Affine.iterator(n) for n in range(numbers.start)}
    return images | {n: Affine.iterator(n + shift) for n in range(numbers.stop, len(array.factors))}


def _is_affine(operand: Operand, numbers: Sequence[int]) -> bool:
    """Do these iterators stand in affine indices alone, not in an expression or within a table's index?"""
    if isinstance(operand, Access):
        forms = [form for form in operand.index if isinstance(form, Indirect)]
        return not any(form.looks_up(n) for form in forms for n in numbers)
    return isinstance(operand, Number) or not any(operand.uses(n) for n in numbers)


def _recomposed(form: Indirect, images: Mapping[int, Index]) -> Index:
    """An index through tables with its iterators replaced, those of the lookups by affine forms."""
    straight = {n: image for n, image in images.items() if isinstance(image, Affine)}
    lookups = [(k.substitute(straight), c) for k, c in form.lookups]
    return plus(Indirect.make(lookups, Affine()), composed(form.rest, images))
