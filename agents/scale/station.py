"""A measuring station: one in each worker process. It measures what is asked and tells which machine it is.

dask starts it as a preload module (``dask worker --preload agents.scale.station``). The worker then offers
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


class Station:
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
            found = self._timing.measure(
                request.workload, request.programs, request.lines, request.effort, lambda: False
            )
            return Answer(self.fingerprint, tuple(found))
        measurer, records = self._opened()
        if request.best is not None:
            measurer.heard(request.workload, request.best)
        found = MachineTiming(measurer, request.player).measure(
            request.workload, request.programs, request.lines, request.effort, lambda: False
        )
        new = records.measurements(self._sent)
        self._sent = new[-1][0] if new else self._sent
        return Answer(self.fingerprint, tuple(found), tuple(to_line(record) for _, record in new))

    def _opened(self) -> tuple[Measurer, Records]:
        if self._measurer is None:
            self._folder = tempfile.TemporaryDirectory(prefix="dojo-station-")
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


_station: Station | None = None  # of this process: a dask worker's tasks have no other place to find it


def open_station(worker: Worker, station: Station) -> None:
    """Let a worker answer with a station, and offer what it is."""
    global _station
    _station = station
    for name, quantity in resources(station.fingerprint).items():
        worker.state.total_resources[name] = worker.state.available_resources[name] = quantity
    told = station.introduction.text()
    worker.startup_information[INTRODUCTION] = lambda _: told


def measure(request: str) -> str:
    """The task that a tuning sends: answer a request with this process's station."""
    if _station is None:
        raise RuntimeError("This dask worker has no measuring station: start it with dojo worker.")
    return _station.answer(Request.read(request)).text()


async def dask_setup(worker: Worker) -> None:
    """Called by dask before the worker registers."""
    open_station(worker, Station())


async def dask_teardown(worker: Worker) -> None:
    """Called by dask when the worker ends."""
    if _station is not None:
        _station.close()
