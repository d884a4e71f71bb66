"""What each learner has done, in one SQLite database beside the records: it survives the process.

A learner is a browser, known by a cookie; several processes may share the file.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from dojo_core.measure.database import Database
from dojo_core.measure.places import data_directory
from dojo_core.school.ratings import Attempt

_SCHEMA = """
CREATE TABLE IF NOT EXISTS done (
    learner TEXT NOT NULL, lesson TEXT NOT NULL, step TEXT NOT NULL,
    helped INTEGER NOT NULL, time REAL NOT NULL,
    PRIMARY KEY (learner, lesson, step)
);
CREATE TABLE IF NOT EXISTS games (
    learner TEXT NOT NULL, lesson TEXT NOT NULL, step TEXT NOT NULL, game TEXT NOT NULL,
    PRIMARY KEY (learner, lesson, step)
);
CREATE TABLE IF NOT EXISTS places (
    learner TEXT PRIMARY KEY, lesson TEXT NOT NULL, step TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    learner TEXT NOT NULL, puzzle TEXT NOT NULL, solved INTEGER, time REAL NOT NULL,
    PRIMARY KEY (learner, puzzle)
);
"""


class Progress(Database):
    """Safe to share between threads. Close it when done. A damaged one is mended, as records are."""

    what = "records of progress"

    def __init__(self, path: Path | None = None, mends: bool = True) -> None:
        super().__init__(path if path is not None else data_directory() / "school.sqlite", mends)

    def _make(self, connection: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)

    def _tables(self) -> dict[str, tuple[str, ...]]:
        return {
            "done": ("learner", "lesson", "step", "helped", "time"),
            "games": ("learner", "lesson", "step", "game"),
            "places": ("learner", "lesson", "step"),
            "attempts": ("learner", "puzzle", "solved", "time"),
        }

    def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        return self._ask(query, values)

    def done(self, learner: str) -> dict[tuple[str, str], bool]:
        """(lesson, step) of all that a learner has done; True where the solution was looked at."""
        rows = self._rows("SELECT lesson, step, helped FROM done WHERE learner = ?", learner)
        return {(lesson, step): bool(helped) for lesson, step, helped in rows}

    def finish(self, learner: str, lesson: str, step: str, helped: bool = False) -> None:
        """A step is done. How it was done the first time counts, ``helped`` by the solution or not."""
        self._rows(
            "INSERT INTO done VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            learner, lesson, step, int(helped), time.time(),
        )  # fmt: skip

    def game(self, learner: str, lesson: str, step: str) -> str | None:
        """The saved game of a step."""
        rows = self._rows(
            "SELECT game FROM games WHERE learner = ? AND lesson = ? AND step = ?", learner, lesson, step
        )
        return rows[0][0] if rows else None

    def keep_game(self, learner: str, lesson: str, step: str, game: str) -> None:
        self._rows("INSERT OR REPLACE INTO games VALUES (?, ?, ?, ?)", learner, lesson, step, game)

    def place(self, learner: str) -> tuple[str, str] | None:
        """(lesson, step) where a learner was last."""
        rows = self._rows("SELECT lesson, step FROM places WHERE learner = ?", learner)
        return (rows[0][0], rows[0][1]) if rows else None

    def keep_place(self, learner: str, lesson: str, step: str) -> None:
        self._rows("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", learner, lesson, step)

    def attempt(self, learner: str, puzzle: str, solved: bool | None) -> None:
        """A puzzle was tried; the first time counts. ``solved`` None: with a hint, which is not rated."""
        value = None if solved is None else int(solved)
        self._rows(
            "INSERT INTO attempts VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            learner,
            puzzle,
            value,
            time.time(),
        )

    def attempts(self) -> list[Attempt]:
        """Those that are rated, of all learners, in their order."""
        rows = self._rows(
            "SELECT learner, puzzle, solved FROM attempts WHERE solved IS NOT NULL ORDER BY time, rowid"
        )
        return [Attempt(learner, puzzle, bool(solved)) for learner, puzzle, solved in rows]

    def tried(self, learner: str) -> dict[str, bool | None]:
        """The puzzles that a learner has tried, and what came of it."""
        rows = self._rows("SELECT puzzle, solved FROM attempts WHERE learner = ?", learner)
        return {puzzle: None if solved is None else bool(solved) for puzzle, solved in rows}
