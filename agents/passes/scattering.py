"""Scattered sums: what inputs give to their results is added up tile by tile, not one by one.

``y[m,i+k] += x[c,i]*w[c,m,k]``, as a transposed convolution has it, multiplies nothing with padding, but no
scope goes along its results, so that no product's tile fits it. Here vectors go along the channels ``m``, and
a run of inputs ``i`` meets all taps ``k`` of a row: what they give to ``i+k`` is summed in registers over
``c``, on top of what other rows gave. Results lie channel by channel until they are complete; then they are
turned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.passes.channels import copying, lay_out, turn
from agents.passes.nests import isolate, join_shared, leaf_at, order, wrapped
from agents.passes.structure import depths_of, only, scope_of, stride, uses, widths_for
from agents.passes.vectors import write_out
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.dependence import has_vector_form
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Leaf, Provenance
from dojo_core.recipes import Sketch

WORTH = 4  # multiply-adds of a tile for each of its results, which come from a cache and go back there
WAYS = 8  # of the first-level cache: so many lines that are a way apart stay there
MOST = 128  # of them for one term: each is written out


@dataclass(frozen=True)
class Scatter:
    """The scopes of a scattered sum, by provenance. ``around``: those outside the channels in its results,
    such as images; then the channels, which are the results' dimension ``dim``; inputs and taps by rows; a
    row's inputs (``column``) and its taps (``tap``); the terms. ``weights`` are read along the channels."""

    around: list[Provenance]
    channel: Provenance
    dim: int
    rows: list[Provenance]
    column: Provenance
    tap: Provenance
    terms: list[Provenance]
    weights: str


def scatter_in_tiles(sketch: Sketch, operation: Provenance) -> None:
    """Tile a scattered sum; others, and those of which a move is refused, stay as they were."""
    with sketch.attempt():
        _tile(sketch, operation)


def _tile(sketch: Sketch, operation: Provenance) -> None:
    each, target = _found(sketch, operation), sketch.context.target
    leaf = leaf_at(sketch, operation)
    channels = scope_of(sketch.program, sketch.path(each.channel)).size
    width = only(w for w in widths_for(sketch.program, [leaf], target) if channels % w == 0)
    run = _run(leaf, each, target.vector_registers)
    first, part = _first(sketch, leaf, each), _part(sketch, leaf, each)
    isolate(sketch, operation)
    isolate(sketch, first)
    nests = [_first_ordered(sketch, first, each, width), _ordered(sketch, operation, each, width, run)]
    if part is not None:
        nests.append(_part_ordered(sketch, part, each, width))
    region = join_shared(sketch, nests)
    assert region is not None
    if part is not None:
        kept = _kept_for_part(sketch, operation, each, width)
    else:
        kept = _channels_last(sketch, operation, region, each)
    with sketch.attempt():
        turn(sketch, copying(sketch, kept).op.provenance, width)
    weights = fresh_name(sketch.program, "p" + each.weights[:20])
    sketch.play("stage_read", each.weights, "root", weights)
    lay_out(sketch, operation, weights, width)
    leaf = leaf_at(sketch, operation)
    inner = len(leaf.scopes) - len(each.terms) - 3  # its terms, and a tile's inputs, taps and vector
    if inner == len(sketch.path(region)):  # all is one tile: it gets a scope beside what sets it
        sketch.play("wrap", sketch.place(leaf.path[: inner + 1]), 1)
        leaf, inner = leaf_at(sketch, operation), inner + 1
    with sketch.attempt():
        _rows_together(sketch, operation, each, weights)
    leaf = leaf_at(sketch, operation)
    sums = fresh_name(sketch.program, "acc")
    sketch.play("stage_write", kept, sketch.place(leaf.path[:inner]), sums)
    for provenance in dict.fromkeys(
        leaf.scopes[-1].provenance
        for leaf in sketch.program.leaves
        if leaf.op.target.array in (kept, sums) and not leaf.scopes[-1].mark
    ):
        write_out(sketch, provenance, MOST)
    sketch.play("set_location", sums, "register")


def _rows_together(sketch: Sketch, operation: Provenance, each: Scatter, weights: str) -> None:
    """Copy a row of inputs, its terms side by side, where these lie in the same few sets of the first-level
    cache, for all tiles of the row.

    Raises NoSuchPlace where it is read well enough where it is.
    """
    program, leaf, target = sketch.program, leaf_at(sketch, operation), sketch.context.target
    window = only(access for access in leaf.op.reads if access.array != weights)
    terms = [(d, scope.size) for d, scope in enumerate(leaf.scopes) if scope.provenance in each.terms]
    number = DTYPE_BYTES[program.buffer_of[window.array].dtype]
    apart = math.gcd(*(stride(program, window, d) * number for d, _ in terms))
    rows = [d for d, scope in enumerate(leaf.scopes) if scope.provenance in each.rows and uses(window, d)]
    if apart % (target.first_cache_bytes // WAYS) or math.prod(size for _, size in terms) <= WAYS or not rows:
        raise NoSuchPlace("Its terms find room in the first-level cache.")
    name = fresh_name(program, "x" + window.array[:20])
    sketch.play("stage_read", window.array, sketch.place(leaf.path[: max(rows) + 1]), name)
    copy = only(other for other in sketch.program.leaves if other.op.target.array == name)
    write_out(sketch, copy.scopes[-1].provenance, MOST)


def _found(sketch: Sketch, operation: Provenance) -> Scatter:
    """The roles of a sum's scopes. Raises NoSuchPlace where it is no scattered sum of products."""
    leaf = leaf_at(sketch, operation)
    plain = leaf.op.accumulate == "+" and leaf.op.function == "*" and not leaf.op.guard
    if not plain or len(leaf.op.reads) != 2 or any(scope.mark for scope in leaf.scopes):
        raise NoSuchPlace("No sum of products.")
    if any(access.indirect for access in leaf.op.elements) or not has_vector_form(leaf):
        raise NoSuchPlace("Where its elements lie is looked up, or it has no vectors.")
    forms = [affine(form) for form in leaf.op.target.index]
    if not forms or len(forms[-1].terms) != 2 or any(form.const for form in forms):
        raise NoSuchPlace("Its results are no rows that inputs and taps share.")
    ends = forms[-1].depths
    window = only(a for a in leaf.op.reads if sum(uses(a, d) for d in ends) == 1)
    weights = only(a for a in leaf.op.reads if a != window)
    column, tap = sorted(ends, key=lambda depth: not uses(window, depth))
    readers = [other for other in sketch.program.leaves if weights.array in {a.array for a in other.op.reads}]
    if not uses(weights, tap) or uses(weights, column) or len(readers) != 1:
        raise NoSuchPlace("The weights do not go along the taps alone, or are used elsewhere.")
    dim = only(
        k
        for k, form in enumerate(forms)
        if len(form.terms) == 1 and uses(weights, form.depths[0]) and not uses(window, form.depths[0])
    )
    if any(step != 1 for form in forms[: dim + 1] for _, step in form.terms) or any(
        len(form.terms) > 1 for form in forms[:dim]
    ):
        raise NoSuchPlace("Its channels do not stand before its rows.")
    named = [scope.provenance for scope in leaf.scopes]
    rows = [d for form in forms[dim + 1 : -1] for d in form.depths]
    rows.sort(key=lambda depth: not uses(window, depth))
    spatial = depths_of(leaf.op.target)
    return Scatter(
        [named[d] for form in forms[:dim] for d in form.depths],
        named[forms[dim].depths[0]],
        dim,
        [named[d] for d in rows],
        named[column],
        named[tap],
        [provenance for d, provenance in enumerate(named) if d not in spatial],
        weights.array,
    )


def _run(leaf: Leaf, each: Scatter, registers: int) -> int:
    """How many inputs of a row a tile takes: as many as divide them and leave registers for their results,
    and for a term's inputs and weights: all of those that are fewer, and one of the others.

    Raises NoSuchPlace where that is too few.
    """
    sizes = {scope.provenance: scope.size for scope in leaf.scopes}
    steps = {leaf.scopes[d].provenance: step for d, step in affine(leaf.op.target.index[-1]).terms}
    columns, taps = sizes[each.column], sizes[each.tap]
    terms = math.prod(sizes[provenance] for provenance in each.terms)

    def results(run: int) -> int:
        return (run - 1) * steps[each.column] + (taps - 1) * steps[each.tap] + 1

    fitting = [
        run
        for run in range(1, columns + 1)
        if columns % run == 0
        and run * taps <= MOST
        and results(run) + min(run, taps) + 1 <= registers
        and run * taps * terms >= WORTH * results(run)
    ]
    if not fitting:
        raise NoSuchPlace("Registers have no room for its results, or they take few terms each.")
    return fitting[-1]


def _first(sketch: Sketch, leaf: Leaf, each: Scatter) -> Provenance:
    """The operation before a sum that sets all its results to a number, or one for each channel. Raises
    NoSuchPlace."""
    before = [
        other
        for other in sketch.program.leaves
        if other.op.target.array == leaf.op.target.array and other.path < leaf.path
    ]
    first = only(reversed(before))
    forms = [affine(form) for form in first.op.target.index]
    if first.op.accumulate or first.op.function or first.op.guard or any(len(f.terms) > 1 for f in forms):
        raise NoSuchPlace("Nothing sets the results first.")
    alike = set(range(len(first.scopes))) - set(forms[each.dim].depths)
    if any(access.indirect or uses(access, depth) for access in first.op.reads for depth in alike):
        raise NoSuchPlace("The results of a channel begin with several numbers.")
    return first.op.provenance


def _part(sketch: Sketch, leaf: Leaf, each: Scatter) -> Provenance | None:
    """The copy of a part of all rows that is all that is read of the results: what padding leaves, say."""
    results = leaf.op.target.array
    readers = [other for other in sketch.program.leaves if results in {a.array for a in other.op.reads}]
    if len(readers) != 1 or results in sketch.program.outputs:
        return None
    (reader,) = readers
    plain = not (reader.op.accumulate or reader.op.function or reader.op.guard or reader.op.indirect)
    source, target = (tuple(map(affine, access.index)) for access in (reader.op.reads[0], reader.op.target))
    alike = [form.terms for form in source] == [form.terms for form in target]
    if not plain or not alike or any(len(form.terms) != 1 for form in source):
        return None
    outer = zip(source, sketch.program.buffer_of[results].dims[: each.dim + 1], strict=False)
    whole = all(not f.const and reader.scopes[f.depths[0]].size == dim.size for f, dim in outer)
    return reader.op.provenance if whole else None


def _ordered(sketch: Sketch, operation: Provenance, each: Scatter, width: int, run: int) -> list[Provenance]:
    """Order a sum: around, vectors of channels, rows, runs, terms, a tile's inputs and taps, a vector.

    Gives the scopes outside the rows.
    """
    blocks, lanes = _split(sketch, each.channel, width)
    runs, column = _split(sketch, each.column, run)
    outer = [*each.around, *blocks]
    if not outer:
        outer = [wrapped(sketch, operation)]
    # Those of which there are fewer innermost: gcc keeps them in registers while the others come by once, and
    # finds no room for the sums where it has to keep the many.
    inside = sorted((column, each.tap), key=lambda scope: -scope_of(sketch.program, sketch.path(scope)).size)
    order(sketch, operation, [*outer, *each.rows, *runs, *each.terms, *inside, lanes])
    return outer


def _first_ordered(sketch: Sketch, first: Provenance, each: Scatter, width: int) -> list[Provenance]:
    """Order what sets the results as the sum is; gives the scopes that they share."""
    leaf = leaf_at(sketch, first)
    scopes = [[leaf.scopes[d].provenance for d in affine(form).depths] for form in leaf.op.target.index]
    (channel,) = scopes[each.dim]
    blocks, lanes = _split(sketch, channel, width)
    outer = [*(scope for group in scopes[: each.dim] for scope in group), *blocks]
    if not outer:
        outer = [wrapped(sketch, first)]
    rows = [scope for group in scopes[each.dim + 1 :] for scope in group]
    order(sketch, first, [*outer, *rows, lanes])
    return outer


def _part_ordered(sketch: Sketch, part: Provenance, each: Scatter, width: int) -> list[Provenance]:
    """Order the copy of a part of the results as the sum is, columns innermost; gives what they share."""
    isolate(sketch, part)
    leaf = leaf_at(sketch, part)
    scopes = [leaf.scopes[form.depths[0]].provenance for form in map(affine, leaf.op.target.index)]
    *rows, column = scopes[each.dim + 1 :]
    blocks, lanes = _split(sketch, scopes[each.dim], width)
    outer = [*scopes[: each.dim], *blocks]
    if not outer:
        outer = [wrapped(sketch, part)]
    order(sketch, part, [*outer, *rows, lanes, column])
    return outer


def _kept_for_part(sketch: Sketch, operation: Provenance, each: Scatter, width: int) -> str:
    """Keep the results themselves channel by channel, of one region at a time; gives their name."""
    kept = buffer_named(sketch.program, leaf_at(sketch, operation).op.target.array).name
    alone = [*range(each.dim)]
    if buffer_named(sketch.program, kept).dims[each.dim].size > width:
        sketch.play("split_dim", kept, each.dim, width)
        alone.append(each.dim)
    for dim in alone:
        sketch.play("reuse_dims", kept, dim)
    channel = len(alone)
    for dim in range(channel, len(buffer_named(sketch.program, kept).dims) - 1):
        sketch.play("swap_dims", kept, dim, dim + 1)
    sketch.may("set_location", kept, "stack")
    return kept


def _split(sketch: Sketch, scope: Provenance, size: int) -> tuple[list[Provenance], Provenance]:
    """Split a scope: the outer one, if there is more than one of that size, and the inner one."""
    path = sketch.path(scope)
    if scope_of(sketch.program, path).size == size:
        return [], scope
    sketch.play("split_scope", sketch.place(path), size)
    return [sketch.provenance(path)], sketch.provenance((*path, 0))


def _channels_last(sketch: Sketch, operation: Provenance, region: Provenance, each: Scatter) -> str:
    """Keep what a region sums channel by channel, and copy it where the region ends; gives its name."""
    result = leaf_at(sketch, operation).op.target.array
    kept = fresh_name(sketch.program, "t" + result[:20])
    sketch.play("stage_write", result, sketch.place(sketch.path(region)), kept)
    dims = buffer_named(sketch.program, kept).dims
    channel = next(k for k, dim in enumerate(dims) if dim.materialised)
    for dim in range(channel, len(dims) - 1):
        sketch.play("swap_dims", kept, dim, dim + 1)
    for more in reversed(range(len(dims) - channel - 2)):  # all rows become one
        sketch.play("merge_dims", result, each.dim + 1 + more)
        sketch.play("merge_dims", kept, channel + more)
        path = copying(sketch, kept).path
        sketch.play("merge_scopes", sketch.place(path[:-2]))
    return kept
