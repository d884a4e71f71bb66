"""Agents side by side: best-so-far of several seeds on several kernels, and how sure the difference is.

Source: PerfDojo, SC '25, figure 13; F. Wilcoxon, Biometrics Bulletin 1945.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.agent import Event
from agents.outside import Answer, cost_of


@dataclass(frozen=True)
class Point:
    """The best so far: after so many evaluations, so many seconds, its time in seconds."""

    evaluation: int
    elapsed: float
    best: float


@dataclass(frozen=True)
class Curve:
    """One run: an agent with a seed on a kernel.

    ``start``: seconds of the start position, None where the agent never measured it; ``final``: the best of
    the finalists, timed again, None where nothing ran; ``line``: its moves, from the start program on;
    ``tokens`` and ``cost``: of a language model's run.
    """

    kernel: str
    agent: str
    seed: int
    start: float | None
    points: tuple[Point, ...]
    final: float | None
    line: tuple[str, ...] = ()
    tokens: int | None = None
    cost: float | None = None

    @property
    def programs(self) -> int:
        """How many were measured."""
        return self.points[-1].evaluation if self.points else 0

    @staticmethod
    def of(
        kernel: str,
        agent: str,
        seed: int,
        events: Iterable[Event],
        before: int = 0,
        answers: Sequence[Answer] = (),
    ) -> Curve:
        """The curve of a run's events: a point wherever the best got better, and the last one.

        ``before``: moves that led to the start position; ``answers``: what the agent was answered from
        outside.
        """
        start = final = None
        points: list[Point] = []
        line: tuple[str, ...] = ()
        ended: Point | None = None
        for event in events:
            final = event.best.seconds if event.best is not None else None
            line = tuple(map(str, event.best.line)) if event.best is not None else ()
            if len(event.line) == before and not event.final:
                start = event.measurement.seconds
            if event.final or event.best is None:
                continue
            ended = Point(event.evaluation, round(event.seconds, 3), event.best.seconds)
            if not points or ended.best < points[-1].best:
                points.append(ended)
        if ended is not None and ended != points[-1]:
            points.append(ended)
        tokens = sum(answer.tokens for answer in answers) if answers else None
        return Curve(kernel, agent, seed, start, tuple(points), final, line, tokens, cost_of(answers))


@dataclass(frozen=True)
class Summary:
    """An agent over all kernels.

    ``speedup``: geometric mean, over kernels, of the reference's median final time over this agent's; ``p``:
    one-sided Wilcoxon signed-rank test, paired by kernel and seed, that this agent's times are shorter, None
    for the reference itself or without pairs.
    """

    agent: str
    kernels: int
    speedup: float
    better: int  # pairs in which it was faster
    pairs: int
    p: float | None


def summaries(curves: Sequence[Curve], reference: str) -> list[Summary]:
    """Each agent against a reference agent, on the kernels that both finished."""
    finals = {(c.kernel, c.agent, c.seed): c.final for c in curves if c.final is not None}
    agents = list(dict.fromkeys(c.agent for c in curves))
    kernels = list(dict.fromkeys(c.kernel for c in curves))
    results = []
    for agent in agents:
        ratios, pairs = [], []
        for kernel in kernels:
            times = [t for (k, a, _), t in finals.items() if (k, a) == (kernel, agent)]
            other = [t for (k, a, _), t in finals.items() if (k, a) == (kernel, reference)]
            if times and other:
                ratios.append(statistics.median(other) / statistics.median(times))
            for (k, a, seed), seconds in finals.items():
                against = finals.get((kernel, reference, seed))
                if (k, a) == (kernel, agent) and against is not None:
                    pairs.append(math.log(against / seconds))
        if ratios:
            p = None if agent == reference else wilcoxon(pairs)
            better = sum(d > 0 for d in pairs)
            results.append(
                Summary(agent, len(ratios), statistics.geometric_mean(ratios), better, len(pairs), p)
            )
    return results


def wilcoxon(differences: Sequence[float]) -> float | None:
    """The probability of a sum of positive ranks at least this large, were each sign as likely as the other.

    Exact, ties and all, by counting the sums of subsets of the ranks; zero differences are left out, as
    Wilcoxon does. None where no difference is left.
    """
    nonzero = sorted((d for d in differences if d), key=abs)
    if not nonzero:
        return None
    ranks: list[int] = []  # doubled, so that the mean rank of a tie is whole
    begin = 0
    while begin < len(nonzero):
        end = begin
        while end < len(nonzero) and abs(nonzero[end]) == abs(nonzero[begin]):
            end += 1
        ranks += [begin + 1 + end] * (end - begin)
        begin = end
    observed = sum(rank for rank, d in zip(ranks, nonzero, strict=True) if d > 0)
    ways = [1] + [0] * sum(ranks)  # subsets by their sum
    for rank in ranks:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return float(sum(ways[observed:]) / 2 ** len(ranks))


def as_json(curves: Sequence[Curve], results: Sequence[Summary], reference: str) -> dict[str, Any]:
    """All of it as data for a file."""
    return {
        "dojo comparison": 1,
        "reference": reference,
        "curves": [asdict(curve) for curve in curves],
        "summaries": [asdict(summary) for summary in results],
    }


def from_json(data: dict[str, Any]) -> list[Curve]:
    """The curves of a file written before. Raises ValueError, KeyError or TypeError where it holds none."""
    return [
        Curve(
            str(curve["kernel"]),
            str(curve["agent"]),
            int(curve["seed"]),
            positive(curve["start"]),
            tuple(
                Point(int(point["evaluation"]), float(point["elapsed"]), _time(point["best"]))
                for point in curve["points"]
            ),
            positive(curve["final"]),
            tuple(map(str, curve.get("line", ()))),
            None if curve.get("tokens") is None else int(curve["tokens"]),
            None if curve.get("cost") is None else float(curve["cost"]),
        )
        for curve in data["curves"]
    ]


def positive(value: float | None) -> float | None:
    """A time of a file, or none. Raises ValueError or TypeError where it is neither."""
    return None if value is None else _time(value)


def _time(value: float) -> float:
    seconds = float(value)
    if not seconds > 0:
        raise ValueError("no time")
    return seconds
