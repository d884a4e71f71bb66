"""A program on the Snitch model: arrays in memory, results against the reference, cycles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dojo_core.measure.pool import draw
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.program.validity import settled
from dojo_core.targets.cpu.code import NotGeneratable
from dojo_core.targets.snitch.codegen import BYTES, generate
from dojo_core.targets.snitch.listing import SnitchCode

CODE, MEMORY = 0x1000, 0x10000000  # addresses of the code and of the cluster's memory
GUARD = 64  # bytes between arrays that belong to nobody
LIMIT = 50_000_000  # cycles: some seconds of the model
TOLERANCE = {"f64": 1e-10, "f32": 1e-4}  # of the largest element of the reference
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


def execute(code: SnitchCode, inputs: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], Run]:
    """The outputs by buffer name and what the model says. Every array has guards around it; inputs are
    read-only."""
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
    found = dojo_snitch.run(words.tolist(), CODE, memory, (arguments + [0] * 8)[:8], LIMIT)
    run = Run(**{k: found[k] for k in Run.__slots__})  # type: ignore[literal-required]
    outputs = {
        p.name: held[p.name].view(_STORED[p.dtype]).reshape(p.shape)
        for p in code.parameters
        if p.role == "out"
    }
    return outputs, run


def judge(program: Program, reference: Program | None = None, seeds: tuple[int, ...] = (0, 1)) -> Verdict:
    """Run a program on random inputs, and compare with what ``reference`` (default: itself) means in float64.

    Inputs hold no NaN: of a NaN and a number fmax and fmin give the number (RISC-V, volume I, 11.6).
    """
    fault = settled(reference or program)
    if fault is not None:
        return Verdict("refused", fault)
    try:
        code = generate(program)
        run = None
        for seed in seeds:
            rng = np.random.default_rng(seed)
            inputs = {
                p.name: np.asarray(draw(p.dtype, p.shape, rng, program.domain_of(p.name)))
                for p in code.parameters
                if p.role == "in"  # an input's buffer holds it alone, and has its name
            }
            outputs, run = execute(code, inputs)
            if run.fault:
                return Verdict(_kind(run.fault), run.fault, run)
            told = _disagreement(code, program, outputs, reference or program, inputs)
            if told is not None:
                return Verdict(*told, run)
    except NotGeneratable as reason:
        return Verdict("refused", str(reason))
    return Verdict("ok", "", run)


def _kind(fault: str) -> str:
    """A fault's status, as measurements name them."""
    if "did not return" in fault:
        return "timeout"
    return "out_of_bounds" if "outside every array" in fault or "only read" in fault else "crash"


def _disagreement(
    code: SnitchCode,
    program: Program,
    outputs: Mapping[str, np.ndarray],
    reference: Program,
    inputs: Mapping[str, np.ndarray],
) -> tuple[str, str] | None:
    given = {}
    for name, values in inputs.items():  # moves may have split or merged dimensions; no byte moves
        shape = tuple(d.size for d in reference.buffer_of[name].dims)
        given[name] = values.astype(np.float64).reshape(shape)
    expected = interpret(reference, given)
    for p in code.parameters:
        if p.role != "out":
            continue
        array = next(a for a in program.outputs if program.buffer_of[a].name == p.name)
        wanted = np.asarray(expected[array], np.float64).reshape(p.shape)
        got = outputs[p.name].astype(np.float64)
        unwritten = np.isnan(got) & ~np.isnan(wanted)
        if unwritten.any():
            return (
                "unwritten",
                f"{np.count_nonzero(unwritten)} elements of {p.name} are never written, or NaN.",
            )
        allowed = TOLERANCE[p.dtype] * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        off = np.abs(got - wanted)
        if off.size and float(off.max()) > allowed:
            place = tuple(int(k) for k in np.unravel_index(int(off.argmax()), off.shape)) if off.shape else ()
            return (
                "wrong_result",
                f"{p.name}{list(place)} is {got[place]:.17g} and should be {wanted[place]:.17g}.",
            )
    return None


__all__ = ["BYTES", "Run", "Verdict", "execute", "judge"]
