"""What one call of a measurer asks for, and what came of it so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program


@dataclass
class Job:
    """Programs of a workload that are to be measured, and how: the fields are as ``TargetMeasurer.measure``
    has them. ``results`` are those so far, by the program's hash.
    """

    workload: Workload
    programs: Sequence[Program]
    effort: Effort
    on_result: Callable[[Measurement], None] | None = None
    stop: Callable[[], bool] | None = None
    player: str = ""
    lines: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    against: Program | None = None
    on_rough: Callable[[str, float], None] | None = None
    stopped: bool = False
    results: dict[str, Measurement] = field(default_factory=dict)

    def cancelled(self) -> bool:
        """Once cancelled, always cancelled: what a compiler left undone must not pass for its fault."""
        self.stopped = self.stopped or (self.stop is not None and self.stop())
        return self.stopped

    def tell(self, measurement: Measurement) -> None:
        self.results[measurement.program_hash] = measurement
        if self.on_result is not None:
            self.on_result(measurement)

    def finish(self) -> list[Measurement]:
        """One measurement for each program, in order; what has none by now was cancelled."""
        for program in self.programs:
            if program.hash not in self.results:
                message = "Not measured: the request was cancelled."
                self.tell(Measurement(program.hash, "", "cancelled", message))
        return [self.results[program.hash] for program in self.programs]
