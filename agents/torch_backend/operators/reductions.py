"""Reductions over axes, places of extremes, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from agents.torch_backend.call import Call, aten, wide
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array, formula, gather, unsqueeze
from dojo_core.program.dtypes import holds

Axes = Sequence[int] | int | None


def axes_of(array: Array, dim: Axes) -> tuple[int, ...]:
    """ATen's ``dim`` as axes counted from 0: none and an empty list are all, a scalar has an axis too."""
    rank = len(array.axes)
    if dim is None or dim == []:
        return tuple(range(rank))
    named = [dim] if isinstance(dim, int) else dim
    return tuple(axis % rank for axis in named) if rank else ()


def reduced(c: Call, accumulation: str, self: Array, dim: Axes, keepdim: bool, dtype: str) -> Array:
    """An accumulation over axes in ``dtype``; elements that it does not hold are converted to it."""
    if not holds(dtype, self.dtype):
        self = p.convert(c.b, self, dtype)
    return p.reduce(c.b, accumulation, self, axes_of(self, dim), keepdim, dtype)


@aten("sum.dim_IntList", kind=Kind.REDUCTION)
def sum_(c: Call, self: Array, dim: Axes = None, keepdim: bool = False, dtype: str | None = None) -> Array:
    return reduced(c, "+", self, dim, keepdim, c.dtype)


@aten("sum", kind=Kind.REDUCTION)
def sum_all(c: Call, self: Array, dtype: str | None = None) -> Array:
    return reduced(c, "+", self, None, False, c.dtype)


@aten("prod.dim_int", kind=Kind.REDUCTION)
def prod(c: Call, self: Array, dim: int, keepdim: bool = False, dtype: str | None = None) -> Array:
    return reduced(c, "*", self, dim, keepdim, c.dtype)


@aten("prod", kind=Kind.REDUCTION)
def prod_all(c: Call, self: Array, dtype: str | None = None) -> Array:
    return reduced(c, "*", self, None, False, c.dtype)


@aten("mean.dim", kind=Kind.REDUCTION)
def mean(c: Call, self: Array, dim: Axes = None, keepdim: bool = False, dtype: str | None = None) -> Array:
    return p.mean(c.b, c.converted(self), axes_of(self, dim), keepdim)


@aten("mean", kind=Kind.REDUCTION)
def mean_all(c: Call, self: Array, dtype: str | None = None) -> Array:
    return mean(c, self)


@aten("amax", kind=Kind.REDUCTION)
def amax(c: Call, self: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    return reduced(c, "max", self, dim, keepdim, c.dtype)


@aten("amin", kind=Kind.REDUCTION)
def amin(c: Call, self: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    return reduced(c, "min", self, dim, keepdim, c.dtype)


@aten("max", kind=Kind.REDUCTION)
def max_all(c: Call, self: Array) -> Array:
    return amax(c, self)


@aten("min", kind=Kind.REDUCTION)
def min_all(c: Call, self: Array) -> Array:
    return amin(c, self)


@aten("any", "any.dim", "any.dims", kind=Kind.REDUCTION)
def any_(c: Call, self: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    return reduced(c, "max", c.truth(self), dim, keepdim, "bool")


@aten("all", "all.dim", "all.dims", kind=Kind.REDUCTION)
def all_(c: Call, self: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    return reduced(c, "min", c.truth(self), dim, keepdim, "bool")


# ---------------------------------------------------------------------------- places of extremes


def _place(c: Call, accumulation: str, self: Array, dim: int | None, keepdim: bool) -> Array:
    if dim is None:
        flat = p.reshape(c.b, self, (math.prod(self.shape),))
        place = p.arg_reduce(c.b, accumulation, flat, 0)[1]
        return p.reshape(c.b, place, c.shape)
    if not self.axes:
        return p.filled(0, "i64", ())
    return p.arg_reduce(c.b, accumulation, self, dim, keepdim)[1]


@aten("argmax", kind=Kind.REDUCTION)
def argmax(c: Call, self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return _place(c, "max", self, dim, keepdim)


@aten("argmin", kind=Kind.REDUCTION)
def argmin(c: Call, self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return _place(c, "min", self, dim, keepdim)


def _extreme(c: Call, accumulation: str, self: Array, dim: int, keepdim: bool) -> Sequence[Array | None]:
    if not self.axes:
        return self, p.filled(0, "i64", ())
    if 1 not in c.wanted:
        return p.reduce(c.b, accumulation, self, dim, keepdim), None
    return p.arg_reduce(c.b, accumulation, self, dim, keepdim)


@aten("max.dim", kind=Kind.REDUCTION)
def max_dim(c: Call, self: Array, dim: int, keepdim: bool = False) -> Sequence[Array | None]:
    return _extreme(c, "max", self, dim, keepdim)


@aten("min.dim", kind=Kind.REDUCTION)
def min_dim(c: Call, self: Array, dim: int, keepdim: bool = False) -> Sequence[Array | None]:
    return _extreme(c, "min", self, dim, keepdim)


# ---------------------------------------------------------------------------- spread and length


def moments(c: Call, x: Array, axes: Sequence[int], correction: float = 0) -> tuple[Array, Array]:
    """The mean and the variance over axes, which are kept: of numbers in the dtype they are computed in."""
    count = math.prod(x.shape[k] for k in axes)
    mean = p.mean(c.b, x, axes, keepdims=True)
    square = p.formula(c.b, "(x - m) * (x - m)", x=x, m=mean)
    total = p.reduce(c.b, "+", square, axes, keepdims=True)
    if count <= correction:  # 0 / 0 is what PyTorch gives too
        return mean, p.formula(c.b, "(t - t) / z", t=total, z=p.elementwise(c.b, "*", total, 0))
    return mean, p.formula(c.b, f"t * {1 / (count - correction)!r}", t=total)


def _kept(c: Call, x: Array, axes: Sequence[int], keepdim: bool) -> Array:
    return x if keepdim else p.squeeze(c.b, x, axes)


def _spread(c: Call, self: Array, dim: Axes, correction: float | None, keepdim: bool) -> tuple[Array, Array]:
    axes = axes_of(self, dim)
    mean, variance = moments(c, c.widened(self), axes, 1 if correction is None else correction)
    return _kept(c, variance, axes, keepdim), _kept(c, mean, axes, keepdim)


@aten("var.correction", kind=Kind.REDUCTION)
def var(
    c: Call, self: Array, dim: Axes = None, correction: float | None = None, keepdim: bool = False
) -> Array:
    return c.converted(_spread(c, self, dim, correction, keepdim)[0])


@aten("std.correction", kind=Kind.REDUCTION)
def std(
    c: Call, self: Array, dim: Axes = None, correction: float | None = None, keepdim: bool = False
) -> Array:
    return c.map("sqrt", _spread(c, self, dim, correction, keepdim)[0])


@aten("var_mean.correction", kind=Kind.REDUCTION)
def var_mean(
    c: Call, self: Array, dim: Axes = None, correction: float | None = None, keepdim: bool = False
) -> Sequence[Array]:
    return [c.converted(x) for x in _spread(c, self, dim, correction, keepdim)]


def _norm(c: Call, x: Array, order: float, axes: Sequence[int], keepdim: bool) -> Array:
    """The norm of that order over axes, of numbers in the dtype they are computed in."""
    if math.isinf(order):
        size = p.elementwise(c.b, "abs", x)
        return c.converted(p.reduce(c.b, "max" if order > 0 else "min", size, axes, keepdim))
    if order == 0:
        counted = p.formula(c.b, "select(x != 0, 1, 0)", dtype=x.dtype, x=x)
        return c.converted(p.reduce(c.b, "+", counted, axes, keepdim))
    if order in (1, 2):
        power = p.formula(c.b, "abs(x)" if order == 1 else "x * x", x=x)
    else:
        power = p.formula(c.b, "pow(abs(x), o)", x=x, o=order)
    total = p.reduce(c.b, "+", power, axes, keepdim)
    if order == 1:
        return c.converted(total)
    return c.map("sqrt", total) if order == 2 else c.formula("pow(t, o)", t=total, o=1 / order)


@aten("linalg_vector_norm", kind=Kind.REDUCTION)
def vector_norm(
    c: Call, self: Array, ord: float = 2, dim: Axes = None, keepdim: bool = False, dtype: str | None = None
) -> Array:
    return _norm(c, c.widened(self), ord, axes_of(self, dim), keepdim)


@aten("_cdist_forward", kind=Kind.REDUCTION)
def distances(c: Call, x1: Array, x2: Array, p: float, compute_mode: int | None = None) -> Array:
    """Of each row of one from each row of the other."""
    rows, others = unsqueeze(c.b, c.widened(x1), [-2]), unsqueeze(c.b, c.widened(x2), [-3])
    apart = formula(c.b, "a - b", a=rows, b=others)
    return _norm(c, apart, p, [len(apart.axes) - 1], False)


@aten("_pdist_forward", kind=Kind.REDUCTION)
def distances_within(c: Call, self: Array, p: float = 2) -> Array:
    """Of each row from each later one."""
    x = c.widened(self)
    first, second = np.triu_indices(x.shape[0], 1)
    apart = formula(c.b, "a - b", a=gather(c.b, x, first, 0), b=gather(c.b, x, second, 0))
    return _norm(c, apart, p, [1], False)


# ---------------------------------------------------------------------------- softmax


@aten("_softmax", "softmax.int", kind=Kind.REDUCTION)
def softmax(c: Call, self: Array, dim: int, half_to_float: object = None) -> Array:
    if not self.axes:
        return p.filled(1, c.dtype, ())
    x = p.convert(c.b, self, wide(c.dtype))
    top = p.reduce(c.b, "max", x, dim, keepdims=True)
    power = p.formula(c.b, "exp(x - m)", x=x, m=top)
    return c.formula("e / s", e=power, s=p.reduce(c.b, "+", power, dim, keepdims=True))


@aten("_safe_softmax", kind=Kind.REDUCTION)
def safe_softmax(c: Call, self: Array, dim: int, dtype: object = None) -> Array:
    """As attention takes it: a row of -inf, of which nothing is seen, gives 0."""
    if not self.axes:
        return c.formula("select(x == i, 0, x - x + 1)", x=self, i=-math.inf)
    x = p.convert(c.b, self, wide(c.dtype))
    top = p.reduce(c.b, "max", x, dim, keepdims=True)
    finite = p.formula(c.b, "select(m == i, 0, m)", m=top, i=-math.inf)
    power = p.formula(c.b, "exp(x - m)", x=x, m=finite)
    total = p.reduce(c.b, "+", power, dim, keepdims=True)
    divisor = p.formula(c.b, "select(s == 0, 1, s)", s=total)
    return c.formula("e / s", e=power, s=divisor)


@aten("_log_softmax", "log_softmax.int", kind=Kind.REDUCTION)
def log_softmax(c: Call, self: Array, dim: int, half_to_float: object = None) -> Array:
    if not self.axes:
        return p.filled(0, c.dtype, ())
    x = p.convert(c.b, self, wide(c.dtype))
    top = p.reduce(c.b, "max", x, dim, keepdims=True)
    lower = p.formula(c.b, "x - m", x=x, m=top)
    total = p.reduce(c.b, "+", p.elementwise(c.b, "exp", lower), dim, keepdims=True)
    return c.formula("d - log(s)", d=lower, s=total)


@aten("logsumexp", kind=Kind.REDUCTION)
def logsumexp(c: Call, self: Array, dim: Axes, keepdim: bool = False) -> Array:
    x, axes = c.widened(self), axes_of(self, dim)
    top = p.reduce(c.b, "max", x, axes, keepdims=True)
    # Of infinities alone the largest is the result: inf - inf would be no number.
    top = p.formula(c.b, "select(isinf(m), 0, m)", dtype=x.dtype, m=top)
    total = p.reduce(c.b, "+", p.formula(c.b, "exp(x - m)", x=x, m=top), axes, keepdims=True)
    return _kept(c, c.formula("log(s) + m", s=total, m=top), axes, keepdim)
