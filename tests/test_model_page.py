"""The page Model without a browser: the picture of a graph, what is said of it, and models that are kept,
measured, played and taken along."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dojo_core.bench import eager
from dojo_core.bench.roofline import PEAK, Question, Roofline
from dojo_core.game import Game
from dojo_core.graph import Call, Graph, Kernel, Tensor
from dojo_core.graph.examples import Example, transformer
from dojo_core.kernels.kernel import executed_flops
from dojo_core.measure.catalogue import Catalogue
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Limit, Record, Sample
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.service import Service
from dojo_core.service.model_view import KernelView, ModelView, advice
from dojo_core.service.models import Models
from dojo_core.service.queue import Outcome
from dojo_core.service.refused import Refused, Unsized
from dojo_core.service.wiring import KernelLibrary, RecordStore
from pages.model.component import shown
from pages.model.picture import Row, blocks, rows, width
from pages.shared import the_models
from tests.stand_ins import Bench
from tests.waiting import wait_until

HERE = this_machine().fingerprint

DOUBLE = "kernel double\nin x\nout y\nx f32 [64] heap\ny f32 [64] heap\n64 y[{0}] = x[{0}]*2\n"
ADD = DOUBLE.replace("kernel double\nin x", "kernel add\nin x, z").replace("x[{0}]*2", "x[{0}] + z[{0}]")
ADD = ADD.replace("\ny f32", "\nz f32 [64] heap\ny f32")


def residual(layers: int, name: str = "residual") -> Graph:
    """x → double → add to what was before, so many times."""
    names = ["x", *(f"{letter}{n}" for n in range(layers) for letter in "hr")]
    calls: list[Call] = []
    before = "x"
    for n in range(layers):
        calls.append(Call("double", (before,), (f"h{n}",), (f"layer{n}.double",)))
        calls.append(Call("add", (f"h{n}", before), (f"r{n}",), (f"layer{n}.add",)))
        before = f"r{n}"
    kernels = {each.name: Kernel(each.name, each) for each in (parse(DOUBLE), parse(ADD))}
    tensors = {each: Tensor(each, "f32", (64,)) for each in names}
    return Graph(name, tensors, ("x",), (before,), kernels, tuple(calls))


# ---------------------------------------------------------------------------- the picture


def drawing(graph: Graph, opened: Sequence[int] = ()) -> str:
    """``*`` a call, ``o`` an input or output; lanes that pass, come (^) and leave (v)."""
    drawn = rows(graph, opened)

    def sign(row: Row, lane: int) -> str:
        if lane == row.lane:
            return "o" if row.tensor else "*"
        marks = ((row.past, "|"), (row.read, "^"), (row.given, "v"))
        return next((mark for lanes, mark in marks if lane in lanes), " ")

    def words(row: Row) -> str:
        times = f" x{len(row.calls)}" if len(row.calls) > 1 else ""
        return row.tensor or graph.calls[row.calls[0]].kernel + times

    lines = ("".join(sign(row, lane) for lane in range(width(drawn))) + " " + words(row) for row in drawn)
    return "\n".join(lines)


def test_what_repeats_is_drawn_once_with_its_residual_beside_it() -> None:
    closed = """\
o  x
|* double x3
*^ add x3
o  r2"""
    assert drawing(residual(3)) == closed


def test_an_opened_block_shows_each_call() -> None:
    opened = """\
o  x
|* double
*^ add
|* double
*^ add
o  r1"""
    assert drawing(residual(2), [0]) == opened


def test_a_run_that_comes_again_is_part_of_a_longer_block() -> None:
    def calls(kernels: str) -> list[Call]:
        return [Call(kernel, (), ()) for kernel in kernels]

    found = [(block.first, block.length, block.times) for block in blocks(calls("naaabnaaab" + "caaa"))]
    assert found == [(0, 5, 2)]
    assert [(b.first, b.length, b.times) for b in blocks(calls("xaaay"))] == [(1, 1, 3)]


def test_the_layers_of_a_transformer_stand_together() -> None:
    graph = transformer()
    assert len(graph.kernels) == 7 and len(graph.calls) == 29
    assert [(block.length, block.times) for block in blocks(graph.calls)] == [(7, 3)]


# ---------------------------------------------------------------------------- what is said


def limit(seconds: float) -> Roofline:
    return Roofline(seconds, 0.0, 512, 64.0, "1 read, 1 written", 1e9)


def seen(**kernels: Mapping[str, Any]) -> ModelView:
    graph = residual(3)
    views = {name: KernelView(name, 3, (), "64", **kernels.get(name, {})) for name in graph.kernels}
    return ModelView("m", "M", graph, views)


def test_the_next_thing_is_where_most_is_to_be_gained() -> None:
    assert "Measure first" in advice(seen()).sentence
    half = seen(double={"seconds": 2e-6})
    waits: dict[str, dict[str, Any]] = {"double": {"state": "waiting"}, "add": {"seconds": 1e-6}}
    measuring = replace(seen(**waits), measuring=True)
    assert advice(measuring).sentence == "Measuring: 1 of 2 kernels have a time."
    known = seen(double={"seconds": 2e-6, "limit": limit(1e-6)}, add={"seconds": 6e-6})
    assert "1 of 2 limits are known" in advice(replace(known, measuring=True)).sentence
    assert advice(half).sentence == "1 of 2 kernels have a time: measure the others."
    # 3 calls each: add takes longer, and is nearly as fast as can be
    view = seen(double={"seconds": 2e-6, "limit": limit(1e-6)}, add={"seconds": 6e-6, "limit": limit(5.7e-6)})
    assert advice(view).kernel == "double"
    assert advice(view).sentence == (
        "double takes 25% of the time and runs at 50% of the machine's limit: "
        "up to 3 µs of 24 µs are to be gained there."
    )
    fast = {"seconds": 1e-6, "limit": limit(0.95e-6)}
    assert "well played" in advice(seen(double=fast, add=fast)).sentence


def test_shares_are_of_all_calls_and_rows_of_a_closed_block_stand_for_all() -> None:
    view = seen(double={"seconds": 1e-6, "start": 4e-6, "moves": 2}, add={"seconds": 3e-6})
    told = shown(view, [])
    assert [(each["name"], each["share"]) for each in told["kernels"]] == [("add", 0.75), ("double", 0.25)]
    assert told["kernels"][1]["found"] == "4.00× as fast as its start by 2 moves"
    (double,) = (row for row in told["rows"] if row.get("kernel") == "double")
    assert (double["times"], double["share"], double["time"]) == (3, 0.25, "3 µs")
    assert "layer2.double" in double["searched"]


# ---------------------------------------------------------------------------- models that are kept


class RecordingBench(Bench):
    """Keeps what it answers in the records, as the measurers do: a start takes ten times what others do."""

    def __init__(self, catalogue: Catalogue) -> None:
        super().__init__()
        self.catalogue = catalogue

    def measure(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
        again: bool = False,
        lines: Mapping[str, str] | None = None,
        against: Program | None = None,
    ) -> None:
        for program in programs:
            self.measured.append(program.hash)
            seconds = 1e-3 if program.hash == workload.start.hash else 1e-4
            self.catalogue.add(record(workload.start, program, seconds, (lines or {}).get(program.hash, "")))
            on_result(program.hash, Outcome("ok", seconds, seconds, 5))


def record(start: Program, program: Program, seconds: float, line: str, player: str = "") -> Record:
    return Record(
        program_hash=program.hash, program_text=program.text, start_hash=start.hash, kernel=start.name,
        shape="64", dtype="f32", policy="reassoc", line=line, target="cpu", fingerprint=HERE,
        machine=this_machine().details, code_hash=program.hash, status="ok", verified=True, seconds=seconds,
        samples=(Sample(seconds * 1e9),), player=player, time=1.7e9,
    )  # fmt: skip


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    """A small example, on a machine whose limits are known: nothing is run."""
    small = Example("small", "Small", "Two kernels.", lambda: residual(2))
    monkeypatch.setattr("dojo_core.service.models.EXAMPLES", (small,))
    catalogue = Catalogue(tmp_path / "r.sqlite")
    for text in (DOUBLE, ADD):
        question = Question(parse(text), None, "", executed_flops(parse(text)))
        catalogue.lower_limit(HERE, Limit(question.stream, 1e-7, "measured"))
    catalogue.lower_limit(HERE, Limit(PEAK, 0.1, "measured"))
    monkeypatch.setattr(eager, "version", lambda: "")
    service = Service(RecordStore(catalogue), KernelLibrary(), lambda: RecordingBench(catalogue))
    yield Models(catalogue, service, tmp_path / "models")
    service.close()
    catalogue.close()


def measured(models: Models) -> str:
    model = models.example("small", "ann")
    models.measure(model, "ann")
    wait_until(lambda: not models.go_on(model, "ann"))
    return model


def test_a_model_is_measured_kernel_by_kernel(models: Models) -> None:
    view = models.view(measured(models), "ann")
    assert not view.measuring and view.start == pytest.approx(4e-3) and view.seconds == pytest.approx(4e-4)
    for kernel in view.kernels.values():
        assert kernel.calls == 2 and kernel.start is not None and kernel.moves, kernel
        assert kernel.of_limit is not None and not kernel.message


def test_a_start_s_time_is_not_the_kernel_s_while_the_pass_s_program_waits(models: Models) -> None:
    model = models.example("small", "ann")
    start = parse(DOUBLE)
    models._catalogue.add(record(start, start, 1e-3, ""))
    assert models.view(model, "ann").kernels["double"].seconds == 1e-3, "nothing is measured"
    models._open(model).measuring = True  # nothing has been played
    kernel = models.view(model, "ann").kernels["double"]
    assert (kernel.state, kernel.seconds, kernel.start) == ("waiting", None, 1e-3)
    told = {each["name"]: each["found"] for each in shown(models.view(model, "ann"), ())["kernels"]}
    assert told["double"] == "its start takes 1 ms"


def test_a_kernel_stands_beside_pytorch_where_that_was_timed(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = measured(models)
    assert models.view(model, "ann").rival is None
    monkeypatch.setattr(eager, "version", lambda: "9.9")
    for text, seconds in ((DOUBLE, 2e-4), (ADD, 5e-5)):
        models._catalogue.lower_limit(HERE, Limit(eager._name(parse(text)), seconds, "PyTorch 9.9 eager"))
    view = models.view(model, "ann")
    double, add = view.kernels["double"], view.kernels["add"]
    assert double.beside_rival == pytest.approx(2.0) and add.beside_rival == pytest.approx(0.5)
    assert view.rival == pytest.approx(2 * (2e-4 + 5e-5)) and view.rival_by == "PyTorch 9.9 eager"
    told = {each["name"]: each["rival"] for each in shown(view, ())["kernels"]}
    assert told == {
        "double": "2.00× as fast as PyTorch 9.9 eager",
        "add": "0.50× as fast as PyTorch 9.9 eager",
    }


def test_what_a_player_finds_is_in_the_model_and_in_the_game_on_its_kernel(models: Models) -> None:
    model = measured(models)
    game = models.game(model, "double", "ann")
    text = models._service.game_text(game)
    assert "Small: double" in text and Game.from_text(text).current.parent is not None
    assert models.game(model, "double", "ann") == game  # the same one again
    assert models.games(model, "ann") == {game: "double"}

    found = Game.new(parse(DOUBLE))
    found.play("split_scope y@0 8")
    models._catalogue.add(record(found.start, found.current.program, 1e-6, "split_scope y@0 8", "bob"))
    kernel = models.view(model, "ann").kernels["double"]
    assert (kernel.seconds, kernel.moves, kernel.player) == (1e-6, 1, "bob")
    assert models.game(model, "double", "ann") == game
    now = Game.from_text(models._service.game_text(game))
    assert now.current.program.hash == found.current.program.hash
    assert len(now.positions) > 2, "the line that was there has stayed"


def test_a_model_is_its_owner_s_and_comes_back_when_it_was_deleted(models: Models) -> None:
    model = models.example("small", "ann")
    assert models.example("small", "ann") == model and models.example("small", "bob") != model
    for refused in (models.view, models.delete, models.measure, models.games):
        with pytest.raises(Refused, match="somebody else's"):
            refused(model, "bob")
    models.delete(model, "ann")
    assert models.cards("ann") == []
    with pytest.raises(Refused, match="no model with this id"):
        models.view(model, "ann")
    with pytest.raises(Refused, match="no model with this id"):
        models.restore(model, "bob")
    models.restore(model, "ann")
    assert [card.about.title for card in models.cards("ann")] == ["Small"]
    for wrong in ("..", "../x", "x" * 40, "ä", ""):
        with pytest.raises(Refused, match="no model with this id"):
            models.view(wrong, "ann")


def test_the_whole_model_is_taken_along_as_a_library(models: Models) -> None:
    content = models.archive(measured(models), "ann")
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert {"dojo_model/CMakeLists.txt", "dojo_model/dojo_model.h", "dojo_model/dojo_model/model.py"} <= {
        *names
    }


def test_an_onnx_file_is_taken_in_once_and_a_bad_one_is_a_sentence(models: Models, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="<b>relu</b>")], "net",
        *([helper.make_tensor_value_info(name, kind, ["N", 8])] for name in "xy"),
    )  # fmt: skip
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    bad = {
        (b"", ""): "net.onnx holds no graph",
        (b"\x08\x07nonsense" * 40, ""): "net.onnx is damaged",
        (file[:-20], ""): "net.onnx ",
        (file, ""): "size is open in one dimension",
        (file, "x=4x"): "x=4x: write an input and its shape",
        (file, "z=4x8"): "no input z: its inputs are x",
    }
    for (content, shapes), words in bad.items():
        with pytest.raises(Refused) as refusal:
            models.take_in("net.onnx", content, "ann", shapes)
        assert words in str(refusal.value) and str(tmp_path) not in str(refusal.value)
        assert list((tmp_path / "models").iterdir()) == []
    with pytest.raises(Unsized) as unsized:
        models.take_in("net.onnx", file, "ann")
    assert unsized.value.offered == "x=4x8" and "--shape" not in str(unsized.value)
    model = models.take_in("net.onnx", file, "ann", "--shape x=4x8")
    assert models.take_in("net.onnx", file, "ann", "x=4x8") == model
    view = models.view(model, "ann")
    assert view.title == "net" and [call.nodes for call in view.graph.calls] == [("<b>relu</b>",)]


def test_a_file_of_open_sizes_waits_for_them_and_is_not_dropped_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    st.cache_resource.clear()
    asked = []

    def take_in(name: str, content: bytes, owner: str, shapes: str = "") -> str:
        asked.append((name, content, shapes))
        if "x=" not in shapes:
            raise Unsized("Its size is open.", "x=4x8")
        raise Refused("enough")

    monkeypatch.setattr(the_models(), "take_in", take_in)

    def app() -> None:
        import streamlit as st

        from pages.model import begin

        if st.session_state.setdefault("dropped", 0) == 0:
            st.session_state["dropped"] = 1
            begin._take_in("net.onnx", b"net", "mask=4")
        begin.page()

    page = AppTest.from_function(app, default_timeout=500).run()
    assert not page.exception
    assert page.text_input(key="model_shapes").value == "mask=4 x=4x8"
    page.text_input(key="model_shapes").set_value("mask=4 x=32x8")
    page.button(key="model_again").click().run()
    assert asked == [("net.onnx", b"net", "mask=4"), ("net.onnx", b"net", "mask=4 x=32x8")]
    assert "model_again" not in [button.key for button in page.button]
