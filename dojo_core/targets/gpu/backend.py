"""What CUDA and HIP are alike in as targets: generated, verified in the emulator, compiled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.measurement import Effort, Measurement, Workload
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
        return EmulatedMeasurer(self)

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
        verdict, found = checked.verdict, checked.feedback
        table: tuple[tuple[str, ...], ...] = ()
        remark = found.message if isinstance(found, NoFeedback) else note(found)
        if isinstance(found, Feedback):
            table = tuple(row(kernel) for kernel in found.kernels)
        return Report(
            columns=columns() if table else (),
            rows=table,
            data={
                "target": game.target,
                "status": verdict.status,
                "verified": verdict.verified,
                "message": verdict.message,
                "seconds": None,
                "feedback": asdict(found),
            },
            fault="" if verdict.verified else f"{verdict.status.replace('_', ' ')}: {verdict.message}",
            verified="Verified in the emulator: every output element agrees.",
            remarks=(remark, "No time: seconds need a GPU, and nothing here makes one up."),
        )


class EmulatedMeasurer:
    """Programs verified in the emulator and compiled; none has a time."""

    def __init__(self, target: GpuBackend) -> None:
        from dojo_core.targets.gpu.check import Checker

        self._checker = Checker(target)  # holds a process, which takes seconds to start

    def warm(self) -> None:
        """Nothing is started before there is something to verify."""

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
        if effort is Effort.QUICK:
            return Measurement(program.hash, "", "untimed", f"{NO_TIME} Play it to have it verified.")
        checked = self._checker.check(workload, program)
        verdict = checked.verdict
        if not verdict.verified:
            return verdict
        told = f"Verified in the emulator. {summary(checked.feedback)} {NO_TIME}"
        return Measurement(program.hash, verdict.code_hash, "verified", told, verified=True)

    def close(self) -> None:
        self._checker.close()

    def __enter__(self) -> EmulatedMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
