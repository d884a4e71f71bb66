"""The clock of the Snitch model: programs verified, and their cycles as times of a core at 1 GHz.

Agents and records compare seconds. A cycle of the model stands there for a nanosecond, as on the silicon in
22 nm (Zaruba et al., IEEE Transactions on Computers 70(11), 2021: 1 GHz and more); people are told cycles.
The same program has the same time always.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.limits import USUAL_SEED
from dojo_core.measure.measurement import KEPT, Effort, Measurement, Origin, Workload
from dojo_core.measure.records import Records, Sample
from dojo_core.program.tree import Program
from dojo_core.targets.snitch.calibration import MEASURED, simulated
from dojo_core.targets.snitch.codegen import generate
from dojo_core.targets.snitch.listing import SnitchCode
from dojo_core.targets.snitch.simulate import judge


class SnitchMeasurer:
    """Measures on the model, in this process. What it finds is kept in the records that are given."""

    def __init__(self, records: Records | None = None) -> None:
        self.origin = origin_of_the_model()
        self._records = records
        self._known: dict[tuple[str, str, str], Measurement] = {}  # by program, start program and policy

    def warm(self) -> None:
        """There is nothing to start."""

    def close(self) -> None:
        """There is nothing to end."""

    def __enter__(self) -> SnitchMeasurer:
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
        """One measurement for each program, in order; ``on_result`` is told each as it comes.

        ``fresh``: what is known is run again. After ``cancelled`` says so, the rest is ``cancelled``. Final
        ones are on inputs that no candidate has seen.
        """
        found: list[Measurement] = []
        for program in programs:
            if cancelled is not None and cancelled():
                stopped = "Not measured: the request was cancelled."
                found.append(Measurement(program.hash, "", "cancelled", stopped))
                continue
            key = program.hash, workload.start.hash, workload.policy
            known = None if fresh else self._known.get(key) or self._recorded(workload, program)
            told = known or _measured(workload, program, effort)
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


def _measured(workload: Workload, program: Program, effort: Effort) -> Measurement:
    try:
        key = _content_key(generate(program))
    except NotGeneratable as reason:
        return Measurement(program.hash, "", "refused", str(reason))
    seed = secrets.randbits(32) | 1 if effort is Effort.FINAL else USUAL_SEED
    verdict = judge(program, workload.start, workload.policy, seed)
    if verdict.status != "ok" or verdict.run is None:
        return Measurement(program.hash, key, verdict.status, verdict.message)
    cycles = Sample(float(verdict.run.cycles), 0, 0)
    share = f"{verdict.run.utilisation:.0%} of the FPU's peak"
    return Measurement.timed(
        (cycles,), program_hash=program.hash, code_hash=key, message=share, conditions=Conditions(0.0)
    )  # whatever else the machine does, cycles of a model are the same


def _content_key(code: SnitchCode) -> str:
    """Of what the model runs."""
    told = json.dumps(
        [code.words, code.workspace_bytes, [[p.name, p.role, p.shape] for p in code.parameters]]
    )
    return hashlib.sha256(told.encode()).hexdigest()


@cache
def origin_of_the_model() -> Origin:
    """Named by the cycles that it gives the kernels of the calibration: another model is another machine."""
    cycles = [simulated(each).cycles for each in MEASURED]
    fingerprint = hashlib.sha256(json.dumps(cycles).encode()).hexdigest()[:16]
    details = {"name": "Snitch, a calibrated model", "unit": "cycles, one a nanosecond"}
    return Origin("snitch", fingerprint, json.dumps(details, sort_keys=True))
