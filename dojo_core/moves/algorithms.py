"""Bilinear algorithms as texts: three constant matrices, read within limits, and compared exactly.

A bilinear algorithm gives results c from operands a and b by products of sums: ``c[k]`` is the sum over
products p of ``result[p,k] * (sum of left[p,i]*a[i]) * (sum of right[p,j]*b[j])``. What it computes is its
tensor, the factor of ``a[i]*b[j]`` in ``c[k]``; two algorithms compute the same if and only if their tensors
are equal, which fractions decide. A text has a block for each matrix: its name with the shape of what it
refers to, and a row for each product, with a number for each cell of that shape, row by row::

    # F(2,3), but for its last product
    left 4
    1 0 -1 0
    0 1 1 0
    0 -1 1 0
    right 3
    ...
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path

from dojo_core.package_data import data_path

MOST_GROWTH = 32  # roundings of the largest operand: what every judge allows (measure/pool.py)
MOST_PRODUCTS = 128
MOST_CELLS = 64  # of an operand or the result
MOST_BYTES = 2**16
NAMES = ("left", "right", "result")
_NUMBER = re.compile(r"-?\d{1,9}(/[1-9]\d{0,8}|\.\d{1,9})?\Z", re.ASCII)

Cell = tuple[int, ...]
Tensor = dict[tuple[Cell, Cell, Cell], Fraction]  # (result, left, right): how often their product counts


class AlgorithmError(ValueError):
    """A text that is no bilinear algorithm, or a name of none; the message is a sentence."""


@dataclass(frozen=True)
class Matrix:
    """``rows``: one for each product, over the cells of ``shape`` in their order."""

    shape: Cell
    rows: tuple[tuple[Fraction, ...], ...]

    @property
    def cells(self) -> Iterator[Cell]:
        return product(*(range(n) for n in self.shape))


@dataclass(frozen=True)
class Algorithm:
    """Three matrices of as many rows, a row for each product."""

    name: str
    left: Matrix
    right: Matrix
    result: Matrix

    @property
    def products(self) -> int:
        return len(self.left.rows)

    def nested(self, left: Cell, right: Cell, result: Cell) -> int:
        """How often, one within the other, its shapes make these: 2 where a filter of 3 becomes 3 by
        3; 0: never."""
        times = len(left) // len(self.left.shape)
        wanted = tuple(matrix.shape * times for matrix in (self.left, self.right, self.result))
        return times if times and wanted == (left, right, result) else 0

    @property
    def tensor(self) -> Tensor:
        """What it computes, without what comes to 0."""
        return _tensor(self)

    def growth(self, times: int = 1) -> float:
        """Its error in floating point beside that of the sum that it replaces, nested so often.

        Each rounding is relative to what is rounded. Of operands that are alike in size and independent, a
        sum over a row has the size of the row's Euclidean norm, so that the roundings of a result are larger
        by the root of the sum of (result * |left row| * |right row|)^2 over its products, for its direct
        terms' number.
        """
        size = [
            sum(float(x) ** 2 for x in a) * sum(float(x) ** 2 for x in b)
            for a, b in zip(self.left.rows, self.right.rows, strict=True)
        ]
        terms = Counter(result for result, _, _ in self.tensor)
        worst = max(
            sum(float(row[k]) ** 2 * s for row, s in zip(self.result.rows, size, strict=True)) / terms[cell]
            for k, cell in enumerate(self.result.cells)
            if terms[cell]
        )
        return math.sqrt(worst) ** times


@lru_cache(maxsize=64)
def _tensor(algorithm: Algorithm) -> Tensor:
    total: Tensor = {}
    for a, b, c in zip(algorithm.left.rows, algorithm.right.rows, algorithm.result.rows, strict=True):
        for result, z in zip(algorithm.result.cells, c, strict=True):
            for left, x in zip(algorithm.left.cells, a, strict=True):
                for right, y in zip(algorithm.right.cells, b, strict=True) if x and z else ():
                    if y:
                        key = (result, left, right)
                        total[key] = total.get(key, Fraction(0)) + x * y * z
    return {key: value for key, value in total.items() if value}


def nested_tensor(algorithm: Algorithm, times: int) -> Tensor:
    """The tensor of the algorithm within itself, so often: a product for each dimension."""
    whole: Tensor = {((), (), ()): Fraction(1)}
    for _ in range(times):
        whole = {
            (c + z, a + x, b + y): value * more
            for (c, a, b), value in whole.items()
            for (z, x, y), more in algorithm.tensor.items()
        }
    return whole


def difference(algorithm: Algorithm, times: int, wanted: Tensor) -> str:
    """The first entry in which the algorithm, nested so often, is not what is wanted, as a sentence;
    \"\" where there is none."""
    has = nested_tensor(algorithm, times)
    for key in sorted({*has, *wanted}):
        if has.get(key, 0) != wanted.get(key, 0):
            result, left, right = (",".join(map(str, cell)) for cell in key)
            return (
                f"{algorithm.name} computes something else: in result [{result}] the product of left "
                f"[{left}] and right [{right}] counts {has.get(key, 0)} times, "
                f"and should {wanted.get(key, 0)} times."
            )
    return ""


def read_algorithm(name: str, text: str) -> Algorithm:
    """An algorithm by its text. Raises AlgorithmError, with the line."""
    matrices: dict[str, tuple[Cell, list[tuple[Fraction, ...]]]] = {}
    here: tuple[Cell, list[tuple[Fraction, ...]]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] in NAMES:
            if words[0] in matrices:
                raise AlgorithmError(f"Line {number} of {name}: there is a matrix {words[0]} already.")
            sizes = words[1:]
            if not sizes or not all(re.fullmatch(r"[1-9]\d?", size, re.ASCII) for size in sizes):
                raise AlgorithmError(
                    f"Line {number} of {name}: write {words[0]} and its sizes, as in left 2 2."
                )
            shape = tuple(map(int, sizes))
            if math.prod(shape) > MOST_CELLS:
                raise AlgorithmError(
                    f"Line {number} of {name}: a matrix has at most {MOST_CELLS} cells in a row."
                )
            here = matrices.setdefault(words[0], (shape, []))
            continue
        if here is None:
            raise AlgorithmError(f"Line {number} of {name}: begin with left and its sizes, as in left 4.")
        shape, rows = here
        wrong = next((word for word in words if not _NUMBER.match(word)), None)
        if wrong is not None:
            raise AlgorithmError(
                f"Line {number} of {name}: {wrong[:24]!r} is no number such as -3, 1/24 or 0.5."
            )
        if len(words) != math.prod(shape):
            raise AlgorithmError(
                f"Line {number} of {name}: a row has {math.prod(shape)} numbers here, this {len(words)}."
            )
        if len(rows) == MOST_PRODUCTS:
            raise AlgorithmError(
                f"Line {number} of {name}: an algorithm has at most {MOST_PRODUCTS} products."
            )
        rows.append(tuple(map(Fraction, words)))
    missing = [each for each in NAMES if each not in matrices]
    if missing:
        raise AlgorithmError(f"{name} has no matrix {missing[0]}: it needs left, right and result.")
    read = [Matrix(shape, tuple(rows)) for shape, rows in (matrices[each] for each in NAMES)]
    if len({len(matrix.rows) for matrix in read}) > 1 or not read[0].rows:
        counts = ", ".join(f"{each} {len(m.rows)}" for each, m in zip(NAMES, read, strict=True))
        raise AlgorithmError(f"The matrices of {name} have a row for each product, all as many: {counts}.")
    if len({len(matrix.shape) for matrix in read}) > 1:
        raise AlgorithmError(f"left, right and result of {name} have as many sizes each, as in 2 2.")
    return Algorithm(name, *read)


def folders() -> list[Path]:
    """Where algorithms lie: a user's own (DOJO_ALGORITHMS), then those that come with the Dojo."""
    own = os.environ.get("DOJO_ALGORITHMS", "")
    return [*([Path(own)] if own else []), data_path("dojo_core", "algorithms")]


def names() -> tuple[str, ...]:
    """All algorithms there are, a user's own among them."""
    return tuple(sorted({path.stem for folder in folders() for path in folder.glob("*.txt")}))


def algorithm(name: str) -> Algorithm:
    """An algorithm by its name, a user's own first. Raises AlgorithmError."""
    for folder in folders():
        path = folder / f"{name}.txt"
        if path.is_file():
            return _read(name, path, path.stat().st_mtime_ns)
    raise AlgorithmError(f"There is no algorithm {name}. Those that there are: {', '.join(names())}.")


@lru_cache(maxsize=64)
def _read(name: str, path: Path, changed: int) -> Algorithm:
    """The algorithm of a file as it was changed last."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise AlgorithmError(f"{path} is longer than {MOST_BYTES} bytes.")
        return read_algorithm(name, content.decode())
    except (OSError, UnicodeDecodeError) as fault:
        raise AlgorithmError(f"{path} cannot be read: {fault}.") from fault
