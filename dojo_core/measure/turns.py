"""Candidates timed in turns with the program that they are held against.

A round runs each of them once, the other one first in one round and last in the next, so that a machine that
slows down meanwhile favours neither. What the rounds come to is in speed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dojo_core.measure.records import Sample
from dojo_core.measure.speed import ROUNDS, in_turns

GROUP = 8  # candidates in a round: between two runs of the other program lie no more
GIVEN_UP = 2  # rounds after which a candidate that is surely slower gets no more
LEAST = 3  # rounds of a candidate whose runs are long
SECONDS = 0.05  # of a candidate's runs in one look, if it had as many rounds
SAMPLE_NS = 200_000.0  # a shorter run is repeated within a sample


@dataclass
class Turns:
    """One program's runs, and, of a candidate, the other program's time over its own in each round."""

    samples: list[Sample] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Does it take part in the next round?"""
        count = len(self.ratios)
        if count >= LEAST and sum(s.nanoseconds for s in self.samples) > SECONDS * 1e9:
            return False
        return count != GIVEN_UP or in_turns(self.ratios).verdict != "slower"


def take_turns(
    run: Callable[[Sequence[int]], Sequence[Sample] | None],
    candidates: int,
    rounds: int = ROUNDS,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[Turns]:
    """Rounds of program 0, which the others are held against, and of the candidates 1, 2, …; all their turns.

    ``run`` times the programs of these numbers once each, in the order given; None ends the rounds.
    """
    taken = [Turns() for _ in range(1 + candidates)]
    going = list(range(1, 1 + candidates))
    for number in range(rounds if going else 0):
        order = [0, *going] if number % 2 == 0 else [*reversed(going), 0]
        samples = None if cancelled() else run(order)
        if samples is None:
            break
        timed = dict(zip(order, samples, strict=True))
        for each, sample in timed.items():
            taken[each].samples.append(sample)
        for each in going:
            taken[each].ratios.append(timed[0].nanoseconds / timed[each].nanoseconds)
        going = [each for each in going if taken[each].open]
        if not going:
            break
    return taken
