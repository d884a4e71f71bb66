"""A graph of ONNX as a text has it: nodes and their places in it, with the shapes of its inputs open."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dojo_core.from_code.source import Declared, Source
from dojo_core.from_onnx.values import CODES
from dojo_core.from_onnx.walk import call_refused
from dojo_core.primitives import identifier
from dojo_core.spelling import meant

if TYPE_CHECKING:
    import onnx

# Layers of PyTorch, as they are taken for operators.
LAYERS = {
    "Linear": "Gemm(x, w, b, transB=1)", "Conv1d": "Conv(x, w, b)", "Conv2d": "Conv(x, w, b)",
    "Conv3d": "Conv(x, w, b)", "LayerNorm": "LayerNormalization(x, scale, bias)",
    "RMSNorm": "RMSNormalization(x, scale)", "BatchNorm1d": "BatchNormalization(x, scale, bias, mean, var)",
    "BatchNorm2d": "BatchNormalization(x, scale, bias, mean, var)", "Embedding": "Gather(w, i)",
    "GroupNorm": "GroupNormalization(x, scale, bias, num_groups=4)", "SiLU": "Swish(x)",
    "MaxPool2d": "MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])",
    "AvgPool2d": "AveragePool(x, kernel_shape=[2, 2], strides=[2, 2])",
    "MultiheadAttention": "Attention(q, k, v)",
}  # fmt: skip
MOST_NODES = 64  # of a text that is one kernel
_IR = 10  # of the format, which the package onnx reads in all its versions

Place = tuple[int, int]  # line and column, from 1


@dataclass
class Written:
    """Nodes of a text in their order. ``inputs`` and ``outputs`` are those that the text names; where it
    names none they are what no node gives, and what none takes. ``declared`` are shapes by input."""

    source: Source
    opsets: dict[str, int]
    name: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)  # of the nodes
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    functions: Sequence[onnx.FunctionProto] = ()
    declared: dict[str, Declared] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Mapping[str, Any],
        place: Place,
    ) -> None:
        """One more. Raises TextError for attributes that are not of the operator's types."""
        from onnx import helper

        schema = schema_of(self.source, place, operator, self.opsets[""])
        node = helper.make_node(operator, inputs, outputs)
        for name, value in attributes.items():
            if name not in schema.attributes:
                known = list(schema.attributes)
                remedy = meant(name, known) or f"Its attributes: {', '.join(known) or 'none'}."
                self.source.fail(*place, f"{operator} has no attribute {name}", remedy)
            kind = schema.attributes[name].type
            try:
                node.attribute.append(helper.make_attribute(name, value, attr_type=kind.value))
            except (ValueError, TypeError, AttributeError, AssertionError):
                wanted = kind.name.lower().replace("ints", "whole numbers").replace("floats", "numbers")
                self.source.fail(
                    *place, f"{operator}'s {name} is not {value!r:.40}", f"It is of the type {wanted}."
                )
        self.add(node, place)

    def add(self, node: onnx.NodeProto, place: Place) -> None:
        if len(self.nodes) == MOST_NODES:
            self.source.fail(
                *place, f"more than {MOST_NODES} nodes", "A whole model comes in by dojo import."
            )
        self.nodes.append(node)
        self.places.append(place)

    def complete(self) -> None:
        """Name inputs, outputs and the graph where the text does not. Raises TextError."""
        if not self.nodes:
            self.source.fail(
                1, 1, "nothing is computed", "Write an operator of ONNX: y = Softmax(x, axis=-1)"
            )
        for node, place in zip(self.nodes, self.places, strict=True):
            fault = self._fault(node)
            if fault:
                self.source.fail(*place, fault, _form(node.op_type, self.opsets[""]))
        given: set[str] = set()
        if not self.inputs:
            for node in self.nodes:
                self.inputs += [
                    name
                    for name in dict.fromkeys(node.input)
                    if name and name not in given | self.constants.keys() | set(self.inputs)
                ]
                given.update(node.output)
        taken = {name for node in self.nodes for name in node.input}
        last = [name for node in self.nodes for name in node.output if name and name not in taken]
        self.outputs = self.outputs or last
        if not self.name:
            operators = [_words(node.op_type) for node in self.nodes]
            self.name = "_".join(operators) if len(operators) < 4 else f"{operators[0]}_to_{operators[-1]}"
        for name in self.inputs:
            element = self._element(name)
            said = self.declared.get(name)
            if said is not None and said.dtype == "f32" and element != "f32":
                self.declared[name] = Declared(said.axes, element)

    def _fault(self, node: onnx.NodeProto) -> str:
        """What the standard says against a node: inputs and attributes that lack, or are too many."""
        from onnx import checker

        schema = known_schema(node.op_type, node.domain, self.opsets.get(node.domain, 0))
        if schema is None or node.op_type in {each.name for each in self.functions}:
            return ""
        given, least, most = len(node.input), schema.min_input, schema.max_input
        if not least <= given <= most:
            wanted = (
                f"{least}" if least == most else f"{least} to {most}" if most < 99 else f"at least {least}"
            )
            return f"{node.op_type} of {given} inputs, and it takes {wanted}"
        context = checker.C.CheckerContext()
        context.ir_version, context.opset_imports = _IR, self.opsets
        try:
            checker.check_node(node, context)
        except checker.ValidationError as fault:
            told = " ".join(str(fault).partition("==>")[0].split()).rstrip(".")
            return f"{told[:1].lower()}{told[1:200]}"
        return ""

    def element(self, name: str) -> str:
        """The dtype of an input."""
        said = self.declared.get(name)
        return said.dtype if said is not None else self._element(name)

    def _element(self, name: str) -> str:
        """What the first node that takes an input asks for; f32 where that may be."""
        for node in self.nodes:
            if name in node.input:
                schema = known_schema(node.op_type, node.domain, self.opsets.get(node.domain, 0))
                if schema is None or not schema.inputs:
                    break
                formal = schema.inputs[min(list(node.input).index(name), len(schema.inputs) - 1)]
                return usual_dtype(formal.types)
        return "f32"

    def model(self, shapes: Mapping[str, Sequence[int]], wide: bool = False) -> onnx.ModelProto:
        """A model whose inputs have these shapes; ``wide``: with f64 in place of all other floats."""
        import onnx
        from onnx import helper

        def code(element: str) -> int:
            return CODES["f64" if wide and element in _FLOATS else element]

        inputs = [
            helper.make_tensor_value_info(name, code(self.element(name)), shapes[name])
            for name in self.inputs
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, functions=list(self.functions))
        if wide:
            _widen(model.graph)
        return model


_FLOATS = ("f32", "f16", "bf16")


def _widen(graph: onnx.GraphProto) -> None:
    """Constants and casts in f64 in place of narrower floats."""
    from onnx import AttributeProto, TensorProto, numpy_helper

    narrow = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)

    def widened(tensor: onnx.TensorProto) -> None:
        if tensor.data_type in narrow:
            values = numpy_helper.to_array(tensor).astype("float64")
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    for tensor in graph.initializer:
        widened(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                widened(attribute.t)
            elif attribute.type == AttributeProto.GRAPH:
                _widen(attribute.g)
            elif attribute.name in ("to", "dtype") and attribute.i in narrow:
                attribute.i = TensorProto.DOUBLE


def usual_dtype(types: Collection[str]) -> str:
    """Of the types that an input may have the one that it has where nobody says it."""
    order = {
        "float": "f32", "int64": "i64", "bool": "bool", "int32": "i32", "uint8": "u8", "int8": "i8",
    }  # fmt: skip
    return next((dtype for kind, dtype in order.items() if f"tensor({kind})" in types), "f32")


def _form(operator: str, version: int) -> str:
    """How a call of an operator reads."""
    schema = known_schema(operator, "", version)
    if schema is None:
        return "Look at the standard's page of this operator."
    named = [each.name for each in schema.inputs] + [f"{name}=…" for name in schema.attributes]
    return f"It reads {operator}({', '.join(named)})."


def newest() -> int:
    """The opset of a text that says none."""
    import onnx.defs

    return int(onnx.defs.onnx_opset_version())


def known_schema(operator: str, domain: str, version: int) -> Any:
    """What the standard says of an operator; None where there is none."""
    import onnx.defs

    try:
        return onnx.defs.get_schema(operator, version or newest(), domain)
    except onnx.defs.SchemaError:
        return None


def schema_of(source: Source, place: Place, operator: str, version: int) -> Any:
    """An operator's schema. Raises TextError where there is none, or none that a kernel can be."""
    import onnx.defs

    reason = call_refused(operator)
    if reason is not None:
        source.fail(*place, f"{operator}: {reason.why.rstrip('.')}", reason.remedy)
    schema = known_schema(operator, "", version)
    if schema is None:
        names = sorted({each.name for each in onnx.defs.get_all_schemas() if not each.domain})
        of_torch = LAYERS.get(operator)
        remedy = f"In ONNX it is {of_torch}." if of_torch else meant(operator, names)
        remedy = remedy or f"Its operators are those of ai.onnx, opset {version}."
        source.fail(*place, f"there is no operator {operator} in ONNX", remedy)
    return schema


def _words(operator: str) -> str:
    """LayerNormalization as layer_normalization, GRU as gru."""
    text = ""
    for k, letter in enumerate(operator):
        begins = letter.isupper() and k and (operator[k - 1].islower() or operator[k + 1 : k + 2].islower())
        text += ("_" if begins else "") + letter.lower()
    return identifier(text)
