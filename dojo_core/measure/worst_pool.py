"""A second set of inputs, for the policy ``algebraic``: those on which its rewrites are worst, and no others.

A rewrite is worst where an outlier, a zero or a large mean stands at a special place of what a sum goes over:
a channel of all images, say, not a row. So inputs are drawn slab by slab (``slabs.py``), one pattern each
(``patterns.py``): those that lead the set throughout, others in every second slab but the first, so that they
do not drown the leads. What lies within a domain, or is an integer, has the nearest values that it may have.

A sum of such elements is off by more than one rounding in any order, the start's own too, which may be lucky.
So a row of an output may be off by

    8 * max(what the start program is off by there, twice how far the reference moves, m * max |reference|)

The reference moves with inputs that are rounded, times what any order of n terms may add to that: up to the
square root of n where they have one sign (N. Higham and T. Mary, SIAM Journal on Scientific Computing 2019).
Where a bilinear algorithm may stand, it moves with roundings of the largest element that an input has
(``pool.py``). m is what the start is off by in half of the rows, for their size, but eps at least. Where the
start program gives infinity or NaN and the reference does not, the row is not judged.

A sum of f16 or bf16 is rounded after every term, in the reference too, and so is off by what its order makes
of it: how far the reference moves when it is rounded once counts like what the start program is off by. A row
that overflows in some order is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dojo_core.codegen.code import Parameter
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.patterns import PATTERNS
from dojo_core.measure.pool import (
    EPSILON,
    OWN_ERROR_FACTOR,
    Array,
    Doubles,
    Pool,
    array_in,
    columns,
    distance,
    draw,
    from_double,
    inexact_outputs,
    narrow_orders,
    numbers,
    references,
    rounding,
    to_double,
    unit,
)
from dojo_core.measure.slabs import Kept, kept_dimensions, read_box, takes_patterns
from dojo_core.program.dtypes import STORAGE_FLOATS, extremes
from dojo_core.program.tree import Domain, Program

WHOLE = 2**53  # integers up to here are numbers that a pattern may have


def make_worst_pool(program: Program, parameters: tuple[Parameter, ...], seed: int, chosen: InputSet) -> Pool:
    """Draw such inputs and compute their references. ``sensitivity`` is told for every output."""
    rng = np.random.default_rng([seed, 1])
    dimensions, leads = kept_dimensions(program), dict(chosen.leads)
    inputs: dict[str, Array] = {}
    given: dict[str, Array] = {}
    moved: dict[str, Array] = {}
    for p in (p for p in parameters if p.role == "in"):
        name = array_in(program, p.name)
        domain = program.domain_of(name)
        inputs[p.name] = draw(p.dtype, p.shape, rng, domain)
        slabs = _Slabs(leads.get(name, dimensions[name][0]), read_box(program, name))
        values = to_double(inputs[p.name], p.dtype)
        rows = slabs.of(values)
        if domain is not None and domain.distinct:
            filled = range(0)
        elif name in leads:
            filled = range(len(rows))
        else:
            filled = range(1, len(rows) if takes_patterns(program, name) else 0, 2)
        if filled:
            # Other seeds begin elsewhere, so that a program of few slabs meets all patterns in time.
            first = seed + list(leads).index(name) if name in leads else seed
            for turn, number in enumerate(filled):
                pattern = PATTERNS[chosen.patterns[(first + turn) % len(chosen.patterns)]]
                rows[number] = pattern.fill(rows.shape[1], p.dtype, rng)
            inputs[p.name] = _stored(slabs.back(rows, values), p.dtype, domain)
            values = to_double(inputs[p.name], p.dtype)
            rows = slabs.of(values)
        given[p.name] = moved[p.name] = numbers(inputs[p.name], p.dtype)
        if p.dtype in EPSILON:
            given[p.name] = values
            with np.errstate(all="ignore"):
                error = np.copysign(rounding(rows, p.dtype, chosen.normwise), rows) * _growth(rows)[:, None]
                moved[p.name] = slabs.back(rows + error * rng.uniform(-1, 1, rows.shape), values)
    outputs = [p for p in parameters if p.role == "out"]
    with np.errstate(all="ignore"):
        expected = references(program, given)
        others = references(program, moved)
        sensitivity = {p.name: distance(others[p.name], expected[p.name], p, True) for p in outputs}
    order = narrow_orders(program, given, expected, outputs)
    for name, lost in _overflown(program, given, expected, outputs, bool(order)).items():
        order[name] = np.where(lost, np.inf, order.get(name, 0.0))
    contiguous = {p.name: np.ascontiguousarray(expected[p.name].reshape(p.shape)) for p in outputs}
    return Pool(inputs, contiguous, sensitivity, {}, inexact_outputs(program, outputs), order)


def _overflown(
    program: Program,
    given: Mapping[str, Array],
    expected: Mapping[str, Doubles],
    outputs: Sequence[Parameter],
    narrow: bool,
) -> dict[str, NDArray[np.bool_]]:
    """Rows that overflow on the way, where the order of the terms decides which infinity comes of it, or NaN:
    those that are not finite in f64 or from ``narrow`` sums (in f32 the reference goes further than the start
    and tells them), and of f16 those in which the sum of the magnitudes overflows."""
    lost: dict[str, NDArray[np.bool_]] = {
        p.name: np.logical_not(np.isfinite(expected[p.name])) for p in outputs if narrow or p.dtype == "f64"
    }
    if narrow and any(b.dtype == "f16" for b in program.buffers):
        with np.errstate(all="ignore"):
            sizes = references(program, {k: np.abs(v) for k, v in given.items()}, each_write=False)
        for name in lost:
            lost[name] |= ~np.isfinite(sizes[name])
    return {
        p.name: np.asarray(lost[p.name].reshape(-1, columns(p.shape)).any(axis=1))
        for p in outputs
        if p.name in lost
    }


def _stored(values: Doubles, dtype: str, domain: Domain | None) -> Array:
    """Numbers as an input holds them, the nearest ones that it may have."""
    low, high = (domain.low, domain.high) if domain is not None else (-np.inf, np.inf)
    if dtype not in (*EPSILON, *STORAGE_FLOATS):
        least, most = extremes(dtype)
        values = np.rint(values)
        low, high = max(low, least, -WHOLE), min(high, most, WHOLE)
    return from_double(np.clip(values, low, high), dtype)


class _Slabs:
    """An array's elements as rows, one for each index of the dimensions ``kept``, within a box."""

    def __init__(self, kept: Kept, box: tuple[slice, ...]) -> None:
        self._box: tuple[Any, ...] = (..., *box)
        self._axes = (*kept, *(d for d in range(len(box)) if d not in kept))
        self._kept = len(kept)

    def of(self, values: Doubles) -> Doubles:
        """A copy."""
        inside = np.array(values[self._box].transpose(self._axes), order="C")
        return inside.reshape(math.prod(inside.shape[: self._kept]), -1)

    def back(self, rows: Doubles, values: Doubles) -> Doubles:
        """The array with these rows in the place of its own."""
        changed = np.empty_like(values) if rows.size == values.size else values.copy()
        inside = changed[self._box].transpose(self._axes)
        inside[...] = rows.reshape(inside.shape)
        return changed


def _growth(rows: Doubles) -> Doubles:
    """How many times one term's rounding a sum over each row may be off by, in any order: 1 and more."""
    finite = np.where(np.isfinite(rows), rows, 0.0)
    largest = np.maximum(np.abs(finite).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scaled = finite / largest
    size = np.sqrt((scaled**2).sum(axis=1))
    return np.asarray(1.0 + np.abs(scaled.sum(axis=1)) / np.where(size > 0, size, 1.0))


def worst_tolerance(
    p: Parameter,
    own_error: Doubles,
    scale: Doubles,
    sensitivity: Doubles,
    inexact: bool,
    order: Doubles | None = None,
) -> Doubles:
    """Allowed absolute errors per row, before the code's error bound; infinity: the row is not judged.

    ``own_error``: the start program's errors (infinity where finite and non-finite values disagree),
    ``scale``: max |reference|, ``order``: how far another order of narrow terms may move it.
    """
    sized = np.isfinite(own_error) & (scale > 0)
    usual = float(np.median(own_error[sized] / scale[sized])) if sized.any() else 0.0
    own_error = own_error if order is None else np.maximum(own_error, order)
    allowed = np.maximum(own_error, 2.0 * sensitivity)
    if p.dtype in EPSILON:
        allowed = OWN_ERROR_FACTOR * np.maximum(allowed, max(EPSILON[p.dtype], usual) * scale)
    else:
        allowed = np.maximum(OWN_ERROR_FACTOR * allowed, unit(p.dtype, scale)) if inexact else own_error
    return np.where(np.isfinite(own_error), allowed, np.inf)
