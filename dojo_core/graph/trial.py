"""A model tried out on drawn inputs: is it right, how long does it take, and where does the time go?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from dojo_core.graph.graph import Graph
from dojo_core.graph.run import Model, Share
from dojo_core.measure.pool import draw, to_double
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.tree import Domain

Values = np.ndarray[Any, Any]

# How far an output may be from that of the start programs, against the largest magnitude in it: sums in
# another order, several layers deep.
TOLERANCE = {"f64": 1e-9, "f32": 1e-3, "f16": 3e-2, "bf16": 1e-1}
RUNS, SECONDS = 10, 2.0  # of a timing, at least and about
ROUNDS, ROUND_SECONDS = 9, 0.2  # of two in turns


def drawn_inputs(graph: Graph, seed: int = 0) -> dict[str, Values]:
    """Random inputs by the model's names, as they are stored; what places are made of lies within."""
    rng = np.random.default_rng(seed)
    inputs: dict[str, Values] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        domain = None if tensor.domain is None else Domain(name, *tensor.domain)
        inputs[graph.label(name)] = draw(tensor.dtype, tensor.shape, rng, domain)
    return inputs


@dataclass(frozen=True)
class Deviation:
    """How far an output is from what it should be: ``largest`` against the largest magnitude (of integers
    the part of elements that differ), and how far it may be."""

    output: str
    largest: float
    allowed: float

    @property
    def right(self) -> bool:
        return self.largest <= self.allowed  # NaN is not


def deviations(graph: Graph, given: Mapping[str, Values], wanted: Mapping[str, Values]) -> list[Deviation]:
    """Of each output, by the model's names."""
    found: list[Deviation] = []
    for name in graph.outputs:
        label, dtype = graph.label(name), graph.tensors[name].dtype
        if dtype not in FLOATS:
            unlike = float(np.mean(given[label] != wanted[label])) if given[label].size else 0.0
            found.append(Deviation(label, unlike, 0.0))
            continue
        ours, theirs = to_double(given[label], dtype), to_double(wanted[label], dtype)
        alike = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        with np.errstate(invalid="ignore"):
            apart = np.where(alike, 0.0, np.abs(ours - theirs))
        scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
        found.append(Deviation(label, float(apart.max(initial=0.0) / (scale or 1.0)), TOLERANCE[dtype]))
    return found


@dataclass(frozen=True)
class Timing:
    """Of whole runs: seconds, the least and the median of ``runs``; ``shares`` of the calls, which were timed
    one by one."""

    least: float
    median: float
    runs: int
    shares: tuple[Share, ...]


def timed(model: Model, inputs: Mapping[str, Values]) -> Timing:
    """How long a model takes, its inputs checked and its outputs made anew in each run."""
    sample = sampler(model, inputs)
    samples = list(sample(2)[1:])  # the first run finds its memory
    samples += sample(min(max(int(SECONDS / min(samples)), RUNS), 10_000) if min(samples) < SECONDS else 2)
    each = min(max(int(SECONDS / min(samples)), 3), 100)
    return Timing(min(samples), median(samples), len(samples), tuple(model.profile(inputs, each)))


Sampler = Callable[[int], Sequence[float]]
"""So many runs, each in seconds."""


def sampler(model: Model, inputs: Mapping[str, Values]) -> Sampler:
    """Runs of a model in this process."""

    def sample(runs: int) -> list[float]:
        seconds: list[float] = []
        for _ in range(runs):
            before = time.perf_counter()
            model.run(inputs)
            seconds.append(time.perf_counter() - before)
        return seconds

    return sample


def in_turns(first: Sampler, second: Sampler, rounds: int = ROUNDS) -> tuple[float, float, float]:
    """The medians of two, in seconds, measured in turns, so that what else the machine does slows both; and
    the median of the rounds' ratios, how many times as fast the second is."""
    once = max(*first(1), *second(1), 1e-9)
    runs = min(max(int(ROUND_SECONDS / once), 1), 1000)
    pairs = [(median(first(runs)), median(second(runs))) for _ in range(rounds)]
    return median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs)
