"""Reads at places that data says."""

from __future__ import annotations

import math

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import FLOATS, Refusal, Tensor, known
from dojo_core.primitives.array import Array


@operator("Gather")
def gather(c: Call) -> Array | Tensor:
    axis = c.axis(default=0)
    data, indices = c.tensor(0), c.tensor(1)
    if indices.values is not None:
        return _known(c, data, indices, axis)
    return c.gather(c.array(0), c.array(1), axis)


def _known(c: Call, data: Tensor, indices: Tensor, axis: int) -> Array | Tensor:
    """At places that are known at import."""
    size = data.shape[axis]
    assert indices.values is not None
    at = indices.values
    if at.size and (at.min() < -size or at.max() >= size):
        raise Refusal(f"Its indices leave an axis of {size}.", "Mend the model.")
    if data.values is not None:
        return known(np.take(data.values, at, axis), data.element)
    return p.gather(c.b, c.array(0), at, axis)


@operator("GatherElements")
def gather_elements(c: Call) -> Array:
    x, axis = c.array(0), c.axis(default=0)
    shape = c.shape(1)
    for k, size in enumerate(shape):
        if k != axis:
            if size > x.shape[k]:
                raise Refusal(
                    f"Its indices {list(shape)} are larger than {list(x.shape)}.", "Mend the model."
                )
            x = c.places(x, k, 0, size)
    return c.along(x, c.array(1), axis)


@operator("GatherND")
def gather_nd(c: Call) -> Array:
    shape, at = c.shape(0), c.shape(1)
    batch = c.attribute("batch_dims", 0)
    deep = at[-1]
    if batch + deep > len(shape) or shape[:batch] != at[:batch]:
        raise Refusal(f"Its indices {list(at)} do not fit {list(shape)}.", "Mend the model.")
    rest = shape[batch + deep :]
    flat = flat_index(c, c.array(1), shape[batch : batch + deep])  # [batch…, rows…]
    count, span = math.prod(shape[:batch]), math.prod(shape[batch : batch + deep])
    if batch:
        steps = [math.prod(shape[k + 1 : batch]) * span for k in range(batch)]
        flat = c.add(flat, c.affine(at[:-1], [*steps, *[0] * (len(at) - 1 - batch)]))
    rows = c.reshape(c.array(0), (count * span, *rest))
    return c.gather(rows, flat, 0)


def flat_index(c: Call, indices: Array, shape: tuple[int, ...]) -> Array:
    """Indices [..., n] into n axes as one, row by row; negative ones count from the end."""
    last = len(indices.shape) - 1
    total: Array | None = None
    for k, size in enumerate(shape):
        at = c.squeeze(c.places(indices, last, k, 1), [last])
        step = math.prod(shape[k + 1 :])
        at = c.formula("select(i < 0, i + n, i) * s", i=at, n=size, s=step, dtype="i64")
        total = at if total is None else c.add(total, at)
    if total is None:
        return c.number(0, "i64", indices.shape[:-1])
    return total


@operator("OneHot")
def one_hot(c: Call) -> Array:
    depth = int(c.known(1).reshape(-1)[0])
    if depth < 1:
        raise Refusal(f"Its depth is {depth}.", "Give one of at least 1.")
    at = c.computed(0)
    axis = c.axis_of(c.attribute("axis", -1), len(at.shape) + 1)
    values = c.array(2)
    off, on = (c.squeeze(c.places(values, 0, k, 1), [0]) for k in range(2))
    at = c.unsqueeze(c.formula("select(i < 0, i + n, i)", i=at, n=depth), [axis])
    shape = tuple(depth if k == axis else s for k, s in enumerate(at.shape))
    same = c.map("==", c.iota(shape, axis, "i64" if at.dtype not in FLOATS else at.dtype), at)
    return c.where(same, on, off, dtype=values.dtype)


@operator("TopK")
def top_k(c: Call) -> tuple[Array, Array]:
    x, axis = c.computed(0), c.axis(default=-1)
    k = c.integer(1) if c.since >= 10 else c.attribute("k")
    largest = c.since < 11 or bool(c.attribute("largest", 1))
    size = x.shape[axis]
    if not 0 < k <= size:
        raise Refusal(f"It takes the first {k} of {size}.", f"Give 1 to {size}.")
    return p.top(c.b, "max" if largest else "min", x, axis, k)
