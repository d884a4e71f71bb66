"""The player: walks of moves from the programs of an archive, as a guide weighs them.

The archive holds one program for each structure (Go-Explore, Ecoffet 2021): how deep each operation stands
and where arrays lie, sizes and marks left out, so that what has to be given up on the way to a faster
structure is not crowded out by variants of the fastest. Among equal ones of a structure now the shorter line
stays, now the newer: always the shorter would end neutral drift, and gains often come behind moves that
change nothing.

Moves are drawn without replacement: a position's moves are ordered once, by their logarithm of probability
plus Gumbel noise (Kool et al., ICML 2019), and each visit takes the next. How likely a position is gone on
from falls with its time, and with the probability that its tried moves had.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from agents.agent import Proposals, Thought
from agents.perfllm.across.guides import Guide, alike
from agents.perfllm.across.lines import edited, minimised, transplanted
from agents.perfllm.actions import actions_in_turn
from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.moves.core import Move
from dojo_core.moves.notation import parse_move
from dojo_core.moves.places import scopes
from dojo_core.program.tree import Program

ELITE = 8  # so many of the fastest structures


@dataclass(frozen=True)
class SearchSettings:
    """How a player searches."""

    most_actions: int = 48  # of a position
    most_moves: int = 40  # of a line
    from_start: float = 0.2  # share of walks that begin at the start
    first_moves: int = 24  # of such a walk, at most
    moves: int = 4  # of any other
    sharpness: float = 3.0  # a structure twice as slow is gone on from 8 times less often
    elite: float = 0.3  # share of walks and edits that begin at one of the fastest structures, each alike
    novelty: float = 0.1  # share of walks that begin at a structure seldom visited, whatever its time
    explored: float = 0.2  # share of a guide's probability that is every kind's alike
    temperature: float = 1.0  # of the guide
    edits: float = 0.75  # share of proposals that are edits of a line in the archive
    borrowed: float = 0.5  # share of grafts that take moves from other kernels' lines
    drift: float = 0.5  # how often an equal program of a structure replaces the one before
    minimising: bool = False  # each time that the best got better by 2%


TEACHER = SearchSettings(novelty=0.2, edits=0.9, minimising=True)


Order = Iterator[tuple[str | None, float]]  # actions to be tried, None to stop, with their probabilities


@dataclass
class Position:
    """A measured program. ``order``: its actions as they are to be tried, None until somebody goes on from
    here; ``left``: the probability of the moves that were not tried."""

    trail: Trail
    cost: float
    order: Order | None = None
    left: float = 1.0
    visits: int = 0


def structure(program: Program) -> tuple[object, ...]:
    """What programs of one structure share: how many temporary arrays lie where, how many operations
    accumulate, how many scopes have which mark. Counts end at three."""
    outside = {*program.inputs, *program.outputs}
    homes = Counter(b.location for b in program.buffers if not outside.intersection(b.arrays))
    accumulating = sum(bool(leaf.op.accumulate) for leaf in program.leaves)
    marks = Counter(scope.mark for _, scope, _ in scopes(program) if scope.mark)
    counts = (tuple(sorted((what, min(n, 3)) for what, n in of.items())) for of in (homes, marks))
    return *counts, min(accumulating, 3)


@dataclass
class Search:
    """One search from a line's end. ``positions``: every program that was measured and works, by hash."""

    start: Trail
    rng: random.Random
    guide: Guide | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)
    hear: Callable[[Thought], None] = lambda thought: None
    seeds: Iterable[Trail] = ()  # lines that are known already
    lore: Sequence[Sequence[Move]] = ()  # good lines of other kernels, to take moves from
    positions: dict[str, Position] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    archive: dict[tuple[object, ...], Position] = field(default_factory=dict)

    def proposals(self) -> Proposals:
        """Lines whose times it wants, hearing what they cost; ends where there is nothing left to try."""
        for trail in (self.start, *self.seeds):
            [cost] = yield [trail]
            self._met(trail, cost)
        yield from self._replay()
        idle = 0
        minimised_at = self.best
        while self.archive and idle < 200:
            known = len(self.positions) + len(self.failed)
            if self.rng.random() < self.settings.edits:
                yield from self._edit()
            else:
                yield from self._walk()
            if self.settings.minimising and self.best < 0.98 * minimised_at:
                yield from self._minimise()
                minimised_at = self.best
            idle = 0 if len(self.positions) + len(self.failed) > known else idle + 1

    def ranked(self) -> list[Position]:
        """The programs met, the fastest first; of equal ones the one with the shorter line."""
        return sorted(self.positions.values(), key=lambda p: (p.cost, len(p.trail.steps)))

    @property
    def best(self) -> float:
        """Seconds of the fastest program met; infinite where none works."""
        return min((position.cost for position in self.archive.values()), default=math.inf)

    def _replay(self) -> Proposals:
        """Every line of other kernels once, as a whole."""
        parent = self.positions.get(self.start.program.hash)
        if parent is None:
            return
        for line in self.rng.sample(self.lore, len(self.lore)):
            trail = transplanted(self.start, line, self.rng)
            if self._new(trail):
                yield from self._tried(parent, trail, None)

    def _minimise(self) -> Proposals:
        """The best line without the moves that made nothing faster: shorter lines are better to edit."""
        best = self.ranked()[0]
        search = minimised(best.trail, best.cost, self.rng)
        try:
            batch = next(search)
            while True:
                costs = yield batch
                self._heard(batch, costs)
                batch = search.send(costs)
        except StopIteration:
            return

    def _edit(self) -> Proposals:
        """One line of the archive, edited."""
        parent = self._drawn()
        if parent is None:
            return
        own = [position.trail.moves for position in self.archive.values() if position.trail.steps]
        borrows = self.lore and self.rng.random() < self.settings.borrowed
        trail = edited(parent.trail, self.lore if borrows else own, self.rng)
        if trail is not None and len(trail.steps) <= self.settings.most_moves and self._new(trail):
            yield from self._tried(parent, trail, None)

    def _walk(self) -> Proposals:
        """Moves from the start or from a program of the archive, until the guide says stop."""
        settings = self.settings
        start = self.positions.get(self.start.program.hash)
        if start is not None and start.left > 1e-9 and self.rng.random() < settings.from_start:
            position, most = start, settings.first_moves
        else:
            drawn = self._drawn()
            if drawn is None:
                return
            position, most = drawn, settings.moves
        for number in range(most):
            if len(position.trail.steps) >= settings.most_moves:
                return
            move, probability = self._next(position, may_stop=number > 0)
            if move is None:
                return
            trail = position.trail.extended(Step(parse_move(move), position.trail.born))
            if trail is None or trail.program.hash in self.failed:
                return
            if self._new(trail):
                yield from self._tried(position, trail, probability)
            after = self.positions.get(trail.program.hash)
            if after is None:
                return
            if len(trail.steps) < len(after.trail.steps):
                after.trail = trail
            position = after

    def _tried(self, parent: Position, trail: Trail, probability: float | None) -> Proposals:
        self.hear(Thought(trail.program.hash, parent.trail.program.hash, "tried", probability))
        [cost] = yield [trail]
        self._met(trail, cost)

    def _heard(self, batch: Sequence[Trail], costs: Sequence[float]) -> None:
        for trail, cost in zip(batch, costs, strict=True):
            if self._new(trail):
                self._met(trail, cost)

    def _new(self, trail: Trail) -> bool:
        return trail.program.hash not in self.positions and trail.program.hash not in self.failed

    def _met(self, trail: Trail, cost: float) -> None:
        """Keep a program, in the archive where it is the best of its structure."""
        if not math.isfinite(cost):
            self.failed.add(trail.program.hash)
            return
        position = self.positions[trail.program.hash] = Position(trail, cost)
        key = structure(trail.program)
        best = self.archive.get(key)
        if best is not None and best.cost == cost:
            shorter = len(trail.steps) < len(best.trail.steps)
            if self.rng.random() < self.settings.drift or shorter:
                self.archive[key] = position
        elif best is None or cost < best.cost:
            self.archive[key] = position

    def _drawn(self) -> Position | None:
        """A program of the archive to go on from."""
        champions = [position for position in self.archive.values() if position.left > 1e-9]
        if not champions:
            return None
        if self.rng.random() < self.settings.elite:
            champions = sorted(champions, key=lambda p: (p.cost, len(p.trail.steps)))[:ELITE]
            weights = [1.0] * len(champions)
        elif self.rng.random() < self.settings.novelty:
            weights = [1.0 / (1 + position.visits) ** 2 for position in champions]
        else:
            least = min(position.cost for position in champions)
            weights = [(least / p.cost) ** self.settings.sharpness * p.left for p in champions]
        [drawn] = self.rng.choices(champions, weights)
        drawn.visits += 1
        return drawn

    def _next(self, position: Position, may_stop: bool) -> tuple[str | None, float]:
        """The next action of a position in its order, and its probability; (None, …) is to stop."""
        if position.order is None:
            position.order = (
                self._blind(position.trail) if self.guide is None else self._guided(position.trail)
            )
        for move, probability in position.order:
            if move is not None:
                position.left -= probability
            if move is not None or may_stop:
                return move, probability
        position.left = 0.0
        return None, 0.0

    def _blind(self, trail: Trail) -> Order:
        """Each kind of move in turn, and as often to stop: moves are looked for as they are asked for."""
        most = self.settings.most_actions
        rng = random.Random(self.rng.getrandbits(32))
        stop = rng.randrange(most)
        for number, (_, move) in enumerate(islice(actions_in_turn(trail, rng, shuffled=True), most)):
            if number == stop:
                yield None, 1 / most
            yield move, 1 / most

    def _guided(self, trail: Trail) -> Order:
        """In an order drawn without replacement by what the guide says."""
        assert self.guide is not None
        rng = random.Random(trail.program.hash)
        actions = list(islice(actions_in_turn(trail, rng), self.settings.most_actions))
        moves: list[str | None] = [None, *(move for _, move in actions)]
        share = self.settings.explored
        guided = _softmax(self.guide(trail, actions) / self.settings.temperature)
        probabilities = (1 - share) * guided + share * _softmax(alike(actions))
        noise = [-math.log(-math.log(max(self.rng.random(), 1e-12))) for _ in moves]
        order = np.argsort(-(np.log(probabilities + 1e-12) + noise))
        return iter([(moves[n], float(probabilities[n])) for n in order])


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights: np.ndarray = np.exp(logits - logits.max())
    return weights / weights.sum()
