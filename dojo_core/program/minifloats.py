"""Floating-point numbers of eight bits and fewer: which there are, and what becomes one of them.

They are stored and converted, not computed with: one in a byte, in its lower bits where it has fewer than
eight. A number becomes the nearest one, ties to even, and beyond the greatest the greatest, infinities too.
Sources: ONNX (Cast; technical/float8, float4, float6), whose reference ``ml_dtypes`` has the same codes; OCP
8-bit Floating Point 1.0 and Microscaling Formats 1.0. The C of the same is ``codegen/minifloats.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.uint8]

EXPONENT_OF_F32 = 127  # its bias
FRACTION_OF_F32 = 23  # bits
INFINITE = 0x7F800000  # in f32's bits


@dataclass(frozen=True)
class Minifloat:
    """A sign, an exponent and a fraction.

    ``most``: the code of the greatest number. ``nan``: what NaN becomes, which is -0 where there is none.
    ``infinity``: is the code behind ``most`` infinite? ``negative_zero``: is the code of the sign alone -0?
    Else it is NaN.
    """

    exponent: int
    fraction: int
    bias: int
    most: int
    nan: int
    infinity: bool = False
    negative_zero: bool = True

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def least_nan(self) -> int | None:
        """The magnitudes from here on are NaN; None: none is."""
        return self.most + 1 + self.infinity if self.nan & (self.sign - 1) else None

    @property
    def shift(self) -> int:
        """By how many bits the fraction is shorter than that of f32."""
        return FRACTION_OF_F32 - self.fraction

    def bits(self, code: int) -> int:
        """Those of f32 of a normal number's code without a sign."""
        return (code << self.shift) + ((EXPONENT_OF_F32 - self.bias) << FRACTION_OF_F32)

    @property
    def normal(self) -> int:
        """The bits, in f32, of the least number that is not denormal."""
        return self.bits(1 << self.fraction)

    @property
    def rounder(self) -> int:
        """The bits of the f32 whose last one is worth what the least denormal is: what is added to it is
        rounded to denormals."""
        return (EXPONENT_OF_F32 + FRACTION_OF_F32 + 1 - self.bias - self.fraction) << FRACTION_OF_F32

    def value(self, code: int) -> float:
        """What a code stands for."""
        magnitude = code & (self.sign - 1)
        negative = bool(code & self.sign)
        if (self.least_nan is not None and magnitude >= self.least_nan) or (
            negative and not magnitude and not self.negative_zero
        ):
            return float("nan")
        if self.infinity and magnitude == self.most + 1:
            return float("-inf") if negative else float("inf")
        exponent, fraction = divmod(magnitude, 1 << self.fraction)
        whole = fraction + ((1 << self.fraction) if exponent else 0)
        size = float(whole) * 2.0 ** (max(exponent, 1) - self.bias - self.fraction)
        return -size if negative else size

    def codes(self, single: npt.NDArray[np.float32]) -> Codes:
        """Those of the nearest numbers."""
        word = _words(single)
        magnitude = word & np.uint32(0x7FFFFFFF)
        near = np.minimum(magnitude, np.uint32(self.bits(self.most)))
        half = np.uint32((1 << (self.shift - 1)) - 1)
        base = np.uint32((EXPONENT_OF_F32 - self.bias) << FRACTION_OF_F32)
        shift = np.uint32(self.shift)
        normal = (near - base + half + (near >> shift & np.uint32(1))) >> shift
        rounder = np.uint32(self.rounder)
        tiny = (near.view(np.float32) + rounder.view(np.float32)).view(np.uint32) - rounder
        code = np.where(near < np.uint32(self.normal), tiny, normal).astype(np.uint8)
        signed = code | np.where(word >> np.uint32(31), np.uint8(self.sign), np.uint8(0))
        if not self.negative_zero:
            signed = np.where(code == 0, np.uint8(0), signed)
        return np.where(magnitude > INFINITE, np.uint8(self.nan), signed)


class PowersOfTwo:
    """2**-127 to 2**127 and NaN, without a sign: the scales of blocks. A number becomes the next power that
    is not below it, as ONNX has it unless told otherwise; a negative one becomes NaN."""

    infinity = False
    nan = 0xFF

    def value(self, code: int) -> float:
        """What a code stands for."""
        return float("nan") if code == self.nan else 2.0 ** (code - EXPONENT_OF_F32)

    def codes(self, single: npt.NDArray[np.float32]) -> Codes:
        """Those of the next powers."""
        word = _words(single)
        magnitude = word & np.uint32(0x7FFFFFFF)
        up = np.minimum((magnitude + np.uint32(0x7FFFFF)) >> np.uint32(FRACTION_OF_F32), np.uint32(0xFE))
        code = np.where(magnitude <= 0x400000, np.uint8(0), up.astype(np.uint8))
        wrong = (magnitude > INFINITE) | ((word >> np.uint32(31)).astype(bool) & (magnitude > 0))
        return np.where(wrong, np.uint8(self.nan), code)


def _words(single: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(single).view(np.uint32).reshape(np.shape(single))


MINIFLOATS: dict[str, Minifloat | PowersOfTwo] = {
    "f8e4m3fn": Minifloat(4, 3, 7, most=0x7E, nan=0x7F),
    "f8e5m2": Minifloat(5, 2, 15, most=0x7B, nan=0x7E, infinity=True),
    "f8e4m3fnuz": Minifloat(4, 3, 8, most=0x7F, nan=0x80, negative_zero=False),
    "f8e5m2fnuz": Minifloat(5, 2, 16, most=0x7F, nan=0x80, negative_zero=False),
    "f8e8m0fnu": PowersOfTwo(),
    "f6e2m3fn": Minifloat(2, 3, 1, most=0x1F, nan=0x20),
    "f6e3m2fn": Minifloat(3, 2, 3, most=0x1F, nan=0x20),
    "f4e2m1fn": Minifloat(2, 1, 1, most=0x7, nan=0x8),
}


def minifloat_codes(values: Array, dtype: str) -> Codes:
    """The codes of numbers, by way of f32; an infinity is the greatest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        return MINIFLOATS[dtype].codes(np.asarray(values, np.float32))


def minifloat_values(codes: Array, dtype: str) -> npt.NDArray[np.float64]:
    """What codes stand for. Bits above those that a dtype has are passed over."""
    return np.asarray(_values(dtype)[np.asarray(codes, np.uint8)])


@lru_cache(maxsize=len(MINIFLOATS))
def _values(dtype: str) -> npt.NDArray[np.float64]:
    """Of all 256 bytes."""
    return np.array([MINIFLOATS[dtype].value(code) for code in range(256)])


def minifloat_stored(values: Array, dtype: str) -> Codes:
    """The codes of numbers that a dtype has: an infinity stays one where there is one."""
    codes, form = minifloat_codes(values, dtype), MINIFLOATS[dtype]
    if isinstance(form, Minifloat) and form.infinity:
        return np.where(np.isinf(values), codes + np.uint8(1), codes)  # behind the greatest number
    return codes


def to_minifloat(number: int | float, dtype: str) -> float:
    """The nearest number that a dtype has, an infinity where it has one."""
    return float(minifloat_values(minifloat_stored(np.asarray(number, np.float64), dtype), dtype))


def has_sign(dtype: str) -> bool:
    """Are there negative ones?"""
    return isinstance(MINIFLOATS[dtype], Minifloat)


def step(dtype: str) -> tuple[float, float]:
    """The distance of neighbours: relative to the size of the greater, and near 0."""
    form = MINIFLOATS[dtype]
    if isinstance(form, PowersOfTwo):
        return 1.0, form.value(0)
    return 2.0**-form.fraction, form.value(1)
