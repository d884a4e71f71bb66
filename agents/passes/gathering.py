"""Windows that step over columns: what they read is gathered first, so that vectors find it side by side.

A convolution of stride 2 reads every second column of a row, which no vector load takes. With a copy of what
each term of the sum reads for each result (im2col: Chellapilla, Puri, Simard, 2006) it is a matrix product.
Where rows are long the copy is made for one panel of columns after the other, and stays in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.passes.contractions import Contraction, cut_columns, find, initialisation, tile_nests, write_tile
from agents.passes.dense import flatten
from agents.passes.nests import isolate, join_shared, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of, stride, widths_for
from agents.passes.tiles import Tile, choose_tile
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.program.tables import affine
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

LONG = 4  # vectors in a row of results that is worth panels of its own


@dataclass(frozen=True)
class Windows:
    """A sum over strided windows, and what sets its result first; rows of these are channels."""

    sum: Contraction
    first: Contraction
    array: str  # the one that is read in steps
    widths: tuple[int, ...]


def gather_windows(sketch: Sketch, operation: Provenance) -> None:
    """Gather what a sum over strided windows reads.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        windows = strided_windows(sketch, operation)
        if scope_of(sketch.program, sketch.path(windows.sum.columns)).size < LONG * windows.widths[0]:
            _as_one_run(sketch, windows)
            return
        rest = _in_panels(sketch, windows)
        while rest is not None:
            rest = _in_panels(sketch, strided_windows(sketch, rest))


def strided_windows(sketch: Sketch, operation: Provenance) -> Windows:
    """A sum over windows that step over columns, set apart with what sets its result first.

    Raises NoSuchPlace where it is none.
    """
    contraction = find(sketch, operation, strided=True)
    isolate(sketch, operation)
    first = initialisation(sketch, operation, contraction)
    if first is None or contraction.rows is None or contraction.panel is not None:
        raise NoSuchPlace("It has no rows that share a window, or nothing sets the result to a number first.")
    isolate(sketch, first.sum)
    leaf = leaf_at(sketch, operation)
    widths = widths_for(sketch.program, [leaf], sketch.context.target)
    column = len(sketch.path(contraction.columns)) - 1
    window = only(a for a in leaf.op.reads if stride(sketch.program, a, column) not in (0, 1))
    target = tuple(map(affine, leaf.op.target.index))
    down = [form.depths[0] for form in target[-2:] if len(form.terms) == 1]
    if not widths or window.indirect or len(down) != 2 or down[1] != column:
        raise NoSuchPlace("Its results are no rows of columns.")
    return Windows(contraction, first, window.array, widths)


def _ordered(sketch: Sketch, nest: Contraction, at_once: bool = False) -> list[Provenance]:
    """Bring a nest into the order: others, rows of the result, panels, then sums, columns, channels.

    ``at_once``: rows stand with the columns, inside the sums. Gives the scopes outside the sums.
    """
    leaf = leaf_at(sketch, nest.sum)
    target = leaf.op.target.index
    assert nest.rows is not None
    across = [leaf.scopes[d].provenance for form in target[-2:] for d in form.depths]  # rows, panels, columns
    inner = [*(across if at_once else [nest.columns]), nest.rows]
    outer = [provenance for provenance in across if provenance not in inner]
    spatial = depths_of(leaf.op.target)
    others = [
        s.provenance
        for d, s in enumerate(leaf.scopes)
        if d in spatial and s.provenance not in (*outer, *inner)
    ]
    sums = [s.provenance for d, s in enumerate(leaf.scopes) if d not in spatial]
    order(sketch, nest.sum, [*others, *outer, *sums, *inner])
    return [*others, *outer]


def _gather(sketch: Sketch, windows: Windows, within: int) -> str:
    """One number for each term and each result, of all that the scopes from a depth on go over.

    The sum's rows stand innermost. Gives the new array; a nest that fills it stands before the sum.
    """
    operation = windows.sum.sum
    around = leaf_at(sketch, operation).path[:-1]
    name = fresh_name(sketch.program, "g" + windows.array[:20])
    sketch.play("stage_read", windows.array, sketch.place(around[:-1]), name)
    if not within:  # of everything at once there is too much for the stack
        sketch.play("set_location", name, "heap")
    gathered = only(a for a in leaf_at(sketch, operation).op.reads if a.array == name)
    inside = [k for k, form in enumerate(gathered.index) if min(form.depths, default=0) >= within]
    sketch.play("materialise_dims", name, *inside)
    isolate(sketch, operation, within)
    return name


def _as_one_run(sketch: Sketch, windows: Windows) -> None:
    """All of it at once, and one run of the results."""
    contraction = windows.sum
    assert contraction.rows is not None
    _ordered(sketch, contraction, at_once=True)
    name = _gather(sketch, windows, 0)
    provenances = [scope.provenance for scope in leaf_at(sketch, contraction.sum).scopes]
    gathered = find(sketch, contraction.sum)
    assert [gathered.columns, gathered.rows] == provenances[-2:]
    flatten(sketch, (windows.first, gathered), name, windows.widths)


def _in_panels(sketch: Sketch, windows: Windows) -> Provenance | None:
    """Panel by panel of columns, each tiled; gives the sum over the columns that no panel takes."""
    contraction, first = windows.sum, windows.first
    assert contraction.rows is not None
    rows, columns = (
        scope_of(sketch.program, sketch.path(b)).size for b in (contraction.rows, contraction.columns)
    )
    tile = choose_tile(rows, columns, windows.widths, sketch.context.target.vector_registers, columns)
    rest = None
    if columns % tile.columns:
        whole = columns // tile.columns * tile.columns
        contraction, rest = cut_columns(sketch, contraction, whole)
        first, _ = cut_columns(sketch, first, whole)
    first, contraction = (_split(sketch, nest, tile) for nest in (first, contraction))
    shared = join_shared(sketch, [_ordered(sketch, nest) for nest in (first, contraction)])
    within = 0 if shared is None else len(sketch.path(shared))  # one panel of one row is all there is
    _gather(sketch, windows, within)
    gathered = find(sketch, contraction.sum, within)
    tile_nests(sketch, first, gathered, tile)
    write_tile(sketch, contraction.sum, tile)
    return rest


def _split(sketch: Sketch, nest: Contraction, tile: Tile) -> Contraction:
    """Panels of a tile's columns, where there are more; gives the nest of one of them."""
    path = sketch.path(nest.columns)
    if scope_of(sketch.program, path).size == tile.columns:
        return nest
    sketch.play("split_scope", sketch.place(path), tile.columns)
    return replace(nest, columns=sketch.provenance((*path, 0)))
