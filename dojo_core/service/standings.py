"""What is known of programs: their outcomes, what they came to in turns with each other, and what of that is
still open.

Not thread-safe: the queue holds its lock.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dojo_core.measure.conditions import UNKNOWN, Conditions, worth
from dojo_core.measure.speed import LOOKS, ROUNDS, Speed, apart, drift, in_turns
from dojo_core.program.tree import Program

FINALISTS = 5  # the fastest candidates of a position, timed again when all are known
FINAL_LOOKS = 2  # at them
RETAKEN = 2  # times that a time taken beside other processes is taken again in quiet
KEPT_RESULTS = 8_000  # in memory, those asked for last, about 500 bytes each; the others are in the records
KEPT_TURNS = 8_000  # pairs of programs, with the ratios of their rounds
MOST_RATIOS = 2 * LOOKS * ROUNDS  # of a pair

Id = tuple[str, str]  # of a program: the key of its workload, its hash


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of one program: its time, or how it failed."""

    status: str  # "ok" or a failure's name
    seconds: float = 0.0  # the shortest sample
    median: float = 0.0
    samples: int = 0
    message: str = ""
    conditions: Conditions = UNKNOWN
    taken: float | None = None  # when, seconds since the epoch; None: just now
    stands: bool = True  # else it is shown, and taken again: old, of a busy machine, or of an unknown load
    ratios: tuple[float, ...] = ()  # of its rounds in turns with what it was measured against

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def better(self, other: Outcome | None) -> Outcome:
        """The one whose time is worth more, of equals the shorter one, where both have a time; else this one,
        which is newer."""
        if other is None or not (other.ok and self.ok and other.stands):
            return self
        return min(self, other, key=lambda each: (worth(each.conditions, 0.0), each.seconds))


@dataclass(frozen=True)
class Task:
    """A program to measure: ``workload`` is what it is judged against, ``key`` names that workload.

    ``line``: the moves that led to it, one a line; its record keeps them. ``steady``: by which factor two of
    its times may differ, whatever this computer does meanwhile; None: there is no such factor.
    """

    key: str
    workload: Any = field(compare=False, hash=False, repr=False)
    program: Program = field(compare=False, hash=False, repr=False)
    hash: str = ""
    line: str = field(default="", compare=False, hash=False, repr=False)
    steady: float | None = field(default=None, compare=False, hash=False, repr=False)

    @property
    def id(self) -> Id:
        return self.key, self.hash


@dataclass
class _Turns:
    """What two programs came to in turns: the ratios of all rounds, and how often rounds were taken."""

    ratios: tuple[float, ...] = ()
    looks: int = 0
    disturbed: int = 0  # looks on a busy machine


class Standings:
    """``idle`` says whether the machine does nothing else just now."""

    def __init__(self, idle: Callable[[], bool]) -> None:
        self._idle = idle
        self.rough: dict[Id, float] = {}  # seconds of a run, of programs without an outcome
        self._outcomes: OrderedDict[Id, Outcome] = OrderedDict()  # asked for last at the end
        self._turns: OrderedDict[tuple[str, str, str], _Turns] = OrderedDict()  # by workload, other, own
        self._retaken: OrderedDict[Id, int] = OrderedDict()  # how often a time was taken again in quiet

    def outcome(self, program: Id) -> Outcome | None:
        return self._outcomes.get(program)

    def asked(self, program: Id) -> Outcome | None:
        """The same, which will be kept longer for it."""
        if program in self._outcomes:
            self._outcomes.move_to_end(program)
        return self._outcomes.get(program)

    def keep(self, program: Id, outcome: Outcome) -> None:
        """In place of what was known."""
        self.rough.pop(program, None)
        self._outcomes[program] = outcome
        while len(self._outcomes) > KEPT_RESULTS:
            self._outcomes.popitem(last=False)

    def add(self, task: Task, outcome: Outcome, against: Task | None = None) -> None:
        """A new outcome: its rounds join those before, its time stands where it is worth more."""
        if against is not None and outcome.ratios:
            turns = self._pair(task, against)
            turns.ratios = (*turns.ratios, *outcome.ratios)[-MOST_RATIOS:]
            turns.looks += 1
            turns.disturbed += outcome.conditions.busy
        taken = time.time() if outcome.taken is None else outcome.taken
        new = replace(outcome, ratios=(), taken=taken)
        self.keep(task.id, new.better(self._outcomes.get(task.id)))

    def looked(self, task: Task, against: Task | None, outcome: Outcome | None) -> None:
        """It was timed once more: a look that gave no rounds counts too, and so does a time taken again."""
        if against is None:
            self._retaken[task.id] = self._retaken.get(task.id, 0) + 1
            while len(self._retaken) > KEPT_RESULTS:
                self._retaken.popitem(last=False)
        elif outcome is None or not outcome.ratios:
            self._pair(task, against).looks += 1

    def _pair(self, task: Task, against: Task) -> _Turns:
        pair = (task.key, against.hash, task.hash)
        turns = self._turns.setdefault(pair, _Turns())
        self._turns.move_to_end(pair)
        while len(self._turns) > KEPT_TURNS:
            self._turns.popitem(last=False)
        return turns

    def speed(self, key: str, against: str, program: str, steady: float | None) -> Speed | None:
        """How many times as fast a program is as the one of hash ``against``; None while one has no time."""
        one, other = self._outcomes.get((key, program)), self._outcomes.get((key, against))
        if one is None or other is None or not (one.ok and other.ok and one.seconds > 0):
            return None
        turns = self._turns.get((key, against, program), _Turns())
        final = turns.looks >= self._most_looks(turns)
        if len(turns.ratios) > 1:
            return in_turns(turns.ratios, final)
        return apart(other.seconds, one.seconds, steady or drift(other.conditions, one.conditions), final)

    def _most_looks(self, turns: _Turns) -> int:
        """What was looked at beside other processes is looked at as often again in quiet."""
        return LOOKS + (min(turns.disturbed, LOOKS) if turns.disturbed and self._idle() else 0)

    def open(self, board: Task | None, candidates: Sequence[Task]) -> list[Task]:
        """Candidates that are timed once more: the fastest, then those that are neither sure nor settled."""
        if board is None:
            return []
        ranked: list[tuple[float, int, Task, Speed]] = []
        for number, task in enumerate(candidates):
            if task.key == board.key:
                speed = self.speed(task.key, board.hash, task.hash, task.steady)
                if speed is not None:
                    ranked.append((-speed.value, number, task, speed))
        ranked.sort(key=lambda entry: entry[:2])
        again = [
            task
            for _, _, task, speed in ranked[:FINALISTS]
            if task.steady != 1 and not speed.final and self._looks(board, task) < FINAL_LOOKS
        ]
        return again + [
            task
            for _, _, task, speed in ranked
            if speed.verdict == "unsure" and task.steady is None and task not in again
        ]

    def _looks(self, board: Task, task: Task) -> int:
        return self._turns.get((task.key, board.hash, task.hash), _Turns()).looks

    def doubted(self, tasks: Iterable[Task]) -> list[Task]:
        """Those whose time was not taken in quiet and may be taken again."""
        doubted = []
        for task in dict.fromkeys(tasks):
            outcome = self._outcomes.get(task.id)
            busy = outcome is not None and outcome.ok and not outcome.conditions.quiet
            if busy and task.steady is None and self._retaken.get(task.id, 0) < RETAKEN:
                doubted.append(task)
        return doubted

    def doubtful(self, tasks: Iterable[Task]) -> list[Task]:
        """These, once the machine does nothing else."""
        doubted = self.doubted(tasks)
        return doubted if doubted and self._idle() else []
