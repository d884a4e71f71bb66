"""Ways around a refusal: lines of other moves after which a refused move is legal, each tried out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from dojo_core.moves.core import REGISTRY, Context, Move, Refusal, Way
from dojo_core.moves.legality import is_legal, outcome
from dojo_core.moves.places import NoSuchPlace, Place, place_of, resolve
from dojo_core.moves.references import readdress, references
from dojo_core.program.tree import Program, Scope

ENABLERS_TRIED, WAYS_TOLD = 8, 3  # of a refused move
FAULTS_MENDED = 16  # one after the other, by one way


def with_enablers(context: Context, move: Move, refusal: Refusal, longest: int = 3) -> Refusal:
    """The refusal with ways to make the move legal: the shortest, of ``longest`` moves at most."""
    for length in range(1, longest + 1):
        lines = list(islice(_ways(context, move, refusal, length), WAYS_TOLD if length == 1 else 1))
        if lines:
            return replace(refusal, ways=tuple(_way(move, moves) for moves in lines))
    line = _one_fault_at_a_time(context, move, refusal) if longest else None
    return refusal if line is None else replace(refusal, ways=(_way(move, line),))


def _one_fault_at_a_time(context: Context, move: Move, refusal: Refusal) -> tuple[Move, ...] | None:
    """The line of first moves that help, each of which leaves another buffer at fault, until none is."""
    line: list[Move] = []
    harmed: set[str] = set()
    while len(line) < FAULTS_MENDED:
        if refusal.fault is None or refusal.fault.buffer in harmed:
            return None
        harmed.add(refusal.fault.buffer)
        for first in _helping(context, move, refusal):
            after = _after(context, first)
            again = next(_carried(context, after, move), None) if first.name != move.name else None
            if again is None:
                continue
            result = outcome(after, again)
            if isinstance(result, Program):
                return (*line, first, again)
            if result.fault is not None and result.fault.buffer not in harmed:
                line.append(first)
                context, move, refusal = after, again, result
                break
        else:
            return None
    return None


def _way(move: Move, moves: tuple[Move, ...]) -> Way:
    *firsts, then = map(str, moves)
    return Way(tuple(firsts), then, then != str(move)) if firsts else Way((then,), "")


def _ways(context: Context, move: Move, refusal: Refusal, length: int) -> Iterator[tuple[Move, ...]]:
    """Lines of so many moves after which it is legal; it stands last, under the name that it has then. A move
    of its own kind that would do stands alone."""
    for first in _helping(context, move, refusal):
        if first.name == move.name:
            if length == 1:
                yield (first,)
            continue
        after = _after(context, first)
        for again in _carried(context, after, move):
            if length == 1:
                if is_legal(after, again):
                    yield first, again
                    break
            else:
                refused = outcome(after, again)
                if isinstance(refused, Refusal):
                    yield from ((first, *rest) for rest in _ways(after, again, refused, length - 1))


def _helping(context: Context, move: Move, refusal: Refusal) -> Iterator[Move]:
    """Legal moves that the transformation thinks of, each once."""
    seen: set[str] = set()
    transformation = REGISTRY.get(move.name)
    if transformation is None:
        return
    try:
        for candidate in transformation.enablers(context, move.arguments, refusal):
            if str(candidate) not in seen and is_legal(context, candidate):
                seen.add(str(candidate))
                yield candidate
            if len(seen) == ENABLERS_TRIED:
                return
    except NoSuchPlace:
        return


def _after(context: Context, first: Move) -> Context:
    after = outcome(context, first)
    assert isinstance(after, Program), first  # which is legal
    return replace(context, program=after, born=context.born + 1)


def _carried(before: Context, after: Context, move: Move) -> Iterator[Move]:
    """The move under the names that its nodes have after another; of a split scope, at either half."""
    try:
        same = readdress(after, move, references(before, move), before.program)
    except NoSuchPlace:
        return
    if same is not None:
        yield same
        return
    place = move.arguments[0]
    if not isinstance(place, Place):
        return
    path = resolve(before.program, place)
    for half in ((*path, 0), path):
        node = after.program.find(half)
        if isinstance(node, Scope) and node.provenance.move == before.born:
            yield Move(move.name, (place_of(after.program, half), *move.arguments[1:]))
