"""Measuring processes that are kept from test to test: each takes a third of a second to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dojo_core.measure import trial
from dojo_core.measure.machine import Machine
from dojo_core.measure.process import WorkerProcess
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.gpu.check import Checker


@pytest.fixture(scope="session")
def idle_workers() -> Iterator[list[WorkerProcess]]:
    idle: list[WorkerProcess] = []
    yield idle
    for worker in idle:
        worker.kill()


@pytest.fixture
def kept_workers(idle_workers: list[WorkerProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is closed, a measurer or a checker of GPU programs, leaves its worker to the next one, which has
    it draw and judge everything anew. A worker that a kernel ended or spoilt is replaced as ever."""

    def taken(machine: Machine) -> WorkerProcess:
        while idle_workers:
            worker = idle_workers.pop()
            if worker._process.poll() is None:
                return worker
            worker.kill()
        return WorkerProcess(machine)

    def close(measures: Measurer | Checker) -> None:
        trials = measures._trials
        if trials._worker is not None:
            trials._worker.drawn = trials._worker.prepared = None
            idle_workers.append(trials._worker)
            trials._worker = None

    monkeypatch.setattr(trial, "WorkerProcess", taken)
    for measures in (Measurer, Checker):
        monkeypatch.setattr(measures, "close", close)
