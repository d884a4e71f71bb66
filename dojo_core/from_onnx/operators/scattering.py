"""Writes at places that data says."""

from __future__ import annotations

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array
from dojo_core.primitives.scattering import scatter

REDUCTIONS = {"none": "", "add": "+", "mul": "*", "max": "max", "min": "min"}


def _reduction(c: Call) -> str:
    name = c.attribute("reduction", "none") or "none"
    if name not in REDUCTIONS:
        raise Refusal(f"Its reduction is {name!r}.", f"Give one of {', '.join(REDUCTIONS)}.")
    return REDUCTIONS[name]


@operator("ScatterElements", "Scatter")
def scatter_elements(c: Call) -> Array:
    x, at, updates = c.array(0), c.array(1), c.array(2)
    axis = c.axis(default=0)
    c.promised(at, x.shape[axis])
    places = [at if k == axis else k for k in range(len(x.shape))]
    return scatter(c.b, x, updates, places, _reduction(c))


@operator("ScatterND")
def scatter_nd(c: Call) -> Array:
    x, indices, updates = c.array(0), c.array(1), c.array(2)
    last = len(indices.shape) - 1
    deep, rest = indices.shape[last], len(updates.shape) - last
    if deep == 1:  # else each axis has a range of its own
        c.promised(indices, x.shape[0])
    places: list[Array | int] = []
    for k in range(deep):
        at = c.squeeze(c.places(indices, last, k, 1), [last])
        places.append(c.unsqueeze(at, [*range(last, last + rest)]))
    places += range(last, last + rest)
    return scatter(c.b, x, updates, places, _reduction(c))


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
