"""A model as nodes of a graph (``dojo_core/graph``): each call of an operator is one, written in whichever
kernel the partition puts it.

To learn what a node reads, gives and is, its operator runs once in a kernel of its own, which is thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dojo_core.from_onnx.arrays import array_of
from dojo_core.from_onnx.call import Call, Operator
from dojo_core.from_onnx.ports import Given, NotImported, Reason
from dojo_core.from_onnx.values import (
    FLOATS,
    KNOWN_ELEMENTS,
    Nothing,
    Numbers,
    Refusal,
    Sequence_,
    Tensor,
    Value,
    checked,
    dtype_of,
)
from dojo_core.from_onnx.walk import Walk, completed
from dojo_core.from_onnx.weights import values_of
from dojo_core.graph import nodes as graphs
from dojo_core.graph.building import build
from dojo_core.graph.graph import Graph, as_stored
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
    """A model for ``dojo_core.graph.build``.

    ``tensors`` describe the constants. ``specialised`` are graph inputs that were taken for their values,
    with the operators that asked, ``costly`` encodings that take more than one pass.
    """

    name: str
    inputs: tuple[graphs.Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Numbers]
    tensors: tuple[graphs.Tensor, ...]
    specialised: Mapping[str, str]
    costly: tuple[str, ...]


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


def graph_of(nodes: ModelNodes) -> Graph:
    """The graph of a model's nodes. Raises NotImported where one is no kernel."""
    try:
        return build(nodes.name, nodes.inputs, nodes.nodes, nodes.outputs, nodes.constants, nodes.tensors)
    except (graphs.GraphError, BuildError) as fault:
        raise NotImported([Reason("graph", nodes.name, str(fault), "")]) from None


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
        super().__init__(model, given, specialised, name, folder)
        self.inputs: dict[str, graphs.Tensor] = {}
        self.nodes: list[Node] = []
        self.constants: dict[str, tuple[graphs.Tensor, Numbers]] = {}
        self.outputs: list[str] = []
        self.node_names = _Names()
        # The model's own tensors have their names, whatever is called alike in functions and loops before.
        graph = model.graph
        self.own = {each.name for each in (*graph.input, *graph.initializer, *graph.output)}
        self.own.update(name for node in graph.node for name in node.output)
        self.names = _Names(self.own)
        self.alike: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}  # constants of one name

    def nodes_of(self) -> ModelNodes:
        self.through()
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
            tuple(self.costly),
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
                "Its values lie in a file beside the model.",
                "Import it from its file, so that this is found.",
            )
        return self._constant(element, values, name)

    def _constant(self, element: str, values: Numbers, name: str) -> Tensor:
        """Known values: a constant of the graph, unless they are one number or may say a shape."""
        known = values if values.size <= KNOWN_ELEMENTS else None
        if values.size <= (1 if element in FLOATS or element in ("i8", "u8") else INLINE):
            return Tensor(element, values.shape, values=values, name=name)
        checked(element)
        wire = self._constant_named(element, values, name or "constant")
        return Tensor(element, values.shape, values=known, wire=wire, sources=frozenset([wire]))

    def _constant_named(self, element: str, values: Numbers, name: str) -> str:
        """A constant of the graph, the same one each time that a loop comes by it."""
        before = self.alike.setdefault((name, element, values.shape), [])
        for wire in before:
            if np.array_equal(self.constants[wire][1], values):
                return wire
        wire = self._name(name)
        self.constants[wire] = graphs.Tensor(wire, element, values.shape), values
        before.append(wire)
        return wire

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

        def results_of(call: Call) -> dict[int, Value]:
            results = operator.run(call)
            return {k: results[k] for k, name in enumerate(node.output) if name and k < len(results)}

        def emit(b: Builder, arrays: Sequence[Array]) -> list[Array]:
            given = dict(zip(read, arrays, strict=True))
            results = results_of(_InKernel(self, b, node, schema, inputs, given))
            return [array_of(b, tensor) for value in results.values() for tensor in _arrays(value)]

        read: dict[str, Array] = {}
        trial = _InKernel(self, Builder("trial"), node, schema, inputs, read)
        results = results_of(trial)
        self.costly.update(trial.costly)
        for name, domain in trial.promises():
            self._promise(name, *domain)
        settled = {k: self._settled(value, node.output[k]) for k, value in results.items()}
        made = tuple(tensor for k in results for tensor in _wired(settled[k], results[k]))
        if made:
            name = node.name or f"{node.op_type}_{made[0].name}"
            kind = Kind.OTHER if trial.costly else kind_of(trial.b.body)
            self._add(Node(name, node.op_type, kind, tuple(read), made, emit))
        return [settled.get(k, Nothing()) for k in range(len(node.output))]

    def _promise(self, name: str, low: float, high: float) -> None:
        """Of an input of the graph, that its elements lie between the two."""
        tensor = self.inputs[name]
        before = tensor.domain or (low, high)
        self.inputs[name] = replace(tensor, domain=(max(low, before[0]), min(high, before[1])))

    def deliver(self, name: str, tensor: Tensor) -> str:
        wire = tensor.wire
        if wire != name:
            wire = self._name(name)
            given = (tensor.wire,) if tensor.wire else ()

            def emit(b: Builder, arrays: Sequence[Array]) -> list[Array]:
                return [*arrays] or [array_of(b, tensor)]

            made = graphs.Tensor(wire, tensor.element, tensor.shape)
            self._add(Node(f"output_{wire}", "Identity", Kind.VIEW, given, (made,), emit))
        self.outputs.append(wire)
        return wire

    # ------------------------------------------------------------------ names and values

    def _settled(self, value: Value, name: str) -> Value:
        """A result as what follows reads it: by the name of a tensor of the graph, unless it is known."""
        if isinstance(value, Sequence_):
            items = tuple(self._settled(item, f"{name}_{k}") for k, item in enumerate(value.items))
            return Sequence_(items, value.element)
        if not isinstance(value, Tensor) or value.wire:
            return value
        if value.array is not None:
            return replace(value, array=None, wire=self._name(name))
        return self._constant(value.element, value.values, name) if value.values is not None else value

    def _name(self, name: str) -> str:
        """A tensor's name: the model's own once, else one like it."""
        if name in self.own and not self.depth:
            self.own.discard(name)
            return name
        return self.names.free(name)

    def _add(self, node: Node) -> None:
        self.nodes.append(replace(node, name=self.node_names.free(node.name)))


class _Names:
    """Names, each given once: one that is taken has a number behind it."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.last: dict[str, int] = {}

    def free(self, wished: str) -> str:
        name = wished
        while name in self.taken:
            self.last[wished] = number = self.last.get(wished, 1) + 1
            name = f"{wished}_{number}"
        self.taken.add(name)
        return name


class _InKernel(Call):
    """A call whose tensors are arrays of one kernel, by their names; what is missing becomes an input."""

    def __init__(
        self,
        walk: _InNodes,
        b: Builder,
        node: onnx.NodeProto,
        schema: Any,
        inputs: Sequence[Value | None],
        arrays: dict[str, Array],
    ) -> None:
        super().__init__(walk, b, node, schema, inputs, {})
        self.costly = {}
        self.arrays_of, self.graph_inputs = arrays, walk.inputs

    def of(self, tensor: Tensor) -> Array:
        if not tensor.wire:
            return super().of(tensor)
        if tensor.wire not in self.arrays_of:
            name = f"i{len(self.arrays_of)}"
            self.arrays_of[tensor.wire] = self.b.input(name, tensor.element, tensor.shape)
        return self.arrays_of[tensor.wire]

    def promised(self, indices: Array, size: int) -> None:
        """Of the model's own inputs alone, which are looked at in each run: what is computed may be any."""
        if isinstance(indices.operand, Access) and indices.operand.array in self._own().values():
            super().promised(indices, size)

    def promises(self) -> Iterator[tuple[str, tuple[float, float]]]:
        """What was promised of the graph's inputs, by name."""
        for name, array in self._own().items():
            domain = self.b.inputs[array].domain
            if domain is not None:
                yield name, domain

    def _own(self) -> dict[str, str]:
        """The kernel's arrays that are inputs of the graph, by the inputs' names."""
        arrays = {name: self.arrays_of[name].operand for name in self.graph_inputs if name in self.arrays_of}
        return {name: operand.array for name, operand in arrays.items() if isinstance(operand, Access)}


def _arrays(value: Value) -> Iterator[Tensor]:
    """What of a result is to be computed."""
    if isinstance(value, Sequence_):
        for item in value.items:
            yield from _arrays(item)
    elif isinstance(value, Tensor) and value.array is not None:
        yield value


def _wired(settled: Value, computed: Value) -> Iterator[graphs.Tensor]:
    """The graph's tensors for what is to be computed."""
    if isinstance(settled, Sequence_) and isinstance(computed, Sequence_):
        for each, before in zip(settled.items, computed.items, strict=True):
            yield from _wired(each, before)
    elif isinstance(settled, Tensor) and isinstance(computed, Tensor) and computed.array is not None:
        yield graphs.Tensor(settled.wire, settled.element, settled.shape)
