"""Models as kernels and wiring (docs/graph.md): small ones in NumPy's place, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.graph import Graph, Kind, Model, Node, Tensor, build


class Drawn:
    """A model being drawn: each method adds a node and gives the name of what it makes."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: dict[str, Tensor] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}

    def input(self, name: str, *shape: int, dtype: str = "f32", domain: Any = None) -> str:
        self.inputs[name] = self.tensors[name] = Tensor(name, dtype, shape, domain)
        return name

    def weight(self, name: str, *shape: int) -> str:
        self.constants[name] = self.rng.normal(0, 1 / np.sqrt(shape[-1] or 1), shape).astype(np.float32)
        self.tensors[name] = Tensor(name, "f32", shape)
        return name

    def node(
        self,
        operator: str,
        kind: Kind,
        inputs: Sequence[str],
        shape: Sequence[int],
        emit: Callable[..., Any],
        dtype: str = "f32",
        name: str = "",
    ) -> str:
        made = Tensor(name or f"{operator}_{len(self.nodes)}", dtype, tuple(shape))
        one = lambda b, arrays: [emit(b, *arrays)]  # noqa: E731
        self.nodes.append(Node(f"node {made.name}", operator, kind, tuple(inputs), (made,), one))
        self.tensors[made.name] = made
        return made.name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def formula(self, text: str, *inputs: str, operator: str = "formula") -> str:
        """A formula over a, b, …"""
        shape = np.broadcast_shapes(*map(self.shape, inputs))
        named = lambda b, *arrays: p.formula(b, text, **dict(zip("abc", arrays, strict=False)))  # noqa: E731
        return self.node(operator, Kind.POINTWISE, inputs, shape, named)

    def matmul(self, x: str, w: str) -> str:
        batch = "gh"[: len(self.shape(x)) - 2]
        right = batch if len(self.shape(w)) > 2 else ""
        form = f"{batch}mk,{right}kn->{batch}mn"
        shape = (*self.shape(x)[:-1], self.shape(w)[-1])
        return self.node("matmul", Kind.CONTRACTION, (x, w), shape, lambda b, x, w: p.contract(b, form, x, w))

    def transpose(self, x: str, *axes: int) -> str:
        shape = [self.shape(x)[a] for a in axes]
        return self.node("transpose", Kind.VIEW, (x,), shape, lambda b, x: p.transpose(b, x, axes))

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("reshape", Kind.VIEW, (x,), shape, lambda b, x: p.reshape(b, x, shape))

    def reduce(self, accumulation: str, x: str, axis: int = -1) -> str:
        shape = [*self.shape(x)]
        shape[axis] = 1
        return self.node(
            "reduce",
            Kind.REDUCTION,
            (x,),
            shape,
            lambda b, x: p.reduce(b, accumulation, x, axis, keepdims=True),
        )

    def softmax(self, x: str) -> str:
        e = self.formula("exp(a - b)", x, self.reduce("max", x))
        return self.formula("a / b", e, self.reduce("+", e))

    def built(self, *outputs: str, name: str = "model") -> Graph:
        return build(name, list(self.inputs.values()), self.nodes, outputs, self.constants)

    def drawn(self) -> dict[str, np.ndarray[Any, Any]]:
        """Inputs, within their domains."""
        values: dict[str, np.ndarray[Any, Any]] = {}
        for name, each in self.inputs.items():
            if each.domain:
                low, high = each.domain
                values[name] = self.rng.integers(int(low), int(high) + 1, each.shape)
            else:
                values[name] = self.rng.standard_normal(each.shape).astype(np.float32)
        return values


def test_a_perceptron_of_two_layers() -> None:
    m = Drawn()
    x, w, v = m.input("x", 8, 12), m.weight("w", 12, 16), m.weight("v", 16, 4)
    bias = m.weight("bias", 16)
    h = m.formula("max(a + b, 0)", m.matmul(x, w), bias, operator="relu")
    graph = m.built(m.matmul(h, v))

    inputs = m.drawn()
    (y,) = Model(graph).run(inputs).values()
    c = m.constants
    np.testing.assert_allclose(y, np.maximum(inputs["x"] @ c["w"] + c["bias"], 0) @ c["v"], atol=1e-5)
