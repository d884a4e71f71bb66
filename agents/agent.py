"""One way to run every agent: it starts from a position, spends a budget, and tells what it does as events.

A strategy proposes lines and hears their times; the run measures what is new, counts, keeps the best, and
times the finalists once more, so that the winner is no lucky sample. ``Control`` pauses and stops a run from
another thread; a log of a run (run_log.py) lets it go on where it was stopped.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from agents.outside import Consult, ask_at_once
from agents.timing import Timing
from agents.trail import Trail
from dojo_core.actions.timing import workload_of
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.moves.core import Move
from dojo_core.plugins import Unusable
from dojo_core.program.tree import Program

FINALISTS = 5
FAR = 30.0  # a start position that is slower than this against the best is no finalist
FOUND_NOTHING = "The agent found nothing to measure."
IDLE = 100  # proposals in a row with nothing new: the strategy has nothing left to try


@dataclass(frozen=True)
class Budget:
    """What a run may spend: programs measured, and seconds without pauses (None: no limit)."""

    evaluations: int = 200
    seconds: float | None = None


@dataclass(frozen=True)
class Best:
    """The fastest verified program so far."""

    seconds: float
    program: Program
    line: tuple[Move, ...]


@dataclass(frozen=True)
class Thought:
    """What a strategy thought of one program: for those who watch, nothing depends on it.

    ``program`` and ``parent`` are hashes, the parent being where it was gone on from; ``decision`` is
    ``"tried"``, ``"accepted"`` or ``"rejected"``; ``probability`` that of the decision; ``heat`` the
    temperature, or the ε of a player that explores; ``value`` the speed-up it expected (a Q-value). Of a
    player that talks: its ``words``, the ``tokens`` that they took, and their ``cost``; where it chose no
    program, both hashes are those of the position it was asked about.
    """

    program: str
    parent: str
    decision: str
    probability: float | None = None
    heat: float | None = None
    value: float | None = None
    words: str = ""
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Event:
    """One program of a run and its measurement.

    ``evaluation`` counts from 1; ``seconds`` since the run began, pauses left out; ``best``: the best so far,
    this one included; ``final``: timed once more at the end; ``thoughts``: what the strategy told since the
    event before, so a decision that needs the time comes with a later one.
    """

    evaluation: int
    seconds: float
    line: tuple[Move, ...]
    program: Program
    measurement: Measurement
    best: Best | None
    final: bool = False
    thoughts: tuple[Thought, ...] = ()

    @property
    def move(self) -> Move | None:
        """The move that led to the position, None at the start."""
        return self.line[-1] if self.line else None


def _unheard(thought: Thought) -> None:
    pass


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Task:
    """What to make fast: the position at a game's cursor, measured as its start program's equal.

    A strategy hands what it thinks to ``hear``. What it asks of something outside goes through ``consult``,
    which keeps the answer with the run; ``stopped``: is nobody waiting for it any more?
    """

    game: Game
    hear: Callable[[Thought], None] = field(default=_unheard, compare=False, repr=False)
    consult: Consult = field(default=ask_at_once, compare=False, repr=False)
    stopped: Callable[[], bool] = field(default=_never, compare=False, repr=False)

    @property
    def workload(self) -> Workload:
        return workload_of(self.game)

    @property
    def before(self) -> tuple[Move, ...]:
        """The moves that led to the position."""
        return tuple(p.move for p in self.game.line() if p.move is not None)


Costs = list[float]  # seconds; infinite where a program failed
Proposals = Generator[list[Trail], Costs, None]
Strategy = Callable[[Task, Budget, random.Random], Proposals]


class PlayerFailed(Unusable):
    """A player cannot go on; ``str()`` is a sentence that says what to do. What was measured is kept, and
    the run goes on from there."""


def _any_game(game: Game) -> str:
    return ""


@dataclass(frozen=True)
class Agent:
    """A strategy by name; ``about`` is told to people; ``version`` differs where it plays in another way.
    ``unfit``: why it cannot play at a game's cursor, as a sentence, empty where it can."""

    name: str
    about: str
    strategy: Strategy
    version: str = ""
    unfit: Callable[[Game], str] = _any_game


class Control:
    """Pauses and stops a run from any thread. A stopped run ends with what it has.

    ``on_hold`` is told True when the run begins to wait in a pause, and False when it goes on.
    """

    def __init__(self, on_hold: Callable[[bool], None] | None = None) -> None:
        self._on_hold = on_hold
        self._changed = threading.Condition()
        self._paused = self._stopped = False
        self._steps = 0
        self.waited = 0.0  # seconds spent in pauses

    def pause(self) -> None:
        """Measure no more until ``go_on``; what is being measured is finished."""
        with self._changed:
            self._paused, self._steps = True, 0

    def step(self) -> None:
        """Pause after one more batch of proposals."""
        with self._changed:
            self._paused = True
            self._steps += 1
            self._changed.notify_all()

    def go_on(self) -> None:
        with self._changed:
            self._paused, self._steps = False, 0
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def stopped(self) -> bool:
        return self._stopped

    def wait(self) -> float:
        """Wait while paused; the seconds that took. A run asks before each batch."""
        began = time.monotonic()
        held = False
        with self._changed:
            while self._paused and not self._steps and not self._stopped:
                if not held and self._on_hold is not None:
                    self._on_hold(True)
                held = True
                self._changed.wait()
            self._steps = max(0, self._steps - 1)
            if held and self._on_hold is not None:
                self._on_hold(False)
        took = time.monotonic() - began
        self.waited += took
        return took


def run(
    task: Task,
    agent: Agent,
    timing: Timing,
    budget: Budget,
    seed: int = 0,
    control: Control | None = None,
    spent: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    lanes: int = 1,
    known: int = 0,
) -> Iterator[Event]:
    """Let an agent play; yields an event for each program that is measured, the finalists last.

    The same seed and the same times give the same run. ``spent``: seconds of an earlier part of it;
    ``known``: programs measured in it, which come first, whatever the time.
    ``lanes``: so many searches of the same kind share the budget and take turns, so that there is something
    to measure while one of them thinks; for a ``timing`` that measures elsewhere: thinking disturbs clocks.
    """
    control = control or Control()
    return _Run(task, agent, timing, budget, seed, control, spent, clock, lanes, known).events()


@dataclass
class _Lane:
    """One of the searches of a run."""

    proposals: Proposals
    answer: Costs | None = None
    idle: int = 0  # proposals in a row with nothing new

    def propose(self) -> list[Trail] | None:
        """The next programs; None where it has no more."""
        try:
            if self.idle >= IDLE:
                return None
            return next(self.proposals) if self.answer is None else self.proposals.send(self.answer)
        except StopIteration:
            return None


@dataclass(frozen=True)
class _Asked:
    """A batch under way. ``trails`` of it are new, and being measured."""

    lane: _Lane
    batch: list[Trail]
    trails: list[Trail]
    result: Callable[[], list[Measurement]]  # waits


class _Run:
    """The state of one run."""

    def __init__(
        self,
        task: Task,
        agent: Agent,
        timing: Timing,
        budget: Budget,
        seed: int,
        control: Control,
        spent: float,
        clock: Callable[[], float],
        lanes: int,
        known: int,
    ) -> None:
        self.thoughts: list[Thought] = []
        self.task = task = replace(task, hear=self.thoughts.append, stopped=self._cancelled)
        self.timing, self.budget, self.control, self.clock = timing, budget, control, clock
        self.lanes = [
            _Lane(agent.strategy(task, budget, random.Random(f"{seed}/{lane}" if lane else seed)))
            for lane in range(lanes)
        ]
        self.asked: deque[_Asked] = deque()
        self.left = False  # nobody listens any more
        self.began, self.known = clock() - spent, known
        self.count = 0
        self.costs: dict[str, float] = {}  # by program hash
        self.trails: dict[str, Trail] = {}  # of verified programs
        self.first: list[str] = []  # hashes of the first batch
        self.best: Best | None = None

    def events(self) -> Iterator[Event]:
        threads = ThreadPoolExecutor(len(self.lanes)) if len(self.lanes) > 1 else None
        idle = deque(self.lanes)
        try:
            while True:
                while idle and not self._over():
                    lane = idle.popleft()
                    batch = lane.propose()
                    if batch is None:
                        continue
                    self.began += self.control.wait()
                    if self._over():
                        break
                    self._ask(lane, batch, threads)
                if not self.asked:
                    break
                asked = self.asked[0]
                measurements = asked.result()
                self.asked.popleft()  # in the order asked, whatever came first: times alone decide a run
                before = self.count
                yield from self._heard(asked.trails, measurements)
                lane = asked.lane
                lane.idle = 0 if self.count > before else lane.idle + 1
                lane.answer = [self.costs.get(trail.program.hash, math.inf) for trail in asked.batch]
                idle.append(lane)
            for lane in self.lanes:
                lane.proposals.close()
            yield from self._finals()
        finally:
            self.left = True
            if threads is not None:
                threads.shutdown(wait=False, cancel_futures=True)

    def _over(self) -> bool:
        late = self.budget.seconds is not None and self.clock() - self.began >= self.budget.seconds
        spent = self.count + sum(len(each.trails) for each in self.asked)
        late = late and spent >= self.known
        return self.control.stopped or late or spent >= self.budget.evaluations

    def _ask(self, lane: _Lane, batch: list[Trail], threads: Executor | None) -> None:
        """Have the new programs of a batch measured: in a thread, or when they are waited for."""
        self.first = self.first or [trail.program.hash for trail in batch]
        under_way = {t.program.hash for each in self.asked for t in each.trails}
        new = {t.program.hash: t for t in batch if t.program.hash not in self.costs.keys() | under_way}
        left = self.budget.evaluations - self.count - len(under_way)
        trails = list(new.values())[:left]
        effort = Effort.QUICK if self.costs else Effort.NORMAL
        result: Callable[[], list[Measurement]] = partial(self._timed, trails, effort)
        if threads is not None:
            result = threads.submit(result).result
        self.asked.append(_Asked(lane, batch, trails, result))

    def _heard(self, trails: Sequence[Trail], measured: Sequence[Measurement]) -> Iterator[Event]:
        for trail, measurement in zip(trails, measured, strict=True):
            if measurement.status == "cancelled":
                continue
            self.count += 1
            self.costs[trail.program.hash] = math.inf if measurement.seconds is None else measurement.seconds
            if measurement.seconds is not None and measurement.verified:
                self.trails[trail.program.hash] = trail
                if self.best is None or measurement.seconds < self.best.seconds:
                    self.best = Best(measurement.seconds, trail.program, self._line(trail))
            yield self._event(trail, measurement, False)

    def _finals(self) -> Iterator[Event]:
        """The best programs and the first ones, timed again with more effort: the best of these wins.

        The first ones, since a slow minute of the machine must not hide that nothing better was found.
        """
        if self.best is None or self.control.stopped or len(self.trails) < 2:
            return
        ranked = sorted(self.trails, key=lambda key: self.costs[key])
        chosen = ranked[:FINALISTS]
        for key in self.first:
            if key in self.trails and key not in chosen and self.costs[key] <= FAR * self.best.seconds:
                chosen.append(key)
        trails = [self.trails[key] for key in chosen]
        measurements = self._timed(trails, Effort.FINAL)
        self.best = None
        for trail, measured in zip(trails, measurements, strict=True):
            seconds = measured.seconds
            if (
                seconds is not None
                and measured.verified
                and (self.best is None or seconds < self.best.seconds)
            ):
                self.best = Best(seconds, trail.program, self._line(trail))
        if self.best is None:  # stopped meanwhile, or nothing held: what was found stands
            trail = self.trails[ranked[0]]
            self.best = Best(self.costs[ranked[0]], trail.program, self._line(trail))
        for trail, measured in zip(trails, measurements, strict=True):
            yield self._event(trail, measured, True)

    def _timed(self, trails: Sequence[Trail], effort: Effort) -> list[Measurement]:
        lines = {t.program.hash: "\n".join(map(str, self._line(t))) for t in trails}
        programs = [t.program for t in trails]
        return self.timing.measure(self.task.workload, programs, lines, effort, self._cancelled)

    def _cancelled(self) -> bool:
        return self.control.stopped or self.left

    def _line(self, trail: Trail) -> tuple[Move, ...]:
        return (*self.task.before, *trail.moves)

    def _event(self, trail: Trail, measurement: Measurement, final: bool) -> Event:
        seconds = self.clock() - self.began
        thoughts = tuple(self.thoughts)
        self.thoughts.clear()
        return Event(
            self.count, seconds, self._line(trail), trail.program, measurement, self.best, final, thoughts
        )
