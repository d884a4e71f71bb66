"""The records as a library lists them: filtered, page by page, as leaderboards; deleting that can be undone.

A row stands for a program on a machine: the time that counts for it, and how often it was measured.
Samples and program texts are read of single records alone, so that tens of thousands are listed at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.database import twice
from dojo_core.measure.records import CLAIM, RANK, Record, Records, _record, first_named

# What a row is, in words, and how the database says it. ``here``: this machine's fingerprints, as JSON.
_HERE = "fingerprint IN (SELECT value FROM json_each(:here))"
STATES = {
    "verified": f"verified AND status = 'ok' AND {_HERE}",
    "claim": f"status = 'ok' AND (({CLAIM}) OR NOT {_HERE})",
    "failed": "status <> 'ok'",
}

_STATE = f"CASE WHEN status <> 'ok' THEN 'failed' WHEN verified AND {_HERE} THEN 'verified' ELSE 'claim' END"
_GROUP = "start_hash, program_hash, target, fingerprint, policy, verified, status"
_ORDERS = {
    "time": "seconds IS NULL, seconds",
    "newest": "time DESC",
    "kernel": "kernel, shape, seconds IS NULL, seconds",
}
_MOVES = (
    "CASE WHEN first_line <> '' THEN LENGTH(first_line) - LENGTH(REPLACE(first_line, CHAR(10), '')) + 1 "
    "WHEN program_hash = start_hash THEN 0 END"
)
FACETS = ("kernel", "shape", "dtype", "target", "fingerprint", "player", "policy")


@dataclass(frozen=True)
class Wanted:
    """Which records; an empty field is no condition. ``state`` is one of ``STATES``."""

    kernel: str = ""
    shape: str = ""
    dtype: str = ""
    target: str = ""
    fingerprint: str = ""
    player: str | None = None  # "" is a record that names nobody
    policy: str = ""
    state: str = ""
    start_hash: str = ""


@dataclass(frozen=True)
class Row:
    """A program on a machine. ``shape`` is the first output's; ``seconds`` the time that counts for it of
    ``runs`` measurements (``Records.known``), taken at ``time`` under ``conditions`` by the one named ``id``;
    ``moves`` from the start, None where they are not known, ``line`` their text; ``player`` who came to it
    first."""

    id: int
    kernel: str
    shape: str
    dtype: str
    policy: str
    target: str
    fingerprint: str
    machine: str
    state: str
    status: str
    seconds: float | None
    runs: int
    moves: int | None
    line: str
    player: str
    time: float
    program_hash: str
    start_hash: str
    load: float | None
    exclusive: bool

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.load, bool(self.exclusive))


@dataclass(frozen=True)
class Board:
    """A leaderboard: all programs of a start on a machine and a target."""

    kernel: str
    shape: str
    dtype: str
    start_hash: str
    target: str
    fingerprint: str
    machine: str
    programs: int
    best: float | None
    start: float | None  # seconds of the start program there
    newest: float


@dataclass(frozen=True)
class TakenOut:
    """Deleted measurements, as they were: ``put_back`` undoes it."""

    rows: tuple[tuple[Any, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)


class Catalogue(Records):
    """The records, with a library's questions. ``own_fingerprints``: those of this machine and its GPU."""

    own_fingerprints: frozenset[str] = frozenset()

    def count(self, wanted: Wanted) -> int:
        """How many rows there are."""
        where, values = self._where(wanted)
        query = f"SELECT COUNT(*) FROM (SELECT 1 FROM measurements WHERE {where} GROUP BY {_GROUP})"
        return int(self._all(query, values)[0][0])

    def rows(self, wanted: Wanted, order: str = "newest", offset: int = 0, limit: int = 100) -> list[Row]:
        """A page of rows. ``order`` is one of time, newest, kernel."""
        where, values = self._where(wanted)
        selected = self._all(
            f"SELECT a.*, {_MOVES} AS moves, a.first_line AS line, a.first_player AS player FROM "
            f"(SELECT a.*, {first_named('line', _GROUP)}, {first_named('player', _GROUP)} FROM "
            "(SELECT id, kernel, shape, dtype, policy, target, fingerprint, machine, verified, "
            f"{_STATE} AS state, status, seconds, COUNT(*) AS runs, time, program_hash, start_hash, "
            f"load, exclusive, MIN({RANK}) FROM measurements WHERE {where} GROUP BY {_GROUP} "
            f"ORDER BY {_ORDERS[order]}, id LIMIT :limit OFFSET :offset) a) a",
            {**values, "limit": limit, "offset": offset},
        )
        return [Row(**{f.name: row[f.name] for f in fields(Row)}) for row in selected]

    def facets(self, wanted: Wanted) -> dict[str, list[str]]:
        """For each of ``FACETS``, the values there are under the other conditions."""
        facets = {}
        for name in FACETS:
            others = {f.name: getattr(wanted, f.name) for f in fields(Wanted) if f.name != name}
            where, values = self._where(Wanted(**others))
            rows = self._all(f"SELECT DISTINCT {name} FROM measurements WHERE {where} ORDER BY 1", values)
            facets[name] = [row[0] for row in rows]
        return facets

    def machines(self) -> dict[str, str]:
        """Fingerprints, and the machines as their records describe them (JSON)."""
        rows = self._all("SELECT fingerprint, machine FROM measurements GROUP BY fingerprint", {})
        return {row["fingerprint"]: row["machine"] for row in rows}

    def boards(self) -> list[Board]:
        """All leaderboards that have a time, the newest first."""
        timed = "FROM measurements WHERE status = 'ok' AND seconds IS NOT NULL"
        board = "start_hash, target, fingerprint"
        newest = {
            tuple(row[:3]): row[3]
            for row in self._all(f"SELECT {board}, MAX(time) {timed} GROUP BY {board}", {})
        }
        rows = self._all(
            "SELECT kernel, shape, dtype, start_hash, target, fingerprint, machine, "
            "COUNT(DISTINCT program_hash) AS programs, MIN(seconds) AS best, "
            "MIN(CASE WHEN program_hash = start_hash THEN seconds END) AS start FROM "
            f"(SELECT kernel, shape, dtype, {board}, machine, program_hash, seconds, MIN({RANK}) {timed} "
            f"GROUP BY {board}, program_hash, verified) GROUP BY {board}",
            {},
        )
        boards = [
            Board(**{name: row[name] for name in row.keys()},  # noqa: SIM118 (a row's items are its values)
                  newest=newest[row["start_hash"], row["target"], row["fingerprint"]])
            for row in rows
        ]  # fmt: skip
        return sorted(boards, key=lambda each: -each.newest)

    def record(self, number: int) -> Record | None:
        """One measurement by its id."""
        rows = self._all("SELECT * FROM measurements WHERE id = :id", {"id": number})
        return _record(rows[0]) if rows else None

    def start_text(self, start_hash: str) -> str | None:
        """The text of a start program, where it was measured itself."""
        rows = self._all(
            "SELECT program_text FROM measurements WHERE program_hash = :start LIMIT 1", {"start": start_hash}
        )
        return str(rows[0][0]) if rows else None

    def any_text(self, start_hash: str) -> str:
        """The text of some program that came of a start program; empty where there is none."""
        query = "SELECT program_text FROM measurements WHERE start_hash = :start LIMIT 1"
        rows = self._all(query, {"start": start_hash})
        return str(rows[0][0]) if rows else ""

    @twice
    def take_out(self, ids: Sequence[int]) -> TakenOut:
        """Delete the rows of these measurements, with all measurements of the same row."""
        taken: list[tuple[Any, ...]] = []
        with self._transaction() as connection:
            for number in ids:
                same = " AND ".join(f"b.{c} = a.{c}" for c in _GROUP.split(", "))
                inside = f"SELECT b.id FROM measurements a JOIN measurements b ON {same} WHERE a.id = ?"
                selected = connection.execute(f"SELECT * FROM measurements WHERE id IN ({inside})", (number,))
                taken += [tuple(row) for row in selected.fetchall()]
                connection.execute(f"DELETE FROM measurements WHERE id IN ({inside})", (number,))
        return TakenOut(tuple(taken))

    @twice
    def put_back(self, taken: TakenOut) -> None:
        """Undo ``take_out``. What was measured anew meanwhile stays."""
        with self._transaction() as connection:
            for row in taken.rows:
                marks = ",".join("?" * len(row))
                connection.execute(f"INSERT OR IGNORE INTO measurements VALUES ({marks})", row)

    def _where(self, wanted: Wanted) -> tuple[str, dict[str, Any]]:
        conditions: list[str] = ["1"]
        values: dict[str, Any] = {}
        for name in (*FACETS, "start_hash"):
            value = getattr(wanted, name)
            if value or (name == "player" and value is not None):
                conditions.append(f"{name} = :{name}")
                values[name] = value
        if wanted.state:
            conditions.append(f"({STATES[wanted.state]})")
        return " AND ".join(conditions), values

    def _all(self, query: str, values: dict[str, Any]) -> list[Any]:
        return self._ask(query, {"here": json.dumps(sorted(self.own_fingerprints)), **values})
