"""A program on the Snitch model: arrays in memory, results against the reference, cycles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dojo_core.codegen.code import NotGeneratable, Parameter
from dojo_core.measure.judgement import Judgement, judgements, row_errors
from dojo_core.measure.limits import USUAL_SEED
from dojo_core.measure.pool import Undefined, columns
from dojo_core.measure.worst import input_sets
from dojo_core.program.tree import Program
from dojo_core.targets.snitch.codegen import BYTES, generate
from dojo_core.targets.snitch.listing import SnitchCode

CODE, MEMORY = 0x1000, 0x10000000  # addresses of the code and of the cluster's memory
GUARD = 64  # bytes between arrays that belong to nobody
LIMIT = 50_000_000  # cycles: some seconds of the model
TOLERANCE = {"f64": 1e-10, "f32": 1e-4}  # of a start program, of the largest element of the reference
_START_LIMIT = 10 * LIMIT  # a start program is naive
_SLOWER = 2  # times a start program's cycles that a program may take, where these are many
_POISON = 0xFF  # bytes of what is not written yet: NaN
_STORED = {"f64": np.float64, "f32": np.float32}


@dataclass(frozen=True, slots=True)
class Run:
    """What the model says. ``computed`` counts the arithmetic instructions of the FPU, whose peak is one a
    cycle; ``issued``, ``idle``, ``latency`` and ``starved`` are the cycles in which the FPU took an
    instruction, had none, waited for an operand, or for a stream. ``fault`` is a sentence, empty where it
    ran to its end."""

    cycles: int
    instructions: int
    computed: int
    issued: int
    idle: int
    latency: int
    starved: int
    fault: str

    @property
    def utilisation(self) -> float:
        """Arithmetic over cycles: the share of the FPU's peak, 0 to 1."""
        return self.computed / self.cycles if self.cycles else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``status``: ``ok``, ``wrong_result``, ``unwritten``, ``out_of_bounds``, ``timeout``, ``crash``,
    ``refused``, with a sentence where it is not ``ok``; ``run`` where there was one."""

    status: str
    message: str
    run: Run | None = None


def execute(
    code: SnitchCode, inputs: Mapping[str, np.ndarray], limit: int | None = None
) -> tuple[dict[str, np.ndarray], Run]:
    """The outputs by buffer name and what the model says, within ``limit`` cycles. Every array has guards
    around it; inputs are read-only."""
    import dojo_snitch

    held: dict[str, np.ndarray] = {}  # the bytes of each array
    for p in code.parameters:
        held[p.name] = np.full(BYTES[p.dtype] * math.prod(p.shape), _POISON, np.uint8)
        if p.role == "in":
            held[p.name].view(_STORED[p.dtype])[:] = inputs[p.name].reshape(-1)
    held["the workspace"] = np.full(max(code.workspace_bytes, 8), _POISON, np.uint8)
    words = np.array(code.words, np.uint32)
    memory: list[tuple[str, int, memoryview, bool]] = [("the code", CODE, words.data, False)]
    at, arguments = MEMORY + GUARD, []
    writable = {p.name: p.role == "out" for p in code.parameters}
    for name, array in held.items():
        arguments.append(at)
        memory.append((name, at, array.data, writable.get(name, True)))
        at += -(-array.nbytes // 64) * 64 + GUARD
    counts = dojo_snitch.run(words.tolist(), CODE, memory, (arguments + [0] * 8)[:8], limit or LIMIT)
    run = Run(**{k: counts[k] for k in Run.__slots__})  # type: ignore[literal-required]
    outputs = {
        p.name: held[p.name].view(_STORED[p.dtype]).reshape(p.shape)
        for p in code.parameters
        if p.role == "out"
    }
    return outputs, run


def judge(
    program: Program,
    start: Program | None = None,
    policy: str = "reassoc",
    seed: int = USUAL_SEED,
    code: SnitchCode | None = None,
) -> Verdict:
    """Run a program on each set of inputs of its start (default: itself), and compare as programs are
    everywhere: with what the start means in float64, by what the start itself is off by on the model.
    ``code`` is the program's where the caller has it already.

    Inputs hold no NaN: of a NaN and a number fmax and fmin give the number (RISC-V, volume I, 11.6).
    """
    start = start or program
    try:
        code = code or generate(program)
        prepared = _prepared(start, policy, seed)
    except NotGeneratable as reason:
        return Verdict("refused", str(reason))
    if isinstance(prepared, Verdict):
        message = f"The start program cannot be judged. {prepared.message}"
        return prepared if program.hash == start.hash else Verdict("refused", message)
    run = prepared.run
    if program.hash == start.hash or run is None:
        return Verdict("ok", "", run)
    limit = max(LIMIT, _SLOWER * run.cycles)
    for judgement in reversed(prepared.judgements):
        outputs, run = execute(code, prepared.inputs(judgement, code), limit)
        if run.fault:
            return Verdict(_kind(run.fault), run.fault, run)
        for p, array in prepared.outputs(outputs):
            fault, _ = judgement.compared(p, array, 0.0)
            if fault is not None:
                fault = judgement.with_inputs(fault)
                return Verdict(fault["status"], fault["message"], run)
    return Verdict("ok", "", run)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A start program's interface, the sets of inputs with what results may be off by, and its run on the
    first of these."""

    parameters: tuple[Parameter, ...]
    judgements: Sequence[Judgement]
    run: Run | None = None

    def inputs(self, judgement: Judgement, code: SnitchCode) -> dict[str, np.ndarray]:
        """By the names that a program has for them: moves may have renamed buffers."""
        pairs = zip(self.parameters, code.parameters, strict=True)
        return {ours.name: judgement.pool.inputs[p.name] for p, ours in pairs if p.role == "in"}

    def outputs(self, arrays: Mapping[str, np.ndarray]) -> list[tuple[Parameter, np.ndarray]]:
        """What a program computed, in the shapes of the start: moves may have split or merged dimensions; no
        byte moves."""
        outputs = [p for p in self.parameters if p.role == "out"]
        return [(p, array.reshape(p.shape)) for p, array in zip(outputs, arrays.values(), strict=True)]


@lru_cache(maxsize=16)
def _prepared(start: Program, policy: str, seed: int) -> _Prepared | Verdict:
    """A start program run on its inputs: what it is off by sets the tolerances. Raises NotGeneratable."""
    code = generate(start)
    sets = input_sets(start, policy, tame=True)
    try:
        prepared = _Prepared(code.parameters, judgements(start.text, code.parameters, seed, sets, None))
    except Undefined as reason:
        return Verdict("refused", str(reason))
    for judgement in reversed(prepared.judgements):
        outputs, run = execute(code, prepared.inputs(judgement, code), _START_LIMIT)
        if run.fault:
            return Verdict(_kind(run.fault), run.fault, run)
        for p, array in prepared.outputs(outputs):
            wanted = judgement.pool.references[p.name]
            own_error, scale = row_errors(array.astype(np.float64), wanted, columns(p.shape))
            try:
                judgement.allow(p, own_error, scale, policy)
            except ValueError as error:
                return Verdict("wrong_result", f"It is wrong itself: {error}.", run)
            if not judgement.worst and own_error.max(initial=0.0) > TOLERANCE[p.dtype] * max(
                1.0, float(scale.max(initial=0.0))
            ):
                return Verdict(
                    "wrong_result", f"It is wrong itself: its {p.name} is off by {own_error.max():.3g}.", run
                )
            fault, _ = judgement.compared(p, array, 0.0)
            if fault is not None:
                return Verdict(fault["status"], fault["message"], run)
    return replace(prepared, run=run)


def _kind(fault: str) -> str:
    """A fault's status, as measurements name them."""
    if "did not return" in fault:
        return "timeout"
    return "out_of_bounds" if "outside every array" in fault or "only read" in fault else "crash"


__all__ = ["BYTES", "Run", "Verdict", "execute", "judge"]
