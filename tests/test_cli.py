"""The command line: what each command prints, what it says when it cannot, and how it stops."""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agents.cli import COMMANDS, app
from dojo_core import kernels, legal_moves, parse
from dojo_core.checkout import checkout
from dojo_core.cli.loading import loaded
from dojo_core.cli.terminal import plain_errors
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.codegen import generate
from dojo_core.version import version
from tests.homes import with_objects
from tests.thorough import one_of
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("kept_workers")

ROOT = Path(__file__).resolve().parent.parent
WITH_AN_EXAMPLE = (
    "kernels",
    "show",
    "moves",
    "why",
    "play",
    "recipes",
    "check",
    "time",
    "bench",
    "export",
    "app",
)
LINE = (
    "kernel softmax\nshape 8x16\nlet lanes = 4\njoin_scopes m@0\nsplit_scope m#1@1 $lanes\nvectorize m#1@2\n"
)
OWN = "kernel mine\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.chdir(tmp_path)
    Path("a.line").write_text(LINE)
    Path("own.txt").write_text(OWN)
    return tmp_path / "home"


def dojo(*words: str, code: int = 0):
    """Run a command in this process; its result, whose exit code was as expected."""
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, SystemExit | None), result.exc_info
    assert result.exit_code == code, result.output
    return result


def said(text: str) -> str:
    """The words, wherever a terminal breaks its lines."""
    return " ".join(text.split())


# ------------------------------------------------------------------------------- what they print


@pytest.mark.parametrize("command", WITH_AN_EXAMPLE)
def test_help_has_an_example(command):
    assert f"Example: dojo {command}" in said(dojo(command, "--help").stdout)


def test_without_a_command_there_is_help_that_names_them_all():
    told = CliRunner().invoke(app, []).output
    assert all(re.search(rf"\b{command}\b", told) for command in COMMANDS)


def test_help_says_of_each_command_what_its_own_help_begins_with():
    for name, command in COMMANDS.items():
        begins = loaded(command).help.split("\n\n")[0]
        assert said(begins) == command.summary, name


def test_a_command_imports_no_more_than_it_needs():
    """The app, a version and a list start at once: NumPy, rich and the core take longer. None has PyTorch
    imported as it is looked up."""
    script = (
        "import sys\nfrom agents.cli import COMMANDS, app\napp({words}, standalone_mode=False)\n"
        "print(*sys.modules)\nfrom dojo_core.cli.loading import loaded\n"
        "if {all}: all(loaded(each) for each in COMMANDS.values())\nprint(*sys.modules)"
    )
    for words, spared in (
        (["--version"], {"rich.console", "numpy", "lark", "dojo_core.moves"}),
        (["app", "--help"], {"numpy", "lark", "dojo_core.moves"}),
        (["recipes"], {"agents.agent", "dojo_core.service", "dojo_core.bench", "dojo_core.export"}),
    ):
        started = [sys.executable, "-c", script.format(words=words, all=words == ["recipes"])]
        told = subprocess.run(started, capture_output=True, text=True, check=True).stdout
        *_, before, after = told.splitlines()
        assert spared.isdisjoint(before.split()), words
        assert {"torch", "transformers"}.isdisjoint(after.split()), words


def test_kernels():
    told = dojo("kernels").stdout
    assert all(name in told for name in kernels.names())
    listed = json.loads(dojo("kernels", "--json").stdout)
    assert [k["name"] for k in listed] == list(kernels.names())
    assert {"title", "formula", "group"} < set(listed[0])
    assert listed[list(kernels.names()).index("softmax")]["shapes"] == ["24576x512"]


def test_what_is_piped_is_not_wrapped_and_has_no_marks_of_its_source():
    rows = dojo("kernels").stdout.splitlines()
    assert len(rows) == 1 + len(kernels.names())
    recipes = dojo("recipes").stdout
    assert "tile y@1 32 16 makes" in recipes and "`" not in recipes


def test_the_version_is_told_from_one_place():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert dojo("--version").stdout == f"dojo {told}\n" and re.fullmatch(r"\d+\.\d+\.\d+", told)
    assert f"\nversion: {told}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {told} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_version_where_nothing_is_installed_or_no_checkout_is_there(monkeypatch, tmp_path):
    monkeypatch.setattr("dojo_core.checkout.files", lambda package: tmp_path / package)
    monkeypatch.setattr("dojo_core.version.checkout", checkout.__wrapped__)
    monkeypatch.setattr("dojo_core.version.installed_version", lambda name: "1.2.3")
    assert version.__wrapped__() == "1.2.3", "as installed"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another"\nversion = "9"\n')
    assert version.__wrapped__() == "1.2.3", "a project around it"

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("dojo_core.version.installed_version", missing)
    assert version.__wrapped__() == "unknown"


def test_show_prints_the_text_and_the_c():
    start = kernels.get("softmax").program((8, 16))
    assert dojo("show", "softmax", "--shape", "8x16").stdout == start.text
    assert dojo("show", "own.txt").stdout == OWN
    after_line = dojo("show", "softmax", "--line", "a.line").stdout
    assert after_line == dojo("play", "softmax", "--line", "a.line").stdout
    both = dojo("show", "softmax", "--shape", "8x16", "--code").stdout
    assert both == start.text + generate(start).text + "\n"


def test_moves_lists_what_is_legal_and_what_is_not():
    legal = [str(m) for m in legal_moves(kernels.get("softmax").program((8, 16)))]
    result = dojo("moves", "softmax", "--shape", "8x16")
    assert result.stdout.splitlines() == legal
    assert f"{len(legal)} legal moves." in result.stderr
    listed = json.loads(dojo("moves", "softmax", "--shape", "8x16", "--json").stdout)
    assert [m["move"] for m in listed] == legal
    assert {
        "move": "join_scopes m@0",
        "name": "join_scopes",
        "family": "scopes",
        "arguments": ["m@0"],
    } in listed
    blocked = json.loads(dojo("moves", "softmax", "--shape", "8x16", "--blocked", "--json").stdout)
    assert not {m["move"] for m in blocked} & set(legal)
    assert all(m["code"] and m["sentence"].endswith(".") for m in blocked)
    assert "refused. dojo why softmax 'MOVE' tells more." in said(
        dojo("moves", "softmax", "--shape", "8x16", "--blocked").output
    )


def test_moves_after_a_line_are_those_of_its_end():
    listed = [m["move"] for m in json.loads(dojo("moves", "softmax", "--line", "a.line", "--json").stdout)]
    assert "clear_mark m#1@2" in listed


def test_why():
    legal = dojo("why", "softmax", "join_scopes m@0").stdout
    assert "join_scopes m@0 is legal" in legal
    assert sum(row.startswith("→") for row in legal.splitlines()) == 3, "the lines that it joins are marked"
    told = dojo("why", "softmax", "reuse_dims d 0").stdout
    assert "is not legal" in told and "Try first: join_scopes d@0" in told and "all touch d[0,0]" in told
    tried = dojo("why", "softmax", "reuse_dims d 0", "--try").stdout
    assert "After join_scopes d@0:\nreuse_dims d 0 is legal" in tried
    dojo("why", "softmax", "reorder m@0", "--try", code=1)
    stored = dojo("why", "softmax", "set_location d stack", "--try").stdout
    assert "Try first: join_scopes d@0, then reuse_dims d 0." in stored
    assert "After join_scopes d@0, reuse_dims d 0:\nset_location d stack is legal" in stored
    assert stored.count("→ d f32 [24576") == 2, "the buffer's line is shown"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("why", "softmax", "tile d@1 32 16"),
            "tile is a recipe, which plays several moves",
        ),
        (
            ("why", "softmax", "split_scope d@1 -4"),
            "'-4' is no FACTOR. It is written: split_scope",
        ),
        (("why", "softmax", "JOIN_SCOPES d@0"), "Did you mean join_scopes?"),
        (("moves", "Softmx"), "Did you mean softmax?"),
        (("check", "/dev/zero"), "/dev/zero is longer than 512 KiB"),
        (("check", "."), ". is a folder"),
        (("check", "no.txt"), "There is no file no.txt."),
        (("check", "softmx"), "Did you mean softmax?"),
    ],
)
def test_what_is_mistyped_is_named(words, told):
    assert told in said(dojo(*words, code=1).stderr)


def test_why_takes_a_move_without_quotes_and_prints_data():
    told = json.loads(dojo("why", "softmax", "reuse_dims", "d", "0", "--json").stdout)
    assert (told["move"], told["legal"], told["code"]) == ("reuse_dims d 0", False, "clobber")
    assert told["ways"] == [
        {"moves": ["join_scopes d@0"], "then": "reuse_dims d 0", "told": "join_scopes d@0"}
    ]
    assert json.loads(dojo("why", "softmax", "join_scopes m@0", "--json").stdout)["legal"]


def test_moves_of_one_name_or_place():
    joins = dojo("moves", "softmax", "join_scopes").stdout.splitlines()
    assert joins and all(line.startswith("join_scopes ") for line in joins)
    refused = json.loads(dojo("moves", "softmax", "reuse_dims d", "--blocked", "--json").stdout)
    assert [r["move"] for r in refused] == ["reuse_dims d 0", "reuse_dims d 1"] and refused[0]["ways"]


def test_a_file_is_read_no_further_than_a_text_may_go(tmp_path):
    """Three gigabytes without a line, and a text as Windows saves it."""
    long = tmp_path / "long.txt"
    with long.open("wb") as file:
        file.truncate(3 << 30)
    assert "longer than 512 KiB" in said(dojo("moves", str(long), code=1).stderr)
    marked = tmp_path / "marked.txt"
    marked.write_bytes(b"\xef\xbb\xbf" + OWN.encode())
    dojo("check", str(marked))
    (tmp_path / "odd.txt").write_bytes(b"kernel k\xff")
    assert "its byte 9 is not UTF-8" in said(dojo("check", str(tmp_path / "odd.txt"), code=1).stderr)


def test_play_prints_the_end_its_c_and_its_assembly():
    result = dojo("play", "softmax", "--line", "a.line")
    assert "| 4 4:v m[{0}] max= x[{0},{1}*4+{2}]" in result.stdout
    assert result.stderr.strip() == "3 moves."
    assert dojo("play", "softmax", "--line", "a.line", "--text").stdout == result.stdout
    code = dojo("play", "softmax", "--line", "a.line", "--code").stdout
    assert code == generate(parse(result.stdout)).text + "\n"
    both = dojo("play", "softmax", "--line", "a.line", "--text", "--code").stdout
    assert both == result.stdout + code
    assert re.search(r"^\s+ret", dojo("play", "softmax", "--line", "a.line", "--asm").stdout, re.MULTILINE)
    assert dojo("play", "a.line").stdout == result.stdout, "a line's file stands for its kernel, too"


def test_play_takes_parameters_shapes_and_recorded_lines():
    wide = dojo("play", "softmax", "--line", "a.line", "--set", "lanes=4", "--shape", "8x32").stdout
    assert "| 8 4:v m[{0}] max= x[{0},{1}*4+{2}]" in wide
    end = dojo(
        "play", "softmax", "--line", "softmax", "--shape", "8x16", "--set", "block=8", "--set", "lanes=4"
    )
    assert end.stdout.startswith("kernel softmax\n") and ":p 2 m[{0},{1}] = -inf" in end.stdout


def test_a_recorded_line_and_a_saved_game_replay_to_the_same_end():
    end = dojo("play", "softmax", "--line", "a.line", "--record", "b.line", "--save", "b.game").stdout
    assert "2: split_scope m#1@1 $lanes  ; 0.2" in Path("b.line").read_text()
    assert dojo("play", "softmax", "--line", "b.line").stdout == end
    assert Game.from_text(Path("b.game").read_text()).current.program.text == end
    assert dojo("play", "softmax", "--line", "b.game").stdout == end


def test_check_says_what_is_valid_and_whether_it_is_canonical():
    assert dojo("check", "a.line").stdout == "a.line: valid. Line of softmax 8x16, 3 moves, each legal.\n"
    dojo("play", "softmax", "--line", "a.line", "--save", "a.game")
    assert "Game of softmax 8x16, 3 moves" in dojo("check", "a.game").stdout
    told = said(dojo("check", "own.txt").stdout)
    assert told == f"own.txt: valid. Kernel mine, 1 operation, 2 buffers, hash {parse(OWN).hash}."
    Path("own.txt").write_text(OWN.replace("*", " * "))
    assert "canonical text differs" in dojo("check", "own.txt").stdout
    assert "softmax:8x16: valid. Kernel softmax, 7 operations" in said(dojo("check", "softmax:8x16").stdout)


@pytest.mark.parametrize("command", ["show", "moves", "perft", "pass", "check"])
def test_what_stands_for_a_kernel_may_be_a_text_a_game_a_line_or_code(command):
    dojo("play", "softmax", "--line", "a.line", "--save", "a.game")
    Path("own.py").write_text("# x[8, 4]\ndef mine(x):\n    return x * 2\n")
    Path("own.c").write_text("for (int i = 0; i < n; i++) y[i] = 2*x[i];")
    told = {file: dojo(command, file).stdout for file in ("own.txt", "own.py", "own.c", "a.game", "a.line")}
    assert all(told.values())
    if command == "show":
        assert told["a.game"] == told["a.line"] == dojo("play", "softmax", "--line", "a.line").stdout


def test_translate_prints_a_program_and_tells_what_it_was_read_as():
    made = dojo("translate", "mk,kn->mn", "--size", "m=4", "--size", "n=8", "--to", "product.dojo")
    assert "Read as an einsum: own of a[m, k], b[k, n]. m=4, k=256, n=8" in said(made.stderr)
    assert "4 8 256 y[{0},{1}] += a[{0},{2}]*b[{2},{1}]" in Path("product.dojo").read_text()
    assert dojo("show", "product.dojo").stdout == Path("product.dojo").read_text()
    Path("own.py").write_text("def mine(x):\n    return x.sum(axis=1)\n")
    assert "x f32 [4, 8] heap" in dojo("translate", "own.py", "--size", "m=4", "--size", "n=8").stdout
    assert dojo("show", "own.py", "--shape", "m=4,n=8").stdout.startswith("kernel mine\nin x\n")


def test_time_measures_a_position_and_its_moves(home):
    own = json.loads(dojo("time", "own.txt", "--json").stdout)
    assert [(row["move"], row["status"], row["verified"]) for row in own] == [("this position", "ok", True)]
    assert own[0]["seconds"] == min(own[0]["samples_ns"]) / 1e9
    rows = json.loads(dojo("time", "own.txt", "--moves", "--json").stdout)
    assert [row["move"] for row in rows[1:]] == [str(m) for m in legal_moves(parse(OWN))]
    assert {row["status"] for row in rows} == {"ok"}
    table = dojo("time", "own.txt", "--moves").stdout
    assert "speed against the position" in table and "unroll y@0" in table
    for row in rows[1:]:  # an arrow only where the interval of the rounds leaves out 1
        speed = row["speed"]
        assert speed["rounds"] >= 2 and speed["low"] <= speed["value"] <= speed["high"]
        assert speed["verdict"] != "faster" or speed["low"] > 1
        assert speed["verdict"] != "slower" or speed["high"] < 1
    assert (home / "records.sqlite").exists()


@pytest.mark.thorough  # test_bench.py; test_comparison.py from the command line
def test_bench_takes_our_line_and_a_baseline_in_rounds():
    words = ("softmax", "--shape", "8x32", "--line", "a.line", "--rounds", "2")
    table = dojo("bench", *words, "--against", "torch", "--json", "b.json").stdout
    assert "ours: line" in table and "PyTorch" in table
    alone = dojo("bench", *words[:-1], "1")
    assert "1 round of" in alone.stdout and "Ratio" not in alone.stdout and "ratio" not in alone.stdout
    (report,) = json.loads(Path("b.json").read_text())["reports"]
    assert (report["kernel"], report["shape"], report["rounds"]) == ("softmax", "8x32", 2)
    assert report["line"] == ["join_scopes m@0", "split_scope m#1@1 4", "vectorize m#1@2"]
    ours, torch = report["entries"]
    for entry in (ours, torch):
        assert (entry["status"], entry["verified"]) == ("ok", True)
        assert all(0 < len(r) <= report["samples"] for r in entry["samples_ns"])  # the undisturbed ones
    best = [min(b) / min(o) for b, o in zip(torch["samples_ns"], ours["samples_ns"], strict=True)]
    assert torch["ratio"]["rounds"] == pytest.approx(best)


# ------------------------------------------------------------------------------- what they refuse

REFUSED = [
    (("show", "softmx"), "There is no kernel 'softmx'. Did you mean softmax?"),
    (("show", "softmax", "--shape", "12"), "softmax takes 2 sizes, MxN, for example 24576x512; 12 has 1."),
    (("show", "softmax", "--shape", "big"), "'big' is no shape"),
    (("show", "softmax", "--shape", "900000x900000"), "Use a smaller shape."),
    (("show", "gone.txt"), "There is no file gone.txt."),
    (("show", "own.txt", "--shape", "4x4"), "leave --shape out."),
    (("show", "."), ". is a folder"),
    (("moves", "softmax", "--policy", "fast"), "There is no policy 'fast'. The policies are: strict,"),
    (("moves", "softmax", "--line", "gone.line"), "There is no file gone.line."),
    (("moves", "softmax", "--line", "nope"), "There is no file nope. The recorded lines: add, "),
    (("why", "softmax", "jump m@0"), "jump"),
    (("check", "illegal.line"), "Move 1, reuse_dims d 0, does not apply (refused)"),
    (("why", "softmax", "split_scope m@0"), "split_scope"),
    (("play", "softmax", "--line", "bad.line"), "line 2, column 1: a parameter reads: let block = 32"),
    (("play", "softmax", "--line", "unknown.line"), "line 1, column 1: There is no move 'jump'"),
    (("play", "softmax", "--line", "illegal.line"), "Move 1, reuse_dims d 0, does not apply (refused)"),
    (("play", "softmax", "--line", "bad.game"), "the game names no kernel"),
    (("play", "matmul", "--line", "a.line"), "a.line is a line of softmax, not of matmul."),
    (("play", "softmax", "--line", "a.line", "--set", "size=3"), "the line has no parameter size"),
    (("play", "softmax", "--line", "a.line", "--set", "lanes=²"), "A parameter is set as --set name=number"),
    (("play", "softmax", "--line", "a.line", "--set", "lanes=3"), "Move 2, split_scope m#1@1 3, does"),
    (("play", "softmax", "--line", "a.line", "--save", "no/where"), "no/where cannot be written"),
    (("check", "gone.txt"), "There is no file gone.txt."),
    (("check", "bad.txt"), "line 6, column 14: index 0 of x runs from 1 to 8"),
    (("check", "clobbered.txt"), "line 8: 8 y[{0}] = t[{0}]"),
    (("check", "unset.txt"), "line 6: 8 y[{0}] = y[{0}]*2"),
    (("check", "binary.txt"), "binary.txt is no text"),
    (("translate", "own.txt"), "own.txt is one of the Dojo's own texts already"),
    (("translate", "gone.py"), "There is no file gone.py."),
    (("translate", "np.tanhh(x)"), "line 1, column 4: there is no function tanhh"),
    (("translate", "np.exp(x)", "--size", "k=3"), "There is no size k. The sizes of this text: m, n."),
    (("time", "shared.txt"), "t lies in shared"),
    (("bench", "softmax", "--against", "abacus"), "There is no baseline 'abacus'. The baselines: torch"),
    (("bench", "softmx"), "There is no kernel 'softmx'."),
]  # fmt: skip


@pytest.fixture
def bad_files():
    Path("bad.line").write_text("kernel softmax\nlet block\n")
    Path("unknown.line").write_text("jump m@0\n")
    Path("illegal.line").write_text("kernel softmax\nshape 8x16\nreuse_dims d 0\n")
    Path("bad.game").write_text("dojo game 1\ntitle: t\nstart:\n")
    Path("bad.txt").write_text(OWN.replace("x[{0}]", "x[{0}+1]").replace("*2", ""))
    two = "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]"
    clobbered = OWN.replace("8 y[{0}] = x[{0}]*2", "t f32 [8:N] heap\n" + two)
    Path("clobbered.txt").write_text(clobbered)
    Path("shared.txt").write_text(clobbered.replace("[8:N] heap", "[8] shared"))
    Path("unset.txt").write_text(OWN.replace("x[{0}]*2", "y[{0}]*2"))
    Path("binary.txt").write_bytes(b"\xff\xfe\x00kernel")


@pytest.mark.parametrize(("words", "sentence"), REFUSED, ids=[" ".join(r[0]) for r in REFUSED])
def test_what_cannot_be_done_is_a_sentence_and_a_code(bad_files, words, sentence):
    result = dojo(*words, code=1)
    assert sentence.lower() in said(result.output).lower()
    assert "Traceback" not in result.output


def test_an_option_that_does_not_exist_says_how_it_is_used():
    assert "No such option" in dojo("show", "softmax", "--colour", code=2).stderr


def test_records_that_cannot_be_opened_are_a_sentence(home, monkeypatch):
    home.mkdir(exist_ok=True)
    (home / "records.sqlite").write_text("these are no records\n" * 100)
    assert "file is not a database" in said(dojo("best", "softmax", code=1).stderr)
    assert len(list(home.glob("records.damaged-*.sqlite"))) == 1
    (home / "records.sqlite").unlink()
    (home / "records.sqlite").mkdir()
    assert "records.sqlite is a folder" in said(dojo("time", "own.txt", code=1).stderr)
    monkeypatch.setenv("DOJO_HOME", "/dev/null/home")
    assert "/dev/null/home" in dojo("time", "own.txt", code=1).stderr


# ------------------------------------------------------------------------------- how they stop


def processes_with(home: Path) -> list[int]:
    """Processes whose environment names this test's folder: the command and whatever it started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"DOJO_HOME={home}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.thorough  # its parts: test_measure.py, test_records.py
def test_ctrl_c_ends_everything_and_keeps_what_was_measured(home):
    def measured() -> int:
        if not (home / "records.sqlite").exists():
            return 0
        with Records(home / "records.sqlite") as records:
            return len(records.measurements())

    command = subprocess.Popen(
        [sys.executable, "-m", "dojo_core.cli", "time", "softmax", "--shape", "512x512", "--moves"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores Ctrl-C, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_until(lambda: measured() >= 2)
        assert command.poll() is None, "it ended before it was stopped"
        os.killpg(command.pid, signal.SIGINT)
        _, told = command.communicate(timeout=300)
    finally:
        command.kill()
    assert command.returncode == 130, told
    assert "Stopped. What was finished is kept." in told
    assert "Traceback" not in told
    wait_until(lambda: not processes_with(home))
    assert measured() >= 2


@pytest.mark.parametrize("fault", [OSError("The worker has ended."), BrokenPipeError()])
def test_what_fails_as_it_is_stopped_is_a_stop(fault, capsys):
    """Ctrl-C ends the processes of a command as well, and it is not sure which hears of it first."""

    def command():
        try:
            raise KeyboardInterrupt
        finally:
            raise fault

    with pytest.raises(typer.Exit) as ended:
        plain_errors(command)()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "Stopped. What was finished is kept.\n"


def test_errors_that_name_each_other_as_the_reason_end_in_a_sentence(capsys):
    def command():
        first, second = OSError("The port is taken."), OSError("The loop was closed.")
        first.__cause__, second.__context__ = second, first
        raise first

    with pytest.raises(typer.Exit) as ended:
        plain_errors(command)()
    assert ended.value.exit_code == 1 and "The port is taken" in capsys.readouterr().err


def test_a_command_may_be_stopped_while_it_is_imported(monkeypatch):
    def importing(command):
        raise KeyboardInterrupt

    monkeypatch.setattr("dojo_core.cli.loading.loaded", importing)
    ended = CliRunner().invoke(app, ["kernels"])
    assert ended.exit_code == 130 and ended.stderr == "Stopped. What was finished is kept.\n"


@pytest.mark.parametrize("words", one_of(2, [["moves", "softmax", "--json"], ["show", "softmax", "--code"]]))
def test_a_reader_that_leaves_early_is_no_error(words):
    listing = subprocess.Popen(
        [sys.executable, "-m", "dojo_core.cli", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing.stdout is not None and listing.stderr is not None
    listing.stdout.close()
    assert listing.stderr.read() == b""
    assert listing.wait(300) == 0


def test_the_app_keeps_a_home_that_is_named_from_where_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr("os.execve", lambda program, words, environment: started.append(environment))
    monkeypatch.setattr("dojo_core.cli.serving.check_port", lambda *where: None)
    monkeypatch.setenv("DOJO_HOME", "my games")
    expected = str(Path("my games").absolute())  # the app changes the folder
    dojo("app", "--no-browser")
    assert started[0]["DOJO_HOME"] == expected
