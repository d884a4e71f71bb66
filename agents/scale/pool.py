"""A tuning's end of a cluster: sends programs to machines of one fingerprint and waits for their times.

Whatever dies is done without: a worker (its program is measured by another), all workers (it waits for the
next), the scheduler (it connects again and sends what was open once more). What has been measured is in the
run's log by then, so that nothing is measured twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError as ThreadCancelled
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agents.scale.wire import Answer, Introduction, OtherVersion, Request
from agents.scale.worker import INTRODUCTION, MACHINE, measure, resources
from dojo_core.measure.exchange import NoRecord, take_in
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import SETTLED, Effort, Measurement, Origin, Workload
from dojo_core.measure.records import Record, Records
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import machines
from dojo_core.targets.cpu.elsewhere import is_part
from dojo_core.targets.cpu.processor import NotAProcessor, Processor
from dojo_core.targets.registry import base

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

log = logging.getLogger("dojo.scale")

PATIENCE = 600.0  # seconds without a scheduler, or without a worker, before the tuning gives up
POLL = 0.5  # seconds between looks at who is there
CONNECT = 5.0  # seconds of one attempt
THREADS = 64  # requests that wait at once


class PoolLost(RuntimeError):
    """There is nobody left to measure; ``str()`` is a sentence for a person."""


class WorkerPool:
    """A connection to a scheduler. Close it, or use it in ``with``. Thread-safe.

    ``notify`` hears sentences when the tuning has to wait, and when it goes on. Raises PoolLost where no
    scheduler answers.
    """

    def __init__(
        self,
        address: str,
        security: Security | None = None,
        patience: float = PATIENCE,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.address = address
        self._security = security
        self._patience = patience
        self._notify = notify or log.info
        self._client: Client | None = None
        self._lock = threading.Lock()
        self._free = threading.Condition()
        self._out: Counter[str] = Counter()  # requests sent and not answered, by fingerprint
        self._closed = False
        self._seen: tuple[float, dict[str, int]] = (-1e9, {})
        self._introduced: dict[str, Processor | OtherVersion] = {}  # by fingerprint
        self._threads = ThreadPoolExecutor(THREADS, "dojo-pool")
        self._connected(CONNECT)

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._drop()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ who is there

    def machines(self) -> dict[str, int]:
        """Workers by the fingerprint of their machine, as of the last half second."""
        with self._free:
            when, counts = self._seen
            if time.monotonic() - when < POLL:
                return counts
            self._seen = (time.monotonic(), counts)
        try:
            info = self._connected(self._patience).scheduler_info(n_workers=-1)
        except _lost():
            return counts
        counts = _machines(info)
        self._introduce(info)
        with self._free:
            self._seen = (time.monotonic(), counts)
            self._free.notify_all()
        return counts

    def processor(self, fingerprint: str) -> Processor:
        """What the workers on a machine told that theirs is. Raises OtherVersion where they did not."""
        processor = self._introduced.get(fingerprint)
        if isinstance(processor, Processor):
            return processor
        raise processor or OtherVersion(
            f"The workers on machine {fingerprint} do not tell their processor: "
            "give them the Dojo of the tuning."
        )

    def _introduce(self, info: Mapping[str, Any]) -> None:
        """Read what new machines' workers say of themselves, and remember it for games and for later."""
        for address, worker in info.get("workers", {}).items():
            for fingerprint in _fingerprints(worker):
                if self._tells(fingerprint) or INTRODUCTION not in worker:
                    continue
                try:
                    introduction = Introduction.read(str(worker[INTRODUCTION]))
                    if introduction.fingerprint != fingerprint:
                        raise OtherVersion(
                            f"it offers {fingerprint}, and tells of {introduction.fingerprint}"
                        )
                    if fingerprint != this_machine().fingerprint:
                        machines.remember(fingerprint, introduction.processor)
                    self._introduced[fingerprint] = introduction.processor
                except (OtherVersion, NotAProcessor) as fault:
                    self._introduced[fingerprint] = OtherVersion(
                        f"What the worker at {address} says of its processor cannot be used. {fault}"
                    )

    def choose(self, wanted: str | None = None, prefer: Callable[[str], bool] | None = None) -> str:
        """The fingerprint of the machines to tune on; waits for the first worker.

        ``wanted`` may be its beginning, or a part of its processor's name. Without it: machines that
        ``prefer`` names, such as those of a run that was stopped, else those that are most. Those that do not
        tell their processor come last.
        """
        end = time.monotonic() + self._patience
        quiet = True
        while True:
            counts = {f: n for f, n in self.machines().items() if self._is(f, wanted or "")}
            if counts:
                return min(
                    counts, key=lambda f: (not self._tells(f), not (prefer and prefer(f)), -counts[f], f)
                )
            others = ", ".join(sorted(self.machines()))
            if wanted and others and any(self.machines().values()):
                raise PoolLost(f"No worker is on a machine {wanted}: there are {others}.")
            if time.monotonic() > end:
                raise PoolLost(f"No worker came: start some with dojo worker {self.address}")
            if quiet:
                self._notify(f"Waiting for workers: dojo worker {self.address}")
                quiet = False
            time.sleep(POLL)

    def _tells(self, fingerprint: str) -> bool:
        return isinstance(self._introduced.get(fingerprint), Processor)

    def _is(self, fingerprint: str, wanted: str) -> bool:
        processor = self._introduced.get(fingerprint)
        name = processor.name if isinstance(processor, Processor) else ""
        return fingerprint.startswith(wanted) or is_part(wanted, name)

    # ------------------------------------------------------------------ work

    def send(
        self, fingerprint: str, request: Request, cancelled: Callable[[], bool]
    ) -> Future[Answer | None]:
        """Have a request answered by a machine; None where the caller asked to stop. May raise PoolLost."""
        return self._threads.submit(self._ask, fingerprint, request, lambda: self._closed or cancelled())

    def _ask(self, fingerprint: str, request: Request, cancelled: Callable[[], bool]) -> Answer | None:
        if not self._slot(fingerprint, cancelled):
            return None
        try:
            return self._answered(fingerprint, request, cancelled)
        finally:
            with self._free:
                self._out[fingerprint] -= 1
                self._free.notify_all()

    def _slot(self, fingerprint: str, cancelled: Callable[[], bool]) -> bool:
        """Wait for a free worker: no more is sent than is measured, so that a slow worker holds up little."""
        since = time.monotonic()
        quiet = True
        while not cancelled():
            workers = self.machines().get(fingerprint, 0)
            with self._free:
                if self._out[fingerprint] < workers:
                    self._out[fingerprint] += 1
                    if not quiet:
                        self._notify("A worker is there: going on.")
                    return True
                if workers:
                    since = time.monotonic()
                self._free.wait(POLL)
            if time.monotonic() - since > self._patience:
                raise PoolLost(
                    f"No worker on a machine {fingerprint} is left: start one with dojo worker "
                    f"{self.address}, then give the same command again. What was measured is kept."
                )
            if quiet and time.monotonic() - since > 5 * POLL:
                self._notify(f"Waiting for a worker on a machine {fingerprint}: dojo worker {self.address}")
                quiet = False
        return False

    def _answered(self, fingerprint: str, request: Request, cancelled: Callable[[], bool]) -> Answer | None:
        from distributed import KilledWorker

        text = request.text()
        while True:
            client = self._connected(self._patience)
            try:
                future = client.submit(measure, text, resources=resources(fingerprint), pure=False)
                done = threading.Event()
                future.add_done_callback(partial(_set, done))
                while not done.wait(POLL):
                    if cancelled():
                        future.cancel()
                        return None
                    if client.status not in ("running", "connecting"):
                        raise ConnectionError("the scheduler is gone")
                return Answer.read(future.result(timeout=CONNECT))
            except KilledWorker:
                message = "Four workers died while they measured it, so it is not tried again."
                refused = tuple(Measurement(p.hash, "", "refused", message) for p in request.programs)
                return Answer(fingerprint, refused)
            except OtherVersion:
                raise
            except _lost():
                self._lose(client)

    # ------------------------------------------------------------------ the connection

    def _connected(self, patience: float) -> Client:
        """The client; connects where it is lost. Raises PoolLost after so many seconds."""
        from distributed import Client

        with self._lock:
            end = time.monotonic() + patience
            quiet = True
            while self._client is None:
                try:
                    self._client = Client(
                        self.address, security=self._security, timeout=CONNECT, set_as_default=False
                    )
                except (OSError, ValueError, RuntimeError) as error:
                    if self._closed or time.monotonic() > end:
                        raise PoolLost(
                            f"No scheduler answers at {self.address}: start one with dojo scheduler, and "
                            f"give its key file here as there. ({str(error)[:120]})"
                        ) from None
                    if quiet and patience > CONNECT:
                        self._notify(f"The scheduler at {self.address} does not answer: trying again.")
                        quiet = False
                    time.sleep(POLL)
            return self._client

    def _lose(self, client: Client) -> None:
        """Forget a connection, unless another thread has made a new one already."""
        with self._lock:
            if self._client is client:
                self._drop()
        with self._free:
            self._seen = (-1e9, {})

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            try:
                client.close(timeout=2)
            except Exception:  # it is lost anyhow
                log.debug("closing a lost connection", exc_info=True)


def _set(done: threading.Event, _: object) -> None:
    done.set()


def _lost() -> tuple[type[BaseException], ...]:
    """What dask raises where the scheduler, or what it knew of a task, is gone."""
    from asyncio import CancelledError

    return (OSError, TimeoutError, CancelledError, ThreadCancelled)


def _machines(info: Mapping[str, Any]) -> dict[str, int]:
    count: Counter[str] = Counter()
    for worker in info.get("workers", {}).values():  # nothing is told while the client connects anew
        count.update(_fingerprints(worker))
    return dict(count)


def _fingerprints(worker: Mapping[str, Any]) -> list[str]:
    """Of the machine that a worker offers; of a dask worker of another kind none."""
    return [name.removeprefix(MACHINE) for name in worker["resources"] if name.startswith(MACHINE)]


class PoolTiming:
    """Times from a pool's machines of one fingerprint; records go into this user's database.

    Candidates go one by one to whichever worker is free; finalists all to one worker, one after another, so
    that those who are compared at the end ran side by side with the start.
    """

    def __init__(
        self, pool: WorkerPool, fingerprint: str, player: str, records: Records | None = None
    ) -> None:
        self._pool, self._fingerprint, self._player, self._records = pool, fingerprint, player, records
        self._best: dict[str, float] = {}  # seconds, by start program

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        """One measurement for each program, in order. Raises PoolLost."""
        workload = replace(workload, target=base(workload.target))  # as workers and records call it
        known = {} if effort is Effort.FINAL else self._known(workload, programs, effort)
        rest = [p for p in dict.fromkeys(programs) if p.hash not in known]
        batches = [rest] if effort is Effort.FINAL else [[p] for p in rest]
        sent = {}
        for batch in filter(None, batches):
            hashes = {p.hash for p in batch}
            batch_lines = {h: line for h, line in lines.items() if h in hashes}
            best = self._best_of(workload)
            request = Request(workload, tuple(batch), batch_lines, effort, self._player, best)
            sent[self._pool.send(self._fingerprint, request, cancelled)] = batch
        for future in as_completed(sent):  # records are kept as they come
            batch, answer = sent[future], future.result()
            if answer is None:
                message = "Not measured: the request was cancelled."
                known.update({p.hash: Measurement(p.hash, "", "cancelled", message) for p in batch})
                continue
            self._take(workload, answer)
            known.update({p.hash: m for p, m in zip(batch, answer.results, strict=True)})
        return [known[p.hash] for p in programs]

    def _known(
        self, workload: Workload, programs: Sequence[Program], effort: Effort
    ) -> dict[str, Measurement]:
        """What the records have of these programs on such a machine, with as much effort."""
        if self._records is None:
            return {}
        where = (workload.target, self._fingerprint, workload.policy, workload.start.hash)
        records = self._records.known_all((p.hash for p in programs), *where)
        return {
            key: Measurement.recorded(record)
            for key, record in records.items()
            if record.status in SETTLED
            or (Effort.rank_of(record.effort) >= effort.rank and self._believes(record))
        }

    def _believes(self, record: Record) -> bool:
        """Whether those machines tell their load is not known here: what does not tell is not doubted."""
        return Origin(DEFAULT_TARGET, self._fingerprint, "").believes(record)

    def _best_of(self, workload: Workload) -> float | None:
        start = workload.start.hash
        if start not in self._best and self._records is not None:
            record = self._records.best(start, workload.target, self._fingerprint)
            if record is not None and record.seconds is not None:
                self._best[start] = record.seconds
        return self._best.get(start)

    def _take(self, workload: Workload, answer: Answer) -> None:
        if self._records is not None and answer.records:
            try:
                take_in(self._records, answer.records)
            except NoRecord:
                log.exception("a worker sent a record that is none")
        times = [m.seconds for m in answer.results if m.seconds is not None and m.verified]
        if times:
            start = workload.start.hash
            self._best[start] = min(*times, self._best.get(start, times[0]))
