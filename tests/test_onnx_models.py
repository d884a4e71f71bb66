# ruff: noqa: E501  (models and what is said of them stand side by side)
"""ONNX models as graphs of kernels, beside the standard's reference implementation; what cannot be a model."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

onnx = pytest.importorskip("onnx", reason="onnx is not installed: make setup brings it")

import ml_dtypes  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import dojo_core  # noqa: E402
from agents.cli import app  # noqa: E402
from agents.model_tuning import spread  # noqa: E402
from benchmarks import onnx_nodes as judge  # noqa: E402
from dojo_core.cli import models  # noqa: E402
from dojo_core.export import Choice, of_game, write  # noqa: E402
from dojo_core.export.library import model_library  # noqa: E402
from dojo_core.from_onnx import reader, streaming  # noqa: E402
from dojo_core.from_onnx.as_nodes import graph_of, nodes_of  # noqa: E402
from dojo_core.from_onnx.importer import import_model  # noqa: E402
from dojo_core.from_onnx.ports import NotImported  # noqa: E402
from dojo_core.from_onnx.reader import folder_of, read_model  # noqa: E402
from dojo_core.from_onnx.values import Refusal  # noqa: E402
from dojo_core.graph import trial  # noqa: E402
from dojo_core.graph.choices import choose, kernel_game  # noqa: E402
from dojo_core.graph.graph import Graph  # noqa: E402
from dojo_core.graph.meaning import reference  # noqa: E402
from dojo_core.graph.nodes import Kind  # noqa: E402
from dojo_core.graph.preparation import prepared  # noqa: E402
from dojo_core.graph.run import Model  # noqa: E402
from dojo_core.graph.trial import deviations, in_turns  # noqa: E402
from dojo_core.program.text import parse  # noqa: E402
from tests.drawn import Drawn  # noqa: E402
from tests.homes import with_objects  # noqa: E402
from tests.test_graph_run import PACKING  # noqa: E402
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
    [node("Gather", "table tokens", "e"), node("LSTM", "e w r b", "all last", hidden_size=4), node("Squeeze", "last axes", "h"), node("MatMul", "h v", "y")],
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


def test_a_sample_of_the_standard_s_own_tests_passes_as_graphs() -> None:
    """All of them: ``python -m benchmarks.onnx_nodes --graphs``."""
    modules = [
        "loop",
        "gru",
        "groupnormalization",
        "gather",
        "sequence_map",
        "topk",
        "rotaryembedding",
        "castlike",
    ]
    cases = [
        case
        for case in judge.collected(modules)
        if case.operators[0].lower() in {"groupnormalization", "rotaryembedding", *modules}
    ]
    verdicts = [judge.prepare(case, graphs=True).verdict for case in cases[::5]]
    assert len(verdicts) >= 25 and {v.interpreted for v in verdicts} == {"ok"}


def test_loops_are_unrolled_into_nodes_and_branches_on_data_are_chosen_between() -> None:
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Mul", "v half", "h"), node("Add", "h x", "w"), node("Identity", "w", "row")], "body",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (("i", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("v", TensorProto.FLOAT, [3]))],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (("on", TensorProto.BOOL, []), ("w", TensorProto.FLOAT, [3]), ("row", TensorProto.FLOAT, [3]))],
        initializer=[number(np.float32(0.5), "half")],
    )  # fmt: skip
    yes, no = (
        helper.make_graph([node(op, "last", op)], op, [], [helper.make_tensor_value_info(op, 1, [3])])
        for op in ("Neg", "Abs")
    )
    model = a_model(
        [
            helper.make_node("Loop", ["count", "going", "x"], ["last", "rows"], body=body), node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
            helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no),
        ],
        {"x": [3]}, ["rows", "y"], initializer=[number(4, "count"), number(True, "going"), number(np.float32(0), "zero")],
    )  # fmt: skip
    nodes = nodes_of(model)
    assert [n.operator for n in nodes.nodes].count("Mul") == 4
    for x in (drawn(3), -np.ones(3, np.float32)):
        wanted = dict(zip(("rows", "y"), ReferenceEvaluator(model).run(None, {"x": x}), strict=True))
        given = reference(graph_of(nodes), {"x": x})
        for name in wanted:
            np.testing.assert_allclose(given[name], wanted[name], rtol=1e-5)


def test_f16_is_rounded_where_it_leaves_a_kernel() -> None:
    model = a_model(
        [node("Mul", "x x", "square"), node("Sub", "square x", "y")], {"x": ([3], TensorProto.FLOAT16)}, ["y"],
    )  # fmt: skip
    (kernel,) = graph_of(nodes_of(model)).kernels.values()
    assert [str(b.dtype) for b in kernel.program.buffers] == ["f16", "f16", "f32", "f32"]
    x = np.array([1.001, 30.03, -7.7], np.float16)
    (given,) = Model(graph_of(nodes_of(model))).run({"x": x}).values()
    np.testing.assert_array_equal(given, (x.astype(np.float32) ** 2 - x).astype(np.float16))


def test_outputs_that_are_inputs_constants_or_the_same_have_names_of_their_own() -> None:
    model = a_model(
        [node("Identity", "x", "same"), node("Add", "x w", "t"), node("Identity", "t", "again"), node("Shape", "x", "size")],
        {"x": [2, 3]}, ["same", "again", "t", "w", "size"], initializer=weights(w=(3,)),
    )  # fmt: skip
    x = drawn((2, 3))
    wanted = ReferenceEvaluator(model).run(None, {"x": x})
    given = Model(graph_of(nodes_of(model))).run({"x": x})
    assert list(given) == ["same", "again", "t", "w", "size"]
    for ours, theirs in zip(given.values(), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_names_may_be_words_of_c_long_or_no_identifiers() -> None:
    long = "layer/" + "very_" * 40 + "deep:0"
    model = a_model(
        [helper.make_node("MatMul", ["int", "layer/fc weight"], [long]), helper.make_node("Relu", [long], ["for"])],
        {"int": [2, 3]}, ["for"], initializer=weights(**{"layer/fc weight": (3, 4)}),
    )  # fmt: skip
    x = drawn((2, 3))
    given = Model(graph_of(nodes_of(model))).run({"int": x})
    np.testing.assert_allclose(given["for"], ReferenceEvaluator(model).run(None, {"int": x})[0], rtol=1e-5)


# ---------------------------------------------------------------------------- files


def test_weights_of_large_files_and_beside_them_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WHOLE_BYTES", 0)
    monkeypatch.setattr(streaming, "KEPT", 64)
    inside, beside = tmp_path / "inside.onnx", tmp_path / "beside.onnx"
    onnx.save(MLP, inside)
    copy = onnx.ModelProto()
    copy.CopyFrom(MLP)
    onnx.save(copy, beside, save_as_external_data=True, location="weights.bin", size_threshold=64)
    for file in (inside, beside):
        model = read_model(file)
        assert not any(t.raw_data for t in model.graph.initializer if np.prod(t.dims) > 16)
        nodes = nodes_of(model, folder=folder_of(file))
        for tensor in MLP.graph.initializer:
            np.testing.assert_array_equal(nodes.constants[tensor.name], numpy_helper.to_array(tensor))
        imported = import_model(model, folder=folder_of(file))
        np.testing.assert_array_equal(imported.weights["w1"], numpy_helper.to_array(MLP.graph.initializer[0]))
    with pytest.raises(NotImported, match="beside the model"):
        nodes_of(read_model(beside))
    halves = numpy_helper.from_array(drawn((8, 8)).astype(ml_dtypes.bfloat16), "w")
    onnx.save(
        a_model(
            [node("Add", "x w", "y")], {"x": ([8, 8], TensorProto.BFLOAT16)}, ["y"], initializer=[halves]
        ),
        inside,
    )
    nodes = nodes_of(read_model(inside), folder=folder_of(inside))
    np.testing.assert_array_equal(
        nodes.constants["w"], np.frombuffer(halves.raw_data, np.uint16).reshape(8, 8)
    )


def test_a_large_file_that_is_damaged_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "WHOLE_BYTES", 0)
    monkeypatch.setattr(streaming, "KEPT", 64)
    file, content = tmp_path / "model.onnx", bytearray(MLP.SerializeToString())

    def told() -> str:
        file.write_bytes(content)
        with pytest.raises((Refusal, NotImported)) as refused:
            nodes_of(read_model(file), folder=folder_of(file))
        return str(refused.value)

    for cut in (1, 100, len(content) // 2):
        content = content[:-cut]
        assert "damaged" in told()
    content = bytearray(b"\xff" * 200)
    assert "damaged" in told()
    monkeypatch.setattr(reader, "MODEL_BYTES", 50)
    content = bytearray(MLP.SerializeToString())
    assert "beside its initializers" in told()


def test_weights_elsewhere_cut_off_or_behind_links_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "w.bin").write_bytes(bytes(40))
    (tmp_path / "secret").write_bytes(bytes(64))
    (folder / "link.bin").symlink_to(tmp_path / "secret")

    def told(location: str, **entries: str) -> str:
        said = [
            onnx.StringStringEntryProto(key=k, value=v) for k, v in {"location": location, **entries}.items()
        ]
        tensor = TensorProto(
            name="w", data_type=1, dims=[16], data_location=TensorProto.EXTERNAL, external_data=said
        )
        (folder / "m.onnx").write_bytes(
            a_model([node("Add", "x w", "y")], {"x": [16]}, ["y"], initializer=[tensor]).SerializeToString()
        )
        with pytest.raises((Refusal, NotImported)) as refused:
            nodes_of(read_model(folder / "m.onnx"), folder=folder_of(folder / "m.onnx"))
        return str(refused.value)

    assert "16 elements (64 bytes) from byte 0 of w.bin on, of 64 bytes; the file has 40" in told("w.bin")
    assert "cut off" in told("w.bin", offset="-8") and "cut off" in told("w.bin", length="8")
    assert "outside of the model's folder" in told("link.bin")
    assert "outside of the model's folder" in told("../secret")
    assert "not beside the model" in told("none.bin")


@pytest.mark.parametrize(
    "model, said",
    [
        (a_model([node("Add", "x z", "y"), node("Relu", "y", "z")], {"x": [2]}, ["z"]), "Relu (z): the nodes are in a circle, or out of order"),
        (a_model([node("MatMul", "x w", "y")], {"x": [2, 3]}, ["y"]), "Nothing gives its input w"),
        (a_model([node("Relu", "x", "y")], {"x": ["batch", 3]}, ["y"]), "(batch), and a kernel's sizes are fixed. Give them: --shape x=4x3"),
        (a_model([node("Relu", "x", "y")], {"x": ["batch", 3, "length"]}, ["y"]), "in 2 dimensions (batch, length), and a kernel's sizes are fixed. Give them: --shape x=4x3x4"),
        (a_model([node("NonZero", "x", "n"), node("Unheard", "x", "u")], {"x": [2]}, ["n", "u"]), "Unheard (u): The operator Unheard is not known"),
        (a_model([node("Relu", "x", "y"), node("Neg", "x", "y")], {"x": [2]}, ["y"]), "the tensor y is given twice"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_a_sentence(model: Any, said: str) -> None:
    with pytest.raises((NotImported, Refusal)) as refused:
        reader.check(model)
        nodes_of(model)
    assert said in str(refused.value)


# ---------------------------------------------------------------------------- commands


def invoked(*arguments: object, code: int = 0) -> str:
    """What a command prints, without what it says aside."""
    answer = CliRunner().invoke(app, [str(each) for each in arguments])
    assert answer.exit_code == code, answer.output
    return answer.stdout if code == 0 else answer.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the model ``mlp.onnx`` and its graph. Timings are short there, the records its own."""
    monkeypatch.setattr(trial, "SECONDS", 0.01)
    monkeypatch.setattr(trial, "ROUND_SECONDS", 0.0)
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    onnx.save(MLP, tmp_path / "mlp.onnx")
    told = invoked("import", tmp_path / "mlp.onnx", "--model", "--to", tmp_path / "mlp.dojo")
    assert "2 calls of 2 kernels" in told
    return tmp_path


def test_which_models_become_a_graph_is_said(folder: Path) -> None:
    assert invoked("import", folder / "mlp.onnx").startswith("kernel mlp")  # few nodes: one kernel's text
    assert invoked("import", folder / "mlp.onnx", "--model").startswith("graph mlp")
    assert "can be taken: 2 calls" in invoked("import", folder / "mlp.onnx", "--model", "--check")
    onnx.save(ATTENTION, folder / "attention.onnx")
    assert invoked("import", folder / "attention.onnx").startswith("graph attention")
    assert invoked("import", folder / "attention.onnx", "--kernel").startswith("kernel attention")


def test_a_model_is_timed_with_each_kernel_s_share(folder: Path) -> None:
    told = json.loads(invoked("time", "--model", folder / "mlp.dojo", "--from", "start", "--json"))
    assert told["right"] and told["seconds"] > 0
    assert [call["nodes"] for call in told["calls"]] == [["Gemm_h1", "Relu_h2"], ["Gemm_logits", "Softmax_y"]]
    assert sum(call["share"] for call in told["calls"]) == pytest.approx(1)


def test_a_model_is_checked_and_its_kernels_are_played(folder: Path) -> None:
    assert "Model mlp, 2 calls of 2 kernels, 4 constants" in " ".join(
        invoked("check", folder / "mlp.dojo").split()
    )
    assert invoked("show", f"{folder / 'mlp.dojo'}:gemm_relu").startswith("kernel gemm_relu\n")


def test_a_wrong_program_makes_the_model_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = models.choices

    def wrong(graph: Graph, *about: Any) -> dict[str, Choice]:
        chosen = true(graph, *about)
        name, choice = next(iter(chosen.items()))
        text = choice.program.text.replace("max(", "min(")
        return {**chosen, name: replace(choice, program=parse(text))}

    monkeypatch.setattr(models, "choices", wrong)
    assert "y is wrong" in invoked("time", "--model", folder / "mlp.dojo", "--from", "start", code=1)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["time"], "Name a kernel"), (["time", "softmax", "--model", "{}"], "timed as it is"), (["time", "softmax", "--against", "{}"], "give --model too"),
        (["time", "--model", "{}", "--from", "nowhere"], "best, heuristic, start"), (["export", "--to", "x"], "Name the kernels"),
        (["export", "softmax", "--model", "{}", "--to", "x"], "Name the kernels"), (["tune", "softmax", "--model", "{}"], "leave kernels"),
        (["time", "--model", "{}.npz"], "is no text"), (["show", "{}"], "name a kernel of it"), (["show", "{}:none"], "has no kernel 'none'"),
        (["export", "{}", "--to", "x"], "give it as --model"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_a_model_is_said(arguments: list[str], said: str, folder: Path) -> None:
    given = [each.format(folder / "mlp.dojo") for each in arguments]
    assert said in " ".join(invoked(*given, code=1).split())


@pytest.mark.skipif(find_spec("onnxruntime") is not None, reason="onnxruntime is installed here")
def test_who_would_compare_and_is_not_there_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_BENCH_PYTHON", sys.executable)
    told = invoked(
        "time", "--model", folder / "mlp.dojo", "--from", "start", "--against", folder / "mlp.onnx", code=1
    )
    assert "ONNX Runtime is not installed" in " ".join(told.split())


def test_two_are_timed_in_turns_and_compared_by_the_rounds() -> None:
    slow, fast = (
        iter([4.0, 40.0, 4.0, 4.0]),
        iter([2.0, 20.0, 2.0, 1.0]),
    )  # the second round was a slow moment
    assert in_turns(lambda runs: [next(slow)] * runs, lambda runs: [next(fast)] * runs, rounds=3) == (
        4.0,
        2.0,
        2.0,
    )


def test_how_far_outputs_are_off_is_told_of_the_largest_value() -> None:
    m = Drawn()
    graph = m.model(m.map("Relu", "max(a, 0)", m.input("x", 2, 2)))
    (name,) = graph.outputs
    wanted = np.array([[100.0, np.inf], [np.nan, 0.0]], np.float32)
    for apart, right in ((0.05, True), (0.5, False), (np.nan, False)):
        given = wanted + np.array([[apart, 0], [0, 0]], np.float32)
        (found,) = deviations(graph, {graph.label(name): given}, {graph.label(name): wanted})
        assert found.right is right


def test_a_search_spends_its_budget_by_share() -> None:
    assert spread(100, {"a": 0.1, "b": 0.7, "c": 0.004, "d": 0.196}) == {"b": 70, "d": 20, "a": 10}
    assert spread(1, {"a": 0.5, "b": 0.5}) == {"a": 1, "b": 1}  # (rounded to nothing: still one each)


def test_an_exported_model_runs_without_the_dojo(folder: Path) -> None:
    """C through ctypes, as any language calls it, and the Python package; both with the file of constants."""
    place = folder / "library"
    invoked(
        "export", "--model", folder / "mlp.dojo", "--from", "heuristic", "--to", place, "--name", "fast_mlp"
    )
    kernels = [file for file in (place / "kernels").glob("*.c") if not file.stem.endswith("bit")]
    sources = [place / "library.c", *kernels]
    built = place / "fast_mlp" / "libfast_mlp.so"
    flags = [
        "-std=gnu11",
        "-O0",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        "-Wno-psabi",
        "-DFAST_MLP_NATIVE",
        "-DKERNEL_LEVEL=native",
    ]
    assert " ".join(flags[-2:]) in (place / "README.md").read_text()  # so it is told
    subprocess.run(["gcc", *flags, *map(str, sources), "-o", str(built), "-lm"], check=True)
    x = INPUTS["mlp"]["x"]
    wanted = ReferenceEvaluator(MLP).run(None, {"x": x})[0]

    library = ctypes.CDLL(str(built))
    library.fast_mlp_weights.restype = ctypes.c_void_p
    load_weights = library.fast_mlp_weights
    assert load_weights(str(place / "README.md").encode()) is None  # not that file
    weights = load_weights(str(place / "fast_mlp" / "model.weights").encode())
    y = np.zeros((4, 10), np.float32)
    assert library.fast_mlp_run(ctypes.c_void_p(weights), x.ctypes, y.ctypes, None) == 0
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-6)
    assert library.fast_mlp_run(ctypes.c_void_p(weights), x.ctypes, x.ctypes, None) == 3  # an output overlaps

    script = (
        "import numpy as np, fast_mlp\n"
        "print(fast_mlp.run({'x': np.load('x.npy')})['y'].tolist())\n"
        "try: fast_mlp.run({'z': 0})\n"
        "except ValueError as fault: print(fault)\n"
    )
    np.save(folder / "x.npy", x)
    answer = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PYTHONPATH": str(place)},
        check=True,
        capture_output=True,
        text=True,
    )
    given, fault = answer.stdout.splitlines()
    np.testing.assert_allclose(json.loads(given), wanted, rtol=1e-4, atol=1e-6)
    assert "no input 'z': it takes x float32 [4, 24]" in fault


def test_arguments_of_an_exported_model_are_words_of_c_no_more(tmp_path: Path) -> None:
    model = a_model(
        [node("Add", "int weights", "for"), node("Identity", "int", "memory")],
        {"int": [4], "weights": [4]},
        ["for", "memory"],
    )
    graph = graph_of(nodes_of(model))
    starts = {
        name: of_game(kernel_game(kernel), "the start program") for name, kernel in graph.kernels.items()
    }
    write(model_library(graph, starts, "words"), tmp_path / "words")
    assert (
        "const float *int_, const float *weights_, float *for_, float *memory_, void *memory"
        in (tmp_path / "words" / "words.h").read_text()
    )
    for compiler in (["gcc", "-std=gnu11"], ["g++"]):
        source = "library.c" if compiler[0] == "gcc" else "words.h"
        subprocess.run(
            [*compiler, "-fsyntax-only", "-Wall", "-Werror", source], cwd=tmp_path / "words", check=True
        )


def test_what_programs_copy_of_weights_lies_in_an_exported_model_s_file() -> None:
    m = Drawn()
    x, w = m.input("x", 6, 8), m.weight("w", 8, 32)
    graph = m.model(m.matmul(x, w))
    (kernel,) = graph.kernels.values()
    packing = replace(of_game(kernel_game(kernel), "a game"), program=parse(PACKING))
    ready, choices = prepared(graph, {kernel.name: packing})
    assert set(ready.constants) == {f"{kernel.name}_px2"}
    inputs = m.drawn()
    (given,) = Model(ready, choose(ready, choices)).run(inputs).values()
    np.testing.assert_allclose(given, inputs["x"] @ m.constants["w"], rtol=1e-5, atol=1e-6)
    assert list(
        model_library(graph, {kernel.name: packing}, "packed").data["packed/model.weights"].values
    ) == list(ready.constants)


def test_a_model_runs_from_python_at_the_sizes_of_its_inputs(folder: Path) -> None:
    weights_ = weights(w=(3, 2))
    onnx.save(
        a_model([node("MatMul", "x w", "y")], {"x": ["batch", 3]}, ["y"], initializer=weights_),
        folder / "open.onnx",
    )
    for batch in (1, 4):
        x = drawn((batch, 3))
        (y,) = dojo_core.run(folder / "open.onnx", {"x": x}).values()
        np.testing.assert_allclose(y, x @ numpy_helper.to_array(weights_[0]), rtol=1e-5)
