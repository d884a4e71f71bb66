"""The measurer of a target whose programs an emulator verifies, and nothing gives a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program


class EmulatedMeasurer:
    """``verify`` runs a program and compares; ``no_time`` says why there is no number; ``end`` ends what
    it started."""

    def __init__(
        self,
        verify: Callable[[Workload, Program], Measurement],
        no_time: str,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._verify, self._no_time, self._end = verify, no_time, end

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
            if effort is Effort.QUICK:
                told = Measurement(
                    program.hash, "", "untimed", f"{self._no_time} Play it to have it verified."
                )
            else:
                told = self._verify(workload, program)
            found.append(told)
            if on_result is not None:
                on_result(told)
        return found

    def close(self) -> None:
        self._end()

    def __enter__(self) -> EmulatedMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
