"""Times on a GPU: programs compiled side by side, then verified and timed one by one in a worker process.

The worker is killed where a kernel does not end, and replaced where one has spoilt it; that candidate is
blamed. Times come from events, with a cold second-level cache unless asked otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from dojo_core.measure.exclusive import measuring
from dojo_core.measure.limits import PREPARE_SECONDS, USUAL_SEED
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import SETTLED, Effort, Measurement, Workload
from dojo_core.measure.places import cache_directory
from dojo_core.measure.process import WorkerDied, WorkerFault, WorkerProcess
from dojo_core.measure.records import Sample
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import codegen as cpu
from dojo_core.targets.cpu.build import CompileError, build
from dojo_core.targets.cpu.code import NotGeneratable
from dojo_core.targets.cuda.build import compiled
from dojo_core.targets.cuda.driver import driver_fault
from dojo_core.targets.gpu.codegen import generate

RUN_SECONDS = 60.0  # one request: verification, with all elements compared on the host, and all samples
WORKER = (sys.executable, "-m", "dojo_core.targets.cuda.worker")


class NoGpu(Exception):
    """There is no GPU to measure on; ``str()`` says what is missing."""


@dataclass(frozen=True)
class Gpu:
    """A device as results tell of it. Sizes in bytes; ``clock`` in Hz; ``driver``: the CUDA version."""

    name: str
    architecture: str
    l2_bytes: int
    memory: int
    clock: int
    multiprocessors: int
    driver: str
    timed: bool = True

    @property
    def fingerprint(self) -> str:
        """Times of different ones are never compared."""
        key = json.dumps([self.name, self.architecture, self.driver])
        return hashlib.sha256(key.encode()).hexdigest()[:16]

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.name}, {self.architecture}, {self.memory / 2**30:.0f} GB, CUDA {self.driver}"

    @property
    def flops(self) -> float:
        """Single-precision operations a second at its highest clock: 128 multiply-adds a multiprocessor
        (compute capability 8.6 to 12.x but 8.7; 64 of 8.0; CUDA programming guide, arithmetic throughput)."""
        each = 64 if self.architecture == "sm_80" else 128
        return 2.0 * each * self.multiprocessors * self.clock


class GpuMeasurer:
    """Measures on the first GPU. Close it, or use it in ``with``. Raises NoGpu where there is none.

    ``command`` is the worker, which may hold a device that is none.
    """

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        fault = driver_fault() if command == WORKER else ""
        if fault:
            raise NoGpu(fault)
        self._command = command
        self._turn = threading.RLock()
        self._worker: WorkerProcess | None = None
        self._known: dict[tuple[str, str, str, bool], tuple[int, Measurement]] = {}
        self.device = self._start()

    def __enter__(self) -> GpuMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker. A later measurement starts another."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _start(self) -> Gpu:
        try:
            self._worker = WorkerProcess(this_machine(), self._command)
        except WorkerDied as death:
            raise NoGpu(f"The GPU does not answer: {death}") from None
        answer = self._worker.greeting
        if answer["status"] != "ok":
            self.close()
            raise NoGpu(answer["message"])
        return Gpu(**answer["device"])

    # ------------------------------------------------------------------ measuring

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        effort: Effort = Effort.NORMAL,
        on_result: Callable[[Measurement], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        fresh: bool = False,
        cold: bool = True,
    ) -> list[Measurement]:
        """One measurement for each program, in order; ``on_result`` is told each as it comes.

        ``fresh``: what is known is timed again. After ``cancelled`` says so, the rest is ``cancelled``.
        """
        stop = cancelled or (lambda: False)
        found: dict[str, Measurement] = {}

        def tell(m: Measurement) -> None:
            found[m.program_hash] = m
            if on_result is not None:
                on_result(m)

        with self._turn:
            waiting: list[Program] = []
            for program in {p.hash: p for p in programs}.values():
                known = None if fresh else self._look_up(workload, program, effort, cold)
                if known is None:
                    waiting.append(program)
                else:
                    tell(known)
            images = self._compiled(workload, waiting, stop)
            for program, image in zip(waiting, images, strict=True):
                if stop():
                    break
                if isinstance(image, Measurement):
                    outcome = image
                else:
                    with self._alone(stop) as held:
                        if not held:
                            break
                        outcome = self._one(workload, program, image, effort, cold)
                if outcome.status != "refused":
                    rank = effort.rank
                    self._known[program.hash, workload.start.hash, workload.policy, cold] = rank, outcome
                tell(outcome)
        stopped = "Not measured: the request was cancelled."
        return [found.get(p.hash) or Measurement(p.hash, "", "cancelled", stopped) for p in programs]

    def _alone(self, stop: Callable[[], bool] | None = None) -> AbstractContextManager[bool]:
        """The machine held alone; not where nothing is timed, whose emulator compiles on the way."""
        return measuring(stop) if self.device.timed else nullcontext(True)

    def _look_up(
        self, workload: Workload, program: Program, effort: Effort, cold: bool
    ) -> Measurement | None:
        rank, known = self._known.get((program.hash, workload.start.hash, workload.policy, cold), (0, None))
        if known is not None and (known.status in SETTLED or rank >= effort.rank):
            return known
        return None

    def _compiled(
        self, workload: Workload, programs: Sequence[Program], stop: Callable[[], bool]
    ) -> list[str | Measurement]:
        """The machine code of each, a file, or why there is none."""

        def one(program: Program) -> str | Measurement:
            if stop():
                return Measurement(program.hash, "", "cancelled", "Not measured: the request was cancelled.")
            try:
                code = generate(program, workload.policy)
                return str(compiled(code, self.device.architecture)) if self.device.timed else ""
            except NotGeneratable as reason:
                return Measurement(program.hash, "", "refused", str(reason))
            except ValueError as error:
                return Measurement(program.hash, "", "compile_error", str(error))

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
            return list(threads.map(one, programs))

    def _one(
        self, workload: Workload, program: Program, image: str, effort: Effort, cold: bool
    ) -> Measurement:
        request = {
            "do": "measure",
            "program": program.text,
            "policy": workload.policy,
            "image": image,
            "samples": effort.samples,
            "cold": cold,
            "slow": self._slow(workload, effort, cold),
            "again": effort is Effort.FINAL,
        }

        def failed(status: str, message: str) -> Measurement:
            return Measurement(program.hash, program.hash, status, message)

        unfit = self._prepared(workload)
        if unfit:
            return failed("refused", f"The start program cannot be measured. {unfit}")
        answer = self._ask(request, RUN_SECONDS)
        if answer["status"] != "ok":
            return failed(answer["status"], answer["message"])
        return Measurement.timed(
            tuple(Sample(ns, 0, 0) for ns in answer["samples"]),
            program_hash=program.hash,
            code_hash=program.hash,
            error=answer["error"],
        )

    def _slow(self, workload: Workload, effort: Effort, cold: bool) -> float | None:
        """Seconds from which a candidate is hopeless beside the best known."""
        if not effort.cutoff:
            return None
        best = [
            m.seconds
            for (_, start, _, c), (_, m) in self._known.items()
            if start == workload.start.hash and c == cold and m.seconds is not None
        ]
        return effort.cutoff * min(best) if best else None

    def copied(self, size: int, samples: int, cold: bool = True) -> list[float]:
        """Nanoseconds of copies within the device that move ``size`` bytes, those read and those written."""
        with self._turn, self._alone():
            self._running()
            answer = self._ask({"do": "copy", "bytes": size, "samples": samples, "cold": cold}, RUN_SECONDS)
        if answer["status"] != "ok":
            raise NoGpu(answer["message"])
        return [float(ns) for ns in answer["samples"]]

    # ------------------------------------------------------------------ the worker

    def _running(self) -> WorkerProcess:
        if self._worker is None:
            self._start()
        assert self._worker is not None
        return self._worker

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """An answer, also where the worker ended over it; a spoilt one is replaced."""
        try:
            answer = self._running().ask(request, seconds)
        except WorkerDied as death:
            self._worker = None
            return {"status": death.status, "message": str(death)}
        except WorkerFault as fault:
            return {"status": "refused", "message": f"It could not be measured: {fault}"}
        if answer.get("spoilt"):
            self.close()
        return answer

    def _prepared(self, workload: Workload) -> str:
        """Have the worker hold the workload: "" or why it cannot."""
        try:
            worker = self._running()
        except NoGpu as gone:
            return str(gone)
        key = (workload.start.hash, workload.policy)
        if worker.prepared == key:
            return ""
        try:
            code = cpu.generate(workload.start, workload.policy)
        except NotGeneratable as reason:
            return str(reason)
        built = build([code])[0]
        if isinstance(built, CompileError):
            return f"It does not compile: {built.message}"
        worker.prepared = None
        answer = self._ask(
            {
                "do": "prepare",
                "start": workload.start.text,
                "parameters": [
                    {"name": p.name, "dtype": p.dtype, "shape": p.shape, "role": p.role}
                    for p in code.parameters
                ],
                "library": built.library,
                "symbol": built.symbol,
                "workspace": code.workspace_bytes,
                "seed": USUAL_SEED,
                "cache": str(cache_directory()),
            },
            PREPARE_SECONDS,
        )
        if answer["status"] != "ok":
            return str(answer["message"])
        worker.prepared = key
        return ""


@cache
def _shared() -> GpuMeasurer | str:
    try:
        return GpuMeasurer()
    except NoGpu as missing:
        return str(missing)


_opening = threading.Lock()


def gpu_fault() -> str:
    """Why nothing can be timed on a GPU here, or "". The first call may start the worker."""
    with _opening:
        found = _shared()
    return found if isinstance(found, str) else ""


def gpu_measurer() -> GpuMeasurer:
    """This process' measurer on the GPU, started at need; its worker ends with the process. Raises NoGpu."""
    with _opening:
        found = _shared()
    if isinstance(found, str):
        raise NoGpu(found)
    return found
