"""Pooled rows: a convolution's rows are computed for what reduces them, while a cache has them.

Windows that share no row, such as 2x2 with stride 2, need so many rows of a convolution, and nobody else
needs these; the smallest channel of a place, or a softmax over channels, needs one row at a time. Joined with
that they never lie in memory, and in whatever layout is best: with channels side by side neither a tile of
the convolution nor a window is turned. Only what comes out is, where it is an output. Where windows leave
rows over, these are not computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agents.passes.channels import (
    Convolution,
    convolution,
    order_of_sums,
    tile_channels,
    tile_for_rows,
    turn_results,
)
from agents.passes.contractions import find, initialisation
from agents.passes.nests import isolate, join_shared, leaf_at, order
from agents.passes.structure import depths_of, only, scope_of, widths_for
from agents.passes.threads import BALANCED, balance
from agents.passes.vectors import vectorise
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tables import Index
from dojo_core.program.tree import DTYPE_BYTES, LONG_FUNCTIONS, Access, Leaf, Provenance
from dojo_core.recipes import Sketch

KEPT = 2  # of a core's cache, the share that the rows of a window may take


def compute_pooled_rows(sketch: Sketch, operation: Provenance) -> None:
    """Join a convolution with what reduces its rows by windows or its channels, and with what lies between.

    Where a move is refused, all stays as it was.
    """
    with sketch.attempt():
        _compute(sketch, operation)


def _compute(sketch: Sketch, operation: Provenance) -> None:
    found = find(sketch, operation, strided=True)
    each = convolution(sketch, found)
    widths = widths_for(sketch.program, [each.leaf], sketch.context.target)
    width = only(lanes for lanes in widths if each.size(each.channel) % lanes == 0)
    if ("transpose", width) not in sketch.context.target.instructions:
        raise NoSuchPlace("What comes out cannot be turned.")
    first = initialisation(sketch, operation, found)
    if first is None:
        raise NoSuchPlace("Nothing sets the result first.")
    chain = _Chain(sketch, each)
    if _bytes_of_a_window(sketch, each, chain.windows) > sketch.context.target.cache_bytes // KEPT:
        raise NoSuchPlace("No cache keeps the rows of a window.")
    if not _has_work_for_threads(sketch, each, chain.windows):
        raise NoSuchPlace("Threads would share the rows badly.")
    tile = tile_for_rows(sketch, found, each, width, chain.stores(sketch))
    sums = order_of_sums(each.leaf, each)
    for member in chain.members(first.sum):
        isolate(sketch, member.operation)
    whole = [member for member in chain.members(first.sum) if not member.pooled]
    _leave_rows_out(sketch, whole, chain.windows)
    members = chain.members(first.sum)  # with the scopes that fission and cuts have made
    shared = [_outwards(sketch, member, chain.windows) for member in members]
    for array, layout in chain.layouts.items():
        if array not in sketch.program.interface:
            _lay_out(sketch, array, layout, () if layout.pooled else chain.windows)
    region = join_shared(sketch, shared)
    assert region is not None
    for array, member in {m.array: m for m in members if m.channels is not None}.items():
        if array in sketch.program.interface:
            turn_results(sketch, member.operation, region, width, wanted=False)
    for member in members:
        _order(sketch, member, sums if member.operation == operation else [])
    for member in members:
        if member.channels is None:
            _vectorise_function(sketch, member.operation)
    tile_channels(sketch, first.sum, each, tile)


@dataclass(frozen=True)
class _Window:
    """Of a dimension of rows: ``pooled`` rows are made of ``step`` each."""

    pooled: int
    step: int


@dataclass(frozen=True)
class _Layout:
    """An array's dimensions of images, of channels (None: it has none) and of rows; ``pooled``: of what came
    out of the windows."""

    images: tuple[int, ...]
    channels: int | None
    rows: tuple[int, ...]
    pooled: bool


@dataclass(frozen=True)
class _Member:
    """An operation that goes along the rows, the array that it writes, and its scopes."""

    operation: Provenance
    array: str
    images: tuple[Provenance, ...]
    channels: Provenance | None
    rows: tuple[Provenance, ...]
    pooled: bool


class _Chain:
    """What goes along the rows of a convolution's result: arrays with their layouts, and the windows, which
    are of one row each where none pool them.

    Raises NoSuchPlace where the rows are used otherwise, or nothing reduces them.
    """

    def __init__(self, sketch: Sketch, each: Convolution) -> None:
        self.sketch, self.windows = sketch, tuple[_Window, ...]()
        result = each.leaf.op.target
        channels = only(k for k, form in enumerate(result.index) if form == Affine.iterator(each.channel))
        rows = tuple(range(channels + 1, len(result.index) - 1))
        if not rows:
            raise NoSuchPlace("Its results have no rows.")
        self.layouts = {result.array: _Layout(tuple(range(channels)), channels, rows, False)}
        outside, entire = set[str](), set[str]()  # made of these arrays as a whole; used so
        for leaf in sketch.program.leaves:
            if leaf.path > each.leaf.path:
                read = [access for access in leaf.op.reads if access.array in self.layouts]
                layout = None
                if read and outside.isdisjoint(access.array for access in leaf.op.reads):
                    layout = self._follow(leaf, read)
                if layout is not None:
                    if self.layouts.setdefault(leaf.op.target.array, layout) != layout:
                        raise NoSuchPlace("An array has rows in one place and in another.")
                elif read or not outside.isdisjoint(access.array for access in leaf.op.reads):
                    entire |= {access.array for access in read}
                    outside.add(leaf.op.target.array)
        pooled = bool(self.windows)
        if not pooled and all(layout.channels is not None for layout in self.layouts.values()):
            raise NoSuchPlace("Nothing reduces its rows.")
        if not pooled:
            depths = [_step(each.leaf, result.index[row])[0] for row in rows]
            self.windows = tuple(_Window(each.leaf.scopes[depth].size, 1) for depth in depths)
        for array, layout in self.layouts.items():
            asked = array in entire or (pooled and array in sketch.program.interface)
            if asked and not layout.pooled and (pooled or layout.channels is not None):
                raise NoSuchPlace("All of its rows are used at once.")
            if array not in sketch.program.interface and len(sketch.program.buffer_of[array].arrays) != 1:
                raise NoSuchPlace("Its memory is another array's, too.")

    def stores(self, sketch: Sketch) -> bool:
        """Is something an output that has all channels and rows?"""
        whole = (a for a, layout in self.layouts.items() if layout.channels is not None and not layout.pooled)
        return any(array in sketch.program.interface for array in whole)

    def _follow(self, leaf: Leaf, read: Sequence[Access]) -> _Layout | None:
        """The layout of what an operation makes of the rows of others; None: it has not all dimensions."""
        if len({self.layouts[access.array].pooled for access in read}) > 1:
            raise NoSuchPlace("Rows and what is pooled of them are used at once.")
        pooled = self.layouts[read[0].array].pooled
        made = leaf.op.target
        forms = {
            tuple(access.index[k] for k in (*layout.images, *layout.rows))
            for access in read
            for layout in [self.layouts[access.array]]
        }
        if len(forms) != 1:
            raise NoSuchPlace("Different rows are used at once.")
        steps = [_step(leaf, form) for form in forms.pop()]
        count = len(self.layouts[read[0].array].images)
        if any(step > 1 for _, step in steps[:count]) or (pooled and any(step > 1 for _, step in steps)):
            raise NoSuchPlace("Images are strides apart, or what is pooled is pooled again.")
        if any(step > 1 for _, step in steps):
            windows = tuple(_Window(leaf.scopes[depth].size, step) for depth, step in steps[count:])
            if self.windows not in ((), windows):
                raise NoSuchPlace("Windows of different rows pool them.")
            self.windows, pooled = windows, True
        places = [_dimension(made, depth) for depth, _ in steps]
        if any(place is None for place in places):
            return None
        found = [place for place in places if place is not None]
        channels = None
        for access in read:
            dimension = self.layouts[access.array].channels
            form = None if dimension is None else access.index[dimension]
            if isinstance(form, Affine) and len(form.terms) == 1:
                channels = _dimension(made, form.depths[0])
        return _Layout(tuple(found[:count]), channels, tuple(found[count:]), pooled)

    def members(self, first: Provenance) -> list[_Member]:
        """The operations that write these arrays, from the first one on."""
        members, begun = list[_Member](), False
        for leaf in self.sketch.program.leaves:
            begun = begun or leaf.op.provenance == first
            layout = self.layouts.get(leaf.op.target.array)
            if layout is None:
                continue
            if not begun:
                raise NoSuchPlace("Something writes these arrays before.")

            def scope(dimension: int, leaf: Leaf = leaf) -> Provenance:
                form = leaf.op.target.index[dimension]
                if (
                    not isinstance(form, Affine)
                    or form.const
                    or len(form.terms) != 1
                    or form.terms[0][1] != 1
                ):
                    raise NoSuchPlace("An operation writes some of the rows.")
                return leaf.scopes[form.depths[0]].provenance

            members.append(
                _Member(
                    leaf.op.provenance,
                    leaf.op.target.array,
                    tuple(map(scope, layout.images)),
                    None if layout.channels is None else scope(layout.channels),
                    tuple(map(scope, layout.rows)),
                    layout.pooled,
                )
            )
        return members


def _bytes_of_a_window(sketch: Sketch, each: Convolution, windows: Sequence[_Window]) -> int:
    """Bytes of the results that come to a row of windows."""
    number = DTYPE_BYTES[sketch.program.buffer_of[each.leaf.op.target.array].dtype]
    return math.prod(w.step for w in windows) * each.size(each.column) * each.size(each.channel) * number


def _has_work_for_threads(sketch: Sketch, each: Convolution, windows: Sequence[_Window]) -> bool:
    """Can threads share one of the scopes that come outside, images or rows, equally enough?"""
    outer = [w.pooled for w in windows]
    inside = {each.channel, each.column, each.row}
    outer += [each.size(d) for d in depths_of(each.leaf.op.target) - inside]
    return any(balance(size, sketch.context.target.threads) >= BALANCED for size in outer)


def _step(leaf: Leaf, form: Index) -> tuple[int, int]:
    """The depth of the scope that an index goes along, and how far it goes in an iteration; what else it has
    stays within that. Raises NoSuchPlace where windows share rows."""
    if not isinstance(form, Affine) or not form.terms or form.const < 0:
        raise NoSuchPlace("An index is no window's.")
    depth, step = max(form.terms, key=lambda term: term[1])
    rest = [(d, n) for d, n in form.terms if d != depth]
    end = form.const + sum(n * (leaf.scopes[d].size - 1) for d, n in rest)
    if end >= step or any(n < 0 or d in depths_of(leaf.op.target) for d, n in rest):
        raise NoSuchPlace("Windows share rows.")
    return depth, step


def _dimension(access: Access, depth: int) -> int | None:
    """The dimension whose index is the iterator at a depth alone."""
    return next((k for k, form in enumerate(access.index) if form == Affine.iterator(depth)), None)


def _leave_rows_out(sketch: Sketch, members: Sequence[_Member], windows: Sequence[_Window]) -> None:
    """Cut off the rows that come to no window, and drop them, the last to be made first."""
    behind = list[Provenance]()
    for member in members:
        for row, window in zip(member.rows, windows, strict=True):
            path, used = sketch.path(row), window.pooled * window.step
            if scope_of(sketch.program, path).size > used:
                sketch.play("cut_scope", sketch.place(path), used)
                after = (*path[:-1], path[-1] + 1)
                rest = only(leaf for leaf in sketch.program.leaves if leaf.path[: len(after)] == after)
                behind.append(rest.op.provenance)
    for operation in reversed(behind):
        sketch.play("drop_dead", sketch.place(leaf_at(sketch, operation).path))


def _outwards(sketch: Sketch, member: _Member, windows: Sequence[_Window]) -> list[Provenance]:
    """Bring images, then pooled rows outside; gives these scopes."""
    rows = list[Provenance]()
    for row, window in zip(member.rows, windows, strict=True):
        path = sketch.path(row)
        if not member.pooled and window.step > 1:
            sketch.play("split_scope", sketch.place(path), window.step)
        rows.append(sketch.provenance(path))
    outside = [*member.images, *rows]
    scopes = [scope.provenance for scope in leaf_at(sketch, member.operation).scopes]
    order(sketch, member.operation, [*outside, *(each for each in scopes if each not in outside)])
    return outside


def _lay_out(sketch: Sketch, array: str, layout: _Layout, windows: Sequence[_Window]) -> None:
    """Give the rows of a window a dimension of their own, and bring the channels to the end."""
    channels = layout.channels
    for dimension, window in reversed(list(zip(layout.rows, windows, strict=False))):
        used = window.pooled * window.step
        if buffer_named(sketch.program, array).dims[dimension].size > used:
            sketch.play("unpad_dim", array, dimension, used)
        if window.step > 1:
            sketch.play("split_dim", array, dimension, window.step)
            channels = channels + 1 if channels is not None and channels > dimension else channels
    if channels is not None:
        for place in range(channels, len(buffer_named(sketch.program, array).dims) - 1):
            sketch.play("swap_dims", array, place, place + 1)


def _order(sketch: Sketch, member: _Member, sums: Sequence[Provenance]) -> None:
    """Inside: what results go along, the channels last; then what is summed over, in a given order."""
    leaf = leaf_at(sketch, member.operation)
    spatial, start = depths_of(leaf.op.target), len(member.images) + len(member.rows)
    inside = list(enumerate(scope.provenance for scope in leaf.scopes))[start:]
    along = [p for d, p in inside if d in spatial and p != member.channels]
    channels = [p for _, p in inside if p == member.channels]
    sums = sums or [p for d, p in inside if d not in spatial]
    order(sketch, member.operation, [*along, *channels, *sums])


def _vectorise_function(sketch: Sketch, operation: Provenance) -> None:
    """Map places by a long function in vectors: joined with what reduces the channels of each, it would take
    one after the other."""
    leaf = leaf_at(sketch, operation)
    waiting = [leaf.scopes[-1].provenance] if leaf.op.function in LONG_FUNCTIONS else []
    while waiting:
        waiting += vectorise(sketch, waiting.pop())
