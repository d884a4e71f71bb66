"""Convolutions of any number of dimensions, and transposed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from dojo_core.primitives.array import Array, BuildError, filled
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.contractions import contract
from dojo_core.primitives.copies import fresh, pad, write
from dojo_core.primitives.elementwise import convert, joint_dtype
from dojo_core.primitives.views import broadcast, places, reshape, transpose, unsqueeze, window
from dojo_core.program.dtypes import HALVES

Pads = Sequence[tuple[int, int]]


def convolve(
    b: Builder,
    x: Array,
    w: Array,
    bias: Array | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    pads: Pads | None = None,
    dtype: str | None = None,
) -> Array:
    """A convolution (a correlation, as networks have it) of ``x`` (n, c, *spatial) with ``w`` (m, c/groups,
    *taps).

    The result is (n, m, *places). ``strides``, ``dilations`` and ``pads`` (before and after, of zeros, as a
    padded copy) are one a spatial axis; ``bias`` (m,) begins each sum. f16 and bf16 are accumulated in f32.
    Raises BuildError for shapes that do not fit.
    """
    rank = len(x.axes) - 2
    strides, dilations, pads = _attributes(rank, strides, dilations, pads)
    if rank < 0 or len(w.axes) != rank + 2:
        raise BuildError(f"A convolution of {list(x.shape)} with {list(w.shape)}: they have as many axes.")
    (m, channels), taps = w.shape[:2], w.shape[2:]
    if groups < 1 or m % groups or channels * groups != x.shape[1]:
        raise BuildError(
            f"A convolution of {x.shape[1]} channels in {groups} groups does not fit weights of "
            f"{list(w.shape)}."
        )
    rows = pad(b, x, [(0, 0), (0, 0), *pads], name="padded")
    for k in range(rank):
        rows = window(b, rows, 2 + k, taps[k], strides[k], dilations[k])
    return _grouped(b, rows, w, bias, groups, rank, dtype)


def _grouped(
    b: Builder, rows: Array, w: Array, bias: Array | None, groups: int, rank: int, dtype: str | None
) -> Array:
    """The contraction of windows (n, c, *places, *taps) with weights (m, c/groups, *taps)."""
    n, _, *rest = rows.shape
    m, inner, *taps = w.shape
    rows = reshape(b, rows, (n, groups, inner, *rest))
    w = reshape(b, w, (groups, m // groups, inner, *taps))
    p = " ".join(f"p{k}" for k in range(rank))
    t = " ".join(f"t{k}" for k in range(rank))
    if bias is not None:
        bias = unsqueeze(b, reshape(b, bias, (1, groups, m // groups)), range(-rank, 0))
    y = contract(b, f"n g c {p} {t}, g m c {t} -> n g m {p}", rows, w, dtype=dtype, start=bias)
    return reshape(b, y, (n, m, *rest[:rank]))


def _attributes(
    rank: int, strides: Sequence[int] | None, dilations: Sequence[int] | None, pads: Pads | None
) -> tuple[Sequence[int], Sequence[int], Pads]:
    strides = strides or [1] * rank
    dilations = dilations or [1] * rank
    pads = pads or [(0, 0)] * rank
    for what, given in (("strides", strides), ("dilations", dilations), ("pads", pads)):
        if len(given) != rank:
            raise BuildError(f"{len(given)} {what} are given for {rank} spatial axes.")
    if min((*strides, *dilations), default=1) < 1:
        raise BuildError("Strides and dilations are at least 1.")
    return strides, dilations, pads


def convolve_transposed(
    b: Builder,
    x: Array,
    w: Array,
    bias: Array | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    pads: Pads | None = None,
    output_padding: Sequence[int] | None = None,
    dtype: str | None = None,
) -> Array:
    """A transposed convolution of ``x`` (n, c, *spatial) with ``w`` (c, m/groups, *taps): what a
    convolution's input gets from its output.

    The result is (n, m, *sizes), of ``(size-1)*stride + (taps-1)*dilation + 1 + output_padding`` less what
    ``pads`` cuts off. The places that lie alike between strides are a convolution of stride 1 each, so that
    nothing is multiplied with zeros that were put in between.
    """
    rank = len(x.axes) - 2
    strides, dilations, pads = _attributes(rank, strides, dilations, pads)
    extra = output_padding or [0] * rank
    if rank < 0 or len(w.axes) != rank + 2 or len(extra) != rank:
        raise BuildError(f"A convolution of {list(x.shape)} with {list(w.shape)}: they have as many axes.")
    (channels, inner), taps = w.shape[:2], w.shape[2:]
    if groups < 1 or channels % groups or channels != x.shape[1]:
        raise BuildError(
            f"A convolution of {x.shape[1]} channels in {groups} groups does not fit weights of "
            f"{list(w.shape)}."
        )
    spatial = x.shape[2:]
    sizes = [
        (s - 1) * stride + (t - 1) * d + 1 + e - sum(ends)
        for s, stride, t, d, e, ends in zip(spatial, strides, taps, dilations, extra, pads, strict=True)
    ]
    if min(sizes, default=1) < 1:
        raise BuildError(f"The pads {list(pads)} cut off all of the result.")
    phases = [
        _phases(*each)
        for each in zip(spatial, taps, strides, dilations, sizes, (p for p, _ in pads), strict=True)
    ]
    around = [
        (max((-f.low for f in axis), default=0), max((f.high - s + 1 for f in axis), default=0))
        for axis, s in zip(phases, spatial, strict=True)
    ]
    around = [(max(before, 0), max(after, 0)) for before, after in around]
    rows = pad(b, x, [(0, 0), (0, 0), *around], name="padded")
    rows = reshape(b, rows, (x.shape[0], groups, channels // groups, *rows.shape[2:]))
    w = reshape(b, w, (groups, channels // groups, inner, *taps))
    target = dtype or joint_dtype([x, w])
    y = fresh(b, "f32" if target in HALVES else target, (x.shape[0], groups, inner, *sizes))
    begin = filled(0, target, ())
    if bias is not None:
        begin = unsqueeze(b, reshape(b, bias, (1, groups, inner)), range(-rank, 0))
    write(b, y, "", begin)
    for chosen in product(*phases):
        _phase(b, y, rows, w, chosen, [before for before, _ in around])
    return convert(b, reshape(b, y, (x.shape[0], groups * inner, *sizes)), target)


class _Phase:
    """Places of the result along one axis that meet the same taps: ``first + q*stride``, for q up to
    ``count``.

    Tap ``tap + u*tap_step`` meets the place ``start + q - u*back`` of the padded input, ``low`` and ``high``
    are the extremes of those places before padding.
    """

    def __init__(
        self, first: int, stride: int, count: int, tap: int, tap_step: int, taps: int, start: int, back: int
    ):
        self.first, self.stride, self.count = first, stride, count
        self.tap, self.tap_step, self.taps = tap, tap_step, taps
        self.start, self.back = start, back
        self.low, self.high = start - (taps - 1) * back, start + count - 1


def _phases(spatial: int, taps: int, stride: int, dilation: int, size: int, before: int) -> list[_Phase]:
    common = math.gcd(stride, dilation)
    tap_step, back = stride // common, dilation // common
    phases: list[_Phase] = []
    for first in range(min(stride, size)):
        place = first + before  # before the pads are cut off
        tap = next((t for t in range(min(tap_step, taps)) if (place - t * dilation) % stride == 0), None)
        if tap is not None:
            count = (size - first - 1) // stride + 1
            meeting = (taps - tap - 1) // tap_step + 1
            start = (place - tap * dilation) // stride
            phases.append(_Phase(first, stride, count, tap, tap_step, meeting, start, back))
    return phases


def _phase(
    b: Builder, y: Array, rows: Array, w: Array, phases: Sequence[_Phase], shifts: Sequence[int]
) -> None:
    """Accumulate what one choice of phases adds."""
    rank = len(phases)
    for k, (f, shift) in enumerate(zip(phases, shifts, strict=True)):
        y = places(b, y, 3 + k, f.first, f.count, f.stride)
        w = places(b, w, 3 + k, f.tap, f.taps, f.tap_step)
        w = places(b, w, 3 + k, f.taps - 1, f.taps, -1) if f.taps > 1 else w  # the window goes forwards
        rows = places(b, rows, 3 + k, f.low + shift, f.high - f.low + 1)
    for k, f in enumerate(phases):
        rows = window(b, rows, 3 + k, f.taps, 1, f.back)
    # Axes: n, group, m, places; then channel and taps, which are summed.
    p, t = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
    rows = unsqueeze(b, transpose(b, rows, (0, 1, *p, 2, *t)), (2,))
    weights = unsqueeze(b, transpose(b, w, (0, 2, 1, *range(3, 3 + rank))), (0, *range(3, 3 + rank)))
    shape = (*y.shape, *rows.shape[3 + rank :])
    target = broadcast(b, unsqueeze(b, y, range(len(y.axes), len(shape))), shape)
    write(b, target, "*", broadcast(b, rows, shape), broadcast(b, weights, shape), accumulate="+")
