"""Products on tensor cores, where the policy lets factors be rounded to TF32: a block of warps for a tile.

As in ``contractions.py`` panels of both operands go through shared memory; the copies round them. A warp has 32
or 64 rows by 32 columns in registers, as instructions of 16 x 8 results over 8 terms. Rows of the panels are
padded so that what the 32 lanes read at once lies in different banks: the rows of the left one 8 words apart
modulo 32, read by pairs of terms, those of the right one 4.
Source: CUTLASS, "Efficient GEMM in CUDA" (the hierarchy of tiles).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from agents.passes.gpu.products import Product, find_product, product_leaf, spread
from agents.passes.gpu.staging import join_with_start, scopes_of
from agents.passes.gpu.threads import cut, lift, mark, to_heap, to_thread, vector_or_unrolled
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

LANES, WARP_ROWS, WARP_COLUMNS = 4, 8, 4  # of a vector; threads of a warp
ROWS, COLUMNS, TERMS = 16, 8, 8  # of an instruction
TILES = 132  # one for each processor of a large device
LEFT_PAD, RIGHT_PAD = 8, 4  # words


@dataclass(frozen=True)
class Blocking:
    """Rows, columns and terms of a block's tile, and rows and columns of a warp's."""

    rows: int
    columns: int
    terms: int
    warp_rows: int
    warp_columns: int

    @property
    def threads(self) -> int:
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * WARP_ROWS * WARP_COLUMNS


# Largest first.
BLOCKINGS = (
    Blocking(128, 128, 32, 64, 32),
    Blocking(64, 128, 32, 32, 32),
    Blocking(64, 64, 32, 32, 32),
)


def tile_on_tensor_cores(
    sketch: Sketch, operation: Provenance, blocking: Blocking | None = None, most: int = TILES
) -> None:
    """Give a product's tiles to blocks, and what a warp has of one to tensor cores.

    Without a ``blocking`` the first that divides the product. Fewer tiles than ``most`` become parts of sums.
    Raises NoSuchPlace.
    """
    blocking = blocking or _fitting(sketch, operation)
    sizes = blocking.rows, blocking.columns, blocking.terms
    tile = blocking.rows * blocking.columns
    spread(sketch, operation, find_product(sketch, operation, *sizes), tile, blocking.terms, most)
    join_with_start(sketch, operation, find_product(sketch, operation, *sizes).columns)
    found = find_product(sketch, operation, *sizes)
    array = product_leaf(sketch, operation).op.target.array
    rows_outer, rows = cut(sketch, found.rows, blocking.rows)
    block, columns = cut(sketch, found.columns, blocking.columns)
    lift(sketch, block, len(sketch.path(rows_outer)))
    sums = fresh_name(sketch.program, array + "s")
    sketch.play("stage_write", array, sketch.place(sketch.path(block)), sums)
    to_heap(sketch, sums)
    for depth in (len(sketch.path(columns)), len(sketch.path(rows))):
        path = sketch.path(operation)
        sketch.play("fission_scope", sketch.place(path[:depth]), sketch.place(path[: depth + 1]))
    top = sketch.path(block)
    start, product, store = (sketch.provenance((*top, n)) for n in range(3))
    terms, step = cut(sketch, found.terms, blocking.terms)
    lift(sketch, terms, len(top))
    shares = [_share(sketch, each, blocking) for each in (start, product, store)]
    steps, within = cut(sketch, step, TERMS)
    lift(sketch, steps, len(sketch.path(shares[1].tiles[0])) - 1)
    _split_sums(sketch, sums, len(top), blocking)
    panels = _panels(sketch, found, terms)
    copies = [
        _copy(sketch, name, pad, blocking.threads)
        for name, pad in zip(panels, (LEFT_PAD, RIGHT_PAD), strict=True)
    ]
    for n in range(len(top)):
        mark(sketch, "map_grid", sketch.provenance(top[: n + 1]))
    for panel in panels:
        sketch.play("set_location", panel, "shared")
    for threads, per_thread, lanes in copies:
        for each in threads:
            mark(sketch, "map_block", each)
        mark(sketch, "unroll", per_thread)
        vector_or_unrolled(sketch, lanes)
    for share in shares:
        for each in share.threads:
            mark(sketch, "map_block", each)
    mark(sketch, "map_tensor_core", shares[1].within[0])
    mark(sketch, "unroll", steps)
    for share in shares:
        for each in share.tiles:
            mark(sketch, "unroll", each)
    for share in (shares[0], shares[2]):
        mark(sketch, "unroll", share.within[0])
        vector_or_unrolled(sketch, share.within[1])
    if not to_thread(sketch, sums, len(top)):
        raise NoSuchPlace("A thread cannot keep its sums.")


@dataclass(frozen=True)
class _Share:
    """Scopes by provenance: over the threads, over the instructions of a warp, and within one of them."""

    threads: tuple[Provenance, ...]
    tiles: tuple[Provenance, Provenance]
    within: tuple[Provenance, Provenance]


def _share(sketch: Sketch, rows: Provenance, blocking: Blocking) -> _Share:
    """Warps by rows and by columns, a warp's threads; its instructions by rows and columns; in each two rows,
    8 apart, by two columns, side by side."""
    columns = sketch.provenance((*sketch.path(rows), 0))
    down, rest = cut(sketch, rows, blocking.warp_rows)
    tile_rows, rest = cut(sketch, rest, ROWS)
    row, thread_row = cut(sketch, rest, WARP_ROWS)
    across, rest = cut(sketch, columns, blocking.warp_columns)
    tile_columns, rest = cut(sketch, rest, COLUMNS)
    thread_column, column = cut(sketch, rest, COLUMNS // WARP_COLUMNS)
    first = len(sketch.path(down)) - 1
    ordered = (down, across, thread_row, thread_column, tile_rows, tile_columns, row, column)
    for n, each in enumerate(ordered):
        lift(sketch, each, first + n)
    return _Share(ordered[:4], (tile_rows, tile_columns), (row, column))


def _split_sums(sketch: Sketch, sums: str, k: int, blocking: Blocking) -> None:
    """Dimensions as the scopes are: k the first of the two to be split."""
    for dim, factors in ((k + 1, (blocking.warp_columns, COLUMNS, 2)), (k, (blocking.warp_rows, ROWS, WARP_ROWS))):
        for n, factor in enumerate(factors):
            sketch.play("split_dim", sums, dim + n, factor)
    names = ["down", "tile_rows", "row", "thread_row", "across", "tile_columns", "thread_column", "column"]
    wanted = ["down", "across", "thread_row", "thread_column", "tile_rows", "tile_columns", "row", "column"]
    for n, name in enumerate(wanted):
        at = names.index(name)
        if at != n:
            sketch.play("swap_dims", sums, k + n, k + at)
            names[n], names[at] = names[at], names[n]


def _panels(sketch: Sketch, found: Product, terms: Provenance) -> tuple[str, str]:
    """Copies of what a step takes of each operand, rounded."""
    names = []
    for access in (found.right, found.left):
        names.append(fresh_name(sketch.program, access.array + "p"))
        sketch.play("stage_read", access.array, sketch.place(sketch.path(terms)), names[-1])
        sketch.play("round_tf32", Place(names[-1]))
    return names[1], names[0]


def _copy(
    sketch: Sketch, panel: str, pad: int, threads: int
) -> tuple[tuple[Provenance, Provenance], Provenance, Provenance]:
    """A row of a panel by neighbouring threads, four elements each, as many rows at once as there are threads."""
    rows, columns = scopes_of(sketch, panel, 2)
    dims = buffer_named(sketch.program, panel).dims
    width = dims[-1].size
    across, lanes = cut(sketch, columns, LANES)
    at_once = threads * LANES // width
    per_thread, down = cut(sketch, rows, at_once)
    first = len(sketch.path(per_thread)) - 1
    for n, each in enumerate((down, across)):
        lift(sketch, each, first + n)
    sketch.play("pad_dim", panel, len(dims) - 1, width + pad)
    return (down, across), per_thread, lanes


def _fitting(sketch: Sketch, operation: Provenance) -> Blocking:
    """The first blocking that divides a product. Raises NoSuchPlace."""
    for each in BLOCKINGS:
        with suppress(NoSuchPlace):
            find_product(sketch, operation, each.rows, each.columns, each.terms)
            return each
    raise NoSuchPlace("No tile of tensor cores divides it.")
