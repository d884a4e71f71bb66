"""Ratings of puzzles and of those who try them, on the scale of Elo's: 400 points are odds of ten to one.

What ships is fitted to how many tries programs need: of one that needs n, each try is right with a chance of
1/n, and a logistic model (Rasch, 1960; Bradley and Terry, 1952) gives programs and puzzles the ratings under
which these chances are likeliest, beside the normal distribution that ratings begin with. From there on each
attempt of a person changes the person's and the puzzle's rating by Glicko's formulas (M. E. Glickman, Applied
Statistics 48(3), 1999), without the growth of deviations over time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.program.expressions import TextError

FILE = "ratings.json"  # in a folder of puzzles
VERSION = 1
LARGEST = 4 << 20  # bytes of a file
SWEEPS = 60  # of the fit; its steps are far below a point by then

_Q = math.log(10) / 400


@dataclass(frozen=True)
class Rating:
    """A rating and its standard deviation, in points."""

    value: float = 1500.0
    deviation: float = 350.0

    @property
    def settled(self) -> bool:
        """Is it known well enough to be told without a question mark? As lichess has it."""
        return self.deviation <= 110


UNKNOWN = Rating()


@dataclass(frozen=True)
class Attempt:
    """A first attempt: whose, at which puzzle, and was it solved?"""

    learner: str
    puzzle: str
    solved: bool


@dataclass(frozen=True)
class Ratings:
    """What is known of puzzles, by key, and of programs, by name. ``tries``: of each puzzle, how many moves a
    program tries on average until one is right."""

    puzzles: Mapping[str, Rating] = field(default_factory=dict)
    agents: Mapping[str, Rating] = field(default_factory=dict)
    tries: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def chance(one: Rating, other: Rating) -> float:
    """With which the first solves the second, the deviation of the second taken into account."""
    return 1 / (1 + 10 ** (-_flattened(other) * (one.value - other.value) / 400))


def _flattened(other: Rating) -> float:
    """By how much an uncertain opponent tells less: g(RD)."""
    return 1 / math.sqrt(1 + 3 * (_Q * other.deviation / math.pi) ** 2)


def updated(one: Rating, other: Rating, score: float) -> Rating:
    """A rating after one game: ``score`` 1 was won, 0 lost."""
    expected, g = chance(one, other), _flattened(other)
    information = (_Q * g) ** 2 * expected * (1 - expected)
    precision = 1 / one.deviation**2 + information
    return Rating(one.value + _Q / precision * g * (score - expected), math.sqrt(1 / precision))


def replayed(
    attempts: Iterable[Attempt], known: Mapping[str, Rating]
) -> tuple[dict[str, Rating], dict[str, Rating]]:
    """(learners, puzzles) after attempts in their order; ``known`` are the puzzles' ratings before."""
    learners: dict[str, Rating] = {}
    puzzles = dict(known)
    for each in attempts:
        person, puzzle = learners.get(each.learner, UNKNOWN), puzzles.get(each.puzzle, UNKNOWN)
        learners[each.learner] = updated(person, puzzle, float(each.solved))
        puzzles[each.puzzle] = updated(puzzle, person, float(not each.solved))
    return learners, puzzles


def fitted(tries: Mapping[str, Mapping[str, float]]) -> Ratings:
    """The likeliest ratings for the tries that programs need, by puzzle and program: Newton's steps, one
    rating after the other."""
    agents = sorted({name for each in tries.values() for name in each})
    at = {("puzzle", key): UNKNOWN.value for key in tries} | {("agent", a): UNKNOWN.value for a in agents}
    scores = [
        (("agent", agent), ("puzzle", key), 1 / count)
        for key, each in tries.items()
        for agent, count in each.items()
    ]
    games: dict[tuple[str, str], list[tuple[tuple[str, str], float]]] = {name: [] for name in at}
    for agent, puzzle, score in scores:
        games[agent].append((puzzle, score))
        games[puzzle].append((agent, 1 - score))
    prior = 1 / UNKNOWN.deviation**2
    precision: dict[tuple[str, str], float] = {}
    for _ in range(SWEEPS):
        for name, played in games.items():
            slope, information = (UNKNOWN.value - at[name]) * prior, prior
            for other, score in played:
                expected = 1 / (1 + 10 ** ((at[other] - at[name]) / 400))
                slope += _Q * (score - expected)
                information += _Q**2 * expected * (1 - expected)
            at[name] += max(-200.0, min(200.0, slope / information))
            precision[name] = information

    def told(kind: str, name: str) -> Rating:
        rating = at[kind, name]
        return Rating(round(rating, 1), round(math.sqrt(1 / precision[kind, name]), 1))

    return Ratings(
        {key: told("puzzle", key) for key in tries},
        {agent: told("agent", agent) for agent in agents},
        {key: {agent: round(count, 2) for agent, count in each.items()} for key, each in tries.items()},
    )


# ---------------------------------------------------------------------------- as a file


def write_ratings(ratings: Ratings) -> str:
    """The text of a file."""
    content = {
        "dojo ratings": VERSION,
        "agents": {name: asdict(each) for name, each in ratings.agents.items()},
        "puzzles": {
            key: {**asdict(each), "tries": dict(ratings.tries.get(key, {}))}
            for key, each in ratings.puzzles.items()
        },
    }
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def read_ratings(text: str) -> Ratings:
    """The ratings of a file's text. Raises TextError."""
    try:
        content = read_object(text, LARGEST)
        if content.get("dojo ratings") != VERSION:
            raise ValueError('it does not begin with "dojo ratings": 1')
        puzzles = {str(key): _rating(each) for key, each in content["puzzles"].items()}
        agents = {str(name): _rating(each) for name, each in content["agents"].items()}
        tries = {
            str(key): {str(agent): _number(count) for agent, count in each["tries"].items()}
            for key, each in content["puzzles"].items()
        }
    except (NotJson, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise TextError(f"these are no ratings ({fault})", "Make them anew: dojo puzzles rate") from fault
    return Ratings(puzzles, agents, tries)


def ratings_in(folder: Path) -> Ratings:
    """Those of a folder of puzzles; none where it has no file of them. Raises TextError."""
    file = folder / FILE
    return read_ratings(file.read_text(encoding="utf-8")) if file.exists() else Ratings()


def _rating(content: Mapping[str, Any]) -> Rating:
    value, deviation = _number(content["value"]), _number(content["deviation"])
    if not (-5000 < value < 9000 and 0 < deviation <= UNKNOWN.deviation):
        raise ValueError(f"{value:g} ± {deviation:g} is no rating")
    return Rating(value, deviation)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is no number")
    return float(value)
