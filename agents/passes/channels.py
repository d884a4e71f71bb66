"""Channels in the lanes: convolutions whose vectors go along the channels of the result, not its columns.

Rows of 10 results leave 6 of 16 lanes idle, and what a window of stride 2 reads is not side by side. Where
vectors divide the channels, a tile of neighbouring results by vectors of channels has neither fault: a number
of the input goes to all lanes, wherever it lies, and the weights, laid out once, are the vectors. The results
are turned in registers, square by square, into rows of columns. Where the weights are constants that no cache
keeps from row to row, a panel of channels goes over all rows before the next one does. Source: Georganas et
al., "Anatomy of high-performance deep learning convolutions on SIMD architectures", SC '18.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

from agents.passes.contractions import (
    COPYING,
    Contraction,
    block_terms,
    copies_rows,
    cut_rows,
    find,
    initialisation,
    terms_of,
    tile_nests,
    whole_vectors,
    write_tile,
)
from agents.passes.dense import SHORT, run_of
from agents.passes.gathering import LONG
from agents.passes.nests import isolate, join_shared, leaf_at, order, wrapped
from agents.passes.packing import turn_in_squares
from agents.passes.phases import step_of
from agents.passes.structure import LINE, depths_of, only, scope_of, stride, uses, widths_for
from agents.passes.threads import BALANCED, balance
from agents.passes.tiles import Tile, cheapest, tile_cycles
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Provenance
from dojo_core.recipes import Sketch

SQUARES = 2  # widths of a vector in a row from which on columns that are left over are few of those to turn
# Of the cycles that vectors of columns take, and with results that are neither turned nor stored.
WORTH, WORTH_UNSTORED = 0.95, 1.2
# Half cycles a number, in a core's cache and past it. Gathering what does not lie side by side: past it,
# it is written and read once more. Turning results: many are stored at once, with no sums beside them that
# would hide the wait, as a tile's do. Laying out weights, once for all images: numbers that lie side by side
# are written far apart.
GATHERED, GATHERED_FAR = 1.2, 4.0
TURNED, TURNED_FAR = 0.6, 4.0
LAID_OUT, LAID_FAR = 1.0, 20.0
FETCHED = 5.0  # half cycles for a line of a cache that comes from the next one
REST = 1.2  # times the cycles of its own code that a rest of the columns takes
MOST_COLUMNS = 28  # of a tile
ROOM = 8  # of a core's cache, the share for results before they are turned
FEW_ROWS = 8  # of a tile: where there are fewer, its weights come by too fast for the second cache
FEWEST = 4  # tiles of a row that make up for taking sums from a cache and back
NEAR = 3  # of the first cache, the share for the weights of a tile
RESULTS = 4  # of a core's cache, the share for the results of a panel, which come by for each block
SHARING = 2  # vectors of channels at least that a panel has: with one there is a load for each multiply-add
LATENCY = 8  # half cycles of a multiply-add, which a tile's sums hide where its weights lie in order


@dataclass(frozen=True)
class Convolution:
    """A sum over windows: the depths of its scopes over channels, columns and rows of the result (these, if
    any, one after the other in memory), and what it reads."""

    leaf: Leaf
    channel: int
    column: int
    row: int | None
    window: Access
    weights: Access

    def size(self, depth: int | None) -> int:
        return 1 if depth is None else self.leaf.scopes[depth].size


def channels_in_lanes(sketch: Sketch, operation: Provenance) -> None:
    """Tile a sum over windows by vectors of channels, where that takes fewer cycles.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        _tile(sketch, operation)


def _tile(sketch: Sketch, operation: Provenance) -> None:
    target = sketch.context.target
    found = find(sketch, operation, strided=True)
    each = convolution(sketch, found)
    width = max(widths_for(sketch.program, [each.leaf], target), default=0)
    if not width or each.size(each.channel) % width or ("transpose", width) not in target.instructions:
        raise NoSuchPlace("No vector divides the channels, or results cannot be turned.")
    panels = _panels(sketch, found, each, width)
    tile = _chosen(sketch, found, each, width) if panels is None else panels
    isolate(sketch, operation)
    first = initialisation(sketch, operation, found)
    if first is None:
        raise NoSuchPlace("Nothing sets the result first.")
    isolate(sketch, first.sum)
    array = each.leaf.op.target.array
    used = any(
        array in {a.array for a in leaf.op.reads}
        for leaf in sketch.program.leaves
        if leaf.op.provenance != operation
    )
    if panels is not None:
        _by_panels(sketch, (first, found), each, tile, used)
        return
    rows = _rows_at_once(sketch, each, tile)
    nests = [_ordered(sketch, nest, each, rows) for nest in (first, found)]
    region = join_shared(sketch, nests)
    assert region is not None
    turn_results(sketch, operation, region, width, used)
    tile_channels(sketch, first.sum, each, tile)


def tile_channels(sketch: Sketch, first: Provenance, each: Convolution, tile: Tile) -> None:
    """Tile a sum whose results have channels side by side, and what sets them first; lay its weights out as
    the tiles read them."""
    operation, weights = each.leaf.op.provenance, each.weights.array
    laid_out = stride(sketch.program, each.weights, each.channel) == 1
    alone = sum(weights in {a.array for a in leaf.op.reads} for leaf in sketch.program.leaves) == 1
    if not laid_out:
        name = fresh_name(sketch.program, "p" + weights[:20])
        sketch.play("stage_read", weights, "root", name)
    pieces = _pieces(sketch, first, operation, tile)
    for start, total, size in pieces:
        blocks = _blocks(sketch, total, size)
        tile_nests(sketch, None if blocks else start, total, size, blocks)
    if not laid_out:
        lay_out(sketch, operation, name, tile.columns if alone else each.size(each.channel))
    for _, total, size in pieces:
        write_tile(sketch, total.sum, size)


def _panels(sketch: Sketch, found: Contraction, each: Convolution, width: int) -> Tile | None:
    """The tile of columns by vectors of channels where these go over all results before the next ones do,
    with the fewest cycles: of constants, laid out beforehand, that no cache keeps from row to row. None where
    rows stand outside, or vectors of columns take fewer cycles."""
    target = sketch.context.target
    columns, channels, rows = (each.size(depth) for depth in (each.column, each.channel, each.row))
    number = DTYPE_BYTES[sketch.program.buffer_of[each.leaf.op.target.array].dtype]
    terms = terms_of(sketch, found.sum)
    if (
        each.weights.array not in sketch.context.constants
        or stride(sketch.program, each.weights, each.channel) == 1
        or terms * channels * number <= target.cache_bytes // 2
    ):
        return None
    tiles = [
        Tile(side, vectors, width, turned=side < vectors)
        for vectors in range(SHARING, channels // width + 1)
        for side in range(1, min(columns, MOST_COLUMNS) + 1)
        if channels % (vectors * width) == 0
        and side * vectors + min(side, vectors) + 1 <= target.vector_registers
        and balance(channels // (vectors * width), target.threads) >= BALANCED
        and rows * columns * vectors * width * number <= target.cache_bytes // RESULTS
    ]

    def cycles(tile: Tile) -> float:
        whole, rest = divmod(columns, tile.rows)
        once = whole * tile_cycles(tile.rows, tile.vectors, waiting=LATENCY)
        once += tile_cycles(rest, tile.vectors, waiting=LATENCY) if rest else 0.0
        return rows * once * (channels // tile.columns)

    best = min(tiles, key=cycles, default=None)
    if best is None:
        return None
    turned = TURNED * rows * columns * channels / terms
    return best if cycles(best) + turned <= WORTH * _along_columns(sketch, found, each) else None


def _by_panels(
    sketch: Sketch, nests: tuple[Contraction, Contraction], each: Convolution, tile: Tile, used: bool
) -> None:
    """Tile what sets the result first, and the sum, panel by panel of channels: in each a block of terms
    after the other, whose weights stay in the first cache while all rows go by, and those of the next are
    asked for. The results are turned where a panel ends."""
    operation, weights = nests[1].sum, each.weights.array
    result = leaf_at(sketch, operation).op.target.array
    block: Provenance | None = None
    shared = list[list[Provenance]]()
    for nest in nests:
        assert nest.rows is not None
        path = sketch.path(nest.rows)
        inside = nest.rows
        panels = list[Provenance]()
        if scope_of(sketch.program, path).size > tile.columns:
            sketch.play("split_scope", sketch.place(path), tile.columns)
            panels, inside = [sketch.provenance(path)], sketch.provenance((*path, 0))
        if nest.sum == operation:
            block = _weights_kept(sketch, each, tile)
        leaf = leaf_at(sketch, nest.sum)
        row = affine(leaf.op.target.index[-2]).depths[0] if each.row is not None else None
        down = [*([] if row is None else [leaf.scopes[row].provenance]), nest.columns, inside]
        spatial = depths_of(leaf.op.target)
        named = list(enumerate(scope.provenance for scope in leaf.scopes))
        others = [p for d, p in named if d in spatial and p not in (*panels, *down)]
        sums = [p for p in order_of_sums(leaf, each) if p != block]
        blocks = [block] if block is not None and nest.sum == operation else []
        order(sketch, nest.sum, [*others, *panels, *blocks, *down, *sums])
        outer = [*others, *panels] or [wrapped(sketch, nest.sum)]
        shared.append(outer)
    region = join_shared(sketch, shared)
    assert region is not None
    turn_results(sketch, operation, region, tile.width, used or result in sketch.program.interface)
    name = fresh_name(sketch.program, "p" + weights[:20])
    sketch.play("stage_read", weights, "root", name)
    sums, rest = [operation], scope_of(sketch.program, sketch.path(nests[1].columns)).size % tile.rows
    if rest:
        path = sketch.path(nests[1].columns)
        whole = scope_of(sketch.program, path).size - rest
        sketch.play("cut_scope", sketch.place(path), whole)
        after = (*path[:-1], path[-1] + 1)
        sums.append(
            only(leaf for leaf in sketch.program.leaves if leaf.path[: len(after)] == after).op.provenance
        )
    tiles = [(each_sum, replace(tile, rows=n)) for each_sum, n in zip(sums, (tile.rows, rest), strict=False)]
    for each_sum, size in tiles:
        tile_nests(sketch, None, _roles(sketch, each_sum), size, None if rest else block)
    if block is not None and not rest and each.row is not None:
        sketch.play("interchange", sketch.place(sketch.path(block)[:-1]))
    lay_out(sketch, operation, name, tile.columns)
    for each_sum, size in tiles:
        if block is not None:
            _ask_for_next_block(sketch, each_sum, name, block)
        write_tile(sketch, each_sum, size)


def _weights_kept(sketch: Sketch, each: Convolution, tile: Tile) -> Provenance | None:
    """Split the longest scope of a sum into blocks of terms for each of whose lines of weights a vector of
    results comes by, and that the first cache keeps. The scope over the blocks; None where all is one."""
    leaf = leaf_at(sketch, each.leaf.op.provenance)
    buffer = sketch.program.buffer_of[each.weights.array]
    term = tile.columns * DTYPE_BYTES[buffer.dtype]
    vectors = each.size(each.row) * each.size(each.column) * tile.vectors
    most = min(sketch.context.target.first_cache_bytes // NEAR // term, vectors * LINE // term)
    sums = [d for d in range(len(leaf.scopes)) if not uses(leaf.op.target, d)]
    longest = max(sums, key=lambda d: leaf.scopes[d].size)
    size, path = leaf.scopes[longest].size, leaf.path[: longest + 1]
    others = math.prod(leaf.scopes[d].size for d in sums) // size
    fitting = max((n for n in range(1, size + 1) if size % n == 0 and n * others <= most), default=1)
    if fitting == size:
        return None
    sketch.play("split_scope", sketch.place(path), fitting)
    return sketch.provenance(path)


def _ask_for_next_block(sketch: Sketch, operation: Provenance, weights: str, block: Provenance) -> None:
    """Where tiles take what they have summed so far, ask for the next block's weights, which come from
    memory: a line for each tile, or each of its results, or each vector of them, as many as there are
    lines."""
    leaf, depth = leaf_at(sketch, operation), len(sketch.path(block)) - 1
    start = only(
        other
        for other in sketch.program.leaves
        if other.op.target.array == leaf.op.target.array
        and other.path < leaf.path
        and not other.op.accumulate
    )
    read = only(a for a in leaf.op.reads if a.array == weights)
    before = read.index[: next(k for k, form in enumerate(read.index) if form.uses(depth))]
    if any(max(form.depths, default=0) > depth for form in before):
        return  # a block's weights are no run
    taken = only(start.op.reads)
    across = affine(taken.index[-2])
    results = sketch.program.buffer_of[taken.array].dims[-2].size
    side, vector = start.scopes[-3].size, len(start.scopes) - 2
    vectors = start.scopes[vector].size
    line = LINE // DTYPE_BYTES[sketch.program.buffer_of[weights].dtype]
    inside = {d: Affine() for d in range(depth + 1, len(leaf.scopes))}
    first = read.substitute(inside)
    lines = math.prod(leaf.scopes[d].size for d in depths_of(read) if d > depth) // line
    if results // side >= lines:
        wide = [(d, step // side) for d, step in across.terms if step >= side]
        number = Affine.make(wide, across.const // side)
    elif results >= lines:
        number = across
    else:
        number = across * vectors + Affine.iterator(vector)
    later = first.substitute({depth: Affine.iterator(depth) + 1})
    asked = Access(weights, (*later.index[:-1], affine(later.index[-1]) + number * line))
    sketch.may("prefetch", sketch.place(start.path), str(asked))


def convolution(sketch: Sketch, found: Contraction) -> Convolution:
    """The roles of a contraction's scopes and operands. Raises NoSuchPlace where it is no convolution."""
    if found.rows is None:
        raise NoSuchPlace("No channels share a window.")
    leaf = leaf_at(sketch, found.sum)
    column, channel = (len(sketch.path(each)) - 1 for each in (found.columns, found.rows))
    window = only(a for a in leaf.op.reads if uses(a, column) and not uses(a, channel))
    weights = only(a for a in leaf.op.reads if uses(a, channel) and not uses(a, column))
    target = [affine(form) for form in leaf.op.target.index]
    row = None
    if len(target) > 1 and len(target[-2].terms) == 1 and target[-2].depths[0] != channel:
        row = target[-2].depths[0]
    if found.panel is not None and (row is None or not uses(window, row)):
        raise NoSuchPlace("It is a product of matrices.")
    if target[-1].terms != ((column, 1),) or weights.indirect or window.indirect:
        raise NoSuchPlace("Its results are no rows of columns.")
    return Convolution(leaf, channel, column, row, window, weights)


def _chosen(sketch: Sketch, found: Contraction, each: Convolution, width: int) -> Tile:
    """The tile of columns by vectors of channels with the fewest cycles.

    Raises NoSuchPlace where vectors of columns take fewer, or no cache holds the weights of a tile.
    """
    best, cycles = _cheapest_tile(sketch, each, width)
    target = sketch.context.target
    columns, channels, rows = (each.size(depth) for depth in (each.column, each.channel, each.row))
    through = {each.leaf.op.target.array, each.window.array}
    far = sum(sketch.program.buffer_of[array].bytes for array in through) > target.cache_bytes
    turned = (TURNED_FAR if far else TURNED) * rows * columns * channels / _terms(each)
    if cycles + turned > WORTH * _along_columns(sketch, found, each):
        raise NoSuchPlace("Vectors of columns take fewer cycles.")
    return best


def tile_for_rows(sketch: Sketch, found: Contraction, each: Convolution, width: int, stored: bool) -> Tile:
    """The tile with the fewest cycles where rows are used as they are computed. ``stored``: results as large
    as these are turned and stored behind that, as where nothing uses them so.

    Raises NoSuchPlace where vectors of columns take fewer, or no cache holds the weights of a tile.
    """
    if _panels(sketch, found, each, width) is not None:
        raise NoSuchPlace("A panel of its weights stays for all rows.")
    if stored:
        return _chosen(sketch, found, each, width)
    best, cycles = _cheapest_tile(sketch, each, width)
    worth = WORTH_UNSTORED if each.weights.array in sketch.context.constants else WORTH
    if cycles > worth * _along_columns(sketch, found, each):
        raise NoSuchPlace("Vectors of columns take far fewer cycles.")
    return best


def _cheapest_tile(sketch: Sketch, each: Convolution, width: int) -> tuple[Tile, float]:
    """The tile of columns by vectors of channels with the fewest cycles; and half cycles of a plane of
    results, for each term, with those of laying out and fetching weights. Raises NoSuchPlace where no cache
    holds the weights of a tile."""
    target = sketch.context.target
    columns, channels, rows = (each.size(depth) for depth in (each.column, each.channel, each.row))
    terms = _terms(each)
    number = DTYPE_BYTES[sketch.program.buffer_of[each.leaf.op.target.array].dtype]
    tiles = [
        Tile(side, vectors, width, turned=side < vectors)
        for vectors in range(1, channels // width + 1)
        for side in range(1, min(columns, MOST_COLUMNS) + 1)
        if channels % (vectors * width) == 0
        and side * vectors + min(side, vectors) + 1 <= target.vector_registers
        and (side >= vectors or columns % side == 0 or columns >= SQUARES * width)
        and terms * vectors * width * number <= target.cache_bytes // 2
    ]

    def cycles(tile: Tile) -> float:
        whole, rest = divmod(columns, tile.rows)
        once = whole * tile_cycles(tile.rows, tile.vectors)
        once += REST * tile_cycles(rest, tile.vectors) if rest else 0.0
        return rows * once * (channels // tile.columns)

    best = min(tiles, key=cycles, default=None)
    if best is None:
        raise NoSuchPlace("The weights of a tile are more than a cache keeps.")
    return best, cycles(best) + _laid_out(sketch, each) + _fetched(sketch, each, best, terms)


def _terms(each: Convolution) -> int:
    """How many products come to a result."""
    spatial = depths_of(each.leaf.op.target)
    return math.prod(scope.size for d, scope in enumerate(each.leaf.scopes) if d not in spatial)


def _laid_out(sketch: Sketch, each: Convolution) -> float:
    """Half cycles that laying out the weights takes, for each term and plane of results."""
    once = each.weights.array in sketch.context.constants
    if once or stride(sketch.program, each.weights, each.channel) == 1:
        return 0.0
    far = sketch.program.buffer_of[each.weights.array].bytes > sketch.context.target.cache_bytes
    cells = math.prod(each.leaf.scopes[d].size for d in depths_of(each.leaf.op.target))
    planes = cells / (each.size(each.row) * each.size(each.column) * each.size(each.channel))
    return (LAID_FAR if far else LAID_OUT) * each.size(each.channel) / planes


def _fetched(sketch: Sketch, each: Convolution, tile: Tile, terms: int) -> float:
    """Half cycles that lines take which the nearest cache does not keep, for each term and plane of results.

    Each tile's channels go over the window of a row: lines apart, which nothing fetches ahead, where the
    first-level cache has no room for them beside the tile's weights. Each row goes over all weights.
    """
    target = sketch.context.target
    channels, rows = each.size(each.channel), each.size(each.row)
    number = DTYPE_BYTES[sketch.program.buffer_of[each.weights.array].dtype]
    lines = 0.0
    window = _lines(sketch, each)
    if window * LINE + terms * tile.columns * number > target.first_cache_bytes:
        lines += window * channels / tile.columns
    if terms * channels * number > target.cache_bytes // 2:
        lines += terms * channels * number / LINE
    return FETCHED * rows * lines / terms


def _lines(sketch: Sketch, each: Convolution, length: int = LINE) -> int:
    """Lines of a cache, of so many bytes, that hold what the results of one row are made of."""
    around = depths_of(each.leaf.op.target) - {each.column}
    sizes = [1 if d in around else scope.size for d, scope in enumerate(each.leaf.scopes)]
    buffer = sketch.program.buffer_of[each.window.array]
    *others, along = (form.bounds(sizes) for form in map(affine, each.window.index))
    row = (along[1] - along[0] + 1) * DTYPE_BYTES[buffer.dtype]
    return math.prod(last - first + 1 for first, last in others) * -(-row // length)


def _along_columns(sketch: Sketch, found: Contraction, each: Convolution) -> float:
    """Half cycles of a plane of results, for each term, with vectors of columns, as dense.py, gathering.py
    and contractions.py make them."""
    target = sketch.context.target
    widths = widths_for(sketch.program, [each.leaf], target)
    columns, channels, rows = (each.size(depth) for depth in (each.column, each.channel, each.row))
    spatial = depths_of(each.leaf.op.target)
    terms = math.prod(scope.size for d, scope in enumerate(each.leaf.scopes) if d not in spatial)

    def tiles(run: int) -> float:
        return channels * cheapest(channels, run, widths, target.vector_registers, run)[0]

    if stride(sketch.program, each.window, each.column) != 1:
        if columns >= LONG * widths[0]:
            with suppress(NoSuchPlace):
                step_of(each.leaf, each.window)
                number = DTYPE_BYTES[sketch.program.buffer_of[each.window.array].dtype]
                return rows * tiles(columns) + GATHERED * rows * _lines(sketch, each, number) / terms
            return rows * (tiles(columns) + GATHERED * columns)  # panel by panel
        if found.panel is not None:  # contractions.py packs row by row
            return rows * (tiles(columns) + GATHERED * columns)
        far = _gathered_bytes(sketch, each) > target.cache_bytes
        return tiles(rows * columns) + (GATHERED_FAR if far else GATHERED) * rows * columns
    try:
        run, _ = run_of(sketch, found)
    except NoSuchPlace:
        # Not of long rows: copies of these cost more than is counted here.
        long = columns > SHORT * max(widths)
        if long or not copies_rows(sketch, found):
            return rows * tiles(columns)
        longer = whole_vectors(channels, columns, terms, widths, target.vector_registers)
        return rows * tiles(longer) * (1 + COPYING / terms if longer > columns else 1)
    return tiles(run) * (1 + COPYING / terms if run > rows * columns else 1)


def _gathered_bytes(sketch: Sketch, each: Convolution) -> int:
    """Bytes of what gathering.py gathers at once: a number for each term and each result of a channel."""
    cells = math.prod(scope.size for scope in each.leaf.scopes) // each.size(each.channel)
    return cells * DTYPE_BYTES[sketch.program.buffer_of[each.window.array].dtype]


def _rows_at_once(sketch: Sketch, each: Convolution, tile: Tile) -> int:
    """Rows of the result that are turned together: of short ones as many as there is room for, as divide them
    all, and as leave threads enough blocks. One alone where a tile of its own takes the rest of a row."""
    target = sketch.context.target
    columns, channels, rows = (each.size(depth) for depth in (each.column, each.channel, each.row))
    bytes_ = columns * channels * DTYPE_BYTES[sketch.program.buffer_of[each.leaf.op.target.array].dtype]
    room = target.cache_bytes // ROOM
    if columns % tile.rows or columns % tile.width == 0:
        return 1
    inside = (each.column, each.channel, each.row)
    others = [each.size(d) for d in depths_of(each.leaf.op.target) if d not in inside]
    fitting = [
        n
        for n in range(1, rows + 1)
        if rows % n == 0
        and n * bytes_ <= room
        and any(balance(size, target.threads) >= BALANCED for size in (*others, rows // n))
    ]
    return max(fitting, default=1)


def _ordered(sketch: Sketch, nest: Contraction, each: Convolution, rows: int) -> list[Provenance]:
    """Bring a nest into the order: others, rows that are turned together, then rows, columns, channels, sums.

    Gives the scopes outside of what is turned together, which nests of the same result share.
    """
    leaf = leaf_at(sketch, nest.sum)
    assert nest.rows is not None
    inner, outer = [nest.columns, nest.rows], list[Provenance]()
    if each.row is not None:
        row = leaf.scopes[affine(leaf.op.target.index[-2]).depths[0]]
        if rows == 1:
            outer.append(row.provenance)
        elif rows == row.size:
            inner.insert(0, row.provenance)
        else:
            path = sketch.path(row.provenance)
            sketch.play("split_scope", sketch.place(path), rows)
            outer.append(sketch.provenance(path))
            inner.insert(0, sketch.provenance((*path, 0)))
    leaf = leaf_at(sketch, nest.sum)
    spatial = depths_of(leaf.op.target)
    named = list(enumerate(scope.provenance for scope in leaf.scopes))
    others = [p for d, p in named if d in spatial and p not in (*outer, *inner)]
    order(sketch, nest.sum, [*others, *outer, *inner, *order_of_sums(leaf, each)])
    if not others and not outer:
        outer.append(wrapped(sketch, nest.sum))
    return [*others, *outer]


def order_of_sums(leaf: Leaf, each: Convolution) -> list[Provenance]:
    """The scopes that are summed over, innermost one along which the window does not slide by columns: gcc
    would keep its numbers in registers from column to column, and spreading them from there takes one of the
    two ports that multiply."""
    spatial = depths_of(leaf.op.target)
    sums = [d for d in range(len(leaf.scopes)) if d not in spatial]
    windows = [a for a in leaf.op.reads if a.array == each.window.array]
    column = affine(leaf.op.target.index[-1]).depths[0]
    sliding = {d for a in windows for form in a.index if form.uses(column) for d in form.depths}
    last = max((d for d in sums if d not in sliding), default=None)
    sums.sort(key=lambda d: d == last)
    return [leaf.scopes[d].provenance for d in sums]


def turn_results(sketch: Sketch, operation: Provenance, region: Provenance, width: int, wanted: bool) -> None:
    """Keep what a region sums channel by channel, and turn it where the region ends: into a copy for others
    (``wanted``), or into the result itself."""
    result = leaf_at(sketch, operation).op.target.array
    kept = fresh_name(sketch.program, "t" + result[:20])
    sketch.play("stage_write", result, sketch.place(sketch.path(region)), kept)
    if wanted:
        _hand_over(sketch, kept, len(sketch.path(region)))
    copy = copying(sketch, kept)
    dims = buffer_named(sketch.program, kept).dims
    channel = next(k for k, dim in enumerate(dims) if dim.materialised)
    last = len(dims) - 1
    if last - channel > 1:  # rows of columns become one run
        for access in (copy.op.target, *copy.op.reads):
            buffer = sketch.program.buffer_of[access.array]
            sketch.play("merge_dims", buffer.name, len(buffer.dims) - 2)
        sketch.play("merge_scopes", sketch.place(copy.path[:-2]))
        last -= 1
    sketch.play("swap_dims", kept, channel, last)
    turn(sketch, copy.op.provenance, width)


def copying(sketch: Sketch, array: str) -> Leaf:
    """The operation that copies an array."""
    return only(
        leaf
        for leaf in sketch.program.leaves
        if not leaf.op.accumulate and array in {a.array for a in leaf.op.reads}
    )


def _hand_over(sketch: Sketch, kept: str, depth: int) -> None:
    """Copy an array by way of another, for those who use the result to take it from there."""
    path = copying(sketch, kept).path[: depth + 1]
    sketch.play("wrap", sketch.place(path), 1)
    name = fresh_name(sketch.program, "u" + kept[1:21])
    sketch.play("stage_read", kept, sketch.place(path), name)
    isolate(sketch, copying(sketch, name).op.provenance, depth)
    for array in (kept, name):
        sketch.play("unwrap", sketch.place(copying(sketch, array).path[: depth + 1]))


def turn(sketch: Sketch, copy: Provenance, width: int) -> None:
    """Copy what lies channel by channel into columns: squares of them, then smaller ones, then one by one."""
    for side in (width, width // 2):
        path = leaf_at(sketch, copy).path[:-1]
        columns = scope_of(sketch.program, path).size
        whole = columns // side * side
        if not whole or ("transpose", side) not in sketch.context.target.instructions:
            continue
        channels, along = (scope.provenance for scope in leaf_at(sketch, copy).scopes[-2:])
        order(sketch, copy, [along, channels])
        path = sketch.path(along)
        if whole < columns:
            sketch.play("cut_scope", sketch.place(path), whole)
            beside = (*path[:-1], path[-1] + 1)
            rest = only(leaf for leaf in sketch.program.leaves if leaf.path[: len(path)] == beside)
        if whole > side:
            sketch.play("split_scope", sketch.place(path), side)
            path = (*path, 0)
        turn_in_squares(sketch, copy, sketch.provenance(path), side)
        if whole > side and scope_of(sketch.program, path[:-1]).size == whole // side:
            sketch.may("interchange", sketch.place(path[:-1]))  # each channel's columns one after the other
        if whole == columns:
            return
        copy = rest.op.provenance
        order(sketch, copy, [scope.provenance for scope in reversed(leaf_at(sketch, copy).scopes[-2:])])


def _pieces(
    sketch: Sketch, first: Provenance, operation: Provenance, tile: Tile
) -> list[tuple[Contraction, Contraction, Tile]]:
    """The sum, and what sets its result first, in tiles; and those of the columns that are left over."""
    nests = [_roles(sketch, each) for each in (first, operation)]
    assert nests[1].rows is not None
    columns = scope_of(sketch.program, sketch.path(nests[1].rows)).size
    rest = columns % tile.rows
    if not rest:
        return [(nests[0], nests[1], tile)]
    cut = [cut_rows(sketch, nest, columns - rest) for nest in nests]
    behind = [_roles(sketch, each) for _, each in cut]
    return [
        (cut[0][0], cut[1][0], tile),
        (behind[0], behind[1], replace(tile, rows=rest)),
    ]


def _blocks(sketch: Sketch, total: Contraction, tile: Tile) -> Provenance | None:
    """Cut the sums of tiles of few rows into blocks whose weights stay in the first cache while all tiles of
    a row go by; what a tile has summed waits in the second one. The scope over the blocks, or None."""
    assert total.rows is not None
    leaf = leaf_at(sketch, total.sum)
    number = DTYPE_BYTES[sketch.program.buffer_of[leaf.op.target.array].dtype]
    room = sketch.context.target.first_cache_bytes // NEAR // (tile.columns * number)
    tiles = scope_of(sketch.program, sketch.path(total.rows)).size // tile.rows
    if tile.rows >= FEW_ROWS or terms_of(sketch, total.sum) <= room or tiles < FEWEST:
        return None
    return block_terms(sketch, total.sum, room)


def _roles(sketch: Sketch, operation: Provenance) -> Contraction:
    """Of a nest that writes channel by channel: these are columns of its tiles, the result's columns rows."""
    leaf = leaf_at(sketch, operation)
    across, channel = map(affine, leaf.op.target.index[-2:])
    column = only(depth for depth, step in across.terms if step == 1)
    return Contraction(
        operation, leaf.scopes[channel.depths[0]].provenance, leaf.scopes[column].provenance, None
    )


def lay_out(sketch: Sketch, operation: Provenance, weights: str, together: int) -> None:
    """Lay a copy of the weights out as the tiles read it: term by term, so many channels side by side."""

    def read() -> Access:
        return only(a for a in leaf_at(sketch, operation).op.reads if a.array == weights)

    lane = len(leaf_at(sketch, operation).scopes) - 1
    channel = only(k for k, form in enumerate(read().index) if form.uses(lane))
    if buffer_named(sketch.program, weights).dims[channel].size > together:
        copy = only(leaf for leaf in sketch.program.leaves if leaf.op.target.array == weights)
        depth = copy.op.target.index[channel].depths[0]
        sketch.play("split_scope", sketch.place(copy.path[: depth + 1]), together)
        sketch.play("split_dim", weights, channel, together)
    while True:
        depths = [max(form.depths, default=-1) for form in read().index]
        late = next((k for k in range(len(depths) - 1) if depths[k] > depths[k + 1]), None)
        if late is None:
            return
        sketch.play("swap_dims", weights, late, late + 1)
