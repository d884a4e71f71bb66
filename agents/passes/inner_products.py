"""Sums along rows of both operands, as in ``x·wᵀ``: lanes take neighbouring terms, a tile shares its loads.

``c[i,j] += a[i,k]*b[j,k]`` has its neighbours along k in memory. Panels of b would have to be turned before a
tile of vectors along j could read them, which pays where many rows read each panel. For a few rows the lanes
go along k instead: a tile of rows by columns keeps a vector of partial sums for each of its results, and adds
up their lanes at the end.
"""

from __future__ import annotations

from dataclasses import replace

from agents.passes.contractions import Contraction, cut_columns, find, initialisation
from agents.passes.nests import band_depth, isolate, join_shared, leaf_at, order, wrapped
from agents.passes.structure import depths_of, only, scope_of, stride, uses, widths_for
from agents.passes.vectors import write_out
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

FEW = 31  # rows at most: for more of them it pays to turn panels
LONG = 4  # vectors of terms at least: fewer do not make up for adding up the lanes
SIDE = 8  # rows or columns of a tile at most
REST = 0.8  # what a tile is worth that leaves columns over, for which threads are woken again


def sum_in_lanes(sketch: Sketch, operation: Provenance) -> None:
    """Tile a sum of a few rows along rows of both operands; other sums stay as they are."""
    with sketch.attempt():
        _tile(sketch, operation)


def _tile(sketch: Sketch, operation: Provenance) -> None:
    contraction, terms = _found(sketch, operation)
    program, registers = sketch.program, sketch.context.target.vector_registers
    rows, columns, length = (
        scope_of(program, sketch.path(each)).size
        for each in (contraction.rows, contraction.columns, terms)
        if each is not None
    )
    widths = widths_for(program, [leaf_at(sketch, operation)], sketch.context.target)
    if not widths or length < LONG * widths[0] or not 1 < rows <= FEW:
        raise NoSuchPlace("A single row or many, or their sums are short.")
    first = initialisation(sketch, operation, contraction)
    if first is not None:
        isolate(sketch, first.sum)
    others = list[Provenance]()
    width = next((w for w in widths if length % w == 0), 0)
    if not width:
        width = widths[0]
        kept, rest = cut_columns(sketch, replace(contraction, columns=terms), length // width * width)
        terms, cut = kept.columns, leaf_at(sketch, rest)
        along, *around = [scope.provenance for scope in cut.scopes[band_depth(cut) :]]
        order(sketch, rest, [*around, along])
    tall, wide = _sides(rows, columns, registers)
    nests = [contraction] if first is None else [first, contraction]
    if columns % wide:
        cuts = [cut_columns(sketch, nest, columns // wide * wide) for nest in nests]
        nests = [nest for nest, _ in cuts]
        others.append(cuts[-1][1])
    path = sketch.path(terms)
    sketch.play("split_scope", sketch.place(path), width)
    lanes = sketch.provenance((*path, 0))
    join_shared(sketch, [nest_by_tiles(sketch, nest, tall, wide, lanes) for nest in nests])
    keep_lanes(sketch, operation, lanes, tall * wide)
    for other in others:
        sum_in_lanes(sketch, other)


def _found(sketch: Sketch, operation: Provenance) -> tuple[Contraction, Provenance]:
    """The sum in a nest of its own, and the scope of terms that lie side by side in both operands."""
    if find(sketch, operation).panel is None:
        raise NoSuchPlace("Its rows share no panel.")
    isolate(sketch, operation)
    leaf = leaf_at(sketch, operation)
    terms = only(
        scope.provenance
        for d, scope in enumerate(leaf.scopes)
        if not uses(leaf.op.target, d) and all(stride(sketch.program, a, d) == 1 for a in leaf.op.reads)
    )
    return find(sketch, operation, band_depth(leaf)), terms


def _sides(rows: int, columns: int, registers: int) -> tuple[int, int]:
    """Rows and columns of a tile with the most multiply-adds for each vector that it loads."""
    fitting = [
        (tall, wide)
        for tall in range(1, SIDE + 1)
        for wide in range(1, min(SIDE, columns) + 1)
        if rows % tall == 0 and tall * wide + tall + 1 <= registers
    ]
    return max(fitting, key=lambda each: each[0] * each[1] / sum(each) * (REST if columns % each[1] else 1))


def nest_by_tiles(
    sketch: Sketch, nest: Contraction, tall: int, wide: int, lanes: Provenance
) -> list[Provenance]:
    """Other scopes, columns and rows by tiles, sums, rows and columns of a tile, lanes.

    Gives the scopes outside the sums, which nests of the same result share.
    """
    outer, inner = list[Provenance](), list[Provenance]()
    for scope, size in ((nest.columns, wide), (nest.rows, tall)):
        if scope is None:
            continue
        path = sketch.path(scope)
        whole = scope_of(sketch.program, path).size
        if 1 < size < whole:
            sketch.play("split_scope", sketch.place(path), size)
            outer.append(sketch.provenance(path))
            inner.insert(0, sketch.provenance((*path, 0)))
        elif size > 1:
            inner.insert(0, scope)
        else:
            outer.append(scope)
    leaf = leaf_at(sketch, nest.sum)
    spatial = depths_of(leaf.op.target)
    band = list(enumerate(leaf.scopes))[band_depth(leaf) :]
    others = [s.provenance for d, s in band if d in spatial and s.provenance not in (*outer, *inner)]
    sums = [s.provenance for d, s in band if d not in spatial and s.provenance != lanes]
    last = [s.provenance for _, s in band if s.provenance == lanes]
    order(sketch, nest.sum, [*others, *outer, *sums, *inner, *last])
    if not others and not outer:
        outer.append(wrapped(sketch, nest.sum))
    return [*others, *outer]


def keep_lanes(sketch: Sketch, operation: Provenance, lanes: Provenance, results: int) -> None:
    """Partial sums in the lanes of registers, for each result of a tile."""
    leaf = leaf_at(sketch, operation)
    place = sketch.place(leaf.path)
    name = fresh_name(sketch.program, "q" + leaf.op.target.array[:20])
    depth = len(sketch.path(lanes)) - 1
    sketch.play("split_reduction", Place(place.array, place.number, depth), name)
    for provenance in [
        leaf.scopes[-1].provenance
        for leaf in sketch.program.leaves
        if name in {a.array for a in (leaf.op.target, *leaf.op.reads)}
    ]:
        write_out(sketch, provenance, results)
    sketch.play("set_location", name, "register")
