"""A comparison's entries as rows: medians of the rounds with their intervals; and as CSV.

Of each round one number counts, the shortest run: times, speeds and shares of the limit all stand on it,
so that they say the same.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

from dojo_core.measure.confidence import Median, median, ratio


@dataclass(frozen=True)
class Line:
    """An entry. Times in seconds: ``best`` of all runs, ``middle`` the median of the rounds' shortest runs;
    ``speed`` is the reference's time over this one's within rounds, ``share`` of the machine's limit. Where
    there is no time, ``message`` says why."""

    name: str
    kind: str
    status: str
    message: str
    details: str
    best: float | None = None
    middle: Median | None = None
    speed: Median | None = None
    share: float | None = None
    rounds: tuple[tuple[float, ...], ...] = ()  # ns


def shown_name(entry: dict[str, Any]) -> str:
    """An entry's name without the word that says it is ours."""
    return str(entry["name"]).removeprefix("ours: ")


def lines(report: dict[str, Any], reference: str) -> list[Line]:
    """The entries in their order; ``reference`` is the name of the one that speeds are against."""
    known = {shown_name(e): e["samples_ns"] for e in report["entries"] if e["status"] == "ok"}
    lines = []
    for entry in report["entries"]:
        name = shown_name(entry)
        described = (name, entry["kind"], entry["status"], entry["message"], entry["details"])
        flat = [ns / 1e9 for each in entry["samples_ns"] for ns in each]
        if entry["status"] != "ok" or not flat:
            lines.append(Line(*described))
            continue
        against = known.get(reference)
        speed = ratio(entry["samples_ns"], against) if against is not None else None
        rounds = tuple(tuple(each) for each in entry["samples_ns"])
        # Samples of a round are not independent of each other: the rounds are what is repeated.
        middle = median([min(each) / 1e9 for each in rounds if each])
        lines.append(Line(*described, min(flat), middle, speed, entry.get("share"), rounds))
    return lines


def as_csv(document: dict[str, Any]) -> str:
    """Every sample: entry, kind, status, round, nanoseconds, with the machine's fingerprint on each row."""
    report = document["reports"][0]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["kernel", "shape", "entry", "kind", "status", "message", "round", "ns", "fingerprint", "machine"]
    )
    for entry in report["entries"]:
        head = [report["kernel"], report["shape"], shown_name(entry), entry["kind"], entry["status"]]
        head.append(entry["message"])
        tail = [document["fingerprint"], report["machine_summary"]]
        samples: list[tuple[object, object]] = [
            (number, ns) for number, each in enumerate(entry["samples_ns"], 1) for ns in each
        ]  # fmt: skip
        for number, ns in samples or [("", "")]:
            writer.writerow([*map(_cell, head), number, ns, *tail])
    return out.getvalue()


def _cell(text: str) -> str:
    """A spreadsheet takes what begins so for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text
