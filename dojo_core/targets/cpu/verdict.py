"""Is a program for another processor right? Run under its emulator on every set of inputs, and compared as
programs are everywhere: with what its start means in float64, by what the start itself is off by there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dojo_core.codegen.code import Code, Parameter
from dojo_core.measure.judgement import Judgement, judgements, row_errors
from dojo_core.measure.limits import USUAL_SEED
from dojo_core.measure.pool import Undefined, columns, to_double
from dojo_core.measure.worst import input_sets
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.cross import Array, Call, NotRun, run
from dojo_core.targets.cpu.model import Estimate, estimate
from dojo_core.targets.cpu.processor import Processor

RUN_SECONDS = 120.0  # of one run under an emulator, twenty to a hundred times as slow as the processor


class Unjudgeable(Exception):
    """The start program cannot be run or is wrong itself; ``str()`` is a sentence."""


def judge(program: Program, start: Program, policy: str, processor: Processor) -> tuple[str, str]:
    """(``"ok"``, "") or another status of measurements with a sentence. Raises NotGeneratable."""
    code = generate(program, policy, processor)
    try:
        prepared = _prepared(start, policy, processor)
        outputs = prepared.run(code, processor)
    except (Unjudgeable, NotRun) as fault:
        return "refused", str(fault)
    for judgement, arrays in zip(prepared.judgements, outputs, strict=True):
        for parameter, array in arrays:
            wrong, _ = judgement.compared(parameter, array, code.error_bound)
            if wrong is not None:
                wrong = judgement.with_inputs(wrong)
                return wrong["status"], wrong["message"]
    return "ok", ""


def estimated(program: Program, start: Program, policy: str, processor: Processor) -> Estimate:
    """Cycles of one run on the usual inputs, of a program that was judged right. Raises NotRun."""
    code = generate(program, policy, processor)
    prepared = _prepared(start, policy, processor)
    return estimate(program, code, prepared.inputs(prepared.judgements[0], code), processor)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A start program's interface, and the sets of inputs with what results may be off by."""

    parameters: tuple[Parameter, ...]
    judgements: Sequence[Judgement]

    def run(self, code: Code, processor: Processor) -> list[list[tuple[Parameter, Array]]]:
        """What code computes from each set of inputs, in one run, in the shapes of the start: moves may have
        renamed buffers, and split or merged dimensions; no byte moves."""
        calls = [Call(0, self.inputs(judgement, code)) for judgement in self.judgements]
        outputs = [p for p in self.parameters if p.role == "out"]
        return [
            [(p, array.reshape(p.shape)) for p, array in zip(outputs, arrays.values(), strict=True)]
            for arrays in run([code], calls, processor, run_seconds=RUN_SECONDS)
        ]

    def inputs(self, judgement: Judgement, code: Code) -> Mapping[str, Array]:
        pairs = zip(self.parameters, code.parameters, strict=True)
        return {ours.name: judgement.pool.inputs[p.name] for p, ours in pairs if p.role == "in"}


@lru_cache(maxsize=16)
def _prepared(start: Program, policy: str, processor: Processor) -> _Prepared:
    """A start program run on its inputs: what it is off by sets the tolerances. Raises NotGeneratable, NotRun
    and Unjudgeable."""
    code = generate(start, policy, processor)
    try:
        sets = input_sets(start, policy)
        prepared = _Prepared(code.parameters, judgements(start.text, code.parameters, USUAL_SEED, sets, None))
    except Undefined as reason:
        raise Unjudgeable(str(reason)) from None
    for judgement, arrays in zip(prepared.judgements, prepared.run(code, processor), strict=True):
        for p, array in arrays:
            got = to_double(array, p.dtype)
            own_error, scale = row_errors(got, judgement.pool.references[p.name], columns(p.shape))
            try:
                judgement.allow(p, own_error, scale, policy)
            except ValueError as error:
                raise Unjudgeable(f"The start program is wrong itself: {error}.") from None
    return prepared
