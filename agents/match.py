"""A match told move by move: each player's best line on a kernel, with the time after every move.

The positions of the lines are measured once the match is over, by no player's budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.comparison import Curve, positive
from agents.tuning import game_of
from dojo_core.game import Game
from dojo_core.measure.measurement import Measurement
from dojo_core.moves.notation import parse_move
from dojo_core.program.tree import Program
from dojo_core.service.view import difference

Measure = Callable[[Game, Sequence[Program], Sequence[str]], Sequence[Measurement]]
Words = Mapping[tuple[str, str, int], Mapping[str, str]]  # by kernel, player and seed: of programs by hash


@dataclass(frozen=True)
class Ply:
    """A move of a line: seconds after it (None: it was not timed), which lines of the program went (-) and
    came (+), and what the player said."""

    move: str
    seconds: float | None
    changes: tuple[tuple[str, str], ...]
    words: str = ""


@dataclass(frozen=True)
class PlayedLine:
    """A player's best line on a kernel. ``start`` is the start program's text, ``seconds`` its time,
    ``programs`` how many the run measured to find the line."""

    kernel: str
    agent: str
    seed: int
    programs: int
    start: str
    seconds: float | None
    plies: tuple[Ply, ...]

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
    curves: Sequence[Curve], games: Mapping[str, Game], words: Words, measure: Measure
) -> list[PlayedLine]:
    """The best line of each player on each kernel, by the games that were begun (by ``Curve.kernel``)."""
    return [
        _line(curve, games[curve.kernel], words.get((curve.kernel, curve.agent, curve.seed), {}), measure)
        for curve in best_curves(curves)
    ]


def _line(curve: Curve, begun: Game, words: Mapping[str, str], measure: Measure) -> PlayedLine:
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
    return PlayedLine(
        curve.kernel, curve.agent, curve.seed, curve.programs, programs[0].text, times[0], tuple(plies)
    )


def as_json(lines: Sequence[PlayedLine]) -> list[dict[str, Any]]:
    return [asdict(line) for line in lines]


def from_json(data: Sequence[Mapping[str, Any]]) -> list[PlayedLine]:
    """Raises ValueError, KeyError or TypeError where it is no match."""
    return [
        PlayedLine(
            str(line["kernel"]),
            str(line["agent"]),
            int(line["seed"]),
            int(line["programs"]),
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
        )
        for line in data
    ]
