"""Processors that this computer is not, as targets: C for them, compiled here and verified by an emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.measure.clock import Clock
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.package_data import data_path
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Report
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import Processor, known

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.measure.records import Records
    from dojo_core.targets.cpu.model import Estimate

NO_TIME = "No time: seconds need the processor itself."
UNSEEN = "Play it to have it verified."


class OtherProcessor(Backend):
    """C for a processor of the known ones, ``processor``, by its name."""

    processor: str

    @cached_property
    def _there(self) -> Processor:
        return known(self.processor)

    @cached_property
    def limits(self) -> Target:
        return replace(limits_of(self._there), name=self.name, title=self.words.title)

    def generate(self, program: Program, policy: str) -> Code:
        from dojo_core.targets.cpu.codegen import generate

        return generate(program, policy, self._there)

    def assembly(self, program: Program, policy: str) -> Assembly:
        from dojo_core.targets.cpu.build import assembly

        return assembly(self.generate(program, policy), processor=self._there)

    def clock(self) -> Clock:
        chain = self._there.toolchain
        if chain is None or chain.missing:
            return Clock("missing", missing=chain.missing if chain else NO_TIME)
        return Clock("emulated", missing=NO_TIME)

    def measurer(self, records: Records | None = None) -> EmulatedMeasurer:
        return EmulatedMeasurer(self, self._there)

    @property
    def lines(self) -> Path:
        """Those of all processors: a line's parameters follow the width of vectors."""
        return data_path("dojo_core", "lines")

    def report(self, game: Game, all_moves: bool) -> Report:
        clock = self.clock()
        if clock.kind == "missing":
            raise ValueError(f"Nothing here runs programs for {game.target}. {clock.missing}")
        if all_moves:
            raise ValueError(f"There are no times to compare moves by on {game.target}: leave --moves out.")
        workload = Workload(game.start, game.kernel, game.policy, game.target)
        with self.measurer() as measurer:
            (found,) = measurer.measure(workload, [game.current.program])
        told = self._estimated(game.current.program, game.policy) if found.verified else NO_TIME
        estimated = None if isinstance(told, str) else told
        return Report(
            columns=("estimated, of one core", "") if estimated else (),
            rows=_figures(estimated) if estimated else (),
            data={
                "target": game.target,
                "processor": self.processor,
                "status": found.status,
                "verified": found.verified,
                "message": found.message,
                "seconds": None,
                "estimated": estimated.data if estimated else None,
            },
            fault="" if found.verified else f"{found.status.replace('_', ' ')}: {found.message}",
            verified=f"Verified under {self._emulator}: every output element agrees.",
            remarks=(told if isinstance(told, str) else f"{NO_TIME} {told.about}",),
        )

    def _estimated(self, program: Program, policy: str) -> Estimate | str:
        """The model's, or a sentence: what it lacks."""
        from dojo_core.targets.cpu.cross import NotRun
        from dojo_core.targets.cpu.model import estimate, usual_inputs

        try:
            code = self.generate(program, policy)
            return estimate(code, usual_inputs(code), self._there)
        except NotRun as fault:
            return f"{NO_TIME} Nor are cycles estimated. {fault}"

    @property
    def _emulator(self) -> str:
        chain = self._there.toolchain
        return chain.emulator[0] if chain is not None and chain.emulator else "an emulator"


def _figures(told: Estimate) -> tuple[tuple[str, ...], ...]:
    each = told.cycles / told.instructions if told.instructions else 0.0
    return (
        ("cycles", f"{told.cycles:,.0f}"),
        ("instructions", f"{told.instructions:,}"),
        ("cycles an instruction", f"{each:.2f}"),
    )


class EmulatedMeasurer:
    """Programs compiled for the processor and verified under its emulator; none has a time."""

    def __init__(self, target: OtherProcessor, processor: Processor) -> None:
        self._target, self._processor = target, processor

    def warm(self) -> None:
        """There is nothing to start."""

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        effort: Effort = Effort.NORMAL,
        on_result: Callable[[Measurement], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        *,
        player: str = "",
        lines: Mapping[str, str] | None = None,
        fresh: bool = False,
        against: Program | None = None,
    ) -> list[Measurement]:
        """As ``TargetMeasurer`` has it. With little effort nothing is run: to emulate takes long."""
        found: list[Measurement] = []
        for program in programs:
            if cancelled is not None and cancelled():
                stopped = "Not verified: the request was cancelled."
                found.append(Measurement(program.hash, "", "cancelled", stopped))
                continue
            told = self._one(workload, program, effort)
            found.append(told)
            if on_result is not None:
                on_result(told)
        return found

    def _one(self, workload: Workload, program: Program, effort: Effort) -> Measurement:
        from dojo_core.targets.cpu.verdict import judge

        if effort is Effort.QUICK:
            return Measurement(program.hash, "", "untimed", f"{NO_TIME} {UNSEEN}")
        try:
            status, message = judge(program, workload.start, workload.policy, self._processor)
        except NotGeneratable as reason:
            status, message = "refused", str(reason)
        if status != "ok":
            return Measurement(program.hash, "", status, message)
        told = f"Verified under an emulator of {self._processor.name}. {NO_TIME}"
        return Measurement(program.hash, "", "verified", told, verified=True)

    def close(self) -> None:
        """There is nothing to end."""

    def __enter__(self) -> EmulatedMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
