"""The arithmetic of the dtypes on NumPy's float64 and int64: rounding, wrapping, conversions, functions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dojo_core.program.dtypes import (
    COMPARISONS,
    FLOATS,
    HALVES,
    KEYS,
    OF_BITS,
    SHIFTS,
    STORAGE_FLOATS,
    compute_dtype,
    dtypes_of,
    extremes,
    operand_dtype,
    reaching_integers,
)
from dojo_core.program.minifloats import minifloat_codes, minifloat_values
from dojo_core.program.tree import DTYPE_BYTES, NUMBER_DTYPES, Access, Op, Program

Array = npt.NDArray[Any]


def storage_dtype(dtype: str) -> type[np.generic]:
    """What the interpreter keeps a dtype in: float64, uint64 (u64), Python's integers (i128), or int64
    wrapped to its bits."""
    if dtype in ("u64", "i128"):
        return np.uint64 if dtype == "u64" else np.object_
    return np.float64 if dtype in (*FLOATS, *STORAGE_FLOATS) else np.int64


def rounded(value: Array, dtype: str) -> Array:
    """Floating-point numbers of a dtype, as float64: to nearest, ties to even; those narrower than f32 by way
    of it."""
    if dtype == "f64":
        return np.asarray(value, np.float64)
    if dtype in STORAGE_FLOATS:
        return minifloat_values(minifloat_codes(value, dtype), dtype)
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


def tf32_value(value: Array) -> npt.NDArray[np.float64]:
    """Numbers rounded to TF32, 10 bits behind the leading one: to nearest, ties away from zero, by f32.

    Source: PTX ISA 8.7, cvt.rna.tf32.f32.
    """
    single = np.asarray(value, np.float32)
    bits = np.ascontiguousarray(single).view(np.uint32).reshape(single.shape)
    nearest = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isnan(single), single, nearest).astype(np.float64)


class Combination:
    """What an accumulation does with two values, with many, and with those that indices bring together."""

    def __init__(self, pairs: np.ufunc):
        self.pairs = pairs

    def __call__(self, a: Array, b: Array) -> Array:
        return np.asarray(self.pairs(a, b))

    def reduce(self, value: Array, axis: int = 0, keepdims: bool = False) -> Array:
        return np.asarray(self.pairs.reduce(value, axis=axis, keepdims=keepdims))

    def at(self, array: Array, index: tuple[Array, ...], value: Array) -> None:
        self.pairs.at(array, index, value)


class _Extreme(Combination):
    """Maximum or minimum of IEEE 754-2019: NaN passes, and -0 is less than +0 (NumPy takes either)."""

    def __init__(self, pairs: np.ufunc, winner: float):
        super().__init__(pairs)
        self.winner = winner  # of two zeros

    def _wins(self, value: Array) -> Array:
        return np.asarray((value == 0) & (np.signbit(value) == np.signbit(self.winner)))

    def _signed(self, value: Array, won: Callable[[], Any]) -> Array:
        """A result whose zeros have the right sign: the winner's where one of the operands is it."""
        if value.dtype.kind != "f" or not (value == 0).any():
            return value
        return np.asarray(np.where(value == 0, np.where(won(), self.winner, -self.winner), value))

    def __call__(self, a: Array, b: Array) -> Array:
        return self._signed(super().__call__(a, b), lambda: self._wins(a) | self._wins(b))

    def reduce(self, value: Array, axis: int = 0, keepdims: bool = False) -> Array:
        most = super().reduce(value, axis, keepdims)
        return self._signed(most, lambda: np.any(self._wins(value), axis=axis, keepdims=keepdims))

    def at(self, array: Array, index: tuple[Array, ...], value: Array) -> None:
        if array.dtype.kind != "f":
            super().at(array, index, value)
            return
        won = self._wins(array)
        np.logical_or.at(won, index, self._wins(value))
        super().at(array, index, value)
        array[...] = self._signed(array, lambda: won)


class _Sum(Combination):
    """A sum that is -0 where all its terms are (NumPy begins with +0)."""

    def reduce(self, value: Array, axis: int = 0, keepdims: bool = False) -> Array:
        total = super().reduce(value, axis, keepdims)
        if total.dtype.kind != "f" or not (total == 0).any():
            return total
        negative = ((value == 0) & np.signbit(value)).all(axis=axis, keepdims=keepdims)
        return np.where(negative, -0.0, total)


def _divide(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind == "f":
        return np.asarray(np.true_divide(a, b))
    # Towards zero, as in C; a division by zero gives 0.
    safe = np.where(b == 0, b.dtype.type(1), b)
    floor = a // safe
    quotient = floor + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.asarray(np.where(b == 0, b.dtype.type(0), quotient))


def _sigmoid(x: Array) -> Array:
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + z), np.where(np.isnan(x), x, z / (1 + z)))


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _sign(x: Array) -> Array:
    if x.dtype.kind == "f":
        return np.where((x == 0) | np.isnan(x), x, np.copysign(1, x))
    return np.sign(x)


def _remainder(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind == "f":
        return np.asarray(np.fmod(a, b))
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b)))


def _not(x: Array, dtype: str) -> Array:
    return np.asarray(x == 0, np.int64) if dtype == "bool" else ~x


def _left(x: Array, count: Array, dtype: str) -> Array:
    beyond = (count < 0) | (count >= 8 * DTYPE_BYTES[dtype])
    return np.where(beyond, 0, x << np.where(beyond, 0, count))


def _right(x: Array, count: Array, dtype: str) -> Array:
    most = 8 * DTYPE_BYTES[dtype] - 1
    beyond = (count < 0) | (count > most)
    shifted = x >> np.where(beyond, most, count)
    return shifted if extremes(dtype)[0] else np.where(beyond, 0, shifted)


def held(value: Array, dtype: str) -> Array:
    """A value as an array of ``dtype`` holds it, floating-point numbers unrounded."""
    if storage_dtype(dtype) is np.float64:
        return np.asarray(value, np.float64)
    if dtype == "bool":
        return np.asarray(value != 0, np.int64)
    whole, kind = np.asarray(value), storage_dtype(dtype)
    least, most = extremes(dtype)
    if whole.dtype.kind == "f":
        # -inf and inf are the identities of max and min: the extreme values of the type.
        above, below = whole >= float(most), whole <= float(least)
        inside = np.where(above | below | np.isnan(whole), 0, whole).astype(kind)
        return np.where(above, kind(most), np.where(below, kind(least), inside))
    whole = whole.astype(kind)
    if dtype in ("i64", "u64", "i128"):
        return whole
    return (whole - least) % (most - least + 1) + least


def _converted(value: Array, dtype: str) -> Array:
    """A conversion that the text asks for: floating-point numbers are rounded too."""
    return rounded(value, dtype) if storage_dtype(dtype) is np.float64 else held(value, dtype)


def _whole(of_reals: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that leaves whole numbers as they are."""
    return lambda x: of_reals(x) if np.asarray(x).dtype.kind == "f" else x


def _bitcast(value: Array, have: str, want: str) -> Array:
    """The same bits as another dtype of the same size."""
    size = DTYPE_BYTES[have]
    if have == "bf16":
        bits: Array = bf16_bits(np.asarray(value, np.float32))
    else:
        held_in = np.dtype(f"{have[0]}{size}")
        bits = np.ascontiguousarray(value, held_in).view(f"u{size}").reshape(np.shape(value))
    if want == "bf16":
        return bf16_value(bits)
    return np.asarray(bits.view(f"{want[0]}{size}"), storage_dtype(want))


def _of_bits(function: str, operands: Sequence[Array], taken: str, given: str) -> Array:
    """What sees a number as bits: a function of keys, or a bitcast, from one dtype to another."""
    if function in KEYS:
        return _key(operands[0], operands[1], given, taken, function == "maxkey")
    if function == "keyindex":
        return _key_index(operands[0], taken)
    return (_key_value if function == "keyvalue" else _bitcast)(operands[0], taken, given)


def _ordered(bits: Array) -> Array:
    """The bits of floating-point numbers as integers in the order of the numbers, and back."""
    most = np.iinfo(bits.dtype).max
    return np.asarray(bits ^ ((bits >> (bits.dtype.itemsize * 8 - 1)) & most), bits.dtype)


def _key(x: Array, i: Array, key: str, element: str, first: bool) -> Array:
    """An element and its place as one integer; ``first``: the first of equals is the greatest, NaN too."""
    half = 4 * DTYPE_BYTES[key]  # bits of each of the two
    least, most = extremes(f"i{half}")
    order = np.asarray(x)
    if element in FLOATS:
        given = np.asarray(x, f"f{half // 8}") + np.zeros((), f"f{half // 8}")  # -0 is +0
        bits = _ordered(np.ascontiguousarray(given).view(f"i{half // 8}").reshape(np.shape(given)))
        order = np.where(np.isnan(given), most if first else least, bits)
    upper = order.astype(storage_dtype(key)) + (least if element[0] == "u" else 0)
    low = (np.asarray(i, np.int64).astype(storage_dtype(key)) << 1) & (2**half - 1)
    return np.asarray((upper << half) | (low ^ (2**half - 1) if first else low), storage_dtype(key))


def _key_index(k: Array, key: str) -> Array:
    most = 2 ** (4 * DTYPE_BYTES[key]) - 1
    low = np.asarray(k, storage_dtype(key)) & most
    return np.asarray(np.where(low & 1 != 0, low ^ most, low) >> 1, np.int64)


def _key_value(k: Array, key: str, element: str) -> Array:
    half = 4 * DTYPE_BYTES[key]
    upper = np.asarray(np.asarray(k, storage_dtype(key)) >> half, storage_dtype(key))
    if element[0] == "u":
        upper = upper - extremes(f"i{half}")[0]
    if element not in FLOATS:
        return np.asarray(upper, storage_dtype(element))
    bits = np.ascontiguousarray(upper, f"i{half // 8}").reshape(np.shape(k))
    return np.asarray(_ordered(bits).view(f"f{half // 8}"), np.float64)


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
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "floor": _whole(np.floor),
    "ceil": _whole(np.ceil),
    "trunc": _whole(np.trunc),
    "round": _whole(np.rint),
    "tf32": tf32_value,
    "sign": _sign,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "fmod": _remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": _not,
    "shl": _left,
    "shr": _right,
    "max": _Extreme(np.maximum, 0.0),
    "min": _Extreme(np.minimum, -0.0),
    "pow": lambda x, y: np.power(np.asarray(x, np.float64), y),
    "fma": lambda a, b, c: a * b + c,
    "select": lambda c, a, b: np.where(c != 0, a, b),
}
FUNCTIONS.update({dtype: partial(_converted, dtype=dtype) for dtype in NUMBER_DTYPES})

ACCUMULATIONS: dict[str, Combination] = {
    "+": _Sum(np.add),
    "*": Combination(np.multiply),
    "max": _Extreme(np.maximum, 0.0),
    "min": _Extreme(np.minimum, -0.0),
}


FEW_CELLS = 32  # Python's own floats are quicker for so few: a call of NumPy takes as long as so many of them


def folded(operator: str, start: Array, terms: Array, dtype: str) -> Array:
    """A sum or a product of f16 or bf16, rounded after every term as the writes of a program are.

    ``start`` has the shape (cells), ``terms`` (steps, cells); a term is computed in f32.
    """
    total = np.ascontiguousarray(start, np.float32)
    steps = np.ascontiguousarray(terms, np.float32)
    if dtype == "bf16":  # whose rounding takes a quiet NaN without a payload to itself
        total, steps = (np.where(np.isnan(v), np.float32(np.nan), v) for v in (total, steps))
    if total.size < FEW_CELLS:
        with suppress(OverflowError):  # what struct raises in place of an infinity
            pairs = zip(total.tolist(), steps.T, strict=True)
            return np.array([_cell(operator, begun, column.tolist(), dtype) for begun, column in pairs])
    combine = np.add if operator == "+" else np.multiply
    if dtype == "f16":
        half = np.empty(total.shape, np.float16)
        for step in steps:
            combine(total, step, out=total)
            np.copyto(half, total, casting="same_kind")
            np.copyto(total, half)
        return total.astype(np.float64)
    bits, odd = total.view(np.uint32), np.empty(total.shape, np.uint32)  # bf16_bits, in place
    sixteen, one, below, upper = map(np.uint32, (16, 1, 0x7FFF, 0xFFFF0000))
    for step in steps:
        combine(total, step, out=total)
        np.right_shift(bits, sixteen, out=odd)
        np.bitwise_and(odd, one, out=odd)
        np.add(odd, below, out=odd)
        np.add(bits, odd, out=bits)
        np.bitwise_and(bits, upper, out=bits)
    return total.astype(np.float64)


def _cell(operator: str, total: float, terms: list[float], dtype: str) -> float:
    """One cell of ``folded``. Raises OverflowError where a result is infinite."""
    single, whole, half = (struct.Struct(f) for f in "fIe")
    to_single, from_single = single.pack, single.unpack
    if dtype == "f16":
        to_half, from_half = half.pack, half.unpack
        for term in terms:
            (total,) = from_single(to_single(total + term if operator == "+" else total * term))
            (total,) = from_half(to_half(total))
        return total
    to_bits, from_bits = whole.unpack, whole.pack
    for term in terms:
        (bits,) = to_bits(to_single(total + term if operator == "+" else total * term))
        (total,) = from_single(from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))
    return total


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
            wanted = [operand_dtype(op, k, dtype, self.dtypes) for k in range(len(operands))]
            operands = [
                o if isinstance(written, Access) or k < first else self._literal(op, o, wanted[k])
                for k, (o, written) in enumerate(zip(operands, op.operands, strict=True))
            ]
            operands = [
                np.asarray(o, np.float64) if taken in FLOATS else o
                for o, taken in zip(operands, wanted, strict=True)
            ]
            if op.function in OF_BITS:
                return _of_bits(op.function, operands, wanted[0], dtype)
            if dtype == "u64":  # beside int64 NumPy would compute in float64
                operands = [*operands[:first], *(np.asarray(o).astype(np.uint64) for o in operands[first:])]
        if op.function in (*SHIFTS, "not"):  # of so many bits, a bool of one
            return np.asarray(FUNCTIONS[op.function](*operands, dtype))
        return np.asarray(FUNCTIONS[op.function](*operands))

    def _literal(self, op: Op, value: Array, dtype: str) -> Array:
        if dtype not in FLOATS:
            return held(value, dtype)
        array = op.target.array
        exact = array in self.exact or self.dtypes[array] in HALVES or op.function in (*COMPARISONS, *KEYS)
        return rounded(value, dtype) if exact else value

    def stored(self, value: Array, array: str) -> Array:
        """A value as it is after a write to an array."""
        dtype = self.dtypes[array]
        if dtype in HALVES or (dtype == "f32" and array in self.exact):
            return rounded(value, dtype)
        return held(value, dtype)

    def rounds(self, op: Op) -> bool:
        """Does every write of an accumulation round, so that its terms count in the order they come in?"""
        return op.accumulate in ("+", "*") and self.dtypes[op.target.array] in HALVES

    def term(self, value: Array, array: str) -> Array:
        """A term of an accumulation in the dtype that the sum is kept in."""
        return held(value, self.dtypes[array])
