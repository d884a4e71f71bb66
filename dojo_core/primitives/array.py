"""What primitives are given and give: arrays that are views, so that rearranging one costs no pass.

An ``Array`` is one operand of the text form, such as ``x[{0},-{1}+7]``, whose iterators stand for the
array's own axes. A transpose, a slice, a broadcast, a reshape put other forms in their place.

An axis may be a product of *factors*, outermost first: 12 = 3*4 has two iterators. This is what makes
reshapes views: (3, 4) -> (12,) only regroups the factors, and what is computed from it runs over 3 and 4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from dojo_core.program.affine import Affine
from dojo_core.program.expressions import RESERVED
from dojo_core.program.tree import Access, Number, Operand, substituted

Factors = tuple[int, ...]  # sizes of the factors of an axis, each at least 2; none: its size is 1


class BuildError(ValueError):
    """What no program can be made of; the message is a sentence for a person."""


@dataclass(frozen=True)
class Array:
    """A view: ``operand`` is the element at ``{0}, {1}, ...``, the iterators of all factors in order.

    An array without elements has an axis of the factors ``(0,)``; no text mentions it.
    """

    dtype: str
    operand: Operand
    axes: tuple[Factors, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(math.prod(axis) for axis in self.axes)

    @property
    def factors(self) -> Factors:
        """The sizes of all factors: of the iterators in ``operand``."""
        return tuple(size for axis in self.axes for size in axis)

    @property
    def empty(self) -> bool:
        """Has it no elements?"""
        return 0 in self.factors

    @property
    def is_free(self) -> bool:
        """Is it a number or an iterator expression, which takes the dtype of what it is used in?"""
        return not isinstance(self.operand, Access)

    @property
    def used(self) -> tuple[int, ...]:
        """The factors on which an element depends; along others it is broadcast."""
        if isinstance(self.operand, Number):
            return ()
        forms = self.operand.index if isinstance(self.operand, Access) else (self.operand,)
        return tuple(sorted({depth for form in forms for depth in form.depths}))

    def numbers(self, axis: int) -> range:
        """The iterators of an axis."""
        first = sum(map(len, self.axes[:axis]))
        return range(first, first + len(self.axes[axis]))

    def with_axes(self, axes: Iterable[Factors], images: dict[int, Affine]) -> Array:
        """Another view of the same: each iterator replaced by a form over the new axes' iterators."""
        return Array(self.dtype, substituted(self.operand, images), tuple(axes))

    def __str__(self) -> str:
        return f"{self.operand} {self.dtype} [{', '.join(map(str, self.shape))}]"


def axis_of(size: int) -> Factors:
    """An axis of one factor."""
    return () if size == 1 else (size,)


def free(value: int | float, dtype: str) -> Array:
    """A number as an array."""
    return Array(dtype, Number(value), ())


def filled(value: int | float, dtype: str, shape: Sequence[int]) -> Array:
    """A number broadcast to a shape."""
    return Array(dtype, Number(value), tuple(map(axis_of, shape)))


# ---------------------------------------------------------------------------- factors


def borders(axis: Factors) -> set[int]:
    """Where factors end: the products of the last ones, from 1 to the size."""
    return set(accumulate(reversed(axis), lambda a, b: a * b, initial=1))


def between(ends: Iterable[int]) -> Factors | None:
    """The factors that end at these borders, None where there are none."""
    ordered = sorted(ends)
    if any(large % small for small, large in pairwise(ordered)):
        return None
    return tuple(large // small for small, large in reversed(list(pairwise(ordered))))


def split(array: Array, axes: Sequence[Factors]) -> Array:
    """The same with finer factors: each of an axis is a product of some of the new ones."""
    images: dict[int, Affine] = {}
    number = 0
    old = 0
    for coarse, fine in zip(array.axes, axes, strict=True):
        pieces = iter(fine)
        for size in coarse:
            form, reach = Affine(), 1
            while reach < size:
                piece = next(pieces)
                form, reach = form * piece + Affine.iterator(number), reach * piece
                number += 1
            images[old] = form
            old += 1
    return array.with_axes(axes, images)


def regrouped(array: Array, counts: Sequence[int]) -> Array:
    """The same factors as other axes: how many go into each."""
    flat = iter(array.factors)
    return replace(array, axes=tuple(tuple(next(flat) for _ in range(count)) for count in counts))


def coalesced(array: Array) -> Array:
    """With neighbouring factors of an axis merged where the operand sees only their product."""
    while True:
        number = 0
        for axis, factors in enumerate(array.axes):
            for k in range(len(factors) - 1):
                if _is_product(array.operand, number + k, factors[k + 1]):
                    array = _merged(array, axis, k, number + k)
                    break
            else:
                number += len(factors)
                continue
            break
        else:
            return array


def _forms(operand: Operand) -> tuple[Affine, ...] | None:
    """The affine forms of an operand; None where some go through tables."""
    if isinstance(operand, Number):
        return ()
    index = operand.index if isinstance(operand, Access) else (operand,)
    forms = tuple(form for form in index if isinstance(form, Affine))
    return forms if len(forms) == len(index) else None


def _is_product(operand: Operand, outer: int, size: int) -> bool:
    """Do the iterators ``outer`` and the next, of that size, occur only as ``{outer}*size + {outer+1}``?"""
    forms = _forms(operand)
    return forms is not None and all(
        form.coefficient(outer) == form.coefficient(outer + 1) * size for form in forms
    )


def _merged(array: Array, axis: int, k: int, number: int) -> Array:
    factors = array.axes[axis]
    merged = (*factors[:k], factors[k] * factors[k + 1], *factors[k + 2 :])
    axes = (*array.axes[:axis], merged, *array.axes[axis + 1 :])
    # In place of {outer}*size + {inner} stands the merged iterator: drop the outer term, rename the others.
    images = {n: Affine.iterator(n - 1 if n > number else n) for n in range(len(array.factors))}
    images[number] = Affine()
    return array.with_axes(axes, images)


# ---------------------------------------------------------------------------- names


def identifier(name: str) -> str:
    """A name that the text form takes, made of any text: ``layer/conv:0`` is ``layer_conv_0``."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "a"
    if plain[0].isdigit():
        plain = f"a{plain}"
    return f"{plain}_" if plain in TAKEN else plain


# Words that begin a line or stand in one.
TAKEN = RESERVED | {"if", "and", "prefetch", "stream", "stream_load", "table", "domain"}


def is_identifier(name: str) -> bool:
    """Does the text form take the name as it is?"""
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name not in TAKEN
