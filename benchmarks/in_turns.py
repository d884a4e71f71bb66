"""Programs timed so that their order repeats: each in turns with all others, in several processes.

A round runs all of them once, in an order of its own, within milliseconds, so that a clock that swings
favours none; what counts of each is its time over the round's geometric mean. Where code and arrays lie in
memory is a process' own, so there are several. What half of them say beside the other half tells how far an
order of these programs repeats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.search.cost_model import rank_correlation
from dojo_core.codegen.built import Built, CompileError
from dojo_core.codegen.code import Code
from dojo_core.measure.conditions import UNKNOWN, Conditions
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.limits import RUN_SECONDS
from dojo_core.measure.load import Reading, read_beside_family, share_of_others
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Effort
from dojo_core.measure.trial import Compiled, Trials
from dojo_core.measure.turns import SAMPLE_NS
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.build import build

# What decides is where a process has its code and arrays: medians of 60 rounds, which leave 1% open, differ
# between processes by 1 to 7% (standard deviation, on an Emerald Rapids). So rounds are few, processes many.
PROCESSES, ROUNDS = 20, 20


class NotTimed(Exception):
    """Programs that cannot be timed; ``str()`` says why."""


@dataclass(frozen=True)
class Turns:
    """``seconds``: of each process, of each of its rounds, of each program: three dimensions. ``conditions``:
    under which they ran, of all processes together: half a second of one has too few ticks to tell."""

    seconds: np.ndarray
    conditions: Conditions

    @property
    def relative(self) -> np.ndarray:
        """Of each program, how many times as long as the fastest one it takes."""
        typical = _typical(self.seconds)
        relative: np.ndarray = np.exp(typical - typical.min())
        return relative

    @property
    def repeatability(self) -> float:
        """The rank correlation (Spearman) of what two halves of the processes say."""
        return rank_correlation(_typical(self.seconds[::2]), _typical(self.seconds[1::2]))


def _typical(seconds: np.ndarray) -> np.ndarray:
    """Of each program, the logarithm of its time over its round's geometric mean: the median over rounds."""
    logarithms = np.log(seconds.reshape(-1, seconds.shape[-1]))
    return np.asarray(np.median(logarithms - logarithms.mean(axis=1, keepdims=True), axis=0))


def in_turns(
    start: Program,
    programs: Sequence[Program],
    policy: str,
    generate: Callable[[Program, str], Code],
    preamble: str,
    processes: int = PROCESSES,
    rounds: int = ROUNDS,
) -> Turns:
    """Verifies programs against their start program and times them, in an even number of processes. Raises
    NotTimed."""
    all_programs = (start, *programs)
    codes = [generate(program, policy) for program in all_programs]
    judge, *compiled = [
        Compiled(program, code, _library(built), policy)
        for program, code, built in zip(all_programs, codes, build(codes, preamble=preamble), strict=True)
    ]
    orders = np.random.default_rng(0)
    seconds, conditions = [], []
    for _ in range(processes):
        with measuring() as claim:
            before = read_beside_family()
            trials = Trials(this_machine(), RUN_SECONDS)
            try:
                seconds.append(_rounds(trials, judge, compiled, rounds, orders))
                conditions.append(_conditions(before, read_beside_family(), claim.alone()))
            finally:
                trials.close()
    return Turns(np.array(seconds), _together(conditions))


def _library(built: Built | CompileError) -> Built:
    if isinstance(built, CompileError):
        raise NotTimed(f"A program does not compile: {built.message}")
    return built


def _rounds(
    trials: Trials, judge: Compiled, compiled: Sequence[Compiled], rounds: int, orders: np.random.Generator
) -> np.ndarray:
    """Seconds of each program in each round of one process."""
    timed = []
    for each in compiled:
        verified = trials.run(each, judge, Effort.QUICK, None, once=True)
        if verified.seconds is None:
            raise NotTimed(f"A program has no time: {verified.status}. {verified.message}")
        timed.append((each, max(1, math.ceil(SAMPLE_NS / (1e9 * verified.seconds)))))
    seconds = np.empty((rounds, len(timed)))
    for row in seconds:
        order = orders.permutation(len(timed))
        samples = trials.round([timed[each] for each in order], judge)
        if samples is None:
            raise NotTimed("A round ended, which the log tells.")
        row[order] = [sample.nanoseconds / 1e9 for sample in samples]
    return seconds


def _conditions(before: Reading | None, after: Reading | None, alone: bool) -> Conditions:
    if before is None or after is None:
        return UNKNOWN
    return Conditions(share_of_others(before, after), alone)


def _together(conditions: Sequence[Conditions]) -> Conditions:
    """The mean load, not known where one is not; alone where all were."""
    loads = [each.load for each in conditions if each.load is not None]
    load = sum(loads) / len(loads) if len(loads) == len(conditions) else None
    return Conditions(load, all(each.exclusive for each in conditions))
