"""Products on tensor cores, where the policy lets factors be rounded to TF32: a block of warps for a tile.

As in ``contractions.py`` panels of both operands go through shared memory; the copies round them, and the
next panels are loaded meanwhile. A warp has 32 or 64 rows by 32 columns in registers, as instructions of
16 x 8 results over 8 terms. Rows of the panels are padded so that what the 32 lanes read at once lies in
different banks: those of the left one 4 words apart modulo 32, of which they take 8 by 4, of the right one 8.
Source: CUTLASS, "Efficient GEMM in CUDA" (the hierarchy of tiles).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from agents.passes.gpu.products import Product, find_product, into_blocks, spread
from agents.passes.gpu.staging import join_with_start, scopes_of, writer
from agents.passes.gpu.threads import cut, lift, mark, to_heap, to_thread, vector_or_unrolled
from agents.passes.structure import scope_of
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Provenance, Scope
from dojo_core.recipes import RECIPES, Sketch

LANES, WARP_ROWS, WARP_COLUMNS = 4, 8, 4  # of a vector; threads of a warp
ROWS, COLUMNS, TERMS = 16, 8, 8  # of an instruction
TILES = 200  # blocks that keep a large device busy: three for two processors, which hold three each
LEFT_PAD, RIGHT_PAD = 4, 8  # words


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


# The first that divides a product is taken. A warp of 64 x 32 results reads a quarter less of the panels than
# one of 32 x 32, and three such blocks fit a processor's registers.
BLOCKINGS = (Blocking(128, 64, 32, 64, 32), Blocking(64, 64, 32, 32, 32))


def tile_on_tensor_cores(sketch: Sketch, operation: Provenance) -> None:
    """Give a product's tiles to blocks, and what a warp has of one to tensor cores. Raises NoSuchPlace."""
    blocking = _fitting(sketch, operation)
    sizes = blocking.rows, blocking.columns, blocking.terms
    found = find_product(sketch, operation, *sizes)
    spread(sketch, operation, found, blocking.rows * blocking.columns, blocking.terms, TILES)
    join_with_start(sketch, operation, find_product(sketch, operation, *sizes).columns)
    found = find_product(sketch, operation, *sizes)
    blocks = into_blocks(sketch, operation, found, sizes)
    top, sums, terms, step = blocks.top, blocks.sums, blocks.terms, blocks.step
    shares = [_share(sketch, each, blocking) for each in blocks.parts]
    steps, _ = cut(sketch, step, TERMS)
    lift(sketch, steps, len(sketch.path(shares[1].tiles[0])) - 1)
    _split_sums(sketch, sums, len(top), blocking)
    panels = _panels(sketch, found, terms)
    for panel, pad in zip(panels, (LEFT_PAD, RIGHT_PAD), strict=True):
        dims = buffer_named(sketch.program, panel.shared).dims
        sketch.play("pad_dim", panel.shared, len(dims) - 1, dims[-1].size + pad)
    copies = [_copy(sketch, n, blocking.threads) for panel in panels for n in (panel.ahead, panel.shared)]
    for n in range(len(top)):
        mark(sketch, "map_grid", sketch.provenance(top[: n + 1]))
    for panel in panels:
        sketch.play("set_location", panel.shared, "shared")
    for copy in copies:
        for each in copy.threads:
            mark(sketch, "map_block", each)
        mark(sketch, "unroll", copy.per_thread)
        vector_or_unrolled(sketch, copy.lanes)
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
    _load_ahead(sketch, terms, panels, len(top))


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
    for dim, factors in (
        (k + 1, (blocking.warp_columns, COLUMNS, 2)),
        (k, (blocking.warp_rows, ROWS, WARP_ROWS)),
    ):
        for n, factor in enumerate(factors):
            sketch.play("split_dim", sums, dim + n, factor)
    names = ["down", "tile_rows", "row", "thread_row", "across", "tile_columns", "thread_column", "column"]
    wanted = ["down", "across", "thread_row", "thread_column", "tile_rows", "tile_columns", "row", "column"]
    for n, name in enumerate(wanted):
        at = names.index(name)
        if at != n:
            sketch.play("swap_dims", sums, k + n, k + at)
            names[n], names[at] = names[at], names[n]


@dataclass(frozen=True)
class _Panel:
    """What a step takes of an operand: as it is loaded, a step ahead, and rounded in shared memory."""

    ahead: str
    shared: str


def _panels(sketch: Sketch, found: Product, terms: Provenance) -> tuple[_Panel, _Panel]:
    """Copies of copies of what a step takes of each operand, left and right, all loads first."""
    panels = []
    for access in (found.right, found.left):
        names = []
        for letter in "pr":
            names.append(fresh_name(sketch.program, access.array + letter))
            sketch.play("stage_read", access.array, sketch.place(sketch.path(terms)), names[-1])
        sketch.play("round_tf32", Place(names[0]))
        to_heap(sketch, names[1])
        panels.append(_Panel(names[1], names[0]))
    right, left = panels
    _behind(sketch, left.shared, right.ahead)
    return left, right


def _behind(sketch: Sketch, name: str, other: str) -> None:
    """Let the nest that fills a buffer change places with the next one, which fills the other. Raises
    NoSuchPlace."""
    depth = len(writer(sketch, name).path) - 2
    path = writer(sketch, name).path[:depth]
    if writer(sketch, other).path[:depth] != (*path[:-1], path[-1] + 1):
        raise NoSuchPlace("The copies do not follow each other.")
    sketch.play("reorder", sketch.place(path))


@dataclass(frozen=True)
class _Copy:
    """Scopes of a copy by provenance."""

    threads: tuple[Provenance, Provenance]
    per_thread: Provenance
    lanes: Provenance


def _copy(sketch: Sketch, name: str, threads: int) -> _Copy:
    """A row of a panel by neighbouring threads, four elements each, as many rows at once as threads have."""
    rows, columns = scopes_of(sketch, name, 2)
    width = scope_of(sketch.program, sketch.path(columns)).size
    across, lanes = cut(sketch, columns, LANES)
    per_thread, down = cut(sketch, rows, threads * LANES // width)
    first = len(sketch.path(per_thread)) - 1
    for n, each in enumerate((down, across)):
        lift(sketch, each, first + n)
    return _Copy((down, across), per_thread, lanes)


def _fitting(sketch: Sketch, operation: Provenance) -> Blocking:
    """The first blocking that cuts a product into several tiles and steps. Raises NoSuchPlace."""
    for each in BLOCKINGS:
        with suppress(NoSuchPlace):
            found = find_product(sketch, operation, each.rows, each.columns, each.terms)
            sizes = [
                scope_of(sketch.program, sketch.path(p)).size
                for p in (found.rows, found.columns, found.terms)
            ]
            if all(size > of for size, of in zip(sizes, (each.rows, each.columns, each.terms), strict=True)):
                return each
    raise NoSuchPlace("No tile of tensor cores divides it.")


def _load_ahead(sketch: Sketch, terms: Provenance, panels: tuple[_Panel, _Panel], grid: int) -> None:
    """Loads of the next step into registers, while tensor cores have this one (software pipelining)."""
    for panel in panels:
        threads = scope_of(sketch.program, writer(sketch, panel.ahead).path[: grid + 2]).size
        k = len(buffer_named(sketch.program, panel.ahead).dims) - 2
        sketch.play("split_dim", panel.ahead, k, threads)
        sketch.play("split_dim", panel.ahead, k + 2, LANES)
        sketch.play("swap_dims", panel.ahead, k, k + 1)
        sketch.play("swap_dims", panel.ahead, k + 1, k + 2)
    path = sketch.path(terms)
    sketch.play("fission_scope", sketch.place(path), sketch.place((*path, len(panels))))
    RECIPES["pipeline"].run(sketch, sketch.place(path), None)
    loop = next(
        node.provenance
        for node in scope_of(sketch.program, path[:-1]).body
        if isinstance(node, Scope) and not node.mark
    )
    for moved in range(len(panels)):
        for at in range(moved + len(panels), moved, -1):
            sketch.play("reorder", sketch.place((*sketch.path(loop), at - 1)))
    for panel in panels:
        sketch.play("reuse_dims", panel.ahead, *range(grid + 1), "local")
