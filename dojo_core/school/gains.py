"""What a puzzle's moves gain: kept beside its file, by machine, in the form of a study's times.

The gain of a move is its position's time over that of what it leads to, with the interval that holds it. On a
target whose clock is a model's the numbers are exact, and are computed again where a puzzle is answered.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.speed import Speed
from dojo_core.program.tree import Program
from dojo_core.study.times import Times, read_times, times_file
from dojo_core.targets.measurers import Measurers
from dojo_core.targets.registry import backend

STEP = 20  # what is asked for is told in twentieths


@dataclass(frozen=True)
class Gains:
    """The gains of a position's moves on one machine, by the hash of the program that each leads to."""

    machine: str = ""
    date: str = ""
    by_program: Mapping[str, Speed] = field(default_factory=dict)


NONE = Gains()


def gains_beside(file: Path) -> list[Times]:
    """The times that stand beside a file of puzzles, none where there are none. Raises TextError."""
    beside = times_file(file)
    return read_times(beside.read_text(encoding="utf-8")) if beside.exists() else []


def gains_of(times: Sequence[Times], position: str) -> Gains:
    """Those of a position, by its hash, on the first machine that timed it."""
    for each in times:
        rows = each.speeds.get(position)
        if rows:
            speeds = {name: Speed(row[1], row[2], row[3], row[4], True) for name, row in rows.items()}
            return Gains(each.machine, each.date, speeds)
    return NONE


@lru_cache(maxsize=256)
def computed(workload: Workload, after: Program) -> Speed | None:
    """The exact gain of what a move leads to over the workload's start, on a target whose clock is a model's;
    None on other targets, and where the program does not run."""
    if not backend(workload.target).clock().exact:
        return None
    measurers = Measurers(None)
    try:
        measured = measurers.of(workload.target).measure(workload, [workload.start, after], Effort.QUICK)
    finally:
        measurers.close()
    before, now = (each.seconds for each in measured)
    if before is None or now is None:
        return None
    return Speed(before / now, before / now, before / now, 0, True)


def puzzle_key(program: str, target: str, policy: str) -> str:
    """What names a puzzle wherever it stands: its position by its hash, and what it is played for."""
    return hashlib.sha256(f"{program} {target} {policy}".encode()).hexdigest()[:16]


def below(gain: float) -> float:
    """The largest twentieth that a gain reaches."""
    return math.floor(gain * STEP + 1e-9) / STEP
