"""Where to go on: anywhere (uniform), more likely beyond fast programs (sampling), or beyond the present one,
with now and then a step back (annealing). Source: PerfDojo, SC '25, section 4.2.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from agents.agent import Budget, Proposals, Task, Thought
from agents.search.neighbours import Neighbour
from agents.trail import Trail

BATCH = 8  # programs proposed at once: both cores compile while nothing is timed
CHAINS = 4  # annealed side by side
SHARPNESS = 3.0  # a program twice as slow is gone on from 8 times less often
HOT, COLD = 0.5, 0.02  # temperatures of the logarithm of time, at the beginning and the end
ATTEMPTS = 20  # neighbours tried for a new program before the search goes on elsewhere


@dataclass
class _Seen:
    """The programs of a search, what each took, and from where."""

    trails: list[Trail] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    hashes: set[str] = field(default_factory=set)

    def add(self, trail: Trail, cost: float) -> None:
        self.hashes.add(trail.program.hash)
        if math.isfinite(cost):
            self.trails.append(trail)
            self.costs.append(cost)


def uniform(
    task: Task, budget: Budget, rng: random.Random, start: list[Trail], next_to: Neighbour
) -> Proposals:
    """Go on from any program seen, all equally likely: what every other method has to beat."""
    return _sampled(task, rng, start, next_to, 0.0)


def sampling(
    task: Task, budget: Budget, rng: random.Random, start: list[Trail], next_to: Neighbour
) -> Proposals:
    """Go on from any program seen, more likely a fast one: the parent's cost decides on its children."""
    return _sampled(task, rng, start, next_to, SHARPNESS)


def _sampled(
    task: Task, rng: random.Random, start: list[Trail], next_to: Neighbour, sharpness: float
) -> Proposals:
    seen = _Seen()
    costs = yield start
    for trail, cost in zip(start, costs, strict=True):
        seen.add(trail, cost)
    while seen.trails:
        least = min(seen.costs)
        weights = [(least / cost) ** sharpness for cost in seen.costs]
        total = sum(weights)
        batch: dict[str, Trail] = {}
        for _ in range(ATTEMPTS * BATCH):
            [parent] = rng.choices(range(len(weights)), weights)
            child = next_to(seen.trails[parent], rng)
            new = None if child is None else child.program.hash
            if child is not None and new is not None and new not in seen.hashes and new not in batch:
                batch[new] = child
                came = seen.trails[parent].program.hash
                task.hear(Thought(new, came, "tried", weights[parent] / total))
            if len(batch) == BATCH:
                break
        if not batch:
            return
        trails = list(batch.values())
        costs = yield trails
        for trail, cost in zip(trails, costs, strict=True):
            seen.add(trail, cost)


def annealing(
    task: Task, budget: Budget, rng: random.Random, start: list[Trail], next_to: Neighbour
) -> Proposals:
    """Simulated annealing: a slower neighbour is taken with a probability that falls with the temperature.

    Cost is the logarithm of the program's own time, so that 10% slower is the same everywhere. Several chains
    run side by side, so that there is always a batch to compile.
    """
    costs = yield start
    first = min(range(len(start)), key=lambda n: costs[n])
    if not math.isfinite(costs[first]):
        return
    chains = [(start[first], costs[first])] * CHAINS
    spent = len(start)
    while True:
        share = min(1.0, spent / max(1, budget.evaluations))
        temperature = HOT * (COLD / HOT) ** share
        proposed: list[tuple[int, Trail]] = []
        for number, (trail, _) in enumerate(chains):
            for _ in range(ATTEMPTS):
                child = next_to(trail, rng)
                if child is not None:
                    proposed.append((number, child))
                    break
        if not proposed:
            return
        costs = yield [child for _, child in proposed]
        spent += len(proposed)
        for (number, child), cost in zip(proposed, costs, strict=True):
            parent, before = chains[number]
            worse = math.log(cost / before) if math.isfinite(cost) else math.inf
            probability = 1.0 if worse <= 0 else math.exp(-worse / temperature)
            accepted = worse <= 0 or rng.random() < probability
            decision = "accepted" if accepted else "rejected"
            thought = Thought(child.program.hash, parent.program.hash, decision, probability, temperature)
            task.hear(thought)
            if accepted:
                chains[number] = (child, cost)
