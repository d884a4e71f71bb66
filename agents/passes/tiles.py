"""The size of a register tile: rows by vectors of sums that stay in registers over a whole contraction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from dojo_core.moves.places import NoSuchPlace

MOST_ROWS = 16  # of a tile
MOST_VECTORS = 8  # side by side in a tile
# A core begins two multiply-adds a cycle and has the result of one after four or five cycles: with fewer sums
# than this in a tile, they wait for each other.
WAITING = 10
APART, WORTH = 1.5, 0.8  # code of its own for a rest costs more; what cutting it off has to come to
FEW = 16  # registers, as processors have them whose vectors are half a line at most
# Half cycles that a vector from the second-level cache takes; what it costs beside, in numbers of a row.
PANEL, VECTOR = 2.5, 3.0
HALVES_PANEL, HALVES_VECTOR = 3.0, 1.5  # where packed vectors are halves of lines


@dataclass(frozen=True)
class Tile:
    """Rows, vectors and lanes of a register tile. ``turned``: its rows' numbers stay in registers while the
    vectors come by, not the other way round."""

    rows: int
    vectors: int
    width: int
    turned: bool = False

    @property
    def columns(self) -> int:
        return self.vectors * self.width

    def for_rest(self, rows: int) -> Tile:
        """The tile of as many columns for the rows that it leaves over."""
        return replace(self, rows=max(n for n in range(1, self.rows + 1) if rows % n == 0))


def choose_tile(
    rows: int, columns: int, widths: tuple[int, ...], registers: int, most: int, packed: bool = False
) -> Tile:
    """The tile with the fewest cycles: sums in registers against loads, and what is left over at the end.

    ``most`` columns at most: a panel of them stays in a core's cache. ``packed``: it is a copy of its own.
    """
    if columns < min(widths, default=columns + 1):  # sums of single numbers, side by side in registers
        fitting = (n for n in range(1, MOST_ROWS + 1) if rows % n == 0 and n * columns <= registers)
        row = max(fitting, default=0)
        if not row:
            raise NoSuchPlace("No vectors, and too many columns for registers.")
        return Tile(row, 1, columns)
    best = cheapest(rows, columns, widths, registers, most, packed)[1]
    if best is None:
        raise NoSuchPlace("No tile fits the registers.")
    return best


def whole_rows(
    rows: int, columns: int, widths: tuple[int, ...], registers: int, most: int, packed: bool = False
) -> int:
    """How many of the rows tiles of one size are to take: all, or so many that fewer cycles are needed where
    the others have tiles of their own, as of 197, which no tile divides: along the same panels where these
    are ``packed``."""

    def cycles(count: int) -> float:
        return count * cheapest(count, columns, widths, registers, most, packed)[0] if count else 0.0

    def of_rest(at: int) -> float:
        tile = cheapest(at, columns, widths, registers, most, packed)[1]
        if not packed or tile is None:
            return cycles(rows - at)
        shorter = tile.for_rest(rows - at)
        tiles = (rows - at) // shorter.rows * columns / tile.columns
        return tiles * tile_cycles(shorter.rows, tile.vectors, packed and registers <= FEW)

    if rows <= MOST_ROWS or not columns >= min(widths, default=columns + 1):
        return rows
    cut = [rows - rows % each for each in range(2, MOST_ROWS + 1) if rows % each]
    in_two = {at: cycles(at) + APART * of_rest(at) for at in cut}
    best = min(in_two, key=lambda at: in_two[at], default=rows)
    return best if best < rows and in_two[best] < WORTH * cycles(rows) else rows


def cheapest(
    rows: int, columns: int, widths: tuple[int, ...], registers: int, most: int, packed: bool = False
) -> tuple[float, Tile | None]:
    """The cycles for a row and a term of the sum, and the tile of the first columns; the rest has its own."""
    heights = tuple(n for n in range(1, min(rows, MOST_ROWS) + 1) if rows % n == 0)
    most = min(most, MOST_VECTORS * max(widths, default=0))
    return _cheapest(heights, columns, widths, registers, most, packed)


@lru_cache(maxsize=1 << 14)  # a rest comes up again after many tiles, and among other rows
def _cheapest(
    heights: tuple[int, ...], columns: int, widths: tuple[int, ...], registers: int, most: int, packed: bool
) -> tuple[float, Tile | None]:
    """The same for tiles of these heights."""
    width = next((w for w in widths if w <= columns), 0)
    if not width:
        return 2.0 * columns, None
    best: tuple[float, int, Tile | None] = (math.inf, 0, None)  # of equal ones the smallest
    for r in heights:
        for vectors in range(1, min(MOST_VECTORS, columns // width) + 1):
            if r * vectors + vectors + 1 > registers or vectors > max(1, most // width):
                break
            tile = Tile(r, vectors, width)
            cycles = (columns // tile.columns) * tile_cycles(r, vectors, packed and registers <= FEW) / r
            if left := columns % tile.columns:  # code of its own, and a pass of its own
                cycles += 1.2 * _cheapest(heights, left, widths, registers, most, packed)[0]
            best = min(best, (round(cycles, 6), r * vectors, tile), key=lambda each: each[:2])
    return best[0], best[2]


def tile_cycles(rows: int, vectors: int, halves: bool = False, waiting: int = WAITING) -> float:
    """Half cycles of a tile for one term of the sum: multiply-adds, loads, vectors of the panel, or waiting,
    whichever takes longest.

    Each tile of rows reads the panel anew, from the second-level cache where it is too wide for the first;
    a number of a row costs less: 8 rows of 2 vectors are faster than 4 of 4. ``halves``: the panel's vectors
    are halves of lines, all of which are read: 4 rows of 3 vectors are faster than 6 of 2.
    """
    panel, vector = (HALVES_PANEL, HALVES_VECTOR) if halves else (PANEL, VECTOR)
    return max(rows * vectors, rows + vectors, panel * vectors, waiting) + 0.05 * (rows + vector * vectors)
