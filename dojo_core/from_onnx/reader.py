"""From a file to a model: within limits, and with a sentence for whatever is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dojo_core.extras import need
from dojo_core.files import naming
from dojo_core.from_onnx.streaming import structure
from dojo_core.from_onnx.values import ELEMENTS, Refusal, bits
from dojo_core.from_onnx.weights import place_of

if TYPE_CHECKING:
    import onnx

MODEL_BYTES = 256 << 20  # without the weights of a large file
WHOLE_BYTES = 16 << 20  # of a file that is read as it is
NODES = 20_000  # of a graph with its subgraphs
NESTING = 8  # of subgraphs in one another
OLDEST = 7  # the opset whose operators broadcast as today's do

EXPORT_AGAIN = "Export the model again."


def read_model(path: str | Path) -> onnx.ModelProto:
    """The model in a file; the weights of a large one, and those beside it, stay where they are: their
    values lie in ``folder_of(path)``.

    Raises Refusal with a sentence, NotInstalled without the package onnx.
    """
    need("onnx", "dojo import")
    path = Path(path)
    with naming(path):
        if path.stat().st_size > WHOLE_BYTES:
            content = structure(path.resolve(), MODEL_BYTES)
        else:
            content = path.read_bytes()
    model = model_of(content, str(path))
    _check_external(model.graph, folder_of(path))
    return model


def folder_of(path: str | Path) -> Path:
    """Where the weights of a model's file lie."""
    return Path(path).resolve().parent


def model_of(content: bytes, called: str = "The model") -> onnx.ModelProto:
    """The model in the bytes of a file, checked. Raises Refusal."""
    need("onnx", "dojo import")
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        raise Refusal(f"{called} is damaged, or no ONNX file.", EXPORT_AGAIN) from None
    if not model.HasField("graph"):
        raise Refusal(f"{called} holds no graph.", EXPORT_AGAIN)
    check(model, called)
    return model


def check(model: onnx.ModelProto, called: str = "The model") -> None:
    """Raises Refusal where a model is larger than what is taken, or contradicts itself."""
    if not model.opset_import:
        raise Refusal(f"{called} says no opset.", "Export it again with opset_imports.")
    version = opset(model)
    newest = _newest()
    if version > newest:
        raise Refusal(
            f"{called} is of opset {version}, and the package onnx that is installed knows {newest}.",
            f"Upgrade it (pip install -U onnx), or export the model with opset {newest}.",
        )
    nodes = 0
    for graph, depth in _graphs(model.graph):
        nodes += len(graph.node)
        if nodes > NODES:
            raise Refusal(
                f"{called} has more than {NODES:,} nodes.",
                "Take out a part: onnx.utils.extract_model(path, 'part.onnx', inputs, outputs).",
            )
        if not all(isinstance(name, str) for name in _names(graph)):
            raise Refusal(f"{called} is damaged: some of its names are no text.", EXPORT_AGAIN)
        if depth > NESTING:
            raise Refusal(f"{called} has subgraphs more than {NESTING} deep.", EXPORT_AGAIN)
        twice = _twice(graph)
        if twice is not None:
            raise Refusal(f"{called} is damaged: the tensor {twice} is given twice.", EXPORT_AGAIN)
        for tensor in graph.initializer:
            _check_initializer(tensor)
        if graph.sparse_initializer:
            raise Refusal("Sparse initializers are not taken.", "Make them dense before you export.")
    if not model.graph.output:
        raise Refusal(f"{called} has no outputs.", EXPORT_AGAIN)


def opset(model: onnx.ModelProto, domain: str = "") -> int:
    """The version of the standard's operators that a model uses (0: none)."""
    versions = [
        o.version for o in model.opset_import if o.domain in (("", "ai.onnx") if not domain else (domain,))
    ]
    return int(max(versions, default=0))


def _newest() -> int:
    import onnx.defs

    return int(onnx.defs.onnx_opset_version())


def _graphs(graph: onnx.GraphProto, depth: int = 0) -> Iterator[tuple[onnx.GraphProto, int]]:
    yield graph, depth
    if depth > NESTING:
        return
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _graphs(inner, depth + 1)


def _names(graph: onnx.GraphProto) -> Iterator[object]:
    """What protobuf leaves as bytes where it is not text."""
    yield graph.name
    for each in (*graph.input, *graph.output, *graph.initializer):
        yield each.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)


def _twice(graph: onnx.GraphProto) -> str | None:
    """The first tensor that two nodes give, or a node beside the graph's inputs and initializers."""
    given = {each.name for each in (*graph.input, *graph.initializer)}
    for node in graph.node:
        for name in filter(None, node.output):
            if name in given:
                return str(name)
            given.add(name)
    return None


def _check_initializer(tensor: Any) -> None:
    from onnx import TensorProto

    if any(d < 0 for d in tensor.dims):
        raise Refusal(f"The initializer {tensor.name} has a negative size.", EXPORT_AGAIN)
    if tensor.data_location == TensorProto.EXTERNAL or tensor.data_type not in ELEMENTS:
        return  # strings are refused where a node takes them
    if tensor.HasField("raw_data"):
        elements = math.prod(tensor.dims)
        wanted = math.ceil(elements * bits(ELEMENTS[tensor.data_type]) / 8)
        if len(tensor.raw_data) != wanted:
            raise Refusal(
                f"The initializer {tensor.name} says {elements:,} elements ({wanted:,} bytes) and holds "
                f"{len(tensor.raw_data):,} bytes: the file is damaged or cut off.",
                EXPORT_AGAIN,
            )


def _check_external(graph: onnx.GraphProto, folder: Path) -> None:
    from onnx import TensorProto

    for inner, _ in _graphs(graph):
        for tensor in inner.initializer:
            if tensor.data_location == TensorProto.EXTERNAL:
                place_of(tensor, folder)
