"""The last few copies of a database, checked, in the folder ``backups`` beside it: made by SQLite's own
means.

One is made when the records are opened and the newest is older than a day, by the first process that comes,
and not while anything is measured. Old ones go.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dojo_core.measure.exclusive import compiling

log = logging.getLogger(__name__)

FOLDER = "backups"
EVERY = 86_400.0  # seconds
KEPT = 5
KEPT_BYTES = 4 << 30  # of all together; the newest is kept in any case
SECONDS = 20.0  # that copying and checking may take
_PAGES = 2_000  # copied at once: others write in between


@dataclass(frozen=True)
class Backup:
    """One copy. ``time``: when it was made, seconds since the epoch."""

    path: Path
    time: float
    bytes: int

    @property
    def when(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.time))


class TooSlow(Exception):
    """Copying or checking takes longer than it may."""


def of(database: Path) -> list[Backup]:
    """The back-ups of a database, oldest first."""
    backups = []
    for path in (database.parent / FOLDER).glob(f"{database.stem}-*{database.suffix}"):
        with suppress(OSError):
            status = path.stat()
            backups.append(Backup(path, status.st_mtime, status.st_size))
    return sorted(backups, key=lambda backup: (backup.time, backup.path.name))


def due(database: Path) -> bool:
    """Is the newest back-up older than a day?"""
    existing = of(database)
    return not existing or not 0 <= time.time() - existing[-1].time < EVERY


def make(database: Path, seconds: float = SECONDS) -> Backup | None:
    """A checked copy of a database, now; None where something is being measured, where there is no space for
    it, where it would take too long, or where it cannot be written. Raises sqlite3.DatabaseError for a
    damaged one."""
    folder = database.parent / FOLDER
    path = folder / f"{database.stem}-{time.strftime('%Y%m%d-%H%M%S')}{database.suffix}"
    part = path.with_suffix(".part")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with _alone(folder) as first, compiling(cancelled=lambda: True) as idle:
            if not (first and idle):
                return None
            if shutil.disk_usage(folder).free < 2 * database.stat().st_size:
                log.warning("no space for a back-up of %s", database)
                return None
            _copy(database, part, time.monotonic() + seconds)
            os.replace(part, path)
    except TooSlow:
        log.warning("a back-up of %s takes longer than %g s: none is made", database, seconds)
        return None
    except OSError:
        log.exception("no back-up of %s", database)
        return None
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(f"{part}{end}")
    _prune(database)
    return of(database)[-1]


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Does no other process make a back-up just now?"""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _copy(database: Path, into: Path, end: float) -> None:
    def in_time(*_: int) -> None:
        if time.monotonic() > end:
            raise TooSlow

    with closing(sqlite3.connect(database, timeout=5.0)) as source, closing(sqlite3.connect(into)) as copy:
        source.backup(copy, pages=_PAGES, progress=in_time, sleep=0.0)
        # A file of its own, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.set_progress_handler(lambda: time.monotonic() > end, 100_000)
        try:
            verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.OperationalError as error:
            raise TooSlow from error
    if verdict != "ok":
        damage = str(verdict).splitlines()[-1]
        raise sqlite3.DatabaseError(damage)


def _prune(database: Path) -> None:
    existing = of(database)
    size = 0
    for place, backup in enumerate(reversed(existing)):
        size += backup.bytes
        if place and (place >= KEPT or size > KEPT_BYTES):
            with suppress(OSError):
                backup.path.unlink()
