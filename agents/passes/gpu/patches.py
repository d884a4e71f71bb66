"""Patches: products and convolutions of any size, each thread a patch of results in registers.

``y[.., o, .., w] += x[.., c, .., w + k] * f[o, c, .., k]``: one operand goes along the rows of a patch (the
channels o), the other along its columns (w, neighbours in memory). What a block needs of both for some terms
of the outermost sum goes through shared memory, the rows' operand with its rows innermost; a thread takes
what it uses of them at a time into registers, a window of neighbours once for all taps of the innermost sum.
All extents are divisors of the sizes, so no iteration is guarded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.passes.gpu.staging import join_with_start, loops_of, scopes_of
from agents.passes.gpu.threads import UNROLLED, cut, divisor, lift, mark, to_heap, to_thread
from agents.passes.structure import leaf_of, only, scope_of, stride, uses
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Leaf, Path, Provenance
from dojo_core.recipes import Sketch

ROWS, COLUMNS = 10, 6  # the largest patch of a thread
BLOCK_ROWS = 32
THREADS = 192  # of a block, about
MANY = 64 * 1024  # threads: some 15 warps for each processor of a large device
PANELS = 40 * 1024  # bytes of shared memory: some blocks fit a processor beside each other
COPIED = 16  # values that a thread copies in one go
LANES = 4
BANKS = 32  # of shared memory, a cell wide
THREAD_ORDER = ("rows", "deep", "columns")  # neighbouring threads take neighbouring columns
TAPS = 8  # terms of the innermost sum that are unrolled with their window


@dataclass(frozen=True)
class _Patch:
    """The scopes of a contraction by depth, and its operands. ``others`` are the further spatial scopes."""

    leaf: Leaf
    rows: int
    columns: int
    others: tuple[int, ...]
    terms: tuple[int, ...]
    wide: Access  # goes along the columns
    tall: Access  # goes along the rows

    def provenance(self, depth: int) -> Provenance:
        return self.leaf.scopes[depth].provenance

    def size(self, depth: int) -> int:
        return self.leaf.scopes[depth].size


def _find(sketch: Sketch, operation: Provenance) -> _Patch:
    program, leaf = sketch.program, leaf_of(sketch.program, operation)
    if leaf is None or leaf.op.accumulate != "+" or leaf.op.function != "*" or leaf.op.guard:
        raise NoSuchPlace("Not a sum of products.")
    op, depths = leaf.op, range(len(leaf.scopes))
    accesses = (op.target, *op.reads)
    forms = [form for access in accesses for form in access.index]
    if len(op.reads) != 2 or not all(isinstance(form, Affine) for form in forms):
        raise NoSuchPlace("Not a product of two.")
    if {program.buffer_of[a.array].dtype for a in accesses} != {"f32"}:
        raise NoSuchPlace("Patches are for f32.")
    spatial = [d for d in depths if uses(op.target, d)]
    terms = tuple(d for d in depths if d not in spatial)
    if any(s.mark for s in leaf.scopes) or not terms or terms[0] != len(spatial):
        raise NoSuchPlace("Its sums are not innermost.")
    columns = next((d for d in reversed(spatial) if stride(program, op.target, d) == 1), -1)
    if columns < 0 or sum(uses(read, columns) for read in op.reads) != 1:
        raise NoSuchPlace("Both operands go along its columns.")
    wide, tall = op.reads if uses(op.reads[0], columns) else op.reads[::-1]
    rows = next((d for d in reversed(spatial) if uses(tall, d) and not uses(wide, d)), -1)
    if rows < 0 or stride(program, wide, columns) != 1:
        raise NoSuchPlace("It has no rows, or its columns are no neighbours.")
    others = tuple(d for d in spatial if d not in (rows, columns))
    return _Patch(leaf, rows, columns, others, terms, wide, tall)


@dataclass(frozen=True)
class _Extent:
    """Rows and columns of a thread and of a block, and how many iterations of ``deep`` a block takes."""

    own_rows: int
    own_columns: int
    rows: int
    columns: int
    deep: int

    @property
    def threads(self) -> int:
        return self.rows // self.own_rows * self.deep * (self.columns // self.own_columns)


def _extent(patch: _Patch, deep: int | None) -> _Extent:
    rows = divisor(patch.size(patch.rows), BLOCK_ROWS)
    own_rows, own_columns = divisor(rows, ROWS), divisor(patch.size(patch.columns), COLUMNS)
    results = math.prod(patch.size(d) for d in (patch.rows, patch.columns, *patch.others))
    if results < MANY * own_rows * own_columns:  # more threads hide more of the time that data take
        own_rows = divisor(rows, ROWS // 2)
    across = divisor(patch.size(patch.columns) // own_columns, max(1, THREADS // (rows // own_rows)))
    threads = rows // own_rows * across
    more = divisor(patch.size(deep), max(1, THREADS // threads)) if deep is not None else 1
    if rows == 1 or across * own_columns == 1 or own_rows * own_columns < 4 or threads * more < 8:
        raise NoSuchPlace("Its sizes have no divisors that make a patch.")
    return _Extent(own_rows, own_columns, rows, across * own_columns, more)


def _cells(access: Access, sizes: dict[int, int]) -> int:
    """Cells of the hull that an access covers while the scopes of these depths and sizes run."""
    return math.prod(
        1 + sum(abs(c) * (sizes.get(d, 1) - 1) for d, c in form.terms)
        for form in access.index
        if isinstance(form, Affine)
    )


def tile_patch(sketch: Sketch, operation: Provenance) -> None:
    """Map a contraction to blocks and patches. Raises IllegalMove or NoSuchPlace where that cannot be."""
    patch = _find(sketch, operation)
    join_with_start(sketch, operation, patch.provenance(max(patch.rows, patch.columns, *patch.others)))
    patch = _find(sketch, operation)
    deep = next((d for d in reversed(patch.others) if uses(patch.wide, d)), None)
    extent = _extent(patch, deep)
    step = _step(patch, extent, deep)
    target = patch.leaf.op.target
    # Blocks of results, and their sums in a buffer of their own.
    grid: list[Provenance] = []
    roles: list[str] = []  # of the scopes inside a block
    taken = {patch.rows: ("rows", extent.rows), patch.columns: ("columns", extent.columns)}
    if deep is not None:
        taken[deep] = ("deep", extent.deep)
    dims: dict[str, int] = {}
    for depth in sorted((patch.rows, patch.columns, *patch.others)):
        role, size = taken.get(depth, ("", 1))
        if size > 1:
            roles.append(role)
            dims[role] = only(k for k, form in enumerate(target.index) if form.uses(depth))
        if size == 1:
            grid.append(patch.provenance(depth))
        elif size < patch.size(depth):
            grid.append(cut(sketch, patch.provenance(depth), size)[0])
    if not grid:
        raise NoSuchPlace("It would be one block.")
    for number, provenance in enumerate(grid):
        lift(sketch, provenance, number)
    top, block = len(grid), grid[-1]
    sums = fresh_name(sketch.program, target.array + "s")
    sketch.play("stage_write", target.array, sketch.place(sketch.path(block)), sums)
    to_heap(sketch, sums)
    # Setting to zero, summing, storing: a nest each, of the same threads with the same patches.
    for depth in range(top + len(roles), top, -1):
        path = sketch.path(operation)
        sketch.play("fission_scope", sketch.place(path[:depth]), sketch.place(path[: depth + 1]))
    stored = sorted(roles, key=dims.__getitem__)
    nests = [
        _arranged(sketch, (*sketch.path(block), n), order, extent)
        for n, order in enumerate((roles, roles, stored))
    ]
    _arrange_sums(sketch, sums, stored, extent)
    # Steps of the outermost sum stand around the threads, the other terms between these and their patches.
    terms = [patch.provenance(d) for d in patch.terms]
    around = block
    if step == 1:
        around = terms.pop(0)
    elif step < patch.size(patch.terms[0]):
        around, terms[0] = cut(sketch, terms[0], step)
    if not terms:
        raise NoSuchPlace("Nothing is left to sum in one step.")
    if around != block:
        lift(sketch, around, top)
    level = len(sketch.path(around))
    for number, provenance in enumerate(terms):
        lift(sketch, provenance, level + len(nests[1].threads) + number)
    panels = [_panel(sketch, access, around) for access in (patch.wide, patch.tall)]
    _rows_innermost(sketch, operation, panels[1], [*nests[1].threads, *nests[1].per_thread])
    copies = [_copy(sketch, panel, level, extent.threads, panel == panels[0]) for panel in panels]
    taps = scope_of(sketch.program, sketch.path(terms[-1])).size
    windows = len(terms) > 1 and taps <= TAPS and taps * extent.own_rows <= UNROLLED
    at = terms[-2] if windows else terms[-1]
    fragments = [_fragment(sketch, panel, at) for panel in panels]
    # Marks.
    for provenance in grid:
        mark(sketch, "map_grid", provenance)
    for panel in panels:
        sketch.play("set_location", panel, "shared")
    for provenance in (each for shared in (*nests, *copies) for each in shared.threads):
        mark(sketch, "map_block", provenance)
    for copy in copies:
        if copy.lanes is not None:
            _widen(sketch, copy.lanes)
        room = COPIED
        for provenance in reversed(copy.per_thread):
            room //= scope_of(sketch.program, sketch.path(provenance)).size
            if room:
                mark(sketch, "unroll", provenance)
    for provenance in (
        *([terms[-1]] if windows else []),
        *nests[0].per_thread,
        *nests[1].per_thread,
        *nests[2].per_thread[:-1],
    ):
        mark(sketch, "unroll", provenance)
    _widen(sketch, nests[2].per_thread[-1])
    for name in fragments:
        for number, provenance in enumerate([sketch.provenance(path) for path in loops_of(sketch, name)]):
            if number:
                mark(sketch, "unroll", provenance)
            else:
                _widen(sketch, provenance)
    if not to_thread(sketch, sums, top):
        raise NoSuchPlace("A thread cannot keep its sums.")
    for name in fragments:
        sketch.play("set_location", name, "local")


def _step(patch: _Patch, extent: _Extent, deep: int | None) -> int:
    """The most iterations of the outermost sum whose operands fit in a block's panels."""
    inside = {d: patch.size(d) for d in patch.terms}
    inside |= {patch.rows: extent.rows, patch.columns: extent.columns}
    if deep is not None:
        inside[deep] = extent.deep
    outermost = patch.size(patch.terms[0])
    for step in sorted((n for n in range(1, outermost + 1) if outermost % n == 0), reverse=True):
        inside[patch.terms[0]] = step
        if 4 * sum(_cells(access, inside) for access in (patch.wide, patch.tall)) <= PANELS:
            return step
    raise NoSuchPlace("What one term takes of its operands does not fit in shared memory.")


@dataclass(frozen=True)
class _Share:
    """How threads share a nest: their scopes, what each does by itself, and lanes where they may be wide."""

    threads: tuple[Provenance, ...]
    per_thread: tuple[Provenance, ...]
    lanes: Provenance | None = None


def _arranged(sketch: Sketch, path: Path, roles: list[str], extent: _Extent) -> _Share:
    """A nest with one scope for each role: the threads' scopes outermost, then a thread's own."""
    scopes = {role: sketch.provenance((*path, *[0] * n)) for n, role in enumerate(roles)}
    across: dict[str, Provenance] = {}
    per_thread = []
    for role, size, each in (
        ("rows", extent.rows, extent.own_rows),
        ("columns", extent.columns, extent.own_columns),
    ):
        inner = scopes[role]
        if each == 1:
            across[role] = inner
            continue
        if each < size:
            across[role], inner = cut(sketch, inner, each)
        per_thread.append(inner)
    if "deep" in scopes:
        across["deep"] = scopes["deep"]
    threads = [across[role] for role in THREAD_ORDER if role in across]
    for number, provenance in enumerate((*threads, *per_thread)):
        lift(sketch, provenance, len(path) - 1 + number)
    return _Share(tuple(threads), tuple(per_thread))


def _arrange_sums(sketch: Sketch, sums: str, roles: list[str], extent: _Extent) -> None:
    """Dimensions as the scopes are: threads, then a thread's rows and columns."""
    k = len(buffer_named(sketch.program, sums).dims) - len(roles)
    labels: list[tuple[int, int]] = []
    for role in roles:
        size, each = {
            "rows": (extent.rows, extent.own_rows),
            "columns": (extent.columns, extent.own_columns),
            "deep": (extent.deep, 1),
        }[role]
        rank = THREAD_ORDER.index(role)
        if 1 < each < size:
            sketch.play("split_dim", sums, k + len(labels), each)
            labels.append((0, rank))
        labels.append((int(each > 1), rank))
    for end in range(len(labels) - 1, 0, -1):
        for n in range(end):
            if labels[n] > labels[n + 1]:
                sketch.play("swap_dims", sums, k + n, k + n + 1)
                labels[n], labels[n + 1] = labels[n + 1], labels[n]


def _panel(sketch: Sketch, access: Access, around: Provenance) -> str:
    name = fresh_name(sketch.program, access.array + "p")
    sketch.play("stage_read", access.array, sketch.place(sketch.path(around)), name)
    return name


def _box(sketch: Sketch, name: str) -> int:
    """How many dimensions of a staged buffer take storage."""
    return sum(dim.materialised for dim in buffer_named(sketch.program, name).dims)


def _rows_innermost(sketch: Sketch, operation: Provenance, panel: str, scopes: list[Provenance]) -> None:
    """The tall operand's rows become its panel's last dimension: a thread reads its own side by side."""
    leaf = leaf_of(sketch.program, operation)
    assert leaf is not None
    depths = {d for d, scope in enumerate(leaf.scopes) if scope.provenance in scopes}
    access = only(a for a in leaf.op.reads if a.array == panel)
    k = only(n for n, form in enumerate(access.index) if depths & set(form.depths))
    for n in range(k, len(access.index) - 1):
        sketch.play("swap_dims", panel, n, n + 1)


def _copy(sketch: Sketch, panel: str, level: int, threads: int, wide: bool) -> _Share:
    """Share the copy into a panel between threads, neighbours to neighbours, 4 at a time where that goes."""
    dims = buffer_named(sketch.program, panel).dims
    last = len(dims) - 1
    pitch = -(-dims[last].size // LANES) * LANES
    if pitch % BANKS == 0 and not wide:  # what lies below each other would be stored to one bank
        pitch += LANES
    if pitch > dims[last].size:
        sketch.play("pad_dim", panel, last, pitch)
    loops = scopes_of(sketch, panel, _box(sketch, panel))
    lanes = None
    size = scope_of(sketch.program, sketch.path(loops[-1])).size
    if wide and size % LANES == 0 and size > LANES:
        loops[-1], lanes = cut(sketch, loops[-1], LANES)
    chosen: list[Provenance] = []
    per_thread: list[Provenance] = []
    for provenance in reversed(loops):
        size = scope_of(sketch.program, sketch.path(provenance)).size
        each = divisor(size, threads)
        if each == size:
            chosen.insert(0, provenance)
        elif each > 1:
            outer, inner = cut(sketch, provenance, each)
            per_thread.insert(0, outer)
            chosen.insert(0, inner)
        else:
            per_thread.insert(0, provenance)
        threads //= each
    for number, provenance in enumerate(chosen):
        lift(sketch, provenance, level + number)
    return _Share(tuple(chosen), tuple(per_thread), lanes)


def _fragment(sketch: Sketch, panel: str, at: Provenance) -> str:
    """What a thread uses of a panel at a time, in its registers."""
    name = fresh_name(sketch.program, "f" + panel)
    sketch.play("stage_read", panel, sketch.place(sketch.path(at)), name)
    return name


def _widen(sketch: Sketch, provenance: Provenance) -> None:
    """The widest vectors that a loop's accesses allow, else copies of its operation."""
    size = scope_of(sketch.program, sketch.path(provenance)).size
    for width in (4, 2):
        if size % width:
            continue
        count = len(sketch.moves)
        with sketch.attempt():
            outer, inner = cut(sketch, provenance, width) if width < size else (None, provenance)
            mark(sketch, "vectorize", inner)
            if outer is not None:
                mark(sketch, "unroll", outer)
        if len(sketch.moves) > count:
            return
    mark(sketch, "unroll", provenance)
