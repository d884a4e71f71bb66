"""Phases: windows that step over columns read a copy in which every second column, or third, lies by itself.

Of a window of 7 columns that moves two at a time, what its first column reads for a row of results are the
even columns of the image, the second the odd ones. With these apart in a copy each is a dense run, and
vectors along the columns need nothing gathered for each term, as im2col (gathering.py) does. The columns of
the filter go in steps of as many, those that are left over beside them in the same tile.
Source: the recorded line of the first convolution of ResNet-50.
"""

from __future__ import annotations

from agents.passes.contractions import Contraction, cut_columns, find, initialisation, tile_nests, write_tile
from agents.passes.gathering import LONG, strided_windows
from agents.passes.nests import band_depth, isolate, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of
from agents.passes.tiles import choose_tile
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Leaf, Provenance
from dojo_core.recipes import Sketch

WRITTEN_OUT = 48  # multiply-adds of the phases of a tile: a loop over two of them takes a tenth of the time


def separate_phases(sketch: Sketch, operation: Provenance) -> None:
    """Tile a sum over windows that step over the columns of long rows.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        _separate(sketch, operation)


def step_of(leaf: Leaf, window: Access) -> int:
    """How many columns the window of a sum moves at a time.

    Raises NoSuchPlace where it is one, where it leaves columns out, or where these do not move by themselves.
    """
    form, spatial = affine(window.index[-1]), depths_of(leaf.op.target)
    steps = [form.coefficient(d) for d in form.depths if d in spatial]
    taps = [d for d in form.depths if d not in spatial]
    apart = not any(each.uses(d) for each in window.index[:-1] for d in form.depths)
    if not apart or len(steps) != 1 or len(taps) != 1:
        raise NoSuchPlace("The columns of the window do not move by themselves.")
    if steps[0] < 2 or form.coefficient(taps[0]) != 1 or leaf.scopes[taps[0]].size < steps[0]:
        raise NoSuchPlace("It leaves columns out, or moves column by column.")
    return steps[0]


def _separate(sketch: Sketch, operation: Provenance) -> None:
    windows = strided_windows(sketch, operation)
    leaf = leaf_at(sketch, operation)
    step = step_of(leaf, only(a for a in leaf.op.reads if a.array == windows.array))
    if scope_of(sketch.program, sketch.path(windows.sum.columns)).size < LONG * windows.widths[0]:
        raise NoSuchPlace("Its rows are short: one run of them all is better.")
    common = len(_summed(leaf)) - 1
    name = _copied(sketch, operation, windows.array)
    sums = _cut_taps(sketch, operation, name, step)
    _sort(sketch, name, step)
    while sums:
        sums = _tile(sketch, sums, windows.widths, common)


def _summed(leaf: Leaf) -> list[Provenance]:
    """The scopes that a sum goes over, from the outermost on."""
    spatial = depths_of(leaf.op.target)
    return [scope.provenance for d, scope in enumerate(leaf.scopes) if d not in spatial and not scope.mark]


def _copied(sketch: Sketch, operation: Provenance, array: str) -> str:
    """A copy, in a nest of its own before the sum, of all that the windows read; gives its name."""
    name = fresh_name(sketch.program, "h" + array[:20])
    sketch.play("wrap", sketch.place(leaf_at(sketch, operation).path[:1]), 1)
    sketch.play("stage_read", array, sketch.place(leaf_at(sketch, operation).path[:1]), name)
    sketch.may("set_location", name, "heap")
    isolate(sketch, operation)
    copy = only(leaf for leaf in sketch.program.leaves if leaf.op.target.array == name)
    for each in (copy.op.provenance, operation):
        sketch.play("unwrap", sketch.place(leaf_at(sketch, each).path[:1]))
    return name


def _cut_taps(sketch: Sketch, operation: Provenance, name: str, step: int) -> list[Provenance]:
    """The filter's columns outermost, in steps, and those that are left over: gives the sums over both."""
    leaf = leaf_at(sketch, operation)
    form = affine(only(a for a in leaf.op.reads if a.array == name).index[-1])
    taps = only(leaf.scopes[d] for d in form.depths if d not in depths_of(leaf.op.target))
    order(sketch, operation, [taps.provenance, *(s.provenance for s in leaf.scopes if s is not taps)])
    sums, whole = [operation], taps.provenance
    rest = taps.size % step
    if rest:
        cut, behind = cut_columns(
            sketch, Contraction(operation, taps.provenance, None, None), taps.size - rest
        )
        whole = cut.columns
        sums.append(behind)
        if rest == 1:
            sketch.play("unwrap", sketch.place(leaf_at(sketch, behind).path[:1]))
    if taps.size >= 2 * step:
        sketch.play("split_scope", sketch.place(sketch.path(whole)), step)
    return sums


def _sort(sketch: Sketch, name: str, step: int) -> None:
    """Copy so that every ``step``-th column lies side by side."""
    copy = only(leaf for leaf in sketch.program.leaves if leaf.op.target.array == name)
    last = len(buffer_named(sketch.program, name).dims) - 1
    size = buffer_named(sketch.program, name).dims[last].size
    path = copy.path[: affine(copy.op.target.index[last]).depths[0] + 1]
    if size % step:
        sketch.play("pad_dim", name, last, -(-size // step) * step)
        sketch.play("cut_scope", sketch.place(path), size - size % step)
    sketch.play("split_scope", sketch.place(path), step)
    sketch.play("split_dim", name, last, step)
    sketch.play("swap_dims", name, last, last + 1)
    *_, columns, phase = (scope.provenance for scope in leaf_at(sketch, copy.op.provenance).scopes)
    order(sketch, copy.op.provenance, [phase, columns])


def _tile(sketch: Sketch, sums: list[Provenance], widths: tuple[int, ...], common: int) -> list[Provenance]:
    """Tile the parts of a sum, which have so many scopes over terms in common, as one; gives those of the
    columns that no tile takes."""
    nests = [find(sketch, each) for each in sums]
    first = initialisation(sketch, sums[0], nests[0])
    if first is None or nests[0].rows is None:
        raise NoSuchPlace("No rows share a window, or nothing sets the result first.")
    rows, columns = (
        scope_of(sketch.program, sketch.path(each)).size for each in (nests[0].rows, nests[0].columns)
    )
    tile = choose_tile(rows, columns, widths, sketch.context.target.vector_registers, columns)
    rest = list[Provenance]()
    if columns % tile.columns:
        cuts = [cut_columns(sketch, nest, columns - columns % tile.columns) for nest in (first, *nests)]
        (first, _), *others = cuts
        nests = [nest for nest, _ in others]
        rest = [behind for _, behind in others]
    for nest in nests:
        _taps_inside(sketch, nest.sum, common)
    tile_nests(sketch, first, nests[0], tile, more=nests[1:])
    _join_terms(sketch, sums, common)
    write_tile(sketch, sums[0], tile)
    for each in sums:
        for phase in _summed(leaf_at(sketch, each))[common:][-1:]:
            size = scope_of(sketch.program, sketch.path(phase)).size
            if size * tile.rows * tile.vectors <= WRITTEN_OUT:
                sketch.play("unroll", sketch.place(sketch.path(phase)))
    return rest


def _taps_inside(sketch: Sketch, operation: Provenance, common: int) -> None:
    """Bring the scopes over the filter's columns inside of those that all parts of a sum have."""
    leaf = leaf_at(sketch, operation)
    band = [scope.provenance for scope in leaf.scopes[band_depth(leaf) :]]
    summed = _summed(leaf)
    taps, others = summed[: len(summed) - common], summed[len(summed) - common :]
    order(sketch, operation, [*(each for each in band if each not in summed), *others, *taps])


def _join_terms(sketch: Sketch, sums: list[Provenance], common: int) -> None:
    """One nest for the terms of all parts: what one of them reads of a row lies beside what others do."""
    for provenance in _summed(leaf_at(sketch, sums[0]))[:common]:
        for _ in sums[1:]:
            sketch.play("join_scopes", sketch.place(sketch.path(provenance)))
