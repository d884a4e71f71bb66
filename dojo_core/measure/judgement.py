"""What a candidate's results are judged by: inputs, their references, and what it may be off by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dojo_core.measure.pool import Doubles, Pool
from dojo_core.measure.pool_cache import cached_pool
from dojo_core.measure.worst_pool import worst_tolerance
from dojo_core.targets.cpu.code import Parameter

ON_THE_WORST = "That is on the inputs on which algebraic moves are worst."


@dataclass
class Judgement:
    """Inputs, their references and, once the start program was judged on them, tolerances with scales.

    ``worst``: the inputs on which algebraic moves are worst, for verifying alone.
    """

    pool: Pool
    worst: bool = False
    tolerance: dict[str, tuple[Doubles, Doubles]] = field(default_factory=dict)

    def allow(self, p: Parameter, own: Doubles, scale: Doubles, policy: str) -> None:
        """Set an output's tolerances by what the start program is off by; raises as ``tolerance`` does."""
        if self.worst:
            moves, inexact = self.pool.sensitivity[p.name], p.name in self.pool.inexact
            allowed = worst_tolerance(p, own, scale, moves, inexact)
        else:
            allowed = self.pool.tolerance(p, own, scale, policy)
        self.tolerance[p.name] = (allowed, scale)

    def told(self, fault: dict[str, Any]) -> dict[str, Any]:
        """The fault, with a word on the inputs where they are not the usual ones."""
        if not self.worst:
            return fault
        return {**fault, "message": f"{fault['message']} {ON_THE_WORST}"}


def judgements(request: Mapping[str, Any], parameters: tuple[Parameter, ...]) -> list[Judgement]:
    """Of a request to prepare a workload: the usual inputs, then the worst ones where it names patterns."""
    drawn = request["start"], parameters, request["seed"], Path(request["cache"])
    usual = Judgement(cached_pool(*drawn))
    worst = tuple(request["worst"])
    return [usual, Judgement(cached_pool(*drawn, worst), worst=True)] if worst else [usual]
