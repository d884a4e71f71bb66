"""Poolings of any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.constants import constant
from dojo_core.primitives.convolutions import Pads
from dojo_core.primitives.copies import pad
from dojo_core.primitives.elementwise import elementwise, formula
from dojo_core.primitives.reductions import arg_reduce_over, reduce
from dojo_core.primitives.views import broadcast, unsqueeze, window
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import HALVES

KINDS = ("max", "average", "lp")


def pool(
    b: Builder,
    kind: str,
    x: Array,
    taps: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Pads | None = None,
    ceil: bool = False,
    count_pads: bool = False,
    p: float = 2,
) -> Array:
    """The ``max``, ``average`` or ``lp`` norm over windows of ``x`` (n, c, *spatial), as wide as ``taps``.

    ``strides`` are 1 where none are given. With ``ceil`` a last window may reach beyond the end, as long as
    it begins within the axis or the padding before it. An average counts padded places only with
    ``count_pads``, and never what lies beyond the padding. f16 and bf16 are summed in f32.
    """
    if kind not in KINDS:
        raise BuildError(f"There is no pooling {kind!r}: there are {', '.join(KINDS)}.")
    frame = _Frame(x, taps, strides, dilations, pads, ceil)
    if kind == "max":
        return reduce(b, "max", frame.windows(b, x, -math.inf), frame.tap_axes)
    wide = "f32" if x.dtype in HALVES else x.dtype
    if kind == "lp":
        powers = _powers(b, x, p)
        total = reduce(b, "+", frame.windows(b, powers, 0), frame.tap_axes, dtype=wide)
        return _root(b, total, p, x.dtype)
    total = reduce(b, "+", frame.windows(b, x, 0), frame.tap_axes, dtype=wide)
    return elementwise_quotient(b, total, frame.counts(b, count_pads, wide), x.dtype)


def max_pool_with_places(
    b: Builder,
    x: Array,
    taps: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Pads | None = None,
    ceil: bool = False,
    dtype: str = "i64",
    column_major: bool = False,
) -> tuple[Array, Array]:
    """The largest in each window, and the place of the first of equals: its number among the elements of its
    image, in row-major order of the spatial axes (or column-major)."""
    frame = _Frame(x, taps, strides, dilations, pads, ceil)
    spatial = x.shape[2:]
    numbers = np.arange(math.prod(spatial)).reshape(spatial, order="F" if column_major else "C")
    image = unsqueeze(b, constant(b, numbers, dtype), (0, 1))
    at = frame.windows(b, image, math.inf)  # what is padded has no place
    windows = frame.windows(b, x, -math.inf)
    return arg_reduce_over(b, "max", windows, frame.tap_axes, broadcast(b, at, windows.shape))


def elementwise_quotient(b: Builder, total: Array, count: Array | int, dtype: str) -> Array:
    return formula(b, "total / count", dtype=dtype, total=total, count=count)


def _powers(b: Builder, x: Array, p: float) -> Array:
    if p == 1:
        return elementwise(b, "abs", x)
    return formula(b, "x*x", x=x) if p == 2 else formula(b, "pow(abs(x), p)", x=x, p=p)


def _root(b: Builder, total: Array, p: float, dtype: str) -> Array:
    if p == 1:
        return formula(b, "1*t", dtype=dtype, t=total)
    text = "sqrt(t)" if p == 2 else "pow(t, r)"
    return formula(b, text, dtype=dtype, t=total, **({} if p == 2 else {"r": 1 / p}))


class _Frame:
    """Where the windows of a pooling lie."""

    def __init__(
        self,
        x: Array,
        taps: Sequence[int],
        strides: Sequence[int] | None,
        dilations: Sequence[int] | None,
        pads: Pads | None,
        ceil: bool,
    ):
        rank = len(x.axes) - 2
        self.sizes, self.taps = x.shape[2:], tuple(taps)
        self.strides = tuple(strides or [1] * rank)
        self.dilations = tuple(dilations or [1] * rank)
        self.pads = tuple(pads or [(0, 0)] * rank)
        if (
            any(len(each) != rank for each in (self.taps, self.strides, self.dilations, self.pads))
            or rank < 0
        ):
            raise BuildError(f"A pooling of {list(x.shape)} has {max(rank, 0)} windows, strides and pads.")
        if min((*self.taps, *self.strides, *self.dilations), default=1) < 1:
            raise BuildError("Windows, strides and dilations are at least 1.")
        self.tap_axes = tuple(range(rank + 2, 2 * rank + 2))
        self.places = tuple(self._places(k, ceil) for k in range(rank))
        # What the last window reaches beyond the padding (or, below 0, leaves over).
        self.beyond = tuple(
            (self.places[k] - 1) * self.strides[k] + self._reach(k) - self.sizes[k] - sum(self.pads[k])
            for k in range(rank)
        )

    def _reach(self, k: int) -> int:
        return (self.taps[k] - 1) * self.dilations[k] + 1

    def _places(self, k: int, ceil: bool) -> int:
        free = self.sizes[k] + sum(self.pads[k]) - self._reach(k)
        count = free // self.strides[k] + 1
        if ceil and free % self.strides[k] and count * self.strides[k] < self.sizes[k] + self.pads[k][0]:
            count += 1
        if count < 1:
            raise BuildError(f"A window of {self.taps[k]} does not fit a padded axis of {self.sizes[k]}.")
        return count

    def windows(self, b: Builder, x: Array, padding: int | float) -> Array:
        """A view of all windows of a padded copy: (n, c, *places, *taps)."""
        around = [
            (before, max(after + more, 0))
            for (before, after), more in zip(self.pads, self.beyond, strict=True)
        ]
        rows = pad(b, x, [(0, 0), (0, 0), *around], value=padding, name="padded")
        for k, width in enumerate(self.taps):
            rows = window(b, rows, 2 + k, width, self.strides[k], self.dilations[k])
        return rows

    def counts(self, b: Builder, count_pads: bool, dtype: str) -> Array | int:
        """How many places of each window count: a number where they are as many in all."""
        whole, arrays = 1, []
        for k, size in enumerate(self.sizes):
            before, after = self.pads[k] if count_pads else (0, 0)
            place = np.arange(self.places[k])[:, None] * self.strides[k] - self.pads[k][0]
            place = place + np.arange(self.taps[k]) * self.dilations[k]
            known = ((place >= -before) & (place < size + after)).sum(axis=1)
            if (known == known[0]).all():
                whole *= int(known[0])
                continue
            if self.dilations[k] == 1:
                first = Affine.iterator(0, self.strides[k]) - self.pads[k][0]
                start = Array(dtype, first, ((self.places[k],),))
                end = Array(dtype, first + self.taps[k], start.axes)
                text = "min(end, after) - max(start, before)"
                count = formula(b, text, start=start, end=end, before=-before, after=size + after)
            else:
                count = constant(b, known, dtype, name="taps")
            arrays.append(unsqueeze(b, count, range(1, len(self.sizes) - k)))
        if not arrays:
            return whole
        count = arrays[0]
        for more in arrays[1:]:
            count = elementwise(b, "*", count, more)
        return elementwise(b, "*", count, whole) if whole != 1 else count
