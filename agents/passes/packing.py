"""Packing: what many tiles read again and again lies side by side, in the order in which they read it."""

from __future__ import annotations

from agents.passes.nests import band_depth, isolate, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of, stride
from agents.passes.tiles import Tile
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import DTYPE_BYTES, Leaf, Provenance
from dojo_core.recipes import Sketch

APART = 1 << 10  # bytes between the terms of a row from which on a tile's rows are packed
TURNED = (
    64,
    48,
    32,
    56,
    40,
    24,
    16,
    8,
)  # terms of a panel that are turned at once, the first that divides them


def pack_panel(
    sketch: Sketch, operation: Provenance, array: str, tile: Tile, blocks: Provenance | None
) -> str:
    """Copy a panel of columns into a buffer of its own, term by term, vector by vector; gives its name."""
    leaf = leaf_at(sketch, operation)
    panel = next(a for a in leaf.op.reads if a.array == array)
    used, lane = depths_of(panel), max(depths_of(leaf.op.target))
    spatial = depths_of(leaf.op.target)
    spatial |= {d for d, scope in enumerate(leaf.scopes) if scope.provenance == blocks}
    around = [d for d in used & spatial if d < min(set(range(len(leaf.scopes))) - spatial)]
    region: Place | str = sketch.place(leaf.path[: max(around) + 1]) if around else "root"
    readers = [other for other in sketch.program.leaves if array in {a.array for a in other.op.reads}]
    if not around and len(readers) > 1:  # a copy for all of them would be more than a panel
        if stride(sketch.program, panel, lane) == 1:
            raise NoSuchPlace("A few columns that are neighbours are read well enough where they are.")
        sketch.play("wrap", sketch.place(leaf.path[:1]), 1)
        region = sketch.place(leaf.path[:1])
        leaf, lane = leaf_at(sketch, operation), lane + 1
        panel = next(a for a in leaf.op.reads if a.array == array)
    name = fresh_name(sketch.program, "p" + array[:20])
    sketch.play("stage_read", array, region, name)
    copy = only(other for other in sketch.program.leaves if other.op.target.array == name)
    columns = only(k for k, form in enumerate(panel.index) if form.uses(lane))
    loops = [k for k, form in enumerate(copy.op.reads[0].index) if form.uses(len(copy.scopes) - 1)]
    last = len(buffer_named(sketch.program, name).dims) - 1
    if not copy.op.reads[0].index[columns].depths:
        raise NoSuchPlace("A single column is no panel.")
    depth = copy.op.reads[0].index[columns].depths[-1]
    columns_of_copy, turned = copy.scopes[depth].provenance, False
    if loops != [columns]:  # the columns stand first in memory: turn the panel while it is copied
        dim = next((k for k, form in enumerate(copy.op.target.index) if form.depths == (depth,)), last)
        sketch.play("swap_dims", name, dim, last)
        turned = True
        if not _has_squares(sketch, copy, tile):
            with sketch.attempt():
                _turn_in_blocks(sketch, copy, depth)
    if tile.vectors > 1:
        path = sketch.path(columns_of_copy)
        sketch.play("split_scope", sketch.place(path), tile.width)
        sketch.play("split_dim", name, last, tile.width)
        columns_of_copy = sketch.provenance((*path, 0))
    if turned and _has_squares(sketch, copy, tile):
        with sketch.attempt():
            turn_in_squares(sketch, copy.op.provenance, columns_of_copy, tile.width)
    return name


def turn_rows(sketch: Sketch, operation: Provenance, panel: str, tile: Tile) -> None:
    """Turn a matrix whose rows lie term by term far apart, so that a tile of rows reads its terms one after
    the other: in memory each term of a tile is a line of its own, all in the same few sets of the cache.

    Raises NoSuchPlace where the matrix lies well, or takes little of a core's cache.
    """
    program, leaf = sketch.program, leaf_at(sketch, operation)
    rows = next((a for a in leaf.op.reads if a.array != panel and len(a.index) == 2), None)
    if rows is None or rows.indirect:
        raise NoSuchPlace("No matrix has the rows.")
    buffer = program.buffer_of[rows.array]
    beside = any(stride(program, rows, d) == 1 for d in depths_of(rows) & depths_of(leaf.op.target))
    apart = buffer.dims[1].size * DTYPE_BYTES[buffer.dtype]
    if not beside or apart < APART or buffer.bytes <= sketch.context.target.cache_bytes // 4:
        raise NoSuchPlace("Its rows are read well enough where they are.")
    name = fresh_name(program, "r" + rows.array[:20])
    sketch.play("stage_read", rows.array, "root", name)
    sketch.play("swap_dims", name, 0, 1)
    copy = only(other for other in sketch.program.leaves if other.op.target.array == name)
    with sketch.attempt():
        if _has_squares(sketch, copy, tile):
            terms = copy.path[:1]
            sketch.play("split_scope", sketch.place(terms), tile.width)
            turn_in_squares(sketch, copy.op.provenance, sketch.provenance((*terms, 0)), tile.width)
        else:
            _turn_in_blocks(sketch, copy, 0)


def _has_squares(sketch: Sketch, copy: Leaf, tile: Tile) -> bool:
    """Can the target turn a square of the panel in registers?"""
    plain = sketch.program.buffer_of[copy.op.target.array].dtype == "f32"
    wide = tile.width <= copy.scopes[-1].size
    return plain and wide and ("transpose", tile.width) in sketch.context.target.instructions


def turn_in_squares(sketch: Sketch, copy: Provenance, columns: Provenance, width: int) -> None:
    """Copy a panel that is turned in squares of columns by terms; the terms that are left, one by one."""
    terms = leaf_at(sketch, copy).scopes[-1]
    path = leaf_at(sketch, copy).path[:-1]
    if terms.size % width:
        around = band_depth(leaf_at(sketch, copy))
        sketch.play("cut_scope", sketch.place(path), terms.size // width * width)
        isolate(sketch, copy, around)
        path = leaf_at(sketch, copy).path[:-1]
    squares = list[Provenance]()
    inside = sketch.provenance(path)
    if scope_of(sketch.program, path).size > width:
        sketch.play("split_scope", sketch.place(path), width)
        squares, inside = [sketch.provenance(path)], sketch.provenance((*path, 0))
    order(sketch, copy, [*squares, columns, inside])
    sketch.play("use_instruction", sketch.place(sketch.path(columns)), "transpose")


def _turn_in_blocks(sketch: Sketch, copy: Leaf, columns: int) -> None:
    """Copy a panel that is turned in blocks of terms that the first-level cache holds.

    Neighbouring terms, which are read one after the other, are written far apart.
    """
    terms = copy.scopes[-1]
    block = only(n for n in TURNED if terms.size % n == 0)
    sketch.play("split_scope", sketch.place(copy.path[:-1]), block)
    leaf = leaf_at(sketch, copy.op.provenance)
    *others, blocks, inside = [scope.provenance for scope in leaf.scopes[columns:]]
    order(sketch, copy.op.provenance, [blocks, *others, inside])
