"""What a slab of inputs may be filled with, by name: the inputs on which some algebraic move is worst.

Which those are the moves declare (``Transformation.worst_inputs``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


Filler = Callable[[int, str, np.random.Generator], Doubles]  # of n elements, for a dtype
BLOCKS = 16  # a multiple of this is where a block, a vector or a thread's share begins


@dataclass(frozen=True)
class Pattern:
    """``about`` says what stands in a slab, the elements that a program's sums bring together."""

    about: str
    fill: Filler


def _outlier(where: str, place: Callable[[int, np.random.Generator], int]) -> Pattern:
    """Normal numbers, one of them far out."""

    def fill(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
        values = rng.standard_normal(n)
        size = 100.0 if dtype == "f16" else 10.0 ** rng.integers(2, 6)
        values[place(n, rng)] = rng.choice([-1.0, 1.0]) * size
        return values

    return Pattern(f"normal numbers, but 100 to 100,000 {where}", fill)


def _large_mean(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
    # In f16 256 of 255 would come so near the largest number that the order of a sum decides.
    return (200 if dtype == "f16" else 255) + 0.5 * rng.standard_normal(n)


def _zero_first(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
    values = _large_mean(n, dtype, rng)
    values[0] = 0.0
    return values


def _masked(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
    values = np.where(rng.random(n) < 0.5, -np.inf, rng.standard_normal(n))
    values[0] = -np.inf
    values[-1] = 1.0  # a row of nothing else has no maximum
    return values


def _rising(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
    return np.linspace(-20.0, 20.0, n)


def _falling(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
    return np.linspace(20.0, -20.0, n)


def _constant(value: float) -> Filler:
    return lambda n, dtype, rng: np.full(n, value)


def _times(usual: float, **others: float) -> Filler:
    """Normal numbers times this, in some dtypes times another.

    In f16 so large at most that their sum is finite in any order, and that of their squares infinite.
    """

    def fill(n: int, dtype: str, rng: np.random.Generator) -> Doubles:
        size = others.get(dtype, usual)
        return rng.standard_normal(n) * (min(size, 8000 / np.sqrt(n)) if dtype == "f16" else size)

    return fill


# Where a program has few slabs, the first ones are drawn.
PATTERNS = {
    "outlier first": _outlier("in the first place", lambda n, rng: 0),
    "zero before a large mean": Pattern(
        "numbers about 255 (f16: 200) of deviation 0.5 behind a zero", _zero_first
    ),
    "rising": Pattern("each element larger than all before it, from -20 to 20", _rising),
    "small": Pattern("normal numbers times 1e-30", _times(1e-30, f16=1e-3)),
    "outlier last": _outlier("in the last place", lambda n, rng: n - 1),
    "masked": Pattern("half of the elements minus infinity, among them the first", _masked),
    "large mean": Pattern("numbers about 255 (f16: 200) of deviation 0.5", _large_mean),
    "overflow of squares": Pattern(
        "normal numbers times 1e20, whose squares are infinite in f32", _times(1e20, f16=1e3, f64=1e160)
    ),
    "outlier at a block": _outlier(
        f"in a place that is a multiple of {BLOCKS}",
        lambda n, rng: int(rng.integers(-(-n // BLOCKS))) * BLOCKS,
    ),
    "outlier in the middle": _outlier("in the middle", lambda n, rng: n // 2),
    "falling": Pattern("each element smaller than all before it, from 20 to -20", _falling),
    "constant": Pattern("1234.567 throughout", _constant(1234.567)),
    "zeros": Pattern("zeros", _constant(0.0)),
    "large": Pattern("normal numbers times 1e30", _times(1e30, f16=1e3)),
}
