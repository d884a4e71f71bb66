"""Convolutions of any number of dimensions, and transposed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from dojo_core.primitives.array import Array, BuildError, filled
from dojo_core.primitives.builder import Builder
from dojo_core.primitives.contractions import contract
from dojo_core.primitives.copies import fresh, pad, write
from dojo_core.primitives.elementwise import convert, elementwise, joint_dtype
from dojo_core.primitives.views import broadcast, places, reshape, transpose, unsqueeze, window
from dojo_core.program.dtypes import HALVES

Pads = Sequence[tuple[int, int]]
PHASES = 9  # of a transposed convolution that meet taps: each is a few scopes of the text
# Times the multiplications of a transposed convolution that go into its padding, from which on these are left
# out; where channels go into vectors, which then take what an element of the input gives. With ``lanes``: of
# few taps in a row, and of more, beside whose weights registers have room for few results.
PADDED, LANES = 1.5, 8
PADDED_FEW, FEW_TAPS, PADDED_MORE = 1.0, 4, 1.25


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
    lanes: bool = False,
) -> Array:
    """A transposed convolution of ``x`` (n, c, *spatial) with ``w`` (c, m/groups, *taps): what a
    convolution's input gets from its output.

    The result is (n, m, *sizes), of ``(size-1)*stride + (taps-1)*dilation + 1 + output_padding`` less what
    ``pads`` cuts off. The places that lie alike between strides are a convolution of stride 1 each, so that
    nothing is multiplied with zeros that were put in between. Where more than ``PHASES`` of these meet taps,
    or a third of what they meet is the padding around a small input, what each element of the input gives is
    added to the result. ``lanes``: the same where as much as nothing of it is padding, as pays where channels
    of the result become the lanes of vectors (not on a GPU, where places are for threads).
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
    target = dtype or joint_dtype([x, w])
    begin = None if bias is None else unsqueeze(b, reshape(b, bias, (1, groups, inner)), range(-rank, 0))
    w = reshape(b, w, (groups, channels // groups, inner, *taps))
    phases = [
        _phases(*each)
        for each in zip(spatial, taps, strides, dilations, sizes, (p for p, _ in pads), strict=True)
    ]
    threshold = PADDED
    if lanes and rank and max(dilations) == 1:
        threshold = PADDED_FEW if taps[-1] <= FEW_TAPS else PADDED_MORE
    padded = math.prod(sizes) >= threshold * math.prod(spatial) * math.prod(strides)
    if math.prod(map(len, phases)) > PHASES or (padded and inner % LANES == 0):
        x = reshape(b, x, (x.shape[0], groups, channels // groups, *spatial))
        y = _scattered(b, x, w, strides, dilations, pads, extra, target, begin)
        return convert(b, reshape(b, y, (x.shape[0], groups * inner, *sizes)), target)
    around = [
        (max((-f.low for f in axis), default=0), max((f.high - s + 1 for f in axis), default=0))
        for axis, s in zip(phases, spatial, strict=True)
    ]
    around = [(max(before, 0), max(after, 0)) for before, after in around]
    rows = pad(b, x, [(0, 0), (0, 0), *around], name="padded")
    rows = reshape(b, rows, (x.shape[0], groups, channels // groups, *rows.shape[2:]))
    chosen = list(product(*phases))
    shifts = [before for before, _ in around]
    if all(stride == 1 for stride in strides) and chosen:
        y = _phase(b, rows, w, chosen[0], shifts, target, begin)
        return reshape(b, y, (x.shape[0], groups * inner, *sizes))
    y = fresh(b, target, (x.shape[0], groups, inner, *sizes))
    if len(chosen) < math.prod(map(min, strides, sizes)):  # some places meet no tap
        write(b, y, "", filled(0, target, ()) if begin is None else convert(b, begin, target))
    for each in chosen:
        part = y
        for k, f in enumerate(each):
            part = places(b, part, 3 + k, f.first, f.count, f.stride)
        write(b, part, "", _phase(b, rows, w, each, shifts, target, begin))
    return reshape(b, y, (x.shape[0], groups * inner, *sizes))


def _scattered(
    b: Builder,
    x: Array,
    w: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Pads,
    extra: Sequence[int],
    dtype: str,
    begin: Array | None,
) -> Array:
    """The transposed convolution of (n, groups, c, *spatial) with (groups, c, m, *taps), as sums into its
    places, which ``begin``, of the result's axes, begins."""
    rank = len(strides)
    spatial, taps = x.shape[3:], w.shape[3:]
    reach = [
        (s - 1) * stride + (t - 1) * d + 1
        for s, stride, t, d in zip(spatial, strides, taps, dilations, strict=True)
    ]
    cut = [(-before, e - after) for (before, after), e in zip(pads, extra, strict=True)]
    grows = any(after > 0 for _, after in cut)
    whole = fresh(b, "f32" if dtype in HALVES else dtype, (*x.shape[:2], w.shape[2], *reach))
    first = filled(0, whole.dtype, ()) if begin is None or grows else convert(b, begin, whole.dtype)
    write(b, whole, "", first)
    target = whole
    for k in range(rank):
        target = window(b, target, 3 + k, taps[k], strides[k], dilations[k])
    # Axes: n, group, m, places, taps; then the channels, which are summed.
    target = unsqueeze(b, target, (-1,))
    order = (0, 1, *range(3, 3 + rank), 2)
    rows = unsqueeze(b, transpose(b, x, order), (2, *range(3 + rank, 3 + 2 * rank)))
    weights = transpose(b, w, (0, 2, *range(3, 3 + rank), 1))
    weights = unsqueeze(b, weights, (0, *range(3, 3 + rank)))
    target = broadcast(b, target, (*target.shape[:-1], x.shape[2]))
    write(b, target, "*", rows, weights, accumulate="+")
    y = pad(b, whole, [(0, 0), (0, 0), (0, 0), *cut])
    return elementwise(b, "+", y, begin, dtype=y.dtype) if begin is not None and grows else y


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
    b: Builder,
    rows: Array,
    w: Array,
    phases: Sequence[_Phase],
    shifts: Sequence[int],
    dtype: str,
    begin: Array | None,
) -> Array:
    """The places of one choice of phases: a convolution of stride 1, (n, groups, m/groups, *places)."""
    rank = len(phases)
    for k, (f, shift) in enumerate(zip(phases, shifts, strict=True)):
        w = places(b, w, 3 + k, f.tap, f.taps, f.tap_step)
        w = places(b, w, 3 + k, f.taps - 1, f.taps, -1) if f.taps > 1 else w  # the window goes forwards
        rows = places(b, rows, 3 + k, f.low + shift, f.high - f.low + 1)
    for k, f in enumerate(phases):
        rows = window(b, rows, 3 + k, f.taps, 1, f.back)
    p, t = (" ".join(f"{letter}{k}" for k in range(rank)) for letter in "pt")
    form = f"n g c {p} {t}, g c m {t} -> n g m {p}"
    return contract(b, form, rows, w, dtype=dtype, start=begin)
