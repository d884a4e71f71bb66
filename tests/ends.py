"""Ends of walks as compiled C, on inputs that nobody drew kindly: against the C of where the walk began.

NaN, infinities, both zeros, denormals, extremes, and one outlier at every place that a program might treat
apart. Under ``strict`` each output is the same bit by bit (any NaN is NaN). Under the other policies an
element may be off by what the start's own result moves by when its inputs move by a rounding; where it is not
finite, it is the same infinity or NaN, unless a rounding of the inputs decides that too (docs/promises.md).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dojo_core.codegen.code import Code
from dojo_core.measure.pool import STORED, to_double
from dojo_core.program.arithmetic import rounded
from dojo_core.program.dtypes import FLOATS, INTEGERS, STORAGE_FLOATS, STORAGE_INTEGERS, extremes
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.codegen import generate
from tests import compiled, sanitized

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]

# Where functions, conversions and roundings change their ways.
ORDINARY = (1.0, -1.0, 0.5, 1.5, 2.5, -0.5, 3.0, 127.5, 128.0, -128.5, 255.5, 88.8, -104.1, 0.1)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
LEAST = {"f64": 5e-324, "f32": 1.4e-45, "f16": 5.96e-8, "bf16": 9.2e-41}
GREATEST = {
    "f64": 1.7976931348623157e308,
    "f32": 3.4028234663852886e38,
    "f16": 65504.0,
    "bf16": 3.3895313892515355e38,
}
OUTLIER = 1e5
MEAN = 1e3
# What the least significant digit of an input moves, and how many such movements are tried.
NUDGES = 6
# How far beyond what these show an element may be: programs of some dozens of operations.
ALLOWANCE = 256.0
EPS = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


@dataclass(frozen=True)
class End:
    """A walk to be compiled: where it began, the policy of its moves, where it ended."""

    first: Program
    policy: str
    last: Program


def draws(program: Program, policy: str, rng: np.random.Generator) -> Iterator[tuple[str, dict[str, Array]]]:
    """Inputs by name, each set with a name of its own. Those of ``algebraic`` are finite, and those of
    ``reassoc`` have no number so large that the order of a sum decides whether it overflows."""

    def drawn(of_floats: Any) -> dict[str, Array]:
        return {name: _array(program, name, of_floats, rng) for name in program.inputs}

    def mixed(share: float) -> Any:
        def floats(shape: tuple[int, ...], dtype: str) -> Array:
            known = [*ORDINARY, 0.0, -0.0]
            if policy != "algebraic":
                known += [*SPECIAL, LEAST[dtype], -LEAST[dtype], 700 * LEAST[dtype]]
            if policy == "strict":
                known += [GREATEST[dtype], -GREATEST[dtype], 2147483648.0, 65520.0]
            normal = rng.standard_normal(shape) * 3
            return np.where(rng.random(shape) < share, rng.choice(known, shape), normal)

        return floats

    def outlier(place: float) -> Any:
        def floats(shape: tuple[int, ...], dtype: str) -> Array:
            values = rng.standard_normal(shape)
            at = tuple(round(place * (n - 1)) for n in shape)
            values[at] = OUTLIER if dtype != "f16" else 1e3
            if shape:  # of each row too, where an array has rows
                values[..., at[-1]] *= np.where(rng.random(shape[:-1]) < 0.5, 1e3, 1)
            return values

        return floats

    for share in (0.07, 0.4, 1.0):
        yield f"{share:.0%} special values", drawn(mixed(share))
    for place, name in ((0.0, "first"), (0.5, "middle"), (1.0, "last")):
        yield f"an outlier at the {name} place", drawn(outlier(place))
    yield (
        "a large mean",
        drawn(lambda shape, dtype: rng.standard_normal(shape) + (MEAN if dtype != "f16" else 9)),
    )


def _array(program: Program, name: str, of_floats: Any, rng: np.random.Generator) -> Array:
    buffer = program.buffer_of[name]
    shape = tuple(d.size for d in buffer.dims)
    kind = STORED[buffer.dtype]
    if buffer.dtype in FLOATS:
        values = np.asarray(of_floats(shape, buffer.dtype), np.float64)
        with np.errstate(over="ignore"):
            return rounded(values, "bf16") if buffer.dtype == "bf16" else values.astype(kind)
    if buffer.dtype in STORAGE_FLOATS:
        every = to_double(np.arange(256), buffer.dtype)
        return rng.choice(every[np.isfinite(every)], shape)
    if buffer.dtype not in (*INTEGERS, *STORAGE_INTEGERS):
        return rng.integers(0, 2, shape).astype(kind)
    least, most = extremes(buffer.dtype)
    known = [v for v in (least, least + 1, -7, -1, 0, 1, 2, 7, most - 1, most) if least <= v <= most]
    return rng.choice(np.array(known, kind), shape)


def differences(ends: Sequence[End], seed: int) -> list[tuple[int, str]]:
    """Which of these walks end in C that breaks its policy's promise (index, what differs where).

    The first C is judged by the interpreter, on kind inputs; the last by that and by the first.
    """
    codes = [
        generate(replace(program, name=f"{which}{n}"), end.policy)
        for n, end in enumerate(ends)
        for which, program in (("first", end.first), ("last", end.last))
    ]
    library = compiled.load("\n".join(code.text for code in codes))
    broken = []
    for number, end in enumerate(ends):
        rng = np.random.default_rng((seed, number))
        first, last = codes[2 * number : 2 * number + 2]
        fault = _off_from_meaning(end, last, library)
        for name, inputs in () if fault else draws(end.first, end.policy, rng):
            fault = _difference(end, first, last, inputs, library, rng)
            if fault:
                fault += f", on {name}"
                break
        if fault:
            broken.append((number, f"{fault}\n{end.last.text}"))
    return broken


def sanitizers_complaint(ends: Sequence[End], seed: int) -> str:
    """What AddressSanitizer and UndefinedBehaviorSanitizer say of these walks' ends, or nothing."""
    calls = []
    for number, end in enumerate(ends):
        code = generate(replace(end.last, name=f"last{number}"), end.policy)
        _, inputs = next(draws(end.first, end.policy, np.random.default_rng((seed, number))))
        calls.append((code, inputs))
    return sanitized.complaint(calls)


def _off_from_meaning(end: End, last: Code, library: ctypes.CDLL) -> str:
    """How the C differs from the interpreter on the first program, on normal inputs."""
    inputs = compiled.random_inputs(end.first)
    results, expected = compiled.run(last, inputs, library), interpret(end.first, inputs)
    for array in end.first.outputs:
        dtype = end.first.buffer_of[array].dtype
        want = expected[array].ravel()
        want = rounded(want, dtype) if dtype in FLOATS else want  # infinite where it overflows
        exact = dtype not in FLOATS
        allowed = 0.0 if exact else 1e-4 * np.max(np.abs(want[np.isfinite(want)]), initial=1)
        have = np.asarray(results[end.last.buffer_of[array].name], np.float64).ravel()
        close = np.isclose(have, want, rtol=0 if exact else 1e-3, atol=allowed, equal_nan=True)
        if not close.all():
            return f"{array}: {have[~close][:4]} for {want[~close][:4]}, on normal numbers"
    return ""


def _difference(
    end: End, first: Code, last: Code, inputs: Inputs, library: ctypes.CDLL, rng: np.random.Generator
) -> str:
    expected = compiled.run(first, inputs, library)
    result = compiled.run(last, inputs, library)
    # A buffer that arrays share carries the name of one; moves may merge the dimensions of an output.
    outputs = {
        a: (expected[end.first.buffer_of[a].name].ravel(), result[end.last.buffer_of[a].name].ravel())
        for a in end.first.outputs
    }
    if end.policy == "strict":
        wrong = {a: ~same_bits(*pair) for a, pair in outputs.items()}
    else:
        nudged = [compiled.run(first, nudge(end.first, inputs, rng), library) for _ in range(NUDGES)]
        meant = interpret(end.first, inputs)
        wrong = {
            a: beyond(
                pair[0], pair[1], meant[a].ravel(),
                [run[end.first.buffer_of[a].name].ravel() for run in nudged],
                end.first.buffer_of[a].dtype, end.policy,
            )
            for a, pair in outputs.items()
        }  # fmt: skip
    for array, where in wrong.items():
        if where.any():
            want, have = (values[where][:4] for values in outputs[array])
            return f"{array}: {have} for {want}, {int(where.sum())} of {where.size}"
    return ""


def same_bits(expected: Array, result: Array) -> Array:
    """Elementwise: the same bits, or both NaN."""
    first, second = np.asarray(expected), np.asarray(result)
    alike = np.asarray(first == second)
    if first.dtype.kind != "f":
        return alike
    return (alike & (np.signbit(first) == np.signbit(second))) | (np.isnan(first) & np.isnan(second))


def nudge(program: Program, inputs: Inputs, rng: np.random.Generator) -> dict[str, Array]:
    """The inputs with each floating-point number moved by about a rounding, up or down."""
    moved = {}
    for name, values in inputs.items():
        dtype = program.buffer_of[name].dtype
        if dtype in FLOATS:
            factor = 1 + EPS[dtype] * rng.choice((-1.0, 1.0), np.shape(values))
            with np.errstate(all="ignore"):
                values = (np.asarray(values, np.float64) * factor).astype(np.asarray(values).dtype)
                values = rounded(values, "bf16") if dtype == "bf16" else values
        moved[name] = values
    return moved


def beyond(
    expected: Array, result: Array, meant: Array, nudged: Sequence[Array], dtype: str, policy: str
) -> Array:
    """Elementwise: is the result off by more than another order of the same operations can explain?

    ``expected`` is the start's own, ``meant`` in float64, ``nudged`` the start's on inputs moved by a
    rounding.
    """
    if dtype not in FLOATS:
        settled = np.all([run == expected for run in nudged], axis=0) & (np.asarray(meant) == expected)
        return settled & (np.asarray(result) != expected)
    first, second, exact = (np.asarray(v, np.float64) for v in (expected, result, meant))
    runs = [np.asarray(run, np.float64) for run in nudged]
    with np.errstate(all="ignore"):
        finite = np.all([np.isfinite(v) for v in (first, exact, *runs)], axis=0)
        spread = np.max([np.abs(run - first) for run in runs], axis=0) + np.abs(first - exact)
        floor = (
            EPS[dtype] * np.maximum(np.abs(first), 1e-3 * np.max(np.abs(first[finite]), initial=0))
            + LEAST[dtype]
        )
        off = finite & ~(np.abs(second - first) <= ALLOWANCE * (spread + floor))
        settled = np.all([_kind(v) == _kind(first) for v in (exact, *runs)], axis=0) & ~np.isfinite(first)
    if policy == "algebraic":
        return off  # what is not finite may come out otherwise: each move says when
    return off | (settled & (_kind(second) != _kind(first)))


def _kind(values: Array) -> Array:
    """0 where finite, 1 and 2 for the infinities, 3 for NaN."""
    return np.where(np.isnan(values), 3, np.where(values == np.inf, 1, np.where(values == -np.inf, 2, 0)))
