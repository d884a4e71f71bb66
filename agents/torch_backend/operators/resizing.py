"""Images in another size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agents.torch_backend.call import Call, aten
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array

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
    c: Call, input: Array, output_size: Sequence[int] | None, scale_factors: Scales | None  # noqa: A002
) -> Array:
    return _nearest(c, input, _scales(scale_factors, len(input.axes) - 2))


@aten("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", kind=Kind.COPY)
def nearest(c: Call, self: Array, output_size: Sequence[int], *scales: float | None) -> Array:
    rank = len(self.axes) - 2
    return _nearest(c, self, [*scales, *[None] * (rank - len(scales))])


def _linear(c: Call, x: Array, align_corners: bool, scales: Scales) -> Array:
    """Along each axis between two neighbours, each by how near it is."""
    first = len(x.axes) - len(scales)
    x = c.widened(x)
    for axis, scale in enumerate(scales, first):
        size, wanted = x.shape[axis], c.shape[axis]
        if size == wanted and (scale is None or scale == 1):
            continue
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
    input: Array,  # noqa: A002
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
