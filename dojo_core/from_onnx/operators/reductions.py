"""Reductions."""

from __future__ import annotations

import math

import numpy as np

from dojo_core import primitives as p
from dojo_core.from_onnx.arrays import joint
from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import FLOATS, Refusal, Tensor, known
from dojo_core.primitives.array import Array

_PLAIN = {"ReduceSum": "+", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "*"}
_SUMMED = {"ReduceL1": "abs(x)", "ReduceL2": "x * x", "ReduceSumSquare": "x * x", "ReduceLogSumExp": ""}


def axes_of(c: Call) -> list[int] | None:
    """The axes of a reduction; None: it changes nothing but the elements."""
    since = 13 if c.name == "ReduceSum" else 18
    given = c.attribute("axes") if c.since < since else c.ints(1) if c.has(1) else None
    if not given:
        if c.flag("noop_with_empty_axes"):
            return None
        return list(range(c.rank(0)))
    axes = [c.axis_of(a, c.rank(0)) for a in given]
    if len(set(axes)) < len(axes):
        raise Refusal(f"Its axes {list(given)} name one twice.", "Mend the model.")
    return axes


@operator(*_PLAIN, *_SUMMED, "ReduceMean", "ReduceLogSum")
def reduce(c: Call) -> Array | Tensor:
    axes, keep = axes_of(c), bool(c.attribute("keepdims", 1))
    shape, element = c.shape(0), c.element(0)
    x = c.computed(0)
    wide = joint([x.dtype])
    over = axes if axes is not None else []
    if any(shape[a] == 0 for a in over):
        return _of_none(c, over, keep, element)
    name = c.name
    if name in _PLAIN:
        if axes is None:
            return c.tensor(0)
        return c.reduce(_PLAIN[name], x, over, keep)
    if name == "ReduceMean":
        return c.mean(x, over, keep) if axes is not None else c.tensor(0)
    if name == "ReduceLogSumExp":
        if wide not in FLOATS:
            return _whole(c, x, over, keep)
        top = c.reduce("max", x, over, True)
        top = c.formula("select(abs(m) == inf, 0, m)", m=top)
        total = c.reduce("+", c.formula("exp(x - m)", x=x, m=top), over, True)
        result = c.formula("log(s) + m", s=total, m=top)
        return result if keep or not over else c.squeeze(result, over)
    if name in _SUMMED:
        x = c.formula(_SUMMED[name], x=x, dtype=wide)
    total = c.reduce("+", x, over, keep)
    if name == "ReduceL2":
        return _root(c, total, "sqrt")
    return _root(c, total, "log") if name == "ReduceLogSum" else total


def _root(c: Call, total: Array, function: str) -> Array:
    if total.dtype in FLOATS:
        return c.map(function, total)
    return c.convert(c.map(function, c.convert(total, "f64")), total.dtype)


def _whole(c: Call, x: Array, over: list[int], keep: bool) -> Array:
    total = c.reduce("+", c.map("exp", c.convert(x, "f64")), over, keep)
    return c.convert(c.map("log", total), x.dtype)


def _of_none(c: Call, over: list[int], keep: bool, element: str) -> Tensor:
    """Over no elements: the identity."""
    shape = [1 if k in over else s for k, s in enumerate(c.shape(0)) if keep or k not in over]
    infinite = element in FLOATS
    lowest = (
        -math.inf
        if infinite
        else 0
        if element == "bool" or element[0] == "u"
        else -(2 ** (int(element[1:]) - 1))
    )
    highest = (
        math.inf
        if infinite
        else 1
        if element == "bool"
        else 2 ** (int(element[1:]) - (element[0] != "u")) - 1
    )
    value = {
        "ReduceMax": lowest, "ReduceMin": highest, "ReduceProd": 1, "ReduceLogSum": -math.inf,
        "ReduceLogSumExp": -math.inf, "ReduceMean": math.nan,
    }.get(c.name, 0)  # fmt: skip
    if value != value and element not in FLOATS:
        raise Refusal("It is the mean of no whole numbers.", "Mend the model.")
    return known(np.full(shape, value), element)


@operator("ArgMax", "ArgMin")
def arg_reduce(c: Call) -> Array:
    axis, keep = c.axis(default=0), bool(c.attribute("keepdims", 1))
    last = c.since >= 12 and c.flag("select_last_index")
    _, place = p.arg_reduce(c.b, "max" if c.name == "ArgMax" else "min", c.computed(0), axis, keep, last=last)
    return place


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(c: Call) -> Array:
    x, over = c.computed(0), list(range(2, c.rank(0)))
    if c.name == "GlobalAveragePool":
        return c.mean(x, over)
    if c.name == "GlobalMaxPool":
        return c.reduce("max", x, over)
    return norm(c, x, over, int(c.attribute("p", 2)))


def norm(c: Call, x: Array, over: list[int], p_: int) -> Array:
    """The p-norm along axes, which are kept."""
    if p_ == 1:
        return c.reduce("+", c.map("abs", x), over)
    if p_ == 2:
        return c.map("sqrt", c.reduce("+", c.formula("x * x", x=x), over))
    return c.map("pow", c.reduce("+", c.formula("pow(abs(x), p)", x=x, p=p_), over), 1 / p_)


@operator("LpNormalization")
def lp_normalization(c: Call) -> Array:
    x, axis = c.computed(0), c.axis(default=-1)
    size = norm(c, x, [axis], int(c.attribute("p", 2)))
    return c.formula("select(n == 0, 0, x / n)", x=x, n=size)


@operator("Hardmax")
def hardmax(c: Call) -> Array:
    x, shape = c.computed(0), c.shape(0)
    axis = c.axis(default=-1 if c.since >= 13 else 1)
    flat = c.since < 13
    if flat:
        x = c.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
    over = 1 if flat else axis
    _, place = p.arg_reduce(c.b, "max", x, over, True)
    one = c.convert(c.map("==", c.iota(x.shape, over), place), joint([x.dtype]))
    return c.reshape(one, shape) if flat else one


@operator("Softmax", "LogSoftmax")
def softmax(c: Call) -> Array:
    x, shape = c.computed(0), c.shape(0)
    axis = c.axis(default=-1 if c.since >= 13 else 1)
    if c.since < 13:
        x = c.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
    over = [1 if c.since < 13 else axis]
    top = c.reduce("max", x, over)
    if c.name == "Softmax":
        power = c.formula("exp(x - m)", x=x, m=top)
        result = c.formula("e / s", e=power, s=c.reduce("+", power, over))
    else:
        lower = c.formula("x - m", x=x, m=top)
        total = c.reduce("+", c.map("exp", lower), over)
        result = c.formula("d - log(s)", d=lower, s=total)
    return c.reshape(result, shape) if c.since < 13 else result
