"""Results of players as a file: who made which kernel how fast on which machine, by which moves.

A time in it is a claim, and the moves are its evidence: ``check`` plays them again through the legality
checks, and verifies and times the program here, in turns with the start (docs/leaderboard.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any

from agents.comparison import Curve
from agents.match import best_curves
from dojo_core import kernels
from dojo_core.actions.timing import workload_of
from dojo_core.bounded_json import LARGEST, NotJson, read_object
from dojo_core.faults import program_fault
from dojo_core.files import replace_text, trouble_text
from dojo_core.game import MAX_MOVES, Game, GameFull
from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.measurement import Effort, seconds_text
from dojo_core.measure.speed import DRIFT_QUIET, Speed
from dojo_core.moves import IllegalMove, MoveSyntax, NoSuchPlace
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import UnknownTarget
from dojo_core.targets.registry import target as target_named

VERSION = 1
MOST_ENTRIES = 10_000
_LENGTHS = {
    "player": 500, "kernel": 80, "shape": 200, "target": 80, "policy": 40, "start": 65_536, "program": 80,
    "machine": 80, "processor": 200, "day": 10,
}  # fmt: skip
_MAY_BE_LEFT_OUT: dict[str, Any] = {"processor": "", "day": "", "tokens": None, "cost": None}


class NoLeaderboard(ValueError):
    """A file is no leaderboard; ``str()`` is a sentence that says where it is wrong."""


@dataclass(frozen=True)
class Entry:
    """A result. ``kernel`` and ``shape`` name the start program, or are empty where it is a text of one's
    own; ``start`` is its text, ``program`` the hash of the text at the end of ``moves``.

    ``seconds`` and ``start_seconds`` were measured on ``machine`` (a fingerprint; ``processor`` says it to
    people); ``programs`` were measured to get there, and a language model read and wrote ``tokens`` at this
    ``cost``.
    """

    player: str
    kernel: str
    shape: str
    target: str
    policy: str
    start: str
    moves: tuple[str, ...]
    program: str
    seconds: float
    start_seconds: float | None
    programs: int
    seed: int
    machine: str
    processor: str = ""
    day: str = ""
    tokens: int | None = None
    cost: float | None = None

    @property
    def title(self) -> str:
        return f"{self.kernel or 'own text'} {self.shape}".strip()

    @property
    def claimed(self) -> float | None:
        """How many times as fast as the start it is said to be."""
        return self.start_seconds / self.seconds if self.start_seconds else None

    @property
    def board(self) -> tuple[str, ...]:
        """What it is ranked within: one start program, target, policy and machine."""
        return (self.title, self.start, self.target, self.policy, self.machine)


def entries_of(
    curves: Sequence[Curve], games: dict[str, Game], machine: str, processor: str, day: date
) -> list[Entry]:
    """The best run of each player on each kernel. ``games``: as they were begun, by ``Curve.kernel``."""
    made = []
    for curve in best_curves(curves):
        begun = games[curve.kernel]
        assert curve.final is not None
        made.append(
            Entry(
                curve.agent, begun.kernel or "", begun.shape, begun.target, begun.policy, begun.start.text,
                curve.line, _end(begun, curve.line).hash, curve.final, curve.start, curve.programs,
                curve.seed, machine, processor, day.isoformat(), curve.tokens, curve.cost,
            )
        )  # fmt: skip
    return made


def _end(begun: Game, moves: Sequence[str]) -> Program:
    game = Game.new(begun.start, begun.kernel, begun.shape, begun.target, begun.policy)
    for move in moves:
        game.play(move)
    return game.current.program


def ranked(entries: Sequence[Entry]) -> list[Entry]:
    """Board by board, the fastest first."""
    return sorted(entries, key=lambda entry: (entry.board, entry.seconds))


def merged(old: Sequence[Entry], new: Sequence[Entry]) -> list[Entry]:
    """The best of each player on each board."""
    best: dict[tuple[str, ...], Entry] = {}
    for entry in (*old, *new):
        key = (*entry.board, entry.player)
        if key not in best or entry.seconds < best[key].seconds:
            best[key] = entry
    return ranked(list(best.values()))


def write(path: Path, entries: Sequence[Entry]) -> None:
    document = {"dojo leaderboard": VERSION, "entries": [asdict(entry) for entry in entries]}
    replace_text(path, json.dumps(document, indent=1) + "\n")


def read(path: Path) -> list[Entry]:
    """Raises NoLeaderboard."""
    try:
        with path.open("rb") as file:
            data = read_object(file.read(LARGEST + 1))
    except NotJson as wrong:
        raise NoLeaderboard(f"{path} is no leaderboard: {wrong}.") from None
    except OSError as error:
        raise NoLeaderboard(trouble_text(error)) from None
    entries = data.get("entries")
    if data.get("dojo leaderboard") != VERSION or not isinstance(entries, list):
        raise NoLeaderboard(
            f'{path} is no leaderboard: it has no "dojo leaderboard": {VERSION} with "entries" beside it.'
        )
    if len(entries) > MOST_ENTRIES:
        raise NoLeaderboard(f"{path} has {len(entries):,} entries, of {MOST_ENTRIES:,} at most.")
    made = []
    for number, each in enumerate(entries, 1):
        try:
            made.append(_entry(each))
        except (KeyError, TypeError, ValueError) as wrong:
            why = f"{wrong.args[0]} is missing" if isinstance(wrong, KeyError) else str(wrong)
            raise NoLeaderboard(f"Entry {number} of {path} is none: {why}.") from None
    return made


def _entry(data: Any) -> Entry:
    """Raises KeyError with what is missing, and ValueError with what is wrong."""
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    names = [each.name for each in fields(Entry)]
    if unknown := sorted(data.keys() - names):
        raise ValueError(f"{unknown[0][:40]!r} means nothing")
    given: dict[str, Any] = {**_MAY_BE_LEFT_OUT, **data}
    for name, most in _LENGTHS.items():
        _check_text(name, given[name], most)
    moves = given["moves"]
    if not isinstance(moves, list) or len(moves) > MAX_MOVES or not all(isinstance(m, str) for m in moves):
        raise ValueError(f"moves is no list of at most {MAX_MOVES} texts")
    for name in ("programs", "seed", "tokens"):
        _check_count(name, given[name], name == "tokens")
    for name, least in (("seconds", 1e-10), ("start_seconds", 1e-10), ("cost", 0.0)):
        _check_number(name, given[name], least, name != "seconds")
    if given["day"] and not _is_day(given["day"]):
        raise ValueError("day is no date as 2026-01-31")
    return Entry(**{**given, "moves": tuple(moves)})


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _check_text(name: str, value: Any, most: int) -> None:
    if not isinstance(value, str) or len(value) > most:
        raise ValueError(f"{name} is no text of at most {most} characters")
    if name != "start" and not value.isprintable():
        raise ValueError(f"{name} has signs that do not print")


def _check_count(name: str, value: Any, may_be_none: bool) -> None:
    if value is None and may_be_none:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{name} is no whole number")


def _check_number(name: str, value: Any, least: float, may_be_none: bool) -> None:
    if value is None and may_be_none:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < math.inf:
        raise ValueError(f"{name} is nothing that can be measured")


@dataclass(frozen=True)
class Checked:
    """What became of an entry here. ``holds``: it plays, its results are right, and it is as fast against
    the start as it says, a tenth aside, or says nothing of that; ``why`` is the sentence where it does
    not."""

    entry: Entry
    holds: bool
    why: str = ""
    seconds: float | None = None
    speed: Speed | None = field(default=None)


def check(entry: Entry, measurer: TargetMeasurer) -> Checked:
    """Play an entry again, verify and time it in turns with the start, by a measurer of its target."""
    try:
        game = _begun(entry)
        for number, move in enumerate(entry.moves, 1):
            try:
                game.play(move)
            except (IllegalMove, MoveSyntax, NoSuchPlace) as refused:
                return Checked(entry, False, f"Move {number} does not apply. {refused}")
    except (_Otherwise, GameFull, TextError, UnknownTarget, ValueError) as wrong:
        return Checked(entry, False, str(wrong))
    end = game.current.program
    if end.hash != entry.program:
        return Checked(entry, False, "Its moves lead to another program than the one that it names.")
    work = workload_of(game)
    [start] = measurer.measure(work, [game.start], Effort.NORMAL)
    if start.seconds is None:
        return Checked(entry, False, f"The start cannot be measured here. {start.message}".strip())
    if end.hash == game.start.hash:
        return _judged(entry, start.seconds, Speed(1.0, 1.0, 1.0))
    [timed] = measurer.measure(work, [end], Effort.NORMAL, fresh=True, against=game.start)
    speed = timed.speed(start)
    if timed.seconds is None or speed is None or not timed.verified:
        return Checked(entry, False, f"It does not run right here ({timed.status}). {timed.message}".strip())
    return _judged(entry, timed.seconds, speed)


def _judged(entry: Entry, seconds: float, speed: Speed) -> Checked:
    claimed = entry.claimed
    if claimed is None or claimed <= speed.high * DRIFT_QUIET:
        return Checked(entry, True, "", seconds, speed)
    why = (
        f"It claims to be {claimed:.3g} times as fast as the start, and is {speed.value:.3g} times as fast "
        f"here ({speed.low:.3g} to {speed.high:.3g}): {seconds_text(seconds)}."
    )
    return Checked(entry, False, why, seconds, speed)


class _Otherwise(Exception):
    """An entry cannot be begun here; ``str()`` is a sentence."""


def _begun(entry: Entry) -> Game:
    start = parse(entry.start)
    if entry.kernel:
        if entry.kernel not in kernels.names():
            raise _Otherwise(kernels.unknown(entry.kernel))
        kernel = kernels.get(entry.kernel)
        ours = target_named(entry.target).start(kernel.program(kernel.shape(entry.shape)))
        if ours.hash != start.hash:
            raise _Otherwise(f"It begins at another program than {entry.title} does here.")
    elif fault := program_fault(start, on=None, source=entry.start):
        raise _Otherwise(str(fault))
    return Game.new(start, entry.kernel or None, entry.shape, entry.target, entry.policy)
