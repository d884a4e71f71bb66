"""A cost model: which of a few neighbours is worth measuring, judged by what was measured before.

Ridge regression of the logarithm of time on the program's features. Only differences within one workload
count, so that a model learned on some kernels ranks the programs of another. A run begins with what records
taught and goes on learning from its own times. Ridge, since it is fitted anew after each batch.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.agent import Proposals
from agents.search.features import FEATURES, features
from agents.search.neighbours import Neighbour
from agents.trail import Trail
from dojo_core.bounded_json import read_object
from dojo_core.files import write_text
from dojo_core.measure.places import data_directory
from dojo_core.program.tree import Program

Vector = NDArray[np.float64]
VERSION = 1
STRENGTH = 4.0  # of the pull towards what was known before, in programs
CHOICES = 4  # neighbours of which one is measured
EXPLORE = 0.2  # how often the model is not asked


@dataclass(frozen=True)
class Sampled:
    """Programs of one workload: features, a row each, and the logarithm (base 2) of their seconds."""

    kernel: str
    rows: Vector
    times: Vector


@dataclass(frozen=True)
class CostModel:
    """Weights of FEATURES. All zero: knows nothing yet."""

    weights: tuple[float, ...] = (0.0,) * len(FEATURES)

    @property
    def digest(self) -> str:
        """Differs where the weights do."""
        return hashlib.sha256(json.dumps(self.weights).encode()).hexdigest()[:8]

    @staticmethod
    def fitted(samples: Sequence[Sampled]) -> CostModel:
        """A model of several workloads, each counting alike."""
        rows = [_weighed(each.rows) for each in samples]
        times = [_weighed(each.times) for each in samples]
        if not rows:
            return CostModel()
        weights = _ridge(np.concatenate(rows), np.concatenate(times), np.zeros(len(FEATURES)), 0.05)
        return CostModel(tuple(round(float(w), 6) for w in weights))

    def cost(self, rows: Vector) -> Vector:
        """The logarithm of time but for a constant of the workload; one for each row."""
        costs: Vector = rows @ np.array(self.weights)
        return costs


def _weighed(values: Vector) -> Vector:
    """Centred, and as if it were one program in all, however many there are."""
    centred: Vector = (values - values.mean(axis=0)) / math.sqrt(len(values))
    return centred


def _ridge(rows: Vector, times: Vector, known: Vector, strength: float) -> Vector:
    """The weights that explain the times, pulled towards those known."""
    system = rows.T @ rows + strength * np.eye(rows.shape[1])
    weights: Vector = known + np.linalg.solve(system, rows.T @ (times - rows @ known))
    return weights


def rank_correlation(one: Vector, other: Vector) -> float:
    """Spearman's: 1 where both order alike, 0 where one tells nothing of the other. Ties share their rank."""

    def ranks(values: Vector) -> Vector:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        middle: Vector = (np.cumsum(count) - (count - 1) / 2.0)[place]
        return middle

    a, b = ranks(one) - ranks(one).mean(), ranks(other) - ranks(other).mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size else 0.0


def held_out(samples: Sequence[Sampled]) -> dict[str, tuple[int, float]]:
    """By kernel: programs, and the mean rank correlation of their times with the costs that a model of all
    other kernels gives them."""
    correlations: dict[str, tuple[int, float]] = {}
    by_kernel: defaultdict[str, list[Sampled]] = defaultdict(list)
    for each in samples:
        by_kernel[each.kernel].append(each)
    for kernel, of_kernel in by_kernel.items():
        model = CostModel.fitted([each for each in samples if each.kernel != kernel])
        each_one = [rank_correlation(model.cost(each.rows), each.times) for each in of_kernel]
        correlations[kernel] = sum(len(each.times) for each in of_kernel), float(np.mean(each_one))
    return correlations


# ---------------------------------------------------------------------------- kept on disk


def model_file() -> Path:
    """Where this user's model lies."""
    return data_directory() / "cost-model.json"


def save(model: CostModel, path: Path) -> None:
    data = {"dojo cost model": VERSION, "weights": dict(zip(FEATURES, model.weights, strict=True))}
    write_text(path, json.dumps(data, indent=1) + "\n")


def load(path: Path) -> CostModel:
    """A model from its file; the one that knows nothing where there is none. Raises ValueError."""
    if not path.exists():
        return CostModel()
    wrong = ValueError(f"{path} is no cost model of this Dojo: dojo cost-model makes a new one.")
    try:
        data = read_object(path.read_bytes())
        weights: Mapping[str, float] = data["weights"]
        if data["dojo cost model"] != VERSION or set(weights) != set(FEATURES):
            raise wrong
        model = CostModel(tuple(float(weights[name]) for name in FEATURES))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise wrong from None
    if not all(map(math.isfinite, model.weights)):
        raise wrong
    return model


# ---------------------------------------------------------------------------- in a search


class Ranking:
    """A model in a run: it learns from the run's times."""

    def __init__(self, model: CostModel) -> None:
        self._known = np.array(model.weights)
        self._weights = self._known
        self._rows: list[Vector] = []
        self._times: list[float] = []
        self.seen: set[str] = set()  # hashes of programs measured

    def learn(self, batch: Sequence[Trail], costs: Sequence[float]) -> None:
        """Take in what a batch cost; programs that failed teach nothing."""
        for trail, cost in zip(batch, costs, strict=True):
            if trail.program.hash not in self.seen and math.isfinite(cost) and cost > 0:
                self._rows.append(features(trail.program))
                self._times.append(math.log2(cost))
            self.seen.add(trail.program.hash)
        if len(self._times) > 1:
            rows, times = np.array(self._rows), np.array(self._times)
            self._weights = _ridge(rows - rows.mean(axis=0), times - times.mean(), self._known, STRENGTH)

    def cost(self, program: Program) -> float:
        """Low for programs that are worth measuring."""
        return float(features(program) @ self._weights)


def ranked(next_to: Neighbour, ranking: Ranking) -> Neighbour:
    """The best of a few neighbours, in the model's eyes; now and then any of them, so that it learns."""

    def neighbour(trail: Trail, rng: random.Random) -> Trail | None:
        if rng.random() < EXPLORE:
            return next_to(trail, rng)
        children = [child for _ in range(CHOICES) if (child := next_to(trail, rng)) is not None]
        fresh = [child for child in children if child.program.hash not in ranking.seen]
        return min(fresh or children, key=lambda child: ranking.cost(child.program), default=None)

    return neighbour


def listening(proposals: Proposals, ranking: Ranking) -> Proposals:
    """A search whose times a ranking hears too."""
    batch = next(proposals, None)
    while batch is not None:
        costs = yield batch
        ranking.learn(batch, costs)
        try:
            batch = proposals.send(costs)
        except StopIteration:
            return
