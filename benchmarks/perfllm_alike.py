"""How often the best reward ahead and the sum of rewards ahead ask for the same move, in runs already played.

Max and plain Q-learning differ in what they choose only where these two differ. The log of a run has every
program that was measured with its moves, so the moves tried from each position and all that came after them
are known: what an agent would choose that had learned those without error.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agents.perfllm.settings import Settings

Line = tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """``positions`` from which several moves were tried; in ``same`` of them both ask for one move; ``lost``:
    the mean over all of how much slower, as a ratio, the best program behind the sum's move is."""

    runs: int
    positions: int
    same: int
    lost: float


def alike(logs: Iterable[Path], gamma: float = Settings().gamma) -> Alike:
    """Read the logs of runs."""
    runs = same = 0
    logarithms: list[float] = []
    for log in logs:
        rewards = _rewards(log)
        runs += 1
        for best, sums in _choices(rewards, gamma):
            chosen = max(best, key=lambda line: sums[line])
            same += best[chosen] == max(best.values())
            logarithms.append(math.log(max(best.values()) / best[chosen]))
    lost = math.exp(sum(logarithms) / len(logarithms)) - 1 if logarithms else 0.0
    return Alike(runs, len(logarithms), same, lost)


def _rewards(log: Path) -> dict[Line, float]:
    """The speed-up of every line that was measured, once each; 0 where its program did not run."""
    found: dict[Line, float] = {}
    start = math.inf
    for entry in map(json.loads, log.read_text().splitlines()):
        if entry.get("effort", "final") != "final":
            line, seconds = tuple(entry["line"]), entry["seconds"]
            if not line:
                start = seconds
            found.setdefault(line, start / seconds if seconds else 0.0)
    return found


def _choices(rewards: dict[Line, float], gamma: float) -> list[tuple[dict[Line, float], dict[Line, float]]]:
    """For each position from which several moves were tried: by the line after the move, the best reward
    ahead and the largest sum of rewards on a way ahead, both discounted."""
    after: dict[Line, set[Line]] = defaultdict(set)
    for line in rewards:
        for end in range(len(line)):
            after[line[:end]].add(line[: end + 1])
    best: dict[Line, float] = {}
    sums: dict[Line, float] = {}
    for line in sorted({*after, *rewards}, key=len, reverse=True):
        reward, ahead = rewards.get(line, 0.0), after.get(line, ())
        best[line] = max([reward, *(gamma * best[each] for each in ahead)])
        sums[line] = reward + max([0.0, *(gamma * sums[each] for each in ahead)])
    return [
        ({line: best[line] for line in tried}, {line: sums[line] for line in tried})
        for tried in after.values()
        if len(tried) > 1 and max(best[line] for line in tried) > 0
    ]
