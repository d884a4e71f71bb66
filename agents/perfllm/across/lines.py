"""Lines edited, grafted onto each other, and minimised."""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Mapping, Sequence

from agents.agent import Costs
from agents.search.neighbours import edit_of_moves
from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.moves.core import REGISTRY, Argument, Move, Refusal
from dojo_core.moves.legality import all_candidates, outcome
from dojo_core.moves.notation import parse_move
from dojo_core.moves.places import Place
from dojo_core.moves.ways import with_enablers

NOTHING = 1.005  # a removal may cost so much over all: a cycle here and there is no reason for a move
GRAFTS = 0.6  # share of edits that take moves from another line
WHOLE = 0.4  # share of grafts that take a line to its end, not some moves of it
FORCED = 0.4  # share of the other edits that play a move together with what it needs to be legal
FINISHED = 0.6  # share of edits that are finished as another line was
MOST_MOVES = 40  # of a line: what repeats another's moves wherever it can has no end by itself
BLOCKS = (8, 2, 1)  # moves that are left out together, to minimise a line: two may undo each other
PLACES = 6  # at which a move of another line is tried behind an edit
TRIES = 8  # places at which a move is tried that is not legal where it was
NEEDY = 2  # places at which it is tried behind what it needs, where it is legal at none
NAMED = 3.0  # logits of a place for a move of another line: it names what the line's moves before it named,
SIMILAR = 1.5  # and has the same number or depth
WORDS = ("location", "instruction", "algorithm", "mode")  # kinds of arguments that are the same anywhere

Moves = Sequence[Move]


def edited(trail: Trail, donors: Sequence[Moves], rng: random.Random) -> Trail | None:
    """A line with an edit or two: moves of another line, of this kernel or any other, or one of its own
    changed; None where that makes no other program."""
    changed = trail
    for _ in range(rng.choice((1, 1, 2))):
        if donors and rng.random() < GRAFTS:
            changed = grafted(changed, rng.choice(donors), rng)
        elif rng.random() < FORCED:
            changed = forced(changed, rng) or changed
        else:
            changed = edit_of_moves(changed, rng) or changed
    if donors and rng.random() < FINISHED:
        changed = finished(changed, rng.choice(donors), rng)
    return changed if changed.program.hash != trail.program.hash else None


def forced(trail: Trail, rng: random.Random) -> Trail | None:
    """A move more within the line, each kind equally likely, with what it needs; None where that is not to
    be had."""
    at = len(trail.steps) if rng.random() < 0.5 else rng.randint(0, len(trail.steps))
    before = trail.upto(at)
    context = before.context()
    kinds = sorted(REGISTRY)
    rng.shuffle(kinds)
    candidates = next((c for kind in kinds if (c := list(all_candidates(context, (kind,))))), None)
    after = None if candidates is None else made_legal(before, rng.choice(candidates), rng, trail.born)
    return None if after is None else after.replayed(trail.steps[at:])


def made_legal(trail: Trail, move: Move, rng: random.Random, born: int = 0) -> Trail | None:
    """The line with a move more, where it is refused behind the moves that the rules tell to make it legal
    (``dojo_core.moves.ways``); None where they tell of none.

    Such moves may change no time at all, as the three unrolled scopes that an array in registers needs: found
    one by one they would take as many lucky draws. Nothing here says whether the move is worth it. What is
    new gets numbers from ``born`` on, so that they differ from those of what later moves of the line make.
    """
    context = trail.context()
    result = outcome(context, move)
    moves = [move]
    if isinstance(result, Refusal):
        ways = with_enablers(context, move, result).ways
        if not ways:
            return None
        way = rng.choice(ways)
        moves = list(map(parse_move, (*way.moves, way.then) if way.then else way.moves))
    elif result.hash == trail.program.hash:
        return None
    after = trail
    for each in moves:
        after = after.extended(Step(each, max(born, after.born))) or after
    return after if len(after.steps) == len(trail.steps) + len(moves) else None


def finished(trail: Trail, donor: Moves, rng: random.Random) -> Trail:
    """The line with what some last moves of another line do, done wherever it is possible: a structure shows
    what it is worth once everything is played that has to follow it."""
    for move in donor[rng.randrange(len(donor)) :]:
        context = trail.context()
        alike = [m for m in all_candidates(context, (move.name,)) if _words(m) == _words(move)]
        rng.shuffle(alike)
        for other in alike[:PLACES]:
            if len(trail.steps) >= MOST_MOVES:
                return trail
            trail = made_legal(trail, other, rng) or trail
    return trail


def grafted(trail: Trail, donor: Moves, rng: random.Random) -> Trail:
    """Some successive moves of another line within this one, at places where they are legal; what stays
    legal of the rest is kept."""
    begin = rng.randrange(len(donor)) if rng.random() < 0.6 else 0
    end = len(donor) if rng.random() < WHOLE else rng.randint(begin + 1, len(donor))
    at = len(trail.steps) if rng.random() < 0.5 else rng.randint(0, len(trail.steps))
    after = transplanted(trail.upto(at), donor[begin:end], rng, trail.born)
    return after.replayed(trail.steps[at:]) if rng.random() < 0.7 else after


def transplanted(trail: Trail, moves: Moves, rng: random.Random, born: int = 0) -> Trail:
    """Moves of another line behind this one, each at a place that is like its own, drawn anew where that is
    not legal, or left out. What arrays are called here is settled by the first move that names them."""
    names: dict[str, str] = {}
    for move in moves:
        if len(trail.steps) < MOST_MOVES:
            trail = _alike(trail, move, names, rng, NEEDY, born) or trail
    return trail


def mended(trail: Trail, steps: Sequence[Step], rng: random.Random) -> Trail:
    """The line with steps of another one more; one that is not legal is played at a place like its own where
    a move of its kind is, or left out."""
    names: dict[str, str] = {}
    for step in steps:
        trail = trail.extended(step) or _alike(trail, step.move, names, rng) or trail
    return trail


def _alike(
    trail: Trail, move: Move, names: dict[str, str], rng: random.Random, needy: int = 0, born: int = 0
) -> Trail | None:
    """The line with a move more that is like another one; ``names``: what its arrays are called here, to
    which this move's are added. Where none is legal, so many are tried behind what they need."""
    context = trail.context()
    alike = [other for other in all_candidates(context, (move.name,)) if _words(other) == _words(move)]
    logits = {other: _likeness(move, other, names) for other in alike}
    noisy = {other: logit - math.log(-math.log(rng.random() or 0.5)) for other, logit in logits.items()}
    likely = sorted(noisy, key=noisy.__getitem__, reverse=True)[:TRIES]
    for other in likely:
        result = outcome(context, other)
        if not isinstance(result, Refusal) and result.hash != trail.program.hash:
            _note(names, move, other)
            return trail.extended(Step(other, max(born, trail.born)))
    for other in likely[:needy]:
        if after := made_legal(trail, other, rng, born):
            _note(names, move, other)
            return after
    return None


def _note(names: dict[str, str], move: Move, other: Move) -> None:
    """What the arrays of a move are called here, where it is played as ``other``."""
    for theirs, here in zip(move.arguments, other.arguments, strict=False):
        if isinstance(theirs, Place | str) and isinstance(here, Place | str):
            names.setdefault(_name(theirs), _name(here))


def _likeness(move: Move, other: Move, names: Mapping[str, str]) -> float:
    logit = 0.0
    for theirs, here in zip(move.arguments, other.arguments, strict=False):
        if isinstance(theirs, Place) and isinstance(here, Place):
            logit += SIMILAR * ((theirs.number == here.number) + (theirs.depth == here.depth))
        if isinstance(theirs, int):
            logit += SIMILAR * (theirs == here)
        elif isinstance(here, Place | str):
            logit += NAMED * (names.get(_name(theirs), _name(theirs)) == _name(here))
    return logit


def _words(move: Move) -> list[Argument]:
    """The arguments that say what is done, not where."""
    parameters = REGISTRY[move.name].parameters
    return [a for p, a in zip(parameters, move.arguments, strict=False) if p.kind in WORDS]


def _name(argument: Place | str) -> str:
    return argument.array if isinstance(argument, Place) else argument


def minimised(
    trail: Trail, cost: float, rng: random.Random, margin: float = NOTHING
) -> Generator[list[Trail], Costs, Trail]:
    """The line without the moves whose removal costs nothing: what is left is what made the program fast.

    Moves that named what a dropped one made are mended or go with it. Proposes lines and hears what they
    cost, as a strategy does; ``cost`` is the line's own, and ``margin`` how many times it still counts as it.
    """
    most = margin * cost
    for block in BLOCKS:
        at = len(trail.steps)
        while at >= block:
            before, rest = trail.upto(at - block), trail.steps[at:]
            at -= max(1, block // 2)
            tried = set[str]()
            for shorter in (before.replayed(rest), mended(before, rest, rng)):
                if len(shorter.steps) >= len(trail.steps) or shorter.program.hash in tried:
                    continue
                tried.add(shorter.program.hash)
                same = shorter.program.hash == trail.program.hash
                [took] = [cost] if same else (yield [shorter])
                if took <= most:
                    trail, at = shorter, len(shorter.steps)
                    break
    return trail
