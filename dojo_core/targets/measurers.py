"""The measurers of a process by target."""

from __future__ import annotations

from dojo_core.measure.clock import TargetMeasurer
from dojo_core.measure.records import Records
from dojo_core.targets.registry import backend


class Measurers:
    """Each made at its first use, on the same records, and closed with the others."""

    def __init__(self, records: Records | None, **made: TargetMeasurer) -> None:
        """``made``: some that there are already, by target; who made them closes them."""
        self._records = records
        self._given = made
        self._own: dict[str, TargetMeasurer] = {}

    def of(self, target: str) -> TargetMeasurer:
        """Raises ValueError with a sentence where nothing runs programs for the target."""
        if target in self._given:
            return self._given[target]
        if target not in self._own:
            self._own[target] = backend(target).measurer(self._records)
        return self._own[target]

    def close(self) -> None:
        for each in self._own.values():
            each.close()
        self._own.clear()
