"""What players come to on kernels that were left out of what a policy learned on: the runs that ``python -m
benchmarks.carryover run`` writes, as fractions of the expert's speed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.intervals import RESAMPLED, interval
from dojo_core.bounded_json import read_object

Run = dict[str, Any]
WORDS = {"by_kernel": "the kernel", "by_family": "its whole family"}  # what a scheme leaves out


@dataclass(frozen=True)
class Curve:
    """A player on kernels left out: at each of ``budgets`` programs measured the fraction of the expert's
    speed, its geometric mean over kernels and that one's 95% interval."""

    player: str
    runs: int
    budgets: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def read(path: Path) -> tuple[tuple[int, ...], list[Run]]:
    """Numbers of programs, and the runs with their best at each of them; none where there is no file yet."""
    if not path.exists():
        return (), []
    written = read_object(path.read_bytes())
    return tuple(written["budgets"]), list(written["runs"])


def schemes(runs: Sequence[Run]) -> list[str]:
    """What was left out in runs of a policy: ``by_kernel``, ``by_family``."""
    return list(dict.fromkeys(run["scheme"] for run in runs if run["player"] == "policy"))


def of_scheme(runs: Sequence[Run], scheme: str) -> list[Run]:
    """The runs on the kernels that a scheme's policies were tried on, also of players that learn nothing."""
    kernels = {r["kernel"] for r in runs if r["player"] == "policy" and r["scheme"] == scheme}
    return [run for run in runs if run["kernel"] in kernels and run["scheme"] in ("", scheme)]


def by_player(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Policies apart by what reads programs for them."""
    players: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        players[f"{run['player']} ({run['reader']})" if run["reader"] else run["player"]].append(run)
    return players


def curves(budgets: Sequence[int], runs: Sequence[Run], resampled: int = RESAMPLED) -> list[Curve]:
    """Of each player one."""
    told = []
    for player, own in by_player(runs).items():
        points = []
        for at in range(len(budgets)):
            kernels: dict[str, list[float]] = defaultdict(list)
            for each in own:
                kernels[each["kernel"]].append(math.log(each["expert"] / each["best"][at]))
            points.append(interval(list(kernels.values()), resampled))
        mean, low, high = zip(*points, strict=True)
        told.append(Curve(player, len(own), tuple(budgets), mean, low, high))
    return told
