"""The measuring queue: one machine, many players, one batch at a time.

A player *wants* programs measured, each with a rank (smaller is sooner). People take turns, batch by batch,
however many tabs each has open (a player is a tab), and theirs among themselves; who goes on to another game
keeps their place. Within a player the ranks decide. A want holds as long as its *lease*: whoever looks at the
results renews it, and what nobody looks at any more is dropped. Playing a move replaces a player's
wants, which cancels the open ones; a result once found stays, for everybody.

A machine has slow minutes, and does other things as well. So candidates are timed in turns with the program
on the player's board, and what is kept of them is the ratio within each round (measure/speed.py). What that
leaves open is timed again while the player looks, and the fastest ones are once more; both a few times only.
A time of the board, the start or the line that was taken beside other processes is taken again in quiet.

One thread owns the measurer. It never calls back into a page: whoever wants to know asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dojo_core.measure.speed import Speed
from dojo_core.measure.turns import GROUP
from dojo_core.program.tree import Program
from dojo_core.service.standings import Outcome, Standings, Task

__all__ = ["Bench", "MeasuringQueue", "Outcome", "Task"]

log = logging.getLogger(__name__)

# The first ranks are for the program on the board and the start program, the last for the rest of the line.
RANKED, LINE = 2, 6
ROUGH = "rough"  # the status of an outcome before the one that counts: seconds of a run, not verified
LEASE = 6.0  # seconds without a poll until a player counts as gone
FIRST, LEAST, MOST = 2, 4, 16  # candidates per batch: the first one of a player, then by their speed
ERRANDS = 4  # in a row, before a batch that waits
KEPT_PEOPLE = 1000  # whose last turn is remembered
ROUND_SECONDS = 20.0  # in which everybody who waits should have had a turn: batches of many people are small
BATCH_SECONDS = 2.5  # what a batch should take: other players wait for it, cancelled work may run on in it


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
        against: Program | None = None,
    ) -> None:
        """``careful``: with more runs; ``again``: also what is known already; ``lines``: the moves to each
        program from the start, by its hash; ``against``: in turns with this one, of which ``on_result`` hears
        too. It may hear of a ``ROUGH`` outcome first."""
        ...

    def warm(self) -> None:
        """Prepare what takes time, before there is something to measure."""
        ...

    def close(self) -> None: ...


@dataclass
class _Player:
    person: str  # whose turn it is, where a batch of this player's is measured
    tasks: dict[tuple[str, str], tuple[int, int, Task]] = field(default_factory=dict)
    references: list[Task] = field(default_factory=list)  # of rank below RANKED
    board: Task | None = None  # that of rank 0, which candidates are held against
    candidates: list[Task] = field(default_factory=list)  # what moves lead to, known or not
    line: list[Task] = field(default_factory=list)  # of rank LINE and above
    renewed: float = 0.0
    served: int = 0
    begun: bool = False  # its first batch is small, so that something shows soon


@dataclass(frozen=True)
class _Batch:
    """What the measurer does in one go, in turns with ``against``."""

    player: str
    tasks: list[Task]
    careful: bool = False
    again: bool = False
    against: Task | None = None


def stopped(down: str) -> str:
    """That nothing is measured any more, and what ended it, as a sentence."""
    return f"The measurer has stopped ({down})."


def _rank(entry: tuple[int, int, Task]) -> tuple[int, int]:
    return entry[:2]


class MeasuringQueue:
    """Thread-safe. ``make_bench`` is called in the measuring thread, at its start and after a fault; ``idle``
    says whether the machine does nothing else just now."""

    def __init__(
        self,
        make_bench: Callable[[], Bench],
        lease: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
        idle: Callable[[], bool] = lambda: True,
    ) -> None:
        self._make_bench = make_bench
        self._lease = lease
        self._clock = clock
        self.standings = Standings(idle)  # under the lock
        self._lock = threading.Condition()
        self._players: dict[str, _Player] = {}
        self._running: dict[tuple[str, str], str] = {}  # task id to the player it runs for
        self._errands: list[tuple[str, Callable[[], None]]] = []
        self._turn = 0
        self._served: dict[str, int] = {}  # each person's last turn, the longest ago first
        self._errands_done = 0  # in a row
        self._speed: dict[str, float] = {}  # seconds per candidate, by workload
        self._down = ""
        self._faults = 0
        self._closed = False
        self._early = False  # before anything is wanted
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------ what players ask for

    def want(self, player: str, tasks: Sequence[tuple[int, Task]], person: str = "") -> None:
        """Replace what a player wants measured; (rank, task), smaller ranks sooner. Renews the lease.

        ``person``: who plays there, and maybe in other tabs; each has one turn in a round.
        """
        with self._lock:
            state = self._players.setdefault(player, _Player(player))
            state.person = person or player
            wanted: dict[tuple[str, str], tuple[int, int, Task]] = {}
            for order, (rank, task) in enumerate(tasks):
                known = self.standings.outcome(task.id)
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
            state.board = next((task for rank, task in tasks if rank == 0), None)
            state.candidates = [task for rank, task in tasks if RANKED <= rank < LINE]
            state.line = [task for rank, task in tasks if rank >= LINE]
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
                if self.standings.outcome((key, program_hash)) is None:
                    self.standings.keep((key, program_hash), outcome)

    def results(self, key: str, hashes: Sequence[str]) -> list[Outcome | None]:
        with self._lock:
            return [self.standings.asked((key, h)) for h in hashes]

    def rough(self, key: str, program: str) -> float | None:
        """Seconds of a program's first run, not verified, until its time is known."""
        with self._lock:
            return self.standings.rough.get((key, program))

    def speeds(
        self, key: str, against: str, hashes: Sequence[str], steady: float | None = None
    ) -> list[Speed | None]:
        """How many times as fast programs are as the one of hash ``against``; None while one has no time."""
        with self._lock:
            return [self.standings.speed(key, against, h, steady) for h in hashes]

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
            if state is None:
                return 0
            return len(state.tasks) or len(self._more(state))

    def waits_for_quiet(self, player: str) -> bool:
        """Would more be timed again for the player, did the machine do nothing else?"""
        with self._lock:
            state = self._players.get(player)
            return state is not None and bool(self.standings.doubted((*state.references, *state.line)))

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
                    if len(batch.tasks) >= FIRST:
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
                lines = str(fault).strip().splitlines()
                self._down = lines[0] if lines else type(fault).__name__

    def _next(
        self,
    ) -> tuple[Callable[[], None] | None, _Batch | None]:
        """Wait for the next errand or batch; (None, None) when the queue closes."""
        with self._lock:
            while not self._closed:
                batch = None
                if not self._down and (not self._errands or self._errands_done >= ERRANDS):
                    batch = self._pick()
                if batch is None and self._errands:
                    self._errands_done += 1
                    return self._errands.pop(0)[1], None
                if batch is not None:
                    self._errands_done = 0
                    self._running = {task.id: batch.player for task in batch.tasks}
                    return None, batch
                # leases run out and come back without a notice: look again now and then
                self._lock.wait(timeout=None if not self._players else self._lease)
            return None, None

    def _pick(self) -> _Batch | None:
        now = self._clock()
        live = [
            (self._served.get(state.person, 0), state.served, name)
            for name, state in self._players.items()
            if now - state.renewed <= self._lease and (state.tasks or self._more(state))
        ]
        if not live:
            return None
        player = min(live)[2]
        state = self._players[player]
        people = len({self._players[name].person for _, _, name in live})
        self._turn += 1
        self._served.pop(state.person, None)
        state.served = self._served[state.person] = self._turn
        if len(self._served) > KEPT_PEOPLE:
            self._served.pop(next(iter(self._served)))
        if not state.tasks:
            due = self.standings.open(state.board, state.candidates)[:GROUP]
            if due:
                return _Batch(player, due, again=True, against=state.board)
            return _Batch(player, self._more(state)[:1], careful=True, again=True)
        queued = sorted(state.tasks.values(), key=_rank)
        careful = queued[0][0] == 0
        if careful:  # the position itself: alone, and with more runs
            count = 1
        elif not state.begun:
            count, state.begun = FIRST, True
        else:
            speed = self._speed.get(queued[0][2].key, BATCH_SECONDS / 8)
            seconds = min(BATCH_SECONDS, ROUND_SECONDS / people)
            count = max(LEAST, min(MOST, int(seconds / max(speed, 1e-3))))
        key = queued[0][2].key
        tasks = [task for _, _, task in queued if task.key == key][:count]
        board = state.board
        known = self.standings.outcome(board.id) if board is not None else None
        held = board if board is not None and known is not None and known.ok and board.key == key else None
        return _Batch(player, tasks, careful, against=None if careful else held)

    def _measure(self, bench: Bench, batch: _Batch) -> None:
        answered: dict[str, Outcome] = {}
        against, given_up = batch.against, False
        by_hash = {task.hash: task for task in (*([against] if against else []), *batch.tasks)}

        def on_result(program_hash: str, outcome: Outcome) -> None:
            nonlocal given_up
            if outcome.status == ROUGH:
                with self._lock:
                    self.standings.rough[by_hash[program_hash].id] = outcome.seconds
            elif outcome.status == "cancelled":
                given_up = True
            elif program_hash in by_hash:
                answered[program_hash] = outcome
                self._store(by_hash[program_hash], outcome, against)

        def cancelled() -> bool:
            if batch.again and not self._present(batch.player):
                return True
            with self._lock:
                if batch.again:
                    state = self._players.get(batch.player, _Player(""))
                    return batch.tasks[0] not in (*state.candidates, *state.references, *state.line)
                if self._closed:
                    return True
                now = self._clock()
                return not any(
                    state.tasks.keys() & self._running.keys() and now - state.renewed <= self._lease
                    for state in self._players.values()
                )

        programs = [task.program for task in batch.tasks]
        with self._lock:  # a move may lead back to what was there before: that came by its own line
            state = self._players.get(batch.player, _Player(""))
            tasks = [*batch.tasks, *reversed(state.line), *reversed(state.references)]
        lines = {task.hash: task.line for task in tasks}
        bench.measure(
            batch.tasks[0].workload, programs, batch.careful, on_result, cancelled, batch.again, lines,
            None if against is None else against.program,
        )  # fmt: skip
        stopped = given_up or cancelled()
        for task in batch.tasks:  # never ask again for what gave no answer: it would be asked for ever
            if batch.again and not stopped:
                with self._lock:
                    self.standings.looked(task, against, answered.get(task.hash))
            elif task.hash not in answered and not stopped:
                self._store(task, Outcome("crash", message="The measurer gave no result for this program."))

    def _more(self, state: _Player) -> list[Task]:
        """What is timed once more when all is known: what is open, then what is doubtful."""
        due = self.standings.open(state.board, state.candidates)
        return due or self.standings.doubtful((*state.references, *state.line))

    def _present(self, player: str) -> bool:
        """Does the player still look at the results?"""
        with self._lock:
            state = self._players.get(player)
            return not self._closed and state is not None and self._clock() - state.renewed <= self._lease

    def _store(self, task: Task, outcome: Outcome, against: Task | None = None) -> None:
        with self._lock:
            self.standings.add(task, outcome, against)
            self._running.pop(task.id, None)
            for state in self._players.values():
                state.tasks.pop(task.id, None)
