"""The curves of runs that were logged (run_log.py): best so far of each agent and seed on a start program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.comparison import Curve, Point
from dojo_core.bounded_json import read_object
from dojo_core.measure.measurement import Effort

MOST_RUNS = 200
LONGEST = 16 << 20  # bytes of a log


def logged(folder: Path, start_hash: str, machine: str) -> list[Curve]:
    """The runs from a start program on a machine, newest first. What is no log is passed over."""
    if not folder.is_dir():
        return []
    files = sorted(folder.glob("*.jsonl"), key=lambda file: -file.stat().st_mtime)[:MOST_RUNS]
    curves = [_curve(file, start_hash, machine) for file in files if file.stat().st_size <= LONGEST]
    return [curve for curve in curves if curve is not None]


def _curve(file: Path, start_hash: str, machine: str) -> Curve | None:
    try:
        with file.open(encoding="utf-8") as lines:
            head = read_object(next(lines, "{}"))
            if (head.get("start"), head.get("machine")) != (
                start_hash,
                machine,
            ):
                return None
            return _read(head, [read_object(line, nonfinite=True) for line in lines if line.endswith("\n")])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read(head: dict[str, Any], entries: list[dict[str, Any]]) -> Curve:
    """Finalists are timed again at the end, with more effort: they are no part of the search's curve."""
    title = f"{head['kernel']} {head['shape']}".strip()
    points: list[Point] = []
    start = final = best = None
    seen: set[str] = set()
    for entry in entries:
        if "hash" not in entry:
            continue
        seconds = entry["seconds"] if entry["verified"] else None
        if entry["effort"] == Effort.FINAL.label:
            final = min(filter(None, (final, seconds)), default=None)
            continue
        seen.add(entry["hash"])
        if entry["hash"] == head["start"]:
            start = seconds
        if seconds is not None and (best is None or seconds < best):
            best = seconds
            points.append(Point(len(seen), float(entry["elapsed"]), best))
    if best is not None and points[-1].evaluation != len(seen):
        points.append(Point(len(seen), float(entries[-1].get("elapsed", points[-1].elapsed)), best))
    return Curve(title, str(head["agent"]), int(head["seed"]), start, tuple(points), final or best)
