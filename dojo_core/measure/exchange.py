"""Records to take along: measurements as JSON lines, one a line, and two databases made one.

Records of other machines keep their fingerprint, so their times are never ranked with this machine's. What
comes from outside is read within limits, and kept as a whole or not at all.
"""

from __future__ import annotations

import gzip
import json
import math
import tempfile
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.measure.conditions import worth
from dojo_core.measure.plausible import implausible
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse

VERSION = 1
BATCH = 500  # records of one transaction
LONGEST = 1 << 20  # bytes of a line
PACKED = b"\x1f\x8b"  # how a file of gzip begins
UNPACKED = 32 << 20  # bytes that a packed file may come to,
RATIO = 64  # and this for each of its own: records that are much alike shrink to a thirtieth
MOST_EMPTY = 10_000  # lines of a file without a record
PARSED = 200  # different programs of a file that are parsed; of the others the hash alone is checked

_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "float": (float, int), "float | None": (float, int, NoneType),
}  # fmt: skip
_FIELDS = {f.name: _KINDS[str(f.type)] for f in fields(Record) if f.name != "samples"}

_LATER = {"load": None, "exclusive": True}  # what lines of an older Dojo do not tell


class NoRecord(ValueError):
    """A line is no record of the Dojo; the message says which and why."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"Line {number} is no record of the Dojo: {why}. Nothing of the file was taken in.")


@dataclass(frozen=True)
class Taken:
    """What an import came to: measurements that were new, and those that were there already; ``refused``:
    rows of a database that no measurement can be."""

    new: int
    known: int
    refused: int = 0


def to_line(record: Record) -> str:
    """A record as a line of JSON."""
    content: dict[str, Any] = {"dojo record": VERSION}
    content.update({name: getattr(record, name) for name in _FIELDS})
    content["error"] = record.error if math.isfinite(record.error) else -1.0
    content["samples"] = [[s.nanoseconds, s.switches, s.faults] for s in record.samples]
    return json.dumps(content)


def from_line(text: str | bytes, number: int = 1) -> Record:
    """A record from its line. Raises NoRecord for what is none, or has values that no measurement has."""
    try:
        content = read_object(text, LONGEST)
    except NotJson as error:
        raise NoRecord(number, str(error)) from None
    if type(content.get("dojo record")) is not int or content["dojo record"] != VERSION:
        raise NoRecord(number, f'it does not begin with "dojo record": {VERSION}')
    values: dict[str, Any] = {}
    for name, kinds in _FIELDS.items():
        value = content.get(name, _LATER.get(name))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise NoRecord(number, f"{name} is {value!r:.40}")
        values[name] = float(value) if kinds[0] is float and isinstance(value, int) else value
    samples = content.get("samples")
    if not isinstance(samples, list) or not all(map(_is_sample, samples)):
        raise NoRecord(number, "its samples are not lists of nanoseconds, switches and faults")
    values["samples"] = tuple(Sample(float(ns), switches, faults) for ns, switches, faults in samples)
    record = Record(**values)
    why = implausible(record)
    if why:
        raise NoRecord(number, why)
    return record


def _is_sample(each: object) -> bool:
    return (
        isinstance(each, list)
        and len(each) == 3
        and all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in each)
        and all(isinstance(n, int) and n >= 0 for n in each[1:])
    )


def file_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, packed by gzip or not, each with its end. Raises NoRecord where it is damaged,
    where a line is too long, and where it unpacks to more than records do; keeps no more than a line of
    it."""
    packed = file.read(len(PACKED)) == PACKED
    file.seek(0)
    lines: BinaryIO = gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[assignment]
    number = taken = 0
    try:
        while line := lines.readline(LONGEST + 2):
            number += 1
            taken += len(line)
            if len(line) > LONGEST + 1:
                raise NoRecord(number, f"it is longer than {LONGEST >> 20} MiB")
            if packed and taken > UNPACKED + RATIO * file.tell():
                raise NoRecord(
                    number, f"the file unpacks to more than {RATIO} times its size, as records never do"
                )
            yield line
    except (EOFError, OSError, zlib.error) as error:
        if not packed or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise NoRecord(number + 1, "the packed file is damaged or cut off there") from None


def exported(records: Records, kernels: Collection[str] = (), best: int | None = None) -> Iterator[str]:
    """Measurements as lines, oldest first: all, or those of some kernels.

    ``best``: of each start program, policy, target and machine only the fastest verified programs, so many.
    """
    every = (record for record in _measurements(records) if not kernels or record.kernel in kernels)
    yield from map(to_line, every if best is None else _fastest(every, best))


def _measurements(records: Records) -> Iterator[Record]:
    since = 0
    while batch := records.measurements(since, BATCH):
        for since, record in batch:  # noqa: B007 (the last one is where the next batch begins)
            yield record


def _fastest(every: Iterable[Record], count: int) -> list[Record]:
    """A program counts once, with the time that is worth most."""
    fastest: dict[tuple[str, ...], dict[str, Record]] = {}
    for record in every:
        if record.verified and record.seconds is not None:
            key = (record.start_hash, record.policy, record.target, record.fingerprint)
            programs = fastest.setdefault(key, {})
            known = programs.get(record.program_hash)
            if known is None or _rank(record) < _rank(known):
                programs[record.program_hash] = record
            if len(programs) > count:
                del programs[max(programs, key=lambda hash: programs[hash].seconds or 0.0)]
    selected = [record for programs in fastest.values() for record in programs.values()]
    return sorted(selected, key=lambda record: record.time)


def _rank(record: Record) -> tuple[int, float]:
    return worth(record.conditions, time.time() - record.time), record.seconds or math.inf


def take_in(records: Records, lines: Iterable[str | bytes], claims: bool = False) -> Taken:
    """Keep the measurements of exported lines; what is there already is not kept twice.

    ``claims``: as times that nobody here has verified. Raises NoRecord at the first line that is none; then
    nothing is kept. They wait in a database of their own until all are read, not in memory.
    """
    return _store(records, _read(lines, claims))


def _store(records: Records, every: Iterable[Record]) -> Taken:
    count = 0
    with tempfile.TemporaryDirectory(prefix="import-", dir=records.path.parent) as folder:
        incoming = Path(folder) / "incoming.sqlite"
        with Records(incoming) as waiting:
            for batch in _batches(every):
                waiting.add_all(batch)
                count += len(batch)
        new = records.add_from(incoming)
    return Taken(new, count - new)


def _batches(every: Iterable[Record]) -> Iterator[list[Record]]:
    rest = iter(every)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _read(lines: Iterable[str | bytes], claims: bool) -> Iterator[Record]:
    parsed: set[str] = set()
    empty = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            empty += 1
            if empty > MOST_EMPTY:
                raise NoRecord(number, f"{MOST_EMPTY:,} lines before it are empty")
            continue
        record = from_line(line, number)
        if record.program_hash not in parsed and len(parsed) < PARSED:
            _check_program(record, number)
            parsed.add(record.program_hash)
        yield replace(record, verified=False) if claims else record


def _check_program(record: Record, number: int) -> None:
    try:
        parse(record.program_text)
    except TextError as error:
        raise NoRecord(number, f"its program cannot be read: {error.message}") from None


def merge(records: Records, other: Path) -> Taken:
    """Keep the measurements of another database of records; that one only gets the newest form. Its rows
    that no measurement can be are left out, and counted."""
    refused = 0

    def plausible() -> Iterator[Record]:
        nonlocal refused
        for record in _measurements(source):
            if implausible(record):
                refused += 1
            else:
                yield record

    with Records(other, mends=False) as source:
        taken = _store(records, plausible())
    return replace(taken, refused=refused)
