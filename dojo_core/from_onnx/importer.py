"""From a model to one kernel's text: its nodes in their order, each by its operator or by the body that the
standard gives it.

A value that says a shape (axes, pads, sizes, k, …) is known at import, or asked for: where it comes from a
graph input whose value was given, the import begins again with that input as a constant, and says so. Data is
never known: an operator that asks for the value of an input is written so in its file, and
``Imported.specialised`` tells which inputs were taken for their values.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dojo_core.from_onnx import folding
from dojo_core.from_onnx.bodies import body_of, bound, without_inputs
from dojo_core.from_onnx.call import OPERATORS, Call
from dojo_core.from_onnx.ports import Given, Imported, NotImported, Port, Reason
from dojo_core.from_onnx.reader import OLDEST, opset
from dojo_core.from_onnx.values import (
    KNOWN_ELEMENTS,
    Asked,
    Lost,
    Nothing,
    Numbers,
    Refusal,
    Sequence_,
    Tensor,
    Value,
    checked,
    dtype_of,
    known,
)
from dojo_core.primitives.array import BuildError, identifier
from dojo_core.primitives.builder import Builder
from dojo_core.program.expressions import TextError
from dojo_core.program.functions import FUNCTIONS

if TYPE_CHECKING:
    import onnx

STEPS = 20_000  # nodes that are gone through, those of bodies and of unrolled loops among them
DEPTH = 24  # bodies and subgraphs in one another
EXTERNAL = 1


def import_model(
    model: onnx.ModelProto, given: Mapping[str, Given] | None = None, name: str = ""
) -> Imported:
    """A checked model as one kernel's text. Raises NotImported with all reasons."""
    import dojo_core.from_onnx.operators  # noqa: F401  # registers them

    given = dict(given or {})
    specialised: dict[str, str] = {}
    while True:
        graph = Graph(model, given, specialised, name)
        try:
            return graph.imported()
        except Asked as asked:
            specialised.update(dict.fromkeys(sorted(asked.names), asked.operator))


class Graph:
    """One import of a model: what each name stands for, and the text in the making."""

    def __init__(
        self, model: onnx.ModelProto, given: Mapping[str, Given], specialised: Mapping[str, str], name: str
    ) -> None:
        self.model, self.given, self.specialised = model, given, specialised
        self.opset = opset(model)
        self.opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.name = _identifier(name or model.graph.name or "model", set())
        self.b = Builder(self.name)
        self.reasons: list[Reason] = []
        self.weights: dict[str, Numbers] = {}
        self.costly: dict[str, None] = {}
        self.taken: set[str] = set()  # names of arrays
        self.steps = self.depth = 0

    # ------------------------------------------------------------------ the graph

    def imported(self) -> Imported:
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
        try:
            program = self.b.program()
        except (BuildError, TextError) as fault:
            raise NotImported([Reason("graph", self.name, str(fault), "")]) from None
        used = set(program.inputs)
        kept = [p if set(p.arrays) <= used else _without(p, used) for p in inputs]
        weights = {n: v for n, v in {**self.weights, **self.b.constants}.items() if n in used}
        asked = dict(self.specialised)
        return Imported(self.name, program, tuple(kept), tuple(outputs), weights, asked, tuple(self.costly))

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
        array_name = _identifier(name, self.taken)
        array = self.b.input(array_name, element, shape)
        return Tensor(element, shape, array=array, sources=frozenset([name])), Port(
            name, (array_name,), element, shape
        )

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
        array_name = _identifier(name, self.taken)
        self.b.output(array_name, self.stored(value))
        return Port(name, (array_name,), value.element, value.shape)

    def stored(self, tensor: Tensor) -> Any:
        """A tensor's array in its own element type."""
        from dojo_core.from_onnx.arrays import array_of, converted

        array = array_of(self, tensor)
        return array if array.dtype == tensor.element else converted(self.b, array, tensor.element)

    def _initializers(self, graph: onnx.GraphProto, scope: dict[str, Value]) -> None:
        for tensor in graph.initializer:
            if tensor.name in self.given and tensor.name in scope:
                continue
            try:
                scope[tensor.name] = self.constant(tensor)
            except Exception as refusal:
                self._lost("initializer", tensor.name, refusal)
                scope[tensor.name] = Lost()

    def constant(self, tensor: onnx.TensorProto) -> Tensor:
        """An initializer or a constant; a large one is an input of the text, its values the model's."""
        from onnx import numpy_helper

        element = dtype_of(tensor.data_type)
        shape = tuple(tensor.dims)
        size = int(np.prod(shape, dtype=object)) if shape else 1
        if tensor.data_location == EXTERNAL or size > KNOWN_ELEMENTS:
            checked(element)
            array_name = _identifier(tensor.name or "weight", self.taken)
            array = self.b.input(array_name, element, shape)
            if tensor.data_location != EXTERNAL:
                self.weights[array_name] = numpy_helper.to_array(tensor)
            return Tensor(element, shape, array=array, sources=frozenset([tensor.name]))
        try:
            values = numpy_helper.to_array(tensor)
        except Exception:  # what a damaged one raises is not said anywhere
            raise Refusal(
                f"The values of {tensor.name or 'a constant'} cannot be read.", "Export the model again."
            ) from None
        return Tensor(element, values.shape, values=values, name=tensor.name)

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
                raise Refusal(f"Nothing gives its input {name}.", "Export the model again.")
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
            return operator(Call(self, node, schema, inputs, scope))
        body = body_of(node, schema, inputs, self.opset)
        if body is None:
            raise _unknown(node)
        return self.function(*body, inputs, len(node.output))

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
    sizes: list[int] = []
    for dim in kind.shape.dim:
        if not dim.HasField("dim_value") or dim.dim_value < 0:
            said = f" ({dim.dim_param})" if dim.dim_param else ""
            example = "x".join(str(d.dim_value) if d.HasField("dim_value") else "4" for d in kind.shape.dim)
            raise Refusal(
                f"Its size is open in one dimension{said}, and a kernel's sizes are fixed.",
                f"Give them: --shape {name}={example}",
            )
        sizes.append(dim.dim_value)
    return tuple(sizes)


def _without(port: Port, used: set[str]) -> Port:
    """An input that the text does not read."""
    if port.sequence:
        return Port(
            port.name,
            tuple(a for a in port.arrays if a in used),
            port.element,
            None,
            True,
            items=tuple(_without(i, used) for i in port.items),
        )
    return Port(port.name, tuple(a for a in port.arrays if a in used), port.element, port.shape)


def _identifier(name: str, taken: set[str]) -> str:
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


__all__ = ["Given", "Imported", "NotImported", "Port", "Reason", "import_model"]
