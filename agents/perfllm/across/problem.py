"""A kernel in a shape, what its programs take, and what a search may spend on it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from agents.agent import Proposals, Task
from agents.timing import Timing
from agents.trail import Trail
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort


class Costs:
    """Seconds by program hash, infinite where one failed; kept in a file of JSON lines as they come.

    A line that a killed process left half written is cut off.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._seconds: dict[str, float] = {}
        self._file: IO[str] | None = None
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = 0
        for line in path.open("rb") if path.exists() else ():
            try:
                entry = read_object(line)
            except NotJson:
                break
            whole += len(line)
            took = entry["seconds"]
            self._seconds[entry["program"]] = math.inf if took is None else float(took)
        self._file = path.open("a")
        self._file.truncate(whole)

    def __contains__(self, program_hash: str) -> bool:
        return program_hash in self._seconds

    def __getitem__(self, program_hash: str) -> float:
        return self._seconds[program_hash]

    def __len__(self) -> int:
        return len(self._seconds)

    def put(self, program_hash: str, seconds: float) -> None:
        self._seconds[program_hash] = seconds
        if self._file is not None:
            took = seconds if math.isfinite(seconds) else None
            self._file.write(json.dumps({"program": program_hash, "seconds": took}) + "\n")
            self._file.flush()


@dataclass
class Problem:
    """A game's position to be made fast. What a program takes is asked once of ``timing``, and kept."""

    game: Game
    timing: Timing
    costs: Costs = field(default_factory=Costs)

    @property
    def name(self) -> str:
        return f"{self.game.kernel} {self.game.shape}"

    @property
    def start(self) -> Trail:
        return Trail.at(self.game)

    def seconds(self, trails: Sequence[Trail]) -> list[float]:
        """What each line's last program takes, verified; infinite where it failed."""
        new = {t.program.hash: t for t in trails if t.program.hash not in self.costs}
        if new:
            before = Task(self.game).before
            lines = {key: "\n".join(map(str, (*before, *t.moves))) for key, t in new.items()}
            programs = [t.program for t in new.values()]
            measured = self.timing.measure(
                Task(self.game).workload, programs, lines, Effort.QUICK, lambda: False
            )
            for each in measured:
                works = each.seconds is not None and each.verified
                self.costs.put(each.program_hash, each.seconds if works and each.seconds else math.inf)
        return [self.costs[t.program.hash] for t in trails]


def spend(search: Proposals, problem: Problem, evaluations: int) -> list[float]:
    """Let a search measure so many different programs: the best time after each of them.

    Programs whose times the problem knows from before count like others, so that what a search comes to
    hangs on its seed alone.
    """
    best: list[float] = []
    asked: set[str] = set()
    try:
        batch = next(search)
        while len(asked) < evaluations:
            answer = problem.seconds(batch)
            for trail, seconds in zip(batch, answer, strict=True):
                if trail.program.hash not in asked:
                    asked.add(trail.program.hash)
                    best.append(min(seconds, best[-1]) if best else seconds)
            batch = search.send(answer)  # it hears of the last ones too
    except StopIteration:
        pass
    search.close()
    return best[:evaluations]
