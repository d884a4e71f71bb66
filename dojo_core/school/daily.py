"""The puzzle of the day, of those that come with the Dojo: the same for everybody who has the same version.

Their order hangs on their names alone, and each day takes the next one, so that none comes again before all
have come. No file is read further than to its headings.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache

from dojo_core.package_data import data_path
from dojo_core.school.prose import slug

PUZZLES_FOLDER = data_path("dojo_core", "puzzles")  # of one move, mined from games and runs


@dataclass(frozen=True)
class Daily:
    """A step of a file of puzzles, by the names that the page Learn opens it by."""

    lesson: str
    step: str
    title: str


def daily(day: date | None = None) -> Daily | None:
    """The puzzle of a day (default: today's, as UTC has it); None where none come along."""
    every = _shipped()
    day = day or datetime.now(UTC).date()
    return every[day.toordinal() % len(every)] if every else None


@cache
def _shipped() -> tuple[Daily, ...]:
    titles = [
        (path.stem, line[3:].strip())
        for path in sorted(PUZZLES_FOLDER.glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    every = [Daily(file, slug(title), title) for file, title in titles]
    return tuple(
        sorted(every, key=lambda each: hashlib.sha256(f"{each.lesson}/{each.step}".encode()).digest())
    )
