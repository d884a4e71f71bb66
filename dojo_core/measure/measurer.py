"""Measures programs: generated, compiled in batches, verified, then timed, one at a time on the machine."""

from __future__ import annotations

import json
import logging
import os
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dojo_core.measure.exclusive import measuring
from dojo_core.measure.limits import (
    BATCH_KERNELS,
    COMPILE_SECONDS,
    CRASHES,
    FIRST_BATCH,
    OPENMP_STACK,
    PREPARE_SECONDS,
    RUN_SECONDS,
    START_SECONDS,
    WORKER_MEMORY_SHARE,
)
from dojo_core.measure.machine import Machine, this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.build import CompileError, build, code_hash
from dojo_core.targets.cpu.code import Code, NotGeneratable

log = logging.getLogger(__name__)

STATUSES = (
    "ok", "compile_error", "wrong_result", "unwritten", "out_of_bounds", "crash", "timeout", "refused",
    "cancelled",
)  # fmt: skip
# Verdicts on the code itself: measuring again would say the same.
_SETTLED = ("compile_error", "wrong_result", "unwritten", "out_of_bounds")
_BROKE = ("crash", "timeout", "out_of_bounds")  # the worker ended, or may be spoilt


class Effort(Enum):
    """How much time a measurement may take.

    ``samples`` at most; none begins after ``budget`` seconds of timing; a candidate whose best of
    ``patience`` samples is ``cutoff`` times slower than the best known gets no more (0: always all).
    """

    QUICK = (1, 5, 0.1, 1.5, 2)
    NORMAL = (2, 10, 0.5, 2.0, 3)
    ROUND = (2, 10, 0.0, 0.0, 10)
    FINAL = (3, 20, 0.0, 0.0, 20)

    def __init__(self, rank: int, samples: int, budget: float, cutoff: float, patience: int) -> None:
        self.rank = rank
        self.samples = samples
        self.budget = budget
        self.cutoff = cutoff
        self.patience = patience

    @property
    def label(self) -> str:
        """As records spell it."""
        return self.name.lower()


@dataclass(frozen=True)
class Workload:
    """What a program is measured on: its start program (the reference's meaning, and the tolerance)."""

    start: Program
    kernel: str | None = None
    policy: str = "reassoc"


@dataclass(frozen=True, slots=True)
class Measurement:
    """The outcome for one program. ``message`` is a sentence wherever ``status`` is not ``"ok"``.

    ``samples``: nanoseconds a run, the undisturbed ones (all, where none was undisturbed), in order;
    ``raw`` all of them with what disturbed them. ``seconds`` is the least, ``median`` the middle one.
    ``verified``: every output element agreed; ``error`` the largest error in units of what is allowed.
    ``known``: taken from records or from identical code, not measured now.
    """

    program_hash: str
    code_hash: str
    status: str
    message: str = ""
    samples: tuple[float, ...] = ()
    seconds: float | None = None
    median: float | None = None
    verified: bool = False
    error: float = 0.0
    raw: tuple[Sample, ...] = ()
    calibration: float = 0.0
    known: bool = False

    @staticmethod
    def timed(raw: tuple[Sample, ...], **others: Any) -> Measurement:
        """A successful measurement from its samples."""
        clean = tuple(s.nanoseconds for s in raw if s.clean) or tuple(s.nanoseconds for s in raw)
        return Measurement(
            status="ok",
            raw=raw,
            samples=clean,
            seconds=min(clean) / 1e9,
            median=statistics.median(clean) / 1e9,
            verified=True,
            **others,
        )

    @staticmethod
    def recorded(record: Record) -> Measurement:
        """As a record tells it."""
        hashes = {"program_hash": record.program_hash, "code_hash": record.code_hash, "known": True}
        if record.status == "ok" and record.samples:
            return Measurement.timed(
                record.samples, error=record.error, calibration=record.calibration, **hashes
            )
        return Measurement(status=record.status, message=record.message, **hashes)  # type: ignore[arg-type]


class WorkerDied(Exception):
    """The worker ended during a request; ``status`` and ``str()`` say how it is blamed."""

    def __init__(self, status: str, message: str, outside: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.outside = (
            outside  # killed, by memory pressure or from outside: perhaps not the candidate's fault
        )


class WorkerFault(Exception):
    """The worker could not do what it was asked, and lives. ``str()`` is its exception; more in the log."""


class _Process:
    """One worker process and the pipe to it."""

    def __init__(self, machine: Machine) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(machine.cores),
            "OMP_PROC_BIND": "close",
            "OMP_PLACES": "cores",
            "OMP_DYNAMIC": "false",
            "OMP_STACKSIZE": OPENMP_STACK,
            "OPENBLAS_NUM_THREADS": "1",  # NumPy's BLAS keeps no second team of threads beside OpenMP's
            "MALLOC_ARENA_MAX": "2",
        }
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "dojo_core.measure.worker",
                str(int(machine.memory * WORKER_MEMORY_SHARE)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self._process.pid
        self.prepared: object = None  # which workload it holds
        self.ask({"do": "hello"}, START_SECONDS)

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for the answer. Raises WorkerDied; the process is gone then."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            self.kill()
            raise WorkerDied("crash", "The measuring process was killed.", outside=True) from None
        deadline = time.monotonic() + seconds
        received = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.kill()
                    raise WorkerDied("timeout", f"It ran for more than {seconds:g} s and was stopped.")
                piece = os.read(self._process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise self._ended(received)
                received += piece
        answer: dict[str, Any] = json.loads(received)
        if "fault" in answer:
            raise self._faulted(answer)
        if answer["status"] == "fault":
            log.error("the measuring process failed\n%s", answer["message"])
            raise WorkerFault(answer["message"].strip().splitlines()[-1])
        return answer

    def _ended(self, received: bytes) -> WorkerDied:
        status = self._wait()
        if status == -signal.SIGXCPU:
            return WorkerDied("timeout", "It used more processor time than allowed and was stopped.")
        if status == -signal.SIGKILL:
            return WorkerDied(
                "crash", "The measuring process was killed: by hand, or out of memory.", outside=True
            )
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        self._log.seek(0)
        told = self._log.read()[-500:].decode(errors="replace").strip()
        return WorkerDied("crash", f"The measuring process ended with {name}. {told}".strip())

    def _faulted(self, answer: dict[str, Any]) -> WorkerDied:
        self._wait()
        name, place, offset = answer["buffer"], answer["place"], answer["offset"]
        if name is None:
            return WorkerDied("crash", f"It crashed with {answer['fault']}.")
        if place == "inside":
            return WorkerDied(
                "out_of_bounds", f"It writes into the input {name}, {offset} bytes from its start."
            )
        side = "after the end" if place == "after" else "before the start"
        return WorkerDied("out_of_bounds", f"It reads or writes {offset} bytes {side} of {name}.")

    def _wait(self) -> int:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status = self._process.returncode
        self.kill()
        return status if status is not None else -signal.SIGKILL

    def kill(self) -> None:
        """End the process and everything in its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


class Measurer:
    """One per process is enough; calls from several threads take turns. Close it, or use it in ``with``.

    ``run_seconds`` and ``compile_seconds`` are the watchdogs. ``generate`` and ``preamble`` stand in for
    the target's code generator. With ``records``, results are kept there and found there.
    """

    def __init__(
        self,
        records: Records | None = None,
        *,
        target: str = "cpu",
        run_seconds: float = RUN_SECONDS,
        compile_seconds: float = COMPILE_SECONDS,
        jobs: int = 2,
        generate: Callable[[Program, str], Code] | None = None,
        preamble: str | None = None,
    ) -> None:
        self.records = records
        self.target = target
        self.machine = this_machine()
        self._run_seconds = run_seconds
        self._compile_seconds = compile_seconds
        self._jobs = jobs
        self._preamble = preamble
        self._generate = generate
        self._turn = threading.RLock()
        self._process: _Process | None = None
        self._known: dict[str, tuple[int, Measurement]] = {}  # by code: rank of effort, outcome
        self._failures: dict[str, int] = {}  # crashes and timeouts of a code in this session
        self._best: dict[str, float] = {}  # seconds, by workload
        self._seed = 0
        self.input_sets = 1  # among which the runs of the current workload rotate

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker, None while there is none."""
        return self._process.pid if self._process is not None else None

    def close(self) -> None:
        """End the worker. A later ``measure`` starts another."""
        with self._turn:
            self._drop()

    def __enter__(self) -> Measurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        effort: Effort = Effort.QUICK,
        on_result: Callable[[Measurement], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        *,
        player: str = "",
        lines: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> list[Measurement]:
        """Verify and time programs; blocks; results in the order of ``programs``.

        ``on_result`` hears of each as it comes; ``cancelled`` is asked between candidates, and what is
        open then comes back as ``cancelled``. Identical code is measured once, and not at all where it is
        known with as much effort, unless ``fresh`` asks for it anyhow. ``player`` and ``lines`` (by program
        hash, the moves from the start) go to the records.
        """
        with self._turn:
            job = _Job(workload, effort, on_result, cancelled, player, lines or {}, fresh)
            self._run(job, programs)
            return [job.results[program.hash] for program in programs]

    def _run(self, job: _Job, programs: Sequence[Program]) -> None:
        candidates: dict[str, _Candidate] = {}
        for program in dict.fromkeys(programs):
            if job.is_cancelled():
                break
            code = self._code(program, job.workload.policy)
            if isinstance(code, str):
                job.tell(Measurement(program.hash, "", "refused", code))
                continue
            key = code_hash(code, self._preamble)
            candidates.setdefault(key, _Candidate(code, key, [])).programs.append(program)
        waiting = []
        for candidate in candidates.values():
            found = None if job.fresh else self._look_up(candidate.key, job.effort)
            if found is None:
                waiting.append(candidate)
            else:
                self._tell(job, candidate, found, known=True)
        size = FIRST_BATCH
        while waiting and not job.is_cancelled():
            batch, waiting = waiting[:size], waiting[size:]
            self._batch(job, batch)
            size = min(2 * size, 2 * BATCH_KERNELS)
        for program in programs:
            if program.hash not in job.results:
                job.tell(
                    Measurement(program.hash, "", "cancelled", "Not measured: the request was cancelled.")
                )

    def _code(self, program: Program, policy: str) -> Code | str:
        """The generated code, or the sentence why there is none."""
        from dojo_core.targets.cpu import codegen

        generate = self._generate or codegen.generate
        try:
            return generate(program, policy)
        except NotGeneratable as refusal:
            return str(refusal)
        except Exception as fault:  # a fault of ours in one program must not stop the others
            log.exception("no code for\n%s", program.text)
            return f"The code generator failed, which is a fault of the Dojo (see its log): {fault}"

    def _look_up(self, key: str, effort: Effort) -> Measurement | None:
        """What is known of generated code, if that is enough."""
        rank, found = self._known.get(key, (0, None))
        if found is None and self.records is not None:
            record = self.records.known_code(key, self.machine.fingerprint)
            if record is not None:
                rank = Effort[record.effort.upper()].rank
                found = Measurement.recorded(record)
                self._known[key] = (rank, found)
        if found is not None and (found.status in _SETTLED or (found.status == "ok" and rank >= effort.rank)):
            return found
        failures = self._failures.get(key, 0)
        if found is not None and found.status in ("crash", "timeout") and self.records is not None:
            failures = max(failures, self.records.failures(key, self.machine.fingerprint))
        if failures >= CRASHES and found is not None:
            message = f"Not run again: it failed {failures} times here. {found.message}"
            return replace(found, status="refused", message=message)
        return None

    def _batch(self, job: _Job, batch: list[_Candidate]) -> None:
        start = self._code(job.workload.start, job.workload.policy)
        if isinstance(start, str):
            for candidate in batch:
                message = f"The start program cannot be measured. {start}"
                self._tell(job, candidate, Measurement("", candidate.key, "refused", message))
            return
        built = build(
            [start, *(c.code for c in batch)],
            self._jobs,
            preamble=self._preamble,
            timeout=self._compile_seconds,
            cancelled=job.cancelled,
        )
        for candidate, made in zip(batch, built[1:], strict=True):
            if job.is_cancelled():
                return
            if isinstance(made, CompileError):
                self._settle(job, candidate, Measurement("", candidate.key, "compile_error", made.message))
                continue
            first = built[0]
            if isinstance(first, CompileError):
                message = f"The start program does not compile: {first.message}"
                self._tell(job, candidate, Measurement("", candidate.key, "refused", message))
                continue
            with measuring(job.cancelled) as held:
                if not held:
                    return
                outcome = self._measure(
                    job, candidate, start, (first.library, first.symbol), made.library, made.symbol
                )
            if outcome.status == "refused":
                self._tell(job, candidate, outcome)
            else:
                self._settle(job, candidate, outcome)

    def _measure(
        self,
        job: _Job,
        candidate: _Candidate,
        start: Code,
        start_built: tuple[str, str],
        library: str,
        symbol: str,
    ) -> Measurement:
        """One candidate in the worker; the machine is held."""
        for attempt in range(2):
            refused = self._prepare(job, start, start_built)
            if refused is not None:
                return Measurement("", candidate.key, "refused", refused)
            assert self._process is not None
            effort = job.effort
            best = self._best_of(job.workload)
            request = {
                "do": "measure",
                "library": library,
                "symbol": symbol,
                "workspace": candidate.code.workspace_bytes,
                "bound": candidate.code.error_bound,
                "samples": effort.samples,
                "patience": effort.patience,
                "budget_ns": 1e9 * (effort.budget or self._run_seconds * 0.4),
                "cutoff_ns": 1e9 * best * effort.cutoff if best is not None else 0.0,
                "hopeless": 2.0,
                "again": effort is Effort.FINAL,
                "cpu_seconds": (self._run_seconds + 5) * self.machine.cores,
            }
            try:
                answer = self._process.ask(request, self._run_seconds)
            except WorkerDied as death:
                self._process = None
                if death.outside and attempt == 0:
                    continue  # once more in a new process: it need not have been this candidate's fault
                return Measurement("", candidate.key, death.status, str(death))
            except WorkerFault as fault:
                return Measurement("", candidate.key, "refused", f"It could not be measured: {fault}")
            if answer.get("spoilt"):
                self._drop()
            if answer["status"] != "ok":
                return Measurement("", candidate.key, answer["status"], answer["message"])
            raw = tuple(Sample(ns, switches, faults) for ns, switches, faults in answer["samples"])
            return Measurement.timed(
                raw,
                program_hash="",
                code_hash=candidate.key,
                error=answer["error"],
                calibration=answer["calibration"],
            )
        raise AssertionError("unreachable")

    def _prepare(self, job: _Job, start: Code, built: tuple[str, str]) -> str | None:
        """See that the worker runs and holds the workload. Gives the sentence why it cannot."""
        if job.effort is Effort.FINAL and not job.renewed:
            self._seed += 1  # finalists are verified on inputs that they have not seen
            job.renewed = True
        key = (job.workload.start.hash, job.workload.kernel, built, self._seed)
        if self._process is not None and self._process.prepared == key:
            return None
        try:
            if self._process is None:
                self._process = _Process(self.machine)
            self._process.prepared = None
            prepared = self._process.ask(
                {
                    "do": "prepare",
                    "start": job.workload.start.text,
                    "kernel": job.workload.kernel,
                    "parameters": [
                        {"name": p.name, "dtype": p.dtype, "shape": p.shape, "role": p.role}
                        for p in start.parameters
                    ],
                    "seed": self._seed,
                    "cache": str(cache_directory()),
                    "last_level": self.machine.last_level_cache,
                    "second_level": self.machine.second_level_cache,
                },
                PREPARE_SECONDS,
            )
            self.input_sets = int(prepared.get("sets", 1))
            answer = self._process.ask(
                {
                    "do": "judge",
                    "library": built[0],
                    "symbol": built[1],
                    "workspace": start.workspace_bytes,
                    "bound": start.error_bound,
                },
                self._run_seconds,
            )
        except WorkerDied as death:
            self._process = None
            return f"The start program cannot be measured. {death}"
        except WorkerFault as fault:
            self._drop()
            return f"The start program cannot be measured: {fault}"
        if answer["status"] != "ok":
            self._drop()
            return f"The start program cannot be measured. {answer['message']}"
        self._process.prepared = key
        return None

    def _best_of(self, workload: Workload) -> float | None:
        """Seconds of the fastest verified program of a workload, on this machine."""
        key = workload.start.hash
        if key not in self._best and self.records is not None:
            record = self.records.best(key, self.target, self.machine.fingerprint)
            if record is not None and record.seconds is not None:
                self._best[key] = record.seconds
        return self._best.get(key)

    def _settle(self, job: _Job, candidate: _Candidate, outcome: Measurement) -> None:
        """A fresh outcome: remember it, keep it in the records, tell it."""
        self._known[candidate.key] = (job.effort.rank, outcome)
        if outcome.status in _BROKE:
            self._failures[candidate.key] = self._failures.get(candidate.key, 0) + 1
        if outcome.seconds is not None:
            start = job.workload.start.hash
            self._best[start] = min(outcome.seconds, self._best.get(start, outcome.seconds))
        if self.records is not None:
            self.records.add_all(self._record(job, p, candidate, outcome) for p in candidate.programs)
        self._tell(job, candidate, outcome)

    def _tell(self, job: _Job, candidate: _Candidate, outcome: Measurement, known: bool = False) -> None:
        for number, program in enumerate(candidate.programs):
            job.tell(replace(outcome, program_hash=program.hash, known=known or number > 0))

    def _record(self, job: _Job, program: Program, candidate: _Candidate, outcome: Measurement) -> Record:
        outputs = [p for p in candidate.code.parameters if p.role == "out"]
        return Record(
            program_hash=program.hash,
            program_text=program.text,
            start_hash=job.workload.start.hash,
            kernel=job.workload.kernel or program.name,
            shape="x".join(map(str, outputs[0].shape)) if outputs else "",
            dtype=outputs[0].dtype if outputs else "",
            policy=job.workload.policy,
            line=job.lines.get(program.hash, ""),
            target=self.target,
            fingerprint=self.machine.fingerprint,
            machine=self.machine.details,
            code_hash=candidate.key,
            status=outcome.status,
            verified=outcome.verified,
            seconds=outcome.seconds,
            samples=outcome.raw,
            error=outcome.error,
            calibration=outcome.calibration,
            message=outcome.message,
            effort=job.effort.label,
            player=job.player,
            time=time.time(),
        )


@dataclass(frozen=True)
class _Candidate:
    """Generated code and the programs that it came from."""

    code: Code
    key: str
    programs: list[Program]


@dataclass
class _Job:
    """One call of ``measure`` and its results so far."""

    workload: Workload
    effort: Effort
    on_result: Callable[[Measurement], None] | None
    cancelled: Callable[[], bool] | None
    player: str
    lines: Mapping[str, str]
    fresh: bool = False
    renewed: bool = False

    def __post_init__(self) -> None:
        self.results: dict[str, Measurement] = {}

    def is_cancelled(self) -> bool:
        return self.cancelled is not None and self.cancelled()

    def tell(self, measurement: Measurement) -> None:
        self.results[measurement.program_hash] = measurement
        if self.on_result is not None:
            self.on_result(measurement)
