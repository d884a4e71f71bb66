"""A model in the making: nodes added one by one, as a frontend gives them, each by what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dojo_core import primitives as p
from dojo_core.graph.building import build
from dojo_core.graph.graph import Graph
from dojo_core.graph.nodes import Kind, Node, Tensor

Emit = Callable[..., p.Array]


class Sketch:
    """Each method adds a node, an input or a constant, and gives the name of the tensor that it makes.

    A node without a name is called after its operator and its number. What has no dtype is f32.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: dict[str, Tensor] = {}
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def input(
        self, name: str, *shape: int, dtype: str = "f32", domain: tuple[float, float] | None = None
    ) -> str:
        self.inputs[name] = self.tensors[name] = Tensor(name, dtype, shape, domain)
        return name

    def constant(self, name: str, values: Any) -> str:
        self.constants[name] = np.asarray(values)
        self.tensors[name] = Tensor(name, "f32", self.constants[name].shape)
        return name

    def node(
        self, name: str, operator: str, kind: Kind, inputs: Sequence[str], shape: Sequence[int], emit: Emit
    ) -> str:
        """A node of one result, which ``emit`` gives from a builder and the arrays of the inputs."""
        made = Tensor(name or f"{operator}{len(self.nodes)}", "f32", tuple(shape))
        self.nodes.append(
            Node(made.name, operator, kind, tuple(inputs), (made,), lambda b, arrays: [emit(b, *arrays)])
        )
        self.tensors[made.name] = made
        return made.name

    def contract(self, name: str, operator: str, form: str, *inputs: str) -> str:
        """A sum of products, such as ``mk,kn->mn``."""
        letters, result = form.split("->")
        sizes = {
            letter: size
            for part, each in zip(letters.split(","), inputs, strict=True)
            for letter, size in zip(part, self.shape(each), strict=True)
        }
        shape = [sizes[letter] for letter in result]
        return self.node(
            name, operator, Kind.CONTRACTION, inputs, shape, lambda b, *arrays: p.contract(b, form, *arrays)
        )

    def formula(self, name: str, operator: str, text: str, *inputs: str) -> str:
        """Element by element: a formula over a, b, c of inputs that are broadcast together."""
        shape = np.broadcast_shapes(*map(self.shape, inputs))

        def emit(b: p.Builder, *arrays: p.Array) -> p.Array:
            return p.formula(b, text, dtype=None, **dict(zip("abc", arrays, strict=False)))

        return self.node(name, operator, Kind.POINTWISE, inputs, shape, emit)

    def view(self, name: str, operator: str, x: str, shape: Sequence[int], emit: Emit) -> str:
        return self.node(name, operator, Kind.VIEW, [x], shape, emit)

    def built(self, name: str, *outputs: str) -> Graph:
        return build(name, list(self.inputs.values()), self.nodes, outputs, self.constants)
