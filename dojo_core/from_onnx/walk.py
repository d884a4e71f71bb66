"""Through a model's nodes in their order, each by its operator or by the body that the standard gives it.

What operators make arrays in is left to who walks: one kernel's text (``importer.py``), or nodes of a graph
that can be made in any kernel (``as_nodes.py``).

A value that says a shape (axes, pads, sizes, k, …) is known at import, or asked for: where it comes from a
graph input whose value was given, the import begins again with that input as a constant, and says so. Data is
never known: an operator that asks for the value of an input is written so in its file.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dojo_core.from_onnx import folding
from dojo_core.from_onnx.bodies import body_of, bound, without_inputs
from dojo_core.from_onnx.call import OPERATORS, Operator
from dojo_core.from_onnx.ports import Given, NotImported, Port, Reason
from dojo_core.from_onnx.reader import OLDEST, opset
from dojo_core.from_onnx.values import (
    Asked,
    Lost,
    Nothing,
    Refusal,
    Sequence_,
    Tensor,
    Value,
    checked,
    dtype_of,
    known,
)
from dojo_core.primitives.array import BuildError, identifier
from dojo_core.program.functions import FUNCTIONS

if TYPE_CHECKING:
    import onnx

STEPS = 20_000  # nodes that are gone through, those of bodies and of unrolled loops among them
DEPTH = 24  # bodies and subgraphs in one another
ASKED_OPSET = 21  # of the operators that control flow asks for

Walked = TypeVar("Walked")


def completed(attempt: Callable[[Mapping[str, str]], Walked]) -> Walked:
    """What an attempt gives once it has as constants the graph inputs that it asks for; it is given their
    names, each with the operator that asked."""
    import dojo_core.from_onnx.operators  # noqa: F401  # registers them

    specialised: dict[str, str] = {}
    while True:
        try:
            return attempt(specialised)
        except Asked as asked:
            specialised.update(dict.fromkeys(sorted(asked.names), asked.operator))


class Walk(ABC):
    """One way through a model: what each name stands for, and all reasons why it cannot be taken."""

    def __init__(
        self,
        model: onnx.ModelProto,
        given: Mapping[str, Given],
        specialised: Mapping[str, str],
        name: str,
        folder: Path | None,
    ) -> None:
        """``folder`` is where weights lie that are not in the model; without it they have no values."""
        self.model, self.given, self.specialised, self.folder = model, given, specialised, folder
        self.opset = opset(model)
        self.opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.name = name or model.graph.name or "model"
        self.reasons: list[Reason] = []
        self.costly: dict[str, None] = {}  # encodings that take more than one pass over the result
        self.steps = self.depth = 0

    # ------------------------------------------------------------------ what is left to who walks

    @abstractmethod
    def data(self, name: str, element: str, shape: tuple[int, ...]) -> tuple[Tensor, str]:
        """The tensor of an input of the graph, and what its array is called."""

    @abstractmethod
    def constant(self, tensor: onnx.TensorProto, name: str = "") -> Tensor:
        """An initializer or a constant. Raises Refusal where its values cannot be read."""

    @abstractmethod
    def call(
        self,
        operator: Operator,
        node: onnx.NodeProto,
        schema: Any,
        inputs: Sequence[Value | None],
        scope: Mapping[str, Value],
    ) -> list[Value]:
        """What an operator gives for a node, whose inputs these are (None: left out)."""

    @abstractmethod
    def deliver(self, name: str, tensor: Tensor) -> str:
        """Give a tensor to the caller, as an output of the graph; what its array is called."""

    # ------------------------------------------------------------------ the graph

    def through(self) -> tuple[list[Port], list[Port]]:
        """The graph's inputs and outputs, once all nodes are gone through. Raises NotImported."""
        graph = self.model.graph
        scope: dict[str, Value] = {}
        inputs: list[Port] = []
        initial = {t.name for t in graph.initializer}
        for each in graph.input:
            if each.name in initial and each.name not in self.given:
                continue
            try:
                scope[each.name], port = self._input(each)
                inputs.append(port)
            except Exception as refusal:
                self._lost("input", each.name, refusal)
                scope[each.name] = Lost()
        self._initializers(graph, scope)
        self.run(graph.node, scope)
        outputs: list[Port] = []
        for each in graph.output:
            try:
                value = scope.get(each.name)
                if value is None:
                    raise Refusal("No node gives it.", "Export the model again.")
                if not isinstance(value, Lost):
                    outputs.append(self._output(each.name, value))
            except Exception as refusal:
                self._lost("output", each.name, refusal)
        if self.reasons:
            raise NotImported(self.reasons)
        if not any(port.arrays for port in outputs):
            raise NotImported(
                [
                    Reason(
                        "graph",
                        self.name,
                        "All its outputs are without elements.",
                        "There is nothing to compute.",
                    )
                ]
            )
        return inputs, outputs

    def _input(self, info: onnx.ValueInfoProto) -> tuple[Value, Port]:
        given = self.given.get(info.name, Given())
        return self._input_of(info.name, info.type, given)

    def _input_of(self, name: str, kind: Any, given: Given) -> tuple[Value, Port]:
        which = kind.WhichOneof("value")
        if which == "optional_type":
            if given.absent:
                return Nothing(), Port(name, (), absent=True)
            return self._input_of(name, kind.optional_type.elem_type, given)
        if which == "sequence_type":
            of = kind.sequence_type.elem_type
            if given.items is None:
                raise Refusal(
                    "It is a sequence, whose length the model does not say.",
                    f"Give it: --shape {name}=[2x3,2x3]",
                )
            element = dtype_of(of.tensor_type.elem_type) if of.tensor_type.elem_type else "f32"
            pairs = [self._input_of(f"{name}_{k}", of, item) for k, item in enumerate(given.items)]
            arrays = tuple(a for _, port in pairs for a in port.arrays)
            port = Port(name, arrays, element, None, sequence=True, items=tuple(p for _, p in pairs))
            return Sequence_(tuple(v for v, _ in pairs), element), port
        if which != "tensor_type":
            raise Refusal(f"It is a {(which or 'value without a type').replace('_', ' ')}.", "Give tensors.")
        element = dtype_of(kind.tensor_type.elem_type)
        shape = given.shape
        if shape is None:
            shape = _static(kind.tensor_type, name)
        if name in self.specialised:
            values = given.values
            assert values is not None
            tensor = known(values, element)
            return tensor, Port(name, (), element, shape)
        checked(element)
        if 0 in shape:
            return known(np.zeros(shape), element), Port(name, (), element, shape)
        tensor, array = self.data(name, element, shape)
        return tensor, Port(name, (array,), element, shape)

    def _output(self, name: str, value: Value) -> Port:
        if isinstance(value, Nothing):
            return Port(name, (), absent=True)
        if isinstance(value, Sequence_):
            items = tuple(self._output(f"{name}_{k}", item) for k, item in enumerate(value.items))
            arrays = tuple(a for item in items for a in item.arrays)
            return Port(name, arrays, value.element, None, sequence=True, items=items)
        assert isinstance(value, Tensor)
        checked(value.element)
        if not value.size:
            return Port(name, (), value.element, value.shape, values=value.values)
        return Port(name, (self.deliver(name, value),), value.element, value.shape)

    def _initializers(self, graph: onnx.GraphProto, scope: dict[str, Value]) -> None:
        for tensor in graph.initializer:
            if tensor.name in self.given and tensor.name in scope:
                continue
            try:
                scope[tensor.name] = self.constant(tensor, tensor.name)
            except Exception as refusal:
                self._lost("initializer", tensor.name, refusal)
                scope[tensor.name] = Lost()

    # ------------------------------------------------------------------ nodes

    def run(
        self,
        nodes: Sequence[onnx.NodeProto],
        scope: dict[str, Value],
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Go through nodes in their order; what they give is put into ``scope``."""
        for node in nodes:
            self.steps += 1
            if self.steps > STEPS:
                raise NotImported(
                    [
                        Reason(
                            "graph",
                            self.name,
                            f"It takes more than {STEPS:,} steps with its loops unrolled.",
                            "Take out a part.",
                        )
                    ]
                )
            outputs = [name for name in node.output if name]
            try:
                results = self.node(node, scope, attributes or {})
            except (Asked, NotImported):
                raise
            except Exception as fault:
                self._lost(node.op_type, node.name or next(iter(outputs), ""), fault)
                results = [Lost()] * len(node.output)
            for name, value in zip(node.output, results, strict=False):
                if name:
                    scope[name] = value

    def node(
        self, node: onnx.NodeProto, scope: dict[str, Value], attributes: Mapping[str, Any]
    ) -> list[Value]:
        inputs: list[Value | None] = []
        for name in node.input:
            if name and name not in scope:
                raise self._missing(name)
            inputs.append(scope[name] if name else None)
        node = bound(node, attributes)
        schema = self._schema(node)
        if any(isinstance(v, Lost) for v in inputs):
            if not self._is_known(node, schema):
                raise _unknown(node)
            return [Lost()] * len(node.output)
        if schema is None:
            function = self.functions.get((node.domain, node.op_type))
            if function is None:
                raise _unknown(node)
            return self.function(function, {a.name: a for a in node.attribute}, inputs, len(node.output))
        folded = folding.fold(node, inputs)
        if folded is not None:
            return folded
        operator = OPERATORS.get((node.domain if node.domain != "ai.onnx" else "", node.op_type))
        if operator is not None:
            return self.call(operator, node, schema, inputs, scope)
        body = body_of(node, schema, inputs, self.opset)
        if body is None:
            raise _unknown(node)
        return self.function(*body, inputs, len(node.output))

    def _missing(self, name: str) -> Refusal:
        """Why an input is not there: nobody gives it, or somebody after who needs it."""
        later = next((n for n in self.model.graph.node if name in n.output), None)
        if later is None:
            return Refusal(f"Nothing gives its input {name}.", "Export the model again.")
        return Refusal(
            f"Its input {name} is given by a later node, {later.op_type} ({later.name or name}): the nodes "
            "are in a circle, or out of order.",
            "Put them in order, or export the model again.",
        )

    def function(
        self,
        function: onnx.FunctionProto,
        attributes: Mapping[str, Any],
        inputs: Sequence[Value | None],
        outputs: int,
    ) -> list[Value]:
        """What a function gives, its nodes gone through with these inputs (None: left out)."""
        self.depth += 1
        if self.depth > DEPTH:
            raise Refusal(f"Functions are more than {DEPTH} deep.", "Export the model again.")
        scope: dict[str, Value] = {}
        for name, value in zip(function.input, inputs, strict=False):
            if value is not None:
                scope[name] = value
        absent = set(function.input) - set(scope)
        before, own = self.opset, self.opsets
        self.opsets = {
            **own,
            **{o.domain if o.domain != "ai.onnx" else "": o.version for o in function.opset_import},
        }
        self.opset = self.opsets.get("", before)
        nodes = [without_inputs(n, absent) for n in function.node]
        found = len(self.reasons)
        try:
            self.run(nodes, scope, attributes)
        finally:
            self.depth -= 1
            self.opset, self.opsets = before, own
        if len(self.reasons) > found:  # told of the operator, which is what the model has
            first = self.reasons[found]
            del self.reasons[found:]
            raise Refusal(f"Its {first.operator}: {first.why}", first.remedy, first.unforeseen)
        results: list[Value] = []
        for name in function.output[:outputs]:
            value = scope.get(name)
            results.append(Nothing() if value is None else value)
        return results

    def asked(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """What an operator of the standard gives for these, which control flow asks for on its own."""
        import onnx.defs
        import onnx.helper

        names = [f"input{k}" for k in range(len(inputs))]
        node = onnx.helper.make_node(operator, names, [operator.lower()], **attributes)
        schema = onnx.defs.get_schema(operator, ASKED_OPSET)
        self.depth += 1  # its result is none of the model's own tensors
        try:
            (result,) = self.call(OPERATORS["", operator], node, schema, inputs, {})
        finally:
            self.depth -= 1
        return result

    def subgraph(
        self, graph: onnx.GraphProto, scope: Mapping[str, Value], inputs: Sequence[Value]
    ) -> list[Value]:
        """What a graph in an attribute gives: it sees the names around it."""
        self.depth += 1
        if self.depth > DEPTH:
            raise Refusal(f"Subgraphs are more than {DEPTH} deep.", "Export the model again.")
        inner = dict(scope)
        inner.update(zip((i.name for i in graph.input), inputs, strict=False))
        self._initializers(graph, inner)
        found = len(self.reasons)
        try:
            self.run(graph.node, inner)
        finally:
            self.depth -= 1
        if len(self.reasons) > found:
            first = self.reasons[found]
            del self.reasons[found:]
            raise Refusal(f"In its graph, {first.operator}: {first.why}", first.remedy, first.unforeseen)
        missing = [o.name for o in graph.output if o.name not in inner]
        if missing:
            raise Refusal(f"Nothing in its graph gives {missing[0]}.", "Export the model again.")
        return [inner[o.name] for o in graph.output]

    def _schema(self, node: onnx.NodeProto) -> Any:
        import onnx.defs

        domain = node.domain if node.domain != "ai.onnx" else ""
        version = self.opsets.get(domain, self.opset if not domain else 1)
        try:
            schema = onnx.defs.get_schema(node.op_type, version, domain)
        except onnx.defs.SchemaError:
            return None
        if not domain and schema.since_version < OLDEST and _changed(node.op_type, schema):
            raise Refusal(
                f"The {node.op_type} of opset {version} is one of before opset 7, with other rules.",
                "Convert the model: onnx.version_converter.convert_version(model, 21).",
            )
        return schema

    def _is_known(self, node: onnx.NodeProto, schema: Any) -> bool:
        key = (node.domain if node.domain != "ai.onnx" else "", node.op_type)
        if schema is None:
            return (node.domain, node.op_type) in self.functions
        return key in OPERATORS or bool(schema.has_function or schema.has_context_dependent_function)

    def _lost(self, operator: str, node: str, fault: Exception) -> None:
        """Note why there is no value: a refusal, or what a damaged node leads an operator to."""
        if isinstance(fault, Refusal):
            self.reasons.append(Reason(operator, node, fault.why, fault.remedy, fault.unforeseen))
        elif isinstance(fault, BuildError):
            self.reasons.append(Reason(operator, node, str(fault), ""))
        else:
            _LOG.debug("%s (%s) was not taken", operator, node, exc_info=fault)
            said = f"{type(fault).__name__}: {fault}"[:200]
            why = f"Its inputs or attributes are not what the standard asks for ({said})."
            self.reasons.append(Reason(operator, node, why, "Mend the model, or report this.", True))


_LOG = logging.getLogger(__name__)


def _changed(operator: str, schema: Any) -> bool:
    """Was an operator another one before the oldest opset whose rules are today's?"""
    import onnx.defs

    try:
        return bool(onnx.defs.get_schema(operator, OLDEST, "").since_version != schema.since_version)
    except onnx.defs.SchemaError:
        return False


def _unknown(node: onnx.NodeProto) -> Refusal:
    reason = call_refused(node.op_type) if not node.domain or node.domain == "ai.onnx" else None
    if reason is not None:
        return reason
    domain = f" of the domain {node.domain}" if node.domain else ""
    return Refusal(
        f"The operator {node.op_type}{domain} is not known.",
        "Compute it outside of the kernel, or write it with other operators.",
    )


def call_refused(operator: str) -> Refusal | None:
    from dojo_core.from_onnx.operators.beyond import BEYOND

    return Refusal(*BEYOND[operator]) if operator in BEYOND else None


def _static(kind: Any, name: str) -> tuple[int, ...]:
    if not kind.HasField("shape"):
        raise Refusal("The model does not say its shape.", f"Give it: --shape {name}=2x3")
    sizes = [
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in kind.shape.dim
    ]
    known = tuple(size for size in sizes if size is not None)
    if len(known) == len(sizes):
        return known
    count = len(sizes) - len(known)
    named = ", ".join(dict.fromkeys(dim.dim_param for dim in kind.shape.dim if dim.dim_param))
    raise Refusal(
        f"Its size is open in {'one dimension' if count == 1 else f'{count} dimensions'}"
        f"{f' ({named})' if named else ''}, and a kernel's sizes are fixed.",
        f"Give them: --shape {name}={'x'.join(str(4 if size is None else size) for size in sizes)}",
    )


def unlike(name: str, taken: set[str]) -> str:
    """A name of the model as one of a text, unlike those that are taken; it is taken then."""
    plain = identifier(name)[:40]
    if plain in FUNCTIONS:
        plain += "_"
    free, number = plain, 1
    while free in taken:
        number += 1
        free = f"{plain}_{number}"
    taken.add(free)
    return free
