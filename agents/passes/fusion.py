"""Fusion: chains of nests become one nest, row by row, so that the next finds what one writes."""

from __future__ import annotations

from agents.passes.structure import below, body_at, depths_of, leaf_of, only, scope_of, traffic
from agents.passes.threads import BALANCED, balance, independent
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.program.tables import Indirect
from dojo_core.program.tree import Access, Leaf, Path, Program, Provenance, Scope
from dojo_core.recipes import Sketch


def align_orders(sketch: Sketch) -> None:
    """Give a nest the outermost scope of an earlier one that goes over the same data in shares, so that they
    can be joined: where a share for each thread fits the last-level cache and all the data does not."""
    if traffic(sketch.program) <= sketch.context.target.shared_cache_bytes:
        return
    for provenance in [node.provenance for node in sketch.program.body[1:] if isinstance(node, Scope)]:
        with sketch.attempt():
            _align(sketch, provenance)


def _align(sketch: Sketch, provenance: Provenance) -> None:
    """Bring a scope of one root nest to its outside. Raises where there is none, or a move is refused."""
    path = sketch.path(provenance)
    leaf = only(leaf for leaf in sketch.program.leaves if leaf.path[:1] == path)
    earlier = [other for other in sketch.program.leaves if other.path < path and other.scopes]
    depth = only(
        depth
        for access in leaf.op.reads
        for other in reversed(earlier)
        for depth in [_shared_scope(sketch, leaf, access, other)]
        if depth is not None
    )
    for around in reversed(range(depth)):
        sketch.play("interchange", sketch.place(leaf.path[: around + 1]))


def _shared_scope(sketch: Sketch, leaf: Leaf, access: Access, earlier: Leaf) -> int | None:
    """The depth, not 0, of the scope that goes over an array as the outermost one of an earlier leaf."""
    buffer, target = sketch.program.buffer_of[access.array], sketch.context.target
    size = earlier.scopes[0].size
    share = buffer.bytes // size * target.threads
    if buffer.bytes <= target.shared_cache_bytes or share > target.shared_cache_bytes // 2:
        return None
    if balance(size, target.threads) < BALANCED:
        return None
    for other in (earlier.op.target, *earlier.op.reads):
        if other.array != access.array:
            continue
        for mine, theirs in zip(access.index, other.index, strict=True):
            if isinstance(mine, Indirect) or isinstance(theirs, Indirect):
                continue
            alone = len(mine.terms) == 1 and theirs.terms == ((0, 1),) and mine.const == theirs.const
            if alone and mine.terms[0][1] == 1 and leaf.scopes[mine.depths[0]].size == size:
                return mine.depths[0] or None
    return None


def fuse_all(sketch: Sketch, path: Path = (), shared: bool = False) -> None:
    """Join scopes with later siblings of their size wherever that is legal, from the outside in.

    What stands between is moved out of the way. ``shared``: a scope around goes to threads already; else a
    join that would make a reduction of independent iterations is left, unless much data flows through it.
    """
    number = 0
    while number < len(body_at(sketch.program, path)):
        while _join_next(sketch, (*path, number), shared):
            pass
        number += 1
    provenances = [
        node.provenance for node in body_at(sketch.program, path) if isinstance(node, Scope) and not node.mark
    ]
    for provenance in provenances:
        inner = sketch.path(provenance)
        size = scope_of(sketch.program, inner).size
        spread = balance(size, sketch.context.target.threads) >= BALANCED and independent(sketch, inner)
        fuse_all(sketch, inner, shared or spread)


def _join_next(sketch: Sketch, path: Path, shared: bool) -> bool:
    """Join a scope with the nearest later sibling that it can be joined with, first of those that share an
    array with it: what has nothing in common with it but the size could stand in their way."""
    program = sketch.program
    first = program.node(path)
    if not isinstance(first, Scope) or first.mark:
        return False
    siblings = body_at(program, path[:-1])
    alike = [
        (*path[:-1], number)
        for number, other in enumerate(siblings)
        if number > path[-1] and isinstance(other, Scope) and other.size == first.size and not other.mark
    ]
    touched = _touched(program, path)
    for other in sorted(alike, key=lambda other: touched.isdisjoint(_touched(program, other))):
        count = len(sketch.moves)
        with sketch.attempt():
            _join(sketch, first.provenance, scope_of(program, other).provenance, shared)
        if len(sketch.moves) > count:
            return True
    return False


def _touched(program: Program, path: Path) -> set[str]:
    """The arrays that are read or written at or below a path."""
    return {access.array for leaf in below(program, path) for access in leaf.op.elements}


def _join(sketch: Sketch, first: Provenance, second: Provenance, shared: bool) -> None:
    """Bring two sibling scopes together and join them. Raises IllegalMove, or NoSuchPlace where unwise."""
    apart = independent(sketch, sketch.path(first))
    flow = _flow(sketch.program, sketch.path(first), sketch.path(second))
    bring_together(sketch, first, second)
    sketch.play("join_scopes", sketch.place(sketch.path(first)))
    lost = apart and not independent(sketch, sketch.path(first))
    if lost and not shared and flow <= sketch.context.target.cache_bytes:
        raise NoSuchPlace("The joined scope's iterations would depend on each other.")


def bring_together(sketch: Sketch, first: Provenance, second: Provenance) -> None:
    """Move what stands between two siblings out of the way. Raises IllegalMove."""
    while sketch.path(second)[-1] - sketch.path(first)[-1] > 1:
        start, end = sketch.path(first), sketch.path(second)
        between = (*start[:-1], start[-1] + 1)
        if not sketch.may("reorder", sketch.place(start)):  # else what stands between stays behind
            count = end[-1] - 1
            while count > start[-1]:
                sketch.play("reorder", sketch.place((*between[:-1], count)))
                count -= 1


def _flow(program: Program, first: Path, second: Path) -> int:
    """Bytes of the temporaries that one scope writes and the other reads."""
    written = {leaf.op.target.array for leaf in below(program, first)}
    read = {a.array for leaf in below(program, second) for a in leaf.op.reads}
    return sum(program.buffer_of[a].bytes for a in (written & read) - program.interface)


def use_reciprocals(sketch: Sketch) -> None:
    """Divide once for a row and multiply: where a divisor is the same all along an innermost scope."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.function == "/"]:
        leaf = leaf_of(sketch.program, provenance)
        divisor = leaf.op.operands[-1] if leaf is not None else None
        if leaf is None or not isinstance(divisor, Access):
            continue
        used = depths_of(divisor)
        depth = max(used, default=-1) + 1
        if depth < len(leaf.scopes):
            place = sketch.place(leaf.path)
            name = fresh_name(sketch.program, "r")
            sketch.may("use_reciprocal", type(place)(place.array, place.number, depth), name)
