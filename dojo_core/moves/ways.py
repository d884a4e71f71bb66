"""Ways around a refusal: lines of other moves after which a refused move is legal, each tried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, product

from dojo_core.moves.core import REGISTRY, Context, Move, Refusal, Way
from dojo_core.moves.legality import outcome
from dojo_core.moves.needs import needs
from dojo_core.moves.places import NoSuchPlace, Place, place_of, resolve
from dojo_core.moves.references import readdress, references
from dojo_core.moves.remedies import remedies
from dojo_core.program.codes import Code
from dojo_core.program.tree import Path, Program, Scope

PROPOSALS_TRIED, WAYS_TOLD = 10, 3  # of a refused move
FAULTS_MENDED = 16  # one after the other, by one way
LOOKED_AT = 800  # operations, each as often as it has scopes, of programs whose moves are tried
# Values in one cell that are needed at once: what was asked for is brought about by bringing uses together.
_BROUGHT_TOGETHER = (Code.CLOBBER, Code.LIFETIME)
LEAVE = ("clear_mark", "set_location", "materialise_dims")  # moves after which an operation is what it was


class _GivenUp(Exception):
    """So much was tried that whoever asked has waited long enough."""


class _Trial:
    """What moves make of programs, each asked once, and of so many operations in all."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Move], Program | Refusal] = {}
        self._programs: list[Program] = []  # whose ids are in use
        self._left = LOOKED_AT
        self.principle = ""  # why what was tried instead is refused for good

    def outcome(self, context: Context, move: Move) -> Program | Refusal:
        key = (id(context.program), move)
        if key not in self._known:
            if self._left <= 0:
                raise _GivenUp
            self._left -= sum(map(len, (leaf.path for leaf in context.program.leaves)))
            self._programs.append(context.program)
            self._known[key] = outcome(context, move)
        return self._known[key]

    def alone(self) -> None:
        """What follows may try as much again."""
        self._left = LOOKED_AT


def with_enablers(context: Context, move: Move, refusal: Refusal, longest: int = 3) -> Refusal:
    """The refusal with ways to make the move legal, or to play what comes to the same: the shortest, of
    ``longest`` moves before it at most, where none leads past several faults one by one. Where no way is
    found it says what would have to be different, if that is known (``Refusal.needs``)."""
    trial = _Trial()
    instead: tuple[Way, ...] = ()  # told where no line leads to what was asked for, or keeps the threads
    try:
        for length in range(1, longest + 1):
            found = _of_length(trial, context, move, refusal, length)
            ways = tuple(islice(found, WAYS_TOLD if length == 1 else 1))
            other = ways and not ways[0].then and (length > 1 or refusal.code in _BROUGHT_TOGETHER)
            unthreaded = refusal.code == Code.RACE and all(map(_marks_cleared, ways))
            if ways and (other or unthreaded):
                instead = ways
                break
            if ways:
                return replace(refusal, ways=tuple(sorted(ways, key=_marks_cleared)))
    except _GivenUp:
        pass
    fewest = min(map(_marks_cleared, instead), default=FAULTS_MENDED)
    lines = _lines(trial, context, move, refusal) if longest else iter(())
    longer = next((way for way in lines if _marks_cleared(way) <= fewest), None)
    if longer or instead:
        return replace(refusal, ways=(longer,) if longer else instead)
    return replace(refusal, needs=needs(context, move, refusal) or trial.principle)


def _lines(trial: _Trial, context: Context, move: Move, refusal: Refusal) -> Iterator[Way]:
    """Longer lines, past several faults, one by one: to the move, and where threads would share a cell to
    what gives each its own."""
    for goal in (move, *(_alternatives(context, move, refusal) if refusal.code == Code.RACE else ())):
        trial.alone()
        try:
            result = trial.outcome(context, goal)
            line = _one_fault_at_a_time(trial, context, goal, result) if isinstance(result, Refusal) else None
        except _GivenUp:
            line = None
        if line:
            yield _way(move, line) if goal is move else Way(tuple(map(str, line)), "")


def _of_length(trial: _Trial, context: Context, move: Move, refusal: Refusal, length: int) -> Iterator[Way]:
    """Ways in which so many moves come before it, or one fewer before another in its place."""
    for line, after, again in _prepared(trial, context, (move,), length):
        result = trial.outcome(after, again)
        if isinstance(result, Program):
            yield _way(move, (*line, again))
        elif not trial.principle and all(one.name in LEAVE for one in line):
            lacking = needs(after, again, result)
            done = f"After {', '.join(map(str, line))} it is refused still: {result.sentence}"
            trial.principle = f"{done} {lacking}" if lacking else ""
    for other in _alternatives(context, move, refusal):
        result = trial.outcome(context, other)
        if length == 1 and isinstance(result, Program):
            yield Way((str(other),), "")
        elif not trial.principle and isinstance(result, Refusal):
            lacking = needs(context, other, result)
            trial.principle = f"Nor is {other} legal: {result.sentence} {lacking}" if lacking else ""
        for line, after, again in _prepared(trial, context, (other,), length - 1) if length > 1 else ():
            if isinstance(trial.outcome(after, again), Program):
                yield Way(tuple(map(str, (*line, again))), "")


def _marks_cleared(way: Way) -> int:
    """How much of what was won before is given up."""
    return sum(move.startswith("clear_mark") for move in way.moves)


def _one_fault_at_a_time(
    trial: _Trial, context: Context, move: Move, refusal: Refusal
) -> tuple[Move, ...] | None:
    """The line of first moves that help, each of which leaves another fault, or the same one elsewhere, until
    none is left."""
    line: list[Move] = []
    seen: set[tuple[str, tuple[Path, ...]]] = set()
    while len(line) < FAULTS_MENDED:
        seen.add((refusal.sentence, refusal.nodes))
        for first, after, again in _one_or_two(trial, context, move):
            result = trial.outcome(after, again)
            if isinstance(result, Program):
                return (*line, *first, again)
            if (result.sentence, result.nodes) not in seen:
                line.extend(first)
                context, move, refusal = after, again, result
                break
        else:
            return None
    return None


def _one_or_two(
    trial: _Trial, context: Context, move: Move
) -> Iterator[tuple[tuple[Move, ...], Context, Move]]:
    for length in (1, 2):
        yield from _prepared(trial, context, (move,), length)


def _way(move: Move, moves: tuple[Move, ...]) -> Way:
    *firsts, then = map(str, moves)
    return Way(tuple(firsts), then, then != str(move))


def _prepared(
    trial: _Trial, context: Context, goals: tuple[Move, ...], length: int
) -> Iterator[tuple[tuple[Move, ...], Context, Move]]:
    """Lines of so many moves that are meant to make the last of some goals legal, what they lead to, and the
    goal under the name that it has then. Each goal is in the way of the next: a proposal that is refused
    itself is one more."""
    if len(goals) == 1 and not length:
        yield (), context, goals[0]
        return
    if length < len(goals) - 1:
        return
    first, *later = goals
    result = trial.outcome(context, first)
    if isinstance(result, Refusal):
        if length >= len(goals):
            for proposal in _proposals(context, first, result):
                if proposal not in goals:
                    yield from _prepared(trial, context, (proposal, *goals), length)
    elif later:
        after = replace(context, program=result, born=context.born + 1)
        for names in product(*(tuple(_carried(context, after, goal)) for goal in later)):
            for line, reached, goal in _prepared(trial, after, names, length - 1):
                yield (first, *line), reached, goal


def _proposals(context: Context, move: Move, refusal: Refusal) -> Iterator[Move]:
    """Moves that may help, each once: the transformation's own, then those against faults of this kind."""

    def own() -> Iterator[Move]:
        transformation = REGISTRY.get(move.name)
        if transformation is not None:
            yield from transformation.enablers(context, move.arguments, refusal)

    seen: set[Move] = set()
    for proposal in chain(_few(own()), _few(remedies(context, move, refusal))):
        if proposal not in seen:
            seen.add(proposal)
            yield proposal


def _alternatives(context: Context, move: Move, refusal: Refusal) -> Iterator[Move]:
    transformation = REGISTRY.get(move.name)
    if transformation is not None:
        yield from _few(transformation.alternatives(context, move.arguments, refusal))


def _few(moves: Iterable[Move]) -> Iterator[Move]:
    """The first of them, each once, as far as what they name is there."""
    try:
        seen: dict[Move, None] = {}
        for move in moves:
            if move not in seen:
                seen[move] = None
                yield move
            if len(seen) == PROPOSALS_TRIED:
                return
    except NoSuchPlace:
        return


def _carried(before: Context, after: Context, move: Move) -> Iterator[Move]:
    """The move under the names that its nodes have after another; of a split scope, at either half."""
    try:
        same = readdress(after, move, references(before, move, implied=False), before.program)
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
