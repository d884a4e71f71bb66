"""Pooling over windows."""

from __future__ import annotations

import math
from typing import Any

from dojo_core import primitives as p
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.operators.convolutions import Windows, windows_of
from dojo_core.from_onnx.values import Refusal, within
from dojo_core.primitives.array import Array
from dojo_core.primitives.scattering import scatter


def _windows(c: Call) -> Windows:
    kernel = c.attribute("kernel_shape")
    if not kernel:
        raise Refusal("It has no kernel_shape.", "Mend the model.")
    return windows_of(c, c.shape(0)[2:], kernel, c.flag("ceil_mode"))


def _pooled(c: Call, kind: str, **options: Any) -> Array:
    w = _windows(c)
    ceil = c.flag("ceil_mode")
    if kind == "average":  # how many places each window has is known
        within(math.prod(w.places), "The windows of an average")
    return p.pool(c.b, kind, c.computed(0), w.kernel, w.strides, w.dilations, w.pads, ceil, **options)


@operator("MaxPool")
def max_pool(c: Call) -> tuple[Array, ...]:
    if not c.wants(1):
        return (_pooled(c, "max"),)
    x, w = c.computed(0), _windows(c)
    within(math.prod(w.size), "The places of an image")
    top, place = p.max_pool_with_places(
        c.b,
        x,
        w.kernel,
        w.strides,
        w.dilations,
        w.pads,
        c.flag("ceil_mode"),
        column_major=c.flag("storage_order"),
    )
    plane = math.prod(w.size)  # places count through the whole tensor
    image = c.affine((*x.shape[:2], *[1] * len(w.size)), [x.shape[1] * plane, plane, *[0] * len(w.size)])
    return top, c.add(place, image) if math.prod(x.shape[:2]) > 1 else place


@operator("AveragePool")
def average_pool(c: Call) -> Array:
    return _pooled(c, "average", count_pads=c.flag("count_include_pad"))


@operator("LpPool")
def lp_pool(c: Call) -> Array:
    return _pooled(c, "lp", p=c.attribute("p", 2))


@operator("MaxUnpool")
def max_unpool(c: Call) -> Array:
    x, shape = c.array(0), c.shape(0)
    kernel, rank = c.attribute("kernel_shape"), c.rank(0) - 2
    strides = c.attribute("strides") or [1] * rank
    pads = c.attribute("pads") or [0] * (2 * rank)
    size = [(shape[2 + k] - 1) * strides[k] - pads[k] - pads[k + rank] + kernel[k] for k in range(rank)]
    whole = [*shape[:2], *size]
    indices = c.reshape(c.array(1), (math.prod(shape),))
    base = c.number(0, x.dtype, (math.prod(whole),))
    c.promised(c.array(1), math.prod(whole))
    result = c.reshape(scatter(c.b, base, c.reshape(x, (math.prod(shape),)), [indices]), whole)
    if not c.has(2):
        return result
    wanted = c.ints(2)
    return c.pad(result, [(0, w - s) for w, s in zip(wanted, whole, strict=True)])
