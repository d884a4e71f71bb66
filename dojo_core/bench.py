"""Side by side with others: interleaved rounds, each entry in a process of its own, on an exclusive machine.

In every round each entry runs ``SAMPLES`` times in its own pinned process; a ratio is taken within a round,
best run against best run, so that the machine's slow periods cancel. Baselines run with their documented
settings and with their memory reused.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dojo_core.game import Game
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurer import Effort, Measurer, Workload
from dojo_core.program.tree import Program

SAMPLES = 10  # runs of an entry in a round


@dataclass(frozen=True)
class Baseline:
    """Something to compare with: its name in a table, what exactly it is, and the script that runs it."""

    name: str
    details: str
    script: str


BASELINES = {
    "torch": Baseline("torch eager", "PyTorch {version} eager, memory reused", "baselines/torch_eager.py"),
}
_ROOT = Path(__file__).resolve().parent.parent


class BenchFailed(RuntimeError):
    """Our own entry could not be measured; the message says why."""


@dataclass(frozen=True)
class Entry:
    """One of ours: a name and the program."""

    name: str
    program: Program


@dataclass
class _Row:
    entry: str
    name: str
    ours: bool
    details: str = ""
    status: str = "ok"
    message: str = ""
    verified: bool = False
    rounds: list[list[float]] = field(default_factory=list)  # ns, per round

    def told(self, reference: _Row | None) -> dict[str, Any]:
        flat = [ns for each in self.rounds for ns in each]
        result: dict[str, Any] = {
            "name": self.name,
            "entry": self.entry,
            "details": self.details,
            "status": self.status if flat else (self.status if self.status != "ok" else "not measured"),
            "message": self.message,
            "verified": self.verified,
            "samples_ns": self.rounds,
        }
        if flat:
            result["min"] = min(flat) / 1e9
            result["median"] = statistics.median(flat) / 1e9
        if reference is not None and not self.ours and flat and reference.rounds:
            ratios = [min(b) / min(o) for b, o in zip(self.rounds, reference.rounds, strict=False)]
            result["ratio"] = {
                "median": statistics.median(ratios), "min": min(ratios), "max": max(ratios), "rounds": ratios,
            }  # fmt: skip
        return result


def pinned_environment() -> dict[str, str]:
    """Threads one per core, and memory that goes back to the process, not to the system: both for all."""
    threads = len(os.sched_getaffinity(0))
    return {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "OMP_PROC_BIND": "close",
        "OMP_PLACES": "cores",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }


class _BaselineProcess:
    """A baseline's process; speaks JSON lines."""

    def __init__(self, row: _Row, kernel: str, shape: str, sets: int) -> None:
        baseline = BASELINES[row.entry]
        self.row = row
        self.process = subprocess.Popen(
            [sys.executable, str(_ROOT / baseline.script), kernel, shape, str(sets)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=pinned_environment(),
            cwd=_ROOT,
            text=True,
        )
        ready = self.read()
        if ready.get("status") != "ok":
            row.status, row.message = "failed", str(ready.get("message", "it ended without an answer"))
        else:
            row.verified = bool(ready.get("verified"))
            row.details = baseline.details.format(version=ready["version"])

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            return {}
        return answer if isinstance(answer, dict) else {}

    def round(self) -> None:
        if self.row.status != "ok":
            return
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{SAMPLES}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.row.status, self.row.message = "failed", "its process ended"
            return
        samples = self.read().get("samples")
        if not samples:
            self.row.status, self.row.message = "failed", "its process ended"
            return
        self.row.rounds.append([float(ns) for ns in samples])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def run_bench(
    game: Game,
    ours: Sequence[Entry],
    against: Sequence[str],
    rounds: int,
    on_round: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Measure our entries and the baselines in interleaved rounds; a report as JSON-ready data.

    A baseline that is missing or fails is a row that says so. Raises BenchFailed where one of ours does.
    """
    machine = this_machine()
    workload = Workload(game.start, game.kernel, game.policy)
    rows = [_Row(e.name, f"ours: {e.name}", True) for e in ours]
    others: list[_BaselineProcess] = []
    with Measurer() as measurer:
        try:
            for entry, row in zip(ours, rows, strict=True):
                first = measurer.measure(workload, [entry.program], Effort.FINAL)[0]
                if first.status != "ok":
                    raise BenchFailed(f"Our {entry.name} of {game.title} is not measurable: {first.message}")
                row.verified = first.verified
            for name in against:
                row = _Row(name, BASELINES[name].name, False)
                rows.append(row)
                if game.kernel is None:
                    row.status, row.message = "missing", "A text of one's own has no counterpart there."
                    continue
                others.append(_BaselineProcess(row, game.kernel, game.shape, measurer.input_sets))
            for _ in range(rounds):
                for entry, row in zip(ours, rows, strict=False):
                    again = measurer.measure(workload, [entry.program], Effort.ROUND, fresh=True)[0]
                    if again.status != "ok":
                        raise BenchFailed(f"Our {entry.name} failed: {again.message}")
                    row.rounds.append(list(again.samples))
                for other in others:
                    with measuring():
                        other.round()
                on_round()
        finally:
            for other in others:
                other.close()
    reference = rows[0] if ours else None
    return {
        "kernel": game.kernel or game.start.name,
        "shape": game.shape,
        "policy": game.policy,
        "line": [str(p.move) for p in game.line()[1:]],
        "program": game.current.program.text,
        "rounds": rounds,
        "samples": SAMPLES,
        "machine": machine.details,
        "machine_summary": machine.summary,
        "entries": [row.told(reference) for row in rows],
    }
