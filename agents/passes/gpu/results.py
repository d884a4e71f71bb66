"""Results: a thread for each result of a nest, or for 4 neighbours; what is summed, it sums by itself."""

from __future__ import annotations

from agents.passes.gpu.bands import band
from agents.passes.gpu.threads import (
    cut,
    divisor,
    lift,
    mark,
    own_arrays,
    separate,
    to_heap,
    to_thread,
    vector_or_unrolled,
)
from agents.passes.structure import scope_of, stride
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Op, Provenance
from dojo_core.recipes import Sketch

BLOCK = 256  # threads
FEWEST = 64  # threads of a block that are no waste


def map_results(sketch: Sketch, provenance: Provenance) -> None:
    """Map a nest whose outermost scopes are independent. Raises IllegalMove or NoSuchPlace."""
    scopes = band(sketch, provenance)
    if not scopes:
        raise NoSuchPlace("Its outermost iterations depend on each other.")
    last = scopes[-1]
    plain = all(isinstance(child, Op) for child in scope_of(sketch.program, sketch.path(last)).body)
    for name in own_arrays(sketch, sketch.path(provenance)[:1]):
        to_heap(sketch, name)
    if not plain:
        _sum_in_a_register(sketch, last)
    width = _width(sketch, last) if plain else 1
    inner: Provenance | None = None
    if width > 1:
        last, inner = cut(sketch, last, width)
    grid, threads = _block(sketch, [*scopes[:-1], last])
    inners = separate(sketch, inner, len(sketch.path(inner)) - 1) if inner is not None else []
    if width > 1:
        _split_dims(sketch, inners, width)
    for each in grid:
        mark(sketch, "map_grid", each)
    for each in threads:
        mark(sketch, "map_block", each)
    for each in inners:
        vector_or_unrolled(sketch, each)
    depth = len(grid) + len(threads)
    for name in own_arrays(sketch, sketch.path(grid[0])[:1]):
        _ = to_thread(sketch, name, depth)


def _width(sketch: Sketch, last: Provenance) -> int:
    """Neighbours of a thread: as many as all accesses have side by side."""
    program, path = sketch.program, sketch.path(last)
    size, depth = scope_of(program, path).size, len(path) - 1
    leaves = [leaf for leaf in program.leaves if leaf.path[: len(path)] == path]
    strides = {stride(program, a, depth) for leaf in leaves for a in (leaf.op.target, *leaf.op.reads)}
    guarded = any(c.form.uses(depth) for leaf in leaves for c in leaf.op.guard)
    if guarded or not strides <= {0, 1}:
        return 1
    return next((n for n in (4, 2) if size % n == 0), 1)


def _block(sketch: Sketch, scopes: list[Provenance]) -> tuple[list[Provenance], list[Provenance]]:
    """Cut a band in two: scopes of the grid, and around them inside those of a block's threads."""
    last, around = scopes[-1], scopes[:-1]
    size = scope_of(sketch.program, sketch.path(last)).size
    threads = divisor(size, BLOCK)
    more = 1
    if around and threads < BLOCK // 2:
        more = divisor(scope_of(sketch.program, sketch.path(around[-1])).size, BLOCK // threads)
    if threads * more < FEWEST and size > FEWEST // 2:
        path = sketch.path(last)
        threads, more = (BLOCK if size >= BLOCK else FEWEST), 1
        sketch.play("pad_scope", sketch.place(path), -(-size // threads) * threads, "guard")
        last = sketch.provenance(path)
        size = scope_of(sketch.program, path).size
    grid, block = list(around), []
    if more > 1:
        whole = scope_of(sketch.program, sketch.path(around[-1])).size
        grid.pop()
        if more < whole:
            outer, rows = cut(sketch, around[-1], more)
            grid.append(outer)
            block.append(rows)
        else:
            block.append(around[-1])
    if threads < size:
        outer, inner = cut(sketch, last, threads)
        if block:
            lift(sketch, outer, len(sketch.path(block[0])) - 1)
        grid.append(outer)
        block.append(inner)
    else:
        block.append(last)
    if not grid and len(block) > 1:
        grid.append(block.pop(0))
    elif not grid:  # the only block
        path = sketch.path(block[0])
        sketch.play("wrap", sketch.place(path), 1)
        grid.append(sketch.provenance(path))
    return grid, block


def _split_dims(sketch: Sketch, inners: list[Provenance], width: int) -> None:
    """Temporaries keep one vector for a thread: their last dimension is split by its width."""
    for provenance in inners:
        path = sketch.path(provenance)
        private = own_arrays(sketch, path[:1])
        leaf = next(leaf for leaf in sketch.program.leaves if leaf.path[:-1] == path)
        for access in (leaf.op.target, *leaf.op.reads):
            name = sketch.program.buffer_of[access.array].name
            form = access.index[-1] if access.index else None
            if (
                name in private
                and isinstance(form, Affine)
                and form.uses(len(path) - 1)
                and len(form.terms) > 1
            ):
                sketch.play("split_dim", name, len(access.index) - 1, width)


def _sum_in_a_register(sketch: Sketch, last: Provenance) -> None:
    """Results that are summed up go to memory once, at the end."""
    path = sketch.path(last)
    inside = [leaf for leaf in sketch.program.leaves if leaf.path[: len(path)] == path]
    summed = {leaf.op.target.array for leaf in inside if leaf.op.accumulate}
    for array in sorted(summed & set(sketch.program.outputs)):
        name = fresh_name(sketch.program, array + "s")
        if sketch.may("stage_write", array, sketch.place(sketch.path(last)), name):
            to_heap(sketch, name)
