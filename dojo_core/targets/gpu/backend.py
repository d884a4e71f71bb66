"""What CUDA and HIP are alike in as targets: generated, verified in the emulator, compiled."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.emulated import EmulatedMeasurer
from dojo_core.measure.measurement import Measurement, Workload
from dojo_core.package_data import data_path
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Report
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback, NoFeedback, columns, note, row, summary
from dojo_core.targets.gpu.limits import GpuTarget

if TYPE_CHECKING:
    from dojo_core.game import Game
    from dojo_core.measure.records import Records

NO_TIME = "No time: seconds need a GPU."
PLAY = (
    "First give scopes to the GPU's blocks and threads (map_grid, map_block). Each position that you play is "
    "verified in an emulator and compiled; what that found stands below the code."
)


class GpuBackend(Backend):
    """A dialect of GPU code; it has the target's name."""

    @property
    @abstractmethod
    def limits(self) -> GpuTarget: ...

    @abstractmethod
    def feedback(self, code: GpuCode) -> Feedback | NoFeedback:
        """What its compiler says of code without running it."""

    def generate(self, program: Program, policy: str) -> GpuCode:
        from dojo_core.targets.gpu.codegen import generate

        return generate(program, policy, self.name, self.limits.warp)

    def clock(self) -> Clock:
        return Clock("emulated", missing=NO_TIME)

    def measurer(self, records: Records | None = None) -> TargetMeasurer:
        return self.emulated()

    def emulated(self) -> EmulatedMeasurer:
        """Verifies in the emulator and compiles; nothing has a time."""
        from dojo_core.targets.gpu.check import Checker

        checker = Checker(self)  # holds a process, which takes seconds to start

        def verified(workload: Workload, program: Program) -> Measurement:
            checked = checker.check(workload, program)
            verdict = checked.verdict
            if not verdict.verified:
                return verdict
            sentence = f"Verified in the emulator. {summary(checked.feedback)} {NO_TIME}"
            return Measurement(program.hash, verdict.code_hash, "verified", sentence, verified=True)

        return EmulatedMeasurer(verified, NO_TIME, checker.close)

    @property
    def lines(self) -> Path:
        """Those of both: the moves are the same."""
        return data_path("dojo_core", "lines", "gpu")

    def report(self, game: Game, all_moves: bool) -> Report | None:
        from dojo_core.targets.gpu.check import Checker

        if self.clock().timed:
            return None
        if all_moves:
            raise ValueError("Without a GPU there are no times to compare moves by: leave --moves out.")
        with Checker(self) as checker:
            checked = checker.check(Workload(game.start, game.kernel, game.policy), game.current.program)
        verdict, feedback = checked.verdict, checked.feedback
        table: tuple[tuple[str, ...], ...] = ()
        remark = feedback.message if isinstance(feedback, NoFeedback) else note(feedback)
        if isinstance(feedback, Feedback):
            table = tuple(row(kernel) for kernel in feedback.kernels)
        return Report(
            columns=columns() if table else (),
            rows=table,
            data={
                "target": game.target,
                "status": verdict.status,
                "verified": verdict.verified,
                "message": verdict.message,
                "seconds": None,
                "feedback": asdict(feedback),
            },
            fault="" if verdict.verified else f"{verdict.status.replace('_', ' ')}: {verdict.message}",
            verified="Verified in the emulator: every output element agrees.",
            remarks=(remark, "No time: seconds need a GPU, and nothing here makes one up."),
        )
