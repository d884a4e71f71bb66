"""Threads: the outermost scopes whose iterations are independent and divide well among the cores."""

from __future__ import annotations

import math

from agents.passes.structure import (
    below,
    depths_of,
    instances,
    leaf_of,
    only,
    scope_of,
    traffic,
    unmarked_at,
)
from dojo_core.moves.core import Move, Refusal
from dojo_core.moves.legality import outcome
from dojo_core.moves.places import Place, fresh_name
from dojo_core.moves.storage import temporaries
from dojo_core.program.tree import Buffer, Path, Program, Scope
from dojo_core.recipes import Sketch

WORTH = 4096  # operations that make up for waking threads once
AGAIN = 4 * WORTH  # and in each iteration of a loop around: microseconds of copies, which take longest
ROOM = 64 * WORTH  # in one iteration of a scope that does not divide well
BRIEF = 256 * WORTH  # a hundred microseconds: for less, parts of the scope around are worth their memory
PARTS = 4  # for a thread, so that others take on what a slow one leaves
BALANCED = 0.9  # share of the threads' time that is work, with equal iterations


def balance(size: int, threads: int) -> float:
    """The share of time in which threads work that take equal iterations in turn."""
    return size / (threads * -(-size // threads))


def independent(sketch: Sketch, path: Path) -> bool:
    """May the scope's iterations go to threads?"""
    return not isinstance(outcome(sketch.context, Move("parallelize", (sketch.place(path),))), Refusal)


def spread_sums(sketch: Sketch) -> None:
    """Cut long sums into parts that threads can add up by themselves: of everything, as nothing else is there
    for threads to share."""
    for provenance in [node.provenance for node in sketch.program.body if isinstance(node, Scope)]:
        with sketch.attempt():
            _spread(sketch, sketch.path(provenance))


def _spread(sketch: Sketch, path: Path) -> None:
    program, threads = sketch.program, sketch.context.target.threads
    size = scope_of(program, path).size
    parts = next((n for n in (64, 32, 16, 8, 4, 2) if size % n == 0 and n % threads == 0), 0)
    sums = [leaf.op for leaf in below(program, path) if leaf.op.accumulate and not depths_of(leaf.op.target)]
    if threads == 1 or not parts or not sums or _marked(program, path):
        return
    if instances(program, path) < parts * WORTH or independent(sketch, path):
        return
    for nest in _feeding(program, path):  # these too, so that all of them fuse
        sketch.play("split_scope", sketch.place(nest), size // parts)
    for op in sums:
        leaf = leaf_of(sketch.program, op.provenance)
        if leaf is not None:
            place = sketch.place(leaf.path)
            name = fresh_name(sketch.program, "t" + leaf.op.target.array[:20])
            sketch.play("split_reduction", Place(place.array, place.number, 0), name)


def _feeding(program: Program, path: Path) -> list[Path]:
    """A nest at the root, and those as long without marks before it that compute what it reads, in steps.
    None of these where what they compute is read by others besides, which could not join them then."""
    size, nests = scope_of(program, path).size, [path]
    read = {a.array for leaf in below(program, path) for a in leaf.op.reads}
    for number in reversed(range(path[0])):
        leaves, node = below(program, (number,)), program.body[number]
        as_long = isinstance(node, Scope) and node.size == size and not _marked(program, (number,))
        if as_long and any(leaf.op.target.array in read for leaf in leaves):
            nests.append((number,))
            read |= {a.array for leaf in leaves for a in leaf.op.reads}
    roots = {nest[0] for nest in nests}
    written = {leaf.op.target.array for leaf in program.leaves if leaf.path[0] in roots - {path[0]}}
    others = [leaf for leaf in program.leaves if leaf.path[0] not in roots]
    if written & {access.array for leaf in others for access in leaf.op.reads}:
        return [path]
    return nests


def _marked(program: Program, path: Path) -> bool:
    return any(scope.mark for leaf in below(program, path) for scope in leaf.scopes)


def share_work(sketch: Sketch) -> None:
    """Parallelise the best scope of each nest."""
    for number in range(len(sketch.program.body)):
        share(sketch, (number,))


def share(sketch: Sketch, path: Path, times: int = 1, parts: bool = True) -> None:
    """Parallelise the best scope of one nest, which runs so often, where there is enough to do each time; may
    be ``parts`` of one, with arrays of their own."""
    program, threads = sketch.program, sketch.context.target.threads
    if not unmarked_at(program, path) or instances(program, path) < (WORTH if times == 1 else AGAIN):
        return
    scope = scope_of(program, path)
    deeper = any(_has_room(program, (*path, n)) for n in range(len(scope.body)))
    alone = scope.size == 1  # a thread for it would have no others beside
    if not alone and independent(sketch, path) and (balance(scope.size, threads) >= BALANCED or not deeper):
        sketch.may("parallelize", sketch.place(path))
        return
    before = len(sketch.moves)
    if parts and _shares_briefly(sketch, path, times):
        with sketch.attempt():
            _share_parts(sketch, path)
    if len(sketch.moves) == before:
        _share_inside(sketch, path, times, parts)
    if len(sketch.moves) == before and not alone and independent(sketch, path):
        sketch.may("parallelize", sketch.place(path))


def _share_inside(sketch: Sketch, path: Path, times: int, parts: bool) -> None:
    scope = scope_of(sketch.program, path)
    for number in range(len(scope.body)):
        share(sketch, (*path, number), times * scope.size, parts)


def _has_room(program: Program, path: Path) -> bool:
    """Is there enough to do in one iteration around that threads could share it?"""
    node = program.node(path)
    return isinstance(node, Scope) and not node.mark and instances(program, path) >= ROOM


def _shares_briefly(sketch: Sketch, path: Path, times: int) -> bool:
    """Do iterations meet in arrays that they reuse, and is there little to share at a time in one of them?

    Each time they wait for the slowest, which on a shared host may be one that does not run.
    """
    program = sketch.program
    if sketch.context.target.threads == 1 or not _reused(program, path):
        return False
    trial = Sketch(sketch.context, most=sketch.most)
    _share_inside(trial, path, times, parts=False)
    begun = {
        leaf.path[: depth + 1]: math.prod(scope.size for scope in leaf.scopes[len(path) - 1 : depth])
        for leaf in below(trial.program, path)
        for depth, scope in enumerate(leaf.scopes)
        if scope.mark == "p"
    }
    work = {region: instances(trial.program, region) for region in begun}
    shared = sum(begun[region] * work[region] for region in begun)
    return any(each < BRIEF for each in work.values()) or shared < BALANCED * instances(program, path)


def _reused(program: Program, path: Path) -> list[tuple[Buffer, int]]:
    """Arrays on the heap that are used in one scope alone and whose cells its iterations share, each with the
    dimension that goes along it."""
    depth = len(path) - 1
    found = []
    for buffer in temporaries(program):
        using = [
            (leaf, access)
            for leaf in program.leaves
            for access in (leaf.op.target, *leaf.op.reads)
            if access.array in buffer.arrays
        ]
        within = all(leaf.path[: len(path)] == path for leaf, _ in using)
        along = [
            k
            for k, dim in enumerate(buffer.dims)
            if not dim.materialised and all(access.index[k].uses(depth) for _, access in using)
        ]
        if buffer.location == "heap" and within and along:
            found.append((buffer, along[0]))
    return found


def _share_parts(sketch: Sketch, path: Path) -> None:
    """Parallelise parts of a scope, each with arrays of its own for what its iterations reuse: some for each
    thread where the last cache holds them, else as few as there may be.

    Raises NoSuchPlace where these would take more memory than all that goes in and out.
    """
    program, target = sketch.program, sketch.context.target
    size, reused = scope_of(program, path).size, _reused(program, path)
    each = sum(buffer.bytes for buffer, _ in reused)
    balanced = [
        parts
        for parts in range(2, size + 1)
        if size % parts == 0
        and balance(parts, target.threads) >= BALANCED
        and parts * each <= max(target.shared_cache_bytes, traffic(program))
    ]
    near = [p for p in balanced if p <= PARTS * target.threads and p * each <= target.shared_cache_bytes]
    parts = only([*reversed(near), *balanced])
    if parts < size:
        sketch.play("split_scope", sketch.place(path), size // parts)
    for buffer, dim in reused:
        length = buffer.dims[dim].size // parts
        if length > 1:
            sketch.play("split_dim", buffer.name, dim, length)
        sketch.play("materialise_dims", buffer.name, dim)
    sketch.play("parallelize", sketch.place(path))
