"""What windows slide over, for register tiles: copied rows, whose terms lie side by side, in whole vectors.

The channels of an image lie a plane apart, often a power of two: the terms of a tile share a few sets of each
cache and drive each other out. In a copy of a block of rows, for all tiles that read it, they do not, and it
has room for columns that nobody asks for: of 62, tiles of 24 leave no 14 over, but 16.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agents.passes.nests import join_shared, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of, stride
from agents.passes.threads import BALANCED, balance
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Provenance
from dojo_core.recipes import Sketch

# Of a core's cache, the shares that a copied block of rows, a row alone, and one panel's window, may take.
BLOCK, ALONE, PANEL = 4, 2, 2
SETS = 1 << 10  # bytes: planes that lie a multiple of it apart share few sets of the first-level cache


@dataclass(frozen=True)
class Nest:
    """A sum over windows, or what sets its result first, with its scopes of rows and columns."""

    operation: Provenance
    rows: Provenance
    columns: Provenance


def may_copy(sketch: Sketch, operation: Provenance, columns: Provenance) -> bool:
    """May what a sum reads side by side be copied? Not what is a copy already, nor what others read, such as
    the other phases of a transposed convolution: nests that share it are fused."""
    leaf = leaf_at(sketch, operation)
    with suppress(NoSuchPlace):
        array = _sliding(sketch, leaf, len(sketch.path(columns)) - 1).array
        readers = sum(array in {a.array for a in other.op.reads} for other in sketch.program.leaves)
        return readers == 1 and sketch.program.buffer_of[array].location != "stack"
    return False


def has_block(sketch: Sketch, nest: Nest, alone: bool) -> bool:
    """Would ``copy_rows`` find a block of rows that windows share, of a row ``alone`` with twice the room?"""
    with suppress(NoSuchPlace):
        leaf, column = leaf_at(sketch, nest.operation), len(sketch.path(nest.columns)) - 1
        window = _sliding(sketch, leaf, column)
        row = _row(leaf, window)
        own = (row, column, len(sketch.path(nest.rows)) - 1)
        _rows_at_once(sketch, leaf, window, row, depths_of(leaf.op.target).difference(own), alone)
        return _overlap(leaf, window, row)
    return False


def copy_rows(sketch: Sketch, nests: Sequence[Nest], longer: int, together: int = 0) -> None:
    """Copy what a block of the result's rows is made of, for all tiles; run columns on to so many, in copies
    with room for them: of the result, and of what is read, one row after the other, so that what nobody asks
    for is made of the next row's numbers.

    ``nests``: what sets the result first, and the sum. ``together``: so many channels go over the whole block
    before the next ones do, where it is not all of them for each row; a row alone may take twice the room
    beside these. Raises NoSuchPlace where windows share no rows, or a core's cache has no room for them.
    """
    operation = nests[-1].operation
    leaf = leaf_at(sketch, operation)
    columns = scope_of(sketch.program, sketch.path(nests[-1].columns)).size
    window = _sliding(sketch, leaf, len(sketch.path(nests[-1].columns)) - 1)
    row = _row(leaf, window)
    dim = only(k for k, form in enumerate(leaf.op.target.index) if form.uses(row))
    shared = [_ordered(sketch, nest, dim) for nest in nests]
    leaf, depth = leaf_at(sketch, operation), len(shared[-1]) - 1
    window = only(a for a in leaf.op.reads if a.array == window.array)
    size = leaf.scopes[depth].size
    rows = _rows_at_once(sketch, leaf, window, depth, range(depth), together > 0)
    if 1 < rows < size:
        for scopes in shared:
            path = sketch.path(scopes[-1])
            sketch.play("split_scope", sketch.place(path), rows)
            scopes[-1:] = [sketch.provenance(path), sketch.provenance((*path, 0))]
    depth += rows < size
    if together:
        for nest, scopes in zip(nests, shared, strict=True):
            path = sketch.path(nest.rows)
            sketch.play("split_scope", sketch.place(path), together)
            scopes.insert(depth, sketch.provenance(path))
            order(sketch, nest.operation, [*scopes, sketch.provenance((*path, 0))])
    inner = join_shared(sketch, shared)
    assert inner is not None
    path = sketch.path(inner)[:depth]
    copy = fresh_name(sketch.program, "w" + window.array[:20])
    sketch.play("stage_read", window.array, sketch.place(path) if path else "root", copy)
    if longer == columns:
        _set_apart(sketch, copy)
        return
    result = fresh_name(sketch.program, "t" + leaf.op.target.array[:20])
    sketch.play("stage_write", leaf.op.target.array, sketch.place(sketch.path(inner)), result)
    for k in reversed(range(len(buffer_named(sketch.program, copy).dims) - 1)):
        if not buffer_named(sketch.program, copy).dims[k].materialised:
            break
        sketch.play("merge_dims", copy, k)
    for array in (copy, result):
        dims = buffer_named(sketch.program, array).dims
        sketch.play("pad_dim", array, len(dims) - 1, dims[-1].size + longer - columns)
    for nest in nests:
        sketch.play("pad_scope", sketch.place(sketch.path(nest.columns)), longer, "free")


def copy_panel(sketch: Sketch, operation: Provenance) -> None:
    """Copy what a panel of columns reads of an array that a window slides over, where no rows share it.

    Raises NoSuchPlace where tiles of rows read it differently, or a core's cache has no room for it.
    """
    leaf = leaf_at(sketch, operation)
    spatial = depths_of(leaf.op.target)
    inner = min(set(range(len(leaf.scopes))) - spatial)
    window = _sliding(sketch, leaf, max(spatial))
    around = sorted(d for d in depths_of(window) & spatial if d < inner)
    if around and around[-1] == inner - 1:
        raise NoSuchPlace("Each tile of rows reads a window of its own.")
    if bytes_read(sketch, leaf, window, around) > sketch.context.target.cache_bytes // PANEL:
        raise NoSuchPlace("No cache keeps it.")
    region: Place | str = sketch.place(leaf.path[: around[-1] + 1]) if around else "root"
    sketch.play("stage_read", window.array, region, fresh_name(sketch.program, "w" + window.array[:20]))


def _set_apart(sketch: Sketch, copy: str) -> None:
    """Leave room between the planes of a copy that would share the sets of a cache."""
    buffer = buffer_named(sketch.program, copy)
    sizes = [dim.size if dim.materialised else 1 for dim in buffer.dims]
    plane = math.prod(sizes[-2:]) * DTYPE_BYTES[buffer.dtype]
    if plane % SETS == 0 and math.prod(sizes) > math.prod(sizes[-2:]):
        sketch.play("pad_dim", copy, len(sizes) - 2, sizes[-2] + 1)


def _sliding(sketch: Sketch, leaf: Leaf, column: int) -> Access:
    """What neighbouring columns read side by side."""
    return only(a for a in leaf.op.reads if not a.indirect and stride(sketch.program, a, column) == 1)


def _row(leaf: Leaf, window: Access) -> int:
    """The depth of the scope over rows that windows share. Raises NoSuchPlace where there is none."""
    spatial = depths_of(leaf.op.target)
    slides = [form for form in window.index[:-1] if not spatial.issuperset(form.depths)]
    return only(d for form in reversed(slides) for d in form.depths if d in spatial)


def _overlap(leaf: Leaf, window: Access, row: int) -> bool:
    """Do the windows of neighbouring rows share what they read? Those of groups of channels do not."""
    spatial = depths_of(leaf.op.target)
    forms = [affine(form) for form in window.index if form.uses(row)]
    return any(
        form.coefficient(row)
        <= sum((leaf.scopes[d].size - 1) * step for d, step in form.terms if d not in spatial)
        for form in forms
    )


def _ordered(sketch: Sketch, nest: Nest, dim: int) -> list[Provenance]:
    """Other scopes, that along a dimension of the result, rows and columns, then sums. Gives those before the
    rows, which nests share."""
    leaf = leaf_at(sketch, nest.operation)
    spatial = depths_of(leaf.op.target)
    along = leaf.scopes[affine(leaf.op.target.index[dim]).depths[0]].provenance
    named = list(enumerate(scope.provenance for scope in leaf.scopes))
    others = [p for d, p in named if d in spatial and p not in (along, nest.rows, nest.columns)]
    sums = [p for d, p in named if d not in spatial]
    order(sketch, nest.operation, [*others, along, nest.rows, nest.columns, *sums])
    return [*others, along]


def _rows_at_once(
    sketch: Sketch, leaf: Leaf, window: Access, row: int, outer: Collection[int], alone: bool
) -> int:
    """How many rows make a block: as divide them all, find room, and leave threads enough blocks. ``outer``:
    the depths of the scopes that stand around them."""
    target, rows = sketch.context.target, leaf.scopes[row].size
    sizes = [leaf.scopes[depth].size for depth in outer]
    room = target.cache_bytes // BLOCK, target.cache_bytes // ALONE
    fitting = [
        n
        for n in range(1, rows + 1)
        if rows % n == 0
        and bytes_read(sketch, leaf, window, outer, row, n) <= room[alone and n == 1]
        and any(balance(size, target.threads) >= BALANCED for size in (*sizes, rows // n))
    ]
    if not fitting:
        raise NoSuchPlace("No cache keeps a row's windows.")
    return fitting[-1]


def bytes_read(
    sketch: Sketch, leaf: Leaf, window: Access, fixed: Collection[int], row: int = -1, rows: int = 0
) -> int:
    """Bytes of what is read while the scopes at some depths stand still, and one goes over so many rows."""
    sizes = [rows if d == row else 1 if d in fixed else scope.size for d, scope in enumerate(leaf.scopes)]
    bounds = [affine(form).bounds(sizes) for form in window.index]
    number = DTYPE_BYTES[sketch.program.buffer_of[window.array].dtype]
    return math.prod(last - first + 1 for first, last in bounds) * number
