"""A second set of inputs, for the policy ``algebraic``: those on which its rewrites are worst, and no others.

A rewrite is worst where an outlier, a zero or a large mean stands at a special place of what a sum goes over:
a channel of all images, say, not a row. So inputs are drawn slab by slab, a slab being the elements that the
start program's sums bring together, one pattern each (``patterns.py``). The largest floating-point input has
patterns throughout, others in every second slab but the first, so that they do not drown each other.

A sum of such elements is off by more than one rounding in any order, the start's own too, which may be lucky.
So a row of an output may be off by

    8 * max(what the start program is off by there, twice how far the reference moves, m * max |reference|)

The reference moves with inputs that are rounded, times what any order of n terms may add to that: up to the
square root of n where they have one sign (N. Higham and T. Mary, SIAM Journal on Scientific Computing 2019).
m is what the start is off by in half of the rows, for their size, but eps at least. Where the start program
gives infinity or NaN and the reference does not, the row is not judged.
"""

from __future__ import annotations

import math

import numpy as np

from dojo_core.measure.patterns import PATTERNS
from dojo_core.measure.pool import (
    EPSILON,
    OWN_ERROR_FACTOR,
    Array,
    Doubles,
    Pool,
    columns,
    draw,
    from_double,
    references,
    to_double,
)
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import inexact_integers
from dojo_core.program.tree import Access, Program
from dojo_core.targets.cpu.code import Parameter

Origin = tuple[int | None, ...]  # for each dimension of an array, the input's dimension that it follows


def kept_dimensions(program: Program) -> dict[str, tuple[int, ...]]:
    """For each input, the dimensions that no sum over it goes over: an index of them is a slab.

    Where sums keep different ones (a row's, then a channel's), the fewest that some sum keeps; () where one
    goes over all of it. Where there is no sum, all but the last.
    """
    origins: dict[str, dict[str, Origin]] = {}
    kept: dict[str, set[tuple[int, ...]]] = {}
    for name in program.inputs:
        rank = len(program.buffer_of[name].dims)
        origins[name] = {name: tuple(range(rank))}
        kept[name] = set()
    for leaf in program.leaves:
        target = leaf.op.target
        for read in leaf.op.reads:
            for name, origin in origins.get(read.array, {}).items():
                follows = _iterators(read, origin)
                made = tuple(follows.get(_single(form)) for form in target.index)
                if leaf.op.accumulate and len(set(made) - {None}) < len(set(follows.values())):
                    kept[name].add(tuple(sorted(d for d in set(made) if d is not None)))
                if target.array != read.array:
                    origins.setdefault(target.array, {})[name] = made
    return {
        name: min(found, key=len) if found else tuple(range(len(program.buffer_of[name].dims) - 1))
        for name, found in kept.items()
    }


def _single(form: object) -> int | None:
    """The iterator that an index is, with no other and unscaled."""
    if isinstance(form, Affine) and len(form.terms) == 1 and form.terms[0][1] == 1:
        return form.terms[0][0]
    return None


def _iterators(read: Access, origin: Origin) -> dict[int | None, int]:
    """Which dimension of the input each iterator of a read goes along."""
    pairs = zip(map(_single, read.index), origin, strict=True)
    return {depth: dim for depth, dim in pairs if depth is not None and dim is not None}


def make_worst_pool(
    program: Program, parameters: tuple[Parameter, ...], seed: int, patterns: tuple[str, ...]
) -> Pool:
    """Draw such inputs and compute their references. ``sensitivity`` is told for every output."""
    rng = np.random.default_rng([seed, 1])
    slabs = kept_dimensions(program)
    inputs: dict[str, Array] = {}
    given: dict[str, Array] = {}
    moved: dict[str, Array] = {}
    largest = max((p for p in parameters if _takes_patterns(program, p)), key=_elements, default=None)
    for p in (p for p in parameters if p.role == "in"):
        inputs[p.name] = draw(p.dtype, p.shape, rng, program.domain_of(p.name))
        if p.dtype not in EPSILON:
            given[p.name] = moved[p.name] = inputs[p.name]
            continue
        values = to_double(inputs[p.name], p.dtype)
        rows = _rows(values, p.shape, slabs.get(p.name, ()))
        if _takes_patterns(program, p):
            first, step = (0, 1) if p is largest else (1, 2)  # of the slabs that have patterns
            # Other seeds begin elsewhere, so that a program of few slabs meets all patterns in time.
            for number in range(first, len(rows), step):
                pattern = PATTERNS[patterns[(seed + number // step) % len(patterns)]]
                rows[number] = pattern.fill(rows.shape[1], p.dtype, rng)
            inputs[p.name] = from_double(_as_stored(rows, p.shape, slabs.get(p.name, ())), p.dtype)
            values = to_double(inputs[p.name], p.dtype)
            rows = _rows(values, p.shape, slabs.get(p.name, ()))
        given[p.name] = values
        error = EPSILON[p.dtype] * _growth(rows)[:, None] * rng.uniform(-1, 1, rows.shape)
        with np.errstate(all="ignore"):
            moved[p.name] = _as_stored(rows * (1 + error), p.shape, slabs.get(p.name, ()))
    with np.errstate(all="ignore"):
        expected = references(program, given)
        others = references(program, moved)
    outputs = [p for p in parameters if p.role == "out"]
    sensitivity: dict[str, Doubles] = {}
    for p in outputs:
        with np.errstate(all="ignore"):
            shift = np.abs(others[p.name] - expected[p.name])
        shift = np.where(np.isfinite(shift), shift, 0.0)
        sensitivity[p.name] = np.asarray(shift.reshape(-1, columns(p.shape)).max(axis=1))
    contiguous = {p.name: np.ascontiguousarray(expected[p.name].reshape(p.shape)) for p in outputs}
    doubtful = inexact_integers(program)
    arrays = {b.name: b.arrays for b in program.buffers}
    inexact = tuple(p.name for p in outputs if doubtful.intersection(arrays[p.name]))
    return Pool(inputs, contiguous, sensitivity, {}, inexact)


def _takes_patterns(program: Program, p: Parameter) -> bool:
    floats = p.role == "in" and p.dtype in EPSILON
    return floats and p.shape != () and program.domain_of(p.name) is None


def _elements(p: Parameter) -> int:
    return math.prod(p.shape)


def _axes(shape: tuple[int, ...], kept: tuple[int, ...]) -> tuple[int, ...]:
    return (*kept, *(d for d in range(len(shape)) if d not in kept))


def _rows(values: Doubles, shape: tuple[int, ...], kept: tuple[int, ...]) -> Doubles:
    """A copy with a slab in each row."""
    slabs = math.prod(shape[d] for d in kept)
    return np.array(values.reshape(shape).transpose(_axes(shape, kept)).reshape(slabs, -1))


def _as_stored(rows: Doubles, shape: tuple[int, ...], kept: tuple[int, ...]) -> Doubles:
    axes = _axes(shape, kept)
    order = np.argsort(axes)
    # not np.ascontiguousarray, which makes a row of one number of a number
    return np.array(rows.reshape([shape[d] for d in axes]).transpose(order), order="C")


def _growth(rows: Doubles) -> Doubles:
    """How many times one term's rounding a sum over each row may be off by, in any order: 1 and more."""
    finite = np.where(np.isfinite(rows), rows, 0.0)
    largest = np.maximum(np.abs(finite).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scaled = finite / largest
    size = np.sqrt((scaled**2).sum(axis=1))
    return np.asarray(1.0 + np.abs(scaled.sum(axis=1)) / np.where(size > 0, size, 1.0))


def worst_tolerance(
    p: Parameter, own: Doubles, scale: Doubles, sensitivity: Doubles, inexact: bool
) -> Doubles:
    """Allowed absolute errors per row, before the code's error bound; infinity: the row is not judged.

    ``own``: the start program's errors (infinity where finite and non-finite values disagree), ``scale``:
    max |reference|.
    """
    if p.dtype not in EPSILON:
        return np.where(np.isfinite(own), np.maximum(own, float(inexact)), np.inf)
    epsilon = EPSILON[p.dtype]
    judged = np.isfinite(own)
    sized = judged & (scale > 0)
    usual = float(np.median(own[sized] / scale[sized])) if sized.any() else 0.0
    allowed = np.maximum(np.maximum(own, 2.0 * sensitivity), max(epsilon, usual) * scale)
    return np.where(judged, OWN_ERROR_FACTOR * allowed, np.inf)
