"""Threads: the outermost scopes whose iterations are independent and divide well among the cores."""

from __future__ import annotations

from agents.passes.structure import below, depths_of, instances, leaf_of, scope_of, unmarked_at
from dojo_core.moves.core import Move, Refusal
from dojo_core.moves.legality import outcome
from dojo_core.moves.places import Place, fresh_name
from dojo_core.program.tree import Path, Program, Scope
from dojo_core.recipes import Sketch

WORTH = 4096  # operations that make up for waking threads
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


def share(sketch: Sketch, path: Path) -> None:
    """Parallelise the best scope of one nest, where there is enough to do."""
    program, threads = sketch.program, sketch.context.target.threads
    if not unmarked_at(program, path) or instances(program, path) < WORTH:
        return
    scope = scope_of(program, path)
    deeper = any(_has_room(program, (*path, n)) for n in range(len(scope.body)))
    alone = scope.size == 1  # a thread for it would have no others beside
    if not alone and independent(sketch, path) and (balance(scope.size, threads) >= BALANCED or not deeper):
        sketch.may("parallelize", sketch.place(path))
        return
    before = len(sketch.moves)
    for number in range(len(scope.body)):
        share(sketch, (*path, number))
    if len(sketch.moves) == before and not alone and independent(sketch, path):
        sketch.may("parallelize", sketch.place(path))


def _has_room(program: Program, path: Path) -> bool:
    """Is there enough to do in one iteration around that threads could share it?"""
    node = program.node(path)
    return isinstance(node, Scope) and not node.mark and instances(program, path) >= 64 * WORTH
