"""Where an agent's times come from: the machine, a table, or a count of operations, by one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.speed import in_turns
from dojo_core.program.tree import Node, Op, Program
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.measurers import Measurers
from dojo_core.targets.registry import backend


class Timing(Protocol):
    """A source of times. ``lines`` has the moves from the start by program hash, for the records; with
    ``Effort.FINAL`` also what is known is timed again."""

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        """One measurement for each program, in order; ``cancelled`` ones where the caller asked to stop."""


def no_clock(target: str, instead: str = "count operations instead, or let a pass play") -> str:
    """Why agents cannot time programs for a target here, and what to do instead; empty where they can."""
    clock = backend(target).clock()
    if clock.counts:
        return ""
    return (
        f"Agents go by what programs take, and nothing here times those for {target}: "
        f"{instead} (dojo pass), which measures nothing. {clock.missing}"
    ).rstrip()


class MeasurersTiming:
    """The clock of each target that is asked for, by the measurers of a process."""

    def __init__(self, measurers: Measurers, player: str) -> None:
        self._measurers, self._player = measurers, player
        self._timings: dict[str, MeasurerTiming] = {}  # by target

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        unknown = no_clock(workload.target)
        if unknown:
            return [Measurement(p.hash, "", "refused", unknown) for p in programs]
        measurer = self._measurers.of(workload.target)
        timing = self._timings.get(workload.target)
        if timing is None or timing.measurer is not measurer:  # another one, since they were closed meanwhile
            timing = self._timings[workload.target] = MeasurerTiming(measurer, self._player)
        return timing.measure(workload, programs, lines, effort, cancelled)


class MachineTiming(MeasurersTiming):
    """The clocks of this machine: compiled, verified, timed, kept in the measurer's records; of programs for
    another target than the measurer's on that one's own.

    Candidates take turns with the fastest one known; one that is hopeless beside it is run no more.
    """

    def __init__(self, measurer: Measurer, player: str) -> None:
        super().__init__(Measurers(measurer.records, **{measurer.target: measurer}), player)


@dataclass(frozen=True)
class _Incumbent:
    """The fastest program of a workload so far, and its seconds on the scale of the first."""

    program: Program
    seconds: float


class MeasurerTiming:
    """The clock of one target, by a measurer of it.

    A machine may be half as fast from one minute to the next, and programs that were timed hours apart are to
    be told apart by some percent. So each takes turns with the fastest one known, as far as it is not
    hopeless, and its ``seconds`` are that one's by the median of their ratios: all are on one scale, whatever
    the minute, that of the first one's time, and with ``Effort.FINAL`` of the present minute. A run that goes
    on begins a new scale. Another takes its place where the turns leave no doubt that it is faster: else the
    luckiest of each batch would, and the scale would slide.
    """

    def __init__(self, measurer: TargetMeasurer, player: str) -> None:
        self.measurer, self._player = measurer, player
        self._incumbents: dict[tuple[str, str], _Incumbent] = {}  # by start program and policy

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        key = workload.start.hash, workload.policy
        incumbent = self._incumbents.get(key)
        measured = self.measurer.measure(
            workload,
            programs,
            effort,
            cancelled=cancelled,
            player=self._player,
            lines=lines,
            fresh=effort is Effort.FINAL,
            against=incumbent.program if incumbent else None,
        )
        if incumbent is not None and effort is Effort.FINAL:  # what is told at last is of this minute
            again = next((m for m in measured if m.program_hash == incumbent.program.hash), None)
            if again is not None and again.seconds is not None:
                incumbent = replace(incumbent, seconds=again.seconds)
        if incumbent is not None:
            measured = [_on_scale(m, incumbent) for m in measured]
        for program, m in zip(programs, measured, strict=True):
            if m.status != "ok" or m.seconds is None or not m.verified:
                continue
            if incumbent is None or (m.seconds < incumbent.seconds and _surely_faster(m)):
                incumbent = _Incumbent(program, m.seconds)
        if incumbent is not None:
            self._incumbents[key] = incumbent
        return measured


def _on_scale(measurement: Measurement, incumbent: _Incumbent) -> Measurement:
    """A measurement with the seconds that its turns with the incumbent tell, if it had any."""
    if not measurement.ratios or measurement.program_hash == incumbent.program.hash:
        return measurement
    return replace(measurement, seconds=incumbent.seconds / median(measurement.ratios))


def _surely_faster(measurement: Measurement) -> bool:
    return len(measurement.ratios) > 1 and in_turns(measurement.ratios).verdict == "faster"


class TableTiming:
    """Times from a table by program hash; what is not there is asked elsewhere, or refused."""

    def __init__(self, table: Mapping[str, Measurement], otherwise: Timing | None = None) -> None:
        self._table = table
        self._otherwise = otherwise

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        known = {p.hash: self._table[p.hash] for p in programs if p.hash in self._table}
        rest = [p for p in programs if p.hash not in known]
        if rest and self._otherwise is not None:
            measured = self._otherwise.measure(workload, rest, lines, effort, cancelled)
            known.update({measurement.program_hash: measurement for measurement in measured})
        refused = "The table has no time for this program."
        return [known.get(p.hash) or Measurement(p.hash, "", "refused", refused) for p in programs]


class CountTiming:
    """A time without a clock: nanoseconds by the operations that are executed, one each. No program is run,
    so none is verified: each counts as right, and who shows such counts says so.

    A vector counts as one operation, an unrolled one as three quarters, threads share; of a GPU's the first
    hundred blocks, and all threads of a block. The same for the same
    program, on any machine: what tests of agents need.
    """

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        return [timed(program, _cost(program)) for program in programs]


def timed(program: Program, seconds: float) -> Measurement:
    """A measurement of a program that took so long."""
    return Measurement(
        program.hash,
        program.hash,
        "ok",
        samples=(seconds * 1e9,),
        seconds=seconds,
        median=seconds,
        verified=True,
    )


def _cost(program: Program) -> float:
    """Seconds, with a heap access counting as four operations more."""
    heap = {a for b in program.buffers if b.location == "heap" for a in b.arrays}

    def count(node: Node) -> float:
        if isinstance(node, Op):
            return 1.0 + 4.0 * sum(a.array in heap for a in (node.target, *node.reads))
        inside = sum(count(child) for child in node.body)
        at_once = {"v": node.size, "p": 2, "g": min(node.size, 100), "b": node.size, "w": node.size}
        each = 0.75 if node.mark == "u" else 1 / at_once.get(node.mark, 1)
        return node.size * each * (inside + 1.0)

    return sum(count(node) for node in program.body) * 1e-9
