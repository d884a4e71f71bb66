"""A program of this computer's CPU, profiled: timed without and with timers, its pieces counted, its limits
computed, in turns in the measuring process."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from dojo_core.codegen.built import Built, CompileError
from dojo_core.codegen.code import Code
from dojo_core.measure.counters import HARDWARE
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.judging import hastened
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.profile import NOT_EXPLAINED, Part, Profile
from dojo_core.measure.trial import Compiled, Counter, Counts, Trials
from dojo_core.program.printing import op_text, slot_text
from dojo_core.program.tree import Node, Op, Path, Program
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.processor import host
from dojo_core.targets.cpu.profile import rates as machine
from dojo_core.targets.cpu.profile.blocks import COUNTED, counting
from dojo_core.targets.cpu.profile.bounds import Work, expected, limits, named
from dojo_core.targets.cpu.profile.pipeline import Pipeline, modelled, work_of
from dojo_core.targets.cpu.profile.timers import (
    Reading,
    Timed,
    parallel_above,
    read,
    readable,
    with_timers,
)
from dojo_core.targets.cpu.profile.tree import due, inherited, parted, timed_last

ROUNDS, RATE_ROUNDS = 7, 2
SAMPLE_SECONDS = 1e-3  # a shorter run is repeated within a sample
LEVELS = 4  # of timers within timers
WORTH = 0.1  # of the whole: a part of it that is not explained is looked at once more


def profile(
    trials: Trials, workload: Workload, program: Program, cancelled: Callable[[], bool] | None = None
) -> Profile:
    """Where the time of a program goes. Raises NotGeneratable, and ValueError with a sentence where it is
    wrong, does not compile, or this computer has no clock that a program may read."""
    return _Profiler(trials, workload, program, cancelled).profile()


class _Profiler:
    def __init__(
        self,
        trials: Trials,
        workload: Workload,
        program: Program,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self.processor = host()
        if not readable(self.processor.instruction_set):
            raise ValueError(
                f"A program cannot read the clock of {self.processor.name} "
                f"({self.processor.instruction_set}) quickly: nothing here profiles it."
            )
        self.trials, self.workload, self.program, self.cancelled = trials, workload, program, cancelled
        self.threads = self.processor.threads
        self.code = generate(program, workload.policy)
        judge = generate(hastened(workload.start), workload.policy)
        start, plain = self._built([judge, self.code])
        self.start = Compiled(workload.start, judge, start, workload.policy)
        self.plain = Compiled(program, self.code, plain, workload.policy)
        self.remarks: list[str] = []
        self.repeats = 1

    def profile(self) -> Profile:
        seconds = self._verified()
        self.repeats = max(1, math.ceil(SAMPLE_SECONDS / seconds))
        pipeline = self._pipeline()
        timers, added, rates = self._times(seconds)
        times = inherited(self.program, timers)
        whole = times[()]
        work = work_of(self.program, self.processor, pipeline, self.trials.input_sets)
        weights = {leaf.path: expected(work[leaf.path], rates) for leaf in self.program.leaves}
        every = parted(self.program, times, weights)

        def parts(saved: Mapping[Path, float]) -> tuple[Part, ...]:
            return tuple(
                self._part(path, every[path], times, work[path], rates, pipeline, saved)
                for path in sorted(work)
            )

        told = parts({})
        if any(part.bound == NOT_EXPLAINED and part.share >= WORTH for part in told):
            last = tuple(timed_last(timers))
            if saved := self._saved_without_subnormals(last, whole):
                told = parts(saved)
        counters = self._counters()
        return Profile(
            seconds=whole,
            parts_seconds=added,
            threads=self.threads if any(map(partial(parallel_above, self.program), work)) else 1,
            parts=told,
            hot=pipeline.hot(self.program, every) if pipeline is not None else (),
            counters=counters,
            remarks=tuple(self.remarks),
        )

    # ------------------------------------------------------------------ runs

    def _times(self, seconds: float) -> tuple[dict[Path, float], float, machine.Rates]:
        """Seconds of the whole (by ``()``) and of each node that a timer tells, what the first timers add up
        to by the clock alone, and the rates of the machine, measured in turns with these.

        Timers go a level deeper each time, as long as what they time is long enough.
        """
        paths = due(self.program, inherited(self.program, {(): seconds}), self.threads) or [
            (k,) for k in range(len(self.program.body))
        ]
        timed, counter = self._timed(paths)
        plain = Counter(self.plain.built, self.code.workspace_bytes, self.repeats)
        code = machine.rates_code(self.processor, self.threads)
        [built] = self._built([code])
        best = Counter(built, code.workspace_bytes, 1, machine.COUNTERS, machine.NUMBERS)
        # Apart, for what streams through all caches leaves them cold; before and after, as the clock swings.
        [of_machine] = self._count([best], RATE_ROUNDS)
        untimed, with_them = self._count([plain, counter], ROUNDS)
        of_machine += self._count([best], RATE_ROUNDS)[0]
        rates = machine.rates([(sample.seconds, sample.numbers) for sample in of_machine])
        reading = _best(timed, with_them, self.repeats)
        whole = min(sample.seconds for sample in untimed)
        ratios = (
            rates.tick * sum(read(timed, measured.numbers, self.repeats).parts.values()) / beside.seconds
            for beside, measured in zip(untimed, with_them, strict=True)
        )
        added = whole * median(ratios)
        times: dict[Path, float] = {(): whole}
        for _ in range(LEVELS):
            if not reading.whole:  # shorter than the clock's ticks tell: the model parts it
                break
            times |= {path: whole * ticks / reading.whole for path, ticks in reading.parts.items()}
            paths = due(self.program, inherited(self.program, times), self.threads)
            if not paths:
                break
            timed, counter = self._timed(paths)
            reading = _best(timed, self._count([counter], ROUNDS)[0], self.repeats)
        return times, added, rates

    def _counters(self) -> dict[str, float]:
        """What the processor and the system count in one run on one thread."""
        plain = Counter(self.plain.built, self.code.workspace_bytes, self.repeats, threads=1)
        with measuring(self.cancelled) as claim:
            found = self.trials.watch(plain, self.start) if claim else {}
        if not found.keys() & set(HARDWARE):
            self.remarks.append("The system lets no counters of the processor be read.")
        return found

    def _verified(self) -> float:
        """The seconds of a run of the program, which is right."""
        with measuring(self.cancelled) as claim:
            if not claim:
                raise ValueError("Not profiled: the request was cancelled.")
            outcome = self.trials.run(self.plain, self.start, Effort.QUICK, None)
        if outcome.seconds is None:
            raise ValueError(f"It cannot be profiled: {outcome.message}")
        return outcome.seconds

    def _built(self, codes: Sequence[Code]) -> list[Built]:
        made = build(codes, cancelled=self.cancelled)
        for each in made:
            if isinstance(each, CompileError):
                raise ValueError(f"It does not compile: {each.message}")
        return [each for each in made if isinstance(each, Built)]

    def _count(self, counters: Sequence[Counter], rounds: int) -> list[list[Counts]]:
        with measuring(self.cancelled) as claim:
            if not claim:
                raise ValueError("Not profiled: the request was cancelled.")
            return self.trials.count(counters, self.start, rounds)

    def _timed(
        self, paths: Sequence[Path], threads: int = 0, without_subnormals: bool = False
    ) -> tuple[Timed, Counter]:
        instruction_set = self.processor.instruction_set
        timed = with_timers(self.code, self.program, paths, self.threads, instruction_set, without_subnormals)
        [built] = self._built([timed.code])
        space = timed.code.workspace_bytes
        return timed, Counter(built, space, self.repeats, timed.counters, timed.numbers, threads)

    def _saved_without_subnormals(self, paths: Sequence[Path], whole: float) -> dict[Path, float]:
        """Seconds that go away with subnormal numbers taken as zero, on one thread, of nodes with timers."""
        if not self.processor.is_x86:
            return {}
        usual, usual_counter = self._timed(paths, 1)
        without, other_counter = self._timed(paths, 1, without_subnormals=True)
        samples = self._count([usual_counter, other_counter], ROUNDS)
        before = _best(usual, samples[0], self.repeats)
        after = _best(without, samples[1], self.repeats)
        if not before.whole:
            return {}
        return {p: whole * max(before.parts[p] - after.parts[p], 0.0) / before.whole for p in paths}

    def _pipeline(self) -> Pipeline | None:
        """The pieces of the code, counted; None where they cannot be, which a remark tells."""
        if not self.processor.is_x86:
            self.remarks.append("Instructions are counted on x86 alone: here are timers and traffic.")
            return None
        made = counting(self.code)
        counter = Counter(made.built, self.code.workspace_bytes, 1, COUNTED, len(made.pieces), 1)
        [samples] = self._count([counter], 1)
        pipeline = modelled(made, samples[0].numbers, self.processor)
        self.remarks += [pipeline.missing] if pipeline.missing else []
        return pipeline

    def _part(
        self,
        path: Path,
        seconds: float,
        times: Mapping[Path, float],
        work: Work,
        rates: machine.Rates,
        pipeline: Pipeline | None,
        saved: Mapping[Path, float],
    ) -> Part:
        around = [path[:depth] for depth in range(1, len(path)) if path[:depth] in saved]
        # Of what is timed with others, as much goes away as of all of it.
        inside = [each for each in saved if each in around and times[each]]
        faults = sum(saved[each] * seconds / times[each] for each in inside)
        faults += sum(spared for each, spared in saved.items() if each[: len(path)] == path)
        found = limits(work, rates, pipeline.model if pipeline is not None else "", faults)
        together = expected(work, rates)
        bound, explained = named(seconds, found, together)
        return Part(
            path=path,
            text=_text(self.program.node(path)),
            seconds=seconds,
            share=seconds / times[()],
            source="timer" if path in times else "model",
            bound=bound,
            explained=explained,
            limits=found,
            together=together,
        )


def _best(timed: Timed, samples: Sequence[Counts], runs: int) -> Reading:
    """Of the sample whose whole is the shortest: what disturbs a run only makes it longer."""
    return min((read(timed, sample.numbers, runs) for sample in samples), key=lambda each: each.whole)


def _text(node: Node) -> str:
    return op_text(node) if isinstance(node, Op) else slot_text(node)
