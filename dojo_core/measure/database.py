"""One SQLite file that several processes share, and what becomes of it when it is damaged.

Whoever notices damage sets the file aside, with a date in its name, rescues what can be read of it into a
new one (rescue.py), adds what only the newest back-up has (backups.py), and puts that in its place; others
notice that the file at their path is another, and open it. ``notice`` says so. What only a person can mend
(a full disk, a file that may not be written) is a DatabaseFault with a sentence.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from dojo_core.measure import backups, rescue
from dojo_core.measure.limits import BUSY_SECONDS

log = logging.getLogger(__name__)

Values = Sequence[object] | Mapping[str, object]
P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound="Database")

_notices: dict[Path, str] = {}
_WITH_IT = ("-wal", "-shm")  # files that belong to a database, by what follows its name


class DatabaseFault(RuntimeError):
    """A database cannot be used; the message says why, and what to do."""


class NewerVersion(DatabaseFault, ValueError):
    """It was written by a newer Dojo."""


class Mended(DatabaseFault):
    """It was damaged in the middle of a change, which was not kept; the file is sound again."""


def twice(change: Callable[Concatenate[D, P], T]) -> Callable[Concatenate[D, P], T]:
    """A change that is made again where the database had to be mended meanwhile."""

    @wraps(change)
    def changed(self: D, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            return change(self, *arguments, **options)
        except Mended:
            return change(self, *arguments, **options)

    return changed


class Database:
    """A database at a path, its threads taking turns. Subclasses say what is in it. Close it when done.

    ``what`` names it in messages: "records". With ``mends`` False a damaged one is left as it is (it is
    somebody else's). Raises DatabaseFault.
    """

    what = "database"

    def __init__(self, path: Path, mends: bool = True) -> None:
        self.path = path
        self._mends = mends
        self._lock = threading.RLock()
        self._open()

    @property
    def notice(self) -> str:
        """What this process had to mend at this path last, as sentences; empty where there was nothing."""
        return _notices.get(self.path, "")

    # ------------------------------------------------------------------ what subclasses say

    def _make(self, connection: sqlite3.Connection) -> None:
        """Make or renew the tables, within a transaction. Raises NewerVersion."""
        raise NotImplementedError

    def _tables(self) -> Mapping[str, Sequence[str]]:
        """Those of the newest version with their columns, the most precious first."""
        raise NotImplementedError

    def _rescued(self, table: str, row: rescue.Row) -> rescue.Row | None:
        """A row of a damaged file as it is kept; None where it makes no sense."""
        return row

    # ------------------------------------------------------------------ asking and changing

    def _ask(self, query: str, values: Values = ()) -> list[sqlite3.Row]:
        with self._lock:
            for _ in range(2):
                self._follow()
                try:
                    return self._connection.execute(query, values).fetchall()
                except rescue.UNREADABLE as error:
                    self._handle(error)
            raise DatabaseFault(
                f"The {self.what} {self.path} are damaged again and again: is the disk sound?"
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._follow()
            try:
                with _whole(self._connection):
                    yield self._connection
            except rescue.UNREADABLE as error:
                self._handle(error)
                raise Mended(f"{self.notice} The last change was not kept: please make it again.") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def keep_backup(self) -> None:
        """Make a back-up where the newest is older than a day and there is something to lose. Damage that
        shows then is mended."""
        if not backups.due(self.path):
            return
        if not any(self._ask(f"SELECT 1 FROM {table} LIMIT 1") for table in self._tables()):
            return
        try:
            backups.make(self.path)
        except rescue.UNREADABLE as error:
            with self._lock:
                self._handle(error)

    # ------------------------------------------------------------------ opening

    def _open(self) -> None:
        with exclusively(self.path):
            try:
                self._connect()
            except rescue.UNREADABLE as error:
                self._mend(self._damage(error, opening=True))

    def _connect(self) -> None:
        damage = rescue.visible_damage(self.path, bool(backups.of(self.path)))
        if damage:
            raise sqlite3.DatabaseError(damage)
        self._connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        try:
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA journal_mode = WAL")
            # NORMAL: a commit is in the file's pages at once, so that it outlives the process; only a
            # failure of power may cost the last ones, and a disk flush would disturb the next timing.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._place = _place(self.path)
            with _whole(self._connection):
                self._make(self._connection)
            for table, columns in self._tables().items():
                self._connection.execute(f"SELECT {','.join(columns)} FROM {table} LIMIT 1").fetchall()
        except BaseException:
            self._connection.close()
            raise

    def _follow(self) -> None:
        """Where another process put a sound file, or a back-up, in this one's place: on with that one."""
        if _place(self.path) != self._place:
            self._connection.close()
            self._open()

    # ------------------------------------------------------------------ what went wrong

    def _handle(self, error: Exception) -> None:
        """Mend what is damaged. Raises DatabaseFault for what a person must mend, ``error`` if it is ours."""
        damage = self._damage(error)
        self._connection.close()
        with exclusively(self.path):
            if _place(self.path) != self._place:  # another process was quicker
                self._connect()
            else:
                self._mend(damage)

    def _damage(self, error: Exception, opening: bool = False) -> str:
        """What is damaged. Raises DatabaseFault for another trouble, ``error`` for a fault of ours."""
        damage = rescue.damage_of(error, opening)
        if damage:
            return damage
        sentence = rescue.sentence(error, self.what, self.path)
        if sentence:
            raise DatabaseFault(sentence) from error
        raise error

    def _mend(self, damage: str) -> None:
        """Set the file aside and put what can be read of it in its place, all or nothing."""
        if not self._mends:
            raise DatabaseFault(f"The {self.what} {self.path} are damaged ({damage}).")
        try:
            with tempfile.TemporaryDirectory(prefix="rescue-", dir=self.path.parent) as name:
                sound = Path(name) / "sound.sqlite"
                counts = self._rescue_into(sound, Path(name))
                aside = set_aside(self.path, "damaged", sound)
        except OSError as error:
            raise DatabaseFault(
                f"The {self.what} {self.path} are damaged ({damage}), and cannot be rescued: "
                f"{error.strerror or error}. They were left as they are."
            ) from error
        except rescue.UNREADABLE as error:
            sentence = rescue.sentence(error, self.what, self.path) or str(error)
            raise DatabaseFault(f"The {self.what} {self.path} are damaged ({damage}). {sentence}") from error
        notice = " ".join((
            f"The {self.what} {self.path} were damaged ({damage}): the file is kept as {aside.name}.", *counts
        ))  # fmt: skip
        log.warning("%s", notice)
        _notices[self.path] = notice
        self._connect()

    def _rescue_into(self, sound: Path, folder: Path) -> list[str]:
        """Make a new database with what can be read; sentences about how much that was."""
        damaged = rescue.copied(self.path, folder)
        new = type(self)(sound, mends=False)
        try:
            connection = new._connection
            read = rescue.rescue(damaged, connection, tuple(self._tables()), self._rescued)
            sentences = [f"Rescued into a new one: {_counted(read)}."]
            for backup in reversed(backups.of(self.path)):
                try:
                    more = rescue.fill(backup.path, connection, tuple(self._tables()), self._rescued)
                except rescue.UNREADABLE:
                    continue  # damaged too: the one before it
                if any(more.values()):
                    sentences.append(f"From the back-up of {backup.when}: {_counted(more)}.")
                break
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            new.close()
        return sentences


@contextmanager
def _whole(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # it may have been rolled back already
            connection.execute("ROLLBACK")
        raise


def _counted(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {table}" for table, count in rows.items())


def _place(path: Path) -> tuple[int, int] | None:
    """Which file is at a path."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """No other process opens, mends or replaces the database at a path meanwhile, unless it hangs in it."""
    if str(path) == ":memory:":  # SQLite's name for one that no file holds
        yield
        return
    try:
        descriptor = os.open(
            path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError:  # a folder that may not be written: nobody replaces anything there
        yield
        return
    try:
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:  # its holder was stopped: opening takes no such time
                    log.warning("another process holds %s: on without it", path)
                    break
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def set_aside(path: Path, why: str, sound: Path) -> Path:
    """Keep a database under a name with ``why`` and the date in it, and put a sound one in its place.

    At every moment there is a file at the path. Whoever has the old one open keeps that one, and SQLite,
    which compares the files, leaves the new one's log alone.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 0
    while True:
        more = f"-{number}" if number else ""
        aside = path.with_name(f"{path.stem}.{why}-{stamp}{more}{path.suffix}")
        if not aside.exists():
            break
        number += 1
    for end in _WITH_IT:
        with suppress(FileNotFoundError):
            os.rename(f"{path}{end}", f"{aside}{end}")
    if path.exists():
        try:
            os.link(path, aside)
        except OSError:  # a file system without them
            shutil.copyfile(path, aside)
    os.replace(sound, path)
    return aside
