"""An abacus as the Dojo sees it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from abacus.code import BEADS, DOWN, FAR, UP, Steps, generate
from abacus.limits import LIMITS, AbacusTarget
from dojo_core.codegen.code import NotGeneratable
from dojo_core.measure.clock import Clock
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Effort, Measurement, Origin, Workload
from dojo_core.measure.modelled import ModelledMeasurer
from dojo_core.measure.records import Records, Sample
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.backend import Backend, Words

TOLERANCE = 1e-9  # of the interpreter's float64, whatever the order of a sum


class Abacus(Backend):
    """Every program is verified by the interpreter; its number is the steps that it takes."""

    name = "abacus"
    words = Words(
        "an abacus",
        f"Verified by the interpreter, and its steps counted: up to {BEADS:,} beads.",
        code="Steps",
        language="text",
        play="A loop that counts down (reverse_scope) takes a step less in each iteration.",
    )

    @property
    def limits(self) -> AbacusTarget:
        return LIMITS

    def generate(self, program: Program, policy: str) -> Steps:
        return generate(program)

    def clock(self) -> Clock:
        return Clock("modelled", origin(), unit="cycles", label="steps of an abacus", steady=1.0)

    def measurer(self, records: Records | None = None) -> ModelledMeasurer:
        return ModelledMeasurer(origin(), judge, records)

    @property
    def lines(self) -> Path:
        return Path(__file__).parent / "lines"


def origin() -> Origin:
    """Named by what a step is worth: with other costs it is another machine."""
    fingerprint = hashlib.sha256(repr((UP, DOWN, FAR)).encode()).hexdigest()[:16]
    return Origin("abacus", fingerprint, json.dumps({"name": "an abacus", "unit": "steps"}))


def judge(workload: Workload, program: Program, effort: Effort) -> Measurement:
    """Verify a program against its start, and count."""
    try:
        code = generate(program)
    except NotGeneratable as reason:
        return Measurement(program.hash, "", "refused", str(reason))
    key = hashlib.sha256(code.text.encode()).hexdigest()
    for array, wanted, got in zip(
        workload.start.outputs, outputs(workload.start), outputs(program), strict=True
    ):
        allowed = TOLERANCE * np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        if not np.allclose(got.reshape(wanted.shape), wanted, 0.0, allowed, equal_nan=True):
            return Measurement(program.hash, key, "wrong_result", f"{array} is not what the start makes it.")
    sample = Sample(float(code.steps), 0, 0)
    return Measurement.timed((sample,), program_hash=program.hash, code_hash=key, conditions=Conditions(0.0))


def outputs(program: Program) -> list[np.ndarray]:
    """What it computes of the same numbers, in order: moves may have given the arrays other shapes."""
    rng = np.random.default_rng(1)
    inputs = {}
    for array in program.inputs:
        shape, domain = [d.size for d in program.buffer_of[array].dims], program.domain_of(array)
        inputs[array] = rng.uniform(domain.low, domain.high, shape) if domain else rng.standard_normal(shape)
    found = interpret(program, inputs)
    return [found[array] for array in program.outputs]
