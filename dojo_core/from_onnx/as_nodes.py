"""A model as nodes of a graph (``dojo_core/graph``): each call of an operator is one, written in whichever
kernel the partition puts it.

To learn what a node reads, gives and is, its operator runs once in a kernel of its own, which is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dojo_core import graph as graphs
from dojo_core.from_onnx.arrays import stored
from dojo_core.from_onnx.call import Call, Operator
from dojo_core.from_onnx.ports import Given, NotImported, Port, Reason
from dojo_core.from_onnx.values import (
    FLOATS,
    KNOWN_ELEMENTS,
    Numbers,
    Refusal,
    Sequence_,
    Tensor,
    Value,
    checked,
    dtype_of,
)
from dojo_core.from_onnx.walk import Walk, completed, unlike
from dojo_core.from_onnx.weights import values_of
from dojo_core.graph.graph import as_stored
from dojo_core.graph.kinds import kind_of
from dojo_core.graph.nodes import Kind, Node
from dojo_core.primitives.array import Array, BuildError
from dojo_core.primitives.builder import Builder
from dojo_core.program.tree import Access

if TYPE_CHECKING:
    import onnx

INLINE = 4096  # whole numbers that are worked with at import, as shapes and places are


@dataclass(frozen=True)
class ModelNodes:
    """A model for ``dojo_core.graph.build``, and how its inputs and outputs come by their tensors.

    ``tensors`` describe the constants. ``specialised`` are graph inputs that were taken for their values, with
    the operators that asked.
    """

    name: str
    inputs: tuple[graphs.Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Numbers]
    tensors: tuple[graphs.Tensor, ...]
    specialised: Mapping[str, str]
    input_ports: tuple[Port, ...]
    output_ports: tuple[Port, ...]


def nodes_of(
    model: onnx.ModelProto,
    given: Mapping[str, Given] | None = None,
    name: str = "",
    folder: Path | None = None,
) -> ModelNodes:
    """A checked model as nodes. Raises NotImported with all reasons.

    ``folder`` is where weights lie that are not in the model itself.
    """
    return completed(lambda asked: _InNodes(model, given or {}, asked, name, folder).nodes_of())


class _InNodes(Walk):
    """A walk that makes each call of an operator a node."""

    def __init__(
        self,
        model: onnx.ModelProto,
        given: Mapping[str, Given],
        specialised: Mapping[str, str],
        name: str,
        folder: Path | None,
    ) -> None:
        super().__init__(model, given, specialised, name)
        self.folder = folder
        self.inputs: dict[str, graphs.Tensor] = {}
        self.nodes: list[Node] = []
        self.constants: dict[str, tuple[graphs.Tensor, Numbers]] = {}
        self.outputs: list[str] = []
        self.node_names: set[str] = set()
        # Names of the model's own tensors, which no other takes before they do.
        graph = model.graph
        self.reserved = {each.name for each in (*graph.input, *graph.initializer, *graph.output)}
        self.reserved.update(name for node in graph.node for name in node.output)
        self.taken: set[str] = set()

    def nodes_of(self) -> ModelNodes:
        inputs, outputs = self.through()
        read = {*self.outputs, *(name for node in self.nodes for name in node.inputs)}
        used = [(tensor, values) for name, (tensor, values) in self.constants.items() if name in read]
        return ModelNodes(
            self.name,
            tuple(self.inputs.values()),
            tuple(self.nodes),
            tuple(self.outputs),
            {tensor.name: as_stored(tensor, values) for tensor, values in used},
            tuple(tensor for tensor, _ in used),
            dict(self.specialised),
            tuple(inputs),
            tuple(outputs),
        )

    def data(self, name: str, element: str, shape: tuple[int, ...]) -> tuple[Tensor, str]:
        wire = self._name(name)
        self.inputs[wire] = graphs.Tensor(wire, element, shape)
        return Tensor(element, shape, wire=wire, sources=frozenset([name])), wire

    def constant(self, tensor: onnx.TensorProto, name: str = "") -> Tensor:
        element = dtype_of(tensor.data_type)
        values = values_of(tensor, self.folder)
        if values is None:
            raise Refusal(
                "Its values lie in a file beside the model.", "Import it from its file, so that this is found."
            )
        return self._constant(element, values, name)

    def _constant(self, element: str, values: Numbers, name: str) -> Tensor:
        """Known values: a constant of the graph, unless they are one number or may say a shape."""
        known = values if values.size <= KNOWN_ELEMENTS else None
        if values.size <= (1 if element in FLOATS or element in ("i8", "u8") else INLINE):
            return Tensor(element, values.shape, values=values, name=name)
        checked(element)
        wire = self._name(name or "constant")
        self.constants[wire] = graphs.Tensor(wire, element, values.shape), values
        return Tensor(element, values.shape, values=known, wire=wire, sources=frozenset([wire]))

    def call(
        self,
        operator: Operator,
        node: onnx.NodeProto,
        schema: Any,
        inputs: Sequence[Value | None],
        scope: Mapping[str, Value],
    ) -> list[Value]:
        if operator.control:
            return operator.run(Call(self, Builder("control"), node, schema, inputs, scope))

        def emitted(b: Builder, arrays: dict[str, Array]) -> tuple[list[Value], list[Tensor]]:
            results = operator.run(_InKernel(self, b, node, schema, inputs, arrays))
            return results, [t for value in results for t in _computed(value)]

        def emit(b: Builder, arrays: Sequence[Array]) -> list[Array]:
            _, tensors = emitted(b, dict(zip(read, arrays, strict=True)))
            return [stored(b, _array(tensor), tensor.element) for tensor in tensors]

        trial, read = Builder("trial"), dict[str, Array]()
        results, computed = emitted(trial, read)
        names = iter([name for name in node.output if name])
        wired = {id(t): self._wired(t, next(names, node.op_type)) for t in computed}
        made = tuple(graphs.Tensor(t.wire, t.element, t.shape) for t in wired.values())
        if made:
            kind = kind_of(trial.body)
            self._add(node.name or f"{node.op_type}_{made[0].name}", node.op_type, kind, tuple(read), made, emit)
        return [self._settled(value, wired, node.op_type) for value in results]

    def deliver(self, name: str, tensor: Tensor) -> str:
        wire = tensor.wire
        if wire != name:
            wire = self._name(name)
            given = (tensor.wire,) if tensor.wire else ()

            def emit(b: Builder, arrays: Sequence[Array]) -> list[Array]:
                return [*arrays] or [_InKernel.of_known(b, tensor)]

            made = graphs.Tensor(wire, tensor.element, tensor.shape)
            self._add(f"output_{wire}", "Identity", Kind.VIEW, given, (made,), emit)
        self.outputs.append(wire)
        return wire

    # ------------------------------------------------------------------ names and values

    def _name(self, name: str) -> str:
        """A tensor's name: the model's own once, else one like it."""
        if name in self.reserved:
            self.reserved.discard(name)
            self.taken.add(name)
            return name
        return _unlike(name, self.taken | self.reserved)

    def _add(self, name: str, *about: Any) -> None:
        pass

    def _wired(self, tensor: Tensor, name: str) -> Tensor:
        pass
