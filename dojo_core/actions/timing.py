"""Timing: what gives a target's programs a number here, and programs timed in turns with another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from dojo_core.game import Game
from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.measurement import Effort, Measurement, Workload, seconds_text
from dojo_core.measure.speed import LOOKS, in_turns
from dojo_core.program.tree import Program
from dojo_core.targets.registry import backend


class NothingTimes(ValueError):
    """Programs for a target get no number here; ``str()`` is a sentence."""


def clock_here(target: str) -> Clock:
    """The clock of a target whose programs run here. Raises NothingTimes, which says how one is got."""
    clock = backend(target).clock()
    if clock.kind in ("elsewhere", "missing"):
        raise nothing_times(target)
    return clock


def nothing_times(target: str, why: str = "") -> NothingTimes:
    """``why``: in place of what the clock says is missing."""
    missing = why or backend(target).clock().missing
    return NothingTimes(f"Nothing here times programs for {target}. {missing}".strip())


def number_text(target: str, seconds: float) -> str:
    """A target's number as a person reads it: ``1.83 ms``, or ``12,345 cycles``."""
    unit = backend(target).clock().unit
    return seconds_text(seconds) if unit == "seconds" else f"{1e9 * seconds:,.0f} {unit}"


def workload_of(game: Game) -> Workload:
    """What a game's programs are judged against."""
    return Workload(game.start, game.kernel, game.policy, game.target)


Look = Callable[[int, int], AbstractContextManager[Callable[[], object]]]


def unseen(number: int, programs: int) -> AbstractContextManager[Callable[[], object]]:
    """A look at programs that nobody is shown."""
    return nullcontext(lambda: None)


def timed_in_turns(
    measurer: TargetMeasurer,
    workload: Workload,
    against: Program,
    programs: Sequence[Program],
    look: Look = unseen,
    player: str = "",
    lines: Mapping[str, str] | None = None,
) -> dict[str, Measurement]:
    """Programs timed in turns with another, by their hashes; what that leaves open a few times more, unless
    the target's clock is steady.

    ``look`` is entered for each time, with its number from 0 and how many programs it is about; what it gives
    is called after each of them. ``player`` and ``lines`` go to the records.
    """
    steady = backend(workload.target).clock().steady
    results: dict[str, Measurement] = {}
    due = list(dict.fromkeys(programs))
    for number in range(LOOKS):
        before = {each: result.ratios for each, result in results.items()}
        wanted = {program.hash for program in due}
        with look(number, len(wanted)) as advance:

            def heard(
                m: Measurement, wanted: set[str] = wanted, advance: Callable[[], object] = advance
            ) -> None:
                if m.program_hash in wanted:
                    advance()

            measured = measurer.measure(
                workload,
                due,
                Effort.QUICK,
                heard,
                player=player,
                lines=lines,
                fresh=number > 0,
                against=against,
            )
        for m in measured:
            ratios = (*before.get(m.program_hash, ()), *m.ratios)
            results[m.program_hash] = replace(m, ratios=ratios)
        due = [program for program in due if steady is None and _open(results[program.hash].ratios)]
        if not due:
            break
    return results


def _open(ratios: Sequence[float]) -> bool:
    """Do the rounds leave open which is faster?"""
    return len(ratios) > 1 and not in_turns(ratios).decided
