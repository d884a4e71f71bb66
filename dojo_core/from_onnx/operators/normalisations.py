"""Normalisations that have no function body in the standard."""

from __future__ import annotations

import math

from dojo_core.from_onnx.arrays import Make
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array


def moments(c: Make, x: Array, axes: list[int]) -> tuple[Array, Array]:
    """The mean and the variance along axes, which are kept."""
    mean = c.mean(x, axes)
    return mean, c.mean(c.formula("(x - m) * (x - m)", x=x, m=mean), axes)


def _channels(c: Call, k: int) -> Array:
    """A vector of channels beside [N, C, …]."""
    return c.reshape(c.computed(k), (1, c.shape(k)[0], *[1] * max(c.rank(0) - 2, 0)))


@operator("BatchNormalization")
def batch_normalization(c: Call) -> list[Array | None]:
    x, epsilon = c.computed(0), float(c.attribute("epsilon", 1e-5))
    scale, bias = _channels(c, 1), _channels(c, 2)
    text = "(x - m) / sqrt(v + e) * s + b"
    if not (c.since >= 14 and c.flag("training_mode")):
        return [c.formula(text, x=x, m=_channels(c, 3), v=_channels(c, 4), e=epsilon, s=scale, b=bias)]
    axes = [k for k in range(c.rank(0)) if k != 1]
    mean, variance = moments(c, x, axes)
    momentum = float(c.attribute("momentum", 0.9))
    results: list[Array | None] = [c.formula(text, x=x, m=mean, v=variance, e=epsilon, s=scale, b=bias)]
    for k, new in ((3, mean), (4, variance)):
        running = c.formula(
            "r * f + n * g", r=c.computed(k), f=momentum, n=c.reshape(new, c.shape(k)), g=1 - momentum
        )
        results.append(running)
    return results


@operator("InstanceNormalization")
def instance_normalization(c: Call) -> Array:
    x, epsilon = c.computed(0), float(c.attribute("epsilon", 1e-5))
    mean, variance = moments(c, x, list(range(2, c.rank(0))))
    return c.formula(
        "(x - m) / sqrt(v + e) * s + b",
        x=x,
        m=mean,
        v=variance,
        e=epsilon,
        s=_channels(c, 1),
        b=_channels(c, 2),
    )


@operator("LayerNormalization")
def layer_normalization(c: Call) -> list[Array | None]:
    x, epsilon = c.computed(0), float(c.attribute("epsilon", 1e-5))
    axis = c.axis(default=-1)
    mean, variance = moments(c, x, list(range(axis, c.rank(0))))
    inverse = c.formula("1 / sqrt(v + e)", v=variance, e=epsilon)
    result = c.formula("(x - m) * i * s", x=x, m=mean, i=inverse, s=c.computed(1))
    if c.has(2):
        result = c.add(result, c.computed(2))
    return [result, mean, inverse]


@operator("RMSNormalization")
def rms_normalization(c: Call) -> Array:
    x, epsilon = c.computed(0), float(c.attribute("epsilon", 1e-5))
    axis = c.axis(default=-1)
    square = c.mean(c.formula("x * x", x=x), list(range(axis, c.rank(0))))
    return c.formula("x / sqrt(q + e) * s", x=x, q=square, e=epsilon, s=c.computed(1))


@operator("LRN")
def local_response(c: Call) -> Array:
    """Over neighbouring channels: windows over a padded copy of the squares."""
    x, size = c.computed(0), int(c.attribute("size"))
    alpha, beta, bias = (float(c.attribute(name)) for name in ("alpha", "beta", "bias"))
    if c.rank(0) < 2 or size < 1:
        raise Refusal(
            f"It takes [N, C, …] and a size of at least 1, not {list(c.shape(0))} and {size}.",
            "Mend the model.",
        )
    before = (size - 1) // 2
    pads = [(0, 0)] * c.rank(0)
    pads[1] = before, math.ceil((size - 1) / 2)
    windows = c.window(c.pad(c.formula("x * x", x=x), pads), 1, size)
    total = c.reduce("+", windows, [c.rank(0)], False)
    return c.formula("x / pow(k + a * s, b)", x=x, s=total, a=alpha / size, b=beta, k=bias)
