"""The functions of NumPy and PyTorch that are known: what each is by an algebra of arrays.

A function takes the algebra first (``Numeric``: values; ``Symbolic``: passes of a program), then what the
text gives it. Where one is put together of several operations, ``judge`` has it again, in NumPy and in other
words, so that the check of a translation does not stand on the definition that it checks.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo_core.from_code import numeric
from dojo_core.from_code.numeric import Numeric
from dojo_core.from_code.symbolic import Symbolic
from dojo_core.primitives import Array, BuildError


class Never(BuildError):
    """What no shapes mend."""


Algebra = Numeric | Symbolic
Value = Any  # an array of the algebra, or a number
Axis = int | tuple[int, ...] | list[int] | None


@dataclass(frozen=True)
class Function:
    """``call`` takes the algebra first; ``judge``, where there is one, NumPy's arrays alone."""

    name: str
    call: Callable[..., Value]
    judge: Callable[..., Value] | None = None

    def __call__(self, m: Algebra, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """Raises BuildError where the arguments are none of it."""
        named = {ALIASES.get(name, name): value for name, value in keywords.items()}
        signature = inspect.signature(self.call)
        try:
            bound = signature.bind(m, *arguments, **named)
        except TypeError:
            takes = ", ".join(list(signature.parameters)[1:])
            raise Never(f"{self.name} takes {takes}.") from None
        if self.judge is not None and isinstance(m, Numeric):
            judged = self.judge(*map(_counted, bound.args[1:]), **bound.kwargs)
            return np.asarray(judged) if isinstance(judged, np.generic) else judged  # of no axes
        return self.call(*bound.args, **bound.kwargs)


def _counted(value: Value) -> Value:
    """Truth as numbers: of it alone NumPy makes numbers of 16 bits."""
    return value.astype(float) if isinstance(value, np.ndarray) and value.dtype == bool else value


# What libraries call the same parameter.
ALIASES = {
    "dim": "axis", "keepdim": "keepdims", "input": "x", "a": "x", "x1": "x", "x2": "y", "other": "y",
    "b": "y",
    "mat2": "y", "dims": "axis", "axes": "axis", "newshape": "shape", "size": "shape", "min": "low",
    "max": "high", "a_min": "low", "a_max": "high", "normalized_shape": "over", "fill_value": "value",
    "unbiased": "ddof", "correction": "ddof", "condition": "c",
}  # fmt: skip

FUNCTIONS: dict[str, Function] = {}


def function(
    *names: str, judge: Callable[..., Value] | None = None
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Known under these names."""

    def add(call: Callable[..., Value]) -> Callable[..., Value]:
        FUNCTIONS.update({name: Function(name, call, judge) for name in names})
        return call

    return add


def is_array(value: object) -> bool:
    return isinstance(value, Array | np.ndarray)


def is_number(value: object) -> bool:
    return isinstance(value, int | float)


# ---------------------------------------------------------------------------- element by element

_SAME = (  # in libraries and in the text form
    "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "floor", "ceil",
    "trunc", "isnan", "isinf", "sign", "fmod", "abs", "relu", "silu", "softplus", "softsign", "pow",
)  # fmt: skip

# Names that libraries have for a function of the text form, or one that is put together of a few.
ELEMENTWISE = {
    **{
        name: name
        for name in _SAME
    },
    "absolute": "abs", "fabs": "abs", "rint": "round", "round": "round", "fix": "trunc", "negative": "neg",
    "neg": "neg", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh", "expit": "sigmoid", "power": "pow", "float_power": "pow",
    "add": "+", "subtract": "-", "sub": "-", "multiply": "*", "mul": "*", "divide": "/", "div": "/",
    "true_divide": "/", "maximum": "max", "minimum": "min", "mod": "mod", "remainder": "mod",
    "less": "<", "lt": "<", "less_equal": "<=", "le": "<=", "greater": ">", "gt": ">", "greater_equal": ">=",
    "ge": ">=", "equal": "==", "eq": "==", "not_equal": "!=", "ne": "!=", "logical_and": "and",
    "logical_or": "or", "logical_xor": "xor", "logical_not": "not", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_not": "not", "invert": "not",
}  # fmt: skip

_OF_ANY_NUMBERS = {
    "+", "-", "*", "<", "<=", ">", ">=", "==", "!=", "max", "min", "mod", "fmod", "and", "or", "xor", "not",
    "neg", "abs", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "select", "relu", "shl", "shr",
}  # fmt: skip

_ARITHMETIC = {"+", "-", "*", "neg", "abs", "mod", "fmod"}  # of truth values: of 0 and 1


def elementwise(m: Algebra, name: str, *operands: Value) -> Value:
    """One function of the text form over arrays and numbers; of numbers alone, a number."""
    for each in operands:
        if not (is_array(each) or is_number(each)):
            raise Never(f"{_shown(each)} is neither an array nor a number.")
    if all(map(is_number, operands)):
        return _of_numbers(name, operands)
    values = operands[1:] if name == "select" else operands
    real = any(m.is_float(x) if is_array(x) else isinstance(x, float) for x in values)
    if real or name not in _OF_ANY_NUMBERS:  # integers beside reals are reals, as in NumPy
        operands = (*operands[: -len(values)], *(floating(m, each) for each in values))
    elif name in _ARITHMETIC and not any(is_array(x) and not is_bool(x) for x in operands):
        operands = tuple(m.convert(x, "i32") if is_array(x) else x for x in operands)
    if name == "pow" and is_number(operands[1]):
        x, exponent = operands
        if exponent in (2, 3):
            square = m.call("*", x, x)
            return square if exponent == 2 else m.call("*", square, x)
        if exponent == 0.5:
            return m.call("sqrt", x)
    return m.call(name, *operands)


def floating(m: Algebra, x: Value) -> Value:
    """Integers as f32, in which quotients and functions of reals are."""
    return m.convert(x, "f32") if is_array(x) and not m.is_float(x) else x


def is_bool(x: Value) -> bool:
    return str(x.dtype) == "bool"


def _of_numbers(name: str, operands: Sequence[int | float]) -> int | float | bool:
    if name == "pow" and abs(operands[1]) > 64:
        raise Never("A power of more than 64 of a number is not worked out: write its value.")
    if name in ("shl", "shr") and abs(operands[1]) > 62:
        raise Never("A shift by more than 62 is not worked out: write its value.")
    whole = all(isinstance(each, int) for each in operands)
    try:
        with np.errstate(all="ignore"):
            if name == "pow":
                value: Any = operands[0] ** operands[1]
            elif name == "/":
                value = operands[0] / operands[1]
            else:
                value = numeric.FUNCTIONS[name](*operands).item()
    except (ArithmeticError, ValueError, TypeError) as error:
        raise BuildError(f"{name} of {', '.join(map(str, operands))} has no value: {error}.") from None
    if isinstance(value, complex) or (isinstance(value, int) and abs(value) >= 2**62):
        raise Never(f"{name} of {', '.join(map(str, operands))} is no number of 64 bits.")
    return int(value) if whole and isinstance(value, float) and value.is_integer() and name != "/" else value


def _shown(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _unary(name: str) -> Callable[..., Value]:
    return lambda m, x: elementwise(m, name, x)


def _binary(name: str) -> Callable[..., Value]:
    return lambda m, x, y: elementwise(m, name, x, y)


_TWO = {"pow", "fmod", "mod", "max", "min", "and", "or", "xor"} | {
    "+",
    "-",
    "*",
    "/",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
}
for _name, _of in ELEMENTWISE.items():
    function(_name)((_binary if _of in _TWO else _unary)(_of))


@function("where")
def where(m: Algebra, c: Value, x: Value, y: Value) -> Value:
    return elementwise(m, "select", c, x, y)


@function("clip", "clamp")
def clip(m: Algebra, x: Value, low: Value = None, high: Value = None) -> Value:
    x = x if low is None else elementwise(m, "max", x, low)
    return x if high is None else elementwise(m, "min", x, high)


@function("square")
def square(m: Algebra, x: Value) -> Value:
    return elementwise(m, "*", x, x)


@function("reciprocal")
def reciprocal(m: Algebra, x: Value) -> Value:
    return elementwise(m, "/", 1, x)


@function("leaky_relu", judge=lambda x, slope=0.01: np.where(x > 0, x, slope * x))
def leaky_relu(m: Algebra, x: Value, negative_slope: float = 0.01) -> Value:
    return where(m, elementwise(m, ">", x, 0), x, elementwise(m, "*", x, negative_slope))


@function("elu", judge=lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))))
def elu(m: Algebra, x: Value, alpha: float = 1.0) -> Value:
    below = elementwise(m, "*", elementwise(m, "expm1", elementwise(m, "min", x, 0)), alpha)
    return where(m, elementwise(m, ">", x, 0), x, below)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * (1 - np.vectorize(math.erfc)(x / math.sqrt(2)) / 2)


@function("gelu", judge=_gelu)
def gelu(m: Algebra, x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        cube = elementwise(m, "*", elementwise(m, "*", x, x), x)
        inner = elementwise(m, "+", x, elementwise(m, "*", cube, 0.044715))
        bend = elementwise(m, "tanh", elementwise(m, "*", inner, math.sqrt(2 / math.pi)))
    else:
        bend = elementwise(m, "erf", elementwise(m, "*", x, 1 / math.sqrt(2)))
    return elementwise(m, "*", elementwise(m, "*", x, 0.5), elementwise(m, "+", bend, 1))


def axes_of(m: Algebra, x: Value, axis: Axis) -> tuple[int, ...]:
    """Axes from 0 on; all where none is said. Raises BuildError beyond those that there are."""
    if not is_array(x):
        raise BuildError(f"{_shown(x)} is no array.")
    rank = len(m.shape(x))
    if axis is None:
        return tuple(range(rank))
    named = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in named:
        if not isinstance(each, int) or not -rank <= each < rank:
            raise BuildError(f"There is no axis {each} in an array of {rank} axes.")
    return tuple(each % rank for each in named)
