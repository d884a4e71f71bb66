"""Sums of products: matrix products, einsums, attention, convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dojo_core.from_code.functions import (
    Algebra,
    Value,
    axes_of,
    elementwise,
    function,
    where,
)
from dojo_core.from_code.numeric import Numeric
from dojo_core.from_code.reductions import np_softmax, scaled, softmax
from dojo_core.from_code.views import swapaxes, transposed
from dojo_core.primitives import BuildError


def _letters(count: int) -> tuple[str, ...]:
    return tuple("abcdefghij"[:count])


@function("matmul", "bmm", "mm", judge=lambda x, y: np.matmul(x, y))
def matmul(m: Algebra, x: Value, y: Value) -> Value:
    ranks = []
    for each in (x, y):
        ranks.append(len(axes_of(m, each, None)))
    if min(ranks) == 0 or max(ranks) > 8:
        raise BuildError("A matrix product takes arrays of one to eight axes.")
    if m.shape(x)[-1] != m.shape(y)[-2 if ranks[1] > 1 else -1]:
        raise BuildError(
            f"A matrix product of {list(m.shape(x))} and {list(m.shape(y))}: the last axis of the first is "
            "as long as the last but one of the second."
        )
    batch = _letters(max(*ranks, 2) - 2)
    left = (*batch[len(batch) - max(ranks[0] - 2, 0) :], *(("m",) if ranks[0] > 1 else ()), "k")
    right = (*batch[len(batch) - max(ranks[1] - 2, 0) :], "k", *(("n",) if ranks[1] > 1 else ()))
    wanted = (*batch, *(("m",) if ranks[0] > 1 else ()), *(("n",) if ranks[1] > 1 else ()))
    return m.contract([left, right], wanted, [x, y])


@function("dot", judge=lambda x, y: np.dot(x, y))
def dot(m: Algebra, x: Value, y: Value) -> Value:
    if len(axes_of(m, x, None)) > 2 or len(axes_of(m, y, None)) > 2:
        raise BuildError("dot is of vectors and matrices here: write an einsum.")
    return matmul(m, x, y)


@function("outer")
def outer(m: Algebra, x: Value, y: Value) -> Value:
    if len(axes_of(m, x, None)) != 1 or len(axes_of(m, y, None)) != 1:
        raise BuildError("outer is of two vectors here.")
    return m.contract([("i",), ("j",)], ("i", "j"), [x, y])


@function("linear", judge=lambda x, weight, bias=None: x @ weight.T + (0 if bias is None else bias))
def linear(m: Algebra, x: Value, weight: Value, bias: Value = None) -> Value:
    return scaled(m, matmul(m, x, transposed(m, weight)), None, bias)


@function("addmm", judge=lambda x, y, z: x + y @ z)
def addmm(m: Algebra, x: Value, mat1: Value, mat2: Value) -> Value:
    return elementwise(m, "+", x, matmul(m, mat1, mat2))


def spec_of(spec: str, count: int) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The axes of an einsum's operands and result; without an arrow, letters that stand once, in order."""
    left, arrow, right = spec.replace(" ", "").partition("->")
    parts = left.split(",")
    letters = "".join(parts)
    if not (letters + right).isalpha() or len(set(letters)) > 16:
        raise BuildError("An einsum reads ij,jk->ik, of letters, without an ellipsis.")
    if not arrow:
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if not set(right) <= set(letters) or len(set(right)) < len(right):
        raise BuildError(f"The result {right} of an einsum has letters of its arrays, each once.")
    if len(parts) != count:
        raise BuildError(f"The form {spec!r} is of {len(parts)} arrays, and there are {count}.")
    return [tuple(part) for part in parts], tuple(right)


@function("einsum", judge=lambda spec, *arrays: _np_einsum(spec, *arrays))
def einsum(m: Algebra, spec: str, *arrays: Value) -> Value:
    if not isinstance(spec, str):
        raise BuildError("einsum takes a form such as 'ij,jk->ik' first, then arrays.")
    names, wanted = spec_of(spec, len(arrays))
    for each, array in zip(names, arrays, strict=True):
        if len(axes_of(m, array, None)) != len(each):
            raise BuildError(f"{''.join(each)!r} names {len(each)} axes of {len(m.shape(array))}.")
    return m.contract(names, wanted, arrays)


def _np_einsum(spec: str, *arrays: Any) -> Any:
    einsum(Numeric(), spec, *arrays)  # looks whether it is small enough
    return np.einsum(spec, *arrays)


def _np_attention(q: Any, k: Any, v: Any, is_causal: bool = False) -> Any:
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    return np_softmax(s) @ v


@function("scaled_dot_product_attention", judge=_np_attention)
def attention(m: Algebra, query: Value, key: Value, value: Value, is_causal: bool = False) -> Value:
    s = matmul(m, query, swapaxes(m, key, -1, -2))
    s = elementwise(m, "*", s, 1 / math.sqrt(m.shape(query)[-1]))
    if is_causal:
        rows, columns = (m.iterator(m.shape(s)[-2:], k) for k in (0, 1))
        s = where(m, elementwise(m, "<=", columns, rows), s, -math.inf)
    return matmul(m, softmax(m, s), value)


@function("conv1d")
def conv1d(
    m: Algebra, x: Value, weight: Value, bias: Value = None, stride: Any = 1, padding: Any = 0
) -> Value:
    return _convolution(m, 1, x, weight, bias, stride, padding)


@function("conv2d")
def conv2d(
    m: Algebra, x: Value, weight: Value, bias: Value = None, stride: Any = 1, padding: Any = 0
) -> Value:
    return _convolution(m, 2, x, weight, bias, stride, padding)


def _convolution(
    m: Algebra, rank: int, x: Value, weight: Value, bias: Value, stride: Any, padding: Any
) -> Value:
    """PyTorch's: x (n, c, …), weight (m, c, …), of one group."""
    if len(axes_of(m, x, None)) != rank + 2 or len(axes_of(m, weight, None)) != rank + 2:
        raise BuildError(f"It is of x (n, c, …) and weights (m, c, …), of {rank + 2} axes each.")
    steps, pads = ([each] * rank if isinstance(each, int) else list(each) for each in (stride, padding))
    if m.shape(x)[1] != m.shape(weight)[1]:
        raise BuildError(f"x has {m.shape(x)[1]} channels and the weights have {m.shape(weight)[1]}.")
    if any(pads):
        x = m.pad(x, [(0, 0), (0, 0), *((each, each) for each in pads)], "constant", 0)
    for k in range(rank):
        x = m.window(x, 2 + k, m.shape(weight)[2 + k], steps[k])
    places, taps = ("p", "q")[:rank], ("r", "s")[:rank]
    y = m.contract([("n", "c", *places, *taps), ("m", "c", *taps)], ("n", "m", *places), [x, weight])
    return y if bias is None else elementwise(m, "+", y, m.reshape(bias, (-1, *[1] * rank)))
