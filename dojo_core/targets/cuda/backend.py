"""CUDA: NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from dojo_core.bounded_json import read_object
from dojo_core.codegen.assembly import Assembly
from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Words
from dojo_core.targets.gpu.backend import PLAY, GpuBackend
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback, NoFeedback, summary
from dojo_core.targets.gpu.limits import GpuTarget, gpu

if TYPE_CHECKING:
    from dojo_core.measure.records import Records
    from dojo_core.targets.cuda.measurer import GpuMeasurer

DRIFT = 1.03  # by which a device's times of one program differ at most


class Cuda(GpuBackend):
    """Timed on the first NVIDIA GPU; without one emulated and compiled."""

    name = "cuda"
    words = Words(
        "NVIDIA GPU (CUDA)",
        "Verified in an emulator and compiled; without the GPU nothing has a time.",
        code="CUDA",
        language="cuda",
        play=PLAY,
    )
    rivals = "dojo_core.targets.cuda.bench:CONTEST"

    @cached_property
    def limits(self) -> GpuTarget:
        return gpu(self.name, self.words.title, warp=32)

    def feedback(self, code: GpuCode) -> Feedback | NoFeedback:
        from dojo_core.targets.cuda.build import feedback

        return feedback(code)

    def assembly(self, program: Program, policy: str) -> Assembly:
        from dojo_core.targets.cuda.build import assembly

        return assembly(self.generate(program, policy))

    def machine(self, details: str) -> str:
        from dojo_core.targets.cuda.measurer import Gpu

        return Gpu(**read_object(details)).summary

    def clock(self) -> Clock:
        from dojo_core.targets.cuda.measurer import gpu_fault, gpu_measurer

        fault = gpu_fault()
        if fault:
            return replace(super().clock(), missing=fault)
        gpu = gpu_measurer()
        return Clock("measured", gpu.origin, steady=DRIFT, lock=gpu.device.clock_name)

    def measurer(self, records: Records | None = None) -> TargetMeasurer:
        return DeviceMeasurer(self, records) if self.clock().timed else self.emulated()


class DeviceMeasurer:
    """The process' measurer on the GPU, with records to keep what it finds."""

    def __init__(self, target: Cuda, records: Records | None, gpu: GpuMeasurer | None = None) -> None:
        """``gpu``: another device than this process' own."""
        from dojo_core.targets.cuda.measurer import gpu_measurer

        self._target, self._records, self._gpu = target, records, gpu or gpu_measurer()

    def warm(self) -> None:
        """It runs already."""

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
        """As ``TargetMeasurer`` has it; more than a quick look tells what the compiler says as well."""
        by_hash = {program.hash: program for program in programs}

        def with_feedback(found: Measurement) -> Measurement:
            if effort is Effort.QUICK or found.status != "ok":
                return found
            code = self._target.generate(by_hash[found.program_hash], workload.policy)
            return replace(found, message=summary(self._target.feedback(code)))

        def told(found: Measurement) -> None:
            if on_result is not None:
                on_result(with_feedback(found))

        return self._gpu.measure(
            workload, programs, effort, told, cancelled, fresh,
            records=self._records, lines=lines, player=player,
        )  # fmt: skip

    def close(self) -> None:
        """The worker ends with the process."""

    def __enter__(self) -> DeviceMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
