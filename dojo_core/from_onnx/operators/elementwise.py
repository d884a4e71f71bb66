"""Functions element by element."""

from __future__ import annotations

import math
from typing import Any

from dojo_core import primitives as p
from dojo_core.from_onnx.arrays import joint, not_a_number, stored, wide
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import FLOATS, HALVES, Refusal, Tensor, bits, checked, dtype_of, known
from dojo_core.primitives.array import Array
from dojo_core.program.tree import Number

# An operator and the function of the Dojo's that it is.
_FUNCTIONS = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp",
    "Floor": "floor", "Log": "log", "Neg": "neg", "Round": "round", "Sigmoid": "sigmoid", "Sin": "sin",
    "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip

# An operator as a formula; its attributes are named as they are.
_FORMULAS = {
    "Elu": "select(x < 0, alpha * (exp(x) - 1), x)",
    "Celu": "max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)",
    "HardSigmoid": "max(min(alpha * x + beta, 1), 0)",
    "HardSwish": "x * max(min(x / 6 + 0.5, 1), 0)",
    "LeakyRelu": "select(x < 0, alpha * x, x)",
    "Mish": "x * tanh(max(x, 0) + log(1 + exp(-abs(x))))",
    "Reciprocal": "1 / x",
    "Selu": "gamma * select(x > 0, x, alpha * (exp(x) - 1))",
    "Shrink": "select(x < -lambd, x + bias, select(x > lambd, x - bias, 0))",
    "Softplus": "max(x, 0) + log(1 + exp(-abs(x)))",
    "Softsign": "x / (1 + abs(x))",
    "Swish": "x * sigmoid(alpha * x)",
    "ThresholdedRelu": "select(x > alpha, x, 0)",
}

_BINARY = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_BITWISE = {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}


@operator(*_FUNCTIONS)
def function(c: Call) -> Array:
    x = c.computed(0)
    if c.name in ("Ceil", "Floor", "Round") and x.dtype not in FLOATS:
        return x
    return c.map(_FUNCTIONS[c.name], x)


@operator(*_FORMULAS)
def formula(c: Call) -> Array:
    text = _FORMULAS[c.name]
    named: dict[str, Any] = {
        name: float(c.attribute(name)) for name in ("alpha", "beta", "gamma", "lambd", "bias") if name in text
    }
    x = c.computed(0)
    if x.dtype not in FLOATS:  # Shrink has integers too
        return c.convert(c.formula(text, x=c.convert(x, "f64"), **named), x.dtype)
    return c.formula(text, x=x, **named)


@operator("Sign")
def sign(c: Call) -> Array:
    return c.map("sign", c.computed(0))


@operator("Relu")
def relu(c: Call) -> Array:
    return c.max(c.computed(0), 0)


@operator("PRelu")
def prelu(c: Call) -> Array:
    return c.formula("select(x < 0, slope * x, x)", x=c.computed(0), slope=c.computed(1))


@operator("Gelu")
def gelu(c: Call) -> Array:
    if c.choice("approximate", ("none", "tanh")) == "tanh":
        return c.formula(
            "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))", x=c.computed(0)
        )
    return c.formula("0.5 * x * (1 + erf(x * 0.7071067811865476))", x=c.computed(0))


@operator(*_BINARY)
def binary(c: Call) -> Array:
    return c.map(_BINARY[c.name], c.computed(0), c.computed(1))


@operator("Sum", "Max", "Min", "Mean")
def several(c: Call) -> Array:
    arrays = [c.computed(k) for k in range(len(c.inputs))]
    result = arrays[0]
    for each in arrays[1:]:
        result = c.map({"Max": "max", "Min": "min"}.get(c.name, "+"), result, each)
    return c.mul(result, 1 / len(arrays)) if c.name == "Mean" else result


@operator("Pow")
def power(c: Call) -> Array:
    base, exponent = c.computed(0), c.computed(1)
    if base.dtype in FLOATS:
        one = math.prod(exponent.shape) == 1 and len(exponent.shape) <= len(base.shape)
        if one and isinstance(exponent.operand, Number) and exponent.operand.value in p.WHOLE_POWERS:
            return c.formula(p.WHOLE_POWERS[exponent.operand.value], x=base)
        wide = "f64" if "f64" in (base.dtype, exponent.dtype) or exponent.dtype in ("i64", "u64") else "f32"
        if exponent.dtype not in FLOATS:
            exponent = c.convert(exponent, wide)
        result = c.map("pow", base if wide == "f32" else c.convert(base, wide), exponent, dtype=wide)
        return c.convert(result, joint([base.dtype]))
    result = c.map("pow", c.convert(base, "f64"), c.convert(exponent, "f64"), dtype="f64")
    return c.convert(result, base.dtype)


@operator("Mod")
def modulo(c: Call) -> Array:
    a, b = c.computed(0), c.computed(1)
    if a.dtype in FLOATS:
        wide = joint([a.dtype])
        remainder = c.map("fmod", a, b)
        return c.convert(remainder if c.flag("fmod") else _floored(c, remainder, b), wide)
    remainder = c.sub(a, c.mul(b, c.div(a, b)))
    if c.flag("fmod") or a.dtype.startswith("u"):
        return remainder
    return _floored(c, remainder, b)


def _floored(c: Call, remainder: Array, b: Array) -> Array:
    """A remainder with the sign of the divisor."""
    return c.formula("select(select(r < 0, b > 0, select(r > 0, b < 0, 0)), r + b, r)", r=remainder, b=b)


@operator("Clip")
def clip(c: Call) -> Array:
    x = c.computed(0)
    if c.since < 11:
        return c.clamp(x, float(c.attribute("min", float("-inf"))), float(c.attribute("max", float("inf"))))
    if c.has(1):
        x = c.max(x, c.computed(1))
    return c.min(x, c.computed(2)) if c.has(2) else x


@operator("Where")
def where(c: Call) -> Array:
    yes, no = c.computed(1), c.computed(2)
    return c.where(c.array(0), yes, no)


# ---------------------------------------------------------------------------- conversions


@operator("Cast", "CastLike")
def cast(c: Call) -> Tensor:
    element = dtype_of(c.attribute("to")) if c.name == "Cast" else c.element(1)
    tensor = c.tensor(0)
    if tensor.element == element:
        return tensor
    if tensor.values is not None and tensor.size <= 4096:
        folded = _cast_known(tensor, element)
        if folded is not None:
            return folded
    array = cast_array(c, c.array(0), tensor.element, element)
    return Tensor(element, array.shape, array=array, sources=c.sources)


def _cast_known(tensor: Tensor, element: str) -> Tensor | None:
    plain = ("f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")
    if tensor.element in plain and element in plain and (tensor.size == 1 or element not in FLOATS):
        assert tensor.values is not None
        return known(tensor.values, element)
    return None


# Beyond these a number that is not saturated is NaN: half way to the next one, taken where it is even.
_UNSATURATED = {"f8e4m3fn": "abs(x) > 464", "f8e4m3fnuz": "abs(x) >= 248", "f8e5m2fnuz": "abs(x) >= 61440"}


def cast_array(c: Call, array: Array, source: str, element: str) -> Array:
    """An array as another dtype: of floating-point numbers towards zero, of f16 and bf16 rounded now."""
    checked(element)
    if source in HALVES and array.dtype == "f32":  # what was left unrounded is rounded where it is cast
        array = c.convert(array, source)
    if (
        element in ("u4", "i4", "u2", "i2") and source in FLOATS
    ):  # the bits of a whole number, where the text's saturate
        array = c.convert(c.wide(array), "i32")
    if element.startswith("f8") and element != "f8e8m0fnu" and not c.attribute("saturate", 1):
        if element == "f8e5m2":  # which has infinities
            saturated = c.convert(array, element)
            for sign, beyond in ((">=", 61440), ("<=", -61440)):
                infinity = math.copysign(math.inf, beyond)
                saturated = c.where(c.map(sign, array, beyond), infinity, saturated, dtype=element)
            return saturated
        text = f"select({_UNSATURATED[element]}, nan, x)"
        array = c.formula(text, x=c.wide(array), nan=not_a_number(c.b, wide(array.dtype)))
    return c.convert(array, element)


@operator("BitCast")
def bitcast(c: Call) -> Tensor:
    """The same bits as another type; between integers a conversion, which wraps around."""
    source, element = c.element(0), dtype_of(c.attribute("to"))
    if source == element:
        return c.tensor(0)
    if bits(source) != bits(element):
        raise Refusal(f"{source} and {element} have not as many bits.", "Mend the model.")
    if source in FLOATS or element in FLOATS:
        if bits(source) < 16:
            raise Refusal(
                f"Texts do not see the bits of {source} as {element}.", "Cast its bits outside of the kernel."
            )
        array = p.bitcast(c.b, stored(c.b, c.array(0), source), element)
    else:
        array = c.convert(c.array(0), element)
    return Tensor(element, array.shape, array=array, sources=c.sources)


# ---------------------------------------------------------------------------- bits


@operator(*_BITWISE)
def bitwise(c: Call) -> Array:
    return c.map(_BITWISE[c.name], c.array(0), c.array(1))


@operator("BitwiseNot")
def bitwise_not(c: Call) -> Array:
    return c.map("not", c.array(0))


@operator("BitShift")
def shift(c: Call) -> Array:
    direction = c.choice("direction", ("LEFT", "RIGHT"))
    return c.map("shl" if direction == "LEFT" else "shr", c.array(0), c.array(1))


@operator("Dropout")
def dropout(c: Call) -> tuple[Array, Tensor | None]:
    """In inference what comes in; in training only where nothing is dropped."""
    training = c.since >= 12 and c.has(2) and bool(c.known(2).reshape(-1)[0])
    if training:
        ratio = float(c.known(1).reshape(-1)[0]) if c.has(1) else 0.5
        if ratio != 0:
            raise Refusal(
                "In training it drops at random, and a kernel's results are those of its inputs.",
                "Export the model for inference (training_mode=False).",
            )
    mask: Tensor | None = None
    if c.wants(1):
        element = "bool" if c.since >= 10 else c.element(0)
        mask = Tensor(element, c.shape(0), array=c.number(1, element, c.shape(0)))
    return c.array(0), mask
