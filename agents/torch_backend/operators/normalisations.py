"""Normalisations by mean and variance: of layers, groups, batches, instances."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agents.torch_backend.call import Call, aten, wide
from agents.torch_backend.operators.reductions import moments
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array


def _normalised(
    c: Call,
    x: Array,
    mean: Array,
    inverse: Array,
    weight: Array | None,
    bias: Array | None,
) -> Array:
    """``(x - mean) * inverse * weight + bias`` in one pass."""
    text, given = "(x - m) * r", {"x": x, "m": mean, "r": inverse}
    if weight is not None:
        text, given["w"] = f"{text} * w", weight
    if bias is not None:
        text, given["b"] = f"{text} + b", bias
    return c.formula(text, **given)


def _inverse(c: Call, variance: Array, eps: float) -> Array:
    return p.formula(c.b, "rsqrt(v + e)", v=variance, e=eps)


def _stored(c: Call, number: int, x: Array) -> Array:
    """A statistic as the result of that number, which ATen gives in a dtype of its own."""
    return p.convert(c.b, p.reshape(c.b, x, c.shapes[number]), c.dtypes[number])


@aten("native_layer_norm", kind=Kind.REDUCTION)
def layer_norm(
    c: Call,
    input: Array,
    normalized_shape: Sequence[int],
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Sequence[Array]:
    axes = range(len(input.axes) - len(normalized_shape), len(input.axes))
    x = c.widened(input)
    mean, variance = moments(c, x, axes)
    inverse = _inverse(c, variance, eps)
    y = _normalised(c, x, mean, inverse, weight, bias)
    return y, _stored(c, 1, mean), _stored(c, 2, inverse)


@aten("native_group_norm", kind=Kind.REDUCTION)
def group_norm(
    c: Call,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Sequence[Array]:
    spatial = input.shape[2:]
    x = p.reshape(c.b, c.widened(input), (N, group, C // group, *spatial))
    mean, variance = moments(c, x, range(2, len(x.axes)))
    inverse = _inverse(c, variance, eps)

    def of_channels(a: Array | None) -> Array | None:
        return a and p.reshape(c.b, a, (group, C // group, *[1] * len(spatial)))

    y = _normalised(c, x, mean, inverse, of_channels(weight), of_channels(bias))
    return p.reshape(c.b, y, input.shape), _stored(c, 1, mean), _stored(c, 2, inverse)


def _of_channels(c: Call, x: Array | None, rank: int) -> Array | None:
    """Along the second axis of ``rank``."""
    return x and p.reshape(c.b, x, (-1, *[1] * (rank - 2)))


@aten("_native_batch_norm_legit_no_training", kind=Kind.POINTWISE)
def batch_norm_inference(
    c: Call,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    momentum: float,
    eps: float,
) -> Sequence[Array | None]:
    y = _by_running(c, input, weight, bias, running_mean, running_var, eps)
    return y, _nothing(c, 1), _nothing(c, 2)


def _nothing(c: Call, number: int) -> Array:
    return p.filled(0, c.dtypes[number], c.shapes[number])


def _by_running(
    c: Call, x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float
) -> Array:
    """As PyTorch's CPU kernel does it: a factor and a summand for each channel."""
    b = c.b
    mean, variance = (p.convert(b, a, wide(a.dtype)) for a in (mean, variance))
    factor = _inverse(c, variance, eps)
    if weight is not None:
        factor = p.formula(b, "r * w", r=factor, w=p.convert(b, weight, wide(weight.dtype)))
    summand = p.formula(b, "0 - m * f", m=mean, f=factor)
    if bias is not None:
        summand = p.formula(b, "s + b", s=summand, b=p.convert(b, bias, wide(bias.dtype)))
    channels = (-1, *[1] * (len(x.axes) - 2))
    return c.formula("x * f + s", x=x, f=p.reshape(b, factor, channels), s=p.reshape(b, summand, channels))


def _by_batch(
    c: Call, x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array, Array]:
    """The result, and the batch's mean, inverse deviation and variance."""
    axes = (0, *range(2, len(x.axes)))
    x = c.widened(x)
    mean, variance = moments(c, x, axes)
    inverse = _inverse(c, variance, eps)
    rank = len(x.axes)
    y = _normalised(c, x, mean, inverse, _of_channels(c, weight, rank), _of_channels(c, bias, rank))
    return y, mean, inverse, variance


@aten("_native_batch_norm_legit.no_stats", kind=Kind.REDUCTION)
def batch_norm_no_stats(
    c: Call,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Sequence[Array]:
    y, mean, inverse, _ = _by_batch(c, input, weight, bias, eps)
    return y, _stored(c, 1, mean), _stored(c, 2, inverse)


@aten("_native_batch_norm_legit_functional", kind=Kind.REDUCTION)
def batch_norm_functional(
    c: Call,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> Sequence[Array]:
    """With the running statistics as they are after it."""
    if not training:
        y = _by_running(c, input, weight, bias, running_mean, running_var, eps)
        return y, _nothing(c, 1), _nothing(c, 2), running_mean, running_var
    y, mean, inverse, variance = _by_batch(c, input, weight, bias, eps)
    count = math.prod(input.shape) // input.shape[1]
    unbiased = p.formula(c.b, f"v * {count / max(count - 1, 1)!r}", v=_stored(c, 4, variance))
    after = [
        p.formula(c.b, "o + m * (n - o)", dtype=old.dtype, o=old, n=new, m=momentum)
        for old, new in ((running_mean, _stored(c, 3, mean)), (running_var, unbiased))
    ]
    return y, _stored(c, 1, mean), _stored(c, 2, inverse), *after
