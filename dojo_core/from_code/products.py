"""Sums of products: matrix products, einsums, attention, convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

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


@function("tensordot", judge=lambda x, y, axis=2: np.tensordot(x, y, axis))
def tensordot(m: Algebra, x: Value, y: Value, axis: Any = 2) -> Value:
    left, right = (list(range(len(axes_of(m, each, None)))) for each in (x, y))
    if isinstance(axis, int):
        pairs = list(zip(left[len(left) - axis :], right[:axis], strict=False))
    else:
        ours, theirs = ((each,) if isinstance(each, int) else each for each in axis)
        pairs = list(zip(axes_of(m, x, ours), axes_of(m, y, theirs), strict=False))
    summed = {theirs: f"x{ours}" for ours, theirs in pairs}
    names = [f"x{k}" for k in left], [summed.get(k, f"y{k}") for k in right]
    wanted = [name for each in names for name in each if name not in summed.values()]
    return m.contract([tuple(names[0]), tuple(names[1])], tuple(wanted), [x, y])


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


def _lettered(spec: str, ranks: Sequence[int]) -> str:
    """An einsum's form with letters in place of an ellipsis, by the ranks of its operands."""
    left, arrow, right = spec.replace(" ", "").partition("->")
    parts = left.split(",")
    if "..." not in spec or len(parts) != len(ranks):
        return spec
    free = [letter for letter in "zyxwvutsrqponm" if letter not in spec]
    named = [rank - len(part.replace("...", "")) for part, rank in zip(parts, ranks, strict=True)]
    dots = [free[: max(count, 0)][::-1] for count in named]
    most = max((each for part, each in zip(parts, dots, strict=True) if "..." in part), key=len, default=[])
    filled = [part.replace("...", "".join(each)) for part, each in zip(parts, dots, strict=True)]
    if not arrow:
        letters = "".join(parts).replace(".", "")
        right = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    return f"{','.join(filled)}->{right.replace('...', ''.join(most))}"


@function("einsum", judge=lambda spec, *arrays: _np_einsum(spec, *arrays))
def einsum(m: Algebra, spec: str, *arrays: Value) -> Value:
    if not isinstance(spec, str):
        raise BuildError("einsum takes a form such as 'ij,jk->ik' first, then arrays.")
    names, wanted = spec_of(_lettered(spec, [len(axes_of(m, a, None)) for a in arrays]), len(arrays))
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


def _np_pool(x: Any, kernel_size: Any, stride: Any, reduction: Any) -> Any:
    steps = _steps(Numeric(), x, kernel_size, stride)
    view = sliding_window_view(x, _pair(kernel_size), (-2, -1))[..., :: steps[0], :: steps[1], :, :]
    return reduction(view, axis=(-2, -1))


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


@function("max_pool2d", judge=lambda x, kernel_size, stride=None: _np_pool(x, kernel_size, stride, np.max))
def max_pool2d(m: Algebra, x: Value, kernel_size: Any, stride: Any = None) -> Value:
    return m.reduce("max", *_windows(m, x, kernel_size, stride), False)


@function("avg_pool2d", judge=lambda x, kernel_size, stride=None: _np_pool(x, kernel_size, stride, np.mean))
def avg_pool2d(m: Algebra, x: Value, kernel_size: Any, stride: Any = None) -> Value:
    total = m.reduce("+", *_windows(m, x, kernel_size, stride), False)
    return elementwise(m, "/", total, math.prod(_pair(kernel_size)))


def _steps(m: Algebra, x: Value, kernel_size: Any, stride: Any) -> tuple[int, int]:
    """How far windows go. Raises BuildError where they do not fit."""
    if len(axes_of(m, x, None)) < 3:
        raise BuildError("It pools x (c, h, w) or (n, c, h, w).")
    for width, size in zip(_pair(kernel_size), m.shape(x)[-2:], strict=True):
        if size < width:
            raise BuildError(f"A window of {width} is longer than an axis of {size}.")
    return _pair(stride if stride is not None else kernel_size)


def _windows(m: Algebra, x: Value, kernel_size: Any, stride: Any) -> tuple[Value, tuple[int, int]]:
    """The windows over the last two axes, and the axes within them."""
    steps, rank = _steps(m, x, kernel_size, stride), len(m.shape(x))
    for k, width in enumerate(_pair(kernel_size)):
        x = m.window(x, rank - 2 + k, width, steps[k])
    return x, (rank, rank + 1)
