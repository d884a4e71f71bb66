"""ONNX as text: the standard's own format, ``g (float[N] x) => (float[N] y) { y = Relu(x) }``, its nodes
alone, and what is printed of a model; read by the package onnx.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dojo_core.from_code.onnx_written import Place, Written, newest, schema_of
from dojo_core.from_code.source import Declared, Source
from dojo_core.from_onnx.values import ELEMENTS
from dojo_core.primitives import identifier
from dojo_core.program.expressions import TextError

if TYPE_CHECKING:
    import onnx

PRINTED = re.compile(r"\bop_type\s*:")  # a model of protobuf, in its text format
GRAPH = re.compile(r"=>\s*\([^()]*\)\s*[<{]")
_LETTERS = "mnkhdbpqrstuvw"
_ALONE = "own () => () {\n"  # around nodes that stand alone


def read_text(source: Source) -> Written:
    """A model, a graph or nodes in one of the text formats. Raises TextError."""
    model = _printed(source) if PRINTED.search(source.text) else _standard(source)
    graph = model.graph
    opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}
    written = Written(source, {"": newest(), **opsets}, graph.name, functions=tuple(model.functions))
    if any(tensor.external_data for tensor in _tensors(graph)):
        source.fail(1, 1, "weights that lie in another file", "Make them inputs of the graph.")
    written.constants = {tensor.name: tensor for tensor in graph.initializer}
    own = {each.name for each in model.functions}
    for node in graph.node:
        place = _place(source, node)
        if not node.domain and node.op_type not in own:
            schema_of(source, place, node.op_type, written.opsets[""])
        written.add(node, place)
    letters = iter(_LETTERS)
    for each in graph.input:
        if each.name not in written.constants:
            written.inputs.append(each.name)
            said = _declared(each.type.tensor_type, letters)
            if said is not None:
                written.declared[each.name] = said
    written.outputs = [each.name for each in graph.output]
    return written


def _standard(source: Source) -> onnx.ModelProto:
    """A model, a graph or nodes in the standard's text format."""
    from onnx import ModelProto, parser

    text = source.text
    try:
        if text.lstrip().startswith("<"):
            return parser.parse_model(text)
        if GRAPH.search(text):
            return ModelProto(graph=parser.parse_graph(text))
        graph = parser.parse_graph(f"{_ALONE}{text}\n}}")
        graph.name = ""
        return ModelProto(graph=graph)
    except parser.ParseError as error:
        told = error.args[0].decode(errors="replace") if error.args else ""
        at = re.search(r"line: (\d+) column: (\d+)", told)
        line, column = (int(at[1]), int(at[2])) if at else (1, 1)
        if not text.lstrip().startswith("<") and not GRAPH.search(text):
            line -= 1
        message = told.strip().splitlines()[-1].rstrip(".") if told else "something is wrong"
        source.fail(
            min(max(line, 1), len(source.lines) or 1),
            column,
            message[:1].lower() + message[1:],
            "ONNX's parser stops here; a graph reads g (float[m, n] x) => (float[m, n] y) { y = Relu(x) }",
        )


def _printed(source: Source) -> onnx.ModelProto:
    """A model, a graph or a node as print() shows it."""
    from google.protobuf import text_format  # type: ignore[import-untyped]
    from onnx import GraphProto, ModelProto, NodeProto

    text = source.text
    try:
        if re.search(r"^\s*(?:graph\s*\{|ir_version\s*:)", text, re.MULTILINE):
            whole: onnx.ModelProto = text_format.Parse(text, ModelProto())
            return whole
        if re.search(r"^\s*node\s*\{", text, re.MULTILINE):
            return ModelProto(graph=text_format.Parse(text, GraphProto()))
        return ModelProto(graph=GraphProto(node=[text_format.Parse(text, NodeProto())]))
    except text_format.ParseError as error:
        at = re.match(r"(\d+):(\d+)\s*:\s*(.*)", str(error), re.DOTALL)
        line, column, message = (int(at[1]), int(at[2]), at[3]) if at else (1, 1, str(error))
        short = message.strip().splitlines()[-1].rstrip(".")
        source.fail(line, column, short[:1].lower() + short[1:], "protobuf's parser of texts stops here.")
    except RecursionError:
        raise TextError(
            "messages too deep within one another", "Write the operator as y = Relu(x)."
        ) from None


def _declared(kind: Any, letters: Iterator[str]) -> Declared | None:
    """What the type of an input says; sizes that it leaves open get letters. None where it says no shape."""
    if not kind.HasField("shape"):
        return None
    axes = tuple(
        str(dim.dim_value)
        if dim.HasField("dim_value")
        else identifier(dim.dim_param)
        if dim.dim_param
        else next(letters, "n")
        for dim in kind.shape.dim
    )
    return Declared(axes, ELEMENTS.get(kind.elem_type, "f32"))


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _place(source: Source, node: onnx.NodeProto) -> Place:
    """Where a node stands: its first result before a =, else its operator's name."""
    for pattern in (*(rf"\b{re.escape(name)}\b[\w\s,]*=" for name in node.output), rf"\b{node.op_type}\b"):
        for number, line in enumerate(source.lines, 1):
            found = re.search(pattern, line)
            if found is not None:
                return number, found.start() + 1
    return 1, 1
