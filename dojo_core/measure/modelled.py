"""The measurer of a target whose programs a model judges: the same number always, kept in the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dojo_core.measure.measurement import KEPT, Effort, Measurement, Origin, Workload
from dojo_core.measure.records import Records
from dojo_core.program.tree import Program

Judge = Callable[[Workload, Program, Effort], Measurement]


class ModelledMeasurer:
    """``judge`` verifies a program and gives it the model's number, in this process. Numbers of one
    ``origin`` are comparable: another model has another fingerprint."""

    def __init__(self, origin: Origin, judge: Judge, records: Records | None = None) -> None:
        self.origin = origin
        self._judge = judge
        self._records = records
        self._known: dict[tuple[str, str, str], Measurement] = {}  # by program, start program and policy

    def warm(self) -> None:
        """There is nothing to start."""

    def close(self) -> None:
        """There is nothing to end."""

    def __enter__(self) -> ModelledMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        """As ``TargetMeasurer`` has it; ``fresh``: what is known is judged again."""
        found: list[Measurement] = []
        for program in programs:
            if cancelled is not None and cancelled():
                stopped = "Not measured: the request was cancelled."
                found.append(Measurement(program.hash, "", "cancelled", stopped))
                continue
            key = program.hash, workload.start.hash, workload.policy
            known = None if fresh else self._known.get(key) or self._recorded(workload, program)
            told = known or self._judge(workload, program, effort)
            self._known[key] = told
            if known is None and self._records is not None and told.status != "refused":
                line = (lines or {}).get(program.hash, "")
                self._records.add(self.origin.record(told, program, workload, effort, line, player))
            found.append(told)
            if on_result is not None:
                on_result(told)
        return found

    def _recorded(self, workload: Workload, program: Program) -> Measurement | None:
        if self._records is None:
            return None
        start, here = workload.start.hash, self.origin
        by_hash = self._records.known_all(
            [program.hash], here.target, here.fingerprint, workload.policy, start
        )
        record = by_hash.get(program.hash)
        settled = record is not None and record.status in ("ok", *KEPT)
        return Measurement.recorded(record) if record is not None and settled else None
