"""Register tiles: sums of products, and stencils, whose result is contiguous along one of their scopes.

``c[i,j] += a[i,k]*b[k,j]`` becomes panels of columns, in each tiles of rows by vectors whose sums stay in
registers over all of k; what a panel reads again and again is packed. The same holds for convolutions (rows
are output channels) and for window sums (a tile of one row).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.passes.dots import dot_for, pack_terms, split_terms, use_dot
from agents.passes.fusion import bring_together
from agents.passes.nests import (
    band_depth,
    isolate,
    join_shared,
    leaf_at,
    order,
    shared_scopes,
    wrapped,
)
from agents.passes.packing import pack_panel, turn_rows
from agents.passes.structure import contiguous, depths_of, leaf_of, only, scope_of, stride, uses, widths_for
from agents.passes.tiles import FEW, Tile, cheapest, choose_tile, whole_rows
from agents.passes.vectors import write_out
from agents.passes.windows import Nest, bytes_read, copy_panel, copy_rows, has_block, may_copy
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.program.affine import Affine
from dojo_core.program.dependence import has_vector_form
from dojo_core.program.marks import APART
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Number, Path, Provenance
from dojo_core.recipes import RECIPES, Sketch

SHORTEST = 4  # columns that make a tile worth its while where rows share nothing
SHORTEST_BLOCK = 128  # terms of a sum that make up for taking a tile from memory and back
# Of a core's cache, the share that a panel may take, of vectors that are lines and of such as are halves: a
# tile has three of these side by side, and blocks of terms, with tiles taken from memory and back, cost more.
PANEL, HALVES_PANEL = 5, 3
PACKED_AFTER = 4  # tiles of rows that read a panel, from which on packing it pays
SHARED = 16  # rows that read the same windows, from which on copying these pays
COPYING = 16.0  # terms that take as long as copying a result
# Times a core's cache: what is read for a few channels, up to so much, comes fast enough from the next one.
OUTGROWN = 2
IMAGE = 4  # of a core's cache, the share for what a block of terms reads
WEIGHTS, FEW_WEIGHTS = 2, 4  # of a core's cache, the shares for all channels' weights, and for those of some


@dataclass(frozen=True)
class Contraction:
    """A sum to tile, by provenance: the accumulation, the scope of columns, that of rows if any."""

    sum: Provenance
    columns: Provenance
    rows: Provenance | None
    panel: (
        str | None
    )  # the array that all tiles of rows read alike, where each cell of it is read by one column


def tile_contractions(sketch: Sketch) -> None:
    """Tile every contraction that can be; the rest stays as it is."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        waiting = [provenance]
        while waiting:
            operation, count = waiting.pop(), len(sketch.moves)
            with sketch.attempt():
                waiting += _tile(sketch, operation)
            if len(sketch.moves) == count and operation != provenance:
                with sketch.attempt():
                    _leave(sketch, operation)


def _leave(sketch: Sketch, operation: Provenance) -> None:
    """Put columns that were cut off, and that no tile takes, back inside their rows: these are fused with
    others then."""
    leaf = leaf_at(sketch, operation)
    for other in [o for o in sketch.program.leaves if o.op.target == leaf.op.target]:
        depth = band_depth(other)
        inside = depths_of(other.op.target)
        columns, *others = [s.provenance for d, s in enumerate(other.scopes) if d >= depth and d in inside]
        order(sketch, other.op.provenance, [*others, columns])


def find(sketch: Sketch, operation: Provenance, within: int = 0, strided: bool = False) -> Contraction:
    """What there is to tile in a sum, its rows from a depth on; ``strided``: also where what is read is not
    contiguous. Raises NoSuchPlace where nothing is."""
    program = sketch.program
    leaf = leaf_of(program, operation)
    if leaf is None or not leaf.op.accumulate or leaf.op.guard or not has_vector_form(leaf):
        raise NoSuchPlace("No sum to tile.")
    if leaf.op.target.indirect:
        raise NoSuchPlace("Its results lie where an array says.")
    if any(s.mark for s in leaf.scopes):
        raise NoSuchPlace("Its scopes are marked already.")
    # Depths that the result goes along are spatial, the others are summed over.
    spatial = [d for d in range(len(leaf.scopes)) if uses(leaf.op.target, d)]
    summed = [
        d for d in range(len(leaf.scopes)) if d not in spatial and any(uses(a, d) for a in leaf.op.reads)
    ]
    columns = [d for d in spatial if stride(program, leaf.op.target, d) == 1]
    if not summed or len(columns) != 1:
        raise NoSuchPlace("Nothing is summed, or the results are not contiguous.")
    column = columns[0]
    panels = [a for a in leaf.op.reads if uses(a, column)]
    rows = [d for d in spatial if d not in (column, *range(within)) and any(not uses(a, d) for a in panels)]
    rows = [d for d in rows if any(not uses(a, column) and uses(a, d) for a in leaf.op.reads)]
    plain = len(panels) == 1 and _one_each(panels[0])
    apart = any(not 0 <= stride(program, a, column) <= APART for a in leaf.op.reads)
    if apart and not strided and not (plain and rows):
        raise NoSuchPlace("No operand is contiguous along the columns.")
    if not rows and leaf.scopes[column].size < SHORTEST and column < min(summed):
        raise NoSuchPlace("Too short for vectors.")
    row = max(_neighbours(leaf.op.target, rows), key=lambda d: leaf.scopes[d].size, default=None)
    return Contraction(
        operation,
        leaf.scopes[column].provenance,
        None if row is None else leaf.scopes[row].provenance,
        panels[0].array if plain and row is not None else None,
    )


def _neighbours(results: Access, rows: Sequence[int]) -> list[int]:
    """Those of the scopes over rows that a tile can be made of: of several that one index goes over, the one
    whose rows are neighbours."""
    steps = [[(abs(n), d) for d, n in affine(form).terms if d in rows] for form in results.index]
    return [min(each)[1] for each in steps if each]


def one_row(sketch: Sketch, contraction: Contraction) -> bool:
    """Is it a sum for a single row of results, over a matrix that the cache does not hold?"""
    program = sketch.program
    if contraction.rows is not None and scope_of(program, sketch.path(contraction.rows)).size > 1:
        return False
    leaf, column = leaf_at(sketch, contraction.sum), len(sketch.path(contraction.columns)) - 1
    read = {a.array for a in leaf.op.reads if uses(a, column)}
    return sum(program.buffer_of[array].bytes for array in read) > sketch.context.target.cache_bytes


def _accesses(leaf: Leaf) -> tuple[Access, ...]:
    return (leaf.op.target, *leaf.op.reads)


def _one_each(access: Access) -> bool:
    """Is each index one iterator at most, none used twice? (No window slides over the array.)"""
    used = [d for form in access.index for d in form.depths]
    alone = all(isinstance(form, Affine) and len(form.terms) <= 1 for form in access.index)
    return alone and len(set(used)) == len(used)


def _tile(sketch: Sketch, operation: Provenance) -> list[Provenance]:
    """Tile one contraction; gives the sums that were cut off. Raises where a move is refused."""
    contraction = find(sketch, operation)
    if (
        one_row(sketch, contraction)
        and leaf_at(sketch, operation).scopes[-1].provenance == contraction.columns
    ):
        raise NoSuchPlace("It goes along the rows of a matrix in memory.")
    isolate(sketch, operation)
    contraction = find(sketch, operation, band_depth(leaf_at(sketch, operation)))
    first = initialisation(sketch, operation, contraction)
    if first is not None:
        isolate(sketch, first.sum)
    target = sketch.context.target
    widths = widths_for(sketch.program, [leaf_at(sketch, operation)], target)
    columns = scope_of(sketch.program, sketch.path(contraction.columns)).size
    rows = scope_of(sketch.program, sketch.path(contraction.rows)).size if contraction.rows else 1
    shared = contraction.panel is None and rows >= SHARED
    windows = shared and may_copy(sketch, operation, contraction.columns)
    if windows and first is not None:
        with sketch.attempt():
            terms = terms_of(sketch, operation)
            longer = whole_vectors(rows, columns, terms, widths, target.vector_registers)
            together = _together(sketch, operation, rows, longer, widths)
            nests = [Nest(n.sum, n.rows, n.columns) for n in (first, contraction) if n.rows is not None]
            copy_rows(sketch, nests, longer, together)
            contraction = find(sketch, operation, band_depth(leaf_at(sketch, operation)))
            first = initialisation(sketch, operation, contraction)
            columns, rows, windows, shared = longer, together or rows, not together, False
    kept = _terms_kept(sketch, operation, contraction, rows) if shared else 0
    rest: list[Provenance] = []
    last: Provenance | None = None  # the sum for the rows that are cut off
    registers = target.vector_registers
    packed = contraction.panel is not None and _packs(rows, columns, widths, registers)
    whole = whole_rows(rows, columns, widths, registers, columns, packed)
    if contraction.rows is not None and whole < rows:
        contraction, last = cut_rows(sketch, contraction, whole)
        rest = [last]
        if first is not None:
            first, _ = cut_rows(sketch, first, whole)
        rows = whole
    tile = choose_tile(rows, columns, widths, registers, columns, packed)
    blocks: Provenance | None = None
    terms, room = terms_of(sketch, operation), _room(sketch, operation, packed)
    outgrown = contraction.panel is not None and terms * tile.columns > room  # the cache, by its panel
    most = kept or room // tile.columns
    block = _block_of_terms(sketch, operation, most) if outgrown or kept else None
    if outgrown and block is None:
        tile = choose_tile(rows, columns, widths, registers, room // terms, packed)
    elif block is not None:
        first = None  # a tile goes on with what the blocks before have summed
    if columns % tile.columns:
        whole = columns // tile.columns * tile.columns
        contraction, cut = cut_columns(sketch, contraction, whole)
        rest.append(cut)
        if first is not None:
            first, _ = cut_columns(sketch, first, whole)
    if block is not None:  # behind the cut: what is cut off is blocked for a panel of its own
        blocks = block_terms(sketch, operation, most)
    dot = dot_for(sketch, operation, tile)
    if contraction.panel is not None and dot is not None:
        with sketch.attempt():
            tile_nests(sketch, first, contraction, tile, blocks, split_terms(sketch, operation, dot))
            name = pack_panel(sketch, operation, contraction.panel, tile, blocks)
            pack_terms(sketch, operation, name, dot)
            use_dot(sketch, operation, tile, dot)
            write_tile(sketch, operation, tile)
            return rest
    tile_nests(sketch, first, contraction, tile, blocks, rows_outside=kept > 0 and block is not None)
    shorter: Tile | None = None
    if contraction.panel is not None and rows // tile.rows >= PACKED_AFTER:
        if last is not None and blocks is None:
            with sketch.attempt():
                shorter, more = _share_panels(sketch, operation, last, tile, contraction.panel)
                rest = [*(each for each in rest if each != last), *more]
        with sketch.attempt():
            contraction = replace(
                contraction, panel=pack_panel(sketch, operation, contraction.panel, tile, blocks)
            )
    if windows and columns // tile.columns >= PACKED_AFTER:
        with sketch.attempt():
            copy_panel(sketch, operation)
    if contraction.panel is not None and columns // tile.columns >= PACKED_AFTER:
        with sketch.attempt():
            turn_rows(sketch, operation, contraction.panel, tile)
    write_tile(sketch, operation, tile)
    if last is not None and shorter is not None:
        write_tile(sketch, last, shorter)
    return rest


def _share_panels(
    sketch: Sketch, operation: Provenance, last: Provenance, tile: Tile, panel: str
) -> tuple[Tile, list[Provenance]]:
    """Tile the sum for the rows that were cut off along the panels of a tiled sum, and join them, so that one
    copy of a panel serves both: where the matrix lies in memory it would have to come once more.

    Gives the tile, and the sum for the columns that no panel has, if any.
    """
    rest = find(sketch, last, band_depth(leaf_at(sketch, last)))
    if rest.rows is None or rest.panel != panel:
        raise NoSuchPlace("It does not read the same panels.")
    rows, columns = (scope_of(sketch.program, sketch.path(each)).size for each in (rest.rows, rest.columns))
    shorter = tile.for_rest(rows)
    first, more = initialisation(sketch, last, rest), list[Provenance]()
    if columns % tile.columns:
        whole = columns // tile.columns * tile.columns
        rest, cut = cut_columns(sketch, rest, whole)
        more.append(cut)
        if first is not None:
            first, _ = cut_columns(sketch, first, whole)
    tile_nests(sketch, first, rest, shorter)
    leaf = leaf_at(sketch, operation)
    summed = set(range(len(leaf.scopes))) - depths_of(leaf.op.target)
    used = depths_of(only(a for a in leaf.op.reads if a.array == panel))
    panels = only(d for d in sorted(used - summed, reverse=True) if d < min(summed))
    for depth in range(shared_scopes(sketch, operation, last), panels + 1):
        one, other = (leaf_at(sketch, each).scopes[depth].provenance for each in (operation, last))
        bring_together(sketch, one, other)
        sketch.play("join_scopes", sketch.place(sketch.path(one)))
    return shorter, more


def copies_rows(sketch: Sketch, contraction: Contraction) -> bool:
    """Would the rows that a sum's windows slide over be copied, block by block (windows.py)?"""
    if contraction.rows is None:
        return False
    leaf, registers = leaf_at(sketch, contraction.sum), sketch.context.target.vector_registers
    rows, columns = (
        scope_of(sketch.program, sketch.path(each)).size for each in (contraction.rows, contraction.columns)
    )
    if rows < SHARED or not may_copy(sketch, contraction.sum, contraction.columns):
        return False
    widths = widths_for(sketch.program, [leaf], sketch.context.target)
    longer = whole_vectors(rows, columns, terms_of(sketch, contraction.sum), widths, registers)
    together = _together(sketch, contraction.sum, rows, longer, widths)
    return has_block(sketch, Nest(contraction.sum, contraction.rows, contraction.columns), together > 0)


def whole_vectors(rows: int, columns: int, terms: int, widths: tuple[int, ...], registers: int) -> int:
    """The columns of a sum, or so many more as make whole vectors of them, where that takes fewer cycles, the
    copies of results among them."""
    if not widths:
        return columns
    longer = columns + -columns % widths[0]
    cycles = cheapest(rows, longer, widths, registers, longer)[0] * (1 + COPYING / terms)
    return longer if cycles < cheapest(rows, columns, widths, registers, columns)[0] else columns


def _terms_kept(sketch: Sketch, operation: Provenance, contraction: Contraction, rows: int) -> int:
    """How many terms of a sum over windows, of rows and columns alone, a core's cache keeps what is read for,
    while all weights go by; 0 where it keeps all of these, or the next one gives what is read fast enough."""
    leaf, cache = leaf_at(sketch, operation), sketch.context.target.cache_bytes
    own = {contraction.rows, contraction.columns}
    around = {d for d in depths_of(leaf.op.target) if leaf.scopes[d].provenance not in own}
    column = len(sketch.path(contraction.columns)) - 1
    window, *others = (a for a in leaf.op.reads if uses(a, column))
    changes = {d for d in around & depths_of(window) if d >= band_depth(leaf)}
    if others or window.indirect or changes or not _outgrow(sketch, operation, rows):
        return 0
    image = bytes_read(sketch, leaf, window, around)
    return terms_of(sketch, operation) * cache // IMAGE // image if image > OUTGROWN * cache else 0


def _outgrow(sketch: Sketch, operation: Provenance, rows: int) -> bool:
    """Are the weights of so many rows more than a core's cache keeps?"""
    bytes_ = rows * terms_of(sketch, operation) * _number(sketch, operation)
    return bytes_ > sketch.context.target.cache_bytes // WEIGHTS


def _number(sketch: Sketch, operation: Provenance) -> int:
    """Bytes of a number of the result."""
    return DTYPE_BYTES[sketch.program.buffer_of[leaf_at(sketch, operation).op.target.array].dtype]


def _together(sketch: Sketch, operation: Provenance, rows: int, columns: int, widths: tuple[int, ...]) -> int:
    """How many rows of a sum over windows, channels of a result, go over a block of what is read before the
    next ones do; 0 where the weights of all stay in a core's cache, and pass by for each panel of
    columns, and where there are so many panels that each gets a copy of its own."""
    if not _outgrow(sketch, operation, rows):
        return 0
    target = sketch.context.target
    bytes_ = terms_of(sketch, operation) * _number(sketch, operation)  # of a row's weights

    def cycles(some: int) -> float:
        return cheapest(some, columns, widths, target.vector_registers, columns)[0]

    some = [n for n in range(2, rows) if rows % n == 0 and n * bytes_ <= target.cache_bytes // FEW_WEIGHTS]
    best = min(some, key=lambda n: (cycles(n), -n), default=0)
    if not best:
        return 0
    tile = choose_tile(best, columns, widths, target.vector_registers, columns)
    return best if columns // tile.columns < PACKED_AFTER else 0


def _packs(rows: int, columns: int, widths: tuple[int, ...], registers: int) -> bool:
    """Do tiles for packed panels leave so many of rows that packing pays?"""
    tile = cheapest(rows, columns, widths, registers, columns, packed=True)[1]
    return tile is not None and rows // tile.rows >= PACKED_AFTER


def _room(sketch: Sketch, operation: Provenance, packed: bool) -> int:
    """Numbers of the result's type that a panel may have, to stay in the cache between tiles of rows."""
    target = sketch.context.target
    share = HALVES_PANEL if packed and target.vector_registers <= FEW else PANEL
    return target.cache_bytes // share // _number(sketch, operation)


def terms_of(sketch: Sketch, operation: Provenance) -> int:
    """How many terms each result is the sum of."""
    leaf = leaf_at(sketch, operation)
    return math.prod(s.size for d, s in enumerate(leaf.scopes) if not uses(leaf.op.target, d))


def block_terms(sketch: Sketch, operation: Provenance, most: int) -> Provenance | None:
    """Split a sum into blocks of so many terms at most.

    Gives the scope over the blocks; None where none divides.
    """
    found = _block_of_terms(sketch, operation, most)
    if found is None:
        return None
    path, size = found
    sketch.play("split_scope", sketch.place(path), size)
    return sketch.provenance(path)


def _block_of_terms(sketch: Sketch, operation: Provenance, most: int) -> tuple[Path, int] | None:
    """The scope that would be split, and into what; None where nothing divides."""
    leaf = leaf_at(sketch, operation)
    summed = [leaf.path[: d + 1] for d in range(len(leaf.scopes)) if not uses(leaf.op.target, d)]
    path = max(summed, key=lambda path: scope_of(sketch.program, path).size)
    size = scope_of(sketch.program, path).size
    others = terms_of(sketch, operation) // size
    fitting = [n for n in range(-(-SHORTEST_BLOCK // others), size) if size % n == 0 and others * n <= most]
    return (path, fitting[-1]) if fitting else None


def tile_nests(
    sketch: Sketch,
    first: Contraction | None,
    contraction: Contraction,
    tile: Tile,
    blocks: Provenance | None = None,
    dot: Provenance | None = None,
    more: Sequence[Contraction] = (),
    rows_outside: bool = False,
) -> None:
    """Tile a sum and what sets its result first, as one nest that sums in registers.

    ``blocks``: the scope over blocks of terms, where they are added one after the other. ``dot``: the scope
    over the terms that each lane takes at once. ``more``: further terms of the same sum, cut off from it.
    ``rows_outside``: a tile's rows go over all panels before the next ones do.
    """
    nests = [_nest(sketch, first, tile, blocks, None)] if first is not None else []
    nests.append(_nest(sketch, contraction, tile, blocks, dot, rows_outside))
    nests += [_nest(sketch, each, tile, None, None) for each in more]
    inner = join_shared(sketch, nests)
    _accumulate(sketch, contraction.sum, inner, tile)


def initialisation(sketch: Sketch, operation: Provenance, contraction: Contraction) -> Contraction | None:
    """The operation that sets the sum's result to a number or an array's elements, such as a bias: the last
    one before it, with scopes alike."""
    leaf = leaf_at(sketch, operation)
    for other in reversed(sketch.program.leaves):
        same = other.op.target.array == leaf.op.target.array and other.path < leaf.path
        starts = same and not other.op.accumulate and not other.op.target.indirect
        if starts and not other.op.function:
            alike = _alike(other, leaf, contraction)
            if alike is None:
                continue
            depth = len(sketch.path(alike.columns)) - 1
            if isinstance(other.op.operands[0], Number) or contiguous(sketch.program, other, depth):
                return alike
    return None


def _alike(start: Leaf, leaf: Leaf, contraction: Contraction) -> Contraction | None:
    """The initialisation's own scopes of columns and rows: those with the same index of the result."""
    same: dict[Provenance, Provenance] = {}
    for mine, its in zip(*(map(affine, x.op.target.index) for x in (start, leaf)), strict=True):
        pairs = list(zip(_by_step(mine), _by_step(its), strict=False))
        steps = len(mine.terms) == len(its.terms) and all(one[0] == other[0] for one, other in pairs)
        if not steps or mine.const != its.const:
            return None
        for (_, own), (_, other) in pairs:
            start_scope, sum_scope = start.scopes[own], leaf.scopes[other]
            if start_scope.size != sum_scope.size or start_scope.mark:
                return None
            same[sum_scope.provenance] = start_scope.provenance
    if contraction.columns not in same or (contraction.rows is not None and contraction.rows not in same):
        return None
    return Contraction(
        start.op.provenance,
        same[contraction.columns],
        same[contraction.rows] if contraction.rows else None,
        None,
    )


def _by_step(form: Affine) -> list[tuple[int, int]]:
    """How far each iterator of an index goes, and its depth."""
    return sorted((step, depth) for depth, step in form.terms)


def cut_columns(sketch: Sketch, nest: Contraction, at: int) -> tuple[Contraction, Provenance]:
    """Cut a nest in two by its columns: the first, and the operation of the second, which stands behind."""
    columns, rest = _cut(sketch, nest, nest.columns, at)
    return replace(nest, columns=columns), rest


def cut_rows(sketch: Sketch, nest: Contraction, at: int) -> tuple[Contraction, Provenance]:
    """The same by its rows."""
    assert nest.rows is not None
    rows, rest = _cut(sketch, nest, nest.rows, at)
    return replace(nest, rows=rows), rest


def _cut(sketch: Sketch, nest: Contraction, scope: Provenance, at: int) -> tuple[Provenance, Provenance]:
    """Cut a nest in two by a scope: the first one's, and the operation of the second."""
    leaf = leaf_at(sketch, nest.sum)
    band = [s.provenance for s in leaf.scopes[band_depth(leaf) :]]
    order(sketch, nest.sum, [scope, *(b for b in band if b != scope)])
    path = sketch.path(scope)
    sketch.play("cut_scope", sketch.place(path), at)
    after = (*path[:-1], path[-1] + 1)
    rest = only(leaf for leaf in sketch.program.leaves if leaf.path[: len(after)] == after)
    return sketch.provenance(path), rest.op.provenance


def _nest(
    sketch: Sketch,
    contraction: Contraction,
    tile: Tile,
    blocks: Provenance | None,
    dot: Provenance | None,
    rows_outside: bool = False,
) -> list[Provenance]:
    """Tile a nest and order it: other scopes, blocks, panels, tiles of rows, sums, rows, vectors, lanes, dot.

    Gives the provenance of the scopes outside the sums, which nests of the same result share.
    """
    operation = contraction.sum
    lanes = sketch.path(contraction.columns)
    panels: Provenance | None = None
    if scope_of(sketch.program, lanes).size > tile.columns:
        sketch.play("split_scope", sketch.place(lanes), tile.columns)
        panels, lanes = sketch.provenance(lanes), (*lanes, 0)
    vectors: Provenance | None = None
    if tile.vectors > 1:
        sketch.play("split_scope", sketch.place(lanes), tile.width)
        vectors, lanes = sketch.provenance(lanes), (*lanes, 0)
    lane = sketch.provenance(lanes)
    tiles, rows = contraction.rows, None
    if contraction.rows is not None and tile.rows > 1:
        path = sketch.path(contraction.rows)
        if scope_of(sketch.program, path).size > tile.rows:
            sketch.play("split_scope", sketch.place(path), tile.rows)
            tiles, rows = sketch.provenance(path), sketch.provenance((*path, 0))
        else:
            tiles, rows = None, contraction.rows
    leaf = leaf_at(sketch, operation)
    tiled = [b for b in (panels, tiles, rows, vectors, lane) if b is not None]
    spatial = depths_of(leaf.op.target)
    band = list(enumerate(leaf.scopes))[band_depth(leaf) :]
    others = [s.provenance for d, s in band if d in spatial and s.provenance not in tiled]
    sums = [s.provenance for d, s in band if d not in spatial and s.provenance not in (blocks, dot)]
    shared = (tiles, panels) if rows_outside else (panels, tiles)
    outer = [b for b in (blocks, *shared) if b is not None]
    across = (vectors, rows) if tile.turned else (rows, vectors)
    inner = [b for b in (*across, lane, dot) if b is not None]
    order(sketch, operation, [*others, *outer, *sums, *inner])
    leaf = leaf_at(sketch, operation)
    if not others and not outer:  # it is one tile: it gets a nest to be joined in
        outer.append(wrapped(sketch, operation))
    return [*others, *outer]


def _accumulate(sketch: Sketch, operation: Provenance, inner: Provenance | None, tile: Tile) -> None:
    """Sum in a copy of the result's tile, in registers."""
    leaf = leaf_at(sketch, operation)
    array = leaf.op.target.array
    region: Place | str = "root" if inner is None else sketch.place(sketch.path(inner))
    name = fresh_name(sketch.program, "acc")
    if tile.vectors > 1:
        RECIPES["accum"].run(sketch, array, region, name, tile.width)
    else:
        sketch.play("stage_write", array, region, name)


def write_tile(sketch: Sketch, operation: Provenance, tile: Tile) -> None:
    """Vectors and unrolling in the tile, its sums in registers; raises where the tile is no vector code."""
    array = leaf_at(sketch, operation).op.target.array
    root = leaf_at(sketch, operation).path[0]
    scope = [leaf for leaf in sketch.program.leaves if leaf.path[0] == root and leaf.scopes]
    # Other sums beside it, such as that over columns which were cut off, get tiles of their own.
    scope = [leaf for leaf in scope if not leaf.op.accumulate or leaf.op.target.array == array]
    for provenance in dict.fromkeys(leaf.scopes[-1].provenance for leaf in scope):
        write_out(sketch, provenance, max(tile.rows * tile.vectors, 8))
    if tile.width not in widths_for(sketch.program, [leaf_at(sketch, operation)], sketch.context.target):
        _unroll_tile(sketch, array)
    elif not {scope.mark for scope in leaf_at(sketch, operation).scopes} - {"", "u"}:
        raise NoSuchPlace("The tile has no vector form.")
    sketch.play("set_location", array, "register")


def _unroll_tile(sketch: Sketch, sums: str) -> None:
    """Write out the loops over a tile of single numbers: all that the sums' own indices go over."""
    for provenance in [
        leaf.op.provenance for leaf in sketch.program.leaves if sums in {a.array for a in _accesses(leaf)}
    ]:
        leaf = leaf_at(sketch, provenance)
        access = next(a for a in _accesses(leaf) if a.array == sums)
        dims = sketch.program.buffer_of[sums].dims
        depths = {
            d for form, dim in zip(access.index, dims, strict=True) if dim.materialised for d in form.depths
        }
        for depth in depths:
            if not leaf.scopes[depth].mark:
                sketch.play("unroll", sketch.place(leaf.path[: depth + 1]))
