"""CUDA: NVIDIA GPUs."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from dojo_core.bounded_json import read_object
from dojo_core.codegen.assembly import Assembly
from dojo_core.measure.clock import Clock, TargetMeasurer
from dojo_core.measure.job import Job
from dojo_core.measure.measurement import Effort, Measurement
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Words
from dojo_core.targets.gpu.backend import PLAY, GpuBackend
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback, NoFeedback, summary
from dojo_core.targets.gpu.limits import TENSOR_CORES, GpuTarget, gpu

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
        return gpu(self.name, self.words.title, warp=32, more_marks=TENSOR_CORES)

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


class DeviceMeasurer(TargetMeasurer):
    """The process' measurer on the GPU, with records to keep what it finds; its worker ends with the process.

    More than a quick look tells what the compiler says as well.
    """

    def __init__(self, target: Cuda, records: Records | None, gpu: GpuMeasurer | None = None) -> None:
        """``gpu``: another device than this process' own."""
        from dojo_core.targets.cuda.measurer import gpu_measurer

        self._target, self._records, self._gpu = target, records, gpu or gpu_measurer()

    def carry_out(self, job: Job) -> None:
        by_hash = {program.hash: program for program in job.programs}

        def with_feedback(measurement: Measurement) -> Measurement:
            if job.effort is Effort.QUICK or measurement.status != "ok":
                return measurement
            code = self._target.generate(by_hash[measurement.program_hash], job.workload.policy)
            return replace(measurement, message=summary(self._target.feedback(code)))

        self._gpu.measure(
            job.workload, job.programs, job.effort, lambda m: job.tell(with_feedback(m)), job.cancelled,
            job.fresh, records=self._records, lines=job.lines, player=job.player,
        )  # fmt: skip
