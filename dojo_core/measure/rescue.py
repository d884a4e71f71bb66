"""What can be read of a damaged SQLite file, and what is wrong with it, in words.

Rows are asked for by their numbers, past those that SQLite cannot read; where it cannot read on, all pages
of the file are looked through for rows, whatever led to them (https://www.sqlite.org/fileformat2.html).
Pages that the file lists as free are left out: what they hold was deleted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

Row = dict[str, object]  # by the names of the columns

MAGIC = b"SQLite format 3\x00"
# What reading a damaged file raises: Python's sqlite3 cannot make a message of a name that is no text.
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
_CHUNK = 500  # rows asked for at once
_FARTHEST = 2**40  # no table has a row with this number
_LARGEST_ROW = 64 << 20  # bytes

_CORRUPT, _NOT_A_DATABASE, _SHORT_READ = 11, 26, 522  # SQLite's result codes, the last an extended one
_TROUBLES = {
    5: "are locked by another process: wait until it is done, or end it",
    6: "are locked by another process: wait until it is done, or end it",
    8: "may not be written: change their permissions or owner, or set DOJO_HOME to another folder",
    10: "cannot be read or written: the disk reports a fault",
    13: "cannot be written: there is no space left on the disk. Free some",
    14: "cannot be opened: may this user write the file and its folder? DOJO_HOME names another",
    23: "may not be read: change their permissions",
}


def damage_of(error: Exception, opening: bool = False) -> str:
    """What an error says is damaged; empty where it tells of something else. ``opening``: a missing table or
    column is damage too."""
    if isinstance(error, UnicodeDecodeError):
        return "a name in it is no text"
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # not SQLite's: visible_damage's, or Python's, of a text that is none
        return str(error) if type(error) is sqlite3.DatabaseError or "decode to UTF-8" in str(error) else ""
    if code & 0xFF in (_CORRUPT, _NOT_A_DATABASE) or code == _SHORT_READ:
        return str(error)
    return str(error) if opening and code == 1 else ""


def sentence(error: Exception, what: str, path: Path) -> str:
    """A trouble that a person can mend; empty where the error tells of none."""
    if path.is_dir():
        return f"{path} is a folder: the {what} are to be a file there. Move it away."
    trouble = _TROUBLES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    return f"The {what} {path} {trouble}." if trouble else ""


def visible_damage(path: Path, backed_up: bool) -> str:
    """Damage that shows in a file's beginning and length, which SQLite would find only later; or empty.

    ``backed_up``: is there a back-up? Then an empty file is not a new one.
    """
    try:
        with path.open("rb") as file:
            head = file.read(100)
            log = Path(f"{path}-wal")
            if log.exists() and log.stat().st_size:
                return ""  # the last pages may still be there
            # Only now: the log is gone when another process has put all its pages into the file.
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return ""
    if not size:
        return "the file is empty" if backed_up else ""
    if head.startswith(MAGIC) and len(head) == 100:
        page = int.from_bytes(head[16:18], "big")
        pages = int.from_bytes(head[28:32], "big")
        counted = head[24:28] == head[92:96]  # is the number of pages that of the last change?
        if counted and pages * (65_536 if page == 1 else page) > size:
            return "its end is missing"
    return ""


def copied(path: Path, folder: Path) -> Path:
    """A copy to read from, with its log: opening it changes the copy alone. Raises OSError."""
    copy = folder / "damaged.sqlite"
    for end in ("-wal", ""):
        with suppress(FileNotFoundError):
            shutil.copyfile(f"{path}{end}", f"{copy}{end}")
    return copy


def rescue(
    damaged: Path, into: sqlite3.Connection, tables: Sequence[str], convert: Callable[[str, Row], Row | None]
) -> dict[str, int]:
    """Put the rows of a damaged file into the tables of a new one; how many of each. ``convert`` says what a
    row of a table becomes."""
    known = {table: _Table.of(into, table) for table in tables}
    counts = dict.fromkeys(tables, 0)
    with suppress(*UNREADABLE), closing(sqlite3.connect(damaged)) as connection:
        # What the log has goes into the file, for who reads its pages.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    whole = True
    for name, table in known.items():
        readable = _Asked(damaged, table)
        counts[name] += _keep(into, table, readable, convert)
        whole = whole and readable.whole
    if not whole:
        for name, rows in _loose_rows(damaged, known).items():
            counts[name] += _keep(into, known[name], rows, convert)
    return counts


def fill(
    backup: Path, into: sqlite3.Connection, tables: Sequence[str], convert: Callable[[str, Row], Row | None]
) -> dict[str, int]:
    """Put in the rows of a back-up that are not there; how many of each. Raises sqlite3.DatabaseError."""
    counts = {}
    for name in tables:
        table = _Table.of(into, name)
        readable = _Asked(backup, table)
        counts[name] = _keep(into, table, readable, convert)
        if not readable.whole:
            raise sqlite3.DatabaseError("the back-up is damaged")
    return counts


@dataclass(frozen=True)
class _Table:
    """Its columns, with what SQLite stores in them; ``number`` is the one that is the row's number, or empty;
    ``least``: columns that a row has at least, for those of older versions."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    number: str
    least: int

    @staticmethod
    def of(connection: sqlite3.Connection, name: str) -> _Table:
        described = connection.execute(f"PRAGMA table_info({name})").fetchall()
        keys = [column[1] for column in described if column[5]]
        number = next((c[1] for c in described if [c[1]] == keys and c[2].upper() == "INTEGER"), "")
        needed = [place for place, c in enumerate(described, 1) if c[3] and c[4] is None]
        return _Table(
            name,
            tuple(c[1] for c in described),
            tuple(c[2].upper() for c in described),
            number,
            max(needed, default=1),
        )

    def row(self, values: Sequence[object]) -> Row | None:
        """A row as its columns, decoded; None where its values are not what they hold."""
        if not self.least <= len(values) <= len(self.columns):
            return None
        row: Row = {}
        for name, kind, value in zip(self.columns, self.kinds, values, strict=False):
            if name == self.number:
                continue
            if value is not None:
                if kind == "TEXT" and isinstance(value, bytes):
                    try:
                        value = value.decode()
                    except UnicodeDecodeError:
                        return None
                    if "\x00" in value:
                        return None
                elif kind == "REAL" and isinstance(value, (int, float)):
                    value = float(value)
                elif not (kind == "INTEGER" and isinstance(value, int)):
                    return None
            row[name] = value
        return row


def _keep(
    into: sqlite3.Connection,
    table: _Table,
    rows: Iterable[Row],
    convert: Callable[[str, Row], Row | None],
) -> int:
    """How many were not there yet, and could be kept."""
    before = into.total_changes
    into.execute("BEGIN")
    try:
        for raw in rows:
            row = convert(table.name, raw)
            if row is not None:
                columns, marks = ",".join(row), ",".join("?" * len(row))
                into.execute(
                    f"INSERT OR IGNORE INTO {table.name} ({columns}) VALUES ({marks})", list(row.values())
                )
    finally:
        into.execute("COMMIT")
    return into.total_changes - before


class _Asked:
    """The rows of a table that SQLite can read, without those it cannot; ``whole`` afterwards: was it all?"""

    def __init__(self, path: Path, table: _Table) -> None:
        self.path, self.table, self.whole = path, table, True

    def __iter__(self) -> Iterator[Row]:
        try:
            with closing(sqlite3.connect(self.path)) as connection:
                connection.text_factory = bytes
                yield from self._rows(connection)
        except UNREADABLE:
            self.whole = False

    def _rows(self, connection: sqlite3.Connection) -> Iterator[Row]:
        name = self.table.name
        present = {str(c[1], "utf-8", "replace") for c in connection.execute(f"PRAGMA table_info({name})")}
        columns = [c for c in self.table.columns if c in present and c != self.table.number]
        if not columns:
            self.whole = False
            return
        kinds = dict(zip(self.table.columns, self.table.kinds, strict=True))
        reader = _Table(name, tuple(columns), tuple(kinds[c] for c in columns), "", len(columns))
        query = (
            f"SELECT rowid, {', '.join(columns)} FROM {name} NOT INDEXED "
            "WHERE rowid > ? ORDER BY rowid LIMIT ?"
        )
        last, chunk = -_FARTHEST, _CHUNK
        while True:
            try:
                block = connection.execute(query, (last, chunk)).fetchall()
            except UNREADABLE:
                self.whole = False
                if chunk > 1:
                    chunk = 1
                    continue
                after = self._after(connection, last)
                if after is None:
                    return
                last, chunk = after, _CHUNK
                continue
            before = last
            for number, *values in block:
                if number <= last:  # pages that lead back to where it was
                    self.whole = False
                    continue
                last = number
                row = reader.row(values)
                if row is None:
                    self.whole = False
                else:
                    yield row
            if last == before:
                return
            chunk = min(_CHUNK, 2 * chunk)

    def _after(self, connection: sqlite3.Connection, last: int) -> int | None:
        """The number before the next row that can be read, None where there is none."""

        def readable(number: int) -> bool:
            query = f"SELECT * FROM {self.table.name} NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT 1"
            with suppress(*UNREADABLE):
                return bool(connection.execute(query, (number,)).fetchall())
            return False

        last = max(last, 0)
        step = 1
        while not readable(last + step):
            step *= 2
            if step > _FARTHEST:
                return None
        low, high = last + step // 2, last + step  # low cannot be read on from, high can
        while high - low > 1:
            middle = (low + high) // 2
            if readable(middle):
                high = middle
            else:
                low = middle
        return high


# ---------------------------------------------------------------------------- rows in pages


def _loose_rows(path: Path, tables: dict[str, _Table]) -> dict[str, list[Row]]:
    """All rows in the pages of a file that may be one of these tables', wherever they stand; the newest
    first.
    """
    pages = _Pages(path.read_bytes())
    by_table: dict[str, list[Row]] = {name: [] for name in tables}
    for number in range(1, pages.count + 1):
        if number in pages.free:
            continue
        for values in pages.rows(number):
            for name, table in tables.items():
                row = table.row(values)
                if row is not None:
                    by_table[name].append(row)
                    break
    for rows in by_table.values():
        rows.sort(key=lambda row: -cast(float, row.get("updated") or row.get("time") or 0.0))
    return by_table


class _Pages:
    """The pages of a database's file, each looked at alone."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[16:18], "big")
        size = 65_536 if size == 1 else size
        self.size = size if size in {2**n for n in range(9, 17)} and data.startswith(MAGIC) else 4096
        self.usable = self.size - (data[20] if data.startswith(MAGIC) and data[20] < 32 else 0)
        self.data = data
        self.count = -(-len(data) // self.size)
        self.free = self._free() if data.startswith(MAGIC) else set()

    def page(self, number: int) -> bytes:
        """Counted from 1; shorter than a page, or empty, where the file ends."""
        return self.data[(number - 1) * self.size : number * self.size] if number > 0 else b""

    def _free(self) -> set[int]:
        free: set[int] = set()
        trunk = int.from_bytes(self.data[32:36], "big")
        while 0 < trunk <= self.count and trunk not in free:
            page = self.page(trunk)
            free.add(trunk)
            leaves = min(int.from_bytes(page[4:8], "big"), self.usable // 4 - 2)
            free.update(int.from_bytes(page[8 + 4 * n : 12 + 4 * n], "big") for n in range(leaves))
            trunk = int.from_bytes(page[:4], "big")
        return free

    def rows(self, number: int) -> Iterator[list[object]]:
        """The rows of a page that is a leaf of a table; of another none."""
        page = self.page(number)
        head = 100 if number == 1 else 0
        if page[head : head + 1] != b"\x0d":
            return
        cells = int.from_bytes(page[head + 3 : head + 5], "big")
        for cell in range(min(cells, self.size // 4)):
            place = head + 8 + 2 * cell
            start = int.from_bytes(page[place : place + 2], "big")
            with suppress(ValueError):
                yield _values(self._payload(page, start))

    def _payload(self, page: bytes, at: int) -> bytes:
        """A cell's record, put together from its overflow pages. Raises ValueError."""
        length, at = _varint(page, at)
        _, at = _varint(page, at)
        if length > min(_LARGEST_ROW, len(self.data)):
            raise ValueError("no such row")
        most = self.usable - 35
        if length <= most:
            local = length
        else:
            least = (self.usable - 12) * 32 // 255 - 23
            local = least + (length - least) % (self.usable - 4)
            local = local if local <= most else least
        parts = [page[at : at + local]]
        missing = length - len(parts[0])
        more = int.from_bytes(page[at + local : at + local + 4], "big") if length > local else 0
        while missing > 0:
            overflow = self.page(more)
            part = overflow[4 : min(self.usable, 4 + missing)]
            if not part:
                raise ValueError("its end is missing")
            parts.append(part)
            missing -= len(part)
            more = int.from_bytes(overflow[:4], "big")
        return b"".join(parts)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where it ends). Raises ValueError."""
    value = 0
    for place in range(at, at + 9):
        if place >= len(data):
            raise ValueError("cut off")
        byte = data[place]
        if place == at + 8:
            return value << 8 | byte, place + 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    raise ValueError("unreachable")


_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


def _values(record: bytes) -> list[object]:
    """The values of a record; texts as bytes, blobs as None. Raises ValueError."""
    size, at = _varint(record, 0)
    if size > len(record):
        raise ValueError("no such record")
    kinds: list[int] = []
    while at < size:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values: list[object] = []
    for kind in kinds:
        if kind in (8, 9):
            values.append(kind - 8)
            continue
        if kind in (10, 11):
            raise ValueError("no such kind")
        length = _INTEGER_BYTES[kind] if kind < 7 else 8 if kind == 7 else (kind - 12) // 2
        part = record[at : at + length]
        if len(part) < length:
            raise ValueError("cut off")
        at += length
        if kind == 7:
            values.append(struct.unpack(">d", part)[0])
        elif kind == 0 or (kind >= 12 and kind % 2 == 0):
            values.append(None)
        else:
            values.append(part if kind >= 13 else int.from_bytes(part, "big", signed=True))
    return values
