"""The arithmetic of the dtypes on NumPy's float64 and int64: rounding, wrapping, conversions, functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dojo_core.program.dtypes import (
    COMPARISONS,
    FLOATS,
    compute_dtype,
    dtypes_of,
    extremes,
    reaching_integers,
)
from dojo_core.program.tree import DTYPE_BYTES, Access, Op, Program

Array = npt.NDArray[Any]


def storage_dtype(dtype: str) -> type[np.generic]:
    """What the interpreter keeps a dtype in: float64, or int64 (wrapped to the dtype's bits on a write)."""
    return np.float64 if dtype in FLOATS else np.int64


def rounded(value: Array, dtype: str) -> Array:
    """Floating-point numbers of a dtype, as float64: to nearest, ties to even; f16 and bf16 by way of f32."""
    if dtype == "f64":
        return np.asarray(value, np.float64)
    single = np.asarray(value, np.float32)
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return single.astype(np.float16).astype(np.float64)
    if dtype == "bf16":
        return bf16_value(bf16_bits(single))
    return single.astype(np.float64)


def bf16_bits(single: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper halves of f32, rounded to nearest, ties to even; NaN as the quiet one."""
    bits = np.ascontiguousarray(single).view(np.uint32).reshape(single.shape)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(single), 0x7FC0, nearest).astype(np.uint16)


def bf16_value(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
    """The numbers that stored bf16 stand for."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _divide(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind == "f":
        return np.asarray(np.true_divide(a, b))
    # Towards zero, as in C; a division by zero gives 0.
    safe = np.where(b == 0, 1, b)
    floor = a // safe
    return np.where(b == 0, 0, floor + ((a % safe != 0) & ((a < 0) != (safe < 0))))


def _sigmoid(x: Array) -> Array:
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + z), np.where(np.isnan(x), x, z / (1 + z)))


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _wrap(value: Array, dtype: str) -> Array:
    """A value as an array of ``dtype`` holds it, floating-point numbers unrounded."""
    if dtype in FLOATS:
        return np.asarray(value, np.float64)
    if dtype == "bool":
        return np.asarray(value != 0, np.int64)
    whole = np.asarray(value)
    least, most = extremes(dtype)
    if whole.dtype.kind == "f":
        # -inf and inf are the identities of max and min: the extreme values of the type.
        above, below = whole >= float(most), whole <= float(least)
        inside = np.where(above | below | np.isnan(whole), 0, whole).astype(np.int64)
        return np.where(above, np.int64(most), np.where(below, np.int64(least), inside))
    whole = whole.astype(np.int64)
    if dtype == "i64":
        return whole
    return (whole - least) % (most - least + 1) + least


def _converted(value: Array, dtype: str) -> Array:
    """A conversion that the text asks for: floating-point numbers are rounded too."""
    return rounded(value, dtype) if dtype in FLOATS else _wrap(value, dtype)


def _whole(of_reals: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that leaves whole numbers as they are."""
    return lambda x: of_reals(x) if np.asarray(x).dtype.kind == "f" else x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "": lambda x: x,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "floor": _whole(np.floor),
    "round": _whole(np.rint),
    "max": np.maximum,
    "min": np.minimum,
    "pow": lambda x, y: np.power(np.asarray(x, np.float64), y),
    "fma": lambda a, b, c: a * b + c,
    "select": lambda c, a, b: np.where(c != 0, a, b),
}
FUNCTIONS.update({dtype: partial(_converted, dtype=dtype) for dtype in DTYPE_BYTES})

ACCUMULATIONS: dict[str, np.ufunc] = {
    "+": np.add,
    "*": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


class Meaning:
    """What the operations of a program make of numbers."""

    def __init__(self, program: Program):
        self.dtypes = dtypes_of(program)
        self.exact = reaching_integers(program)

    def computed(self, op: Op, operands: Sequence[Array]) -> Array:
        """The value of an operation's function, in the dtype that it is computed in."""
        dtype = compute_dtype(op, self.dtypes)
        if op.function not in DTYPE_BYTES:
            # A number or an iterator takes the operation's dtype (what select tests keeps its own).
            first = 1 if op.function == "select" else 0
            operands = [
                o if isinstance(written, Access) or k < first else self._literal(op, o, dtype)
                for k, (o, written) in enumerate(zip(operands, op.operands, strict=True))
            ]
            if dtype in FLOATS:
                operands = [np.asarray(o, np.float64) for o in operands]
        return np.asarray(FUNCTIONS[op.function](*operands))

    def _literal(self, op: Op, value: Array, dtype: str) -> Array:
        if dtype not in FLOATS:
            return _wrap(value, dtype)
        array = op.target.array
        exact = array in self.exact or self.dtypes[array] in ("f16", "bf16") or op.function in COMPARISONS
        return rounded(value, dtype) if exact else value

    def stored(self, value: Array, array: str) -> Array:
        """A value as it is after a write to an array."""
        dtype = self.dtypes[array]
        if dtype in ("f16", "bf16") or (dtype == "f32" and array in self.exact):
            return rounded(value, dtype)
        return _wrap(value, dtype)

    def term(self, value: Array, array: str) -> Array:
        """A term of an accumulation in the dtype that the sum is kept in."""
        return _wrap(value, self.dtypes[array])
