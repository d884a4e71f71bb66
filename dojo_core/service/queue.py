"""The measuring queue: one machine, many players, one batch at a time.

A player *wants* programs measured, each with a rank (smaller is sooner). Players take turns, batch by
batch; within a player the ranks decide. A want holds as long as its *lease*: whoever looks at the
results renews it, and what nobody looks at any more is dropped. Playing a move replaces a player's
wants, which cancels the open ones; a result once found stays, for everybody.

A machine has slow minutes, and noise only ever adds to a time. So the program on a player's board (and
the start program, which speed-ups refer to) is timed again after each batch, and the fastest candidates
once all are known; the shortest time counts.

One thread owns the measurer. It never calls back into a page: whoever wants to know asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dojo_core.measure.conditions import UNKNOWN, Conditions
from dojo_core.program.tree import Program

log = logging.getLogger(__name__)

RANKED = 2  # the first ranks are for the program on the board and the start program
LEASE = 6.0  # seconds without a poll until a player counts as gone
FIRST, LEAST, MOST = 2, 4, 16  # candidates per batch: the first one of a player, then by their speed
FINALISTS = 5  # the fastest candidates of a position, timed again when all are known
KEPT_RESULTS = 8_000  # in memory, those asked for last, about 500 bytes each; the others are in the records
KEPT_REFINED = 1_000  # finalists that are not timed a third time
BATCH_SECONDS = 2.5  # what a batch should take: other players wait for it, cancelled work may run on in it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of one program: its time, or how it failed."""

    status: str  # "ok" or a failure's name
    seconds: float = 0.0  # the shortest sample
    median: float = 0.0
    samples: int = 0
    message: str = ""
    conditions: Conditions = UNKNOWN
    taken: float | None = None  # when a record's time was taken, seconds since the epoch; None: just now
    stands: bool = True  # else it is shown, and taken again: old, of a busy machine, or of an unknown load

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def shorter(self, other: Outcome | None) -> Outcome:
        """The one whose time is worth more, of equals the shorter one, where both have a time; else this one,
        which is newer."""
        if other is None or not (other.ok and self.ok and other.stands):
            return self
        mine, its = ((each.conditions.busy, each.seconds) for each in (self, other))
        return other if its < mine else self


@dataclass(frozen=True)
class Task:
    """A program to measure: ``workload`` is what it is judged against, ``key`` names that workload.

    ``line``: the moves that led to it, one a line; its record keeps them.
    """

    key: str
    workload: Any = field(compare=False, hash=False, repr=False)
    program: Program = field(compare=False, hash=False, repr=False)
    hash: str = ""
    line: str = field(default="", compare=False, hash=False, repr=False)

    @property
    def id(self) -> tuple[str, str]:
        return self.key, self.hash


class Bench(Protocol):
    """Measures one batch of programs of one workload, blocking; raises when it cannot go on."""

    def measure(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
        again: bool = False,
        lines: Mapping[str, str] | None = None,
    ) -> None:
        """``careful``: with more runs; ``again``: also what is known already; ``lines``: the moves to each
        program from the start, by its hash."""
        ...

    def warm(self) -> None:
        """Prepare what takes time, before there is something to measure."""
        ...

    def close(self) -> None: ...


@dataclass
class _Player:
    tasks: dict[tuple[str, str], tuple[int, int, Task]] = field(default_factory=dict)
    references: list[Task] = field(
        default_factory=list
    )  # of rank below RANKED: what the others are held against
    candidates: list[Task] = field(default_factory=list)  # all others, known or not
    renewed: float = 0.0
    served: int = 0
    begun: bool = False  # its first batch is small, so that something shows soon


@dataclass(frozen=True)
class _Batch:
    """What the measurer does in one go. ``references`` are timed again after it."""

    player: str
    tasks: list[Task]
    careful: bool = False
    again: bool = False
    references: list[Task] = field(default_factory=list)


def _rank(entry: tuple[int, int, Task]) -> tuple[int, int]:
    return entry[:2]


class MeasuringQueue:
    """Thread-safe. ``make_bench`` is called in the measuring thread, at its start and after a fault."""

    def __init__(
        self,
        make_bench: Callable[[], Bench],
        lease: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_bench = make_bench
        self._lease = lease
        self._clock = clock
        self._lock = threading.Condition()
        self._players: dict[str, _Player] = {}
        self._results: OrderedDict[tuple[str, str], Outcome] = OrderedDict()  # asked for last at the end
        self._running: dict[tuple[str, str], str] = {}  # task id to the player it runs for
        self._errands: list[tuple[str, Callable[[], None]]] = []
        self._refined: OrderedDict[tuple[str, str], None] = OrderedDict()  # finalists timed again
        self._turn = 0
        self._speed: dict[str, float] = {}  # seconds per candidate, by workload
        self._down = ""
        self._faults = 0
        self._closed = False
        self._early = False  # before anything is wanted
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------ what players ask for

    def want(self, player: str, tasks: Sequence[tuple[int, Task]]) -> None:
        """Replace what a player wants measured; (rank, task), smaller ranks sooner. Renews the lease."""
        with self._lock:
            state = self._players.setdefault(player, _Player())
            wanted: dict[tuple[str, str], tuple[int, int, Task]] = {}
            for order, (rank, task) in enumerate(tasks):
                known = self._results.get(task.id)
                # What was only looked at as a candidate is verified when it comes to the board.
                if known is None or not known.stands or (known.status == "untimed" and rank == 0):
                    # The start program on the board is wanted twice: with the care of the one on the board.
                    wanted[task.id] = min(
                        wanted.get(task.id, (rank, order, task)), (rank, order, task), key=_rank
                    )
            if not wanted.keys() & state.tasks.keys():
                state.begun = False
            state.tasks = wanted
            state.references = [task for rank, task in tasks if rank < RANKED]
            state.candidates = [task for rank, task in tasks if rank >= RANKED]
            state.renewed = self._clock()
            self._start()
            self._lock.notify_all()

    def renew(self, player: str) -> None:
        """The player still looks at the results."""
        with self._lock:
            state = self._players.get(player)
            if state is not None:
                gone = self._clock() - state.renewed > self._lease
                state.renewed = self._clock()
                if gone:
                    self._lock.notify_all()

    def drop(self, player: str) -> None:
        """Cancel what a player wants."""
        with self._lock:
            self._players.pop(player, None)

    def begin(self) -> None:
        """Start the measuring thread, whose bench gets ready at once: the first result comes sooner."""
        with self._lock:
            self._early = True
            self._start()

    def errand(self, name: str, work: Callable[[], None]) -> bool:
        """Run something between batches, never beside a measurement: compiling for the assembly view.

        False where an errand of that name waits already, which will do for this one.
        """
        with self._lock:
            if any(name == waiting for waiting, _ in self._errands):
                return False
            self._errands.append((name, work))
            self._start()
            self._lock.notify_all()
            return True

    def restart(self) -> None:
        """Try again with a new measurer after it died for good."""
        with self._lock:
            self._down = ""
            self._faults = 0
            self._lock.notify_all()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=15)

    # ------------------------------------------------------------------ what is known

    def know(self, key: str, outcomes: dict[str, Outcome]) -> None:
        """Add results from the records."""
        with self._lock:
            for program_hash, outcome in outcomes.items():
                if (key, program_hash) not in self._results:
                    self._keep((key, program_hash), outcome)

    def results(self, key: str, hashes: Sequence[str]) -> list[Outcome | None]:
        with self._lock:
            for h in hashes:
                if (key, h) in self._results:
                    self._results.move_to_end((key, h))
            return [self._results.get((key, h)) for h in hashes]

    def _finalists(self, state: _Player) -> list[Task]:
        """The fastest candidates that have not been timed twice."""
        known = [(self._results.get(task.id), task) for task in state.candidates]
        timed = [
            (outcome.seconds, n, task) for n, (outcome, task) in enumerate(known) if outcome and outcome.ok
        ]
        fastest = [task for _, _, task in sorted(timed, key=lambda entry: entry[:2])[:FINALISTS]]
        return [task for task in fastest if task.id not in self._refined]

    def _keep(self, task: tuple[str, str], outcome: Outcome) -> None:
        self._results[task] = outcome
        while len(self._results) > KEPT_RESULTS:
            self._results.popitem(last=False)

    def running(self, key: str) -> set[str]:
        """Hashes of the programs of the batch that is being measured."""
        with self._lock:
            return {h for k, h in self._running if k == key}

    def serves(self) -> str | None:
        """The player whose batch is being measured."""
        with self._lock:
            return next(iter(self._running.values()), None)

    def wanted(self, player: str) -> set[str]:
        """Hashes of the programs that the player still waits for."""
        with self._lock:
            state = self._players.get(player)
            return set() if state is None else {program_hash for _, program_hash in state.tasks}

    def open_tasks(self, player: str) -> int:
        """How many programs the player still waits for."""
        with self._lock:
            state = self._players.get(player)
            return 0 if state is None else len(state.tasks) or len(self._finalists(state))

    def seconds_left(self, player: str) -> float | None:
        """How long the player's open programs take at the pace so far; None before a pace is known."""
        with self._lock:
            state = self._players.get(player)
            tasks = [] if state is None else [task for _, _, task in state.tasks.values()]
            paces = [self._speed.get(task.key) for task in tasks]
            return None if not paces or None in paces else sum(p for p in paces if p is not None)

    @property
    def down(self) -> str:
        """Why measuring has stopped for good, or an empty string."""
        with self._lock:
            return self._down

    # ------------------------------------------------------------------ the measuring thread

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="measuring", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        bench: Bench | None = None
        try:
            bench = self._make_bench()
            if self._early:
                bench.warm()
        except Exception:
            log.exception(
                "no measurer yet"
            )  # it is tried again, and told, when there is something to measure
        while True:
            errand, batch = self._next()
            if errand is not None:
                try:
                    errand()
                except Exception:
                    log.exception("an errand failed")
                continue
            if batch is None:
                break
            begun = time.monotonic()
            try:
                if bench is None:
                    bench = self._make_bench()
                    begun = time.monotonic()
                self._measure(bench, batch)
                self._faults = 0
            except Exception as fault:
                log.exception("the measurer failed")
                self._after_fault(bench, fault)
                bench = None
            finally:
                with self._lock:
                    self._running.clear()
                    if len(batch.tasks) >= LEAST:
                        took = (time.monotonic() - begun) / len(batch.tasks)
                        key = batch.tasks[0].key
                        self._speed[key] = 0.5 * self._speed.get(key, took) + 0.5 * took
        if bench is not None:
            bench.close()

    def _after_fault(self, bench: Bench | None, fault: Exception) -> None:
        """One new try with a fresh measurer; a second fault in a row stops measuring until a restart."""
        if bench is not None:
            try:
                bench.close()
            except Exception:
                log.exception("closing the measurer failed")
        with self._lock:
            self._faults += 1
            if self._faults >= 2:
                said = str(fault).strip().splitlines()
                self._down = said[0] if said else type(fault).__name__

    def _next(
        self,
    ) -> tuple[Callable[[], None] | None, _Batch | None]:
        """Wait for the next errand or batch; (None, None) when the queue closes."""
        with self._lock:
            while not self._closed:
                if self._errands:
                    return self._errands.pop(0)[1], None
                batch = None if self._down else self._pick()
                if batch is not None:
                    self._running = {task.id: batch.player for task in batch.tasks}
                    return None, batch
                # leases run out and come back without a notice: look again now and then
                self._lock.wait(timeout=None if not self._players else self._lease)
            return None, None

    def _pick(self) -> _Batch | None:
        now = self._clock()
        live = [
            (state.served, name)
            for name, state in self._players.items()
            if now - state.renewed <= self._lease and (state.tasks or self._finalists(state))
        ]
        if not live:
            return None
        player = min(live)[1]
        state = self._players[player]
        self._turn += 1
        state.served = self._turn
        if not state.tasks:
            return _Batch(
                player, self._finalists(state), careful=True, again=True, references=state.references
            )
        queued = sorted(state.tasks.values(), key=_rank)
        careful = queued[0][0] == 0
        if careful:  # the position itself: alone, and with more runs
            count = 1
        elif not state.begun:
            count, state.begun = FIRST, True
        else:
            speed = self._speed.get(queued[0][2].key, BATCH_SECONDS / 8)
            count = max(LEAST, min(MOST, int(BATCH_SECONDS / max(speed, 1e-3))))
        key = queued[0][2].key
        tasks = [task for _, _, task in queued if task.key == key][:count]
        # One of the two references a batch, in turns; none while a player waits for the first results.
        turn = self._turn % max(1, len(state.references))
        due = state.references[turn : turn + 1] if count >= LEAST else []
        return _Batch(player, tasks, careful, references=due)

    def _measure(self, bench: Bench, batch: _Batch) -> None:
        answered: set[str] = set()
        by_hash = {task.hash: task for task in (*batch.tasks, *batch.references)}

        def on_result(program_hash: str, outcome: Outcome) -> None:
            answered.add(program_hash)
            if outcome.status != "cancelled" and program_hash in by_hash:
                self._store(by_hash[program_hash], outcome)

        def cancelled() -> bool:
            if batch.again and not self._present(batch.player):
                return True
            with self._lock:
                if batch.again:
                    return batch.tasks[0] not in self._players[batch.player].candidates
                if self._closed:
                    return True
                now = self._clock()
                return not any(
                    state.tasks.keys() & self._running.keys() and now - state.renewed <= self._lease
                    for state in self._players.values()
                )

        workload = batch.tasks[0].workload
        programs = [task.program for task in batch.tasks]
        lines = {task.hash: task.line for task in by_hash.values()}
        bench.measure(workload, programs, batch.careful, on_result, cancelled, batch.again, lines)
        if batch.again:
            with self._lock:
                self._refined.update(dict.fromkeys(task.id for task in batch.tasks))
                while len(self._refined) > KEPT_REFINED:
                    self._refined.popitem(last=False)
        elif not cancelled():
            for task in batch.tasks:  # never ask again for what gave no answer: it would be asked for ever
                if task.hash not in answered:
                    self._store(
                        task, Outcome("crash", message="The measurer gave no result for this program.")
                    )
        known = [t for t in batch.references if self.results(t.key, [t.hash]) != [None]]
        if known and self._present(batch.player):
            programs = [task.program for task in known]
            bench.measure(
                workload, programs, False, on_result, lambda: not self._present(batch.player), True, lines
            )

    def _present(self, player: str) -> bool:
        """Does the player still look at the results?"""
        with self._lock:
            state = self._players.get(player)
            return not self._closed and state is not None and self._clock() - state.renewed <= self._lease

    def _store(self, task: Task, outcome: Outcome) -> None:
        with self._lock:
            self._keep(task.id, outcome.shorter(self._results.get(task.id)))
            self._running.pop(task.id, None)
            for state in self._players.values():
                state.tasks.pop(task.id, None)
