"""How many times as fast one program is as another, and how sure that is.

A time taken on a machine that does other things as well may be too long by any factor. Two programs that ran
in turns suffer alike: the ratio of their times within a round holds where neither time does, and from several
rounds comes an interval that holds it. Where the interval leaves 1 open, so does what is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.confidence import FEW, FEW_LEVEL, few_ratios, median

Verdict = Literal["faster", "slower", "equal", "unsure", "undecided"]

ALIKE = 1.03  # to either side of 1: an interval within it says that the two are about equal
FIRST_ROUNDS = 5  # of the first look at a program: in quiet they tell most programs apart
ROUNDS = 7  # of each further look
LOOKS = 4  # at most, while the player stays; what is not decided then cannot be told there and then
# An interval is looked at after two rounds, where a slow program is given up, and after each look. Five times
# at 0.64% are wrong together in some 2 of 100 cases (S. J. Pocock, Biometrika 64(2), 1977: 1% at 0.28%,
# 5% at 1.58%); a board has a hundred moves.
LEVEL = FEW_LEVEL

# By which factor two times of one program may differ that were not taken in turns.
DRIFT_QUIET = 1.1  # the clock and the heat of a machine that does nothing else
DRIFT_BUSY = 4.0  # beside others, or where nobody knows: a start was seen to slide from 177 to 52 ms

SIGNS: dict[Verdict, str] = {"faster": "▲", "slower": "▼", "equal": "≈", "unsure": "?", "undecided": "?"}


@dataclass(frozen=True, slots=True)
class Speed:
    """The other program's time over this one's, and the interval that holds it.

    ``rounds`` in which the two took turns; 0: their times are of different moments. ``final``: no more rounds
    will follow.
    """

    value: float
    low: float
    high: float
    rounds: int = 0
    final: bool = False

    @property
    def verdict(self) -> Verdict:
        """``faster`` and ``slower`` only where the interval leaves out 1."""
        if self.low >= 1 / ALIKE and self.high <= ALIKE:
            return "equal"
        if self.low > 1:
            return "faster"
        if self.high < 1:
            return "slower"
        return "undecided" if self.final else "unsure"

    @property
    def inverse(self) -> Speed:
        """How fast the other program is against this one."""
        return Speed(1 / self.value, 1 / self.high, 1 / self.low, self.rounds, self.final)

    @property
    def decided(self) -> bool:
        return self.verdict in ("faster", "slower", "equal")

    def __str__(self) -> str:
        """``▲ 1.23×``, ``▼ 0.80×``, ``≈ about equal``, ``? not sure yet: 0.80 to 1.31×``."""
        verdict = self.verdict
        between = f"{_digits(self.low)} to {_digits(self.high)}×"
        words = {
            "equal": "about equal",
            "unsure": f"not sure yet: {between}",
            "undecided": f"cannot be told now: {between}",
        }
        return f"{SIGNS[verdict]} {words.get(verdict, f'{_digits(self.value)}×')}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if 0.1 <= value < 100 else f"{value:.2g}" if value < 0.1 else f"{value:.0f}"


def in_turns(ratios: Sequence[float], final: bool = False) -> Speed:
    """From the ratios within rounds. Raises ValueError of fewer than two."""
    return _in_turns(tuple(ratios), final)


@lru_cache(maxsize=4096)
def _in_turns(ratios: tuple[float, ...], final: bool) -> Speed:
    middle = few_ratios(ratios) if len(ratios) <= FEW else median(ratios, LEVEL)
    return Speed(middle.value, middle.low, middle.high, len(ratios), final)


def drift(one: Conditions, other: Conditions) -> float:
    """By which factor two times may differ that were taken under these conditions, at different moments."""
    return DRIFT_QUIET if one.quiet and other.quiet else DRIFT_BUSY


def apart(seconds: float, reference: float, factor: float, final: bool = False) -> Speed:
    """From two times of different moments: the other program's and one's own, each off by up to ``factor``
    against the other (``drift``)."""
    value = seconds / reference
    return Speed(value, value / factor, value * factor, 0, final)
