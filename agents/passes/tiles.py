"""The size of a register tile: rows by vectors of sums that stay in registers over a whole contraction."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.moves.places import NoSuchPlace

MOST_ROWS = 16  # of a tile
MOST_VECTORS = 8  # side by side in a tile
LATENCY = 4  # cycles of a multiply-add: fewer sums than this in a tile wait for each other


@dataclass(frozen=True)
class Tile:
    """Rows, vectors and lanes of a register tile."""

    rows: int
    vectors: int
    width: int

    @property
    def columns(self) -> int:
        return self.vectors * self.width


def choose_tile(rows: int, columns: int, widths: tuple[int, ...], registers: int, most: int) -> Tile:
    """The tile with the fewest cycles: sums in registers against loads, and what is left over at the end.

    ``most`` columns at most: a panel of them stays in a core's cache.
    """
    best: tuple[float, int, Tile] | None = None
    width = next((w for w in widths if w <= columns), 0)
    if not width:  # sums of single numbers, side by side in registers
        fitting = (n for n in range(1, MOST_ROWS + 1) if rows % n == 0 and n * columns <= registers)
        row = max(fitting, default=0)
        if not row:
            raise NoSuchPlace("No vectors, and too many columns for registers.")
        return Tile(row, 1, columns)
    for r in (n for n in range(1, min(rows, MOST_ROWS) + 1) if rows % n == 0):
        for vectors in range(1, min(MOST_VECTORS, columns // width) + 1):
            if r * vectors + vectors + 1 > registers or vectors > max(1, most // width):
                break
            tile = Tile(r, vectors, width)
            left = columns % tile.columns
            cycles = (columns // tile.columns) * _cycles(r, vectors)
            while left >= widths[-1]:
                narrow = next(w for w in widths if w <= left)
                beside = min(left // narrow, vectors)
                cycles += 1.2 * _cycles(r, beside)  # code of its own, and a pass of its own
                left -= beside * narrow
            cycles += left * r * 2
            rank = (cycles / r, -r * vectors, tile)
            if best is None or rank[:2] < best[:2]:
                best = rank
    if best is None:
        raise NoSuchPlace("No tile fits the registers.")
    return best[2]


def _cycles(rows: int, vectors: int) -> float:
    """Of a tile for one term of the sum: multiply-adds, loads, or waiting, whichever takes longest.

    A vector of the panel costs more than a number of a row: each tile of rows reads the panel anew, from
    the second-level cache where it is too wide for the first. 8 rows of 2 vectors are faster than 4 of 4.
    """
    return max(rows * vectors, rows + vectors, LATENCY) + 0.05 * (rows + 3 * vectors)
