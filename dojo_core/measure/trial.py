"""A trial: one candidate verified and timed in the worker, against the start program that sets tolerances."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dojo_core.codegen.built import Built
from dojo_core.codegen.code import Code
from dojo_core.measure.conditions import UNKNOWN, Conditions
from dojo_core.measure.judging import runs_long
from dojo_core.measure.limits import (
    EMULATE_SECONDS,
    JUDGE_MULTIPLE,
    PREPARE_SECONDS,
    RETRY_START_SECONDS,
    USUAL_SEED,
)
from dojo_core.measure.machine import Machine
from dojo_core.measure.measurement import Effort, Measurement
from dojo_core.measure.places import cache_directory
from dojo_core.measure.process import WorkerDied, WorkerFault, WorkerProcess, WorkerStopped
from dojo_core.measure.records import Sample
from dojo_core.measure.sealed import Damaged
from dojo_core.measure.worst import input_sets
from dojo_core.program.tree import DTYPE_BYTES, Program

log = logging.getLogger(__name__)

SLOWLY_DRAWN = 16 << 20  # bytes of arrays: references of fewer are there as soon as anything can be told


@dataclass(frozen=True)
class Compiled:
    """A program, its code under a policy, and where that lies compiled."""

    program: Program
    code: Code
    built: Built
    policy: str

    @property
    def sets(self) -> int:
        """Of inputs on which programs are verified, where this is the start program."""
        return len(input_sets(self.program, self.policy))

    @property
    def request(self) -> dict[str, object]:
        """What the worker is told of it."""
        return {
            "library": self.built.library,
            "symbol": self.built.symbol,
            "workspace": self.code.workspace_bytes,
            "bound": self.code.error_bound,
        }


def _told(code: Code) -> list[dict[str, object]]:
    """The parameters of a code as the worker is told of them."""
    return [{"name": p.name, "dtype": p.dtype, "shape": p.shape, "role": p.role} for p in code.parameters]


def conditions_of(answer: Mapping[str, Any]) -> Conditions:
    """What else the machine did while the worker timed a candidate; the machine was held alone."""
    return Conditions(answer["load"])


@dataclass(frozen=True)
class Counter:
    """A compiled program that counts in ``numbers`` unsigned 64-bit integers of the name ``counters`` (0:
    none); so many ``repeats`` are a sample, on so many ``threads`` (0: all)."""

    built: Built
    workspace: int
    repeats: int
    counters: str = ""
    numbers: int = 0
    threads: int = 0

    @property
    def request(self) -> dict[str, object]:
        """What the worker is told of it."""
        return {
            "library": self.built.library,
            "symbol": self.built.symbol,
            "workspace": self.workspace,
            "repeats": self.repeats,
            "counters": self.counters,
            "numbers": self.numbers,
            "threads": self.threads,
        }


@dataclass(frozen=True)
class Counts:
    """A sample of a counter: seconds of a run, page faults in all, and by what its numbers grew in all."""

    seconds: float
    faults: int
    numbers: tuple[int, ...]


class Unmeasurable(Exception):
    """The start program cannot be judged, so nothing can be measured against it; ``str()`` says why."""


class Trials:
    """The worker, started at need and again when it died, and the workload that it holds.

    Where nobody wants its answer any more (``unwanted``) it is ended after a moment: whatever asks raises
    WorkerStopped then.
    """

    def __init__(self, machine: Machine, run_seconds: float) -> None:
        self._machine = machine
        self._run_seconds = run_seconds
        self._worker: WorkerProcess | None = None
        self.seed = USUAL_SEED  # of the inputs
        self.unwanted: Callable[[], bool] = lambda: False
        self._unfit: dict[
            tuple[str, Built, str, int], tuple[float, str]
        ] = {}  # start programs: when, why not measurable
        self.input_sets = 1  # among which the runs of the current workload rotate

    @property
    def pid(self) -> int | None:
        """The process id of the worker, None while there is none."""
        return self._worker.pid if self._worker is not None else None

    def close(self) -> None:
        """End the worker. A later trial starts another."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def warm(self) -> None:
        """Start the worker, if there is none: its start-up takes a second."""
        if self._worker is None:
            self._worker = WorkerProcess(self._machine)

    def renew_inputs(self) -> None:
        """The next trials are on inputs that no candidate has seen, in no process of any day."""
        self.seed = secrets.randbits(48) | 1

    def usual_inputs(self) -> None:
        """The next trials are on the inputs that are kept on disk."""
        self.seed = USUAL_SEED

    def verify(self, candidate: Compiled, start: Compiled) -> Measurement:
        """Verify a candidate for the emulator: ``ok`` without a time. The machine need not be held."""
        seconds = EMULATE_SECONDS * start.sets
        request = {"do": "verify", **candidate.request, "cpu_seconds": self._cpu_seconds(seconds)}

        def outcome(status: str, message: str, error: float = 0.0) -> Measurement:
            return Measurement(
                candidate.program.hash,
                candidate.built.code_hash,
                status,
                message,
                verified=status == "ok",
                error=error,
            )

        try:
            answer = self._ask(self._prepared(start), request, seconds)
        except Unmeasurable as reason:
            return outcome("refused", f"The start program cannot be judged. {reason}")
        except WorkerDied as death:
            self._worker = None
            return outcome(death.status, str(death))
        except WorkerFault as fault:
            return outcome("refused", f"It could not be verified: {fault}")
        if answer.get("spoilt"):
            self.close()
        return outcome(answer["status"], answer.get("message", ""), answer.get("error", 0.0))

    def run(
        self, candidate: Compiled, start: Compiled, effort: Effort, best: float | None, once: bool = False
    ) -> Measurement:
        """Verify and time a candidate; ``best``: seconds of the fastest one known; ``once``: with one sample,
        as rounds will follow. The machine is held."""
        seconds = self._run_seconds * start.sets
        request = {
            "do": "measure",
            **candidate.request,
            "samples": 1 if once else effort.samples,
            "patience": effort.patience,
            "budget_ns": 1e9 * (effort.budget or self._run_seconds * 0.4),
            "cutoff_ns": 1e9 * best * effort.cutoff if best is not None else 0.0,
            "hopeless": 2.0,
            "again": effort is Effort.FINAL,
            "cpu_seconds": self._cpu_seconds(seconds),
        }

        def failed(status: str, message: str) -> Measurement:
            return Measurement(candidate.program.hash, candidate.built.code_hash, status, message)

        for attempt in range(2):
            try:
                worker = self._prepared(start)
            except Unmeasurable as reason:
                return failed("refused", f"The start program cannot be measured. {reason}")
            try:
                answer = self._ask(worker, request, seconds)
            except WorkerDied as death:
                self._worker = None
                if death.outside and attempt == 0:
                    continue  # once more in a new process: it need not have been this candidate's fault
                return failed(death.status, str(death))
            except WorkerFault as fault:
                return failed("refused", f"It could not be measured: {fault}")
            if answer.get("spoilt"):
                self.close()
            if answer["status"] != "ok":
                return failed(answer["status"], answer["message"])
            return Measurement.timed(
                tuple(Sample(*sample) for sample in answer["samples"]),
                program_hash=candidate.program.hash,
                code_hash=candidate.built.code_hash,
                error=answer["error"],
                calibration=answer["calibration"],
                conditions=conditions_of(answer),
            )
        raise AssertionError("unreachable")

    def round(self, programs: Sequence[tuple[Compiled, int]], start: Compiled) -> list[Sample] | None:
        """One sample of each program, of so many runs, in the order given; all have been verified here. The
        machine is held. None where that failed, which the log tells: no one of them can be blamed for it."""
        requests = [{**program.request, "repeats": repeats} for program, repeats in programs]
        seconds = self._run_seconds * len(programs)
        request = {"do": "round", "programs": requests, "cpu_seconds": self._cpu_seconds(seconds)}
        try:
            answer = self._ask(self._prepared(start), request, seconds)
        except WorkerDied as death:
            self._worker = None
            log.warning("a round ended: %s", death)
            return None
        except (WorkerFault, Unmeasurable, Damaged) as fault:
            log.warning("a round ended: %s", fault)
            return None
        if answer["status"] != "ok":
            log.warning("a round ended: %s", answer["message"])
            if answer.get("spoilt"):
                self.close()
            return None
        return [Sample(*sample) for sample in answer["samples"]]

    def count(self, counters: Sequence[Counter], start: Compiled, rounds: int) -> list[list[Counts]]:
        """Rounds of programs that count, in turns: of each program its samples. The machine is held. Raises
        ValueError with a sentence where one fails."""
        request = {"do": "count", "programs": [each.request for each in counters], "rounds": rounds}
        answer = self._asked(request, start, self._run_seconds * len(counters) * rounds)
        samples = [
            [Counts(1e-9 * ns, faults, tuple(numbers)) for ns, faults, numbers in each]
            for each in answer["rounds"]
        ]
        return [list(each) for each in zip(*samples, strict=True)]

    def watch(self, counter: Counter, start: Compiled) -> dict[str, float]:
        """What the processor and the system count in one run, by name, as far as they let it be read. Raises
        ValueError with a sentence."""
        request = {"do": "watch", "program": counter.request}
        counted = self._asked(request, start, 2 * self._run_seconds)["counted"]
        return {name: count / counter.repeats for name, count in counted.items()}

    def _asked(self, request: dict[str, Any], start: Compiled, seconds: float) -> dict[str, Any]:
        """The worker's answer. Raises ValueError with a sentence where it has none."""
        request = {**request, "cpu_seconds": self._cpu_seconds(seconds)}
        try:
            answer = self._ask(self._prepared(start), request, seconds)
        except WorkerDied as death:
            self._worker = None
            raise ValueError(str(death)) from None
        except (WorkerFault, Unmeasurable, Damaged) as fault:
            raise ValueError(str(fault)) from None
        if answer["status"] != "ok":
            self.close()
            raise ValueError(answer["message"])
        return answer

    def conditions(self) -> Conditions:
        """Under which the last rounds were taken."""
        if self._worker is not None:
            try:
                return Conditions(
                    self._worker.ask({"do": "load", "cpu_seconds": self._cpu_seconds(1)}, 5)["load"]
                )
            except WorkerDied:
                self._worker = None
            except WorkerFault:
                self.close()
        return UNKNOWN

    def _ask(self, worker: WorkerProcess, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """As ``WorkerProcess.ask``, while the answer is wanted. Raises also WorkerStopped."""
        try:
            return worker.ask(request, seconds, self.unwanted)
        except WorkerStopped:
            self._worker = None
            raise

    def _prepared(self, start: Compiled) -> WorkerProcess:
        """The worker, holding the workload. Raises Unmeasurable."""
        key = (start.program.hash, start.built, start.policy, self.seed)
        if self._worker is not None and self._worker.prepared == key:
            return self._worker
        since, reason = self._unfit.get(key, (0.0, ""))
        if reason and time.monotonic() - since < RETRY_START_SECONDS:
            raise Unmeasurable(reason)  # it may take seconds to find that out: not for each candidate again
        try:
            if self._worker is None:
                self._worker = WorkerProcess(self._machine)
            self._prepare(self._worker, start)
            self._worker.prepared = key
            return self._worker
        except WorkerDied as death:
            self._worker = None
            if death.outside:
                raise Unmeasurable(str(death)) from None
            reason = str(death)
        except (WorkerFault, Unmeasurable) as fault:
            self.close()
            reason = str(fault)
        self._unfit[key] = (time.monotonic(), reason)
        raise Unmeasurable(reason)

    def _prepare(self, worker: WorkerProcess, start: Compiled) -> None:
        """Have the worker draw inputs and judge the start program by them, which sets the tolerances."""
        self._draw(worker, start.program, start.code, start.policy)
        seconds = JUDGE_MULTIPLE * self._run_seconds * start.sets
        judge = {
            "do": "judge",
            **start.request,
            "policy": start.policy,
            "cpu_seconds": self._cpu_seconds(seconds),
        }
        judged = self._ask(worker, judge, seconds)
        if judged["status"] != "ok":
            raise Unmeasurable(judged["message"])

    def draws_quickly(self, program: Program, code: Code) -> bool:
        """Are a start program's inputs and references there, or soon, and what it makes of them?"""
        drawn = self._worker.drawn if self._worker is not None else None
        if drawn is not None and drawn[:3] == self._drawing(program, code):
            return True
        size = sum(math.prod(p.shape) * DTYPE_BYTES[p.dtype] for p in code.parameters)
        return size < SLOWLY_DRAWN and not runs_long(program)

    def rough(self, candidate: Compiled, start: Program) -> float | None:
        """Seconds of a run of a candidate on inputs that are drawn for it alone, not verified; None where it
        has none. The machine is held."""
        request = {
            "do": "rough",
            **candidate.request,
            "start": start.text,
            "parameters": _told(candidate.code),
        }
        try:
            self.warm()
            assert self._worker is not None
            self._worker.drawn = self._worker.prepared = None
            answer = self._ask(
                self._worker,
                {**request, "cpu_seconds": self._cpu_seconds(self._run_seconds)},
                self._run_seconds,
            )
        except WorkerDied:
            self._worker = None
            return None
        except (WorkerFault, Damaged):
            self.close()
            return None
        return float(answer["seconds"]) if answer["status"] == "ok" else None

    def _drawing(self, program: Program, code: Code) -> tuple[object, ...]:
        """What inputs are drawn by, whatever they are to show."""
        return program.hash, code.parameters, self.seed

    def draw(self, program: Program, code: Code, policy: str) -> None:
        """Have the worker draw a start program's inputs ahead, while a compiler runs.

        What goes wrong here is found again, and told, when the program is judged.
        """
        if any(key[0] == program.hash for key in self._unfit):
            return  # it could not be judged: _prepared knows when to try again
        try:
            self.warm()
            assert self._worker is not None
            self._draw(self._worker, program, code, policy)
        except WorkerDied:
            self._worker = None
        except (WorkerFault, Unmeasurable):
            self.close()
        except WorkerStopped:
            pass  # nobody asks for what it was drawn for

    def _draw(self, worker: WorkerProcess, program: Program, code: Code, policy: str) -> None:
        sets = input_sets(program, policy)
        key = (*self._drawing(program, code), sets)
        if worker.drawn == key:
            return
        worker.drawn = worker.prepared = None
        seconds = PREPARE_SECONDS * len(sets)
        prepared = self._ask(
            worker,
            {
                "do": "prepare",
                "start": program.text,
                "parameters": _told(code),
                "seed": self.seed,
                "sets": [asdict(each) for each in sets],
                "cache": str(cache_directory()),
                "last_level": self._machine.last_level_cache,
                "second_level": self._machine.second_level_cache,
                "cpu_seconds": self._cpu_seconds(seconds),
            },
            seconds,
        )
        if prepared["status"] != "ok":
            raise Unmeasurable(prepared["message"])
        self.input_sets = int(prepared["sets"])
        worker.drawn = key

    def _cpu_seconds(self, seconds: float) -> float:
        """Of all threads together: a little more than what the watchdog allows."""
        return (seconds + 5) * self._machine.cores
