"""The measurer of a target whose programs an emulator verifies, and nothing gives a number."""

from __future__ import annotations

from collections.abc import Callable

from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.job import Job
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program


class EmulatedMeasurer(TargetMeasurer):
    """``verify`` runs a program and compares; ``no_time`` says why there is no number; ``end`` ends what
    it started. With little effort nothing is run: to emulate takes long."""

    def __init__(
        self,
        verify: Callable[[Workload, Program], Measurement],
        no_time: str,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._verify, self._no_time, self._end = verify, no_time, end

    def carry_out(self, job: Job) -> None:
        for program in job.programs:
            if job.cancelled():
                return
            if job.effort is Effort.QUICK:
                message = f"{self._no_time} Play it to have it verified."
                job.tell(Measurement(program.hash, "", "untimed", message))
            else:
                job.tell(self._verify(job.workload, program))

    def close(self) -> None:
        self._end()
