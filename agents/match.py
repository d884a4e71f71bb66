"""A match told move by move: each player's best line with the time after every move, and all that it tried.

The positions of the lines are measured once the match is over, by no player's budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.agent import Event
from agents.comparison import Curve, positive
from agents.tuning import game_of
from dojo_core.game import Game
from dojo_core.measure.measurement import Measurement
from dojo_core.moves.notation import parse_move
from dojo_core.program.tree import Program
from dojo_core.service.view import difference

Measure = Callable[[Game, Sequence[Program], Sequence[str]], Sequence[Measurement]]
Run = tuple[str, str, int]  # a kernel, a player, a seed


@dataclass(frozen=True)
class Ply:
    """A move of a line: seconds after it (None: it was not timed), which lines of the program went (-) and
    came (+), and what the player said."""

    move: str
    seconds: float | None
    changes: tuple[tuple[str, str], ...]
    words: str = ""


@dataclass(frozen=True)
class Tried:
    """A program that a player measured, in the order of the run: its hash, the move that led to it (empty
    at the start), seconds or why there are none, what was said to it, and what else was said since the one
    before."""

    number: int
    program: str
    move: str
    seconds: float | None
    status: str
    words: str = ""
    aside: str = ""

    @staticmethod
    def of(events: Sequence[Event]) -> tuple[Tried, ...]:
        """The programs of a run."""
        return tuple(_tried(event) for event in events if not event.final)


def _tried(event: Event) -> Tried:
    own, others = [], []
    for thought in event.thoughts:
        if thought.words and thought.program == event.program.hash:
            own.append(thought.words)
        elif thought.words:
            others.append(f"{thought.decision}: {thought.words}")
    move = "" if event.move is None else str(event.move)
    measured = event.measurement
    return Tried(
        event.evaluation, event.program.hash, move, measured.seconds, measured.status.replace("_", " "),
        "\n".join(own), "\n".join(others),
    )  # fmt: skip


@dataclass(frozen=True)
class PlayedLine:
    """A player's best line on a kernel. ``start`` is the start program's text, ``seconds`` its time;
    ``tried`` what the run measured to find the line."""

    kernel: str
    agent: str
    seed: int
    start: str
    seconds: float | None
    plies: tuple[Ply, ...]
    tried: tuple[Tried, ...]

    @property
    def final(self) -> float | None:
        """The time after the last move, else that of the start."""
        return self.plies[-1].seconds if self.plies else self.seconds


def best_curves(curves: Sequence[Curve]) -> list[Curve]:
    """The fastest run of each player on each kernel."""
    best: dict[tuple[str, str], Curve] = {}
    for curve in curves:
        known = best.get((curve.kernel, curve.agent))
        if curve.final is not None and (known is None or known.final is None or curve.final < known.final):
            best[curve.kernel, curve.agent] = curve
    return list(best.values())


def match_of(
    curves: Sequence[Curve],
    games: Mapping[str, Game],
    runs: Mapping[Run, tuple[Tried, ...]],
    measure: Measure,
) -> list[PlayedLine]:
    """The best line of each player on each kernel, by the games that were begun (by ``Curve.kernel``)."""
    return [
        _line(curve, games[curve.kernel], runs[curve.kernel, curve.agent, curve.seed], measure)
        for curve in best_curves(curves)
    ]


def _line(curve: Curve, begun: Game, tried: tuple[Tried, ...], measure: Measure) -> PlayedLine:
    words = {each.program: each.words for each in tried}
    game = game_of(begun, [parse_move(move) for move in curve.line], curve.agent)
    programs = [position.program for position in game.line()]
    times = [measured.seconds for measured in measure(game, programs, curve.line)]
    plies = [
        Ply(
            move,
            times[number],
            tuple(difference(programs[number - 1].text, programs[number].text, context=False)),
            words.get(programs[number].hash, ""),
        )
        for number, move in enumerate(curve.line, 1)
    ]
    return PlayedLine(curve.kernel, curve.agent, curve.seed, programs[0].text, times[0], tuple(plies), tried)


def as_json(lines: Sequence[PlayedLine]) -> list[dict[str, Any]]:
    return [asdict(line) for line in lines]


def from_json(data: Sequence[Mapping[str, Any]]) -> list[PlayedLine]:
    """Raises ValueError, KeyError or TypeError where it is no match."""
    return [
        PlayedLine(
            str(line["kernel"]),
            str(line["agent"]),
            int(line["seed"]),
            str(line["start"]),
            positive(line["seconds"]),
            tuple(
                Ply(
                    str(ply["move"]),
                    positive(ply["seconds"]),
                    tuple((str(sign), str(text)) for sign, text in ply["changes"]),
                    str(ply["words"]),
                )
                for ply in line["plies"]
            ),
            tuple(
                Tried(
                    int(each["number"]),
                    str(each["program"]),
                    str(each["move"]),
                    positive(each["seconds"]),
                    str(each["status"]),
                    str(each["words"]),
                    str(each["aside"]),
                )
                for each in line["tried"]
            ),
        )
        for line in data
    ]
