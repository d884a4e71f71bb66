"""Arrays as NumPy has them in float64: what a text means, whatever becomes of it as a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dojo_core.primitives import BuildError

Values = np.ndarray[Any, Any]

MOST_CELLS = 2**22  # of an array, or of a contraction's iterations: a text is checked at small shapes

_erf = np.vectorize(math.erf, otypes=[np.float64])

# The text form's functions, element by element.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "pow": np.power,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal, "neg": np.negative, "abs": np.abs, "sign": np.sign,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": _erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "isnan": np.isnan, "isinf": np.isinf, "max": np.maximum, "min": np.minimum,
    "fmod": np.fmod, "mod": np.mod, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "shl": np.left_shift, "shr": np.right_shift, "select": np.where,
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0), "softsign": lambda x: x / (1 + np.abs(x)),
}  # fmt: skip

_REDUCTIONS: dict[str, Callable[..., Any]] = {"+": np.sum, "*": np.prod, "max": np.max, "min": np.min}
_SCANS: dict[str, Any] = {"+": np.add, "*": np.multiply, "max": np.maximum, "min": np.minimum}
_DTYPES = {"f32": np.float64, "f64": np.float64, "bool": np.bool_, "i32": np.int64, "i64": np.int64}


class Numeric:
    """The algebra of ``functions.py`` on NumPy's arrays."""

    def __init__(self, most: int = MOST_CELLS) -> None:
        self.most = most  # cells of an array

    def bounded(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that is not too large. Raises BuildError."""
        if math.prod(shape) > self.most or len(shape) > 12:
            raise BuildError(f"An array of the shape {list(shape)} is larger than what is checked.")
        return tuple(shape)

    def input(self, name: str, shape: Sequence[int], dtype: str, values: Values | None = None) -> Values:
        """``values``, or ones."""
        return (
            np.ones(self.bounded(shape), _DTYPES[dtype]) if values is None else values.astype(_DTYPES[dtype])
        )

    def shape(self, x: Values) -> tuple[int, ...]:
        return np.shape(x)

    def is_float(self, x: Values) -> bool:
        return np.asarray(x).dtype.kind == "f"

    def call(self, function: str, *operands: Any) -> Any:
        self.bounded(np.broadcast_shapes(*map(np.shape, operands)))
        with np.errstate(all="ignore"):
            return np.asarray(FUNCTIONS[function](*operands))

    def convert(self, x: Values, dtype: str) -> Values:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(_DTYPES[dtype])

    def reduce(self, accumulation: str, x: Values, axes: tuple[int, ...], keepdims: bool) -> Values:
        return np.asarray(_REDUCTIONS[accumulation](x, axis=axes, keepdims=keepdims))

    def place(self, which: str, x: Values, axis: int, keepdims: bool) -> Values:
        return np.asarray((np.argmax if which == "max" else np.argmin)(x, axis=axis, keepdims=keepdims))

    def scan(self, accumulation: str, x: Values, axis: int) -> Values:
        return np.asarray(_SCANS[accumulation].accumulate(x, axis=axis))

    def contract(
        self, names: Sequence[tuple[str, ...]], wanted: tuple[str, ...], arrays: Sequence[Values]
    ) -> Values:
        sizes = {
            n: s for each, a in zip(names, arrays, strict=True) for n, s in zip(each, a.shape, strict=True)
        }
        if math.prod(sizes.values()) > self.most:
            raise BuildError(f"A contraction over {len(sizes)} axes is larger than what is checked.")
        number = {name: k for k, name in enumerate(sizes)}
        operands: list[Any] = []
        for each, array in zip(names, arrays, strict=True):
            operands += [array, [number[name] for name in each]]
        return np.asarray(np.einsum(*operands, [number[name] for name in wanted]))

    def transpose(self, x: Values, order: Sequence[int]) -> Values:
        return np.transpose(x, order)

    def reshape(self, x: Values, shape: Sequence[int]) -> Values:
        return np.reshape(x, tuple(shape))

    def broadcast(self, x: Values, shape: Sequence[int]) -> Values:
        return np.broadcast_to(x, self.bounded(shape))

    def slice(self, x: Values, axis: int, start: int | None, stop: int | None, step: int) -> Values:
        return np.asarray(x[(slice(None),) * axis + (slice(start, stop, step),)])

    def take(self, x: Values, index: Values, axis: int) -> Values:
        return np.asarray(np.take(x, index, axis=axis, mode="wrap"))

    def concatenate(self, arrays: Sequence[Values], axis: int) -> Values:
        return np.concatenate(list(arrays), axis=axis)

    def pad(self, x: Values, pads: Sequence[tuple[int, int]], mode: str, value: float) -> Values:
        self.bounded([size + sum(ends) for size, ends in zip(x.shape, pads, strict=True)])
        more: dict[str, Any] = {"constant_values": value} if mode == "constant" else {}
        return np.asarray(np.pad(x, pads, mode, **more))  # type: ignore[call-overload]

    def window(self, x: Values, axis: int, width: int, stride: int) -> Values:
        view = sliding_window_view(x, width, axis)
        return np.asarray(view[(slice(None),) * axis + (slice(None, None, stride),)])

    def iterator(self, shape: Sequence[int], axis: int) -> Values:
        return np.asarray(np.indices(self.bounded(shape))[axis])

    def filled(self, value: float, shape: Sequence[int], dtype: str) -> Values:
        return np.full(self.bounded(shape), value, _DTYPES[dtype])
