"""A cluster of processes on loopback whose workers measure nothing: they sleep, and count operations."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from agents.scale import clusters, credentials
from agents.scale.station import Station
from agents.timing import CountTiming, timed
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program

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


def be_worker(address: str, key: Path, pace: float, machine: str, factor: float) -> None:
    station = Station(Paced(pace, factor), machine)
    clusters.serve_worker(address, credentials.security(key), station, 60.0, lambda text: None)


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
        self, pace: float = 0.0, machine: str = "a" * 16, factor: float = 1.0
    ) -> multiprocessing.process.BaseProcess:
        return self._started(be_worker, self.address, self.key, pace, machine, factor)

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
