"""Images in another size, and looked up at places that are data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from agents.torch_backend.call import Call, aten
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array
from dojo_core.primitives.views import places

Ints = Sequence[int]
Scales = Sequence[float | None]


def _scales(given: Scales | None, count: int) -> list[float | None]:
    return list(given) if given else [None] * count


def _ratio(size: int, wanted: int, scale: float | None) -> float:
    """How far apart in the image the places of the result are."""
    return 1 / scale if scale else size / wanted


def _nearest(c: Call, x: Array, scales: Scales) -> Array:
    first = len(x.axes) - len(scales)
    for axis, scale in enumerate(scales, first):
        size, wanted = x.shape[axis], c.shape[axis]
        if wanted % size == 0 and (scale is None or scale == wanted // size):
            # Each element so many times: a view.
            x = p.unsqueeze(c.b, x, [axis + 1])
            x = p.broadcast(c.b, x, (*x.shape[: axis + 1], wanted // size, *x.shape[axis + 2 :]))
            x = p.reshape(c.b, x, (*x.shape[:axis], wanted, *x.shape[axis + 2 :]))
        else:
            at = np.floor(np.arange(wanted, dtype=np.float32) * np.float32(_ratio(size, wanted, scale)))
            x = p.gather(c.b, x, np.minimum(at, size - 1).astype(np.int64), axis)
    return x


@aten("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec", kind=Kind.COPY)
def nearest_vec(
    c: Call,
    input: Array,
    output_size: Sequence[int] | None,
    scale_factors: Scales | None,
) -> Array:
    return _nearest(c, input, _scales(scale_factors, len(input.axes) - 2))


@aten("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", kind=Kind.COPY)
def nearest(c: Call, self: Array, output_size: Sequence[int], *scales: float | None) -> Array:
    rank = len(self.axes) - 2
    return _nearest(c, self, [*scales, *[None] * (rank - len(scales))])


def _resized(c: Call, x: Array, scales: Scales) -> Iterator[tuple[int, int, int, float | None]]:
    """The axes along which something changes: each with its size, the one that is wanted, and its scale."""
    for axis, scale in enumerate(scales, len(x.axes) - len(scales)):
        size, wanted = x.shape[axis], c.shape[axis]
        if size != wanted or scale not in (None, 1):
            yield axis, size, wanted, scale


def _linear(c: Call, x: Array, align_corners: bool, scales: Scales) -> Array:
    """Along each axis between two neighbours, each by how near it is."""
    x = c.widened(x)
    for axis, size, wanted, scale in _resized(c, x, scales):
        number = np.arange(wanted, dtype=np.float64)
        if align_corners:
            at = number * ((size - 1) / (wanted - 1) if wanted > 1 else 0)
        else:
            at = np.maximum((number + 0.5) * _ratio(size, wanted, scale) - 0.5, 0)
        low = np.minimum(at.astype(np.int64), size - 1)
        share = p.constant(c.b, at - low, x.dtype, "share")
        share = p.unsqueeze(c.b, share, range(1, len(x.axes) - axis))
        near = p.gather(c.b, x, low, axis)
        far = p.gather(c.b, x, np.minimum(low + 1, size - 1), axis)
        x = p.formula(c.b, "a + s * (b - a)", a=near, b=far, s=share)
    return c.converted(x)


@aten("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", kind=Kind.COPY)
def linear_vec(
    c: Call,
    input: Array,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scale_factors: Scales | None,
) -> Array:
    return _linear(c, input, align_corners, _scales(scale_factors, len(input.axes) - 2))


@aten("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", kind=Kind.COPY)
def linear(
    c: Call, self: Array, output_size: Sequence[int], align_corners: bool, *scales: float | None
) -> Array:
    rank = len(self.axes) - 2
    return _linear(c, self, align_corners, [*scales, *[None] * (rank - len(scales))])


# ---------------------------------------------------------------------------- by weighted neighbours

Taps = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # places and their shares, [wanted, taps] each


def _cubic(distance: np.ndarray[Any, Any], a: float) -> np.ndarray[Any, Any]:
    """The convolution kernel of Keys (1981), of which ``a`` is the slope at distance 1."""
    d = np.abs(distance)
    near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _cubic_taps(size: int, wanted: int, scale: float | None, align_corners: bool) -> Taps:
    number = np.arange(wanted, dtype=np.float64)
    if align_corners:
        at = number * ((size - 1) / (wanted - 1) if wanted > 1 else 0)
    else:
        at = (number + 0.5) * _ratio(size, wanted, scale) - 0.5
    near = np.floor(at)[:, None] + np.arange(-1, 3)
    return np.clip(near, 0, size - 1).astype(np.int64), _cubic(at[:, None] - near, -0.75)


def _smoothed_taps(size: int, wanted: int, scale: float | None, align_corners: bool, cubic: bool) -> Taps:
    """Of antialias=True: where the image gets smaller, the kernel is as much wider."""
    ratio = _ratio(size, wanted, scale)
    if align_corners:
        ratio = (size - 1) / (wanted - 1) if wanted > 1 else 0
    wider = max(ratio, 1)
    reach = (2 if cubic else 1) * wider
    centre = (np.arange(wanted)[:, None] + 0.5) * ratio
    low = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    near = low + np.arange((high - low).max())
    distance = (near - centre + 0.5) / wider
    shares = _cubic(distance, -0.5) if cubic else np.maximum(1 - np.abs(distance), 0)
    shares = np.where(near < high, shares, 0)
    return np.minimum(near, size - 1), shares / shares.sum(axis=1, keepdims=True)


def _by_taps(c: Call, x: Array, taps: Callable[[int, int, float | None], Taps], scales: Scales) -> Array:
    """Along each axis the sum of some places, each by its share."""
    x = c.widened(x)
    for axis, size, wanted, scale in _resized(c, x, scales):
        at, shares = taps(size, wanted, scale)
        share = p.unsqueeze(c.b, p.constant(c.b, shares, x.dtype, "share"), range(2, len(x.axes) - axis + 1))
        x = p.formula(c.b, "v * s", v=p.gather(c.b, x, at, axis), s=share)
        x = p.reduce(c.b, "+", x, axis + 1)
    return c.converted(x)


@aten("upsample_bicubic2d.vec", "upsample_bicubic2d", kind=Kind.OTHER)
def cubic(c: Call, self: Array, output_size: Ints | None, align_corners: bool, *scales: Any) -> Array:
    return _by_taps(c, self, partial(_cubic_taps, align_corners=align_corners), _both(scales))


@aten("_upsample_bilinear2d_aa.vec", "_upsample_bilinear2d_aa", kind=Kind.OTHER)
def smoothed_linear(
    c: Call, self: Array, output_size: Ints | None, align_corners: bool, *scales: Any
) -> Array:
    taps = partial(_smoothed_taps, align_corners=align_corners, cubic=False)
    return _by_taps(c, self, taps, _both(scales))


@aten("_upsample_bicubic2d_aa.vec", "_upsample_bicubic2d_aa", kind=Kind.OTHER)
def smoothed_cubic(
    c: Call, self: Array, output_size: Ints | None, align_corners: bool, *scales: Any
) -> Array:
    taps = partial(_smoothed_taps, align_corners=align_corners, cubic=True)
    return _by_taps(c, self, taps, _both(scales))


def _both(scales: Sequence[Any]) -> Scales:
    """Of height and width: ATen gives none, one list of both, or each by itself."""
    given = scales[0] if len(scales) == 1 and isinstance(scales[0], list) else [*scales]
    return _scales([*given, None, None][:2] if given else None, 2)


@aten("grid_sampler_2d", kind=Kind.OTHER)
def grid_sampler(
    c: Call, input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """``grid``, ``[N, P, Q, 2]``, says of each pixel where it lies: across and down, from -1 to 1."""
    if interpolation_mode > 1 or padding_mode > 1:
        raise Refusal("it is bicubic, or reflects at the border", "use bilinear or nearest, zeros or border")
    count, channels, *sizes = input.shape
    points, taps = c.shape[2] * c.shape[3], 1 if interpolation_mode else 2  # along each of two axes
    x = p.reshape(c.b, c.widened(input), (count, channels, sizes[0] * sizes[1]))
    centre = "(g + 1) * 0.5 * (n - 1)" if align_corners else "((g + 1) * n - 1) * 0.5"
    # Far outside there is nothing but zeros, or the border, wherever it is.
    low, beyond = ("0", "1") if padding_mode else ("-2", "-1")
    place, share, kept = p.filled(0, "i64", ()), p.filled(1, x.dtype, ()), p.filled(1, "bool", ())
    for axis, size in enumerate(sizes):
        given = p.reshape(c.b, _at_last(c, c.widened(grid), 1 - axis), (count, 1, points, 1, 1))
        at = p.formula(c.b, f"min(max({centre}, {low}), n - {beyond})", g=given, n=size)
        if taps == 1:
            whole = p.elementwise(c.b, "round", at)
        else:
            tap = p.iterator(c.b, (1, 1, 1, *(2 if k == axis else 1 for k in range(2))), 3 + axis, x.dtype)
            whole = p.formula(c.b, "floor(w) + t", w=at, t=tap)
            share = p.formula(c.b, "s * (1 - abs(w - k))", s=share, w=at, k=whole)
        kept = p.formula(c.b, "o & (k >= 0) & (k <= n - 1)", dtype="bool", o=kept, k=whole, n=size)
        index = p.convert(c.b, p.formula(c.b, "min(max(k, 0), n - 1)", k=whole, n=size), "i64")
        place = p.formula(c.b, "p * n + k", dtype="i64", p=place, n=size, k=index)
    shape = (count, channels, points, taps, taps)
    values = p.gather_along(c.b, x, p.reshape(c.b, place, (count, 1, points * taps * taps)), 2)
    parts = p.formula(c.b, "select(o, v * s, 0)", o=kept, v=p.reshape(c.b, values, shape), s=share)
    return c.converted(p.reshape(c.b, p.reduce(c.b, "+", parts, (3, 4)), c.shape))


def _at_last(c: Call, x: Array, place: int) -> Array:
    """At one place of the last axis."""
    last = len(x.axes) - 1
    return p.squeeze(c.b, places(c.b, x, last, place, 1), [last])
