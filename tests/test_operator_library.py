"""``dojo library --onnx``: operators at typical shapes, from ONNX nodes to a tuned library with a page."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.cli import app
from agents.operators import compared, tuned
from agents.operators.library import Plan, TunedLibrary
from agents.operators.listed import NotListed, chosen, operators, read
from agents.operators.node import NotImported, Refusal, made
from agents.players import agent_named
from dojo_core.from_onnx.operators.beyond import BEYOND
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer
from tests.homes import with_objects

pytestmark = pytest.mark.usefixtures("kept_workers")

TWO = """
Relu = [{ inputs = ["x 8x64"] }]
Softmax = [{ inputs = ["x 4x32"], axis = -1 }, { inputs = ["x 2x3x16"], axis = -1 }]
Shape = "Its result is known when a model is imported: nothing is left to compute."
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    # A Python that has neither PyTorch nor ONNX Runtime, and onnx from here.
    absent = dict.fromkeys(compared.RIVALS, "PyTorch is not installed.")
    monkeypatch.setattr(compared, "_absent", lambda python: absent)
    return tmp_path


def dojo(*words: str, code: int = 0):
    result = CliRunner().invoke(app, ["library", *words])
    assert result.exit_code == code, result.output
    return result


def listed(home: Path, text: str) -> Path:
    file = home / "mine.toml"
    file.write_text(text)
    return file


@pytest.mark.thorough  # its parts: below
def test_two_operators_become_a_library_with_a_page(home):
    words = ("--onnx", "--shapes", str(listed(home, TWO)), "--only", "relu,Softmax,Shape", "--budget", "3")
    told = dojo(*words, "--to", str(home / "lib"))
    assert "3 kernels of 3" in told.stdout.replace("\n", " ")
    assert "Relu 8x64: start" in told.stderr and "search (3)" in told.stderr
    assert "Shape: Its result is known when a model is imported" in told.stderr
    assert "PyTorch is not installed." in told.stderr

    document = json.loads((home / "lib" / "operators.json").read_text())
    rows = {f"{row['operator']} {row['shape']}": row for row in document["rows"]}
    assert list(rows) == ["Relu 8x64", "Softmax 4x32", "Softmax 2x3x16"]
    for row in rows.values():
        assert row["status"] == "ok" and row["whole"] and row["programs"] == 3 and row["report"] is None
        assert 0 < row["best"] <= row["start"]
        assert row["judgement"]["status"] == "ok", row["judgement"]
        assert row["judgement"]["by"].startswith(("ONNX Runtime", "the reference implementation of onnx"))
    page = (home / "lib" / "operators.html").read_text()
    assert "<b>Softmax</b>" in page and "PyTorch is not installed." in page

    library = home / "lib" / "library"
    assert {f.name for f in (library / "kernels").iterdir()} >= {"Relu_8x64.c", "Softmax_4x32.c"}
    header = (library / "onnx_operators.h").read_text()
    assert "onnx_operators_Softmax_2x3x16(" in header

    # The same again: all is known, nothing is measured or searched.
    again = dojo(*words, "--to", str(home / "lib"))
    assert "start" not in again.stderr and "not done" not in again.stderr
    assert (
        json.loads((home / "lib" / "operators.json").read_text())["rows"][0]["best"]
        == rows["Relu 8x64"]["best"]
    )


def test_what_the_time_does_not_reach_waits_for_the_next_call(home):
    known, told = read(listed(home, TWO)), []
    plan = Plan(home / "lib", agent_named("annealing-lines"), seconds=0.0)
    with Records(":memory:") as records, Measurer(records) as measurer, compared.Others() as others:
        TunedLibrary(known, list(known.values()), plan, records, measurer, others, told.append).run()
    assert "3 of 3 are not done: the same command goes on with them." in told
    assert "3 kernels are not begun" in (home / "lib" / "operators.html").read_text()


def test_an_operator_that_fails_is_a_row_with_its_reason(home):
    file = listed(home, 'Relu = [{ inputs = ["x 8x64"], slope = 3 }]\nNonsense = [{ inputs = ["x 8"] }]\n')
    dojo("--onnx", "--shapes", str(file), "--budget", "0", "--to", str(home / "lib"), code=1)
    rows = json.loads((home / "lib" / "operators.json").read_text())["rows"]
    assert [row["status"] for row in rows] == ["refused", "refused"]
    assert "knows no Nonsense" in rows[0]["reason"] and "contradicts the standard" in rows[1]["reason"]
    assert "Without a kernel, and why" in (home / "lib" / "operators.html").read_text()


def test_what_differs_from_another_implementation_is_not_exported(home, monkeypatch):
    wrong = compared.Judgement(
        "wrong_result", "ONNX Runtime 1", "Its result is wrong: element 0 is 1 and should be 2."
    )
    monkeypatch.setattr(compared.Others, "judged", lambda others, case: wrong)
    file = listed(home, 'Relu = [{ inputs = ["x 8x64"] }]')
    dojo("--onnx", "--shapes", str(file), "--budget", "0", "--to", str(home / "lib"), code=1)
    (row,) = json.loads((home / "lib" / "operators.json").read_text())["rows"]
    assert row["status"] == "failed" and "differs from ONNX Runtime 1" in row["reason"]
    assert not (home / "lib" / "library").exists()


def test_every_operator_of_the_standard_is_in_the_list():
    import onnx.defs

    standard = {s.name for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    assert standard - set(BEYOND) == set(operators())
    assert all(each.reason or len(each.cases) == 2 for each in operators().values())


def test_the_list_agrees_with_the_standard():
    """A case is a node that the standard's checker takes; what is no program has the importer's reason."""
    for case in (case for name in ("Conv", "Softmax", "TopK", "Clip") for case in operators()[name].cases):
        assert made(case).program.outputs
    unknown = read_text('NonZero = [{ inputs = ["x 4x4"] }, { inputs = ["x 4x8"] }]')["NonZero"]
    with pytest.raises(NotImported, match="hangs on data"):
        made(unknown.cases[0])
    huge = read_text('Abs = [{ inputs = ["x 4096x4096"] }, { inputs = ["x 8192x8192"] }]')["Abs"]
    assert made(huge.cases[0]).program
    with pytest.raises(Refusal, match="goes through 134 million elements"):
        made(huge.cases[1])


@pytest.mark.soak
def test_each_case_of_the_list_is_a_node_that_the_checker_takes():
    for case in (case for each in operators().values() for case in each.cases):
        try:
            made(case)
        except (Refusal, NotImported) as refusal:
            assert "contradicts the standard" not in str(refusal), case.title


def read_text(text: str):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        return read(listed(Path(place), text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Relu = 3", "Relu has neither cases nor a sentence"),
        ("Relu = [{ inputs = 3 }]", "are lists of texts"),
        ('Relu = [{ inputs = ["x big"] }]', "does not read: x f32 512x768 in 0..1"),
        ('Relu = [{ inputs = ["axes i64 = [0"] }]', "whose values do not read"),
        ('Relu = [{ inputs = ["axes i64 = [0]"] }]', "has no input that a call brings"),
        ('Relu = [{ inputs = ["x 8"] }, { inputs = ["x 8"], alpha = 2 }]', "a call could mean either"),
        ('Add = [{ inputs = ["x 8", "x 8"] }]', "two arrays of one name"),
        ('Relu = "no"\n"Abs Relu" = "no"', "has Relu twice"),
        ("Relu = [", "is no TOML"),
    ],
)
def test_a_list_that_says_nothing_is_told_in_a_sentence(text, sentence):
    with pytest.raises(NotListed) as told:
        read_text(text)
    assert sentence in str(told.value)


def test_names_are_taken_in_any_case_and_unknown_ones_are_told():
    assert [each.name for each in chosen(["softmax", " Gemm"])] == ["Gemm", "Softmax"]
    with pytest.raises(NotListed, match="Do you mean LogSoftmax, Softmax"):
        chosen(["softma"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Say which operators: dojo library --onnx"),
        (("--onnx", "--only", "Softmux"), "There is no operator 'Softmux' in the list."),
        (("--onnx", "--agent", "clever"), "There is no agent 'clever'."),
        (("--onnx", "--policy", "lax"), "There is no policy 'lax'."),
        (("--onnx", "--name", "My Library"), "cannot name a library"),
        (("--onnx", "--shapes", "missing.toml"), "missing.toml cannot be read"),
        (("--onnx", "--only", "Relu", "--to", __file__), "is a file: name a folder"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(words, sentence):
    assert sentence in " ".join(dojo(*words, code=1).stderr.split())


def test_a_page_of_another_machine_or_a_damaged_one_is_not_gone_on_with(home):
    (home / "lib").mkdir()
    words = ("--onnx", "--only", "Relu", "--to", str(home / "lib"))
    document = {"format": 1, "fingerprint": "other", "machine": "Another one", "rows": []}
    for text, sentence in (
        ("{", "is damaged"),
        (json.dumps(document), "is of another machine (Another one)"),
    ):
        (home / "lib" / "operators.json").write_text(text)
        assert sentence in " ".join(dojo(*words, code=1).stderr.split())


def test_the_list_is_shown_with_what_cannot_be_taken():
    told = dojo("--onnx", "--only", "Shape,Conv", "--list").stdout
    assert "x f32 1x64x56x56, w f32 64x64x3x3, b f32 64; pads = [1, 1, 1, 1]" in told
    assert "nothing is left to compute" in told


@pytest.mark.soak
def test_a_long_text_is_played_in_a_process_of_its_own(monkeypatch):
    case = made(operators()["Softmax"].cases[1])
    here = tuned.passed(case, "reassoc")
    monkeypatch.setattr(tuned, "LONG", 0)
    there = tuned.passed(case, "reassoc")
    assert here.current.program == there.current.program
    monkeypatch.setattr(tuned, "PASS_SECONDS", 0.01)
    with pytest.raises(tuned.NotTuned, match=r"It takes more than 0\.01 s"):
        tuned.passed(case, "reassoc")


@pytest.mark.soak
def test_a_case_is_timed_beside_pytorch_on_the_same_inputs():
    pytest.importorskip("torch")
    case = made(read_text('Softmax = [{ inputs = ["x 64x128"], axis = -1 }]')["Softmax"].cases[0])
    no = made(read_text('Shrink = [{ inputs = ["x 8"] }]')["Shrink"].cases[0])
    with Records(":memory:") as records, Measurer(records) as measurer, compared.Others() as others:
        report, second = (
            others.compared(each, each.program, "reassoc", ["torch"], 2, records, measurer)
            for each in (case, no)
        )
    ours, torch = report["entries"]
    assert ours["verified"] and ours["status"] == "ok" and len(ours["samples_ns"]) == 2
    assert torch["status"] == "ok" and torch["verified"] and torch["ratio"]["median"] > 0, torch
    assert second["entries"][1]["status"] == "unsupported"


@pytest.mark.soak
def test_a_call_that_was_killed_is_gone_on_with(home):
    file = listed(home, TWO)
    words = ["--onnx", "--shapes", str(file), "--budget", "12", "--rounds", "0", "--to", str(home / "lib")]
    command = [sys.executable, "-m", "agents.cli", "library", *words]
    process = subprocess.Popen(
        command, env=dict(os.environ), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    document = home / "lib" / "operators.json"

    def searched() -> int:
        rows = json.loads(document.read_text())["rows"] if document.exists() else []
        return sum(row["whole"] for row in rows)

    deadline = time.monotonic() + 300
    while not searched() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = json.loads(document.read_text())["rows"]
    assert 0 < sum(row["whole"] for row in before) < 3
    told = dojo(*words)
    assert "3 kernels of 3" in told.stdout.replace("\n", " ")
    after = json.loads(document.read_text())["rows"]
    assert all(row["whole"] and row["programs"] == 12 for row in after)
    assert [row["start"] for row in after] == [row["start"] for row in before]  # not measured again
    assert (home / "lib" / "library" / "kernels" / "Relu_8x64.c").exists()
