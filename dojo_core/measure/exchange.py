"""Records to take along: measurements as JSON lines, one a line, and two databases made one.

Records of other machines keep their fingerprint, so their times are never ranked with this machine's.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any

from dojo_core.measure.conditions import worth
from dojo_core.measure.measurement import STATUSES
from dojo_core.measure.records import Record, Records, Sample

VERSION = 1
BATCH = 500  # records of one transaction
LONGEST = 1 << 20  # characters of a line

_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,), "bool": (bool,), "float": (float, int), "float | None": (float, int, NoneType),
}  # fmt: skip
_FIELDS = {f.name: _KINDS[str(f.type)] for f in fields(Record) if f.name != "samples"}

_LATER = {"load": None, "exclusive": True}  # what lines of an older Dojo do not tell


class NoRecord(ValueError):
    """A line is no record of the Dojo; the message says which and why."""


@dataclass(frozen=True)
class Taken:
    """What an import came to: measurements that were new, and those that were there already."""

    new: int
    known: int


def to_line(record: Record) -> str:
    """A record as a line of JSON."""
    told: dict[str, Any] = {"dojo record": VERSION}
    told.update({name: getattr(record, name) for name in _FIELDS})
    told["error"] = record.error if math.isfinite(record.error) else -1.0
    told["samples"] = [[s.nanoseconds, s.switches, s.faults] for s in record.samples]
    return json.dumps(told)


def from_line(text: str, number: int = 1) -> Record:
    """A record from its line. Raises NoRecord."""

    def wrong(why: str) -> NoRecord:
        return NoRecord(
            f"Line {number} is no record of the Dojo: {why}. Nothing from this line on was taken in."
        )

    if len(text) > LONGEST:
        raise wrong("it is longer than 1 MiB")
    try:
        told = json.loads(text)
    except ValueError:
        raise wrong("it is not JSON") from None
    if not isinstance(told, dict) or told.get("dojo record") != VERSION:
        raise wrong(f'it does not begin with "dojo record": {VERSION}')
    values: dict[str, Any] = {}
    for name, kinds in _FIELDS.items():
        value = told.get(name, _LATER.get(name))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise wrong(f"{name} is {value!r:.40}")
        if isinstance(value, float) and not math.isfinite(value):
            raise wrong(f"{name} is {value}")
        values[name] = float(value) if kinds[0] is float and isinstance(value, int) else value
    samples = told.get("samples")
    if not isinstance(samples, list) or not all(_sample(each) for each in samples):
        raise wrong("its samples are not lists of nanoseconds, switches and faults")
    if values["status"] not in STATUSES or (values["seconds"] is not None and values["seconds"] <= 0):
        raise wrong("its status or its time is none")
    if values["verified"] and (values["status"] != "ok" or not samples):
        raise wrong("it is verified without a time")
    if values["load"] is not None and not 0 <= values["load"] <= 1:
        raise wrong("its load is no share of the cores, from 0 to 1")
    if values["time"] <= 0:
        raise wrong("it has no date")
    values["samples"] = tuple(Sample(float(ns), switches, faults) for ns, switches, faults in samples)
    return Record(**values)


def _sample(each: object) -> bool:
    return (
        isinstance(each, list)
        and len(each) == 3
        and all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in each)
        and all(isinstance(n, int) and n >= 0 for n in each[1:])
        and math.isfinite(each[0])
        and each[0] > 0
    )


def exported(records: Records, kernels: Collection[str] = (), best: int | None = None) -> Iterator[str]:
    """Measurements as lines, oldest first: all, or those of some kernels.

    ``best``: of each start program, policy, target and machine only the fastest verified programs, so many.
    """
    every = (record for record in _measurements(records) if not kernels or record.kernel in kernels)
    yield from map(to_line, every if best is None else _fastest(every, best))


def _measurements(records: Records) -> Iterator[Record]:
    since = 0
    while found := records.measurements(since, BATCH):
        for since, record in found:  # noqa: B007 (the last one is where the next batch begins)
            yield record


def _fastest(every: Iterable[Record], count: int) -> list[Record]:
    """A program counts once, with the time that is worth most."""
    kept: dict[tuple[str, ...], dict[str, Record]] = {}
    for record in every:
        if record.verified and record.seconds is not None:
            key = (record.start_hash, record.policy, record.target, record.fingerprint)
            programs = kept.setdefault(key, {})
            known = programs.get(record.program_hash)
            if known is None or _rank(record) < _rank(known):
                programs[record.program_hash] = record
            if len(programs) > count:
                del programs[max(programs, key=lambda hash: programs[hash].seconds or 0.0)]
    found = [record for programs in kept.values() for record in programs.values()]
    return sorted(found, key=lambda record: record.time)


def _rank(record: Record) -> tuple[int, float]:
    return worth(record.conditions, time.time() - record.time), record.seconds or math.inf


def take_in(records: Records, lines: Iterable[str]) -> Taken:
    """Keep the measurements of exported lines; what is there already is not kept twice.

    Raises NoRecord at the first line that is none; what came before it has been kept.
    """
    new = count = 0
    batch: list[Record] = []
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                batch.append(from_line(line, number))
                count += 1
            if len(batch) == BATCH:
                new += records.add_all(batch)
                batch = []
    finally:
        new += records.add_all(batch)
    return Taken(new, count - new)


def merge(records: Records, other: Path) -> Taken:
    """Keep the measurements of another database of records; that one only gets the newest form."""
    with Records(other) as source:
        return take_in(records, exported(source))
