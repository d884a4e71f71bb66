"""Comparisons and logic."""

from __future__ import annotations

from dojo_core.from_onnx.call import Call, operator
from dojo_core.from_onnx.values import Refusal
from dojo_core.primitives.array import Array

_SIGNS = {"Equal": "==", "Greater": ">", "Less": "<", "GreaterOrEqual": ">=", "LessOrEqual": "<="}


@operator(*_SIGNS)
def compare(c: Call) -> Array:
    return c.map(_SIGNS[c.name], c.array(0), c.array(1))


@operator("And")
def both(c: Call) -> Array:
    return c.map("min", c.array(0), c.array(1), dtype="bool")


@operator("Or")
def either(c: Call) -> Array:
    return c.map("max", c.array(0), c.array(1), dtype="bool")


@operator("Xor")
def unlike(c: Call) -> Array:
    return c.map("!=", c.array(0), c.array(1))


@operator("Not")
def negated(c: Call) -> Array:
    return c.negated(c.array(0))


@operator("IsNaN")
def is_nan(c: Call) -> Array:
    x = c.array(0)
    return c.map("!=", x, x)


@operator("IsInf")
def is_inf(c: Call) -> Array:
    x = c.computed(0)
    positive, negative = c.flag("detect_positive"), c.flag("detect_negative")
    if positive and negative:
        return c.formula("abs(x) == inf", x=x, dtype="bool")
    if not positive and not negative:
        raise Refusal("It looks for neither infinity.", "Mend the model: detect_positive or detect_negative.")
    return c.map("==", x, float("inf") if positive else float("-inf"))
