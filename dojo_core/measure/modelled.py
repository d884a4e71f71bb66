"""The measurer of a target whose programs a model judges: the same number always, kept in the records."""

from __future__ import annotations

from collections.abc import Callable

from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.job import Job
from dojo_core.measure.measurement import KEPT, Effort, Measurement, Origin, Workload
from dojo_core.measure.records import Records
from dojo_core.program.tree import Program

Judge = Callable[[Workload, Program, Effort], Measurement]


class ModelledMeasurer(TargetMeasurer):
    """``judge`` verifies a program and gives it the model's number, in this process. Numbers of one
    ``origin`` are comparable: another model has another fingerprint."""

    def __init__(self, origin: Origin, judge: Judge, records: Records | None = None) -> None:
        self.origin = origin
        self._judge = judge
        self._records = records
        self._known: dict[tuple[str, str, str], Measurement] = {}  # by program, start program and policy

    def carry_out(self, job: Job) -> None:
        workload = job.workload
        for program in job.programs:
            if job.cancelled():
                return
            key = program.hash, workload.start.hash, workload.policy
            known = None if job.fresh else self._known.get(key) or self._recorded(workload, program)
            measurement = known or self._judge(workload, program, job.effort)
            self._known[key] = measurement
            if known is None and self._records is not None and measurement.status != "refused":
                line = job.lines.get(program.hash, "")
                self._records.add(
                    self.origin.record(measurement, program, workload, job.effort, line, job.player)
                )
            job.tell(measurement)

    def _recorded(self, workload: Workload, program: Program) -> Measurement | None:
        if self._records is None:
            return None
        start, origin = workload.start.hash, self.origin
        by_hash = self._records.known_all(
            [program.hash], origin.target, origin.fingerprint, workload.policy, start
        )
        record = by_hash.get(program.hash)
        settled = record is not None and record.status in ("ok", *KEPT)
        return Measurement.recorded(record) if record is not None and settled else None
