"""Our entries of a bench: the start program, a heuristic's line, the line by hand, the best record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import backend

log = logging.getLogger(__name__)
ENTRY_POINTS = "dojo.heuristics"  # of installed packages: functions that play a game on from its cursor


@dataclass(frozen=True)
class Entry:
    """One of ours: a name, the program, where it comes from."""

    name: str
    program: Program
    details: str = ""


def heuristics() -> dict[str, Callable[[Game], object]]:
    """Agents that measure nothing, by name: what packages register under ``dojo.heuristics``."""
    return {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}


def heuristic_games(game: Game) -> tuple[dict[str, Game], list[str]]:
    """What each heuristic plays from a game's start, by its name, and remarks on those that fail."""
    games, remarks = {}, []
    for name, play in heuristics().items():
        copy = Game.new(game.start, game.kernel, game.shape, game.target, game.policy, limits=game.limits)
        try:
            play(copy)
        except Exception as fault:  # an agent's fault is a remark, not the end of who asks
            log.exception("%s on %s", name, game.title)
            remarks.append(f"{name} failed: {fault}")
        else:
            games[name] = copy
    return games, remarks


def heuristic_entries(game: Game) -> tuple[list[Entry], list[str]]:
    """The ends of these games, and the remarks."""
    games, remarks = heuristic_games(game)
    made = [
        Entry(name, played.current.program, f"{len(played.line()) - 1} moves")
        for name, played in games.items()
    ]
    return made, remarks


def best_record(records: Records, game: Game) -> Entry | None:
    """The fastest verified program that the records know for this start on this machine."""
    origin = backend(game.target).clock().origin
    record = records.best(game.start.hash, origin.target, origin.fingerprint, game.policy) if origin else None
    if record is None:
        return None
    try:
        program = parse(record.program_text)
    except TextError:  # written by another version
        return None
    who = f" by {record.player}" if record.player else ""
    return Entry("record", program, f"the best record{who}")
