"""A model drawn node by node, as a frontend would give it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.graph import Graph, Kind, Node, Tensor, build

Emit = Callable[..., Any]


class Drawn:
    """Each method adds a node and gives the name of the tensor that it makes."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: dict[str, Tensor] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}

    def input(self, name: str, *shape: int, dtype: str = "f32", domain: Any = None) -> str:
        self.inputs[name] = self.tensors[name] = Tensor(name, dtype, shape, domain)
        return name

    def constant(self, name: str, values: Any) -> str:
        self.constants[name] = np.asarray(values)
        self.tensors[name] = Tensor(name, "f32", self.constants[name].shape)
        return name

    def weight(self, name: str, *shape: int) -> str:
        return self.constant(name, self.rng.normal(0, 0.3, shape).astype(np.float32))

    def node(self, operator: str, kind: Kind, inputs: Sequence[str], shape: Sequence[int], emit: Emit) -> str:
        """A node of one result, called after its operator and its number."""
        made = Tensor(f"{operator}{len(self.nodes)}", "f32", tuple(shape))

        def all_of(b: p.Builder, arrays: Sequence[p.Array]) -> list[p.Array]:
            return [emit(b, *arrays)]

        self.nodes.append(Node(made.name, operator, kind, tuple(inputs), (made,), all_of))
        self.tensors[made.name] = made
        return made.name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def map(self, operator: str, text: str, *inputs: str) -> str:
        """Element by element: a formula over a, b and c."""
        shape = np.broadcast_shapes(*map(self.shape, inputs))

        def emit(b: p.Builder, *arrays: p.Array) -> p.Array:
            named: dict[str, Any] = dict(zip("abc", arrays, strict=False))
            return p.formula(b, text, **named)

        return self.node(operator, Kind.POINTWISE, inputs, shape, emit)

    def matmul(self, x: str, w: str, form: str = "") -> str:
        """A product as NumPy's, or of another form."""
        batch = "gh"[: len(self.shape(x)) - 2]
        form = form or f"{batch}mk,{batch if len(self.shape(w)) > 2 else ''}kn->{batch}mn"
        sizes = dict(
            zip(form.replace(",", "").partition("->")[0], self.shape(x) + self.shape(w), strict=True)
        )
        shape = [sizes[letter] for letter in form.partition("->")[2]]
        return self.node("matmul", Kind.CONTRACTION, (x, w), shape, lambda b, x, w: p.contract(b, form, x, w))

    def convolve(self, x: str, w: str, pad: int = 0) -> str:
        (n, _, *places), (m, _, *taps) = self.shape(x), self.shape(w)
        if pad:
            around = [(0, 0), (0, 0), *[(pad, pad)] * len(places)]
            places = [size + 2 * pad for size in places]
            x = self.node(
                "pad", Kind.COPY, (x,), (*self.shape(x)[:2], *places), lambda b, x: p.pad(b, x, around)
            )
        shape = (n, m, *(size - tap + 1 for size, tap in zip(places, taps, strict=True)))
        return self.node("conv", Kind.CONTRACTION, (x, w), shape, lambda b, x, w: p.convolve(b, x, w))

    def transpose(self, x: str, *axes: int) -> str:
        shape = [self.shape(x)[axis] for axis in axes]
        return self.node("transpose", Kind.VIEW, (x,), shape, lambda b, x: p.transpose(b, x, axes))

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("reshape", Kind.VIEW, (x,), shape, lambda b, x: p.reshape(b, x, shape))

    def expand(self, x: str, *shape: int) -> str:
        return self.node("expand", Kind.VIEW, (x,), shape, lambda b, x: p.broadcast(b, x, shape))

    def slice(self, x: str, start: int, stop: int) -> str:
        """Columns."""
        shape = (*self.shape(x)[:-1], stop - start)
        return self.node("slice", Kind.VIEW, (x,), shape, lambda b, x: p.slice_(b, x, -1, start, stop))

    def concatenate(self, *inputs: str) -> str:
        """Columns."""
        shape = (*self.shape(inputs[0])[:-1], sum(self.shape(name)[-1] for name in inputs))
        return self.node("concat", Kind.COPY, inputs, shape, lambda b, *x: p.concatenate(b, x, -1))

    def reduce(self, operator: str, x: str, *axes: int) -> str:
        """``sum`` or ``max`` over axes, which stay with the size 1."""
        shape = [1 if k in axes else size for k, size in enumerate(self.shape(x))]
        sign = {"sum": "+", "max": "max"}[operator]
        return self.node(
            operator, Kind.REDUCTION, (x,), shape, lambda b, x: p.reduce(b, sign, x, axes, keepdims=True)
        )

    def softmax(self, x: str) -> str:
        last = len(self.shape(x)) - 1
        e = self.map("exp", "exp(a - b)", x, self.reduce("max", x, last))
        return self.map("div", "a / b", e, self.reduce("sum", e, last))

    def built(self, *outputs: str) -> Graph:
        return build("model", list(self.inputs.values()), self.nodes, outputs, self.constants)

    def drawn(self) -> dict[str, np.ndarray[Any, Any]]:
        """Values for the inputs, within their domains."""
        values: dict[str, np.ndarray[Any, Any]] = {}
        for name, each in self.inputs.items():
            low, high = each.domain or (0, 0)
            whole = self.rng.integers(int(low), int(high) + 1, each.shape)
            values[name] = whole if each.domain else self.rng.standard_normal(each.shape).astype(np.float32)
        return values
