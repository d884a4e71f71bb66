"""Every measurement and every game, in one SQLite database that survives its process.

Write-ahead log: what ``add`` or ``save_game`` returned from is there after kill -9. Several processes may
share the file; each has one connection, its threads take turns.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import cast

from dojo_core.measure.conditions import Conditions, worth
from dojo_core.measure.database import Database, NewerVersion, twice
from dojo_core.measure.places import data_directory
from dojo_core.measure.rescue import UNREADABLE, Row
from dojo_core.ownership import CLIENT, OWNED
from dojo_core.program.dependence import POLICIES, stricter

SCHEMA_VERSION = 3

_SCHEMA = """
CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    program_hash TEXT NOT NULL,
    program_text TEXT NOT NULL,
    start_hash TEXT NOT NULL,
    kernel TEXT NOT NULL,
    shape TEXT NOT NULL,
    dtype TEXT NOT NULL,
    policy TEXT NOT NULL,
    line TEXT NOT NULL,
    target TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    machine TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    status TEXT NOT NULL,
    verified INTEGER NOT NULL,
    seconds REAL,
    samples TEXT NOT NULL,
    error REAL NOT NULL,
    calibration REAL NOT NULL,
    message TEXT NOT NULL,
    effort TEXT NOT NULL,
    player TEXT NOT NULL,
    time REAL NOT NULL
);
CREATE INDEX known ON measurements (program_hash, target, fingerprint, policy);
CREATE INDEX by_code ON measurements (code_hash, fingerprint);
CREATE INDEX ranking ON measurements (start_hash, target, fingerprint, policy, seconds);
CREATE TABLE games (
    id TEXT PRIMARY KEY,
    player TEXT NOT NULL,
    kernel TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL
);
CREATE INDEX games_of ON games (player, updated);
"""


# Which of several times of a program counts (conditions.worth): the least of these, which order as worth and
# then seconds do. SQLite takes the columns beside MIN from the row of the minimum.
RANK = "rank(load, exclusive, time, seconds)"
BEST_FIRST = f"seconds IS NULL, {RANK}"


def first_named(column: str, same: str) -> str:
    """The column of the first measurement that names one, of those that agree with row ``a`` in the columns
    ``same``: a time may be of somebody who took it again."""
    agree = " AND ".join(f"b.{each} = a.{each}" for each in same.split(", "))
    return (
        f"COALESCE((SELECT b.{column} FROM measurements b WHERE {agree} AND b.{column} <> '' "
        f"ORDER BY b.id LIMIT 1), '') AS first_{column}"
    )


# A time that nobody here has verified: imported, and not yet measured again. It is nothing known.
CLAIM = "status = 'ok' AND NOT verified"


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed run. ``nanoseconds`` of one call; what disturbed it: switches and page faults."""

    nanoseconds: float
    switches: int = 0
    faults: int = 0

    @property
    def clean(self) -> bool:
        """Not interrupted by another process."""
        return self.switches == 0


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement as it is kept. ``seconds`` is the best clean sample, None where nothing was timed.

    ``shape`` and ``dtype`` are those of the first output; ``line`` the moves from the start program,
    one a line; ``error`` the largest error in units of what is allowed; ``calibration`` milliseconds of a
    fixed piece of arithmetic just before; ``time`` seconds since the epoch; ``load`` and ``exclusive`` as
    ``Conditions`` has them.
    """

    program_hash: str
    program_text: str
    start_hash: str
    kernel: str
    shape: str
    dtype: str
    policy: str
    line: str
    target: str
    fingerprint: str
    machine: str
    code_hash: str
    status: str
    verified: bool
    seconds: float | None
    samples: tuple[Sample, ...] = ()
    error: float = 0.0
    calibration: float = 0.0
    message: str = ""
    effort: str = ""
    player: str = ""
    time: float = 0.0
    load: float | None = None
    exclusive: bool = True

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.load, self.exclusive)


@dataclass(frozen=True, slots=True)
class Limit:
    """The least time that a machine was ever seen to take for something: an access pattern, so many
    operations, a kernel, a kernel by another library. ``source`` says in words what took it; ``load``: as
    ``Conditions`` has it."""

    name: str
    seconds: float
    source: str
    load: float | None = None
    time: float = 0.0

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.load)


@dataclass(frozen=True, slots=True)
class SavedGame:
    """A game as its player left it; ``text`` is the form that ``dojo_core.game`` writes and reads."""

    id: str
    player: str
    kernel: str
    title: str
    text: str
    created: float = 0.0
    updated: float = 0.0


# A game's text has its moves below a line "moves:", indented.
_HAS_MOVES = "instr(text, 'moves:' || char(10) || '  ') > 0"

_RECORD_COLUMNS = tuple(f.name for f in fields(Record))
_LATER_COLUMNS = ("load", "exclusive")  # than version 1
_GAME_COLUMNS = tuple(f.name for f in fields(SavedGame))


class Records(Database):
    """The database. Safe to share between threads. Close it, or use it in a ``with`` statement.

    A damaged one is set aside and rescued, and ``notice`` tells of it (database.py); not with ``mends``
    False. Raises DatabaseFault for one that cannot be used, NewerVersion among them.
    """

    what = "records"

    def __init__(self, path: Path | str | None = None, mends: bool = True) -> None:
        super().__init__(Path(path) if path is not None else data_directory() / "records.sqlite", mends)

    def _make(self, connection: sqlite3.Connection) -> None:
        connection.create_function("rank", 4, _rank)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise NewerVersion(
                f"{self.path} was written by a newer Dojo (its records have version {version}): "
                "update the Dojo, or set DOJO_HOME to another folder."
            )
        if version <= 0:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            version = 1
        if version < SCHEMA_VERSION:
            for step in range(version, SCHEMA_VERSION):
                _MIGRATIONS[step](connection)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _tables(self) -> dict[str, tuple[str, ...]]:
        limits = ("fingerprint", *(f.name for f in fields(Limit)))
        return {"games": _GAME_COLUMNS, "measurements": (*_RECORD_COLUMNS, "key"), "limits": limits}

    def _rescued(self, table: str, row: Row) -> Row | None:
        if table == "measurements" and not row.get("key"):
            later = {f.name: f.default for f in fields(Record)}  # what rows of older versions do not have
            try:
                row["key"] = key_of(_record(cast(sqlite3.Row, later | row)))
            except (KeyError, TypeError):
                return None
        return row

    def _rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        return self._ask(query, values)

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Measurements

    def add(self, record: Record) -> None:
        """Keep a measurement. When this returns it survives the process."""
        self.add_all([record])

    def add_all(self, records: Iterable[Record]) -> int:
        """Keep several, all or none. What is there already, time and samples alike, is not kept twice; gives
        how many were new."""
        dated = [record if record.time else replace(record, time=time.time()) for record in records]
        return self._insert([(*_row(record), key_of(record)) for record in dated])

    @twice
    def _insert(self, rows: list[tuple[object, ...]]) -> int:
        columns, marks = ",".join((*_RECORD_COLUMNS, "key")), ",".join("?" * (len(_RECORD_COLUMNS) + 1))
        with self._transaction() as connection:
            before = connection.total_changes
            connection.executemany(
                f"INSERT INTO measurements ({columns}) VALUES ({marks}) ON CONFLICT (key) DO NOTHING", rows
            )
            return connection.total_changes - before

    @twice
    def add_from(self, other: Path) -> int:
        """Keep the measurements of another database of this version, all or none; gives how many were new."""
        columns = ",".join((*_RECORD_COLUMNS, "key"))
        with self._lock:
            self._ask("ATTACH ? AS other", (str(other),))
            try:
                with self._transaction() as connection:
                    before = connection.total_changes
                    connection.execute(
                        f"INSERT INTO measurements ({columns}) SELECT {columns} FROM other.measurements "
                        "WHERE true ORDER BY id ON CONFLICT (key) DO NOTHING"
                    )
                    return connection.total_changes - before
            finally:
                with suppress(sqlite3.Error):  # a connection that was mended is another one
                    self._connection.execute("DETACH other")

    def known(
        self,
        program_hash: str,
        target: str,
        fingerprint: str,
        policy: str = "reassoc",
        start_hash: str | None = None,
    ) -> Record | None:
        """What is known of a program on a machine: its best verified time, else its latest failure.

        The best is the shortest of those taken in quiet, lately, if there are any (``conditions.worth``).
        ``start_hash``: only as verified against that start program.
        """
        rows = self._rows(
            f"SELECT * FROM measurements WHERE program_hash = ? AND target = ? AND fingerprint = ? "
            f"AND policy = ? AND (? IS NULL OR start_hash = ?) AND NOT ({CLAIM}) "
            f"ORDER BY verified DESC, {BEST_FIRST}, id DESC LIMIT 1",
            program_hash, target, fingerprint, policy, start_hash, start_hash,
        )  # fmt: skip
        return _record(rows[0]) if rows else None

    def known_code(
        self, code_hash: str, start_hash: str, fingerprint: str, policy: str | None = None
    ) -> Record | None:
        """The same for generated code, whichever program it came from, verified against one start program by
        what a policy promises (None: any)."""
        rows = self._rows(
            f"SELECT * FROM measurements WHERE code_hash = ? AND start_hash = ? AND fingerprint = ? "
            f"AND (? IS NULL OR policy = ?) AND NOT ({CLAIM}) "
            f"ORDER BY verified DESC, {BEST_FIRST}, id DESC LIMIT 1",
            code_hash, start_hash, fingerprint, policy, policy,
        )  # fmt: skip
        return _record(rows[0]) if rows else None

    def known_all(
        self,
        program_hashes: Iterable[str],
        target: str,
        fingerprint: str,
        policy: str = "reassoc",
        start_hash: str | None = None,
    ) -> dict[str, Record]:
        """``known`` for many programs; those of which nothing is known are left out."""
        where = (target, fingerprint, policy, start_hash)
        known = ((h, self.known(h, *where)) for h in dict.fromkeys(program_hashes))
        return {h: record for h, record in known if record is not None}

    def best(
        self, start_hash: str, target: str, fingerprint: str, policy: str | None = None
    ) -> Record | None:
        """The fastest verified program reached from a start program (its kernel, shapes and dtypes)."""
        ranking = self.ranking(start_hash, target, fingerprint, policy, limit=1)
        return ranking[0] if ranking else None

    def ranking(
        self, start_hash: str, target: str, fingerprint: str, policy: str | None = None, limit: int = 20
    ) -> list[Record]:
        """The fastest verified programs, each once, best first. With ``policy``: of what it allows, which
        includes what a stricter one does.

        Each stands there with the time that counts for it, as in ``known``. A time of a busy machine keeps
        its rank where its program has no other: noise only adds, so the program is no slower. Moves and
        player are those of whoever came to the program first: the time may be of one who took it again.
        """
        allowed = stricter(policy) if policy else POLICIES
        same = "program_hash, start_hash, target, fingerprint"
        rows = self._rows(
            f"SELECT a.*, {first_named('line', same)}, {first_named('player', same)} FROM "
            f"(SELECT *, MIN({RANK}) FROM measurements WHERE start_hash = ? AND target = ? "
            f"AND fingerprint = ? AND policy IN ({', '.join('?' * len(allowed))}) "
            "AND verified AND status = 'ok' AND seconds IS NOT NULL "
            "GROUP BY program_hash ORDER BY seconds LIMIT ?) a",
            start_hash, target, fingerprint, *allowed, limit,
        )  # fmt: skip
        return [replace(_record(row), line=row["first_line"], player=row["first_player"]) for row in rows]

    def measured_on(self, target: str, but: Iterable[str], most: int) -> list[tuple[str, str]]:
        """So many machines that programs for a target were verified on, without those named, each with its
        details."""
        rows = self._rows("SELECT DISTINCT fingerprint FROM measurements WHERE target = ?", target)
        left = {row[0] for row in rows}.difference(but)
        last = "WHERE fingerprint = ? AND target = ? AND verified ORDER BY id DESC LIMIT 1"
        machines = (
            (each, self._rows(f"SELECT machine FROM measurements {last}", each, target))
            for each in sorted(left)[:most]
        )
        return [(each, rows[0][0]) for each, rows in machines if rows]

    def counts(self, target: str) -> dict[str, int]:
        """How many measurements of programs for a target there are, by the machine's fingerprint."""
        rows = self._rows(
            "SELECT fingerprint, COUNT(*) FROM measurements WHERE target = ? GROUP BY fingerprint", target
        )
        return {row[0]: row[1] for row in rows}

    def workloads(self, target: str, fingerprint: str) -> list[tuple[str, str]]:
        """Start programs of which verified times are known on a machine: (kernel, hash), by name."""
        rows = self._rows(
            "SELECT MIN(kernel), start_hash FROM measurements WHERE target = ? AND fingerprint = ? "
            "AND verified AND seconds IS NOT NULL GROUP BY start_hash ORDER BY 1, 2",
            target, fingerprint,
        )  # fmt: skip
        return [(row[0], row[1]) for row in rows]

    def failures(self, code_hash: str, fingerprint: str) -> int:
        """How often generated code crashed, hung or left its bounds on a machine."""
        rows = self._rows(
            "SELECT COUNT(*) FROM measurements WHERE code_hash = ? AND fingerprint = ? "
            "AND status IN ('crash', 'timeout', 'out_of_bounds')",
            code_hash, fingerprint,
        )  # fmt: skip
        return int(rows[0][0])

    def measurements(self, since: int = 0, limit: int = -1) -> list[tuple[int, Record]]:
        """Records with an id above ``since``, oldest first, with their ids; all, or so many at most."""
        rows = self._rows("SELECT * FROM measurements WHERE id > ? ORDER BY id LIMIT ?", since, limit)
        return [(row["id"], _record(row)) for row in rows]

    # Limits of machines

    def limit(self, fingerprint: str, name: str) -> Limit | None:
        """The least time seen of that name on a machine."""
        rows = self._rows("SELECT * FROM limits WHERE fingerprint = ? AND name = ?", fingerprint, name)
        return Limit(**{f.name: rows[0][f.name] for f in fields(Limit)}) if rows else None

    def lower_limit(self, fingerprint: str, seen: Limit) -> Limit:
        """Keep a time if none is as short; gives the least. Times taken in quiet confirm what was not."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO limits (fingerprint, name, seconds, source, load, time) "
                "VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (fingerprint, name) DO UPDATE SET seconds = excluded.seconds, "
                "source = excluded.source, time = excluded.time WHERE excluded.seconds < seconds",
                (fingerprint, seen.name, seen.seconds, seen.source, seen.load, seen.time or time.time()),
            )
            if seen.conditions.quiet:
                connection.execute(
                    "UPDATE limits SET load = ? WHERE fingerprint = ? AND name = ? AND load IS NOT ?",
                    (seen.load, fingerprint, seen.name, seen.load),
                )
        least = self.limit(fingerprint, seen.name)
        assert least is not None
        return least

    def least_time(self, start_hash: str, target: str, fingerprint: str) -> float | None:
        """Seconds of the fastest verified run of any program of a start, whatever else the machine did."""
        rows = self._rows(
            "SELECT MIN(seconds) FROM measurements WHERE start_hash = ? AND target = ? AND fingerprint = ? "
            "AND verified AND status = 'ok'",
            start_hash, target, fingerprint,
        )  # fmt: skip
        return None if rows[0][0] is None else float(rows[0][0])

    # Games

    @twice
    def save_game(self, game: SavedGame, before: str | None = None) -> SavedGame:
        """Keep a game, over an older state of the same id; gives it with its times set.

        Whose it is stays as it was when it was first kept: only ``give_game`` changes that. With ``before``,
        the text of that older state: where another process saved another one meanwhile, nothing is changed,
        and that one is given.
        """
        now = time.time()
        columns, marks = ",".join(_GAME_COLUMNS), ",".join("?" * len(_GAME_COLUMNS))
        values = [getattr(replace(game, created=game.created or now, updated=now), c) for c in _GAME_COLUMNS]
        with self._transaction() as connection:
            if before is not None:
                row = connection.execute("SELECT * FROM games WHERE id = ?", (game.id,)).fetchone()
                if row is not None and row["text"] not in (before, game.text):
                    return _game(row)
            connection.execute(
                f"INSERT INTO games ({columns}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET "
                "kernel = excluded.kernel, title = excluded.title, text = excluded.text, "
                "updated = excluded.updated",
                values,
            )
            return _game(connection.execute("SELECT * FROM games WHERE id = ?", (game.id,)).fetchone())

    def game(self, game_id: str) -> SavedGame | None:
        rows = self._rows("SELECT * FROM games WHERE id = ?", game_id)
        return _game(rows[0]) if rows else None

    def give_game(self, game_id: str, before: str, player: str) -> None:
        """A game of ``before`` is the ``player``'s from now on; nothing happens where it is another's now."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE games SET player = ? WHERE id = ? AND player = ?", (player, game_id, before)
            )

    def games(
        self, player: str | None = None, limit: int = 100, nobodys: bool = False, clients: bool = False
    ) -> list[SavedGame]:
        """The games of a player (or of all), last played first; with ``nobodys`` also those that belong to
        nobody, with ``clients`` those that programs play (dojo_core/ownership.py)."""
        free = " AND ".join("player NOT LIKE ?" for _ in OWNED)
        rows = self._rows(
            f"SELECT * FROM games WHERE ? IS NULL OR player = ? OR (? AND {free}) OR (? AND player LIKE ?) "
            "ORDER BY updated DESC LIMIT ?",
            player, player, nobodys, *(f"{prefix}%" for prefix in OWNED), clients, f"{CLIENT}%", limit,
        )  # fmt: skip
        return [_game(row) for row in rows]

    def count_games(self, player: str) -> tuple[int, int]:
        """How many games with moves a player has, and how many of them begin with a text of their own."""
        rows = self._rows(
            f"SELECT COUNT(*), COALESCE(SUM(kernel = ''), 0) FROM games WHERE player = ? AND {_HAS_MOVES}",
            player,
        )
        return int(rows[0][0]), int(rows[0][1])

    def count_games_of_clients(self) -> int:
        """How many games with moves all programs together have that play by calls."""
        rows = self._rows(f"SELECT COUNT(*) FROM games WHERE player LIKE ? AND {_HAS_MOVES}", f"{CLIENT}%")
        return int(rows[0][0])

    @twice
    def prune_games(self, before: float) -> int:
        """Delete the games without a move that nobody touched since (seconds since the epoch); how many."""
        with self._transaction() as connection:
            return connection.execute(
                f"DELETE FROM games WHERE updated < ? AND NOT {_HAS_MOVES}", (before,)
            ).rowcount

    @twice
    def delete_game(self, game_id: str) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM games WHERE id = ?", (game_id,))


def contents(path: Path) -> tuple[str, str]:
    """How many games and measurements a back-up has, as words."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            games, measurements = (
                connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
                for table in ("games", "measurements")
            )
    except UNREADABLE:
        return "damaged", "damaged"
    return f"{games:,}", f"{measurements:,}"


def key_of(record: Record) -> str:
    """The same for the same measurement, wherever it is kept; differs from all others'."""
    identity = (
        record.program_hash, record.start_hash, record.policy, record.target, record.fingerprint,
        record.code_hash, record.status, record.effort, record.player, record.time,
        [[s.nanoseconds, s.switches, s.faults] for s in record.samples],
    )  # fmt: skip
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def _with_keys(connection: sqlite3.Connection) -> None:
    """Version 1 to 2: each measurement has a key, so that records from elsewhere are taken in once."""
    connection.execute("ALTER TABLE measurements ADD COLUMN key TEXT")
    seen: set[str] = set()
    for row in connection.execute("SELECT * FROM measurements ORDER BY id").fetchall():
        key = key_of(_record(row, [name for name in _RECORD_COLUMNS if name not in _LATER_COLUMNS]))
        if key in seen:
            connection.execute("DELETE FROM measurements WHERE id = ?", (row["id"],))
        else:
            connection.execute("UPDATE measurements SET key = ? WHERE id = ?", (key, row["id"]))
        seen.add(key)
    connection.execute("CREATE UNIQUE INDEX by_key ON measurements (key)")


def _with_conditions(connection: sqlite3.Connection) -> None:
    """Version 2 to 3: each measurement says what else the machine did; of older ones that is not known.
    And limits of machines are kept."""
    connection.execute("ALTER TABLE measurements ADD COLUMN load REAL")
    connection.execute("ALTER TABLE measurements ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 1")
    connection.execute(
        "CREATE TABLE limits (fingerprint TEXT NOT NULL, name TEXT NOT NULL, seconds REAL NOT NULL, "
        "source TEXT NOT NULL, load REAL, time REAL NOT NULL, PRIMARY KEY (fingerprint, name))"
    )


# By the version that they lead on from. A new database begins at version 1 and takes them all.
_MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _with_keys, 2: _with_conditions}


def _row(record: Record) -> list[object]:
    values = {name: getattr(record, name) for name in _RECORD_COLUMNS}
    values["samples"] = json.dumps([[s.nanoseconds, s.switches, s.faults] for s in record.samples])
    values["time"] = record.time or time.time()
    # SQLite keeps NaN as NULL, which the column refuses.
    values["error"] = record.error if math.isfinite(record.error) else -1.0
    return list(values.values())


def _rank(load: float | None, exclusive: int, taken: float, seconds: float | None) -> bytes | None:
    """Bytes that order as the time's worth and then its seconds do; None for no time."""
    if seconds is None:
        return None
    return struct.pack(">Bd", worth(Conditions(load, bool(exclusive)), time.time() - taken), seconds)


def _record(row: sqlite3.Row, columns: Iterable[str] = _RECORD_COLUMNS) -> Record:
    values = {name: row[name] for name in columns}
    values["samples"] = _samples(row["samples"])
    values["verified"] = bool(row["verified"])
    values["exclusive"] = bool(values.get("exclusive", True))
    return Record(**values)


def _samples(text: str) -> tuple[Sample, ...]:
    try:
        return tuple(Sample(*sample) for sample in json.loads(text))
    except (ValueError, TypeError, RecursionError):  # bytes of the file changed
        return ()


def _game(row: sqlite3.Row) -> SavedGame:
    return SavedGame(**{name: row[name] for name in _GAME_COLUMNS})
