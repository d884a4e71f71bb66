"""Writes at places that data says."""

from __future__ import annotations

import math

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.operators.gathering import flat_index
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array
from dojo_core.primitives.scattering import scatter

REDUCTIONS = {"none": "", "add": "+", "mul": "*", "max": "max", "min": "min"}


def scattered(c: Call, base: Array, places: Array, updates: Array, accumulate: str = "") -> Array:
    """Rows of ``base`` [P, R] replaced by (or accumulated with) those of ``updates`` [U, R] at ``places``
    [U], in their order."""
    c.costs("scatter by comparison")
    return scatter(c.b, base, places, updates, accumulate)


def _reduction(c: Call) -> str:
    name = c.attribute("reduction", "none") or "none"
    if name not in REDUCTIONS:
        raise Refusal(f"Its reduction is {name!r}.", f"Give one of {', '.join(REDUCTIONS)}.")
    return REDUCTIONS[name]


@operator("ScatterElements", "Scatter")
def scatter_elements(c: Call) -> Array:
    x, at, updates = c.array(0), c.array(1), c.array(2)
    axis, shape = c.axis(default=0), c.shape(0)
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    others = c.affine(at.shape, [0 if k == axis else s for k, s in enumerate(steps)])
    flat = c.formula(
        "select(i < 0, i + n, i) * s + o", i=at, n=shape[axis], s=steps[axis], o=others, dtype="i64"
    )
    count = math.prod(at.shape)
    base = c.reshape(x, (math.prod(shape), 1))
    rows = c.reshape(updates, (count, 1))
    return c.reshape(
        scattered(c, base, c.reshape(c.broadcast(flat, at.shape), (count,)), rows, _reduction(c)), shape
    )


@operator("ScatterND")
def scatter_nd(c: Call) -> Array:
    shape, at = c.shape(0), c.shape(1)
    deep = at[-1]
    rest, rows = math.prod(shape[deep:]), math.prod(at[:-1])
    flat = c.reshape(flat_index(c, c.array(1), shape[:deep]), (rows,))
    base = c.reshape(c.array(0), (math.prod(shape[:deep]), rest))
    updates = c.reshape(c.array(2), (rows, rest))
    return c.reshape(scattered(c, base, flat, updates, _reduction(c)), shape)


@operator("TensorScatter")
def tensor_scatter(c: Call) -> Array:
    """A cache with new rows written from ``write_indices`` on, for each of a batch."""
    cache, update = c.array(0), c.array(1)
    axis, shape = c.axis(default=-2), c.shape(0)
    length, size = c.shape(1)[axis], shape[axis]
    whole = list(shape)
    # Where a place of the cache is written, and from which row of the update: place - start, around the end.
    start = c.array(2) if c.has(2) else c.number(0, "i64", (shape[0],))
    start = c.reshape(start, (shape[0], *[1] * (len(shape) - 1)))
    row = c.iota([s if k == axis else 1 for k, s in enumerate(whole)], axis)
    behind = c.sub(row, start)
    if c.attribute("mode", "linear") == "circular":
        behind = c.formula("select(d < 0, d + n, d)", d=behind, n=size)
    inside = c.formula("select(d >= 0, d < n, 0)", d=behind, n=length, dtype="bool")
    at = c.formula("max(min(d, n), 0)", d=behind, n=length - 1)
    moved = c.along(
        update, c.broadcast(at, [shape[0], *(s if k == axis else 1 for k, s in enumerate(whole) if k)]), axis
    )
    return c.where(inside, moved, cache, dtype=cache.dtype)
