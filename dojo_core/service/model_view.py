"""What is known of a model's kernels: their times, their share of the whole, what is worth doing next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dojo_core.bench.roofline import Roofline
from dojo_core.graph.graph import Graph
from dojo_core.measure.measurement import seconds_text

UNDER_WAY = ("waiting", "measuring")  # states of a kernel
ENOUGH = 0.9  # of the machine's limit: nothing is left that a game could gain


@dataclass(frozen=True)
class KernelView:
    """A kernel of a model. Seconds are of one run, measured alone.

    ``start`` is its start program's time, ``seconds`` that of the fastest verified program, which ``moves``
    lead to and ``player`` came to first; ``busy``: taken on a busy machine. ``rival`` is the time of the
    framework that ``rival_by`` names. ``state`` is empty, ``waiting``, ``measuring`` or ``failed``, and
    ``message`` says why it failed.
    """

    name: str
    calls: int
    nodes: tuple[str, ...]  # of its first call
    shape: str  # of what it gives
    start: float | None = None
    seconds: float | None = None
    busy: bool = False
    moves: int | None = None
    player: str = ""
    limit: Roofline | None = None
    rival: float | None = None
    rival_by: str = ""
    state: str = ""
    message: str = ""

    @property
    def total(self) -> float | None:
        """Seconds of all its calls in one run of the model."""
        return None if self.seconds is None else self.calls * self.seconds

    @property
    def of_limit(self) -> float | None:
        """Its share of what the machine can do, 0 to 1."""
        if self.seconds is None or self.limit is None:
            return None
        return min(1.0, self.limit.seconds / self.seconds)

    @property
    def beside_rival(self) -> float | None:
        """How many times as fast as the framework it is."""
        return None if self.seconds is None or self.rival is None else self.rival / self.seconds

    @property
    def to_gain(self) -> float | None:
        """Seconds that a run of the model would take less, ran it at the machine's limit."""
        if self.total is None or self.of_limit is None:
            return None
        return self.total * (1 - self.of_limit)


@dataclass(frozen=True)
class ModelView:
    """A model as a page shows it; ``kernels`` by name, in the order of their first calls."""

    id: str
    title: str
    graph: Graph
    kernels: Mapping[str, KernelView]
    measuring: bool = False
    down: str = ""  # why nothing can be measured

    @property
    def timed(self) -> Sequence[KernelView]:
        """Those with a time, what takes longest first."""
        known = [(each.total, each) for each in self.kernels.values() if each.total is not None]
        return [each for _, each in sorted(known, key=lambda pair: -pair[0])]

    @property
    def seconds(self) -> float:
        """Of all calls that have a time, one after the other, each measured alone."""
        return math.fsum(each.total or 0.0 for each in self.timed)

    @property
    def start(self) -> float | None:
        """The same of the start programs; None until all have a time."""
        return _whole([(each.calls, each.start) for each in self.kernels.values()])

    @property
    def rival(self) -> float | None:
        """The same of the framework, kernel by kernel; None unless it has a time of each."""
        return _whole([(each.calls, each.rival) for each in self.kernels.values()])

    @property
    def rival_by(self) -> str:
        """Which framework that is, where it has a time of any kernel."""
        return next((each.rival_by for each in self.kernels.values() if each.rival_by), "")

    def share(self, kernel: str) -> float | None:
        """Of the time of the whole, 0 to 1: of all that is timed so far."""
        total = self.kernels[kernel].total
        return None if total is None or not self.seconds else total / self.seconds

    @property
    def worst(self) -> list[KernelView]:
        """Those with something to gain, where most is to be gained first."""
        gains = [(each.to_gain, each) for each in self.timed if each.to_gain is not None]
        left = [(gain, each) for gain, each in gains if (each.of_limit or 0.0) < ENOUGH]
        return [each for _, each in sorted(left, key=lambda pair: -pair[0])]


def _whole(times: Sequence[tuple[int, float | None]]) -> float | None:
    """Seconds of all calls, from the number and the seconds of each kernel's; None until all are known."""
    known = [calls * seconds for calls, seconds in times if seconds is not None]
    return math.fsum(known) if times and len(known) == len(times) else None


@dataclass(frozen=True)
class Advice:
    """The next thing worth doing, as a sentence; ``kernel`` is the one that it is about."""

    sentence: str
    kernel: str = ""


def advice(view: ModelView) -> Advice:
    """What to do next with a model."""
    untimed = len(view.kernels) - len(view.timed)
    going_on = [each for each in view.kernels.values() if each.state in UNDER_WAY and each.seconds is None]
    failed = [each for each in view.kernels.values() if each.state == "failed" and each.seconds is None]
    if not view.kernels:
        return Advice("Nothing of this model is computed when it runs: all of it is known beforehand.")
    if view.measuring and going_on:
        done = len(view.kernels) - len(going_on)
        return Advice(f"Measuring: {done} of {len(view.kernels)} kernels have a time.")
    limited = sum(each.limit is not None for each in view.timed)
    if view.measuring and limited < len(view.timed):
        return Advice(f"Measuring what the machine can do: {limited} of {len(view.timed)} limits are known.")
    if untimed == len(view.kernels) and not failed:
        return Advice("Measure first: the pass plays each kernel, and every program is verified and timed.")
    if untimed > len(failed):
        return Advice(f"{len(view.timed)} of {len(view.kernels)} kernels have a time: measure the others.")
    if failed:
        first = failed[0]
        return Advice(f"{first.name} could not be measured: {first.message}", first.name)
    if view.worst:
        worst = view.worst[0]
        share, left = view.share(worst.name) or 0.0, worst.to_gain or 0.0
        return Advice(
            f"{worst.name} takes {share:.0%} of the time and runs at {worst.of_limit:.0%} of the machine's "
            f"limit: up to {seconds_text(left)} of {seconds_text(view.seconds)} are to be gained there.",
            worst.name,
        )
    longest = view.timed[0]
    if any(each.limit is None for each in view.timed):
        share = view.share(longest.name) or 0.0
        return Advice(f"{longest.name} takes {share:.0%} of the time.", longest.name)
    return Advice(f"Every kernel runs at {ENOUGH:.0%} of the machine's limit or more: well played.")
