"""Which searches cross plateaus: ``python -m benchmarks.search plateaus --of docs/search/compare.json``.

Most moves change no time, and many make a program slower before another makes it fast. The best line of
each run of a comparison is played again and every position of it timed. The moves in a row that bring no gain
of 5 % before the one that does are the plateau that was crossed. The times go to FOLDER/plateaus.json, the
table to the terminal, as Markdown.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.comparison import Curve, from_json
from dojo_core.cli.positions import played
from dojo_core.cli.records import opened
from dojo_core.targets.cpu.measurer import Effort, Measurer, Workload

GAIN = 1.05  # a position that is faster by less is no step ahead
LONG = 5  # moves without one


@dataclass(frozen=True)
class Crossing:
    """Of a line: the most moves in a row that led nowhere before a gain, and the slowest position among
    those before a gain, in times of the best until then."""

    flat: int
    valley: float


def crossing(seconds: Sequence[float]) -> Crossing:
    """What a line crossed, by the seconds of its positions, the start first; infinite: it does not run.

    What follows the last gain is no crossing: it led nowhere.
    """
    best, since, worst = seconds[0], 0, 1.0
    flat, valley = 0, 1.0
    for took in seconds[1:]:
        if took < best / GAIN:
            flat, valley = max(flat, since), max(valley, worst)
            best, since, worst = took, 0, 1.0
        else:
            since, worst = since + 1, max(worst, took / best)
    return Crossing(flat, valley)


def measured(curves: Sequence[Curve]) -> list[list[float]]:
    """Seconds of every position of each run's best line."""
    found = []
    with opened() as records, Measurer(records) as measurer:
        for curve in curves:
            kernel, shape = curve.kernel.split()
            game = played(kernel, shape)
            programs = [game.current.program]
            for move in curve.line:
                game.play(move)
                programs.append(game.current.program)
            workload = Workload(game.start, kernel, game.policy)
            times = measurer.measure(workload, programs, Effort.QUICK)
            found.append([t.seconds if t.status == "ok" and t.seconds else math.inf for t in times])
            print(f"{curve.kernel} {curve.agent} {curve.seed}: {crossing(found[-1])}", flush=True)
    return found


def table(curves: Sequence[Curve], seconds: Sequence[Sequence[float]]) -> str:
    """By agent: runs, moves of the best line, plateaus and valleys crossed, speed-up over the start."""
    lines = [
        "| agent | runs | moves of the best line | longest plateau crossed: median, most "
        f"| runs that crossed {LONG} moves | deepest valley: median, most | faster than the start |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for agent in dict.fromkeys(curve.agent for curve in curves):
        own = [(c, s) for c, s in zip(curves, seconds, strict=True) if c.agent == agent]
        crossed = [crossing(s) for _, s in own]
        flat, valley = [c.flat for c in crossed], [c.valley for c in crossed]
        gained = statistics.geometric_mean(s[0] / min(s) for _, s in own)
        lines.append(
            f"| {agent} | {len(own)} | {statistics.median(len(c.line) for c, _ in own):g} "
            f"| {statistics.median(flat):g}, {max(flat)} | {sum(n >= LONG for n in flat)} "
            f"| {statistics.median(valley):.2g}×, {max(valley):.2g}× | {gained:.3g}× |"
        )
    return "\n".join(lines)


def main(source: Path, folder: Path) -> None:
    """Measure the lines of a comparison that runs of this version wrote."""
    curves = [curve for curve in from_json(json.loads(source.read_text())) if curve.line]
    seconds = measured(curves)
    folder.mkdir(parents=True, exist_ok=True)
    told = [
        {
            "kernel": c.kernel,
            "agent": c.agent,
            "seed": c.seed,
            "seconds": [None if math.isinf(t) else t for t in s],
        }
        for c, s in zip(curves, seconds, strict=True)
    ]
    (folder / "plateaus.json").write_text(json.dumps(told) + "\n")
    print(table(curves, seconds))
