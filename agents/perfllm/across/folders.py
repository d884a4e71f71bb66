"""What the folder of a loop tells of its teachers (loop.py writes it), without torch."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.files import write_text
from dojo_core.measure.places import data_directory

Problem = tuple[str, str]  # a kernel and its shape
EXPERTS = "experts.json"
LIBRARY = "library-"  # how folders of ``dojo train --library`` begin that nobody named


@dataclass(frozen=True)
class Teacher:
    """A problem's best after each round, in seconds; ``expert``: those of the heuristic pass, None where
    they were not taken."""

    kernel: str
    shape: str
    start: float
    best: tuple[float, ...]
    expert: float | None = None

    @property
    def fractions(self) -> list[float]:
        """Of the expert's speed after each round; empty without an expert."""
        return [self.expert / best for best in self.best] if self.expert else []


@dataclass(frozen=True)
class Told:
    """A loop: what it learns on, for which target, how many rounds have ended, programs measured so far."""

    target: str
    problems: tuple[Problem, ...]
    teachers: tuple[Teacher, ...]
    rounds: int
    evaluations: int

    def mean(self, after: int) -> float | None:
        """The geometric mean of the fractions of the expert's speed after a round, of all problems that have
        one; None where a teacher has not come so far or none has an expert."""
        with_expert = [teacher for teacher in self.teachers if teacher.expert]
        if not with_expert or any(len(teacher.best) <= after for teacher in with_expert):
            return None
        return math.exp(statistics.fmean(math.log(t.fractions[after]) for t in with_expert))


def libraries() -> Path:
    """Where ``dojo train --library`` puts its runs."""
    return data_directory() / "training"


def told(folder: Path) -> Told:
    """Raises ValueError with a sentence where the folder is none of a loop."""
    try:
        plan = read_object((folder / "run.json").read_bytes())
        problems = tuple((str(kernel), str(shape)) for kernel, shape in plan["problems"])
        target = str(plan["target"])
        experts = known_experts(folder)
        starts: dict[Problem, float] = {}
        best: dict[Problem, list[float]] = {}
        rounds = evaluations = 0
        for entry in _entries(folder / "rounds.jsonl"):
            if entry["event"] == "round":
                rounds += 1
                continue
            problem = entry["kernel"], entry["shape"]
            starts.setdefault(problem, float(entry["start"]))
            before = best.setdefault(problem, [])
            before.append(min([float(entry["best"]), *before[-1:]]))
            evaluations += int(entry["evaluations"])
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise ValueError(f"{folder} is no folder of a run of dojo train --library.") from fault
    teachers = tuple(Teacher(*p, starts[p], tuple(best[p]), experts.get(p)) for p in problems if p in best)
    return Told(target, problems, teachers, rounds, evaluations)


def known_experts(folder: Path) -> dict[Problem, float]:
    """Seconds of the heuristic pass on a loop's problems, as far as they were taken."""
    file = folder / EXPERTS
    if not file.exists():
        return {}
    written = read_object(file.read_bytes())
    return {(kernel, shape): float(s) for kernel, of in written.items() for shape, s in of.items()}


def write_experts(folder: Path, experts: Mapping[Problem, float]) -> None:
    """By kernel and shape, for ``known_experts``."""
    nested: dict[str, dict[str, float]] = {}
    for (kernel, shape), seconds in experts.items():
        nested.setdefault(kernel, {})[shape] = seconds
    write_text(folder / EXPERTS, json.dumps(nested, indent=1) + "\n")


def _entries(path: Path) -> Sequence[dict[str, Any]]:
    """The whole lines of a file that a loop may be writing."""
    entries: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            entries.append(read_object(line))
        except NotJson:
            break
    return entries
