"""A model drawn node by node, as a frontend would give it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.graph import Graph, Kind
from dojo_core.graph.sketch import Sketch


class Drawn(Sketch):
    """Nodes called after their operator and their number."""

    def weight(self, name: str, *shape: int) -> str:
        return self.constant(name, self.rng.normal(0, 0.3, shape).astype(np.float32))

    def map(self, operator: str, text: str, *inputs: str) -> str:
        """Element by element: a formula over a, b and c."""
        return self.formula("", operator, text, *inputs)

    def matmul(self, x: str, w: str, form: str = "") -> str:
        """A product as NumPy's, or of another form."""
        batch = "gh"[: len(self.shape(x)) - 2]
        form = form or f"{batch}mk,{batch if len(self.shape(w)) > 2 else ''}kn->{batch}mn"
        return self.contract("", "matmul", form, x, w)

    def convolve(self, x: str, w: str, pad: int = 0) -> str:
        (n, _, *places), (m, _, *taps) = self.shape(x), self.shape(w)
        if pad:
            around = [(0, 0), (0, 0), *[(pad, pad)] * len(places)]
            places = [size + 2 * pad for size in places]
            x = self.node(
                "", "pad", Kind.COPY, (x,), (*self.shape(x)[:2], *places), lambda b, x: p.pad(b, x, around)
            )
        shape = (n, m, *(size - tap + 1 for size, tap in zip(places, taps, strict=True)))
        return self.node("", "conv", Kind.CONTRACTION, (x, w), shape, lambda b, x, w: p.convolve(b, x, w))

    def transpose(self, x: str, *axes: int) -> str:
        shape = [self.shape(x)[axis] for axis in axes]
        return self.view("", "transpose", x, shape, lambda b, x: p.transpose(b, x, axes))

    def reshape(self, x: str, *shape: int) -> str:
        return self.view("", "reshape", x, shape, lambda b, x: p.reshape(b, x, shape))

    def expand(self, x: str, *shape: int) -> str:
        return self.view("", "expand", x, shape, lambda b, x: p.broadcast(b, x, shape))

    def slice(self, x: str, start: int, stop: int) -> str:
        """Columns."""
        shape = (*self.shape(x)[:-1], stop - start)
        return self.view("", "slice", x, shape, lambda b, x: p.slice_(b, x, -1, start, stop))

    def concatenate(self, *inputs: str) -> str:
        """Columns."""
        shape = (*self.shape(inputs[0])[:-1], sum(self.shape(name)[-1] for name in inputs))
        return self.node("", "concat", Kind.COPY, inputs, shape, lambda b, *x: p.concatenate(b, x, -1))

    def reduce(self, operator: str, x: str, *axes: int) -> str:
        """``sum`` or ``max`` over axes, which stay with the size 1."""
        shape = [1 if k in axes else size for k, size in enumerate(self.shape(x))]
        sign = {"sum": "+", "max": "max"}[operator]
        return self.node(
            "", operator, Kind.REDUCTION, (x,), shape, lambda b, x: p.reduce(b, sign, x, axes, keepdims=True)
        )

    def softmax(self, x: str) -> str:
        last = len(self.shape(x)) - 1
        e = self.map("exp", "exp(a - b)", x, self.reduce("max", x, last))
        return self.map("div", "a / b", e, self.reduce("sum", e, last))

    def model(self, *outputs: str) -> Graph:
        return self.built("model", *outputs)

    def drawn(self) -> dict[str, np.ndarray[Any, Any]]:
        """Values for the inputs, within their domains."""
        values: dict[str, np.ndarray[Any, Any]] = {}
        for name, each in self.inputs.items():
            low, high = each.domain or (0, 0)
            whole = self.rng.integers(int(low), int(high) + 1, each.shape)
            values[name] = whole if each.domain else self.rng.standard_normal(each.shape).astype(np.float32)
        return values
