# ruff: noqa: E501  (models and what is said of them stand side by side)
"""ONNX models as graphs of kernels, beside the standard's reference implementation; what cannot be a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed: make setup brings it")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from dojo_core.from_onnx import reader, streaming  # noqa: E402
from dojo_core.from_onnx.as_nodes import graph_of, nodes_of  # noqa: E402
from dojo_core.from_onnx.importer import import_model  # noqa: E402
from dojo_core.from_onnx.ports import Given, NotImported  # noqa: E402
from dojo_core.from_onnx.reader import folder_of, read_model  # noqa: E402
from dojo_core.from_onnx.values import Refusal  # noqa: E402
from dojo_core.graph.nodes import Kind  # noqa: E402
from dojo_core.graph.reference import reference  # noqa: E402
from dojo_core.graph.run import Model  # noqa: E402
from tests.test_onnx import a_model, node  # noqa: E402

RNG = np.random.default_rng(34)


def weights(**shapes: Any) -> list[Any]:
    return [numpy_helper.from_array(drawn(shape), name) for name, shape in shapes.items()]


def drawn(shape: Any) -> Any:
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


def number(value: Any, name: str) -> Any:
    return numpy_helper.from_array(np.asarray(value), name)


MLP = a_model(
    [node("Gemm", "x w1 b1", "h1", transB=1), node("Relu", "h1", "h2"), node("Gemm", "h2 w2 b2", "logits"), node("Softmax", "logits", "y")],
    {"x": [4, 24]}, ["y"], initializer=weights(w1=(32, 24), b1=(32,), w2=(32, 10), b2=(10,)),
)  # fmt: skip
CONV_NET = a_model(
    [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1], strides=[2, 2]), node("BatchNormalization", "c1 s o m v", "n1"), node("Relu", "n1", "r1"),
        node("Conv", "r1 w2", "c2", pads=[1, 1, 1, 1]), node("Add", "c2 r1", "a"), node("MaxPool", "a", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "p", "g"), node("Flatten", "g", "f"), node("MatMul", "f w3", "y"),
    ],
    {"x": [2, 3, 8, 8]}, ["y"],
    initializer=[*weights(w1=(6, 3, 3, 3), b1=(6,), s=(6,), o=(6,), m=(6,), w2=(6, 6, 3, 3), w3=(6, 5)), number(np.full(6, 1.5, np.float32), "v")],
)  # fmt: skip
ATTENTION = a_model(
    [
        node("LayerNormalization", "x s o", "n"), node("MatMul", "n wqkv", "qkv"), node("Split", "qkv", "q0 k0 v0", axis=-1, num_outputs=3),
        *(step for t in "qkv" for step in (node("Reshape", f"{t}0 heads", f"{t}1"), node("Transpose", f"{t}1", t, perm=[0, 2, 1, 3]))),
        node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "scores"), node("Mul", "scores scale", "scaled"), node("Softmax", "scaled", "p"),
        node("MatMul", "p v", "mixed"), node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]), node("Reshape", "back flat", "joined"),
        node("MatMul", "joined wo", "out"), node("Add", "out x", "y"),
    ],
    {"x": [1, 6, 16]}, ["y"],
    initializer=[*weights(s=(16,), o=(16,), wqkv=(16, 48), wo=(16, 16)), number([1, 6, 2, 8], "heads"), number([1, 6, 16], "flat"), number(np.float32(8**-0.5), "scale")],
)  # fmt: skip
RECURRENT = a_model(
    [node("Gather", "table tokens", "e"), node("LSTM", "e w r b", "all last"), node("Squeeze", "last axes", "h"), node("MatMul", "h v", "y")],
    {"tokens": ([5, 2], TensorProto.INT64)}, ["y"],
    initializer=[*weights(table=(11, 6), w=(1, 16, 6), r=(1, 16, 4), b=(1, 32), v=(4, 3)), number([0], "axes")],
)  # fmt: skip
INPUTS: dict[str, dict[str, Any]] = {
    "mlp": {"x": drawn((4, 24))}, "conv net": {"x": drawn((2, 3, 8, 8))}, "attention": {"x": drawn((1, 6, 16))},
    "recurrent": {"tokens": RNG.integers(-11, 11, (5, 2))},
}  # fmt: skip
MODELS = {"mlp": MLP, "conv net": CONV_NET, "attention": ATTENTION, "recurrent": RECURRENT}


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_computes_what_its_model_does(name: str) -> None:
    model, inputs = MODELS[name], INPUTS[name]
    (wanted,) = ReferenceEvaluator(model).run(None, inputs)
    given = reference(graph_of(nodes_of(model)), inputs)
    np.testing.assert_allclose(given["y"], wanted, rtol=1e-4, atol=1e-5)


def test_and_compiled_so_does_it_run() -> None:
    (wanted,) = ReferenceEvaluator(RECURRENT).run(None, INPUTS["recurrent"])
    (given,) = Model(graph_of(nodes_of(RECURRENT))).run(INPUTS["recurrent"]).values()
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


def test_each_operator_is_a_node_of_its_kind_and_weights_are_constants() -> None:
    nodes = nodes_of(CONV_NET)
    kinds = {node.operator: node.kind for node in nodes.nodes}
    assert kinds == {
        "Conv": Kind.CONTRACTION, "BatchNormalization": Kind.POINTWISE, "Relu": Kind.POINTWISE, "Add": Kind.POINTWISE, "MaxPool": Kind.REDUCTION,
        "GlobalAveragePool": Kind.REDUCTION, "Flatten": Kind.VIEW, "MatMul": Kind.CONTRACTION,
    }  # fmt: skip
    assert [tensor.name for tensor in nodes.inputs] == ["x"]
    assert set(nodes.constants) == {t.name for t in CONV_NET.graph.initializer}
    (embedding, lstm, *_) = nodes_of(RECURRENT).nodes
    assert embedding.inputs == ("table", "tokens") and lstm.kind is Kind.OTHER
