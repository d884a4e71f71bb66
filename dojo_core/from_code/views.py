"""Arrays in other shapes, put together, or made of shapes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dojo_core.from_code.functions import (
    Algebra,
    Axis,
    Never,
    Value,
    axes_of,
    elementwise,
    function,
    where,
)
from dojo_core.primitives import BuildError


@function("t")
def transposed(m: Algebra, x: Value) -> Value:
    return m.transpose(x, axes_of(m, x, None)[::-1])


@function("transpose", "permute")
def permute(m: Algebra, x: Value, *axis: Any) -> Value:
    if len(axis) == 1 and not isinstance(axis[0], int):
        axis = tuple(axis[0] or ())
    order = axes_of(m, x, axis or None)
    if sorted(order) != list(range(len(m.shape(x)))):
        raise BuildError(f"{list(axis)} is no order of {len(m.shape(x))} axes: name each once.")
    return m.transpose(x, order if axis else order[::-1])


@function("swapaxes", "swapdims")
def swapaxes(m: Algebra, x: Value, axis0: int, axis1: int) -> Value:
    first, second = axes_of(m, x, (axis0, axis1))
    order = list(range(len(m.shape(x))))
    order[first], order[second] = order[second], order[first]
    return m.transpose(x, order)


@function("reshape", "view")
def reshape(m: Algebra, x: Value, *shape: Any) -> Value:
    sizes = _sizes(shape)
    axes_of(m, x, None)
    others = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and others:
        sizes[sizes.index(-1)] = math.prod(m.shape(x)) // others
    if min(sizes, default=0) < 0 or math.prod(sizes) != math.prod(m.shape(x)):
        raise BuildError(f"{list(m.shape(x))} is not reshaped to {sizes}: as many elements, other axes.")
    return m.reshape(x, sizes)


def _sizes(shape: Sequence[Any]) -> list[int]:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if not all(isinstance(size, int) for size in given) or len(given) > 12:
        raise BuildError("A shape is up to 12 whole numbers.")
    return list(given)


@function("flatten", "ravel")
def flatten(m: Algebra, x: Value, start_dim: int = 0) -> Value:
    axes = axes_of(m, x, None)
    sizes = m.shape(x)
    start = start_dim % max(len(axes), 1)
    return m.reshape(x, (*sizes[:start], math.prod(sizes[start:])))


@function("squeeze")
def squeeze(m: Algebra, x: Value, axis: Axis = None) -> Value:
    axes = axes_of(m, x, axis)
    sizes = m.shape(x)
    gone = [k for k in axes if sizes[k] == 1]
    if axis is not None and len(gone) < len(axes):
        raise BuildError(f"Only axes of size 1 can go, of {list(sizes)}.")
    return m.reshape(x, [size for k, size in enumerate(sizes) if k not in gone])


@function("unsqueeze", "expand_dims")
def unsqueeze(m: Algebra, x: Value, axis: int) -> Value:
    sizes = list(m.shape(x))
    if not isinstance(axis, int) or not -len(sizes) - 1 <= axis <= len(sizes):
        raise BuildError(f"There is no place {axis} among {len(sizes) + 1} axes.")
    sizes.insert(axis % (len(sizes) + 1), 1)
    return m.reshape(x, sizes)


@function("broadcast_to", "expand")
def broadcast_to(m: Algebra, x: Value, *shape: Any) -> Value:
    sizes = _sizes(shape)
    old = m.shape(x)
    for k, size in enumerate(sizes):
        if size == -1 and k >= len(sizes) - len(old):
            sizes[k] = old[k - len(sizes) + len(old)]
    return m.broadcast(x, sizes)


@function("concatenate", "concat", "cat")
def concatenate(m: Algebra, arrays: Sequence[Value], axis: int = 0) -> Value:
    if not isinstance(arrays, tuple | list) or not arrays:
        raise BuildError("It takes several arrays, in brackets.")
    return m.concatenate(list(arrays), axes_of(m, arrays[0], axis)[0])


@function("stack")
def stack(m: Algebra, arrays: Sequence[Value], axis: int = 0) -> Value:
    return m.concatenate([unsqueeze(m, each, axis) for each in arrays], axis)


@function("flip")
def flip(m: Algebra, x: Value, axis: Axis = None) -> Value:
    for each in axes_of(m, x, axis):
        x = m.slice(x, each, None, None, -1)
    return x


@function("take")
def take(m: Algebra, x: Value, indices: Value, axis: int = 0) -> Value:
    return m.take(x, indices, axes_of(m, x, axis)[0])


@function("embedding")
def embedding(m: Algebra, x: Value, weight: Value) -> Value:
    return m.take(weight, x, 0)


# ---------------------------------------------------------------------------- made of shapes


@function("zeros", "empty")
def zeros(m: Algebra, *shape: Any) -> Value:
    return m.filled(0, _sizes(shape), "f32")


@function("ones")
def ones(m: Algebra, *shape: Any) -> Value:
    return m.filled(1, _sizes(shape), "f32")


@function("full")
def full(m: Algebra, shape: Any, value: float) -> Value:
    return m.filled(value, _sizes([shape]), "f32")


@function("zeros_like", "empty_like")
def zeros_like(m: Algebra, x: Value) -> Value:
    return m.filled(0, m.shape(x), "f32")


@function("ones_like")
def ones_like(m: Algebra, x: Value) -> Value:
    return m.filled(1, m.shape(x), "f32")


@function("arange")
def arange(m: Algebra, stop: int) -> Value:
    return m.iterator(_sizes([stop]), 0)


@function("tril", judge=lambda x, k=0: np.tril(x, k))
def tril(m: Algebra, x: Value, k: int = 0) -> Value:
    return _triangle(m, x, "<=", k)


@function("triu", judge=lambda x, k=0: np.triu(x, k))
def triu(m: Algebra, x: Value, k: int = 0) -> Value:
    return _triangle(m, x, ">=", k)


def _triangle(m: Algebra, x: Value, sign: str, k: int) -> Value:
    if not isinstance(k, int):
        raise Never("The diagonal of a triangle is a whole number.")
    if len(axes_of(m, x, None)) < 2:
        raise BuildError("A triangle is of a matrix.")
    rows, columns = (m.iterator(m.shape(x)[-2:], axis) for axis in (0, 1))
    return where(m, elementwise(m, sign, columns, elementwise(m, "+", rows, k)), x, 0)


@function("pad")
def pad(m: Algebra, x: Value, pads: Any, mode: str = "constant", value: float = 0) -> Value:
    sizes = m.shape(x)
    if isinstance(pads, int):
        pads = [(pads, pads)] * len(sizes)
    if any(isinstance(each, int) for each in pads):  # PyTorch's, the last axis first
        pairs = [tuple(pads[k : k + 2]) for k in range(0, len(pads), 2)][::-1]
        pads = [(0, 0)] * (len(sizes) - len(pairs)) + pairs
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    whole = [tuple(each) for each in pads]
    if len(whole) != len(sizes) or any(len(each) != 2 or min(each) < 0 for each in whole):
        raise BuildError("A padding is a pair of numbers, before and after, for each axis.")
    return m.pad(x, whole, mode, value)
