# ruff: noqa: E501  (models and what is said of them stand side by side)
"""Operators of ONNX as kernels' texts: a sample of the standard's own tests, reasons, damaged files.

``python -m benchmarks.onnx_nodes`` is the whole judge (docs/onnx.md has its table), and part of ``make soak``.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

onnx = pytest.importorskip("onnx", reason="onnx is not installed: make setup brings it")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from agents.cli import app  # noqa: E402
from benchmarks import onnx_nodes as judge  # noqa: E402
from dojo_core.from_onnx import reader, walk  # noqa: E402
from dojo_core.from_onnx.importer import Given, NotImported, import_model  # noqa: E402
from dojo_core.from_onnx.reader import model_of, read_model  # noqa: E402
from dojo_core.from_onnx.values import Refusal  # noqa: E402
from dojo_core.program.interpret import interpret  # noqa: E402
from tests.compiled import load  # noqa: E402

# Operators, and how many tests of each are in the sample: a hundred of all families.
SAMPLE = {
    "Add": 3, "ArgMax": 3, "BatchNormalization": 2, "Cast": 4, "Clip": 4, "Concat": 3, "Conv": 3,
    "ConvTranspose": 4, "CumSum": 4, "DepthToSpace": 2, "DequantizeLinear": 2, "Einsum": 4, "Elu": 2, "Expand": 2,
    "Flatten": 2, "Gather": 3, "GatherND": 2, "Gemm": 3, "GRU": 2, "InstanceNormalization": 1, "LayerNormalization": 3,
    "Loop": 2, "LSTM": 2, "MatMul": 2, "LRN": 2, "GlobalMaxPool": 2, "MaxUnpool": 2, "Mod": 2, "GridSample": 2, "OneHot": 2, "Pad": 3, "QuantizeLinear": 2, "ReduceLogSumExp": 3,
    "Reshape": 3, "Resize": 3, "RNN": 1, "Scan": 2, "ScatterElements": 3, "Slice": 2, "Softmax": 4, "Split": 3, "TopK": 2,
    "Transpose": 2, "Where": 1,
}  # fmt: skip
MODULES = {
    "BatchNormalization": "batch_normalization", "InstanceNormalization": "instance_normalization", "ReduceLogSumExp": "reduce_log_sum_exp",
}  # fmt: skip
OTHERS = ("out_of_bounds",)  # not in the sample: a result without elements
COMPILED = 10  # of these, as C too


def tensor(name: str, shape: Any, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def a_model(
    nodes: list[Any], inputs: dict[str, Any], outputs: list[str], version: int = 20, **graph: Any
) -> Any:
    """A model whose inputs are f32, or of the type that is given with the shape."""
    infos = [tensor(n, *(s if isinstance(s, tuple) else (s,))) for n, s in inputs.items()]
    made = helper.make_graph(nodes, "g", infos, [tensor(o, None) for o in outputs], **graph)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", version)])


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def reasons(model: Any, **given: Given) -> list[str]:
    with pytest.raises(NotImported) as refused:
        import_model(model, given)
    return [str(r) for r in refused.value.reasons]


def test_whole_powers_are_products() -> None:
    """``pow`` of the C library, lane by lane, takes as long as a hundred of them."""
    exponent = numpy_helper.from_array(np.array([3], np.float32), "e")
    cube = a_model([node("Pow", "x e", "y")], {"x": [4]}, ["y"], initializer=[exponent])
    program = import_model(cube, {}).program
    assert program.text.splitlines()[-2:] == ["4 t1[{0}] = x[{0}]*x[{0}]", "| y[{0}] = t1[{0}]*x[{0}]"]


# ---------------------------------------------------------------------------- the standard's own tests


@pytest.mark.thorough  # test_primitives.py has each; make soak all of them
def test_a_sample_of_the_standard_s_own_tests_passes_interpreted_and_compiled() -> None:
    cases = _sample()
    assert len(cases) >= 100
    prepared = [judge.prepare(case, check=k % 5 == 0) for k, case in enumerate(cases)]
    unlike = {p.verdict.name: p.verdict.reason for p in prepared if p.verdict.interpreted != "ok"}
    assert not unlike

    chosen = range(0, len(cases), len(cases) // COMPILED)
    code = [prepared[k].code for k in chosen]
    library = load("\n".join(c.text for c in code if c is not None))
    for k, each in zip(chosen, code, strict=True):
        assert each is not None
        verdict = judge.run_compiled(cases[k], prepared[k], library[each.symbol])
        assert verdict.ok, f"{verdict.name}: {verdict.reason}"


def _sample() -> list[judge.Case]:
    everything = judge.collected(MODULES.get(name, name.lower()) for name in SAMPLE)
    chosen: list[judge.Case] = []
    for name, count in SAMPLE.items():
        there = [c for c in everything if c.operators[:1] == (name,) and not any(w in c.name for w in OTHERS)]
        chosen += there[:count]
    return chosen


@pytest.mark.soak
def test_no_test_of_the_standard_is_wrong() -> None:
    """All of them: what does not pass is refused, with a reason."""
    verdicts = judge.judge([*judge.collected(), *judge.own_cases()])
    bad = {v.name: v.reason for v in verdicts if v.bad}
    assert not bad
    assert all(v.reason for v in verdicts if not v.ok)


def test_a_wrong_result_is_told_and_is_no_skip() -> None:
    (case,) = [c for c in judge.collected(["relu"]) if c.name == "test_relu"]
    other = judge.Case(case.name, case.model, case.inputs, (case.outputs[0] + 1,), 1e-3, 1e-7, case.operators)
    verdict = judge.prepare(other).verdict
    assert verdict.interpreted == "wrong" and verdict.bad and "Not equal" in verdict.reason


def test_the_judge_notices_data_that_was_taken_for_its_values() -> None:
    (case,) = [c for c in judge.collected(["trilu"]) if c.name == "test_tril_neg"]
    assert judge.prepare(case).verdict.interpreted == "ok" and case.says == {"k"}
    verdict = judge.prepare(
        judge.Case(case.name, case.model, case.inputs, case.outputs, 1e-3, 1e-7, case.operators)
    ).verdict
    assert verdict.bad and "Data was taken" in verdict.reason


def test_a_crash_and_a_hanging_test_are_told_and_the_others_go_on() -> None:
    import os
    import time

    from benchmarks.guarded import guarded

    def work(k: int) -> int:
        if k == 1:
            os._exit(3)
        if k == 2:
            time.sleep(60)
        return k * k

    assert guarded(work, 5, 0.5, 2) == [0, "crash", "timeout", 9, 16]


# ---------------------------------------------------------------------------- what an import is


def test_a_small_graph_is_one_text() -> None:
    weights = np.arange(12, dtype=np.float32).reshape(4, 3)
    model = a_model(
        [node("MatMul", "x w", "t"), node("Relu", "t", "y")],
        {"x": [2, 4]}, ["y"], initializer=[numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    imported = import_model(model)
    assert imported.text == (
        "kernel g\n"
        "in x\n"
        "out y\n"
        "x f32 [2, 4] heap\n"
        "y f32 [2, 3] heap\n"
        "t1 f32 [2, 3] heap\n"
        "2 3 t1[{0},{1}] = 0\n"
        "2 3 4 t1[{0},{1}] += x[{0},{2}]*({1}+{2}*3)\n"
        "2 3 y[{0},{1}] = max(t1[{0},{1}],0)\n"
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 4) - 4
    given = interpret(imported.program, {"x": x, **imported.weights})
    np.testing.assert_allclose(given["y"], np.maximum(x @ weights, 0))


def test_weights_are_inputs_of_the_text_that_the_model_has_values_for() -> None:
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((4, 30)).astype(np.float32)
    model = a_model(
        [node("MatMul", "x w", "y")],
        {"x": [2, 4]},
        ["y"],
        initializer=[numpy_helper.from_array(weights, "w")],
    )
    imported = import_model(model)
    assert imported.program.inputs == ("x", "w")
    np.testing.assert_array_equal(imported.weights["w"], weights)


def test_an_input_that_says_a_shape_is_taken_for_its_value_and_data_never_is() -> None:
    model = a_model(
        [node("Reshape", "x shape", "y")], {"x": [2, 6], "shape": ([2], TensorProto.INT64)}, ["y"]
    )
    (reason,) = reasons(model)
    assert "shape says a shape" in reason and "--value" in reason
    imported = import_model(
        model, {"shape": Given((2,), np.array([3, 4])), "x": Given((2, 6), np.ones((2, 6)))}
    )
    assert imported.specialised == {"shape": "Reshape: shape"}
    assert imported.program.inputs == ("x",) and imported.outputs[0].shape == (3, 4)


def test_shapes_are_worked_out_before_there_is_a_kernel() -> None:
    """Shape, Gather, Mul, Concat and Reshape leave nothing in the text but a view."""
    one = numpy_helper.from_array(np.array([0]), "zero")
    model = a_model(
        [
            node("Shape", "x", "s"), node("Gather", "s zero", "rows"), node("Mul", "rows two", "more"),
            node("Concat", "more minus", "shape", axis=0), node("Reshape", "x shape", "r"), node("Neg", "r", "y"),
        ],
        {"x": [3, 8]}, ["y"],
        initializer=[one, numpy_helper.from_array(np.array([2]), "two"), numpy_helper.from_array(np.array([-1]), "minus")],
    )  # fmt: skip
    imported = import_model(model)
    assert imported.outputs[0].shape == (6, 4) and len(imported.program.leaves) == 1


def test_a_transform_too_long_for_a_table_computes_where_its_powers_stand() -> None:
    x = np.random.default_rng(5).standard_normal((2, 150, 1))
    imported = import_model(a_model([node("DFT", "x", "y")], {"x": [2, 150, 1]}, ["y"]))
    assert not imported.program.tables and imported.program.inputs == ("x",)
    wanted = np.fft.fft(x[..., 0])
    got = interpret(imported.program, {"x": x})["y"]
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("corners", [0, 1])
def test_the_grid_of_one_picture(corners: int) -> None:
    theta = np.array([[[1.0, 0.5, 0], [0, 2, -1]]])
    size = numpy_helper.from_array(np.array([1, 3, 2, 4]), "size")
    grid = node("AffineGrid", "theta size", "y", align_corners=corners)
    imported = import_model(a_model([grid], {"theta": [1, 2, 3]}, ["y"], initializer=[size]))
    rows, columns = (np.linspace(-1, 1, n) * (1 if corners else 1 - 1 / n) for n in (2, 4))
    at_y, at_x = np.meshgrid(rows, columns, indexing="ij")
    wanted = np.stack([at_x + 0.5 * at_y, 2 * at_y - 1], -1)[None]
    np.testing.assert_allclose(interpret(imported.program, {"theta": theta})["y"], wanted, atol=1e-6)


def test_regions_of_interest_that_are_data() -> None:
    (case,) = [c for c in judge.own_cases() if c.name == "ours_maxroipool"]
    verdict = judge.prepare(case).verdict
    assert verdict.interpreted == "ok", verdict.reason


def test_a_body_is_bound_where_a_node_leaves_inputs_and_attributes_out() -> None:
    """GroupNormalization is defined by other operators; epsilon is its default, clipping bounds are left out."""
    model = a_model(
        [node("GroupNormalization", "x s b", "t", num_groups=2), helper.make_node("Clip", ["t", "", "top"], ["y"])],
        {"x": [1, 4, 3, 3], "s": [4], "b": [4], "top": []}, ["y"], 21,
    )  # fmt: skip
    imported = import_model(model)
    rng = np.random.default_rng(2)
    x, s, b = rng.standard_normal((1, 4, 3, 3)), rng.standard_normal(4), rng.standard_normal(4)
    shape = {n: [d.size for d in imported.program.buffer_of[n].dims] for n in imported.program.inputs}
    given = {"x": x, "s": s, "b": b, "top": np.array(0.5)}
    y = interpret(imported.program, {n: np.reshape(given[n], shape[n]) for n in shape})["y"]
    groups = x.reshape(1, 2, -1)
    normal = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    wanted = np.minimum(normal.reshape(1, 4, 3, 3) * s.reshape(1, 4, 1, 1) + b.reshape(1, 4, 1, 1), 0.5)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


# ---------------------------------------------------------------------------- reasons


def test_all_reasons_come_in_one_answer(tmp_path: Path) -> None:
    model = a_model(
        [
            node("NonZero", "x", "where"), node("Unheard", "where", "u", name="mine"),
            node("StringConcat", "u u", "s"), node("Relu", "x", "r"), node("Reshape", "x x", "z"),
        ],
        {"x": [2, 3]}, ["s", "z", "r"],
    )  # fmt: skip
    file = tmp_path / "model.onnx"
    onnx.save(model, file)
    answer = CliRunner().invoke(app, ["import", str(file), "--check"])
    assert answer.exit_code == 1
    for operator in ("NonZero (where)", "Unheard (mine)", "StringConcat (s)", "Reshape (z)"):
        assert operator in answer.output
    assert "Relu" not in answer.output


def test_what_is_imported_is_checked_and_played(tmp_path: Path) -> None:
    model = a_model([node("Softmax", "x", "t"), node("ReduceSum", "t axes", "y", keepdims=0)],
                    {"x": ["rows", 8], "axes": ([1], TensorProto.INT64)}, ["y"])  # fmt: skip
    file, text = tmp_path / "model.onnx", tmp_path / "model.dojo"
    onnx.save(model, file)
    run = CliRunner().invoke
    refused = run(app, ["import", str(file)])
    assert refused.exit_code == 1 and "--shape x=4x8" in refused.output
    told = run(app, ["import", str(file), "--shape", "x=4x8", "--value", "axes=1", "--to", str(text)])
    assert told.exit_code == 0, told.output
    assert "valid" in run(app, ["check", str(text)]).output
    played = run(app, ["play", str(text), "--do", "split_scope y@0 2"])
    assert played.exit_code == 0, played.output


@pytest.mark.parametrize(
    "options, said",
    [
        (["--shape", "q=4"], "no input 'q'"), (["--shape", "x=4xx"], "a shape reads 2x3"), (["--shape", "x"], "such as x=2x3"),
        (["--value", "axes=one"], "write numbers"), (["--shape", "axes=3", "--value", "axes=1,2"], "do not make the shape"),
    ],
)  # fmt: skip
def test_what_is_said_of_inputs_is_read_with_care(options: list[str], said: str, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    onnx.save(
        a_model([node("ReduceSum", "x axes", "y")], {"x": [2, 2], "axes": ([1], TensorProto.INT64)}, ["y"]),
        file,
    )
    answer = CliRunner().invoke(app, ["import", str(file), *options])
    assert answer.exit_code == 1 and said in " ".join(answer.output.split())


@pytest.mark.parametrize(
    "model, said",
    [
        (a_model([node("Conv", "x w", "y", auto_pad="SAME_UPPER", pads=[1, 1, 1, 1])], {"x": [1, 1, 8, 8], "w": [1, 1, 3, 3]}, ["y"]), "Leave one out"),
        (a_model([node("Conv", "x w", "y", strides=[1])], {"x": [1, 1, 8, 8], "w": [1, 1, 3, 3]}, ["y"]), "strides has 1 numbers for 2"),
        (a_model([node("Conv", "x w", "y", kernel_shape=[5, 5])], {"x": [1, 1, 8, 8], "w": [1, 1, 3, 3]}, ["y"]), "is not that of its weights"),
        (a_model([node("Conv", "x w", "y", group=2)], {"x": [1, 3, 8, 8], "w": [1, 3, 3, 3]}, ["y"]), "group"),
        (a_model([node("Transpose", "x", "y", perm=[0, 0])], {"x": [2, 3]}, ["y"]), "no order of 2 axes"),
        (a_model([node("Softmax", "x", "y", axis=5)], {"x": [2, 3]}, ["y"]), "Axes are -2 to 1"),
        (a_model([node("Einsum", "x", "y", equation="ij,jk->ik")], {"x": [2, 3]}, ["y"]), "names 2 tensors"),
        (a_model([node("Add", "x w", "y")], {"x": [2, 3], "w": [2, 4]}, ["y"]), "not broadcast together"),
        (a_model([node("Gelu", "x", "y", approximate="best")], {"x": [2]}, ["y"]), "not one of none, tanh"),
        (a_model([node("Add", "x x", "y", broadcast=1)], {"x": [2]}, ["y"], 1), "version_converter"),
        (a_model([node("Relu", "missing", "y")], {"x": [2]}, ["y"]), "Nothing gives its input missing"),
        (a_model([node("Relu", "x", "y")], {"x": ["n", 3]}, ["y"]), "--shape x=4x3"),
        (a_model([node("NonZero", "x", "y")], {"x": [2]}, ["y"]), "hangs on data"),
        (a_model([node("Bernoulli", "x", "y")], {"x": [2]}, ["y"]), "draws random numbers"),
    ],
)  # fmt: skip
def test_attributes_that_contradict_and_their_like_are_sentences(model: Any, said: str) -> None:
    told = reasons(model)
    assert said in " ".join(told), told


# ---------------------------------------------------------------------------- damaged and hostile files


def test_a_file_that_is_damaged_too_large_or_of_another_opset_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = a_model([node("Relu", "x", "y")], {"x": [4]}, ["y"])
    file = tmp_path / "model.onnx"

    def told(content: bytes) -> str:
        file.write_bytes(content)
        with pytest.raises((Refusal, NotImported)) as refused:
            import_model(read_model(file))
        return str(refused.value)

    assert "damaged" in told(b"no model at all")
    assert "damaged" in told(good.SerializeToString()[:-3])
    assert "no graph" in told(b"")
    good.opset_import[0].version = 999
    assert "Upgrade it" in told(good.SerializeToString())
    del good.opset_import[:]
    assert "says no opset" in told(good.SerializeToString())
    monkeypatch.setattr(reader, "MODEL_BYTES", 10)
    monkeypatch.setattr(reader, "WHOLE_BYTES", 10)
    assert "extract_model" in told(good.SerializeToString())


def test_initializers_that_are_elsewhere_or_too_short_are_told(tmp_path: Path) -> None:
    def with_weights(**changes: Any) -> str:
        weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=changes.pop("dims", [4]), **changes)
        model = a_model([node("Add", "x w", "y")], {"x": [4]}, ["y"], initializer=[weights])
        file = tmp_path / "model.onnx"
        file.write_bytes(model.SerializeToString())
        with pytest.raises((Refusal, NotImported)) as refused:
            import_model(read_model(file))
        return str(refused.value)

    def elsewhere(place: str) -> dict[str, Any]:
        entry = onnx.StringStringEntryProto(key="location", value=place)
        return {"data_location": TensorProto.EXTERNAL, "external_data": [entry]}

    assert "w.bin, which is not beside the model" in with_weights(**elsewhere("w.bin"))
    assert "outside of the model's folder" in with_weights(**elsewhere("../../secret"))
    assert "outside of the model's folder" in with_weights(**elsewhere("/etc/passwd"))
    two_gigabytes = with_weights(dims=[1 << 29], raw_data=b"1234")
    assert "says 536,870,912 elements (2,147,483,648 bytes) and holds 4 bytes" in two_gigabytes
    assert "negative size" in with_weights(dims=[-4], raw_data=b"1234")


def test_what_would_grow_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def const(value: Any) -> Any:
        return numpy_helper.from_array(np.asarray(value), "c")

    huge = a_model(
        [node("ConstantOfShape", "c", "t"), node("Neg", "t", "y")],
        {},
        ["y"],
        initializer=[const([1 << 20, 1 << 20])],
    )
    assert "the buffers take 4,398,046,511,104 bytes" in reasons(huge)[0]
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Add", "v v", "w")], "body",
        [tensor("i", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("v", [2])],
        [tensor("on", [], TensorProto.BOOL), tensor("w", [2])],
    )  # fmt: skip
    endless = a_model(
        [helper.make_node("Loop", ["c", "", "x"], ["y"], body=body)],
        {"x": [2]},
        ["y"],
        initializer=[const(10**9)],
    )
    assert "more than 256 iterations" in reasons(endless)[0]
    for nodes, given in (
        ([node("Resize", "x none none c", "y", axes=[0])], [10**12]),
        ([node("DFT", "x c", "y")], 10**9),
        ([node("Split", "x", "y", num_outputs=10**12)], 0),
        ([node("SplitToSequence", "z", "y", keepdims=0)], 0),
        ([node("MaxPool", "v", "t y", kernel_shape=[2])], 0),
    ):
        nodes[0].input[:] = ["" if n == "none" else n for n in nodes[0].input]
        shapes = {"x": [4, 2], "z": [10**9], "v": [1, 1, 10**9]}
        large = a_model(
            nodes, {n: s for n, s in shapes.items() if n in nodes[0].input}, ["y"], initializer=[const(given)]
        )
        assert "more than" in reasons(large)[0]
    again = helper.make_function("mine", "again", ["a"], ["b"], [helper.make_node("again", ["a"], ["b"], domain="mine")],
                                 [helper.make_opsetid("mine", 1)])  # fmt: skip
    circle = a_model([helper.make_node("again", ["x"], ["y"], domain="mine")], {"x": [2]}, ["y"])
    circle.functions.append(again)
    circle.opset_import.append(helper.make_opsetid("mine", 1))
    assert "deep" in reasons(circle)[0]
    monkeypatch.setattr(reader, "NODES", 50)
    many = a_model([node("Neg", f"v{k}", f"v{k + 1}") for k in range(60)], {"v0": [2]}, ["v60"])
    with pytest.raises(Refusal, match="more than 50 nodes"):
        reader.check(many)
    monkeypatch.setattr(walk, "STEPS", 50)
    assert "more than 50 steps" in reasons(many)[0]


def test_models_with_random_bytes_in_them_end_in_sentences() -> None:
    """Nothing else than a refusal, or an import."""
    body = helper.make_graph([node("Relu", "x", "r")], "then", [], [tensor("r", [2, 4])])
    models = [
        a_model([node("Conv", "x w", "t", pads=[1, 1, 1, 1]), node("MaxPool", "t", "y", kernel_shape=[2, 2])], {"x": [1, 2, 5, 5], "w": [3, 2, 3, 3]}, ["y"]),
        a_model([node("LayerNormalization", "x s", "t"), node("Gemm", "t w", "y", transB=1)], {"x": [2, 4], "s": [4], "w": [3, 4]}, ["y"]),
        a_model([helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)], {"x": [2, 4], "c": ([], TensorProto.BOOL)}, ["y"]),
        a_model([node("LSTM", "x w r", "y"), node("TopK", "x k", "v i")], {"x": [2, 1, 3], "w": [1, 8, 3], "r": [1, 8, 2]}, ["y", "v"],
                initializer=[numpy_helper.from_array(np.array([2]), "k")]),
    ]  # fmt: skip
    rng = random.Random(7)
    for model in models:
        import_model(model)
        content = model.SerializeToString()
        for _ in range(60):
            damaged = bytearray(content)
            for _ in range(rng.randint(1, 4)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            try:
                import_model(model_of(bytes(damaged)))
            except (Refusal, NotImported) as refused:
                assert str(refused)
