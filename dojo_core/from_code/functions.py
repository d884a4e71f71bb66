"""The functions of NumPy and PyTorch that are known: what each is by an algebra of arrays.

A function takes the algebra first (``Numeric``: values; ``Symbolic``: passes of a program), then what the text
gives it. Where one is put together of several operations, ``judge`` has it again, in NumPy and in other words,
so that the check of a translation does not stand on the definition that it checks.
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
            return self.judge(*bound.args[1:], **bound.kwargs)
        return self.call(*bound.args, **bound.kwargs)


# What libraries call the same parameter.
ALIASES = {
    "dim": "axis", "keepdim": "keepdims", "input": "x", "a": "x", "x1": "x", "x2": "y", "other": "y", "b": "y",
    "mat2": "y", "dims": "axis", "axes": "axis", "newshape": "shape", "size": "shape", "min": "low",
    "max": "high", "a_min": "low", "a_max": "high", "normalized_shape": "over", "fill_value": "value",
    "unbiased": "ddof", "correction": "ddof", "dtype": "dtype", "condition": "c",
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

# Names that libraries have for a function of the text form, or one that is put together of a few.
ELEMENTWISE = {
    **{
        name: name
        for name in (
            "sqrt rsqrt exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
            "atanh erf sigmoid floor ceil trunc isnan isinf sign fmod abs relu silu softplus softsign pow"
        ).split()
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
    "+", "-", "*", "<", "<=", ">", ">=", "==", "!=", "max", "min", "mod", "fmod", "and", "or", "xor", "not", "neg",
    "abs", "sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "select", "relu", "shl", "shr",
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
    elif name in _ARITHMETIC and not any(is_array(x) and not _is_bool(x) for x in operands):
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


def _is_bool(x: Value) -> bool:
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


_TWO = {"pow", "fmod", "mod", "max", "min", "and", "or", "xor"} | set("+ - * / < <= > >= == !=".split())
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


# ---------------------------------------------------------------------------- reductions


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


def _reduction(accumulation: str) -> Callable[..., Value]:
    def reduction(m: Algebra, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
        axes = axes_of(m, x, axis)
        return m.reduce(accumulation, m.convert(x, "i32") if _is_bool(x) else x, axes, bool(keepdims))

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


def _np_softmax(x: Any, axis: int = -1) -> Any:
    return np.exp(x - _np_logsumexp(x, axis, True))


def _np_logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    return np.logaddexp.reduce(x, axis=_np_axis(axis), keepdims=keepdims)


def _shifted(m: Algebra, x: Value, axis: Axis) -> Value:
    return elementwise(m, "-", x, m.reduce("max", x, axes_of(m, x, axis), True))


@function("softmax", judge=_np_softmax)
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


def _last(m: Algebra, x: Value, over: Value) -> tuple[int, ...]:
    """The axes that a shape at the end stands for."""
    sizes = (over,) if isinstance(over, int) else tuple(over)
    rank = len(m.shape(x))
    if m.shape(x)[rank - len(sizes) :] != sizes:
        raise BuildError(f"{list(sizes)} are not the last sizes of {list(m.shape(x))}.")
    return tuple(range(rank - len(sizes), rank))


def _affine(m: Algebra, y: Value, weight: Value, bias: Value) -> Value:
    y = y if weight is None else elementwise(m, "*", y, weight)
    return y if bias is None else elementwise(m, "+", y, bias)


def _np_layer_norm(x: Any, over: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    axes = tuple(range(x.ndim - np.size(over), x.ndim))
    y = (x - np.mean(x, axes, keepdims=True)) / np.sqrt(np.var(x, axes, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


@function("layer_norm", judge=_np_layer_norm)
def layer_norm(
    m: Algebra, x: Value, over: Value, weight: Value = None, bias: Value = None, eps: float = 1e-5
) -> Value:
    axes = _last(m, x, over)
    centred = elementwise(m, "-", x, mean(m, x, axes, True))
    spread = mean(m, elementwise(m, "*", centred, centred), axes, True)
    scale = elementwise(m, "sqrt", elementwise(m, "+", spread, eps))
    return _affine(m, elementwise(m, "/", centred, scale), weight, bias)


def _np_rms_norm(x: Any, over: Any, weight: Any = None, eps: float = 1.1920929e-07) -> Any:
    axes = tuple(range(x.ndim - np.size(over), x.ndim))
    return x / np.sqrt(np.mean(x**2, axes, keepdims=True) + eps) * (1 if weight is None else weight)


@function("rms_norm", judge=_np_rms_norm)
def rms_norm(m: Algebra, x: Value, over: Value, weight: Value = None, eps: float = 1.1920929e-07) -> Value:
    power = mean(m, elementwise(m, "*", x, x), _last(m, x, over), True)
    scale = elementwise(m, "rsqrt", elementwise(m, "+", power, eps))
    return _affine(m, elementwise(m, "*", x, scale), weight, None)


# ---------------------------------------------------------------------------- products


def _letters(count: int, first: int = 0) -> tuple[str, ...]:
    return tuple("abcdefghijklmnopqrstuvwxyz"[first : first + count])


@function("matmul", "bmm", "mm", judge=lambda x, y: np.matmul(x, y))
def matmul(m: Algebra, x: Value, y: Value) -> Value:
    ranks = []
    for each in (x, y):
        ranks.append(len(axes_of(m, each, None)))
    if min(ranks) == 0 or max(ranks) > 8:
        raise BuildError("A matrix product takes arrays of one to eight axes.")
    if m.shape(x)[-1] != m.shape(y)[-2 if ranks[1] > 1 else -1]:
        raise BuildError(
            f"A matrix product of {list(m.shape(x))} and {list(m.shape(y))}: the last axis of the first is as "
            "long as the last but one of the second."
        )
    batch = _letters(max(*ranks, 2) - 2)
    left = (*batch[len(batch) - max(ranks[0] - 2, 0) :], *(("m",) if ranks[0] > 1 else ()), "k")
    right = (*batch[len(batch) - max(ranks[1] - 2, 0) :], "k", *(("n",) if ranks[1] > 1 else ()))
    wanted = (*batch, *(("m",) if ranks[0] > 1 else ()), *(("n",) if ranks[1] > 1 else ()))
    return m.contract([left, right], wanted, [x, y])


@function("dot", judge=lambda x, y: np.dot(x, y))
def dot(m: Algebra, x: Value, y: Value) -> Value:
    if len(axes_of(m, x, None)) > 2 or len(axes_of(m, y, None)) > 2:
        raise BuildError("dot is of vectors and matrices here: write an einsum.")
    return matmul(m, x, y)


@function("outer")
def outer(m: Algebra, x: Value, y: Value) -> Value:
    if len(axes_of(m, x, None)) != 1 or len(axes_of(m, y, None)) != 1:
        raise BuildError("outer is of two vectors here.")
    return m.contract([("i",), ("j",)], ("i", "j"), [x, y])


@function("linear", judge=lambda x, weight, bias=None: x @ weight.T + (0 if bias is None else bias))
def linear(m: Algebra, x: Value, weight: Value, bias: Value = None) -> Value:
    return _affine(m, matmul(m, x, transposed(m, weight)), None, bias)


@function("addmm", judge=lambda x, y, z: x + y @ z)
def addmm(m: Algebra, x: Value, mat1: Value, mat2: Value) -> Value:
    return elementwise(m, "+", x, matmul(m, mat1, mat2))


def spec_of(spec: str, count: int) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The axes of an einsum's operands and result; without an arrow, letters that stand once, in order."""
    left, arrow, right = spec.replace(" ", "").partition("->")
    parts = left.split(",")
    letters = "".join(parts)
    if not (letters + right).isalpha() or len(set(letters)) > 16:
        raise BuildError("An einsum reads ij,jk->ik, of letters, without an ellipsis.")
    if not arrow:
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if len(parts) != count:
        raise BuildError(f"The form {spec!r} is of {len(parts)} arrays, and there are {count}.")
    return [tuple(part) for part in parts], tuple(right)


@function("einsum", judge=lambda spec, *arrays: _np_einsum(spec, *arrays))
def einsum(m: Algebra, spec: str, *arrays: Value) -> Value:
    if not isinstance(spec, str):
        raise BuildError("einsum takes a form such as 'ij,jk->ik' first, then arrays.")
    names, wanted = spec_of(spec, len(arrays))
    for each, array in zip(names, arrays, strict=True):
        if len(axes_of(m, array, None)) != len(each):
            raise BuildError(f"{''.join(each)!r} names {len(each)} axes of {len(m.shape(array))}.")
    return m.contract(names, wanted, arrays)


def _np_einsum(spec: str, *arrays: Any) -> Any:
    einsum(Numeric(), spec, *arrays)  # looks whether it is small enough
    return np.einsum(spec, *arrays)


def _np_attention(q: Any, k: Any, v: Any, is_causal: bool = False) -> Any:
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    return _np_softmax(s) @ v


@function("scaled_dot_product_attention", judge=_np_attention)
def attention(m: Algebra, query: Value, key: Value, value: Value, is_causal: bool = False) -> Value:
    s = matmul(m, query, swapaxes(m, key, -1, -2))
    s = elementwise(m, "*", s, 1 / math.sqrt(m.shape(query)[-1]))
    if is_causal:
        rows, columns = (m.iterator(m.shape(s)[-2:], k) for k in (0, 1))
        s = where(m, elementwise(m, "<=", columns, rows), s, -math.inf)
    return matmul(m, softmax(m, s), value)


# ---------------------------------------------------------------------------- views


def transposed(m: Algebra, x: Value) -> Value:
    return m.transpose(x, axes_of(m, x, None)[::-1])


@function("transpose", "permute")
def permute(m: Algebra, x: Value, *axis: Any) -> Value:
    if len(axis) == 1 and not isinstance(axis[0], int):
        axis = tuple(axis[0] or ())
    order = axes_of(m, x, axis or None)
    if sorted(order) != list(range(len(m.shape(x)))):
        raise BuildError(f"{list(axis)} is no order of {len(m.shape(x))} axes: name each once.")
    return m.transpose(x, order if axis else order[::-1])


@function("swapaxes", "swapdims")
def swapaxes(m: Algebra, x: Value, axis0: int, axis1: int) -> Value:
    first, second = axes_of(m, x, (axis0, axis1))
    order = list(range(len(m.shape(x))))
    order[first], order[second] = order[second], order[first]
    return m.transpose(x, order)


@function("reshape", "view")
def reshape(m: Algebra, x: Value, *shape: Any) -> Value:
    sizes = _sizes(shape)
    axes_of(m, x, None)
    if sizes.count(-1) == 1 and math.prod(sizes):
        sizes[sizes.index(-1)] = math.prod(m.shape(x)) // -math.prod(sizes)
    if min(sizes, default=0) < 0 or math.prod(sizes) != math.prod(m.shape(x)):
        raise BuildError(f"{list(m.shape(x))} is not reshaped to {sizes}: as many elements, other axes.")
    return m.reshape(x, sizes)


def _sizes(shape: Sequence[Any]) -> list[int]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if not all(isinstance(size, int) for size in given) or len(given) > 12:
        raise BuildError("A shape is up to 12 whole numbers.")
    return list(given)


@function("flatten", "ravel")
def flatten(m: Algebra, x: Value, start_dim: int = 0) -> Value:
    axes = axes_of(m, x, None)
    sizes = m.shape(x)
    start = start_dim % max(len(axes), 1)
    return m.reshape(x, (*sizes[:start], math.prod(sizes[start:])))


@function("squeeze")
def squeeze(m: Algebra, x: Value, axis: Axis = None) -> Value:
    axes = axes_of(m, x, axis)
    sizes = m.shape(x)
    gone = [k for k in axes if sizes[k] == 1]
    if axis is not None and len(gone) < len(axes):
        raise BuildError(f"Only axes of size 1 can go, of {list(sizes)}.")
    return m.reshape(x, [size for k, size in enumerate(sizes) if k not in gone])


@function("unsqueeze", "expand_dims")
def unsqueeze(m: Algebra, x: Value, axis: int) -> Value:
    sizes = list(m.shape(x))
    if not isinstance(axis, int) or not -len(sizes) - 1 <= axis <= len(sizes):
        raise BuildError(f"There is no place {axis} among {len(sizes) + 1} axes.")
    sizes.insert(axis % (len(sizes) + 1), 1)
    return m.reshape(x, sizes)


@function("broadcast_to", "expand")
def broadcast_to(m: Algebra, x: Value, *shape: Any) -> Value:
    sizes = _sizes(shape)
    old = m.shape(x)
    for k, size in enumerate(sizes):
        if size == -1 and k >= len(sizes) - len(old):
            sizes[k] = old[k - len(sizes) + len(old)]
    return m.broadcast(x, sizes)


@function("concatenate", "concat", "cat")
def concatenate(m: Algebra, arrays: Sequence[Value], axis: int = 0) -> Value:
    if not isinstance(arrays, tuple | list) or not arrays:
        raise BuildError("It takes several arrays, in brackets.")
    return m.concatenate(list(arrays), axes_of(m, arrays[0], axis)[0])


@function("stack")
def stack(m: Algebra, arrays: Sequence[Value], axis: int = 0) -> Value:
    return m.concatenate([unsqueeze(m, each, axis) for each in arrays], axis)


@function("flip")
def flip(m: Algebra, x: Value, axis: Axis = None) -> Value:
    for each in axes_of(m, x, axis):
        x = m.slice(x, each, None, None, -1)
    return x


@function("take")
def take(m: Algebra, x: Value, indices: Value, axis: int = 0) -> Value:
    return m.take(x, indices, axes_of(m, x, axis)[0])


@function("embedding")
def embedding(m: Algebra, x: Value, weight: Value) -> Value:
    return m.take(weight, x, 0)


# ---------------------------------------------------------------------------- made of shapes


@function("zeros", "empty")
def zeros(m: Algebra, *shape: Any) -> Value:
    return m.filled(0, _sizes(shape), "f32")


@function("ones")
def ones(m: Algebra, *shape: Any) -> Value:
    return m.filled(1, _sizes(shape), "f32")


@function("full")
def full(m: Algebra, shape: Any, value: float) -> Value:
    return m.filled(value, _sizes([shape]), "f32")


@function("zeros_like", "empty_like")
def zeros_like(m: Algebra, x: Value) -> Value:
    return m.filled(0, m.shape(x), "f32")


@function("ones_like")
def ones_like(m: Algebra, x: Value) -> Value:
    return m.filled(1, m.shape(x), "f32")


@function("arange")
def arange(m: Algebra, stop: int) -> Value:
    return m.iterator(_sizes([stop]), 0)


@function("tril", judge=lambda x, k=0: np.tril(x, k))
def tril(m: Algebra, x: Value, k: int = 0) -> Value:
    return _triangle(m, x, "<=", k)


@function("triu", judge=lambda x, k=0: np.triu(x, k))
def triu(m: Algebra, x: Value, k: int = 0) -> Value:
    return _triangle(m, x, ">=", k)


def _triangle(m: Algebra, x: Value, sign: str, k: int) -> Value:
    if len(axes_of(m, x, None)) < 2:
        raise BuildError("A triangle is of a matrix.")
    rows, columns = (m.iterator(m.shape(x)[-2:], axis) for axis in (0, 1))
    return where(m, elementwise(m, sign, columns, elementwise(m, "+", rows, k)), x, 0)


@function("pad")
def pad(m: Algebra, x: Value, pads: Any, mode: str = "constant", value: float = 0) -> Value:
    sizes = m.shape(x)
    if isinstance(pads, int):
        pads = [(pads, pads)] * len(sizes)
    if any(isinstance(each, int) for each in pads):  # PyTorch's, the last axis first
        pairs = [tuple(pads[k : k + 2]) for k in range(0, len(pads), 2)][::-1]
        pads = [(0, 0)] * (len(sizes) - len(pairs)) + pairs
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    whole = [tuple(each) for each in pads]
    if len(whole) != len(sizes) or any(len(each) != 2 or min(each) < 0 for each in whole):
        raise BuildError("A padding is a pair of numbers, before and after, for each axis.")
    return m.pad(x, whole, mode, value)


@function("conv1d")
def conv1d(
    m: Algebra, x: Value, weight: Value, bias: Value = None, stride: Any = 1, padding: Any = 0
) -> Value:
    return _convolution(m, 1, x, weight, bias, stride, padding)


@function("conv2d")
def conv2d(
    m: Algebra, x: Value, weight: Value, bias: Value = None, stride: Any = 1, padding: Any = 0
) -> Value:
    return _convolution(m, 2, x, weight, bias, stride, padding)


def _convolution(
    m: Algebra, rank: int, x: Value, weight: Value, bias: Value, stride: Any, padding: Any
) -> Value:
    """PyTorch's: x (n, c, …), weight (m, c, …), of one group."""
    if len(axes_of(m, x, None)) != rank + 2 or len(axes_of(m, weight, None)) != rank + 2:
        raise BuildError(f"It is of x (n, c, …) and weights (m, c, …), of {rank + 2} axes each.")
    steps, pads = ([each] * rank if isinstance(each, int) else list(each) for each in (stride, padding))
    if m.shape(x)[1] != m.shape(weight)[1]:
        raise BuildError(f"x has {m.shape(x)[1]} channels and the weights have {m.shape(weight)[1]}.")
    if any(pads):
        x = m.pad(x, [(0, 0), (0, 0), *((each, each) for each in pads)], "constant", 0)
    for k in range(rank):
        x = m.window(x, 2 + k, m.shape(weight)[2 + k], steps[k])
    places, taps = ("p", "q")[:rank], ("r", "s")[:rank]
    y = m.contract([("n", "c", *places, *taps), ("m", "c", *taps)], ("n", "m", *places), [x, weight])
    return y if bias is None else elementwise(m, "+", y, m.reshape(bias, (-1, *[1] * rank)))
