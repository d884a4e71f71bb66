"""Measures programs: generated, compiled in batches, verified, then timed, one at a time on the machine."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dojo_core.codegen.built import Built, CompileError
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.measure import evidence
from dojo_core.measure.alone import measured_alone
from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.conditions import AGAIN_SECONDS, UNKNOWN, stands, worth
from dojo_core.measure.exclusive import announcer, compiling, measuring
from dojo_core.measure.job import Job
from dojo_core.measure.judging import hastened
from dojo_core.measure.limits import (
    BATCH_KERNELS,
    COMPILE_SECONDS,
    CRASHES,
    FIRST_BATCH,
    KNOWN_CODES,
    RUN_SECONDS,
)
from dojo_core.measure.load import load_is_told
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import BROKE, SETTLED, Effort, Measurement, Origin, Workload
from dojo_core.measure.process import WorkerStopped
from dojo_core.measure.profile import Profile
from dojo_core.measure.records import Records, Sample
from dojo_core.measure.sealed import DAMAGED, Damaged
from dojo_core.measure.speed import DRIFT_BUSY, FIRST_ROUNDS, ROUNDS
from dojo_core.measure.trial import Compiled, Trials
from dojo_core.measure.turns import GROUP, SAMPLE_NS, Turns, take_turns
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.build import build, code_hash

__all__ = ["Effort", "Measurement", "Measurer", "Workload"]

log = logging.getLogger(__name__)

LONG_SECONDS = 0.05  # a run that takes as long keeps others waiting


class Measurer(TargetMeasurer):
    """One per process is enough; calls from several threads take turns.

    ``run_seconds`` and ``compile_seconds`` are the watchdogs. ``generate`` and ``preamble`` stand in for
    the target's code generator. With ``records``, results are kept there and found there.
    """

    def __init__(
        self,
        records: Records | None = None,
        *,
        target: str = DEFAULT_TARGET,
        run_seconds: float = RUN_SECONDS,
        compile_seconds: float = COMPILE_SECONDS,
        jobs: int = 2,
        generate: Callable[[Program, str], Code] | None = None,
        preamble: str | None = None,
    ) -> None:
        self.records = records
        self.target = target
        self.machine = this_machine()
        if target == "cpu":
            announcer.advise(the_compiler().advice)
        self._origin = Origin(target, self.machine.fingerprint, self.machine.details, load_is_told())
        self._compile_seconds = compile_seconds
        self._jobs = jobs
        self._preamble = preamble
        self._generate = generate
        self._turn = threading.RLock()
        self._trials = Trials(self.machine, run_seconds)
        # By code, start program and policy, the ones used last. Records have the rest.
        self._known: OrderedDict[tuple[str, str, str], _Known] = OrderedDict()
        self._failures: dict[str, int] = {}  # crashes and timeouts of a code in this session
        self._best: dict[str, float] = {}  # seconds, by start program

    @property
    def worker_pid(self) -> int | None:
        """The process id of the worker, None while there is none."""
        return self._trials.pid

    @property
    def input_sets(self) -> int:
        return self._trials.input_sets

    def warm(self) -> None:
        """Start the worker before there is something to measure."""
        with self._turn:
            self._trials.warm()

    def close(self) -> None:
        """End the worker. A later ``measure`` starts another."""
        with self._turn:
            self._trials.close()

    def use_inputs(self, seed: int) -> None:
        """Verify what is measured next on the inputs of a seed."""
        with self._turn:
            self._trials.seed = seed

    def carry_out(self, job: Job) -> None:
        """Verify and time programs, while others who ask wait.

        Identical code is measured once, and not at all where it is known with as much effort, unless a fresh
        measurement is asked for anyhow. What is to be timed ``against`` a program, which has been verified
        before, takes turns with it, known or not: ``ratios`` of its result. The job hears of that program
        too, by the runs that it had.
        """
        with self._turn:
            waiting = self._candidates(job)
            if waiting and job.effort is Effort.FINAL:
                self._trials.renew_inputs()
            size = FIRST_BATCH
            self._trials.unwanted = job.cancelled
            try:
                while waiting and not job.cancelled():
                    batch, waiting = waiting[:size], waiting[size:]
                    self._batch(job, batch)
                    size = min(2 * size, 2 * BATCH_KERNELS)
            except WorkerStopped:
                pass  # the job was cancelled, and the rest of it is told so
            finally:
                self._trials.unwanted = lambda: False
                self._trials.usual_inputs()

    def profile(
        self, workload: Workload, program: Program, cancelled: Callable[[], bool] | None = None
    ) -> Profile:
        """Where the time of a program goes, while others who ask wait."""
        from dojo_core.targets.cpu.profile.profiler import profile

        with self._turn:
            self._trials.unwanted = cancelled or (lambda: False)
            try:
                return profile(self._trials, workload, program, cancelled)
            except WorkerStopped:
                raise ValueError("Not profiled: the request was cancelled.") from None
            finally:
                self._trials.unwanted = lambda: False

    # ------------------------------------------------------------------ what is to be measured

    def _candidates(self, job: Job) -> list[_Candidate]:
        """The different codes of its programs, without those that are known or have none: these are told."""
        by_key: dict[str, _Candidate] = {}
        for program in dict.fromkeys(job.programs):
            if job.cancelled():
                break
            code = self._code(program, job.workload.policy)
            if isinstance(code, str):
                job.tell(Measurement(program.hash, "", "refused", code))
                continue
            key = code_hash(code, self._preamble)
            by_key.setdefault(key, _Candidate(code, key, [])).programs.append(program)
        waiting = []
        for candidate in by_key.values():
            known = None if job.fresh else self._look_up(job, candidate)
            if known is None:
                waiting.append(candidate)
            else:
                self._tell(job, candidate, known, known=True)
        return waiting

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

    def _look_up(self, job: Job, candidate: _Candidate) -> Measurement | None:
        """What is known of generated code on this workload, if that is enough."""
        key = (candidate.key, job.workload.start.hash, job.workload.policy)
        known = self._known.get(key)
        if known is None and self.records is not None:
            record = self.records.known_code(*key[:2], self.machine.fingerprint, key[2])
            if record is not None and record.status != "wrong_result":
                known = _Known(Effort.rank_of(record.effort), Measurement.recorded(record), record.time)
                self._remember(key, known)
        if known is None:
            return None
        outcome = known.outcome
        if outcome.status in SETTLED:
            return outcome
        enough = known.rank >= job.effort.rank and known.stands(self._origin.gauged)
        if outcome.status == "ok" and enough and job.against is None:
            return outcome
        failures = self._failures.get(candidate.key, 0)
        if outcome.status in ("crash", "timeout") and self.records is not None:
            failures = max(failures, self.records.failures(candidate.key, self.machine.fingerprint))
        if failures >= CRASHES:
            message = f"Not run again: it failed {failures} times here. {outcome.message}"
            return replace(outcome, status="refused", message=message)
        return None

    def code_text(self, program: Program, policy: str) -> str:
        """The generated code, or the sentence why there is none."""
        code = self._code(program, policy)
        return code if isinstance(code, str) else code.text

    def _remember(self, key: tuple[str, str, str], new: _Known) -> None:
        before = self._known.get(key)
        self._known[key] = new if before is None else new.beside(before)
        self._known.move_to_end(key)
        while len(self._known) > KNOWN_CODES:
            self._known.popitem(last=False)

    # ------------------------------------------------------------------ compile, verify, time

    def _batch(self, job: Job, batch: list[_Candidate]) -> None:
        start = self._code(hastened(job.workload.start), job.workload.policy)
        if isinstance(start, str):
            self._refuse(job, batch, f"The start program cannot be measured. {start}")
            return
        if job.on_rough is not None and not job.results:
            self._tell_roughly(job, batch[0], start)
        other = self._other(job)
        ahead = threading.Thread(target=self._draw_inputs, args=(job, start))
        ahead.start()
        try:
            first, *built = self._built(
                job, [start, *(c.code for c in batch), *([other.code] if other else [])]
            )
            ahead.join()
        except BaseException:  # Ctrl-C above all: the drawing may wait for others who measure
            job.stopped = True
            ahead.join()
            raise
        if job.cancelled():
            return
        if isinstance(first, CompileError):
            self._refuse(job, batch, f"The start program does not compile: {first.message}")
            return
        judge = Compiled(job.workload.start, start, first, job.workload.policy)
        turns = self._rounds(job, other, built.pop(), judge) if other is not None else None
        try:
            for candidate, made in zip(batch, built, strict=True):
                if job.cancelled():
                    return
                if isinstance(made, CompileError):
                    failed = candidate.outcome("compile_error", made.message)
                    if made.settled:
                        self._settle(job, candidate, failed)
                    else:  # told, but not kept: another day it may compile
                        self._tell(job, candidate, failed)
                    continue
                compiled = Compiled(candidate.programs[0], candidate.code, made, job.workload.policy)
                outcome = self._taken(job, candidate, compiled, judge, turns is not None)
                if outcome is None:
                    return
                if outcome.status == "refused":
                    self._tell(job, candidate, outcome)
                elif outcome.status != "ok" or turns is None:
                    self._settle(job, candidate, outcome)
                else:
                    turns.waiting.append((candidate, compiled, outcome))
                    if len(turns.waiting) >= GROUP:
                        self._take_turns(job, turns)
        finally:
            if turns is not None:
                self._take_turns(job, turns)
                if turns.known.raw:  # its runs in the turns are a measurement of it too
                    as_candidate = job.results.get(turns.other.programs[0].hash, turns.known)
                    self._settle(job, turns.other, replace(turns.known, ratios=as_candidate.ratios))

    def _tell_roughly(self, job: Job, candidate: _Candidate, start: Code) -> None:
        """What a candidate takes on arrays so large that their references take seconds, before these are
        there."""
        first = candidate.programs[0]
        if self._trials.draws_quickly(job.workload.start, start):
            return
        (made,) = self._built(job, [candidate.code])
        if isinstance(made, CompileError):
            return
        compiled = Compiled(first, candidate.code, made, job.workload.policy)
        with measuring(job.cancelled) as claim:
            seconds = self._trials.rough(compiled, job.workload.start) if claim else None
        if seconds is not None and job.on_rough is not None:
            for program in candidate.programs:
                job.on_rough(program.hash, seconds)

    def _other(self, job: Job) -> _Candidate | None:
        """What the candidates are held against, if it has code."""
        if job.against is None:
            return None
        code = self._code(job.against, job.workload.policy)
        if isinstance(code, str):
            return None
        return _Candidate(code, code_hash(code, self._preamble), [job.against])

    def _rounds(
        self, job: Job, other: _Candidate, made: Built | CompileError, judge: Compiled
    ) -> _Rounds | None:
        """What the candidates of a batch take turns with; None where it has no time."""
        if isinstance(made, CompileError):
            return None
        compiled = Compiled(other.programs[0], other.code, made, job.workload.policy)
        before = self._known.get((other.key, job.workload.start.hash, job.workload.policy))
        known = before.outcome if before is not None else None
        if known is None:  # of another process, say
            known = self._taken(job, other, compiled, judge, True)
        if known is None or known.seconds is None:
            return None
        return _Rounds(other, compiled, judge, replace(known, raw=()))

    def _take_turns(self, job: Job, turns: _Rounds) -> None:
        """Rounds of the candidates that wait, with what they are held against; then they are told."""
        waiting, turns.waiting = turns.waiting, []
        usual = turns.known.seconds or 0.0
        same = [each for each in waiting if each[0].key == turns.other.key]
        slow = [each for each in waiting if each not in same and _hopeless(each[2], usual)]
        taking = [each for each in waiting if each not in same and each not in slow]
        programs = [(turns.compiled, usual), *((made, m.seconds or 0.0) for _, made, m in taking)]
        timed = [(made, max(1, math.ceil(SAMPLE_NS / max(1e9 * seconds, 1.0)))) for made, seconds in programs]

        def run(order: Sequence[int]) -> list[Sample] | None:
            return self._trials.round([timed[each] for each in order], turns.judge)

        with measuring(job.cancelled) as claim:
            rounds = ROUNDS if job.fresh else FIRST_ROUNDS
            of_other, *taken = take_turns(run, len(taking) if claim else 0, rounds, job.cancelled)
            meanwhile = self._trials.conditions() if of_other.samples else UNKNOWN
            if of_other.samples and not claim.alone():
                meanwhile = replace(meanwhile, exclusive=False)
        taken += [Turns() for _ in taking[len(taken) :]]
        turns.known = (
            turns.known.with_turns(of_other.samples, (), meanwhile) if of_other.samples else turns.known
        )
        for (candidate, _, outcome), each in zip(taking, taken, strict=True):
            self._settle(job, candidate, outcome.with_turns(each.samples, each.ratios, meanwhile))
        for candidate, _, outcome in same:  # one code: they are as fast, whatever a clock says
            self._settle(job, candidate, replace(outcome, ratios=(1.0,) * ROUNDS))
        for candidate, _, outcome in slow:
            self._settle(job, candidate, outcome)

    def _built(self, job: Job, codes: list[Code]) -> list[Built | CompileError]:
        return build(
            codes, self._jobs, preamble=self._preamble, timeout=self._compile_seconds, cancelled=job.cancelled
        )

    def _taken(
        self, job: Job, candidate: _Candidate, compiled: Compiled, judge: Compiled, once: bool
    ) -> Measurement | None:
        """A candidate verified and timed, with one sample if rounds will follow; None where the job was
        cancelled."""
        best = self._best_of(job.workload)
        for _ in range(2):
            run = partial(self._trials.run, compiled, judge, job.effort, best, once)
            try:
                return measured_alone(run, job.cancelled)
            except Damaged:  # since it was compiled: it is made again
                again = self._built(job, [judge.code, candidate.code])
                if job.cancelled():
                    return None
                if not all(isinstance(each, Built) for each in again):
                    break
        return Measurement(compiled.program.hash, compiled.built.code_hash, "refused", DAMAGED)

    def _draw_inputs(self, job: Job, start: Code) -> None:
        """The worker draws inputs while the compiler runs, and beside no measurement."""
        with compiling(job.cancelled) as held:
            if held:
                self._trials.draw(job.workload.start, start, job.workload.policy)

    def heard(self, workload: Workload, seconds: float) -> None:
        """Another machine like this one has measured a program as fast: slow ones are cut off by it too."""
        with self._turn:
            best = self._best_of(workload)
            self._best[workload.start.hash] = seconds if best is None else min(best, seconds)

    def _best_of(self, workload: Workload) -> float | None:
        """Seconds of the fastest verified program of a workload, on this machine."""
        key = workload.start.hash
        if key not in self._best and self.records is not None:
            record = self.records.best(key, self.target, self.machine.fingerprint)
            if record is not None and record.seconds is not None:
                self._best[key] = record.seconds
        return self._best.get(key)

    # ------------------------------------------------------------------ what came out

    def _settle(self, job: Job, candidate: _Candidate, outcome: Measurement) -> None:
        """A fresh outcome: keep it in the records, remember it, tell it."""
        start, now = job.workload.start.hash, time.time()
        if self.records is not None:
            if outcome.status in evidence.FAULTS:
                outcome = self._as_evidence(job, candidate, outcome)
            keyed = replace(outcome, code_hash=candidate.key)
            self.records.add_all(
                self._origin.record(keyed, p, job.workload, job.effort, job.lines.get(p.hash, ""), job.player)
                for p in candidate.programs
            )
        key = (candidate.key, start, job.workload.policy)
        self._remember(key, _Known(job.effort.rank, outcome, now, now))
        if outcome.status in BROKE:
            self._failures[candidate.key] = self._failures.get(candidate.key, 0) + 1
        if outcome.seconds is not None:
            self._best[start] = min(outcome.seconds, self._best.get(start, outcome.seconds))
        self._tell(job, candidate, outcome)

    def _as_evidence(self, job: Job, candidate: _Candidate, outcome: Measurement) -> Measurement:
        """Keep what reproduces a fault; the outcome says where."""
        program = candidate.programs[0]
        reproduction = evidence.Evidence(
            status=outcome.status,
            message=outcome.message,
            kernel=job.workload.kernel or "",
            policy=job.workload.policy,
            target=self.target,
            start=job.workload.start.text,
            program=program.text,
            line=job.lines.get(program.hash, ""),
            code=candidate.code.text,
            seed=self._trials.seed,
            machine=self.machine.details,
            time=time.time(),
        )
        try:
            file = evidence.keep(reproduction)
        except OSError:
            log.exception("what reproduces this is not kept: %s", reproduction)
            return outcome
        log.error("%s of %s: %s", outcome.status, file, outcome.message)
        sentence = f"This is a fault of the Dojo: what reproduces it is kept in wrong/{file.name}."
        return replace(outcome, message=f"{outcome.message} {sentence}")

    def _refuse(self, job: Job, batch: list[_Candidate], message: str) -> None:
        for candidate in batch:
            self._tell(job, candidate, candidate.outcome("refused", message))

    def _tell(self, job: Job, candidate: _Candidate, outcome: Measurement, known: bool = False) -> None:
        for number, program in enumerate(candidate.programs):
            job.tell(replace(outcome, program_hash=program.hash, known=known or number > 0))


@dataclass(frozen=True)
class _Known:
    """An outcome, the rank of its effort, when it was last confirmed and when this process last measured it
    (seconds since the epoch)."""

    rank: int
    outcome: Measurement
    time: float
    tried: float = 0.0

    def stands(self, gauged: bool) -> bool:
        """Whether it need not be measured again: not a time that is old, marked or doubtful, unless this
        process has just tried."""
        now = time.time()
        return stands(self.outcome.conditions, now - self.time, gauged) or now - self.tried < AGAIN_SECONDS

    def beside(self, before: _Known) -> _Known:
        """This newer one, or the one before where its time is worth more; of equals the shorter one, for
        noise only adds to a time."""
        if self.outcome.seconds is None or before.outcome.seconds is None:
            return self
        mine, other = (worth(known.outcome.conditions, self.time - known.time) for known in (self, before))
        if (other, before.outcome.seconds) < (mine, self.outcome.seconds):
            confirmed = self.time if mine == other else before.time
            return replace(before, rank=max(self.rank, before.rank), time=confirmed, tried=self.tried)
        return self


@dataclass(frozen=True)
class _Candidate:
    """Generated code and the programs that it came from."""

    code: Code
    key: str
    programs: list[Program]

    def outcome(self, status: str, message: str) -> Measurement:
        return Measurement("", self.key, status, message)


@dataclass
class _Rounds:
    """What candidates of a batch take turns with, and those that wait for their turns."""

    other: _Candidate
    compiled: Compiled
    judge: Compiled  # the start program, which sets the tolerances
    known: Measurement  # an earlier one of the other program, then that of its runs in these turns
    waiting: list[tuple[_Candidate, Compiled, Measurement]] = field(default_factory=list)


def _hopeless(outcome: Measurement, usual: float) -> bool:
    """Is it so slow that its one run says it all, and more runs would keep the others waiting?"""
    return (outcome.seconds or 0.0) > max(LONG_SECONDS, DRIFT_BUSY * usual)
