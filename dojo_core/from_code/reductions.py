"""Functions along axes: sums, means, extremes and their places, softmax, norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dojo_core.from_code.functions import (
    Algebra,
    Axis,
    Value,
    axes_of,
    elementwise,
    floating,
    function,
    is_bool,
)
from dojo_core.from_code.numeric import Numeric
from dojo_core.primitives import BuildError


def _reduction(accumulation: str) -> Callable[..., Value]:
    def reduction(m: Algebra, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
        axes = axes_of(m, x, axis)
        counted: Value = m.convert(x, "i32") if is_bool(x) else x
        return m.reduce(accumulation, counted, axes, bool(keepdims))

    return reduction


for _names, _accumulation in (("sum", "+"), ("prod", "*"), ("max amax", "max"), ("min amin", "min")):
    function(*_names.split())(_reduction(_accumulation))


def _count(m: Algebra, x: Value, axis: Axis) -> int:
    return math.prod(m.shape(x)[k] for k in axes_of(m, x, axis))


def _total(m: Algebra, x: Value, axis: Axis, keepdims: bool) -> Value:
    return m.reduce("+", floating(m, x), axes_of(m, x, axis), bool(keepdims))


@function("mean", judge=lambda x, axis=None, keepdims=False: np.mean(x, _np_axis(axis), keepdims=keepdims))
def mean(m: Algebra, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
    return elementwise(m, "/", _total(m, x, axis, keepdims), _count(m, x, axis))


def _np_axis(axis: Axis) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


@function(
    "var",
    judge=lambda x, axis=None, ddof=0, keepdims=False: np.var(
        x, _np_axis(axis), ddof=int(ddof), keepdims=keepdims
    ),
)
def var(m: Algebra, x: Value, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Value:
    centred = elementwise(m, "-", floating(m, x), mean(m, x, axis, True))
    total = _total(m, elementwise(m, "*", centred, centred), axis, keepdims)
    return elementwise(m, "/", total, _count(m, x, axis) - int(ddof))


@function(
    "std",
    judge=lambda x, axis=None, ddof=0, keepdims=False: np.std(
        x, _np_axis(axis), ddof=int(ddof), keepdims=keepdims
    ),
)
def std(m: Algebra, x: Value, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Value:
    return elementwise(m, "sqrt", var(m, x, axis, ddof, keepdims))


def _only(m: Algebra, x: Value, axis: Axis) -> int:
    axes = axes_of(m, x, axis)
    if len(axes) != 1:
        raise BuildError("This goes along one axis: say which, axis=-1.")
    return axes[0]


@function("argmax")
def argmax(m: Algebra, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
    return m.place("max", x, _only(m, x, axis), bool(keepdims))


@function("argmin")
def argmin(m: Algebra, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
    return m.place("min", x, _only(m, x, axis), bool(keepdims))


@function("cumsum")
def cumsum(m: Algebra, x: Value, axis: Axis = None) -> Value:
    return m.scan("+", x, _only(m, x, axis))


@function("cumprod")
def cumprod(m: Algebra, x: Value, axis: Axis = None) -> Value:
    return m.scan("*", x, _only(m, x, axis))


def _np_norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    return np.sqrt(np.sum(np.abs(x) ** 2, _np_axis(axis), keepdims=keepdims))


@function("norm", judge=_np_norm)
def norm(m: Algebra, x: Value, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Value:
    if ord not in (None, 2) or (ord == 2 and len(axes_of(m, x, axis)) != 1):
        raise BuildError("Of norms only the square root of the sum of squares is known.")
    return elementwise(m, "sqrt", _total(m, elementwise(m, "*", x, x), axis, keepdims))


# ---------------------------------------------------------------------------- softmax and its like


def np_softmax(x: Any, axis: int = -1) -> Any:
    return np.exp(x - _np_logsumexp(x, axis, True))


def _np_logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    reduced: Any = np.logaddexp.reduce
    return reduced(x, axis=_np_axis(axis), keepdims=keepdims)


def _shifted(m: Algebra, x: Value, axis: Axis) -> Value:
    return elementwise(m, "-", x, m.reduce("max", x, axes_of(m, x, axis), True))


@function("softmax", judge=np_softmax)
def softmax(m: Algebra, x: Value, axis: int = -1) -> Value:
    e = elementwise(m, "exp", _shifted(m, x, axis))
    return elementwise(m, "/", e, _total(m, e, axis, True))


@function("log_softmax", judge=lambda x, axis=-1: x - _np_logsumexp(x, axis, True))
def log_softmax(m: Algebra, x: Value, axis: int = -1) -> Value:
    shifted = _shifted(m, x, axis)
    total = _total(m, elementwise(m, "exp", shifted), axis, True)
    return elementwise(m, "-", shifted, elementwise(m, "log", total))


@function("logsumexp", judge=_np_logsumexp)
def logsumexp(m: Algebra, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
    axes = axes_of(m, x, axis)
    total = _total(m, elementwise(m, "exp", _shifted(m, x, axis)), axis, keepdims)
    return elementwise(m, "+", elementwise(m, "log", total), m.reduce("max", x, axes, bool(keepdims)))


def _last(m: Algebra, x: Value, over: Value, *scales: Value) -> tuple[int, ...]:
    """The axes that a shape at the end stands for; what is given of ``scales`` has that shape."""
    sizes = (over,) if isinstance(over, int) else tuple(over)
    rank = len(m.shape(x))
    if m.shape(x)[rank - len(sizes) :] != sizes:
        raise BuildError(f"{list(sizes)} are not the last sizes of {list(m.shape(x))}.")
    for each in scales:
        if each is not None and m.shape(each) != sizes:
            raise BuildError(f"Weights and bias have the shape {list(sizes)}, not {list(m.shape(each))}.")
    return tuple(range(rank - len(sizes), rank))


def scaled(m: Algebra, y: Value, weight: Value, bias: Value) -> Value:
    y = y if weight is None else elementwise(m, "*", y, weight)
    return y if bias is None else elementwise(m, "+", y, bias)


def _np_layer_norm(x: Any, over: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = _last(Numeric(), x, over, weight, bias)
    y = (x - np.mean(x, axes, keepdims=True)) / np.sqrt(np.var(x, axes, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


@function("layer_norm", judge=_np_layer_norm)
def layer_norm(
    m: Algebra, x: Value, over: Value, weight: Value = None, bias: Value = None, eps: float = 1e-5
) -> Value:
    axes = _last(m, x, over, weight, bias)
    centred = elementwise(m, "-", x, mean(m, x, axes, True))
    spread = mean(m, elementwise(m, "*", centred, centred), axes, True)
    scale = elementwise(m, "sqrt", elementwise(m, "+", spread, eps))
    return scaled(m, elementwise(m, "/", centred, scale), weight, bias)


def _np_rms_norm(x: Any, over: Any, weight: Any = None, eps: float = 1.1920929e-07) -> Any:
    axes = _last(Numeric(), x, over, weight)
    return x / np.sqrt(np.mean(x**2, axes, keepdims=True) + eps) * (1 if weight is None else weight)


@function("rms_norm", judge=_np_rms_norm)
def rms_norm(m: Algebra, x: Value, over: Value, weight: Value = None, eps: float = 1.1920929e-07) -> Value:
    power = mean(m, elementwise(m, "*", x, x), _last(m, x, over, weight), True)
    scale = elementwise(m, "rsqrt", elementwise(m, "+", power, eps))
    return scaled(m, elementwise(m, "*", x, scale), weight, None)
