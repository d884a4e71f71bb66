"""What a move of a game was worth, judged by what was reachable afterwards.

A move that slows the program down may be the one that the win was built on, and the fastest alternative of
the moment may lead nowhere. So a move is held against the best that was known to be reachable without it: the
position that it left, what else was measured there, and what was played there instead, to the end of each
variation. After it counts what was measured and played below it in the same way. Only where that is slower
was something lost, and it is lost at the last move before which it could still be had.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dojo_core.game import Entry, Game, Position
from dojo_core.program.tree import Program
from dojo_core.service.queue import Outcome

Kind = Literal["gain", "investment", "idle", "noise", "loss", "unknown"]

NOISE = (
    0.1  # two times that were not taken in turns differ by so much on a quiet machine: its clock, its heat
)
WIDEST = 0.5  # a spread above this says that a time is bad, not that everything is alike
BUSY = 1.0  # a time taken beside other processes may be twice as long as it need be
REPLAYS_SECONDS = 20.0  # for asking whether later moves needed an earlier one


@dataclass(frozen=True)
class Neighbour:
    """A legal move that was measured at a position and not played there."""

    move: str
    outcome: Outcome


@dataclass(frozen=True)
class Reached:
    """The shortest time in a part of the game: at ``position``, or one ``move`` from it where one is named.

    ``first``: the move played instead that it lies behind, where it is in another variation.
    """

    outcome: Outcome
    position: int
    move: str = ""
    first: str = ""

    @property
    def seconds(self) -> float:
        return self.outcome.seconds


@dataclass(frozen=True)
class Verdict:
    """A move of the line, after ``position``: ``kind`` of move it was, and ``words`` that say why.

    ``without`` is the best that was reachable without it, ``after`` the best that was after it. ``busy``: a
    time that this rests on was taken on a busy machine.
    """

    ply: int
    position: int
    played: str
    kind: Kind
    words: str
    without: Reached | None = None
    after: Reached | None = None
    busy: bool = False

    @property
    def lost(self) -> float:
        """How many times as fast as the best after the move the best without it was."""
        return self.after.seconds / self.without.seconds if self.after and self.without else 1.0


def spread(outcome: Outcome) -> float:
    """How far the median lies above the shortest time, as a part of it."""
    return min(WIDEST, max(0.0, outcome.median / outcome.seconds - 1)) if outcome.seconds > 0 else WIDEST


def faster(one: Outcome, other: Outcome) -> bool:
    """Is ``one`` faster by more than what two such times may differ by?

    Others' load only adds to a time: it makes the longer one doubtful, not the shorter one.
    """
    busy = BUSY if other.conditions.busy else 0.0
    return one.seconds * (1 + NOISE + spread(one) + spread(other) + busy) < other.seconds


class Judge:
    """Of a game whose times are given: by position, and those of what was measured and not played there."""

    def __init__(
        self, game: Game, times: Mapping[int, Outcome], neighbours: Mapping[int, Sequence[Neighbour]]
    ) -> None:
        self._game = game
        self._times = {number: outcome for number, outcome in times.items() if outcome.ok}
        self._neighbours = neighbours
        self._best: dict[int, Reached | None] = {}  # of each position and all below it
        self._played: dict[int, Reached | None] = {}  # the same of positions alone
        self._replays_until: float | None = None
        for number in self._upwards():
            children = game.positions[number].children
            itself = self._own(number)
            below = [self._best[child] for child in children]
            self._best[number] = shortest([itself, *below, *self._measured(number)])
            self._played[number] = shortest([itself, *(self._played[child] for child in children)])

    def _upwards(self) -> list[int]:
        """All positions, those below a position before it."""
        order = [0]
        for number in order:
            order.extend(self._game.positions[number].children)
        return order[::-1]

    def _own(self, number: int) -> Reached | None:
        outcome = self._times.get(number)
        return None if outcome is None else Reached(outcome, number)

    def _measured(self, number: int) -> list[Reached | None]:
        return [
            Reached(each.outcome, number, each.move)
            for each in self._neighbours.get(number, ())
            if each.outcome.ok
        ]

    def _without(self, at: Position, after: Position) -> Reached | None:
        """The best that was reachable at a position without the move played there."""
        others = [
            replace(best, first=str(child.move)) if best is not None else None
            for child in self._game.children(at.id)
            if child.id != after.id
            for best in [self._best[child.id]]
        ]
        return shortest([self._own(at.id), *self._measured(at.id), *others])

    def best(self) -> Reached | None:
        """The shortest time in the game."""
        return self._best[0]

    def verdict(self, at: Position, after: Position) -> Verdict:
        """Of the move that led from one position to the next."""
        without, reached = self._without(at, after), self._best[after.id]
        before, outcome = self._times.get(at.id), self._times.get(after.id)
        ply, played = len(self._game.line(at.id)), str(after.move)

        def judged(kind: Kind, words: str, *more: Outcome) -> Verdict:
            used = [each.outcome for each in (without, reached) if each is not None] + list(more)
            busy = any(each.conditions.busy for each in used)
            return Verdict(ply, at.id, played, kind, words, without, reached, busy)

        if without is None or reached is None:
            return judged("unknown", "Neither it nor what stood beside it has been measured.")
        if faster(without.outcome, reached.outcome):
            return judged("loss", self._loss(at, without, reached))
        if before is not None and outcome is not None and faster(outcome, before):
            return judged("gain", f"{ratio(before.seconds / outcome.seconds)} as fast.", before, outcome)
        end = shortest([self._played[child] for child in after.children])
        if end is not None and faster(end.outcome, without.outcome):
            kind, words = self._built_on(at, after, end, without)
            return judged(kind, f"{effect(before, outcome)} {words}", *filter(None, (before, outcome)))
        if before is None or outcome is None:
            return judged("unknown", "Its own time is not known. Nothing was lost by it.")
        if faster(before, outcome):
            words = (
                f"{effect(before, outcome)} Nothing was lost by it: as much could still be had afterwards."
            )
            return judged("idle", words, before, outcome)
        return judged("noise", "The two times differ by no more than times do.", before, outcome)

    def _loss(self, at: Position, without: Reached, reached: Reached) -> str:
        lost = ratio(reached.seconds / without.seconds)
        if without.first:
            other = f"The variation with {without.first}"
            return f"{other} became {lost} as fast as anything after this."
        if without.move:
            return f"Another move here was {lost} as fast as anything that was reached after this."
        return (
            f"The position before it was {lost} as fast as anything that was reached after it. "
            "Take it back, and try another move here."
        )

    def _built_on(self, at: Position, after: Position, end: Reached, without: Reached) -> tuple[Kind, str]:
        """Did what ended faster need the move? It is tried: the later moves are replayed without it."""
        won = f"ended {ratio(without.seconds / end.seconds)} as fast as anything reachable without it"
        if self._replays_until is None:
            self._replays_until = time.monotonic() + REPLAYS_SECONDS
        if time.monotonic() > self._replays_until:
            return "investment", f"What followed {won}."
        stopped, program = without_move(self._game, after.id, end.position)
        if stopped is not None:
            number, entry = stopped
            later = "the next move" if number == 1 else f"{number} moves later"
            return "investment", f"{entry.move}, {later}, needed it; the line {won}."
        assert program is not None
        if program.hash == self._game.positions[end.position].program.hash:
            return "idle", "What followed leads to the same program without it: a move to leave out."
        known = [n for n, p in self._game.positions.items() if p.program.hash == program.hash]
        outcome = next((self._times[n] for n in known if n in self._times), None)
        if outcome is not None and faster(end.outcome, outcome):
            slower = ratio(outcome.seconds / end.seconds)
            return "investment", f"The line also plays without it, but is {slower} as fast with it; it {won}."
        return "idle", "The moves that followed apply without it as well: they were not built on it."


def without_move(game: Game, move: int, end: int) -> tuple[tuple[int, Entry] | None, Program | None]:
    """Replay the line from a move to a later position without that move.

    The first later move that does not apply then, with how many moves later it was played; or, where all do,
    the program that they lead to.
    """
    line = game.line(end)
    ids = [position.id for position in line]
    positions = {
        p.id: replace(p, children=ids[n + 1 : n + 2]) for n, p in enumerate(line)
    }  # this line alone: a game's moves are limited
    copy = replace(game, positions=positions, cursor=end)
    at = ids.index(move)
    report = copy.replay(ids[at - 1], copy.steps(line[at + 1 :]), longest_way=0)
    for number, entry in enumerate(report.entries, 1):
        if not entry.applies:
            return (number, entry), None
    return None, copy.current.program


def shortest(candidates: Sequence[Reached | None]) -> Reached | None:
    """The least of some times; of equal ones the first."""
    return min((each for each in candidates if each is not None), key=lambda each: each.seconds, default=None)


def effect(before: Outcome | None, after: Outcome | None) -> str:
    """What the move itself did to the time."""
    if before is None or after is None:
        return "Its own time is not known."
    if faster(before, after):
        longer = after.seconds / before.seconds
        return f"{longer - 1:.0%} slower here." if longer < 2 else f"{ratio(longer)} as long here."
    return "About equal here."


def ratio(value: float) -> str:
    """1.57×, as players read it."""
    return f"{value:.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"
