"""A measuring worker: one in each process of dask's workers. It measures what is asked and tells its machine.

dask starts it as a preload module (``dask worker --preload agents.scale.worker``). The worker then offers
two resources: one measuring slot, and one named for the machine's fingerprint, so that the scheduler itself
keeps a tuning on machines whose times may be compared. And it tells its processor, for whose vectors and
caches the tuning plays.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from agents.scale.wire import Answer, Introduction, Request
from agents.timing import MachineTiming, Timing
from dojo_core.measure.exchange import to_line
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.cpu.processor import Processor, host

if TYPE_CHECKING:
    from distributed import Worker

SLOT = "dojo-measuring-slot"
MACHINE = "dojo-machine-"
INTRODUCTION = "dojo-introduction"  # beside what dask knows of a worker


def resources(fingerprint: str) -> dict[str, float]:
    """What a worker on a machine offers, and what a measurement there needs."""
    return {SLOT: 1.0, MACHINE + fingerprint: 1.0}


class MeasuringWorker:
    """Answers requests. ``timing`` stands in for the clock, ``fingerprint`` and ``processor`` for this
    machine's.

    Its own records lie in a temporary folder, on this machine's disk: what it measures goes back with the
    answer, and the tuning keeps it.
    """

    def __init__(
        self,
        timing: Timing | None = None,
        fingerprint: str | None = None,
        processor: Processor | None = None,
    ) -> None:
        self.fingerprint = fingerprint or this_machine().fingerprint
        self.introduction = Introduction(self.fingerprint, processor or host())
        self._timing = timing
        self._measurer: Measurer | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._sent = 0  # id of the last record that was sent

    def answer(self, request: Request) -> Answer:
        """Measure; blocks."""
        if self._timing is not None:
            measurements = self._timing.measure(
                request.workload, request.programs, request.lines, request.effort, lambda: False
            )
            return Answer(self.fingerprint, tuple(measurements))
        measurer, records = self._opened()
        if request.best is not None:
            measurer.heard(request.workload, request.best)
        measurements = MachineTiming(measurer, request.player).measure(
            request.workload, request.programs, request.lines, request.effort, lambda: False
        )
        new = records.measurements(self._sent)
        self._sent = new[-1][0] if new else self._sent
        return Answer(self.fingerprint, tuple(measurements), tuple(to_line(record) for _, record in new))

    def _opened(self) -> tuple[Measurer, Records]:
        if self._measurer is None:
            self._folder = tempfile.TemporaryDirectory(prefix="dojo-worker-")
            self._measurer = Measurer(Records(Path(self._folder.name) / "records.sqlite"))
        assert self._measurer.records is not None
        return self._measurer, self._measurer.records

    def close(self) -> None:
        """End the measuring process."""
        if self._measurer is not None:
            self._measurer.close()
            assert self._measurer.records is not None
            self._measurer.records.close()
            self._measurer = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


_worker: MeasuringWorker | None = None  # of this process, where the tasks of a dask worker find it


def attach(dask_worker: Worker, worker: MeasuringWorker) -> None:
    """Let a dask worker answer with a measuring one, and offer what that is."""
    global _worker
    _worker = worker
    state = dask_worker.state
    for name, quantity in resources(worker.fingerprint).items():
        state.total_resources[name] = state.available_resources[name] = quantity
    introduction = worker.introduction.text()
    dask_worker.startup_information[INTRODUCTION] = lambda _: introduction


def measure(request: str) -> str:
    """The task that a tuning sends: answer a request with this process's measuring worker."""
    if _worker is None:
        raise RuntimeError("This dask worker measures nothing for the Dojo: start it with dojo worker.")
    return _worker.answer(Request.read(request)).text()


async def dask_setup(dask_worker: Worker) -> None:
    """Called by dask before the worker registers."""
    attach(dask_worker, MeasuringWorker())


async def dask_teardown(dask_worker: Worker) -> None:
    """Called by dask when the worker ends."""
    if _worker is not None:
        _worker.close()
