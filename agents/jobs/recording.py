"""What can be shown again: a run by its journal, and a game told as if it had been a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.jobs.journal import Entry, Journal
from agents.jobs.spec import JobSpec
from dojo_core.game import Game
from dojo_core.package_data import data_path
from dojo_core.service.learned import Learned

RECORDINGS = data_path("agents", "recordings")
BY_HAND = "by hand"


@dataclass(frozen=True)
class Recording:
    """A run that is over, and where it comes from. ``expert``: seconds of the heuristic pass's program;
    ``learned``: what a policy said of programs then, by their hashes."""

    name: str
    spec: JobSpec
    entries: tuple[Entry, ...]
    source: str = ""
    expert: float | None = None
    learned: Mapping[str, Learned] = field(default_factory=dict)


def told_by_move(entries: Sequence[Entry]) -> bool:
    """Are they a line, move by move? Its start is no move, while that of a run is its first program."""
    return bool(entries) and entries[0].evaluation == 0


def shipped() -> list[Recording]:
    """The recordings that come with the Dojo; what cannot be read is left out."""
    recordings = []
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        try:
            recordings.append(read(path))
        except (ValueError, OSError):
            continue
    return recordings


def read(path: Path) -> Recording:
    """A journal as a recording. Raises ValueError or OSError where the file is none."""
    journal = Journal(path)
    entries = tuple(journal.entries)
    return Recording(path.stem, journal.spec, entries, journal.message, journal.expert, journal.learned)


def of_game(
    game: Game, name: str, seconds: Mapping[str, float] | None = None, player: str = BY_HAND
) -> Recording:
    """The line through a game's cursor to its end, a step for each move.

    ``seconds``: known times by program hash; a step without one is told as not measured.
    """
    known = seconds or {}
    entries: list[Entry] = []
    moves: tuple[str, ...] = ()
    best: float | None = None
    best_hash = ""
    for number, position in enumerate(game.main_line()):
        if position.move is not None:
            moves = (*moves, str(position.move))
        time = known.get(position.program.hash)
        if time is not None and (best is None or time < best):
            best, best_hash = time, position.program.hash
        entries.append(
            Entry(
                number=number + 1,
                evaluation=number,
                elapsed=float(number),
                moves=moves,
                hash=position.program.hash,
                text=position.program.text,
                status="ok" if time is not None else "not measured",
                message="",
                seconds=time,
                best=best,
                best_hash=best_hash,
                final=False,
            )
        )
    cursor, game.cursor = game.cursor, 0
    spec = JobSpec.of(game, player, evaluations=max(1, len(entries)), saved=game.id)
    game.cursor = cursor
    return Recording(name, spec, tuple(entries))
