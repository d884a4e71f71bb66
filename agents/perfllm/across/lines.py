"""Lines edited, grafted onto each other, and minimised."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence

from agents.agent import Costs
from agents.search.neighbours import edit_of_moves
from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.moves.core import Argument, Move, Refusal
from dojo_core.moves.legality import all_candidates, outcome

NOTHING = 1.005  # a removal may cost so much over all: a cycle here and there is no reason for a move
GRAFTS = 0.4  # share of edits that take moves from another line
TRIES = 24  # places at which a move is tried that is not legal where it was


def edited(trail: Trail, others: Sequence[Trail], rng: random.Random) -> Trail | None:
    """A line with an edit, or with the last moves of another line behind its own; None where that makes no
    other program."""
    donors = [other for other in others if other.steps]
    if donors and rng.random() < GRAFTS:
        return grafted(trail, rng.choice(donors), rng)
    return edit_of_moves(trail, rng)


def grafted(trail: Trail, donor: Trail, rng: random.Random) -> Trail | None:
    """The last moves of another line behind the first of this one, at places where they are legal."""
    begin = rng.randrange(len(donor.steps))
    before = trail if rng.random() < 0.5 else trail.upto(rng.randint(0, len(trail.steps)))
    after = mended(before, donor.steps[begin:], rng)
    return after if after.program.hash != trail.program.hash else None


def mended(trail: Trail, steps: Sequence[Step], rng: random.Random) -> Trail:
    """The line with steps of another one more; one that is not legal is played at another place where a move
    of its kind with its numbers is, or left out."""
    for step in steps:
        trail = trail.extended(step) or _elsewhere(trail, step.move, rng) or trail
    return trail


def _elsewhere(trail: Trail, move: Move, rng: random.Random) -> Trail | None:
    context = trail.context()
    alike = [m for m in all_candidates(context, (move.name,)) if _numbers(m) == _numbers(move)]
    rng.shuffle(alike)
    for other in alike[:TRIES]:
        if not isinstance(outcome(context, other), Refusal):
            return trail.extended(Step(other, trail.born))
    return None


def _numbers(move: Move) -> list[Argument]:
    return [argument for argument in move.arguments if isinstance(argument, int)]


def minimised(trail: Trail, cost: float, rng: random.Random) -> Generator[list[Trail], Costs, Trail]:
    """The line without the moves whose removal costs nothing: what is left is what made the program fast.

    Moves that named what a dropped one made are mended or go with it. Proposes lines and hears what they
    cost, as a strategy does; ``cost`` is the line's own.
    """
    most = NOTHING * cost
    at = len(trail.steps)
    while at > 0:
        at -= 1
        before, rest = trail.upto(at), trail.steps[at + 1 :]
        tried = {trail.program.hash}
        for shorter in (before.replayed(rest), mended(before, rest, rng)):
            if len(shorter.steps) >= len(trail.steps) or shorter.program.hash in tried:
                continue
            tried.add(shorter.program.hash)
            [took] = yield [shorter]
            if took <= most:
                trail, at = shorter, len(shorter.steps)
                break
    return trail
