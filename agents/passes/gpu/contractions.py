"""Products: ``c[i,j] += a[i,k]*b[k,j]`` in tiles, a block of 8 x 8 threads for 64 x 64 results.

Panels of 16 steps of k go through shared memory, ``a`` transposed and padded against bank conflicts; each
thread keeps 8 x 8 sums in registers. Few tiles would leave processors idle and the others without a second
block to hide the first one's loads: then k is cut into parts, whose sums are added up afterwards (split-K).
Source: the recorded line of matmul in dojo_core/lines/gpu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.passes.gpu.patches import tile_patch
from agents.passes.gpu.staging import join_with_start, loops_of, scopes_of
from agents.passes.gpu.threads import cut, lift, mark, to_heap, to_thread, vector_or_unrolled
from agents.passes.structure import leaf_of, scope_of, stride, uses
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Access, Leaf, Provenance, Scope
from dojo_core.recipes import Sketch

TILE, STEP, THREADS, LANES = 64, 16, 8, 4
TILES = 528  # some four for each processor of a large device
SHORTEST = 8 * STEP  # terms of a part, below which adding the parts up costs too much


def tile_products(sketch: Sketch) -> None:
    """Tile every product that tiles divide, and every other that has two operands to reuse."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        count = len(sketch.moves)
        with sketch.attempt():
            _spread(sketch, provenance)
            _tile(sketch, provenance)
        if len(sketch.moves) == count:
            with sketch.attempt():
                tile_patch(sketch, provenance)


@dataclass(frozen=True)
class Product:
    rows: Provenance
    columns: Provenance
    terms: Provenance
    left: Access  # uses rows and terms
    right: Access  # uses terms and columns


def find_product(
    sketch: Sketch, operation: Provenance, rows_of: int = TILE, columns_of: int = TILE, terms_of: int = STEP
) -> Product:
    """A sum of products that tiles of so many rows, columns and terms divide. Raises NoSuchPlace."""
    program = sketch.program
    leaf = product_leaf(sketch, operation)
    if leaf.op.accumulate != "+" or leaf.op.function != "*" or leaf.op.guard or len(leaf.op.reads) != 2:
        raise NoSuchPlace("Not a sum of products.")
    target = leaf.op.target
    if {program.buffer_of[a.array].dtype for a in (target, *leaf.op.reads)} != {"f32"}:
        raise NoSuchPlace("Tiles are for f32.")
    spatial = [d for d in range(len(leaf.scopes)) if uses(target, d)]
    summed = [d for d in range(len(leaf.scopes)) if d not in spatial]
    if len(spatial) < 2 or summed != [len(leaf.scopes) - 1] or any(s.mark for s in leaf.scopes):
        raise NoSuchPlace("Not one sum in two scopes or more.")
    rows, columns, terms = spatial[-2], spatial[-1], summed[0]
    one, two = leaf.op.reads
    left, right = (one, two) if uses(one, rows) else (two, one)
    if (
        [uses(left, d) for d in (rows, columns, terms)] != [True, False, True]
        or [uses(right, d) for d in (rows, columns, terms)] != [False, True, True]
        or stride(program, left, terms) != 1
        or stride(program, right, columns) != 1
        or stride(program, target, columns) != 1
        or leaf.scopes[rows].size % rows_of
        or leaf.scopes[columns].size % columns_of
        or leaf.scopes[terms].size % terms_of
    ):
        raise NoSuchPlace("Its operands do not lie as a tile takes them, or no tile divides them.")
    i, j, k = (leaf.scopes[d].provenance for d in (rows, columns, terms))
    return Product(i, j, k, left, right)


def product_leaf(sketch: Sketch, operation: Provenance) -> Leaf:
    leaf = leaf_of(sketch.program, operation)
    if leaf is None or not leaf.op.accumulate:
        raise NoSuchPlace("No sum.")
    return leaf


def _spread(sketch: Sketch, operation: Provenance) -> None:
    """Where tiles are few, cut the terms into parts with sums of their own, as in a batch of products."""
    contraction, leaf = find_product(sketch, operation), product_leaf(sketch, operation)
    tiles = math.prod(scope.size for scope in leaf.scopes[:-1]) // TILE**2
    terms = leaf.scopes[-1].size
    fitting = [n for n in range(1, terms // SHORTEST + 1) if terms % (n * STEP) == 0]
    parts = next((n for n in fitting if n * tiles >= TILES), fitting[-1] if fitting else 1)
    if parts == 1:
        return
    part, _ = cut(sketch, contraction.terms, terms // parts)
    place, top = sketch.place(leaf.path), len(sketch.path(contraction.rows)) - 1
    name = fresh_name(sketch.program, "p" + place.array[:20])
    sketch.play("split_reduction", Place(place.array, place.number, len(leaf.scopes) - 1), name)
    to_heap(sketch, name)
    before, after = (scope.provenance for scope in _beside(sketch, part))
    for each in (part, after):
        for depth in range(len(sketch.path(each)) - 1, 0, -1):
            path = sketch.path(each)
            sketch.play("fission_scope", sketch.place(path[:depth]), sketch.place(path[: depth + 1]))
    for each in (before, part):
        lift(sketch, each, top)
    k = len(buffer_named(sketch.program, name).dims) - 1
    sketch.play("swap_dims", name, k - 1, k)
    sketch.play("swap_dims", name, k - 2, k - 1)


def _beside(sketch: Sketch, provenance: Provenance) -> tuple[Scope, Scope]:
    """The scopes before and after one."""
    path = sketch.path(provenance)
    if path[-1] == 0:
        raise NoSuchPlace("The partial results stand elsewhere.")
    return (
        scope_of(sketch.program, (*path[:-1], path[-1] - 1)),
        scope_of(sketch.program, (*path[:-1], path[-1] + 1)),
    )


@dataclass(frozen=True)
class _Share:
    """How the threads of a block share a nest, by provenance: their scopes, and what each does by itself."""

    threads: tuple[Provenance, ...]
    per_thread: tuple[Provenance, ...]
    lanes: Provenance


def _tile(sketch: Sketch, operation: Provenance) -> None:
    contraction = find_product(sketch, operation)
    join_with_start(sketch, operation, contraction.columns)
    contraction = find_product(sketch, operation)
    array = product_leaf(sketch, operation).op.target.array
    # Blocks of results, and their sums in a buffer of their own.
    rows_outer, rows = cut(sketch, contraction.rows, TILE)
    block, columns = cut(sketch, contraction.columns, TILE)
    lift(sketch, block, len(sketch.path(rows_outer)))
    sums = fresh_name(sketch.program, array + "s")
    sketch.play("stage_write", array, sketch.place(sketch.path(block)), sums)
    to_heap(sketch, sums)
    for depth in (len(sketch.path(columns)), len(sketch.path(rows))):
        path = sketch.path(operation)
        sketch.play("fission_scope", sketch.place(path[:depth]), sketch.place(path[: depth + 1]))
    top = sketch.path(block)
    start, product, store = (sketch.provenance((*top, n)) for n in range(3))
    # A thread has 8 rows of twice 4 columns; steps of the sum go around what it does by itself.
    terms, step = cut(sketch, contraction.terms, STEP)
    lift(sketch, terms, len(top))
    shares = [_share(sketch, each) for each in (start, product, store)]
    lift(sketch, step, len(top) + 3)
    _split_sums(sketch, sums, len(top))
    # Panels through shared memory, and what one step takes of them in registers.
    left, right = _panels(sketch, contraction, terms)
    register = fresh_name(sketch.program, "r" + left)
    copies = (_copy_left(sketch, contraction, left, register), _copy_right(sketch, right))
    fragments = [_fragment(sketch, panel, step) for panel in (right, left)]
    for n in range(len(top)):
        mark(sketch, "map_grid", sketch.provenance(top[: n + 1]))
    for panel in (left, right):
        sketch.play("set_location", panel, "shared")
    for share in (*shares, *copies):
        for each in share.threads:
            mark(sketch, "map_block", each)
    mark(sketch, "unroll", step)
    for share in (*shares, *copies):
        vector_or_unrolled(sketch, share.lanes)
        for each in reversed(share.per_thread):
            mark(sketch, "unroll", each)
    for name in (register, *fragments):
        for path in loops_of(sketch, name):
            vector_or_unrolled(sketch, sketch.provenance(path))
    if not to_thread(sketch, sums, len(top)):
        raise NoSuchPlace("A thread cannot keep its sums.")
    for name in (register, *fragments):
        sketch.play("set_location", name, "local")


def _share(sketch: Sketch, rows: Provenance) -> _Share:
    """64 rows by 64 columns as 8 x 8 threads with 8 rows of 2 x 4 columns each."""
    columns = sketch.provenance((*sketch.path(rows), 0))
    threads, per_thread = cut(sketch, rows, TILE // THREADS)
    vectors, lanes = cut(sketch, columns, LANES)
    twice, across = cut(sketch, vectors, THREADS)
    lift(sketch, across, len(sketch.path(threads)))
    return _Share((threads, across), (per_thread, twice), lanes)


def _split_sums(sketch: Sketch, sums: str, k: int) -> None:
    """Dimensions as the scopes are: threads, rows of one, vectors of one, lanes."""
    sketch.play("split_dim", sums, k, TILE // THREADS)
    sketch.play("split_dim", sums, k + 2, LANES)
    sketch.play("split_dim", sums, k + 2, THREADS)
    sketch.play("swap_dims", sums, k + 1, k + 3)
    sketch.play("swap_dims", sums, k + 2, k + 3)


def _panels(sketch: Sketch, contraction: Product, terms: Provenance) -> tuple[str, str]:
    names = []
    for access in (contraction.right, contraction.left):
        names.append(fresh_name(sketch.program, access.array + "p"))
        sketch.play("stage_read", access.array, sketch.place(sketch.path(terms)), names[-1])
    return names[1], names[0]


def _copy_left(sketch: Sketch, contraction: Product, panel: str, register: str) -> _Share:
    """64 rows by 16 terms: a thread reads 4 terms of 4 rows, each by one access; stored transposed."""
    rows, terms = scopes_of(sketch, panel, 2)
    four, threads = cut(sketch, rows, STEP)
    across, lanes = cut(sketch, terms, LANES)
    first = len(sketch.path(four)) - 1
    lift(sketch, threads, first)
    lift(sketch, across, first + 1)
    sketch.play("stage_read", contraction.left.array, sketch.place(sketch.path(four)), register)
    k = len(buffer_named(sketch.program, panel).dims) - 2
    sketch.play("swap_dims", panel, k, k + 1)
    sketch.play("pad_dim", panel, k + 1, TILE + LANES)
    return _Share((threads, across), (four,), lanes)


def _copy_right(sketch: Sketch, panel: str) -> _Share:
    """16 terms by 64 columns: a thread copies 4 columns of 4 terms."""
    terms, columns = scopes_of(sketch, panel, 2)
    four, threads = cut(sketch, terms, 4)
    vectors, lanes = cut(sketch, columns, LANES)
    twice, across = cut(sketch, vectors, THREADS)
    first = len(sketch.path(four)) - 1
    for n, each in enumerate((threads, twice, across)):
        lift(sketch, each, first + n)
    sketch.play("split_dim", panel, len(buffer_named(sketch.program, panel).dims) - 1, TILE // 2)
    return _Share((threads, twice, across), (four,), lanes)


def _fragment(sketch: Sketch, panel: str, step: Provenance) -> str:
    """What one step of the sum takes of a panel, in vectors of 4."""
    name = fresh_name(sketch.program, "f" + panel)
    sketch.play("stage_read", panel, sketch.place(sketch.path(step)), name)
    inner = scopes_of(sketch, name, 1)[0]
    if scope_of(sketch.program, sketch.path(inner)).size > LANES:
        cut(sketch, inner, LANES)
    return name
