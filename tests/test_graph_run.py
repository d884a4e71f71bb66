"""A graph at work (docs/graph.md): compiled, its memory planned, its inputs checked; as a text and files."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dojo_core import apply, legal_moves, parse
from dojo_core import primitives as p
from dojo_core.export.choice import of_game
from dojo_core.game import Game
from dojo_core.graph import (
    Graph,
    GraphError,
    Kind,
    Model,
    Node,
    Tensor,
    build,
    load,
    parse_graph,
    print_graph,
    reference,
    save,
)
from dojo_core.graph.choices import choices
from dojo_core.graph.hoisting import hoisted
from dojo_core.graph.plan import ALIGNMENT, Lifetime, places
from dojo_core.graph.preparation import prepared
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.program.tree import Program
from dojo_core.targets.cpu import codegen
from tests.compiled import run_program
from tests.drawn import Drawn


def two_layers() -> Drawn:
    m = Drawn()
    x, w, v = m.input("x", 8, 12), m.weight("w", 12, 16), m.weight("v", 16, 4)
    h = m.map("relu", "max(a + b, 0)", m.matmul(x, w), m.weight("bias", 16))
    m.matmul(h, v)
    return m


# ---------------------------------------------------------------------------- runs


def test_a_model_runs_and_says_where_its_time_goes() -> None:
    m = two_layers()
    graph = m.model("matmul2", "relu1")
    model = Model(graph)
    inputs, c = m.drawn(), m.constants
    results = model.run(inputs)
    h = np.maximum(inputs["x"] @ c["w"] + c["bias"], 0)
    assert list(results) == ["matmul2", "relu1"]
    np.testing.assert_allclose(results["relu1"], h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results["matmul2"], h @ c["v"], rtol=1e-5, atol=1e-5)

    again = model.run({"x": np.asfortranarray(inputs["x"])})  # any strides; its results are its own
    assert np.array_equal(again["matmul2"], results["matmul2"]) and again["matmul2"] is not results["matmul2"]

    shares = model.profile(inputs, runs=3)
    assert [share.call.kernel for share in shares] == ["matmul_relu", "matmul"]
    assert sum(share.share for share in shares) == pytest.approx(1)

    wrongs: list[tuple[dict[str, Any], str]] = [
        ({}, "The input x is missing: give f32 [8, 12]."),
        ({**inputs, "y": 0}, "model has no input y: its inputs are x."),
        ({"x": inputs["x"].T}, "x f32 [8, 12] has a value of float32 [12, 8]: it is to be float32 [8, 12]."),
        ({"x": inputs["x"].astype(float)}, "has a value of float64 [8, 12]: it is to be float32 [8, 12]."),
    ]
    for given, said in wrongs:
        with pytest.raises(GraphError, match=re.escape(said)):
            model.run(given)


def test_each_kernel_runs_as_the_program_that_is_chosen_for_it() -> None:
    m = two_layers()
    graph = m.model("matmul2")

    def chosen(start: Program) -> Program:
        join = next(move for move in legal_moves(start) if move.name == "join_scopes")
        return apply(start, join)

    model = Model(graph, choose=chosen)
    assert [program.text.count("\n8 ") for program in model.programs.values()] == [2, 1]
    inputs = m.drawn()
    np.testing.assert_allclose(
        model.run(inputs)["matmul2"], reference(graph, inputs)["matmul2"], rtol=1e-5, atol=1e-5
    )
    with pytest.raises(GraphError, match="has other arrays than its start"):
        Model(graph, choose=lambda start: graph.kernels["matmul"].program)


def test_dtypes_as_they_are_stored_and_places_within_their_domain() -> None:
    inputs = [
        Tensor("at", "i64", (3,), (0, 4)),
        Tensor("x", "bf16", (5,)),
        Tensor("mask", "bool", (3,)),
    ]

    def emit(b: p.Builder, arrays: Any) -> list[p.Array]:
        at, x, mask = arrays
        chosen = p.gather(b, x, at, 0)
        return [p.elementwise(b, "not", mask), p.select(b, mask, chosen, 0), p.reshape(b, chosen, (3, 1))]

    outputs = (Tensor("no", "bool", (3,)), Tensor("y", "bf16", (3,)), Tensor("z", "bf16", (3, 1)))
    node = Node("n", "pick", Kind.OTHER, ("at", "x", "mask"), outputs, emit)
    model = Model(build("pick", inputs, [node], ["no", "y", "x", "z"]))
    x = np.array([0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0], np.uint16)  # 1, 2, 3, 4, 5
    given = {"at": np.array([4, 0, 2]), "x": x, "mask": np.array([True, False, True])}
    results = model.run(given)
    assert results["no"].tolist() == [False, True, False] and results["no"].dtype == bool
    assert results["y"].tolist() == [0x40A0, 0, 0x4040] and results["x"].tolist() == x.tolist()
    assert results["z"].tolist() == [[0x40A0], [0x3F80], [0x4040]]
    with pytest.raises(GraphError, match="The input at has elements beyond 0 to 4"):
        model.run(given | {"at": np.array([4, 0, 5])})


# ---------------------------------------------------------------------------- what is copied once

PACKING = """\
kernel matmul
in x1, x2
out y1
x1 f32 [6, 8] heap
x2 f32 [8, 32] heap
y1 f32 [6, 32] heap
px2 f32 [8:N, 3:N, 8, 4] stack
8:p 3 8 4:v px2[{0},{1},{2},{3}] = x2[{2},{0}*4+{3}]
| | 2 4:v y1[{1}*2+{2},{0}*4+{3}] = 0
| | 2 8 4:v y1[{1}*2+{2},{0}*4+{4}] += x1[{1}*2+{2},{3}]*px2[{0},{1},{3},{4}]
"""


def test_two_inputs_may_share_memory() -> None:
    m = Drawn()
    graph = m.model(m.map("sub", "a - b", m.input("x", 4, 8), m.input("z", 4, 8)))
    rows = np.arange(48, dtype=np.float32).reshape(6, 8) ** 2
    (y,) = Model(graph).run({"x": rows[:4], "z": rows[2:]}).values()
    np.testing.assert_array_equal(y, rows[:4] - rows[2:])


def test_what_is_asked_for_ahead_of_a_packed_weight_is_still() -> None:
    asking = PACKING.replace(" = 0", " = 0 !prefetch(px2[{0}+1,{1},{2},{3}])")
    parts = hoisted(parse(asking), ["x2"])
    assert parts is not None and "= 0 !prefetch(px2[{0}+1,{2},{3}])" in parts.each_run.text
    assert "prefetch" not in parts.once.text


def test_a_weight_is_packed_once() -> None:
    """All panels at once, and one for the three groups of rows, which all read the same."""
    parts = hoisted(parse(PACKING), ["x2"])
    assert parts is not None and parts.once.text == (
        "kernel matmul\nin x2\nout px2\nx2 f32 [8, 32] heap\npx2 f32 [8, 8, 4] heap\n"
        "8:p 1 8 4:v px2[{0},{2},{3}] = x2[{2},{0}*4+{3}]\n"
    )
    assert parts.each_run.text == (
        "kernel matmul\nin x1, px2\nout y1\nx1 f32 [6, 8] heap\npx2 f32 [8, 8, 4] heap\n"
        "y1 f32 [6, 32] heap\n8:p 3 2 4:v y1[{1}*2+{2},{0}*4+{3}] = 0\n"
        "| | 2 8 4:v y1[{1}*2+{2},{0}*4+{4}] += x1[{1}*2+{2},{3}]*px2[{0},{3},{4}]\n"
    )
    m = Drawn()
    x, w, v = m.input("x", 6, 8), m.weight("w", 8, 32), m.weight("v", 8, 32)
    graph = m.model(m.matmul(x, w), m.matmul(x, v))
    model = Model(graph, choose=lambda start: parse(PACKING))
    inputs = m.drawn()
    for values, weight in zip(model.run(inputs).values(), "wv", strict=True):
        np.testing.assert_allclose(values, inputs["x"] @ m.constants[weight], rtol=1e-5, atol=1e-6)


def test_a_padded_copy_is_made_once() -> None:
    text = (
        "kernel k\nin x1\nout y1\nx1 f32 [4, 12] heap\ny1 f32 [4] heap\np f32 [4, 16] heap\n"
        "4 16 p[{0},{1}] = 0\n4 12 p[{0},{1}+2] = x1[{0},{1}]\n4 y1[{0}] = 0\n4 16 y1[{0}] += p[{0},{1}]\n"
    )
    parts = hoisted(parse(text), ["x1"])
    assert parts is not None and [len(each.leaves) for each in (parts.once, parts.each_run)] == [2, 2]
    late = text.replace("4 12 p[{0},{1}+2] = x1[{0},{1}]\n", "") + "4 12 p[{0},{1}+2] = x1[{0},{1}]\n"
    assert hoisted(parse(late), ["x1"]) is None


@pytest.mark.parametrize(
    "text",
    [
        PACKING.replace("\nx2 f32", "\nx2 f16").replace(
            "= x2[{2},{0}*4+{3}]", "= f32(x2[{2},{0}*4+{3}])"
        ),  # wider
        PACKING.replace("x2[{2},{0}*4+{3}]", "x1[{1},{2}]"),  # of no constant
        PACKING.replace("stack", "register"),
        PACKING.replace("[8:N, 3:N, 8, 4]", "[8, 4]").replace("px2[{0},{1},", "px2["),  # one place for all
        PACKING.replace("x2[{2},{0}*4+{3}]", "x2[{2},{0}+{1}+{3}]"),  # of which each element has many
    ],
)
def test_what_is_not_made_of_constants_alone_is_left_to_each_run(text: str) -> None:
    assert hoisted(parse(text), ["x2"]) is None


SUMS = """kernel k
in x1, x2
out y1
x1 f32 [4, 3] heap
x2 f32 [3, 8] heap
y1 f32 [4, 8] heap
s f32 [3, 2:N, 4] stack
u f32 [3, 8] heap
3 2 4 s[{0},{1},{2}] = x2[{0},{1}*4+{2}]*0.5
| | 4 s[{0},{1},{2}] += exp(x2[{0},{1}*4+{2}])
| | 4 u[{0},{1}*4+{2}] = s[{0},{1},{2}]*s[{0},{1},{2}]
4 8 y1[{0},{1}] = 0
4 3 8 y1[{0},{2}] += x1[{0},{1}]*u[{1},{2}]
"""


def test_what_is_computed_of_constants_alone_is_computed_once() -> None:
    """By way of arrays that nothing else reads."""
    program = parse(SUMS)
    parts = hoisted(program, ["x2"])
    assert parts is not None
    assert (parts.once.inputs, parts.once.outputs, len(parts.once.leaves)) == (("x2",), ("u",), 3)
    assert (parts.each_run.inputs, len(parts.each_run.leaves)) == (("x1", "u"), 2)
    rng = np.random.default_rng(0)
    x1, x2 = rng.normal(size=(4, 3)).astype("f"), rng.normal(size=(3, 8)).astype("f")
    u = run_program(parts.once, {"x2": x2})["u"]
    together = run_program(program, {"x1": x1, "x2": x2})["y1"]
    assert (run_program(parts.each_run, {"x1": x1, "u": u})["y1"] == together).all()


def _in_parts(body: str, *arrays: str) -> tuple[Program, Program] | None:
    """What is made once of x2 and x3, and what is left; each array is its name and sizes."""
    given = ("x1 f32 [8, 8] heap", "x2 f32 [8] heap", "x3 f32 [9] heap", "y1 f32 [8, 8] heap")
    text = "\n".join(["kernel k", "in x1, x2, x3", "out y1", *given, *arrays, body, ""])
    parts = hoisted(parse(text), ["x2", "x3"])
    return None if parts is None else (parts.once, parts.each_run)


def test_what_threads_would_make_side_by_side_one_makes() -> None:
    """All would write the same array, and read it where another has begun anew."""
    parts = _in_parts(
        "8:p 8 t[{0},{1}] = 0\n| 8 t[{0},{1}] = x2[{1}]\n| 8 u[{0},{1}] = t[{0},{1}]*2\n"
        "| 8 y1[{0},{1}] = x1[{0},{1}]*u[{0},{1}]",
        "t f32 [8:N, 8] stack",
        "u f32 [8:N, 8] stack",
    )
    assert parts is not None and parts[0].text.endswith(
        "1 8 t[{1}] = 0\n| 8 t[{1}] = x2[{1}]\n| 8 u[{1}] = t[{1}]*2\n"
    )


def test_what_all_lanes_would_make_is_made_by_one() -> None:
    parts = _in_parts(
        "8 8:v t[{0},{1}] = x2[{0}]\n8 8:v y1[{0},{1}] = x1[{0},{1}]*t[{0},{1}]", "t f32 [8, 8] heap"
    )
    assert parts is not None and parts[0].text.endswith("8 1 t[{0}] = x2[{0}]\n")


def test_what_the_next_iteration_writes_after_it_is_read_is_left_to_each_run() -> None:
    body = "8 t[{0}] = x2[{0}]\n| t[{0}+1] = x3[{0}]\n| 8 y1[{0},{1}] = x1[{0},{1}]*t[{0}+1]"
    assert _in_parts(body, "t f32 [9] heap") is None


def test_what_grows_from_array_to_array_is_made_once_up_to_four_times_the_constants() -> None:
    parts = _in_parts(
        "8 2 t[{0},{1}] = x3[{0}+{1}]\n8 2 2 u[{0},{1},{2}] = t[{0},{1}]*t[{0},{2}]\n"
        "8 2 2 2 v[{0},{1},{2},{3}] = u[{0},{1},{2}]*u[{0},{2},{3}]\n8 8 y1[{0},{1}] = x1[{0},{1}]\n"
        "8 2 2 2 y1[{0},{1}*4+{2}*2+{3}] *= v[{0},{1},{2},{3}]",
        *("t f32 [8, 2] heap", "u f32 [8, 2, 2] heap", "v f32 [8, 2, 2, 2] heap"),
    )
    assert parts is not None and parts[0].outputs == ("u",)


def test_where_it_is_written_must_be_known_too() -> None:
    text = (
        "kernel k\nin i, x1, x2\nout y1\ni i32 [4] heap\nx1 f32 [8, 8] heap\nx2 f32 [8, 8] heap\n"
        "y1 f32 [8, 8] heap\nt f32 [8, 8] heap\ndomain i 0 7\n8 8 t[{0},{1}] = x2[{0},{1}]\n"
        "4 8 t[i[{0}],{1}] = x2[0,{1}]*x2[1,{1}]\n8 8 y1[{0},{1}] = x1[{0},{1}]*t[{0},{1}]\n"
    )
    assert hoisted(parse(text), ["x2"]) is None


SQUARES = """kernel matmul
in x1, x2
out y1
x1 f32 [6, 8] heap
x2 f32 [8, 32] heap
y1 f32 [6, 32] heap
u f32 [8, 32] heap
8 32 u[{0},{1}] = x2[{0},{1}]*x2[{0},{1}]
| | u[{0},{1}] += x2[{0},{1}]
6 32 y1[{0},{1}] = 0
6 8 32 y1[{0},{2}] += x1[{0},{1}]*u[{1},{2}]
"""


def test_what_an_export_has_of_constants_is_made_under_its_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another one their sums may be rounded otherwise."""
    policies = []

    def model(graph: Graph, policy: str = "reassoc") -> Model:
        policies.append(policy)
        return Model(graph, policy=policy)

    monkeypatch.setattr("dojo_core.graph.preparation.Model", model)
    m = Drawn()
    graph = m.model(m.matmul(m.input("x", 6, 8), m.weight("w", 8, 32)))
    choice = of_game(Game.new(parse(SQUARES), policy="strict"), "a game")
    made, _ = prepared(graph, dict.fromkeys(graph.kernels, choice))
    w = m.constants["w"]
    assert policies == ["strict"] and any(np.allclose(v, w * w + w) for v in made.constants.values())


def test_what_is_added_up_over_other_scopes_is_left_to_each_run() -> None:
    """How often an element is added to is not told by which it is."""
    text = SUMS.replace(
        "| | 4 s[{0},{1},{2}] += exp(x2[{0},{1}*4+{2}])", "| | 5 4 s[{0},{1},{3}] += exp(x2[{0},{1}*4+{3}])"
    )
    assert "5 4 s" in text and hoisted(parse(text), ["x2"]) is None


# ---------------------------------------------------------------------------- memory


def test_no_two_tensors_that_are_needed_together_overlap() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        lives = {}
        for number in range(int(rng.integers(1, 40))):
            first = int(rng.integers(30))
            lives[f"t{number}"] = Lifetime(int(rng.integers(1, 5000)), first, first + int(rng.integers(6)))
        plan = places(lives)
        for name, life in lives.items():
            assert plan.offsets[name] % ALIGNMENT == 0 and plan.offsets[name] + life.bytes <= plan.bytes
            for other, second in lives.items():
                if name != other and life.first <= second.last and second.first <= life.last:
                    begin, end = plan.offsets[name], plan.offsets[name] + life.bytes
                    assert end <= plan.offsets[other] or plan.offsets[other] + second.bytes <= begin


def test_a_chain_takes_the_memory_of_two_of_its_tensors() -> None:
    lives = {f"t{k}": Lifetime(1000, k, k + 1) for k in range(20)}
    assert places(lives).bytes == 2 * 1024


# ---------------------------------------------------------------------------- any model


def drawn_at_random(seed: int, alone: bool) -> tuple[Graph, dict[str, Any]]:
    """A random model; each node a kernel of its own, or as it is partitioned."""
    m = Drawn(seed)
    rng = np.random.default_rng(seed)
    known = [m.input("x", 4, 6), m.input("y", 4, 6)]
    for number in range(16):
        a, b = (known[int(k)] for k in rng.integers(max(len(known) - 8, 0), len(known), 2))
        match int(rng.integers(8)):
            case 0 | 1:
                made = m.map("add", "a * 0.5 + tanh(b)", a, m.reshape(b, *m.shape(a)))
            case 2:
                rows, columns = m.shape(a)
                made = m.matmul(a, m.weight(f"w{number}", columns, 24 // rows))
            case 3:
                made = m.map("sub", "a - b", a, m.reduce("max", a, int(rng.integers(2))))
            case 4:
                made = m.transpose(a, 1, 0)
            case 5:
                made = m.reshape(a, *m.shape(a)[::-1])
            case 6:
                half = m.shape(a)[1] // 2
                made = m.concatenate(m.slice(a, half, m.shape(a)[1]), m.slice(a, 0, half))
            case _:
                made = m.softmax(a)
        known.append(made)
    if alone:
        m.nodes = [n if n.kind is Kind.VIEW else replace(n, kind=Kind.OTHER) for n in m.nodes]
    return m.model(*known[-4:]), m.drawn()


def test_partitioned_models_mean_what_their_nodes_mean() -> None:
    for seed in range(4):
        graph, inputs = drawn_at_random(seed, alone=False)
        single, _ = drawn_at_random(seed, alone=True)
        assert len(graph.calls) <= len(single.calls)
        expected = reference(single, inputs)
        for name, values in reference(graph, inputs).items():
            np.testing.assert_allclose(values, expected[name], rtol=1e-6, atol=1e-9)
        assert print_graph(parse_graph(print_graph(graph), graph.constants)) == print_graph(graph)


# ---------------------------------------------------------------------------- as a text and files


def test_the_example_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "graph.md").read_text()
    example, text = re.findall(r"^```(?:python)?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:2]
    names: dict[str, Any] = {}
    exec(example, names)
    told = capsys.readouterr().out
    assert told.startswith(text.partition("\nprogram matmul\n")[0])
    h = np.maximum(names["x"] @ names["weights"]["fc1.weight"], 0)
    np.testing.assert_allclose(names["y"], h @ names["weights"]["fc2.weight"], rtol=1e-4, atol=1e-4)


def test_the_text_of_a_graph_reads_as_what_it_is() -> None:
    m = Drawn()
    ids, w = m.input("token.ids", 3, dtype="i64", domain=(0, 9)), m.weight("table 1", 10, 4)
    rows = m.node("", "gather", Kind.COPY, (w, ids), (3, 4), lambda b, w, i: p.gather(b, w, i, 0))
    e = m.map("exp", "exp(a)", rows)
    graph = m.model(m.matmul(e, m.weight("v", 4, 2)), e, "token.ids")
    text = """\
graph model
in token_ids i64 [3] from 0 to 9 "token.ids"
constant table_1 f32 [10, 4] "table 1"
constant v f32 [4, 2]
out matmul2 f32 [3, 2]
out exp1 f32 [3, 4]
out token_ids

exp1 = gather_exp(table_1, token_ids) of "gather0" "exp1"
matmul2 = matmul(exp1, v) of "matmul2"

program gather_exp
kernel gather_exp
in x1, x2
out y1
domain x2 0 9
x1 f32 [10, 4] heap
x2 i64 [3] heap
y1 f32 [3, 4] heap
3 4 y1[{0},{1}] = exp(x1[x2[{0}],{1}])

program matmul
kernel matmul
in x1, x2
out y1
x1 f32 [3, 4] heap
x2 f32 [4, 2] heap
y1 f32 [3, 2] heap
3 2 y1[{0},{1}] = 0
3 2 4 y1[{0},{1}] += x1[{0},{2}]*x2[{2},{1}]
"""
    assert print_graph(graph) == text
    again = parse_graph(text.replace("\n\n", "\n# a comment\n\n\n"), graph.constants)
    assert print_graph(again) == text


SCATTER = """\
graph g
in at i64 [3] from 0 to 9
in x f32 [3]
out y f32 [10]

y = put(at, x)

program put
kernel put
in x1, x2
out y1
domain x1 0 9 distinct
x1 i64 [3] heap
x2 f32 [3] heap
y1 f32 [10] heap
10 y1[{0}] = 0
3 y1[x1[{0}]] = x2[{0}]
"""


def test_places_that_are_to_be_distinct_are_looked_at() -> None:
    model = Model(parse_graph(SCATTER))
    x = np.ones(3, np.float32)
    assert model.run({"at": np.array([7, 0, 2]), "x": x})["y"].tolist() == [1, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    with pytest.raises(GraphError, match="The input at has an element twice"):
        model.run({"at": np.array([7, 0, 7]), "x": x})
    constant = SCATTER.replace("in at i64 [3] from 0 to 9", "constant at i64 [3]")
    assert parse_graph(constant, {"at": np.array([7, 0, 2])}).inputs == ("x",)
    with pytest.raises(GraphError, match="counts on distinct elements of at, and some are the same"):
        parse_graph(constant, {"at": np.array([7, 0, 7])})


def test_a_graph_is_kept_in_a_file_and_its_constants_beside_it(tmp_path: Path) -> None:
    m = two_layers()
    m.constants["file"] = m.constants.pop("w")
    m.nodes = [replace(n, inputs=tuple("file" if i == "w" else i for i in n.inputs)) for n in m.nodes]
    m.tensors["file"] = replace(m.tensors.pop("w"), name="file")
    graph = m.model("matmul2")
    path = tmp_path / "two layers.dojo"
    assert save(graph, path) == [path, tmp_path / "two layers.dojo.npz"]
    again, inputs = load(path), m.drawn()
    assert print_graph(again) == path.read_text() == print_graph(graph)
    np.testing.assert_array_equal(reference(again, inputs)["matmul2"], reference(graph, inputs)["matmul2"])

    archive = tmp_path / "two layers.dojo.npz"
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GraphError, match="is damaged, or no archive of NumPy's: make the graph again"):
        load(path)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as squeezed:
        squeezed.writestr("file.npy", bytes(1 << 20))
    with pytest.raises(GraphError, match="is compressed: write it with numpy"):
        load(path)
    np.savez(archive, v=m.constants["v"], bias=m.constants["bias"])
    with pytest.raises(GraphError, match="The values of file are missing: keep the file of the constants"):
        load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(GraphError, match="is no text: name the file that was saved"):
        load(path)


HEAD = "graph g\nin x f32 [4]\nout y f32 [4]\n\ny = neg(x)\n\nprogram neg\n"
GATHER = (
    "graph g\nin x i64 [4]\nin z f32 [10]\nout y f32 [4]\n\ny = at(x, z)\n\nprogram at\n"
    "kernel at\nin x1, x2\nout y1\ndomain x1 0 9\nx1 i64 [4] heap\nx2 f32 [10] heap\ny1 f32 [4] heap\n"
    "4 y1[{0}] = x2[x1[{0}]]\n"
)
NEG = "kernel neg\nin x1\nout y1\nx1 f32 [4] heap\ny1 f32 [4] heap\n4 y1[{0}] = neg(x1[{0}])\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no graph. Begin with a line such as: graph my_model"),
        (HEAD + NEG + "\ngraph h\n", "a second graph begins."),
        (HEAD.replace("graph g", "graph in"), "Line 1 of the graph: 'in' is no name."),
        (HEAD.replace("y = neg", "y == neg"), "Line 5 of the graph: 'y == neg(x)' is no part of a graph."),
        (HEAD.replace("in x f32 [4]", "in x f32 [4,]"), "Line 2 of the graph: [4,] is no shape."),
        (HEAD.replace("in x f32 [4]", "in x f33 [4]") + NEG, "x has the dtype 'f33'"),
        (HEAD.replace("out y", "out x"), "Line 3 of the graph: there is a tensor x already."),
        (HEAD.replace("in x f32 [4]", "in x f32 [4] from 0 to z"), "'z' is no number."),
        (HEAD.replace("neg(x)", "neg(x) of '"), "is no part of a graph."),
        (HEAD.replace("neg(x)", 'neg(x) of "\\ud800"') + NEG, "is too long, or no text."),
        (HEAD + NEG + "\n" + HEAD[HEAD.index("program") :] + NEG, "there is a program neg already."),
        (HEAD + NEG.replace("neg(x1[{0}])", "neg(x1[{1}])"), "The program neg, from line 8 on:"),
        (HEAD + NEG.replace("4 y1[{0}] =", "3 y1[{0}] ="), "The program neg, from line 8 on:"),
        (HEAD.replace("in x f32 [4]", "in x f32 [5]") + NEG, "wants f32 [4] for its x1, and x is f32 [5]."),
        (HEAD.replace("in x", "in z") + NEG, "names the tensor x, which the graph has not"),
        (HEAD.replace("in x", "constant x") + NEG, "The values of x are missing"),
        (HEAD, "The program neg, from line 8 on:"),
        (GATHER, "places from 0 to 9 of x, and x is promised to lie within nothing"),
        (GATHER.replace("[4]", "[4] from -1 to 9", 1), "and x is promised to lie within -1 to 9"),
        ("graph g\n" + "in x f32 [4]\n" * 2, "Line 3 of the graph: there is a tensor x already."),
        ("graph g\nout " + "y" * 300, "is no name."),
    ],
)  # fmt: skip
def test_a_graph_that_somebody_else_wrote_is_checked(text: str, said: str) -> None:
    with pytest.raises(GraphError) as refused:
        parse_graph(text)
    assert said in str(refused.value)


# ---------------------------------------------------------------------------- which programs run


def doubled() -> Graph:
    """One kernel of one line."""
    node = Node(
        "twice",
        "Mul",
        Kind.POINTWISE,
        ("x",),
        (Tensor("y", "f32", (64,)),),
        lambda b, a: [p.formula(b, "2*x", x=a[0])],
    )
    return build("doubled", [Tensor("x", "f32", (64,))], [node], ["y"])


def test_what_a_pass_played_is_kept_for_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    (first,) = choices(doubled(), "heuristic").values()
    assert first.moves and first.source == "the heuristic pass"
    monkeypatch.setattr("agents.passes.play_pass", lambda *given: pytest.fail("It plays again."))
    (second,) = choices(doubled(), "heuristic").values()
    assert (second.program.hash, second.moves, second.source) == (
        first.program.hash,
        first.moves,
        first.source,
    )


def test_a_pass_knows_which_inputs_are_the_same_in_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it played for others as constants is not taken for it."""
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    heard = list[frozenset[str]]()
    monkeypatch.setattr("agents.passes.play_pass", lambda game, name: heard.append(game.constants))
    m = Drawn()
    graph = m.model(m.matmul(m.input("x", 8, 12), m.weight("w", 12, 16)))
    (name,) = graph.kernels
    _, w = graph.kernels[name].program.inputs
    choices(graph, "heuristic")
    choices(replace(graph, inputs=(*graph.inputs, "w"), constants={}), "heuristic")
    assert heard == [frozenset({w}), frozenset()]


def test_a_record_of_what_the_pass_plays_alone_gives_way_to_what_it_plays_in_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measured alone a kernel copies its weights in every run. What somebody found stays."""
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    alone, found = "interchange y1@0", "interchange y1#1@0"

    def play(game: Game, name: str) -> None:
        if not game.constants:
            game.play(alone)

    monkeypatch.setattr("agents.passes.play_pass", play)
    m = Drawn()
    graph = m.model(m.matmul(m.input("x", 8, 12), m.weight("w", 12, 16)))
    (start,) = (kernel.program for kernel in graph.kernels.values())
    for move, seconds, chosen in ((alone, 2e-9, start), (found, 1e-9, apply(start, found))):
        program = apply(start, move)
        with Records() as records:
            records.add(
                Record(
                    program.hash, program.text, start.hash, "", "", "f32", "reassoc", "", "cpu",
                    this_machine().fingerprint, "", "code", "ok", True, seconds, (Sample(1.0),),
                )
            )  # fmt: skip
            (choice,) = choices(graph, "best", records).values()
        assert choice.program.hash == chosen.hash


@pytest.mark.parametrize("left", ("", "damaged", "without its object"))
def test_what_a_kernel_was_compiled_to_is_found_by_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    x = np.arange(64, dtype="f4")
    Model(doubled())
    (entry,), (library,) = ([*(tmp_path / "cache" / "objects").glob(f"*.{kind}")] for kind in ("json", "so"))
    if left == "damaged":
        entry.write_bytes(entry.read_bytes()[1:])
    elif left == "without its object":
        library.unlink()
    generated: list[Program] = []
    generate = codegen.generate
    monkeypatch.setattr(codegen, "generate", lambda *given: (generated.append(given[0]), generate(*given))[1])
    assert np.array_equal(Model(doubled()).run({"x": x})["y"], 2 * x)
    assert len(generated) == bool(left)
    Model(doubled(), policy="strict")  # its code may be another
    assert len(generated) == bool(left) + 1


def test_a_kept_model_needs_none_of_what_makes_one() -> None:
    makers = ["dojo_core.moves", "agents.passes", "dojo_core.graph.building", "dojo_core.targets.cpu.codegen"]
    code = (
        "import sys, agents.played, dojo_core.graph.run, dojo_core.graph.store\n"
        f"print([name for name in {makers} if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_a_pass_that_fails_is_told_and_the_start_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(game: Game) -> None:
        raise RuntimeError("lost the thread")

    monkeypatch.setattr("dojo_core.bench.ours.heuristics", lambda: {"broken": broken})
    remarks: list[str] = []
    (chosen,) = choices(doubled(), "heuristic", on_remark=remarks.append).values()
    assert chosen.source == "the start program"
    assert remarks == ["No heuristic played mul: broken failed: lost the thread."]
