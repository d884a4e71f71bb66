"""Snitch: a RISC-V core with stream registers and hardware loops, on a calibrated model of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.codegen.assembly import Assembly
from dojo_core.measure.clock import Clock
from dojo_core.package_data import data_path
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Report, Words
from dojo_core.targets.snitch.limits import LABEL, SnitchTarget, target
from dojo_core.targets.snitch.listing import SnitchCode

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.measure.records import Records
    from dojo_core.targets.snitch.measurer import SnitchMeasurer


class Snitch(Backend):
    """Assembler text that the model runs: every position is verified, and its cycles counted."""

    name = "snitch"
    words = Words(
        "Snitch (RISC-V with streams)",
        "Verified on a model of the core, which tells cycles: in doubles, begun with shapes that fit "
        "128 KiB.",
        code="Snitch",
        language="gas",
        play="Every position runs on a model of the core: the times are its cycles, always the same for the "
        "same program. Streams (ssr) and hardware loops (frep) are this target's own.",
    )

    @property
    def limits(self) -> SnitchTarget:
        return target()

    def generate(self, program: Program, policy: str) -> SnitchCode:
        from dojo_core.targets.snitch.codegen import generate

        return generate(program)

    def assembly(self, program: Program, policy: str) -> Assembly:
        raise ValueError("The code of this target is assembly already.")

    def clock(self) -> Clock:
        from dojo_core.targets.snitch.measurer import origin_of_the_model

        return Clock("modelled", origin_of_the_model(), unit="cycles", label=LABEL, steady=1.0)

    def measurer(self, records: Records | None = None) -> SnitchMeasurer:
        from dojo_core.targets.snitch.measurer import SnitchMeasurer

        return SnitchMeasurer(records)

    @property
    def lines(self) -> Path:
        return data_path("dojo_core", "lines", "snitch")

    def report(self, game: Game, all_moves: bool) -> Report:
        from dojo_core.targets.snitch.report import report

        return report(game, all_moves)
