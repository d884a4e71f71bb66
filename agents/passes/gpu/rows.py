"""Rows: nests whose independent iterations each go along rows of data, with sums or maxima over them.

Short rows get a warp each, long ones a block of warps. A thread has 4 neighbours at a time (128-bit
accesses); what it read stays in its registers; a reduction is each thread's own, then the warp's by shuffles,
then the block's through shared memory. Source: the lines of softmax and rmsnorm in
dojo_core/lines/gpu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.passes.gpu.bands import ENOUGH, band
from agents.passes.gpu.threads import (
    UNROLLED,
    cut,
    divisor,
    lift,
    mark,
    operations,
    own_arrays,
    separate,
    to_heap,
    to_thread,
    vector_or_unrolled,
)
from agents.passes.structure import leaf_of, scope_of, stride, uses
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Op, Provenance, Scope
from dojo_core.recipes import Sketch
from dojo_core.targets.gpu.limits import GpuTarget

SHORT = 1024  # elements of a row that one warp reads
WARPS = 4  # of a block: more wait longer for each other, and fewer blocks are there to fill in
SUMMING = (16, 8)  # where rows are read and only their sums written, as many as have eight elements a lane


@dataclass(frozen=True)
class Shape:
    """How threads share a row: ``warps`` 1 is a warp a row, several rows to a block."""

    warps: int
    lanes: int

    @property
    def threads(self) -> int:
        return self.warps * self.lanes


def map_rows(sketch: Sketch, provenance: Provenance) -> None:
    """Map a nest of rows. Raises IllegalMove or NoSuchPlace where it is none, or may not be mapped so."""
    rows = band(sketch, provenance)
    if not rows:
        raise NoSuchPlace("Its outermost iterations depend on each other.")
    row = rows[-1]
    shape = _shape(sketch, rows)
    _stage(sketch, row, shape)
    path = sketch.path(row)
    for name in own_arrays(sketch, path[:1]):
        to_heap(sketch, name)
    columns: list[Provenance] = []
    for child in [c.provenance for c in scope_of(sketch.program, path).body if isinstance(c, Scope)]:
        columns += _columns(sketch, child, len(path), shape)
    warp_a_row = shape.warps == 1
    if warp_a_row:
        size = scope_of(sketch.program, path).size
        together = divisor(size, WARPS)
        if together < size:
            outer, row = cut(sketch, row, together)
            rows = [*rows[:-1], outer]
        elif len(rows) > 1:
            rows = rows[:-1]
        else:
            raise NoSuchPlace("There would be one block.")
    nests = [_Nest(sketch, column, len(sketch.path(row)), shape) for column in columns]
    shared = [name for nest in nests for name in nest.reduce()]
    _split_dims(sketch, nests)
    for each in rows:
        mark(sketch, "map_grid", each)
    if warp_a_row:
        mark(sketch, "map_block", row)
    for nest in nests:
        nest.mark()
    _store(sketch, nests, shared)


def _shape(sketch: Sketch, rows: list[Provenance]) -> Shape:
    """Raises NoSuchPlace where there are no rows, or threads do better with a result each."""
    program, path = sketch.program, sketch.path(rows[-1])
    target = sketch.context.target
    if not isinstance(target, GpuTarget):
        raise NoSuchPlace("Not a GPU.")
    along = across = longest = 0
    written = False  # is anything of a whole row's length?
    for leaf in program.leaves:
        inner = len(leaf.scopes) - 1
        if leaf.path[: len(path)] != path or inner < len(path):
            continue
        longest = max(longest, leaf.scopes[inner].size)
        written |= leaf.op.target.array in program.outputs and uses(leaf.op.target, inner)
        for access in (leaf.op.target, *leaf.op.reads):
            if uses(access, inner):
                along += stride(program, access, inner) == 1
                across += stride(program, access, len(path) - 1) == 1
    if longest < 2 * target.warp or along <= across:
        raise NoSuchPlace("No rows that are worth a warp.")
    count = math.prod(scope_of(program, sketch.path(each)).size for each in rows)
    lanes = next(n for n in (target.warp, 32, 16, 1) if longest % n == 0)
    if lanes == 1:  # the row is padded
        lanes = target.warp
    if longest <= SHORT and count >= ENOUGH:
        return Shape(1, lanes)
    if not written:
        return Shape(next((w for w in SUMMING if longest % (w * lanes * 8) == 0), WARPS), lanes)
    return Shape(WARPS, lanes)


def _columns(sketch: Sketch, provenance: Provenance, top: int, shape: Shape) -> list[Provenance]:
    """The innermost scopes of a nest, one operation each.

    A sum stays with what makes its terms where a thread has more of these than its registers hold, or where
    some lanes have none.
    """
    path = sketch.path(provenance)
    while len(body := scope_of(sketch.program, path).body) == 1 and isinstance(body[0], Scope):
        path = (*path, 0)
    above = (*sketch.program.scopes_above(path)[top:], scope_of(sketch.program, path))
    terms = math.prod(scope.size for scope in above) // shape.threads
    made = [child.accumulate for child in body if isinstance(child, Op)]
    uneven = bool(above[-1].size % shape.lanes)
    if (terms > UNROLLED or uneven) and len(made) == len(body) > 1 and made[-1] and not any(made[:-1]):
        return [sketch.provenance(path)]
    return separate(sketch, provenance, top)


def _stage(sketch: Sketch, row: Provenance, shape: Shape) -> None:
    """Read into registers, once, what several loops over the row read."""
    program, path = sketch.program, sketch.path(row)
    readers: dict[str, set[int]] = {}
    for leaf in program.leaves:
        if leaf.path[: len(path)] != path or len(leaf.scopes) != len(path) + 1:
            continue
        size = leaf.scopes[-1].size
        for access in leaf.op.reads:
            moves = uses(access, len(path) - 1)
            if access.array in program.inputs and moves and size <= UNROLLED * shape.threads:
                readers.setdefault(access.array, set()).add(leaf.path[len(path)])
    for array, children in readers.items():
        if len(children) > 1:
            name = fresh_name(sketch.program, array + "r")
            sketch.may("stage_read", array, sketch.place(sketch.path(row)), name)


class _Nest:
    """One loop over a row, given to threads: ``[warps][lanes][what was around it][rest][width]``."""

    def __init__(self, sketch: Sketch, column: Provenance, top: int, shape: Shape) -> None:
        self.sketch, self.shape, self.top = sketch, shape, top
        path = sketch.path(column)
        self.operation = operations(sketch, path)[-1].provenance
        around = [scope.provenance for scope in sketch.program.scopes_above(path)[top:]]
        size = scope_of(sketch.program, path).size
        self.inner: Provenance | None = None
        self.rest: Provenance | None = None
        self.warps: Provenance | None = None
        self.parts: list[Provenance] = []  # the lanes of loops that splitting the reduction made
        self.last: Provenance | None = None  # the sum over the warps
        self.idle = False  # are there lanes with nothing?
        uneven = self._uneven(size) if size % shape.lanes else None
        if uneven is not None:
            self._leave_lanes_idle(column, *uneven)
            if shape.warps > 1:
                self.warps = self._warps_around(around)
                lift(sketch, self.warps, top)
            return
        if size % shape.lanes:
            size = -(-size // shape.threads) * shape.threads
            sketch.play("pad_scope", sketch.place(path), size, "guard")
            column = sketch.provenance(path)
        self.padded = size
        # Warps share the row itself, or the loop around it.
        self.inside = shape.warps > 1 and size % shape.threads == 0
        each = size // (shape.threads if self.inside else shape.lanes)
        self.width = next(n for n in (4, 2, 1) if each % n == 0)
        self.count = each // self.width
        self.lanes = column
        if self.width > 1:
            self.lanes, self.inner = cut(sketch, self.lanes, self.width)
        if self.count > 1 or self.inside:
            self.rest, self.lanes = cut(sketch, self.lanes, shape.lanes)
        if self.inside:
            assert self.rest is not None
            if self.count > 1:
                self.rest, self.warps = cut(sketch, self.rest, shape.warps)
            else:
                self.rest, self.warps = None, self.rest
        elif shape.warps > 1:
            self.warps = self._warps_around(around)
        lift(sketch, self.lanes, top)
        if self.warps is not None:
            lift(sketch, self.warps, top)

    def _uneven(self, size: int) -> tuple[int, int] | None:
        """For a sum over a row that lanes do not divide: its vectors' width and how many lanes have some.

        These are padded once the sum is split: under a guard it could not be split for warps.
        """
        leaf = leaf_of(self.sketch.program, self.operation)
        assert leaf is not None
        if not leaf.op.accumulate or uses(leaf.op.target, len(leaf.scopes) - 1):
            return None
        most = self.shape.lanes
        for width in (4, 2, 1):
            count = next((n for n in range(most - 1, 3 * most // 4 - 1, -1) if size % (n * width) == 0), None)
            if count is not None:
                return width, count
        return None

    def _leave_lanes_idle(self, column: Provenance, width: int, lanes: int) -> None:
        sketch = self.sketch
        self.inside, self.width, self.lanes = False, width, column
        self.padded = scope_of(sketch.program, sketch.path(column)).size
        self.count = self.padded // (lanes * width)
        if width > 1:
            self.lanes, self.inner = cut(sketch, self.lanes, width)
        if self.count > 1:
            self.rest, self.lanes = cut(sketch, self.lanes, lanes)
        self.idle = True
        lift(sketch, self.lanes, self.top)

    def _pad_lanes(self, partial: str) -> None:
        """All lanes of a warp, of which the last have nothing; each has its own partial result."""
        sketch, lanes = self.sketch, self.shape.lanes
        sketch.play("pad_dim", partial, len(buffer_named(sketch.program, partial).dims) - 1, lanes)
        padded = []
        for path in [sketch.path(each) for each in (*self.parts, self.lanes)]:
            sketch.play("pad_scope", sketch.place(path), lanes, "guard")
            padded.append(sketch.provenance(path))
        *self.parts, self.lanes = padded

    def _warps_around(self, around: list[Provenance]) -> Provenance:
        for provenance in reversed(around):
            size = scope_of(self.sketch.program, self.sketch.path(provenance)).size
            if size == self.shape.warps:
                return provenance
            if size % self.shape.warps == 0:
                return cut(self.sketch, provenance, self.shape.warps)[1]
        raise NoSuchPlace("Warps have nothing to share.")

    def reduce(self) -> list[str]:
        """Partial results for lanes and warps; gives the names of those that a block shares."""
        sketch = self.sketch
        leaf = leaf_of(sketch.program, self.operation)
        assert leaf is not None
        depth = len(sketch.path(self.lanes)) - 1
        if not leaf.op.accumulate or uses(leaf.op.target, depth):
            return []
        shared = []
        if self.warps is not None:
            shared = [self._partial(depth - 1)]
            # The first loop over the warps sets the partial results to the neutral value.
            first = sketch.path(self.warps)
            start = (*first[:-1], first[-1] - 1)
            self.last = sketch.provenance((*first[:-1], first[-1] + 1))
            partial = self._partial(depth)
            if self.idle:
                self._pad_lanes(partial)
            sketch.play("join_scopes", sketch.place(start))
            self.warps = sketch.provenance(start)
        else:
            partial = self._partial(depth)
            if self.idle:
                self._pad_lanes(partial)
        return shared

    def _partial(self, depth: int) -> str:
        sketch = self.sketch
        leaf = leaf_of(sketch.program, self.operation)
        assert leaf is not None
        name = fresh_name(sketch.program, "p" + leaf.op.target.array[:20])
        place = sketch.place(leaf.path)
        sketch.play("split_reduction", Place(place.array, place.number, depth), name)
        to_heap(sketch, name)
        if depth == len(sketch.path(self.lanes)) - 1:
            path = sketch.path(self.lanes)
            self.parts = [sketch.provenance((*path[:-1], path[-1] + k)) for k in (-1, 1)]
        return name

    def mark(self) -> None:
        """Give the scopes to warps, lanes and copies."""
        if self.warps is not None:
            mark(self.sketch, "map_block", self.warps)
        for each in (*self.parts, self.lanes):
            mark(self.sketch, "map_warp", each)
        if self.last is not None:
            mark(self.sketch, "unroll", self.last)
        if self.inner is not None:
            vector_or_unrolled(self.sketch, self.inner)
        if self.rest is not None and self.count * self.width <= UNROLLED:
            self.sketch.may("unroll", self.sketch.place(self.sketch.path(self.rest)))


def _split_dims(sketch: Sketch, nests: list[_Nest]) -> None:
    """Temporaries along the row are split as the loops are, so that each thread has its own part."""
    for name in own_arrays(sketch, sketch.path(nests[0].lanes)[:1]):
        for nest in nests:
            leaf = leaf_of(sketch.program, nest.operation)
            assert leaf is not None
            lane = len(sketch.path(nest.lanes)) - 1
            for access in dict.fromkeys((leaf.op.target, *leaf.op.reads)):
                if sketch.program.buffer_of[access.array].name != name:
                    continue
                for k, form in enumerate(access.index):
                    if isinstance(form, Affine) and form.uses(lane) and len(form.terms) > 1:
                        _split_dim(sketch, name, k, nest)


def _split_dim(sketch: Sketch, name: str, k: int, nest: _Nest) -> None:
    with sketch.attempt():
        if buffer_named(sketch.program, name).dims[k].size < nest.padded:
            sketch.play("pad_dim", name, k, nest.padded)
        if nest.width > 1:
            sketch.play("split_dim", name, k, nest.width)
        if nest.inside or nest.rest is not None:
            sketch.play("split_dim", name, k, nest.shape.lanes)
        if nest.inside and nest.rest is not None:
            sketch.play("split_dim", name, k, nest.shape.warps)


def _store(sketch: Sketch, nests: list[_Nest], shared: list[str]) -> None:
    """Partial results of warps in shared memory, all else of the nest in registers where it fits."""
    depth = nests[0].top
    for name in shared:
        if not to_thread(sketch, name, depth, "shared"):
            raise NoSuchPlace("A block cannot share its warps' results.")
    for name in own_arrays(sketch, sketch.path(nests[0].lanes)[:1]):
        if name not in shared:
            _ = to_thread(sketch, name, depth)
