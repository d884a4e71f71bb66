"""Products: ``c[i,j] += a[i,k]*b[k,j]`` in tiles, a block of 8 x 8 threads for 64 x 64 results.

Panels of 16 steps of k go through shared memory, ``a`` transposed and padded against bank conflicts; each
thread keeps 8 x 8 sums in registers. Where the policy lets factors be rounded, tensor cores have the tiles.
Source: the recorded line of matmul in dojo_core/lines/gpu.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.passes.gpu.patches import tile_patch
from agents.passes.gpu.products import Product, find_product, into_blocks, spread
from agents.passes.gpu.staging import join_with_start, loops_of, scopes_of
from agents.passes.gpu.tensor_tiles import tile_on_tensor_cores
from agents.passes.gpu.threads import cut, lift, mark, to_thread, vector_or_unrolled
from agents.passes.structure import scope_of
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

TILE, STEP, THREADS, LANES = 64, 16, 8, 4
TILES = 528  # some four for each processor of a large device


def tile_products(sketch: Sketch) -> None:
    """Tile every product that tiles divide, and every other that has two operands to reuse."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        count = len(sketch.moves)
        if sketch.context.policy == "tf32":
            with sketch.attempt():
                tile_on_tensor_cores(sketch, provenance)
        if len(sketch.moves) == count:
            with sketch.attempt():
                spread(sketch, provenance, _find(sketch, provenance), TILE**2, STEP, TILES)
                _tile(sketch, provenance)
        if len(sketch.moves) == count:
            with sketch.attempt():
                tile_patch(sketch, provenance)


def _find(sketch: Sketch, operation: Provenance) -> Product:
    return find_product(sketch, operation, TILE, TILE, STEP)


@dataclass(frozen=True)
class _Share:
    """How the threads of a block share a nest, by provenance: their scopes, and what each does by itself."""

    threads: tuple[Provenance, ...]
    per_thread: tuple[Provenance, ...]
    lanes: Provenance


def _tile(sketch: Sketch, operation: Provenance) -> None:
    join_with_start(sketch, operation, _find(sketch, operation).columns)
    contraction = _find(sketch, operation)
    blocks = into_blocks(sketch, operation, contraction, (TILE, TILE, STEP))
    top, sums, terms, step = blocks.top, blocks.sums, blocks.terms, blocks.step
    # A thread has 8 rows of twice 4 columns; steps of the sum go around what it does by itself.
    shares = [_share(sketch, each) for each in blocks.parts]
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
