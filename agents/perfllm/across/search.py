"""The player: walks of moves from the programs of an archive, as a guide weighs them.

The archive holds one program for each structure (Go-Explore, Ecoffet 2021): how deep each operation stands
and where arrays lie, sizes and marks left out, so that what has to be given up on the way to a faster
structure is not crowded out by variants of the fastest. Among equal ones of a structure now the shorter line
stays, now the newer: always the shorter would end neutral drift, and gains often come behind moves that
change nothing.

A guide knows when to stop: where there is one, only the last program of a walk is measured. Most good lines
begin with moves that gain nothing, and to measure each of them would spend ten programs on one line. Whole
walks are drawn without replacement: a move is as likely as the guide says times what is left behind it
(Shi et al., ICML 2020), so that a walk parts from those before where the guide is least sure. Blind, each
visit of a position takes another move. How likely a position is gone on from falls with its time, and with
what was tried there.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from agents.agent import Proposals, Thought
from agents.perfllm.across.guides import Guide, alike
from agents.perfllm.across.lines import MOST_MOVES, NOTHING, edited, finished, minimised, transplanted
from agents.perfllm.actions import Action, actions_in_turn, legal_actions
from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.moves.core import Move
from dojo_core.moves.legality import all_candidates
from dojo_core.moves.notation import parse_move
from dojo_core.moves.places import scopes
from dojo_core.program.tree import Program

ELITE = 8  # so many of the fastest structures
ABREAST = 4  # attempts, where programs are compiled: two cores are busy with the next while one is measured
UNSURE = 1.02  # measured times that differ by less are not told apart
REPLAYED = 0.2  # share of proposals that are other kernels' lines as wholes, at places drawn anew


@dataclass(frozen=True)
class SearchSettings:
    """How a player searches."""

    most_actions: int = 48  # of a position
    glanced: int = 20  # legal ones of a position where a guide orders moves by their text before
    most_moves: int = MOST_MOVES  # of a line
    from_start: float = 0.2  # share of walks that begin at the start; at 0 no replay of a line does either
    first_moves: int = 24  # of such a walk and of any that a guide leads, at most
    moves: int = 4  # of any other
    sharpness: float = 3.0  # a structure twice as slow is gone on from 8 times less often
    elite: float = 0.3  # share of walks and edits that begin at one of the fastest structures, each alike
    novelty: float = 0.1  # share of walks that begin at a structure seldom visited, whatever its time
    explored: float = 0.03  # share of a guide's probability that is every kind's alike
    temperature: float = 1.0  # of the guide
    edits: float = 0.6  # share of proposals that are edits of a line in the archive
    borrowed: float = 0.5  # share of grafts that take moves from other kernels' lines
    drift: float = 0.5  # how often an equal program of a structure replaces the one before
    opening: int = 12  # walks of a guide from the start, by turns with other kernels' lines
    minimising: bool = False  # each time that the best got better by 2%


TEACHER = SearchSettings(novelty=0.2, edits=0.9, explored=0.2, minimising=True)


Glance = Callable[[Program, Sequence[str]], np.ndarray]


@dataclass
class Choices:
    """What a guide says of a position's actions: float64 [1 + actions] each, to stop first. ``left``: of
    what lies behind each, the probability that no walk has drawn."""

    moves: list[str]
    probabilities: np.ndarray
    left: np.ndarray


@dataclass
class Position:
    """A program, measured or on the way to one (its ``cost`` is infinite then). ``order``: moves as they are
    to be tried blindly, None until somebody goes on from here, as ``choices`` are; ``left``: the probability
    of what was not tried."""

    trail: Trail
    cost: float = math.inf
    order: Iterator[str | None] | None = None
    choices: Choices | None = None
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
    """One search from a line's end. ``positions``: every program that was measured and works, by hash;
    ``glance``: logits of a program's moves by their text alone, legal or not, so that legality is asked of
    those first that look good; ``measured``: times vary, and programs are compiled, so attempts are made
    abreast."""

    start: Trail
    rng: random.Random
    guide: Guide | None = None
    settings: SearchSettings = field(default_factory=SearchSettings)
    hear: Callable[[Thought], None] = lambda thought: None
    seeds: Iterable[Trail] = ()  # lines that are known already
    lore: Sequence[Sequence[Move]] = ()  # good lines of other kernels, to take moves from
    glance: Glance | None = None
    measured: bool = False
    positions: dict[str, Position] = field(default_factory=dict)
    passed: dict[str, Position] = field(default_factory=dict)  # not measured
    failed: set[str] = field(default_factory=set)
    archive: dict[tuple[object, ...], Position] = field(default_factory=dict)

    def proposals(self) -> Proposals:
        """Lines whose times it wants, hearing what they cost; ends where there is nothing left to try."""
        for trail in (self.start, *self.seeds):
            [cost] = yield [trail]
            self._met(trail, cost)
        yield from _abreast(self._attempts(), ABREAST if self.measured else 1)

    def ranked(self) -> list[Position]:
        """The programs met, the fastest first; of equal ones the one with the shorter line."""
        return sorted(self.positions.values(), key=lambda p: (p.cost, len(p.trail.steps)))

    @property
    def best(self) -> float:
        """Seconds of the fastest program met; infinite where none works."""
        return min((position.cost for position in self.archive.values()), default=math.inf)

    def _attempts(self) -> Iterator[Proposals]:
        """Walks, edits and replays as long as they lead to new programs, each drawn when the one before was
        heard of, as far as they are not made abreast."""
        from_start = self.settings.from_start > 0
        if from_start:
            yield from self._open()
        idle = 0
        minimised_at = self.best
        while self.archive and idle < 200:
            known = len(self.positions) + len(self.failed)
            if from_start and self.lore and self.rng.random() < REPLAYED:
                yield self._replay()
            elif self.rng.random() < self.settings.edits:
                yield self._edit()
            else:
                yield self._walk()
            if self.settings.minimising and self.best < 0.98 * minimised_at:
                yield self._minimise()
                minimised_at = self.best
            idle = 0 if len(self.positions) + len(self.failed) > known else idle + 1

    def _open(self) -> Iterator[Proposals]:
        """Walks of the guide from the start, by turns with every line of other kernels, once as a whole and
        finished, once as a whole."""
        parent = self.positions.get(self.start.program.hash)
        if parent is None:
            return
        replays = self._replays()
        for number in range(max(2 * len(self.lore), self.settings.opening)):
            if self.guide and number < self.settings.opening:
                yield self._walk_guided(parent)
            trail = next(replays, None)
            if trail is not None and self._new(trail):
                yield self._tried(parent, trail, None)

    def _replays(self) -> Iterator[Trail]:
        played = []
        for line in self.rng.sample(self.lore, len(self.lore)):
            played.append(transplanted(self.start, line, self.rng))
            yield finished(played[-1], line, self.rng)
        yield from played

    def _replay(self) -> Proposals:
        """One line of another kernel, finished."""
        parent = self.positions.get(self.start.program.hash)
        line = self.rng.choice(self.lore)
        trail = finished(transplanted(self.start, line, self.rng), line, self.rng)
        if parent is not None and self._new(trail):
            yield from self._tried(parent, trail, None)

    def _minimise(self) -> Proposals:
        """The best line without the moves that made nothing faster: shorter lines are better to edit."""
        best = self.ranked()[0]
        search = minimised(best.trail, best.cost, self.rng, UNSURE if self.measured else NOTHING)
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
        """Moves from the start or from a program of the archive."""
        settings = self.settings
        start = self.positions.get(self.start.program.hash)
        if start is not None and start.left > 1e-9 and self.rng.random() < settings.from_start:
            position, most = start, settings.first_moves
        elif (drawn := self._drawn()) is not None:
            position, most = drawn, settings.moves
        else:
            return
        yield from self._walk_blindly(position, most) if self.guide is None else self._walk_guided(position)

    def _walk_blindly(self, position: Position, most: int) -> Proposals:
        """Each program on the way is measured."""
        for number in range(most):
            if len(position.trail.steps) >= self.settings.most_moves:
                return
            move = self._next(position, may_stop=number > 0)
            trail = None if move is None else self._extended(position, move)
            if trail is None:
                return
            if self._new(trail):
                yield from self._tried(position, trail, 1 / self.settings.most_actions)
            if trail.program.hash in self.failed:
                return
            position = self._at(trail)

    def _walk_guided(self, first: Position) -> Proposals:
        """Until the guide says stop; what it leads to is measured."""
        position, along, path = first, 1.0, list[tuple[Position, Choices, int]]()
        while len(path) < self.settings.first_moves:
            choices = position.choices = position.choices or self._choices(position.trail)
            weights = choices.probabilities * choices.left
            if not path:
                weights[0] = 0.0  # to stop at once is no walk
            if weights.sum() < 1e-9:
                break
            [number] = self.rng.choices(range(len(weights)), weights)
            path.append((position, choices, number))
            along *= float(choices.probabilities[number])
            trail = self._extended(position, choices.moves[number - 1]) if number else None
            if trail is None:
                break
            position = self._at(trail)
        left = 0.0
        for before, choices, number in reversed(path):
            choices.left[number] = left
            before.left = left = float(choices.probabilities @ choices.left)
        if self._new(position.trail):
            yield from self._tried(first, position.trail, along)

    def _extended(self, position: Position, move: str) -> Trail | None:
        """The line with a move more; None where it is too long, or known to fail."""
        if len(position.trail.steps) >= self.settings.most_moves:
            return None
        trail = position.trail.extended(Step(parse_move(move), position.trail.born))
        return None if trail is None or trail.program.hash in self.failed else trail

    def _at(self, trail: Trail) -> Position:
        """Where a line ends; of two lines to one program the shorter stays."""
        key = trail.program.hash
        position = self.positions.get(key) or self.passed.setdefault(key, Position(trail))
        if len(trail.steps) < len(position.trail.steps):
            position.trail = trail
        return position

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
        position = self.positions[trail.program.hash] = self.passed.pop(trail.program.hash, Position(trail))
        position.trail, position.cost = trail, cost
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

    def _next(self, position: Position, may_stop: bool) -> str | None:
        """The next action of a position in its order; None is to stop."""
        if position.order is None:
            position.order = self._blind(position.trail)
        for move in position.order:
            if move is not None:
                position.left -= 1 / self.settings.most_actions
            if move is not None or may_stop:
                return move
        position.left = 0.0
        return None

    def _blind(self, trail: Trail) -> Iterator[str | None]:
        """Each kind of move in turn, and once to stop: moves are looked for as they are asked for."""
        most = self.settings.most_actions
        rng = random.Random(self.rng.getrandbits(32))
        stop = rng.randrange(most)
        for number, (_, move) in enumerate(islice(actions_in_turn(trail, rng, shuffled=True), most)):
            if number == stop:
                yield None
            yield move

    def _choices(self, trail: Trail) -> Choices:
        assert self.guide is not None
        actions = self._legal(trail)
        moves = [move for _, move in actions]
        probabilities = self._mixed(self.guide(trail, actions), alike(moves))
        return Choices(moves, probabilities, np.ones(1 + len(moves)))

    def _legal(self, trail: Trail) -> list[Action]:
        """The actions of a position that the guide is asked about: of each kind in turn, or those that look
        good by their texts, drawn without replacement (Kool et al., ICML 2019)."""
        if self.glance is None:
            rng = random.Random(trail.program.hash)
            return list(islice(actions_in_turn(trail, rng), self.settings.most_actions))
        context = trail.context()
        candidates = list(all_candidates(context))
        texts = [str(move) for move in candidates]
        probabilities = self._mixed(self.glance(trail.program, texts), alike(texts)[1:])
        noise = [-math.log(-math.log(max(self.rng.random(), 1e-12))) for _ in texts]
        ordered = [candidates[n] for n in np.argsort(-(np.log(probabilities + 1e-12) + noise))]
        return list(islice(legal_actions(trail, ordered), self.settings.glanced))

    def _mixed(self, logits: np.ndarray, blind: np.ndarray) -> np.ndarray:
        share = self.settings.explored
        guided = _softmax(logits / self.settings.temperature)
        mixed: np.ndarray = (1 - share) * guided + share * _softmax(blind)
        return mixed


def _abreast(attempts: Iterator[Proposals], most: int) -> Proposals:
    """So many attempts at once: what they propose together, each hearing of its own. One takes the place of
    each that has ended."""
    running: list[tuple[Proposals, list[Trail]]] = []
    while True:
        while len(running) < most and (attempt := next(attempts, None)) is not None:
            if (batch := next(attempt, None)) is not None:
                running.append((attempt, batch))
        if not running:
            return
        costs = iter((yield [trail for _, batch in running for trail in batch]))
        heard = [(attempt, list(islice(costs, len(batch)))) for attempt, batch in running]
        running = []
        for attempt, own in heard:
            with suppress(StopIteration):
                running.append((attempt, attempt.send(own)))


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights: np.ndarray = np.exp(logits - logits.max())
    return weights / weights.sum()
