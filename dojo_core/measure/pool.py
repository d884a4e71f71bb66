"""What a workload is verified on: seeded inputs, their float64 references, and the allowed errors.

Policy. Most rows of an input are random (normal); a few, spread over it, are adversarial: zeros,
constants, large magnitudes, cancellation, denormals, infinities, NaN. Where those would drown most of an
output (a NaN in a matrix that every output depends on), only the first input keeps them, and where that
still does, only mild ones remain. So they do where a recurrence is chaos, as an LSTM with weights of this
size, of which one rounding of an input makes other results: there all numbers are smaller by a power of two.
References are float64. A row (last dimension) of an output may be off by

    8 * max(what the start program itself is off by there, r * max |reference|, eps(dtype) * max |reference|)
      + the code's stated error bound * max |reference|

where r is what the start program is off by in three of four rows, for their size: that a row of its own is
right may be luck. Short rows, sums above all, may also be small beside what was summed: the same goes for how
far they move with the inputs' last bits, and each may be off by what nine of ten rows are.

Where a sum of products may be computed by a bilinear algorithm (``worst.normwise``), the same goes for how
far all rows move with roundings of the inputs' *largest* elements, twice that at least: 8 * 2 roundings of
eps, twice the unit roundoff, are the growth of 32 that such an algorithm may have (``moves/algorithms.py``).
The inputs are tame then, as nothing is promised beside an infinity.

A sum of f16 or bf16 is rounded after every term, so that it depends on their order most of all. Where the
policy lets them be regrouped, how far the references move when such sums are rounded once counts like what
the start program is off by.

Where the policy lets the factors of sums of products be rounded to TF32, a row may be off by

    2 * how far the reference of the start program moves when they all are, once

beside: the roundings are those of the program that is judged, but for factors that are results themselves.

A start program that is off by more than half of the digits must be wrong, unless it adds up so many terms
that rounding each alone comes to that.

Where the start program gives infinity or NaN and the reference does not (or the other way round), the
row is not judged; elsewhere NaN must meet NaN and infinity the same infinity.

Integers are drawn from all that their dtype holds (those of 32 and 64 bits mostly from fewer), with rows of
the extreme values, and an integer output must be exact; but where it is made of floating-point numbers whose
last bit depends on the order of operations, it may be off by one, as a rounding falls on the other side, or,
where it has more digits than these, as far as they.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dojo_core.codegen.code import Parameter
from dojo_core.program.affine import Affine
from dojo_core.program.arithmetic import Meaning, bf16_bits, bf16_value, held
from dojo_core.program.dtypes import (
    INTEGERS,
    STORAGE,
    STORAGE_FLOATS,
    STORAGE_INTEGERS,
    dtypes_of,
    extremes,
    inexact_integers,
)
from dojo_core.program.interpret import interpret
from dojo_core.program.minifloats import has_sign, minifloat_stored, minifloat_values, step
from dojo_core.program.tree import Access, Domain, Program
from dojo_core.program.validity import settled

Array = NDArray[np.generic]
Doubles = NDArray[np.float64]

OWN_ERROR_FACTOR = 8.0
FACTORS_FACTOR = 2.0
ADVERSARIAL_SHARE = 20  # one adversarial row in so many at most
DROWNED_SHARE = 0.12  # of an output's rows
SHORT_ROW = 64
# What maps most of a long row to one value, if its argument is large: what is left is as good as a short row.
SATURATING = {"max", "min", "select", "tanh", "erf", "sigmoid", "atan", "sign"}
SCALES = (1.0, 2.0**-3, 2.0**-6)  # of a recurrence's inputs
CHAOS = 2.0**-4  # of what a start program may be off by: results that one rounding of inputs moves so far
WHOLE_BITS = 20  # of integers of 32 or 64 bits, other than in the rows of extreme values

# What has no NumPy type: of bf16 and of narrower floating-point numbers the bits; i4 and its kin as integers.
STORED: dict[str, type[np.generic]] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.uint8,
    **dict.fromkeys(STORAGE_FLOATS, np.uint8), "i4": np.int8, "u4": np.uint8, "i2": np.int8, "u2": np.uint8,
}  # fmt: skip
EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


@dataclass(frozen=True)
class Pool:
    """Inputs as stored, references and sensitivities per output, and how many input rows are adversarial.

    ``inexact`` names the integer outputs that may be off by one.

    ``sensitivity`` holds, for outputs with short rows or with long ones of which little may be left
    (``cuts_off``), how far the reference moves when the inputs move by one rounding: the start program's own
    error there is a single draw, which may be lucky. ``order``
    holds, where f16 or bf16 are added up, how far the reference moves when that is rounded once, ``factors``
    how far it moves when the factors of sums of products are rounded to TF32, ``reach`` the relative error of
    each output from which on the start program must be wrong.
    """

    inputs: dict[str, Array]
    references: dict[str, Doubles]
    sensitivity: dict[str, Doubles]
    adversarial: dict[str, list[int]] = field(default_factory=dict)
    inexact: tuple[str, ...] = ()
    order: dict[str, Doubles] = field(default_factory=dict)
    factors: dict[str, Doubles] = field(default_factory=dict)
    reach: dict[str, Doubles] = field(default_factory=dict)

    def tolerance(self, p: Parameter, own_error: Doubles, scale: Doubles, policy: str) -> Doubles:
        """``tolerance`` of an output. Raises ValueError as it does."""
        order = self.order.get(p.name) if policy != "strict" else None
        reach = self.reach.get(p.name)
        known = float(reach) if reach is not None else None
        sensitivity, inexact = self.sensitivity.get(p.name), p.name in self.inexact
        allowed = tolerance(p, own_error, scale, sensitivity, inexact, order, known)
        return allowed + FACTORS_FACTOR * self.factors[p.name] if p.name in self.factors else allowed


def columns(shape: tuple[int, ...]) -> int:
    """Elements judged with one tolerance: a row; of one-dimensional outputs a single element or a piece."""
    size = math.prod(shape)
    if len(shape) >= 2:
        return shape[-1]
    return 1 if size <= 65536 else math.gcd(size, 512)


def to_double(stored: Array, dtype: str) -> Doubles:
    """Stored elements as float64."""
    if dtype in STORAGE_FLOATS:
        return minifloat_values(stored, dtype)
    if dtype in STORAGE_INTEGERS:
        return held(stored, dtype).astype(np.float64)
    return bf16_value(stored.astype(np.uint16)) if dtype == "bf16" else stored.astype(np.float64)


def from_double(values: NDArray[np.floating], dtype: str) -> Array:
    """Numbers as they are stored, rounded to nearest; of integers the nearest that there are."""
    if dtype == "bf16":
        return bf16_bits(values.astype(np.float32))
    if dtype in STORAGE_FLOATS:
        return minifloat_stored(values, dtype)
    if dtype not in EPSILON:
        return held(values, dtype).astype(STORED[dtype])
    with np.errstate(over="ignore"):
        return values.astype(STORED[dtype])


def draw(dtype: str, shape: tuple[int, ...], rng: np.random.Generator, domain: Domain | None) -> Array:
    """Random values as they are stored: uniform in a domain (rows of its ends among them, unless they are
    distinct), else normal."""
    if domain is not None and domain.distinct:
        low, high = math.ceil(domain.low), math.floor(domain.high)
        chosen = rng.choice(min(high - low + 1, 2**62), math.prod(shape), replace=False)
        return held(np.asarray(chosen.reshape(shape) + low), dtype).astype(STORED[dtype])
    if domain is not None:
        values = np.asarray(rng.uniform(domain.low, domain.high, shape))
        if values.ndim >= 2:  # some rows of its ends
            rows = values.reshape(-1, shape[-1])
            rows[rng.integers(len(rows))] = domain.low
            rows[rng.integers(len(rows))] = domain.high
        if dtype not in (*EPSILON, *STORAGE_FLOATS):
            values = np.clip(np.rint(values), math.ceil(domain.low), math.floor(domain.high))
        return from_double(values, dtype)
    if dtype == "f64":
        return rng.standard_normal(shape)
    if dtype in (*EPSILON, *STORAGE_FLOATS):
        normal = rng.standard_normal(shape, dtype=np.float32)
        return from_double(
            np.abs(normal) if dtype in STORAGE_FLOATS and not has_sign(dtype) else normal, dtype
        )
    low, high = extremes(dtype)
    few = 1 << WHOLE_BITS
    return rng.integers(max(low, -few), min(high, few), shape, STORED[dtype], endpoint=True)


PIECE = 1 << 20  # elements that are drawn where nothing is verified: the rest are these again


def plain_input(program: Program, p: Parameter) -> Array:
    """An input that a program can run on, soon drawn, to be timed alone: no adversarial rows."""
    rng = np.random.default_rng(0)
    domain = program.domain_of(array_in(program, p.name))
    size = math.prod(p.shape)
    if domain is not None and domain.distinct:
        return draw(p.dtype, p.shape, rng, domain)
    return np.resize(draw(p.dtype, (min(size, PIECE),), rng, domain), p.shape)


def _extreme_rows(width: int, dtype: str) -> list[Array]:
    """Rows where sums of integers overflow soonest, and a row of zeros; of what is only stored as a
    floating-point number one of all finite ones, too."""
    if dtype in STORAGE_FLOATS:
        every = minifloat_values(np.arange(256), dtype)
        every = np.unique(every[np.isfinite(every)])
        chosen = ([every[np.abs(every).argmin()]], [every[0]], [every[-1]], [every[0], every[-1]], every)
        return [from_double(np.resize(row, width), dtype) for row in chosen]
    low, high = extremes(dtype)
    return [np.resize(np.array(row, STORED[dtype]), width) for row in ([0], [low], [high], [low, high])]


def _mild_rows(width: int, dtype: str, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    tiny = 6e-8 if dtype == "f16" else 1e-39 if dtype != "f64" else 1e-310
    noise = rng.standard_normal(width)
    pairs = np.repeat(noise[: (width + 1) // 2], 2)[:width] * np.resize([1.0, -1.0], width)
    return [
        np.zeros(width),
        np.full(width, -0.0),
        np.full(width, 3.25),
        noise * tiny,
        rng.permutation(pairs) * 16 + noise * 1e-3,
    ]


def _wild_rows(width: int, dtype: str, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    noise = rng.standard_normal(width)
    with_one = []
    for value in (-np.inf, np.inf, np.nan):
        row = noise.copy()
        row[rng.integers(width)] = value
        with_one.append(row)
    pairs = np.repeat(noise[: (width + 1) // 2], 2)[:width] * np.resize([1.0, -1.0], width)
    rows = [noise * 100, rng.permutation(pairs) * 1e4 + noise, *with_one]
    return rows if dtype == "f16" else [*rows, noise * 1e4, noise * 1e15]


def _plant(stored: Array, rows: Sequence[Array], rng: np.random.Generator) -> list[int]:
    """Overwrite some rows of an array; gives their numbers."""
    if stored.ndim < 2:
        return []
    flat = stored.reshape(-1, stored.shape[-1])
    count = min(len(rows), flat.shape[0] // ADVERSARIAL_SHARE)
    chosen = rng.permutation(len(rows))[:count]
    places = rng.choice(flat.shape[0], count, replace=False)
    for place, kind in zip(places, chosen, strict=True):
        flat[place] = rows[kind]
    return [int(p) for p in places]


def numbers(stored: Array, dtype: str) -> Array:
    """What the interpreter takes: float64, and integers as they are (float64 holds no i64, no u64)."""
    return to_double(stored, dtype) if dtype in (*EPSILON, *STORAGE) else stored


def unit(dtype: str, scale: Doubles) -> Doubles:
    """How far the neighbours of numbers up to ``scale`` are apart: 1, but of what is only stored as a
    floating-point number."""
    if dtype not in STORAGE_FLOATS:
        return np.ones_like(scale)
    relative, least = step(dtype)
    return np.asarray(np.maximum(relative * scale, least))


class Undefined(ValueError):
    """An output depends on what nothing has set, as is found now: at the door it was not decided."""


def array_in(program: Program, buffer: str) -> str:
    """The input or output that a buffer holds, which may bear another name."""
    return next(a for a in (*program.inputs, *program.outputs) if program.buffer_of[a].name == buffer)


def references(
    program: Program, inputs: Mapping[str, Array], each_write: bool = True, tf32: bool = False
) -> dict[str, Doubles]:
    """The outputs in float64: what the program means. Inputs and outputs by the names of their buffers."""
    given = {name: inputs[program.buffer_of[name].name] for name in program.inputs}
    outputs = interpret(program, given, each_write, tf32)
    return {program.buffer_of[name].name: np.asarray(value, np.float64) for name, value in outputs.items()}


def inexact_outputs(program: Program, outputs: Sequence[Parameter]) -> tuple[str, ...]:
    """The outputs of integers, or of what is only stored, that may be off by one, or by a neighbour."""
    doubtful = inexact_integers(program)
    arrays = {b.name: b.arrays for b in program.buffers}
    return tuple(p.name for p in outputs if doubtful.intersection(arrays[p.name]))


def distance(other: Doubles, expected: Doubles, p: Parameter, finite: bool) -> Doubles:
    """The largest distance of each row from where it was, between ``finite`` numbers or all."""
    shift = np.abs(other - expected)
    if finite:
        shift = np.where(np.isfinite(shift), shift, 0.0)
    else:
        same = (other == expected) | (np.isnan(other) & np.isnan(expected))
        shift = np.where(same, 0.0, np.where(np.isnan(shift), np.inf, shift))
    return np.asarray(shift.reshape(-1, columns(p.shape)).max(axis=1))


def narrow_orders(
    program: Program,
    given: Mapping[str, Array],
    expected: Mapping[str, Doubles],
    outputs: Sequence[Parameter],
) -> dict[str, Doubles]:
    """How far another order of the terms may move each row of an output, where f16 or bf16 are added up or
    multiplied: what rounding them once does."""
    meaning = Meaning(program)
    if not any(meaning.rounds(leaf.op) for leaf in program.leaves):
        return {}
    with np.errstate(all="ignore"):
        once = references(program, given, each_write=False)
        return {p.name: distance(once[p.name], expected[p.name], p, False) for p in outputs}


def rounded_factors(
    program: Program,
    given: Mapping[str, Array],
    expected: Mapping[str, Doubles],
    outputs: Sequence[Parameter],
) -> dict[str, Doubles]:
    """How far each row of an output moves when the factors of sums of products are rounded to TF32."""
    with np.errstate(all="ignore"):
        others = references(program, given, tf32=True)
        return {p.name: distance(others[p.name], expected[p.name], p, True) for p in outputs}


def _drowned(reference: Doubles) -> bool:
    rows = reference.reshape(-1, reference.shape[-1]) if reference.ndim >= 2 else reference.reshape(-1, 1)
    scale = np.maximum(np.abs(rows.max(axis=1)), np.abs(rows.min(axis=1)))  # NaN where the row has one
    finite = np.isfinite(scale)
    typical = float(np.median(scale[finite])) if finite.any() else 0.0
    lost = ~(scale <= 1e3 * max(typical, 1e-30))
    return bool(lost.mean() > DROWNED_SHARE)


def rounding(values: Doubles, dtype: str, normwise: bool) -> Doubles:
    """What one rounding of each element comes to, ``normwise`` of the largest finite one."""
    size = np.abs(values)
    if normwise:
        size = np.full_like(size, np.where(np.isfinite(size), size, 0.0).max(initial=0.0))
    return np.asarray(EPSILON[dtype] * size)


def make_pool(
    program: Program,
    parameters: tuple[Parameter, ...],
    seed: int,
    tame: bool = False,
    normwise: bool = False,
    tf32: bool = False,
) -> Pool:
    """Draw inputs and compute their references. Takes seconds for large arrays.

    ``tame``: adversarial rows are mild, without NaN, infinities and numbers of extreme size. ``normwise``:
    inputs move by roundings of their largest elements, for every output. ``tf32``: the factors of sums of
    products may be rounded. Raises Undefined.
    """
    fault = settled(program)
    if fault is not None:
        raise Undefined(fault)
    wanted = [p for p in parameters if p.role == "in"]
    outputs = [p for p in parameters if p.role == "out"]
    floats = [p.name for p in wanted if p.dtype in EPSILON]
    scale = _scale(program, wanted, outputs, seed) if _recurs(program) else 1.0
    for wild in ([],) if tame or scale != 1.0 else (floats, floats[:1], []):
        rng = np.random.default_rng(seed)
        inputs, adversarial = _drawn(program, wanted, wild, scale, rng)
        given = {p.name: numbers(inputs[p.name], p.dtype) for p in wanted}
        with np.errstate(all="ignore"):
            expected = references(program, given)
        if not any(_drowned(expected[p.name]) for p in outputs):
            break

    sensitivity: dict[str, Doubles] = {}
    all_short = normwise or cuts_off(program)
    short = [p for p in outputs if p.dtype in EPSILON and (all_short or columns(p.shape) < SHORT_ROW)]
    if short:
        others = _beside(program, given, wanted, normwise, rng)
        with np.errstate(all="ignore"):
            sensitivity = {p.name: distance(others[p.name], expected[p.name], p, True) for p in short}
    order = narrow_orders(program, given, expected, outputs)
    contiguous = {p.name: np.ascontiguousarray(expected[p.name].reshape(p.shape)) for p in outputs}
    inexact = inexact_outputs(program, outputs)
    factors = rounded_factors(program, given, expected, outputs) if tf32 else {}
    furthest = {p.name: np.asarray(reach(program, p.dtype)) for p in outputs}
    return Pool(inputs, contiguous, sensitivity, adversarial, inexact, order, factors, furthest)


def cuts_off(program: Program) -> bool:
    """May most elements of a row be one value, whatever was summed, as behind a clamp or in a triangle?"""
    ops = [leaf.op for leaf in program.leaves]
    return any(op.guard or (op.function in SATURATING and not op.accumulate) for op in ops)


def _drawn(
    program: Program, wanted: Sequence[Parameter], wild: Sequence[str], scale: float, rng: np.random.Generator
) -> tuple[dict[str, Array], dict[str, list[int]]]:
    """Inputs as stored, and which of their rows are adversarial; those of ``wild`` ones any, of others mild.
    ``scale``: of the magnitude of floating-point numbers without a domain."""
    inputs: dict[str, Array] = {}
    adversarial: dict[str, list[int]] = {}
    for p in wanted:
        domain = program.domain_of(array_in(program, p.name))
        inputs[p.name] = draw(p.dtype, p.shape, rng, domain)
        if p.dtype in EPSILON and p.shape and domain is None:
            rows = _mild_rows(p.shape[-1], p.dtype, rng)
            if p.name in wild:
                rows += _wild_rows(p.shape[-1], p.dtype, rng)
            stored = [from_double(row, p.dtype) for row in rows]
            adversarial[p.name] = _plant(inputs[p.name], stored, rng)
        elif p.dtype in (*INTEGERS, *STORAGE) and p.shape and domain is None:
            adversarial[p.name] = _plant(inputs[p.name], _extreme_rows(p.shape[-1], p.dtype), rng)
        if scale != 1.0 and p.dtype in EPSILON and domain is None:
            inputs[p.name] = from_double(to_double(inputs[p.name], p.dtype) * scale, p.dtype)
    return inputs, adversarial


def _beside(
    program: Program,
    given: Mapping[str, Array],
    wanted: Sequence[Parameter],
    normwise: bool,
    rng: np.random.Generator,
) -> dict[str, Doubles]:
    """The references for inputs that are one rounding off."""
    moved = {}
    for p in wanted:
        turn = rng.uniform(-1, 1, p.shape)
        moved[p.name] = given[p.name]
        if p.dtype in EPSILON:
            values = given[p.name].astype(np.float64)
            with np.errstate(all="ignore"):
                moved[p.name] = values + turn * np.copysign(rounding(values, p.dtype, normwise), values)
    with np.errstate(all="ignore"):
        return references(program, moved)


def _recurs(program: Program) -> bool:
    """Does a loop read what an iteration before it wrote, elsewhere in the same array?"""
    written = {(leaf.path[0], leaf.op.target.array): set[object]() for leaf in program.leaves}
    for leaf in program.leaves:
        written[leaf.path[0], leaf.op.target.array].add(leaf.op.target.index)
    return any(
        written.get((leaf.path[0], read.array), {read.index}) != {read.index}
        for leaf in program.leaves
        for read in leaf.op.reads
    )


def _scale(program: Program, wanted: Sequence[Parameter], outputs: Sequence[Parameter], seed: int) -> float:
    """The magnitude of mild inputs at which a recurrence is no chaos: at which what one rounding of a number
    that it computes makes of them is nearly the same; 1 where there is none."""

    written = {leaf.op.target.array for leaf in program.leaves}
    one = max((EPSILON.get(dtypes_of(program)[array], 0.0) for array in written), default=0.0)

    def chaotic(p: Parameter, other: Doubles, expected: Doubles) -> bool:
        rows = np.abs(expected).reshape(-1, columns(p.shape)).max(axis=1)
        moved = distance(other, expected, p, True) / np.maximum(rows, np.finfo(np.float64).tiny)
        return not float(np.quantile(moved, 0.75)) <= CHAOS * reach(program, p.dtype)  # NaN is

    for scale in SCALES:
        rng = np.random.default_rng(seed)
        inputs, _ = _drawn(program, wanted, [], scale, rng)
        given = {p.name: numbers(inputs[p.name], p.dtype) for p in wanted}
        beside = {
            p.name: given[p.name].astype(np.float64) * (1 + one * rng.uniform(-1, 1, p.shape))
            if p.dtype in EPSILON
            else given[p.name]
            for p in wanted
        }
        with np.errstate(all="ignore"):
            expected, others = references(program, given), references(program, beside)
            if not any(chaotic(p, others[p.name], expected[p.name]) for p in outputs if p.dtype in EPSILON):
                return scale
    return 1.0


def reach(program: Program, dtype: str) -> float:
    """The relative error that rounding alone may come to: half of the digits of the coarsest numbers, or what
    the terms of the longest sum or product add up to (of f16 and bf16 the reference has it, too)."""
    dtypes = dtypes_of(program)
    coarse = [EPSILON[d] for d in ((dtype,) if dtype in EPSILON else dtypes.values()) if d in EPSILON]
    terms = [
        math.prod(s.size for d, s in enumerate(leaf.scopes) if d not in _told_apart(leaf.op.target))
        * EPSILON[dtypes[leaf.op.target.array]]
        for leaf in program.leaves
        if leaf.op.accumulate in ("+", "*") and dtypes[leaf.op.target.array] in ("f32", "f64")
    ]
    return max(math.sqrt(max(coarse, default=0.0)), min(1.0, max(terms, default=0.0) / 2))


def _told_apart(target: Access) -> set[int]:
    """The depths of the scopes that surely go to different elements: where an array says which, all may go to
    one."""
    return {d for form in target.index if isinstance(form, Affine) for d in form.depths}


def tolerance(
    parameter: Parameter,
    own_error: Doubles,
    scale: Doubles,
    sensitivity: Doubles | None,
    inexact: bool = False,
    order: Doubles | None = None,
    reach: float | None = None,
) -> Doubles:
    """Allowed absolute errors per row, before the code's error bound; infinity: the row is not judged.

    ``own_error``: the start program's errors (infinity where finite and non-finite values disagree),
    ``scale``: max |reference|; ``order``: how far another order of narrow terms may move it. Integers are
    exact, or where they are ``inexact`` off by one, or as the numbers that they are made of. Raises
    ValueError where the start program is further off than ``reach``, relative (half of the digits, where none
    is given).
    """
    if parameter.dtype not in EPSILON:
        one = unit(parameter.dtype, scale)
        most = one if inexact else np.zeros_like(one)
        if inexact and reach is not None:
            most = np.maximum(most, reach * scale)
        worst = int((own_error - most).argmax())
        if own_error[worst] > most[worst]:
            how_far = f"is off by {own_error[worst]:.3g}, and may be off by {most[worst]:.3g}"
            raise ValueError(f"the start program's {parameter.name} {how_far}")
        own_error = own_error if order is None else np.maximum(own_error, order)
        if not inexact or (own_error <= one).all():
            return one if inexact else np.zeros_like(one)
        usual = float(np.quantile(own_error / np.maximum(scale, one), 0.75))
        return np.maximum(one, OWN_ERROR_FACTOR * np.maximum(own_error, usual * scale))
    epsilon = EPSILON[parameter.dtype]
    judged = np.isfinite(own_error)
    if not judged.all() and judged.mean() < 0.5:
        raise ValueError(f"the start program's {parameter.name} is infinite or NaN where it should not be")
    typical, size = float(np.median(own_error[judged])), float(np.median(scale[judged]))
    if typical > (math.sqrt(epsilon) if reach is None else reach) * size:
        raise ValueError(
            f"the start program's {parameter.name} is off by {typical:.3g} at a magnitude of {size:.3g}"
        )
    if order is not None:
        own_error = np.maximum(own_error, order)
        judged = np.isfinite(own_error)
        if not judged.any():
            return np.full(own_error.shape, np.inf)
    # A row's own error may be next to nothing by luck, as where one sum scales all of it: what most
    # rows are off by, for their size, is allowed in each (adversarial rows are less than a quarter).
    sized = judged & (scale > 0)
    usual = float(np.quantile(own_error[sized] / scale[sized], 0.75)) if sized.any() else 0.0
    allowed = np.maximum(own_error, max(epsilon, usual) * scale)
    if sensitivity is not None:  # one element a row: after cancellation its size says little
        moved = judged & (sensitivity >= epsilon * scale) & (sensitivity > 0)  # not those that saturate
        ratio = float(np.quantile(own_error[moved] / sensitivity[moved], 0.75)) if moved.any() else 0.0
        allowed = np.maximum(allowed, max(2.0, ratio) * sensitivity)
        allowed = np.maximum(allowed, float(np.quantile(own_error[judged], 0.9)))
    return np.where(judged, OWN_ERROR_FACTOR * allowed, np.inf)
