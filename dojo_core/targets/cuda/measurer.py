"""Times on a GPU: programs compiled side by side, then verified and timed one by one in a worker process.

The worker is killed where a kernel does not end, and replaced where one has spoilt it; that candidate is
blamed. Times come from events, with a cold second-level cache unless asked otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

from dojo_core.codegen.built import CompileError
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.launch import module_command
from dojo_core.measure.alone import measured_alone
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.limits import PREPARE_SECONDS, USUAL_SEED
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import KEPT, SETTLED, Effort, Measurement, Origin, Workload
from dojo_core.measure.places import cache_directory
from dojo_core.measure.process import WorkerDied, WorkerFault, WorkerProcess
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.measure.sealed import DAMAGED, Damaged
from dojo_core.measure.worst import input_sets
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import codegen as cpu
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cuda.build import compiled, content_key
from dojo_core.targets.cuda.driver import driver_fault
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.codegen import generate

RUN_SECONDS = 60.0  # one request: verification, with all elements compared on the host, and all samples
WORKER = tuple(module_command("dojo_core.targets.cuda.worker"))


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
    bus: str = ""  # where it is plugged in: tells one device from another of its kind

    @property
    def clock_name(self) -> str:
        """Of the lock that those who time on it take."""
        return "gpu-" + "".join(c if c.isalnum() else "-" for c in self.bus.lower())

    @property
    def fingerprint(self) -> str:
        """Times of different ones are never compared."""
        key = json.dumps([self.name, self.architecture, self.driver, self.memory, self.multiprocessors])
        return hashlib.sha256(key.encode()).hexdigest()[:16]

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.name}, {self.architecture}, {self.memory / 2**30:.0f} GB, CUDA {self.driver}"

    @property
    def details(self) -> str:
        """All of it as JSON."""
        return json.dumps({k: v for k, v in asdict(self).items() if k != "bus"}, sort_keys=True)

    @property
    def flops(self) -> float:
        """Single-precision operations a second at its highest clock: 128 multiply-adds a multiprocessor
        (compute capability 8.6 to 12.x but 8.7; 64 of 8.0; CUDA programming guide, arithmetic throughput)."""
        each = 64 if self.architecture == "sm_80" else 128
        return 2.0 * each * self.multiprocessors * self.clock


class GpuMeasurer:
    """Measures on the first GPU. Close it, or use it in ``with``. Raises NoGpu where there is none.

    ``command`` is the worker, which may hold a device that is none. What a device that is one takes for a
    program with a cold cache is kept in the records that the caller names, and found there.
    """

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        fault = driver_fault() if command == WORKER else ""
        if fault:
            raise NoGpu(fault)
        self._command = command
        self._turn = threading.RLock()
        self._worker: WorkerProcess | None = None
        self._known: dict[tuple[str, str, str, bool], tuple[int, Measurement]] = {}
        self._recorded: dict[str, float | None] = {}  # the best in the records, by start program
        self.device = self._start()
        self.origin = Origin("cuda", self.device.fingerprint, self.device.details)

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
        records: Records | None = None,
        lines: Mapping[str, str] | None = None,
        player: str = "",
    ) -> list[Measurement]:
        """One measurement for each program, in order; ``on_result`` is told each as it comes.

        ``fresh``: what is known is timed again. After ``cancelled`` says so, the rest is ``cancelled``.
        ``lines`` (by program hash, the moves from the start) and ``player`` go to the records. Final ones are
        on inputs that no candidate has seen; a round trusts what was verified on the inputs that are there.
        """
        kept_in = records if cold and self.device.timed else None
        seed = secrets.randbits(48) | 1 if effort is Effort.FINAL else None
        job = _Job(workload, effort, cold, kept_in, lines or {}, player, cancelled or (lambda: False), seed)
        results: dict[str, Measurement] = {}

        def tell(m: Measurement) -> None:
            results[m.program_hash] = m
            if on_result is not None:
                on_result(m)

        with self._turn:
            waiting: list[_Candidate] = []
            for program in {p.hash: p for p in programs}.values():
                if job.cancelled():
                    break
                known = None if fresh else self._remembered(job, program)
                candidate = known or self._generated(job, program, fresh)
                if isinstance(candidate, Measurement):
                    tell(candidate)
                else:
                    waiting.append(candidate)
            images = self._compiled(job, waiting)
            for candidate, image in zip(waiting, images, strict=True):
                if job.cancelled():
                    break
                unfit = "" if isinstance(image, Measurement) else self._prepared(workload, job.seed)
                if isinstance(image, Measurement):
                    outcome = image
                elif unfit:
                    message = f"The start program cannot be measured. {unfit}"
                    outcome = candidate.outcome("refused", message)
                else:
                    taken = self._alone(partial(self._one, job, candidate, image), job.cancelled)
                    if taken is None:
                        break
                    outcome = taken
                self._keep(job, candidate, outcome)
                tell(outcome)
        stopped = "Not measured: the request was cancelled."
        return [results.get(p.hash) or Measurement(p.hash, "", "cancelled", stopped) for p in programs]

    def _alone(self, take: Callable[[], Measurement], stop: Callable[[], bool]) -> Measurement | None:
        """Taken with the device held alone, not the CPU; where nothing is timed, at once."""
        return measured_alone(take, stop, self.device.clock_name) if self.device.timed else take()

    def _remembered(self, job: _Job, program: Program) -> Measurement | None:
        """What is known of a program, if that is enough."""
        rank, known = self._known.get(job.key(program), (0, None))
        if known is not None and (known.status in SETTLED or rank >= job.effort.rank):
            return known
        return None

    def _generated(self, job: _Job, program: Program, fresh: bool) -> _Candidate | Measurement:
        """A program's code, or what the records know of it, or why there is none."""
        try:
            code = generate(program, job.workload.policy)
        except NotGeneratable as reason:
            return Measurement(program.hash, "", "refused", str(reason))
        key = content_key(code, self.device.architecture)
        if job.records is not None and not fresh:
            workload = job.workload
            record = job.records.known_code(
                key, workload.start.hash, self.origin.fingerprint, workload.policy
            )
            if record is not None and (record.status in KEPT or self._believes(record)):
                recorded = replace(Measurement.recorded(record), program_hash=program.hash)
                self._known[job.key(program)] = Effort.rank_of(record.effort), recorded
                enough = self._remembered(job, program)
                if enough is not None:
                    return enough
        return _Candidate(program, code, key)

    def _believes(self, record: Record) -> bool:
        return record.status == "ok" and self.origin.believes(record)

    def _keep(self, job: _Job, candidate: _Candidate, outcome: Measurement) -> None:
        if outcome.status in ("refused", "cancelled"):
            return
        program = candidate.program
        self._known[job.key(program)] = job.effort.rank, outcome
        # what did not compile may be for want of a compiler
        if job.records is not None and outcome.status != "compile_error":
            line = job.lines.get(program.hash, "")
            job.records.add(self.origin.record(outcome, program, job.workload, job.effort, line, job.player))

    def _compiled(self, job: _Job, candidates: Sequence[_Candidate]) -> list[str | Measurement]:
        """The machine code of each, a file, or why there is none."""

        def one(candidate: _Candidate) -> str | Measurement:
            if job.cancelled():
                return candidate.outcome("cancelled", "Not measured: the request was cancelled.")
            try:
                return str(compiled(candidate.code, self.device.architecture)) if self.device.timed else ""
            except ValueError as error:
                return candidate.outcome("compile_error", str(error))

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
            return list(threads.map(one, candidates))

    def _one(self, job: _Job, candidate: _Candidate, image: str) -> Measurement:
        try:
            return self._run(job, candidate, image)
        except Damaged:  # since it was compiled: it is made again
            pass
        again = self._compiled(job, [candidate])[0]
        if isinstance(again, Measurement):
            return again
        try:
            return self._run(job, candidate, again)
        except Damaged:
            return candidate.outcome("refused", DAMAGED)

    def _run(self, job: _Job, candidate: _Candidate, image: str) -> Measurement:
        """Raises Damaged."""
        request = {
            "do": "measure",
            "program": candidate.program.text,
            "policy": job.workload.policy,
            "image": image,
            "samples": job.effort.samples,
            "cold": job.cold,
            "slow": self._slow(job),
            "again": job.effort is Effort.FINAL,
            "trusted": job.effort is Effort.ROUND,
        }
        answer = self._ask(request, RUN_SECONDS)
        if answer["status"] != "ok":
            return candidate.outcome(answer["status"], answer["message"])
        return Measurement.timed(
            tuple(Sample(ns, 0, 0) for ns in answer["samples"]),
            program_hash=candidate.program.hash,
            code_hash=candidate.key,
            error=answer["error"],
        )

    def _slow(self, job: _Job) -> float | None:
        """Seconds from which a candidate is hopeless beside the best known."""
        if not job.effort.cutoff:
            return None
        start = job.workload.start.hash
        best = [
            m.seconds
            for (_, begun, _, cold), (_, m) in self._known.items()
            if begun == start and cold == job.cold and m.seconds is not None
        ]
        if job.records is not None:
            if start not in self._recorded:
                record = job.records.best(start, self.origin.target, self.origin.fingerprint)
                self._recorded[start] = None if record is None else record.seconds
            best += [seconds for seconds in [self._recorded[start]] if seconds is not None]
        return job.effort.cutoff * min(best) if best else None

    def copied(self, size: int, samples: int, cold: bool = True) -> list[float]:
        """Nanoseconds of copies within the device that move ``size`` bytes, those read and those written."""
        with self._turn, measuring(clock=self.device.clock_name) if self.device.timed else nullcontext():
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

    def _prepared(self, workload: Workload, seed: int | None) -> str:
        """Have the worker hold the workload, on inputs of a seed (None: any): "" or why it cannot."""
        try:
            worker = self._running()
        except NoGpu as gone:
            return str(gone)
        held = worker.prepared
        key = (workload.start.hash, workload.policy, seed if seed is not None else USUAL_SEED)
        if held == key or (seed is None and held is not None and held[:2] == key[:2]):
            return ""
        try:
            code = cpu.generate(workload.start, workload.policy)
        except NotGeneratable as reason:
            return str(reason)
        try:
            return self._take_in(workload, code, key)
        except Damaged:  # since it was compiled: it is made again
            pass
        try:
            return self._take_in(workload, code, key)
        except Damaged:
            return DAMAGED

    def _take_in(self, workload: Workload, code: Code, key: tuple[str, str, int]) -> str:
        """Have the worker take the workload in, whose start program is ``code``: "" or why it cannot. Raises
        Damaged."""
        worker = self._running()
        built = build([code], beside=True)[0]
        if isinstance(built, CompileError):
            return f"It does not compile: {built.message}"
        worker.prepared = None
        sets = input_sets(workload.start, workload.policy)
        answer = self._ask(
            {
                "do": "prepare",
                "start": workload.start.text,
                "policy": workload.policy,
                "parameters": [
                    {"name": p.name, "dtype": p.dtype, "shape": p.shape, "role": p.role}
                    for p in code.parameters
                ],
                "library": built.library,
                "symbol": built.symbol,
                "workspace": code.workspace_bytes,
                "seed": key[-1],
                "sets": [asdict(each) for each in sets],
                "cache": str(cache_directory()),
            },
            PREPARE_SECONDS * len(sets),
        )
        if answer["status"] != "ok":
            return str(answer["message"])
        worker.prepared = key
        return ""


@dataclass(frozen=True)
class _Candidate:
    """A program with its generated code. ``key``: of what the device runs."""

    program: Program
    code: GpuCode
    key: str

    def outcome(self, status: str, message: str) -> Measurement:
        return Measurement(self.program.hash, self.key, status, message)


@dataclass(frozen=True)
class _Job:
    """One call of ``measure``. ``records``: None where what comes out is not kept."""

    workload: Workload
    effort: Effort
    cold: bool
    records: Records | None
    lines: Mapping[str, str]
    player: str
    cancelled: Callable[[], bool]
    seed: int | None = None  # of the inputs; None: those that are there

    def key(self, program: Program) -> tuple[str, str, str, bool]:
        return program.hash, self.workload.start.hash, self.workload.policy, self.cold


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
        shared = _shared()
    return shared if isinstance(shared, str) else ""


def gpu_measurer() -> GpuMeasurer:
    """This process' measurer on the GPU, started at need; its worker ends with the process. Raises NoGpu."""
    with _opening:
        shared = _shared()
    if isinstance(shared, str):
        raise NoGpu(shared)
    return shared
