"""Dense runs: the rows of a convolution's result, padded to the rows that it reads, become one long row.

A result of 54x54 read from rows of 56 leaves 6 columns that no wide vector takes. Computed as rows of 56, two
results a row being thrown away, it is one run of 3024 columns: 63 tiles of 48.
Source: the recorded line of conv.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.passes.contractions import OUTGROWN, Contraction, copies_rows, find, initialisation
from agents.passes.nests import isolate, join_shared, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of, widths_for
from agents.passes.tiles import choose_tile
from agents.passes.windows import bytes_read
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Leaf, Provenance
from dojo_core.recipes import Sketch

SHORT = 8  # vectors in a row: what is left over of a longer one matters little


def dense_rows(sketch: Sketch, operation: Provenance) -> None:
    """Make one run of the rows of a sum over windows, for contractions.py to tile.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        _dense(sketch, operation)


def run_of(sketch: Sketch, contraction: Contraction) -> tuple[int, Access]:
    """The length of the one run that rows of a sum over windows become, and the window.

    Raises NoSuchPlace where they stay as they are.
    """
    leaf = leaf_at(sketch, contraction.sum)
    column = scope_of(sketch.program, sketch.path(contraction.columns)).size
    widths = widths_for(sketch.program, [leaf], sketch.context.target)
    window, row = _window(sketch, leaf, contraction)
    if contraction.rows is None or not widths or column % widths[0] == 0 or column > SHORT * widths[0]:
        raise NoSuchPlace("Its rows are long, or vectors divide them.")
    copied = window.array in sketch.program.interface or _images(leaf, window, row, contraction)
    most = OUTGROWN * sketch.context.target.cache_bytes
    large = column < _row_length(sketch, window) and copied and _read(sketch, leaf, contraction) > most
    if large and copies_rows(sketch, contraction):
        raise NoSuchPlace("No cache keeps what would be copied; windows.py copies it by blocks.")
    return scope_of(sketch.program, sketch.path(row)).size * _row_length(sketch, window), window


def _dense(sketch: Sketch, operation: Provenance) -> None:
    contraction = find(sketch, operation)
    run, window = run_of(sketch, contraction)
    column = scope_of(sketch.program, sketch.path(contraction.columns)).size
    widths = widths_for(sketch.program, [leaf_at(sketch, operation)], sketch.context.target)
    isolate(sketch, operation)
    first = initialisation(sketch, operation, contraction)
    if first is None:
        raise NoSuchPlace("Nothing sets the result to a number first.")
    isolate(sketch, first.sum)
    if column == _row_length(sketch, window):
        flatten(sketch, (first, contraction), window.array, widths)
        return
    assert contraction.rows is not None
    rows = scope_of(sketch.program, sketch.path(contraction.rows)).size
    tile = choose_tile(rows, run, widths, sketch.context.target.vector_registers, run)
    # Where no cache keeps an image, contractions.py goes over it by blocks of terms, each with all rows.
    bytes_, cache = _read(sketch, leaf_at(sketch, operation), contraction), sketch.context.target.cache_bytes
    together = rows if bytes_ > OUTGROWN * cache else tile.rows
    shared = [_ordered(sketch, each, together) for each in (first, contraction)]
    inner = join_shared(sketch, shared)
    image = _around(sketch, operation, window)
    copies = _stage(sketch, operation, window, image, inner)
    _merge(sketch, first.sum)
    _merge(sketch, operation)
    if run % widths[-1]:
        _lengthen(sketch, (first, contraction), copies, -(-run // widths[0]) * widths[0] - run)


def flatten(
    sketch: Sketch, nests: tuple[Contraction, Contraction], read: str, widths: tuple[int, ...]
) -> None:
    """Make one run of rows and columns where the array that is read has rows as long as the result's.

    A run of an odd length is computed in copies with room for whole vectors.
    """
    leaf = leaf_at(sketch, nests[1].sum)
    written, rows = leaf.op.target.array, nests[1].rows
    assert rows is not None
    for nest in nests:
        _ordered(sketch, nest, scope_of(sketch.program, sketch.path(rows)).size)
    for array in (read, written):
        buffer = sketch.program.buffer_of[array]
        sketch.play("merge_dims", buffer.name, len(buffer.dims) - 2)
    for nest in nests:
        _merge(sketch, nest.sum)
    leaf = leaf_at(sketch, nests[1].sum)
    run = leaf.scopes[leaf.op.target.index[-1].depths[-1]].size
    if run % widths[-1]:
        copies = []
        for move, array, letter in (("stage_read", read, "w"), ("stage_write", written, "t")):
            name = array
            if array in sketch.program.inputs or array in sketch.program.outputs:  # they stay as they are
                name = fresh_name(sketch.program, letter + array[:20])
                sketch.play(move, array, "root", name)
            copies.append(name)
        _lengthen(sketch, nests, copies, -(-run // widths[0]) * widths[0] - run)
    leaf = leaf_at(sketch, nests[1].sum)
    spatial = depths_of(leaf.op.target)
    for provenance in [s.provenance for d, s in enumerate(leaf.scopes) if s.size == 1 and d not in spatial]:
        sketch.may("unwrap", sketch.place(sketch.path(provenance)))


def _lengthen(
    sketch: Sketch, nests: tuple[Contraction, Contraction], copies: Sequence[str], more: int
) -> None:
    """Run on by so many columns that nobody asks for, in copies with room for them."""
    for copy in copies:
        dims = buffer_named(sketch.program, copy).dims
        sketch.play("pad_dim", copy, len(dims) - 1, dims[-1].size + more)
    for nest in nests:
        leaf = leaf_at(sketch, nest.sum)
        depth = leaf.op.target.index[-1].depths[-1]
        longer = leaf.scopes[depth].size + more
        sketch.play("pad_scope", sketch.place(leaf.path[: depth + 1]), longer, "free")


def _window(sketch: Sketch, leaf: Leaf, contraction: Contraction) -> tuple[Access, Provenance]:
    """The access whose last two indices go over rows and columns of a window, and the scope of its rows."""
    column = len(sketch.path(contraction.columns)) - 1
    spatial = depths_of(leaf.op.target)
    target = tuple(map(affine, leaf.op.target.index))
    for access in leaf.op.reads:
        if len(access.index) < 2 or access.indirect:
            continue
        above, last = affine(access.index[-2]), affine(access.index[-1])
        if last.coefficient(column) != 1:
            continue
        outer = [d for d in above.depths if d in spatial and above.coefficient(d) == 1]
        plain = len(target) > 1 and target[-1].terms == ((column, 1),) and not target[-1].const
        slides = len(last.terms) > 1 or len(above.terms) > 1
        if plain and slides and len(outer) == 1 and target[-2].terms == ((outer[0], 1),):
            return access, leaf.scopes[outer[0]].provenance
    raise NoSuchPlace("No window slides over its rows.")


def _images(leaf: Leaf, window: Access, row: Provenance, contraction: Contraction) -> set[int]:
    """The depths of the scopes, but those of rows and columns, with which what is read changes."""
    run = (row, contraction.columns)
    spatial = depths_of(leaf.op.target) & depths_of(window)
    return {d for d in spatial if leaf.scopes[d].provenance not in run}


def _read(sketch: Sketch, leaf: Leaf, contraction: Contraction) -> int:
    """Bytes of what a run is made of."""
    window, row = _window(sketch, leaf, contraction)
    images = _images(leaf, window, row, contraction)
    return bytes_read(sketch, leaf, window, images)


def _row_length(sketch: Sketch, window: Access) -> int:
    return sketch.program.buffer_of[window.array].dims[-1].size


def _ordered(sketch: Sketch, nest: Contraction, rows: int) -> list[Provenance]:
    """Other scopes, tiles of rows, rows of the tile, then rows and columns of the result, then sums.

    Gives the scopes that nests of the same result share.
    """
    assert nest.rows is not None
    path = sketch.path(nest.rows)
    tiles, inside = None, nest.rows
    if scope_of(sketch.program, path).size > rows:
        sketch.play("split_scope", sketch.place(path), rows)
        tiles, inside = sketch.provenance(path), sketch.provenance((*path, 0))
    leaf = leaf_at(sketch, nest.sum)
    target = leaf.op.target.index
    down = [leaf.scopes[form.depths[0]].provenance for form in target[-2:]]
    spatial = depths_of(leaf.op.target)
    others = [
        scope.provenance
        for d, scope in enumerate(leaf.scopes)
        if d in spatial and scope.provenance not in (tiles, inside, *down)
    ]
    sums = [scope.provenance for d, scope in enumerate(leaf.scopes) if d not in spatial]
    outer = [*others, *([tiles] if tiles is not None else [])]
    order(sketch, nest.sum, [*outer, inside, *down, *sums])
    return outer


def _around(sketch: Sketch, operation: Provenance, window: Access) -> int:
    """How many scopes stand around the part of the window's array that is used together."""
    leaf = leaf_at(sketch, operation)
    access = only(a for a in leaf.op.reads if a.array == window.array)
    used = {d for form in access.index[:-2] for d in form.depths}
    spatial = depths_of(leaf.op.target)
    return max(used & spatial, default=-1) + 1


def _stage(
    sketch: Sketch, operation: Provenance, window: Access, image: int, inner: Provenance | None
) -> tuple[str, str]:
    """Arrays with room: what is read, one row after the other, copied where it is an input or several images;
    a copy of the result, in rows as long."""
    length = _row_length(sketch, window)
    leaf = leaf_at(sketch, operation)
    source = window.array
    if image or source in sketch.program.interface:
        source = fresh_name(sketch.program, "w" + window.array[:20])
        sketch.play("stage_read", window.array, sketch.place(leaf.path[:image]) if image else "root", source)
    dims = buffer_named(sketch.program, source).dims
    if dims[-1].size < length:
        sketch.play("pad_dim", source, len(dims) - 1, length)
    sketch.play("merge_dims", source, len(dims) - 2)
    # One run of all channels: what padded columns read beyond one is the next, not memory that nothing set.
    # (What is left there may be denormal numbers, with which a product takes a hundred times as long.)
    for k in reversed(range(len(dims) - 2)):
        if not buffer_named(sketch.program, source).dims[k].materialised:
            break
        sketch.play("merge_dims", source, k)
    result = fresh_name(sketch.program, "t" + leaf.op.target.array[:20])
    region = "root" if inner is None else sketch.place(sketch.path(inner))
    sketch.play("stage_write", leaf.op.target.array, region, result)
    leaf = leaf_at(sketch, operation)
    sizes = [scope.size for scope in leaf.scopes]
    sizes[leaf.op.target.index[-1].depths[0]] = length
    reads = only(a for a in leaf.op.reads if a.array == source)
    end = reads.index[-1].bounds(sizes)[1] + 1
    dims = buffer_named(sketch.program, source).dims
    if end > dims[-1].size:
        sketch.play("pad_dim", source, len(dims) - 1, end)
    last = len(buffer_named(sketch.program, result).dims) - 1
    if sizes[leaf.op.target.index[-1].depths[0]] != buffer_named(sketch.program, result).dims[last].size:
        sketch.play("pad_dim", result, last, length)
    sketch.play("merge_dims", result, last - 1)
    return source, result


def _merge(sketch: Sketch, operation: Provenance) -> None:
    """Longer rows, and one scope for rows and columns."""
    leaf = leaf_at(sketch, operation)
    rows, columns = leaf.op.target.index[-1].depths
    length = affine(leaf.op.target.index[-1]).coefficient(rows)
    if leaf.scopes[columns].size != length:
        sketch.play("pad_scope", sketch.place(leaf.path[: columns + 1]), length, "free")
    sketch.play("merge_scopes", sketch.place(leaf.path[: rows + 1]))
