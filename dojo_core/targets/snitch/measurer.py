"""The clock of the Snitch model: programs verified, and their cycles as times of a core at 1 GHz.

Agents and records compare seconds. A cycle of the model stands there for a nanosecond, as on the silicon in
22 nm (Zaruba et al., IEEE Transactions on Computers 70(11), 2021: 1 GHz and more); people are told cycles.
The same program has the same time always.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from functools import cache

from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.limits import USUAL_SEED
from dojo_core.measure.measurement import Effort, Measurement, Origin, Workload
from dojo_core.measure.modelled import ModelledMeasurer
from dojo_core.measure.records import Records, Sample
from dojo_core.program.tree import Program
from dojo_core.targets.snitch.calibration import MEASURED, simulated
from dojo_core.targets.snitch.codegen import generate
from dojo_core.targets.snitch.limits import MEMORY_BYTES
from dojo_core.targets.snitch.listing import SnitchCode
from dojo_core.targets.snitch.simulate import judge


class SnitchMeasurer(ModelledMeasurer):
    """Measures on the model, in this process."""

    def __init__(self, records: Records | None = None) -> None:
        super().__init__(origin_of_the_model(), _measured, records)


def _measured(workload: Workload, program: Program, effort: Effort) -> Measurement:
    try:
        code = generate(program)
    except NotGeneratable as reason:
        return Measurement(program.hash, "", "refused", str(reason))
    key = _content_key(code)
    seed = secrets.randbits(32) | 1 if effort is Effort.FINAL else USUAL_SEED
    verdict = judge(program, workload.start, workload.policy, seed, code)
    if verdict.status != "ok" or verdict.run is None:
        return Measurement(program.hash, key, verdict.status, verdict.message)
    cycles = Sample(float(verdict.run.cycles), 0, 0)
    share = f"{verdict.run.utilisation:.0%} of the FPU's peak"
    if code.bytes > MEMORY_BYTES:
        share += ", moving data into the cluster's memory aside"
    return Measurement.timed(
        (cycles,), program_hash=program.hash, code_hash=key, message=share, conditions=Conditions(0.0)
    )  # whatever else the machine does, cycles of a model are the same


def _content_key(code: SnitchCode) -> str:
    """Of what the model runs."""
    content = json.dumps(
        [code.words, code.workspace_bytes, [[p.name, p.role, p.shape] for p in code.parameters]]
    )
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def origin_of_the_model() -> Origin:
    """Named by the cycles that it gives the kernels of the calibration: another model is another machine."""
    cycles = [simulated(each).cycles for each in MEASURED]
    fingerprint = hashlib.sha256(json.dumps(cycles).encode()).hexdigest()[:16]
    details = {"name": "Snitch, a calibrated model", "unit": "cycles, one a nanosecond"}
    return Origin("snitch", fingerprint, json.dumps(details, sort_keys=True))
