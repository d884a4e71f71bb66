"""A cluster of processes on loopback whose workers measure nothing: they sleep, and count operations."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agents.scale import clusters, credentials
from agents.scale.wire import Introduction
from agents.scale.worker import MeasuringWorker
from agents.timing import CountTiming, timed
from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.processor import Processor, host, known

LOOPBACK = "127.0.0.1"


class Paced:
    """The count of operations, times ``factor``, told after ``pace`` seconds a program."""

    def __init__(self, pace: float, factor: float = 1.0) -> None:
        self.pace, self.factor = pace, factor

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        time.sleep(self.pace * len(programs))
        counted = CountTiming().measure(workload, programs, lines, effort, cancelled)
        return [
            timed(p, self.factor * m.seconds) for p, m in zip(programs, counted, strict=True) if m.seconds
        ]


def be_scheduler(port: int, key: Path) -> None:
    clusters.serve_scheduler(LOOPBACK, port, credentials.security(key), lambda address: None)


class Generating(Paced):
    """Nor a count where the processor has no code for a program."""

    def __init__(self, processor: Processor) -> None:
        super().__init__(0.0)
        self.processor = processor

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        counted = super().measure(workload, programs, lines, effort, cancelled)
        return [self._judged(p, m, workload.policy) for p, m in zip(programs, counted, strict=True)]

    def _judged(self, program: Program, counted: Measurement, policy: str) -> Measurement:
        try:
            generate(program, policy, self.processor)
        except NotGeneratable as reason:
            return Measurement(program.hash, "", "refused", str(reason))
        return counted


def be_worker(
    address: str, key: Path, pace: float, machine: str, factor: float, claim: str | None = None
) -> None:
    """``claim``: the processor that it says it has, and has code for (empty: it says nothing readable)."""
    processor = known(claim) if claim else None
    timing = Generating(processor) if processor is not None else Paced(pace, factor)
    worker = MeasuringWorker(timing, machine, processor)
    if claim == "":
        worker.introduction = Untold()
    clusters.serve_worker(address, credentials.security(key), worker, 60.0, lambda text: None)


def be_real_worker(address: str, key: Path) -> None:
    """One of this machine, which measures."""
    clusters.serve_worker(address, credentials.security(key), MeasuringWorker(), 60.0, lambda text: None)


class Untold(Introduction):
    """Of a worker that says what nobody understands."""

    def __init__(self) -> None:
        super().__init__("", host())

    def text(self) -> str:
        return '{"dojo worker": 99, "processor": "fast"}'


class Cluster:
    """A scheduler and workers, each a process that may be killed."""

    def __init__(self, folder: Path) -> None:
        # From one process that has imported everything: a start costs a tenth of a second, not two.
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.cluster", "distributed"])
        self.key = credentials.made(folder / "cluster.pem")
        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            self._port = free.getsockname()[1]
        self.address = f"tls://{LOOPBACK}:{self._port}"
        self._all: list[multiprocessing.process.BaseProcess] = []
        self.scheduler = self.start_scheduler()

    def start_scheduler(self) -> multiprocessing.process.BaseProcess:
        return self._started(be_scheduler, self._port, self.key)

    def start_worker(
        self, pace: float = 0.0, machine: str = "a" * 16, factor: float = 1.0, claim: str | None = None
    ) -> multiprocessing.process.BaseProcess:
        return self._started(be_worker, self.address, self.key, pace, machine, factor, claim)

    def start_real_worker(self) -> multiprocessing.process.BaseProcess:
        return self._started(be_real_worker, self.address, self.key)

    def _started(self, what: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
        process = self._processes.Process(target=what, args=arguments, daemon=True)
        process.start()
        self._all.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self._all):
            process.kill()
            process.join()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()
