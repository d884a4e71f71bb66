"""Functions element by element."""

from __future__ import annotations

import math

from agents.torch_backend.call import Call, Value, aten, is_float
from agents.torch_backend.refusal import Refusal
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array

# ATen's names of what the text form calls alike.
_SAME = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1",
    "log", "log1p", "log2", "neg", "relu", "rsqrt", "sigmoid", "sign", "silu", "sin", "sinh", "sqrt", "tan",
    "tanh",
)  # fmt: skip
_TO_WHOLE = ("ceil", "floor", "round", "trunc")
_FORMULAS = {
    "erfc": "1 - erf(x)",
    "hardsigmoid": "min(max(x + 3, 0), 6) / 6",
    "hardswish": "x * (min(max(x + 3, 0), 6) / 6)",
    "log10": f"log(x) * {1 / math.log(10)}",
    "log_sigmoid": "min(x, 0) - log1p(exp(-abs(x)))",
    "mish": "x * tanh(softplus(x))",
    "reciprocal": "1 / x",
    "square": "x * x",
}


def _function(function: str) -> None:
    @aten(function, kind=Kind.POINTWISE)
    def translate(c: Call, self: Array) -> Array:
        return c.map(function, self)


def _rounding(function: str) -> None:
    @aten(function, kind=Kind.POINTWISE)
    def translate(c: Call, self: Array) -> Array:
        return c.map(function, self) if is_float(self.dtype) else self


def _formula(name: str, text: str) -> None:
    @aten(name, kind=Kind.POINTWISE)
    def translate(c: Call, self: Array) -> Array:
        return c.formula(text, x=self)


for _name in _SAME:
    _function(_name)
for _name in _TO_WHOLE:
    _rounding(_name)
for _name, _text in _FORMULAS.items():
    _formula(_name, _text)


# ---------------------------------------------------------------------------- arithmetic


@aten("add.Tensor", "add.Scalar", kind=Kind.POINTWISE)
def add(c: Call, self: Value, other: Value, alpha: float = 1) -> Array:
    if c.dtype == "bool":
        return p.elementwise(c.b, "or", c.truth(self), c.truth(other))
    return c.map("+", self, other) if alpha == 1 else c.formula("x + a * y", x=self, y=other, a=alpha)


@aten("sub.Tensor", "sub.Scalar", kind=Kind.POINTWISE)
def sub(c: Call, self: Value, other: Value, alpha: float = 1) -> Array:
    return c.map("-", self, other) if alpha == 1 else c.formula("x - a * y", x=self, y=other, a=alpha)


@aten("rsub.Tensor", "rsub.Scalar", kind=Kind.POINTWISE)
def rsub(c: Call, self: Value, other: Value, alpha: float = 1) -> Array:
    return sub(c, other, self, alpha)


@aten("mul.Tensor", "mul.Scalar", kind=Kind.POINTWISE)
def mul(c: Call, self: Value, other: Value) -> Array:
    if c.dtype == "bool":
        return p.elementwise(c.b, "and", c.truth(self), c.truth(other))
    return c.map("*", self, other)


@aten("div.Tensor", "div.Scalar", kind=Kind.POINTWISE)
def div(c: Call, self: Value, other: Value) -> Array:
    return c.map("/", self, other)


@aten("div.Tensor_mode", "div.Scalar_mode", kind=Kind.POINTWISE)
def div_mode(c: Call, self: Value, other: Value, rounding_mode: str | None = None) -> Array:
    if rounding_mode is None:
        return div(c, self, other)
    if is_float(c.dtype):
        return c.formula(f"{rounding_mode}(x / y)", x=self, y=other)
    if rounding_mode == "trunc":
        return c.map("/", self, other)
    return c.formula("(x - mod(x, y)) / y", x=self, y=other)


@aten("floor_divide", kind=Kind.POINTWISE)
def floor_divide(c: Call, self: Value, other: Value) -> Array:
    return div_mode(c, self, other, "floor")


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor", kind=Kind.POINTWISE)
def remainder(c: Call, self: Value, other: Value) -> Array:
    return c.map("mod", self, other)


@aten("fmod.Tensor", "fmod.Scalar", kind=Kind.POINTWISE)
def fmod(c: Call, self: Value, other: Value) -> Array:
    return c.map("fmod", self, other)


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", kind=Kind.POINTWISE)
def power(c: Call, self: Value, exponent: Value) -> Array:
    if not isinstance(exponent, Array) and exponent in _POWERS and (exponent >= 0 or is_float(c.dtype)):
        return c.formula(_POWERS[exponent], x=self)
    if is_float(c.dtype):
        return c.map("pow", self, exponent)
    exact = [p.convert(c.b, v, "f64") if isinstance(v, Array) else v for v in (self, exponent)]
    return c.converted(p.elementwise(c.b, "pow", *exact, dtype="f64"))


# Powers as PyTorch computes them: the root of a negative zero is one too.
_POWERS = p.WHOLE_POWERS | {0.5: "sqrt(x)", -0.5: "rsqrt(x)"}


@aten("atan2", kind=Kind.POINTWISE)
def atan2(c: Call, self: Value, other: Value) -> Array:
    """In the left half plane by half a turn further, on the axis a quarter; the signs of zeros count as +."""
    text = (
        "select(x > 0, atan(y / x), select(x < 0, atan(y / x) + select(y >= 0, pi, -1 * pi), "
        "select(y > 0, pi / 2, select(y < 0, pi / -2, 0))))"
    )
    return c.formula(text, y=self, x=other, pi=math.pi)


@aten("addcmul", kind=Kind.POINTWISE)
def addcmul(c: Call, self: Array, tensor1: Array, tensor2: Array, value: float = 1) -> Array:
    return c.formula("x + v * y * z", x=self, y=tensor1, z=tensor2, v=value)


@aten("addcdiv", kind=Kind.POINTWISE)
def addcdiv(c: Call, self: Array, tensor1: Array, tensor2: Array, value: float = 1) -> Array:
    return c.formula("x + v * y / z", x=self, y=tensor1, z=tensor2, v=value)


@aten("lerp.Tensor", "lerp.Scalar", kind=Kind.POINTWISE)
def lerp(c: Call, self: Array, end: Array, weight: Value) -> Array:
    return c.formula("x + w * (y - x)", x=self, y=end, w=weight)


# ---------------------------------------------------------------------------- bounds


@aten("maximum", kind=Kind.POINTWISE)
def maximum(c: Call, self: Value, other: Value) -> Array:
    return c.map("max", self, other)


@aten("minimum", kind=Kind.POINTWISE)
def minimum(c: Call, self: Value, other: Value) -> Array:
    return c.map("min", self, other)


def _number(c: Call, function: str, self: Value, other: Value) -> Array:
    """Of a number and NaN the number."""
    if not is_float(c.dtype):
        return c.map(function, self, other)
    return c.formula(f"select(isnan(a), b, select(isnan(b), a, {function}(a, b)))", a=self, b=other)


@aten("fmax", kind=Kind.POINTWISE)
def greatest_number(c: Call, self: Value, other: Value) -> Array:
    return _number(c, "max", self, other)


@aten("fmin", kind=Kind.POINTWISE)
def least_number(c: Call, self: Value, other: Value) -> Array:
    return _number(c, "min", self, other)


@aten("clamp", "clamp.Tensor", kind=Kind.POINTWISE)
def clamp(c: Call, self: Array, min: Value | None = None, max: Value | None = None) -> Array:
    given = {name: bound for name, bound in (("low", min), ("high", max)) if bound is not None}
    text = {(): "1 * x", ("low",): "max(x, low)", ("high",): "min(x, high)"}.get(tuple(given))
    return c.formula(text or "min(max(x, low), high)", x=self, **given)


@aten("clamp_min", "clamp_min.Tensor", kind=Kind.POINTWISE)
def clamp_min(c: Call, self: Array, min: Value) -> Array:
    return clamp(c, self, min)


@aten("clamp_max", "clamp_max.Tensor", kind=Kind.POINTWISE)
def clamp_max(c: Call, self: Array, max: Value) -> Array:
    return clamp(c, self, None, max)


@aten("hardtanh", kind=Kind.POINTWISE)
def hardtanh(c: Call, self: Array, min_val: float = -1, max_val: float = 1) -> Array:
    return clamp(c, self, min_val, max_val)


@aten("relu6", kind=Kind.POINTWISE)
def relu6(c: Call, self: Array) -> Array:
    return clamp(c, self, 0, 6)


# ---------------------------------------------------------------------------- activations


@aten("elu", kind=Kind.POINTWISE)
def elu(c: Call, self: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Array:
    below = f"{alpha} * expm1(x)" if input_scale == 1 else f"{alpha} * expm1({input_scale} * x)"
    text = f"select(x > 0, x, {below})"
    return c.formula(text if scale == 1 else f"{scale} * {text}", x=self)


@aten("leaky_relu", kind=Kind.POINTWISE)
def leaky_relu(c: Call, self: Array, negative_slope: float = 0.01) -> Array:
    return c.formula("select(x > 0, x, s * x)", x=self, s=negative_slope)


@aten("gelu", kind=Kind.POINTWISE)
def gelu(c: Call, self: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return c.formula("0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))", x=self)
    return c.formula("0.5 * x * (1 + erf(x * 0.7071067811865476))", x=self)


@aten("softplus", kind=Kind.POINTWISE)
def softplus(c: Call, self: Array, beta: float = 1, threshold: float = 20) -> Array:
    # From 20 on, log1p(exp(-x)) is less than half a last place of x in f32: nothing is selected.
    if threshold >= 20 and abs(beta) <= 1 and c.dtype != "f64":
        return c.formula("softplus(b * x) / b", x=self, b=beta)
    return c.formula("select(b * x > t, x, softplus(b * x) / b)", x=self, b=beta, t=threshold)


@aten("threshold", kind=Kind.POINTWISE)
def threshold(c: Call, self: Array, threshold: float, value: float) -> Array:
    return c.formula("select(x <= t, v, x)", x=self, t=threshold, v=value)


@aten("_prelu_kernel", kind=Kind.POINTWISE)
def prelu(c: Call, self: Array, weight: Array) -> Array:
    return c.formula("select(x > 0, x, w * x)", x=self, w=weight)


# ---------------------------------------------------------------------------- conversions and copies


@aten("_to_copy", kind=Kind.POINTWISE)
def to_copy(c: Call, self: Array, dtype: str | None = None) -> Array:
    if c.dtype == "bool":
        return c.truth(self)
    return c.converted(self)


@aten("clone", "alias", "detach", "lift_fresh_copy", "contiguous", kind=Kind.VIEW)
def unchanged(c: Call, self: Array) -> Array:
    return self


@aten("copy", kind=Kind.POINTWISE)
def copy(c: Call, self: Array, src: Array) -> Array:
    return p.broadcast(c.b, c.truth(src) if c.dtype == "bool" else c.converted(src), self.shape)


@aten("native_dropout", kind=Kind.POINTWISE)
def dropout(c: Call, input: Array, p: float, train: bool | None) -> Array:
    if train is not False and p > 0:
        raise Refusal("dropout in training draws random numbers", "call model.eval()")
    return input
