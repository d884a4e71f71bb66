"""Comparisons, logic, bits, and the choice between two values."""

from __future__ import annotations

from agents.torch_backend.call import Call, Value, aten, is_float
from dojo_core import primitives as p
from dojo_core.graph.nodes import Kind
from dojo_core.primitives import Array

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_WORDS = ("and", "or", "xor")


def _comparison(name: str, sign: str) -> None:
    @aten(f"{name}.Tensor", f"{name}.Scalar", kind=Kind.POINTWISE)
    def translate(c: Call, self: Value, other: Value) -> Array:
        return c.compare(sign, self, other)


def _test(name: str) -> None:
    @aten(name, kind=Kind.POINTWISE)
    def translate(c: Call, self: Array) -> Array:
        return p.elementwise(c.b, name, self) if is_float(self.dtype) else p.filled(0, "bool", self.shape)


def _logic(word: str) -> None:
    @aten(f"logical_{word}", kind=Kind.POINTWISE)
    def logical(c: Call, self: Value, other: Value) -> Array:
        return p.elementwise(c.b, word, c.truth(self), c.truth(other))

    @aten(f"bitwise_{word}.Tensor", f"bitwise_{word}.Scalar", kind=Kind.POINTWISE)
    def bitwise(c: Call, self: Value, other: Value) -> Array:
        return logical(c, self, other) if c.dtype == "bool" else c.map(word, self, other)


for _name, _sign in _SIGNS.items():
    _comparison(_name, _sign)
for _name in ("isnan", "isinf"):
    _test(_name)
for _word in _WORDS:
    _logic(_word)


@aten("logical_not", kind=Kind.POINTWISE)
def logical_not(c: Call, self: Array) -> Array:
    return p.elementwise(c.b, "not", c.truth(self))


@aten("bitwise_not", kind=Kind.POINTWISE)
def bitwise_not(c: Call, self: Array) -> Array:
    return p.elementwise(c.b, "not", self)


@aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar", kind=Kind.POINTWISE)
def where(c: Call, condition: Array, self: Value, other: Value) -> Array:
    yes, no = c.operands([self, other], c.computed)
    return p.select(c.b, c.truth(condition), yes, no, dtype=c.dtype)


@aten("masked_fill.Scalar", "masked_fill.Tensor", kind=Kind.POINTWISE)
def masked_fill(c: Call, self: Array, mask: Array, value: Value) -> Array:
    return where(c, mask, value, self)
