"""dojo bench without a clock: baselines that hang, crash, lie or are not there; the JSON; the report."""

import importlib.util
import json
import re
import sys
import time
from contextlib import closing
from html.parser import HTMLParser
from importlib.metadata import entry_points
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

import dojo_core.bench.baselines as baselines
from dojo_core import kernels, parse
from dojo_core.bench import limits, ours, rounds
from dojo_core.bench.baselines import BASELINES, Baseline
from dojo_core.bench.contest import BenchFailed
from dojo_core.bench.forks import Forks
from dojo_core.bench.limits import Phase, pattern, stream_code
from dojo_core.bench.page import page
from dojo_core.bench.processes import Process, Silent
from dojo_core.bench.roofline import Question, known
from dojo_core.bench.summary import best_baseline, geometric_mean, settled, summary, title
from dojo_core.cli import app
from dojo_core.game import Game
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record, Records, Sample
from tests.homes import with_objects

pytestmark = pytest.mark.usefixtures("kept_workers")

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "dojo_core/bench/schema.json").read_text())

# Baselines of softmax as a script would be: each speaks the protocol up to where it goes wrong.
RIGHT = """
import sys, numpy as np
sys.path.insert(0, BASELINES)
from protocol import Unsupported, Variant, serve

def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)

def prepare(job):
    runs = [lambda x=arrays["x"]: softmax(x) for arrays in job.sets]
    return {"NumPy": lambda: Variant(runs)}, "1.2"
"""
SERVE = "\nserve(prepare)\n"
SCRIPTS = {
    "right": RIGHT + SERVE,
    "one_wrong": RIGHT.replace('{"NumPy"', '{"bad": lambda: Variant([lambda: np.eye(8, 16)]), "NumPy"')
    + SERVE,
    "missing": RIGHT + "\ndef prepare(job):\n    import no_such_library_at_all\n" + SERVE,
    "unsupported": RIGHT + "\ndef prepare(job):\n    raise Unsupported('Nothing for softmax.')\n" + SERVE,
    "throws": RIGHT + "\ndef prepare(job):\n    raise RuntimeError('no kernel image')\n" + SERVE,
    "crashes": "import os, signal\nprint('about to fall', file=__import__('sys').stderr, flush=True)\n"
    "os.kill(os.getpid(), signal.SIGSEGV)\n",
    "exits": "raise SystemExit(3)",
    "babbles": "print('hello')\n",
    "hangs": "import time\ntime.sleep(600)\n",
    "hangs_later": "import time\nprint('{\"status\": \"ok\", \"verified\": true}', flush=True)\n"
    "time.sleep(600)\n",
    "unproved": "print('{\"status\": \"ok\"}', flush=True)\nimport time\ntime.sleep(600)\n",
}  # fmt: skip
SCRIPTS["wrong"] = RIGHT.replace("e / e.sum", "1.001 * e / e.sum") + SERVE
CAME = {
    "right": ("ok", ""),
    "wrong": ("wrong_result", "Its result is wrong: element 0 is"),
    "one_wrong": ("ok", ""),
    "missing": ("missing", "Not installed: No module named 'no_such_library_at_all'."),
    "unsupported": ("unsupported", "Nothing for softmax."),
    "throws": ("failed", "RuntimeError: no kernel image"),
    "crashes": ("failed", "Its process ended (killed by SIGSEGV). about to fall"),
    "exits": ("failed", "Its process ended (exit status 3)."),
    "babbles": ("failed", "It said something that is no answer: b'hello'."),
    "hangs": ("timeout", "No answer within 0.5 s; it was stopped."),
    "unproved": ("wrong_result", "It did not prove its result."),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.setenv("DOJO_BENCH_PYTHON", sys.executable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scripts as baselines, and a job of softmax 8x16."""
    for name, text in SCRIPTS.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text.replace("BASELINES", repr(str(baselines.SCRIPTS))))
        wait = 0.5 if name == "hangs" else 60.0
        made = Baseline(name, f"{name} {{version}}", str(path), prepare=wait)
        monkeypatch.setitem(BASELINES, name, made)
    folder = tmp_path / "job"
    folder.mkdir()
    baselines.write_job(folder, "softmax", (8, 16))
    return folder


# ------------------------------------------------------------------------------- a baseline that goes wrong


@pytest.mark.parametrize("name", CAME)
def test_whatever_a_baseline_does_is_a_row(scripts, name):
    row = rounds.Row(name, name, False)
    process = rounds._start(row, ["softmax", "8x16", "2", str(scripts)])
    status, sentence = CAME[name]
    assert (row.status, sentence in row.message) == (status, True), row.message
    assert (process is not None) == (status == "ok")
    if process is not None:
        assert row.details == f"{name} 1.2; NumPy"
        answer = process.ask(4, 30.0)
        assert len(answer["samples"]) == 4 and min(answer["samples"]) > 0
        process.close()
    if name == "one_wrong":  # the wrong variant is told, and does not compete
        assert "Its result is wrong" in row.variants["bad"] and row.variants["NumPy"] > 0


# A job's kernel says what becomes of its fork.
FORKING = """
import sys, os, signal, time
sys.path.insert(0, BASELINES)
from protocol import each_job
imported = os.getpid()

def work(arguments, tell):
    (what,) = arguments
    print("about to", what, file=sys.stderr, flush=True)
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "raise":
        raise RuntimeError("no kernel image")
    tell({"imported": imported, "fork": os.getpid()})
    if what == "hang":
        time.sleep(600)

each_job(work)
"""


def test_jobs_are_forks_of_one_process_and_a_crash_or_a_hang_costs_its_job_alone(tmp_path):
    (tmp_path / "forking.py").write_text(FORKING.replace("BASELINES", repr(str(baselines.SCRIPTS))))
    with Forks() as forks:

        def start(what: str):
            return forks.start(str(tmp_path / "forking.py"), [what], baselines.pinned_environment())

        def told(what: str) -> dict:
            with closing(start(what)) as job:
                return job.read(30.0)

        first = told("answer")
        for what, ending in {
            "crash": "Its process ended (killed by SIGSEGV). about to crash",
            "raise": "Its process ended (exit status 1). RuntimeError: no kernel image",
        }.items():
            with pytest.raises(Silent) as silent:
                told(what)
            assert (silent.value.status, str(silent.value)) == ("failed", ending)
        second = told("answer")
        assert second["imported"] == first["imported"] and second["fork"] != first["fork"]

        hanging = start("hang")
        assert hanging.read(30.0)["imported"] == first["imported"]
        with pytest.raises(Silent, match="No answer within"):
            hanging.read(0.05)
        hanging.close()
        with pytest.raises(Silent, match="Nobody waits"):
            Process(["sleep", "600"], baselines.pinned_environment(), unwanted=lambda: True).read(600)
        assert told("answer")["imported"] != first["imported"]


def test_a_baseline_takes_job_after_job_as_if_each_had_a_process_of_its_own(scripts):
    with Forks() as forks:
        for name in ("right", "wrong", "right", "throws", "crashes", "crashes"):
            row = rounds.Row(name, name, False)
            arguments = ["softmax", "8x16", "2", str(scripts)]
            job = rounds._start(row, arguments, baselines=BASELINES, start=forks.start)
            status, sentence = CAME[name]
            assert (row.status, sentence in row.message) == (status, True), row.message
            if job is not None:
                assert all(len(job.ask(2, 30.0)["samples"]) == 2 for _ in range(2))
                job.close()


def test_a_process_that_stops_answering_is_ended_with_its_children(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('{\"child\": %d}' % child.pid, flush=True)\ntime.sleep(600)\n"
    )
    process = Process([sys.executable, str(script)], baselines.pinned_environment())
    child = process.read(30.0)["child"]
    with pytest.raises(Silent) as silent:
        process.ask(3, 0.5)
    assert silent.value.status == "timeout"
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child still runs")


def test_c_by_hand_proves_its_result_and_has_the_shapes_of_table_3_alone(tmp_path):
    wide = "avx512f" in this_machine().features.split()
    for shape, status in (("6x14336", "ok" if wide else "unsupported"), ("6x128", "unsupported")):
        folder = tmp_path / shape
        folder.mkdir()
        baselines.write_job(folder, "mul", kernels.get("mul").shape(shape))
        row = rounds.Row("hand", "C by hand", False)
        process = rounds._start(row, ["mul", shape, "1", str(folder)])
        assert row.status == status, row.message
        if process is None:
            assert row.message.startswith(("There is no C by hand for mul", "The C by hand needs AVX-512"))
        else:
            assert row.verified and len(process.ask(3, 30.0)["samples"]) == 3
            process.close()


def test_a_baseline_ends_when_who_asked_is_gone(scripts):
    row = rounds.Row("right", "right", False)
    process = rounds._start(row, ["softmax", "8x16", "1", str(scripts)])
    assert process is not None and process._process.stdin is not None
    process._process.stdin.close()
    assert process._process.wait(300) == 0


def test_memory_is_reused_only_where_it_is_said():
    assert "MALLOC_TRIM_THRESHOLD_" in baselines.pinned_environment()
    assert "MALLOC_TRIM_THRESHOLD_" not in baselines.pinned_environment(reuse=False)
    assert not BASELINES["torch-default"].reuse and BASELINES["torch-default"].apart
    assert all((baselines.SCRIPTS / each.script).exists() for each in BASELINES.values())


def test_the_job_holds_what_the_kernel_means(scripts):
    x, y = np.load(scripts / "in.x.npy"), np.load(scripts / "out.y.npy")
    assert np.allclose(y, kernels.get("softmax").reference({"x": x}, (8, 16))["y"], atol=1e-7)
    assert json.loads((scripts / "job.json").read_text())["shapes"] == {"x": [8, 16], "y": [8, 16]}


def test_outputs_are_judged_element_by_element():
    spec = importlib.util.spec_from_file_location("protocol", baselines.SCRIPTS / "protocol.py")
    protocol = importlib.util.module_from_spec(spec)
    sys.modules["protocol"] = protocol  # where its dataclasses look for their module
    spec.loader.exec_module(protocol)
    wanted = np.random.default_rng(0).standard_normal((5000, 8)).astype(np.float32)
    assert protocol.fault(wanted * (1 + 1e-6), wanted) == ""
    assert "5000, 7" in protocol.fault(wanted[:, :7], wanted)
    for wrong in (np.nan, np.inf, wanted[4711, 3] + 0.01):
        found = wanted.copy()
        found[4711, 3] = wrong
        assert f"element {4711 * 8 + 3} is" in protocol.fault(found, wanted)
    # The same infinity and NaN agree, and excuse no neighbour of theirs.
    wanted[7, :3] = np.inf, -np.inf, np.nan
    assert protocol.fault(wanted.copy(), wanted) == ""
    found = wanted.copy()
    found[7, 0], found[7, 4] = -np.inf, wanted[7, 4] + 0.01
    assert f"element {7 * 8} is" in protocol.fault(found, wanted)
    found[7, 0] = np.inf
    assert f"element {7 * 8 + 4} is" in protocol.fault(found, wanted)
    # A byte may be rounded otherwise; truth and places may not.
    ones = np.ones((2, 4))
    assert protocol.fault(np.full((2, 4), 2, np.uint8), ones, "u8") == ""
    assert "element 0 is 0" in protocol.fault(np.zeros((2, 4), np.bool_), ones, "bool")
    assert "element 0 is 2" in protocol.fault(np.full((2, 4), 2), ones, "i64")


# ------------------------------------------------------------------------------- the machine's limits


def test_a_pattern_reads_twice_what_no_cache_can_hold():
    mega = 1 << 20
    relu = pattern("relu", (4096, 4096), [64 * mega], [64 * mega], 32 * mega)
    assert relu.phases == (Phase(((0, 64 * mega),), ((1, 64 * mega),)),)
    assert str(relu) == "1 read and 1 written"
    shape = (8, 3, 2048, 2048)  # a channel of 128 MiB
    images = [384 * mega, 12, 12]
    assert pattern("batchnorm", shape, images, [384 * mega], 32 * mega).bytes == 3 * 384 * mega
    assert pattern("batchnorm", shape, images, [384 * mega], 512 * mega).bytes == 2 * 384 * mega
    mean = pattern("reducemean", (4096, 4096), [64 * mega], [1 << 14], 32 * mega)
    assert str(mean) == "1 read"  # the result is too small to count


def test_the_stream_touches_every_byte(tmp_path):
    """Whatever is read counts in what is written: equal arrays in step, others by blocks, two phases."""
    import ctypes
    import subprocess

    from dojo_core.measure.machine import compiler, compiler_flags

    for number, sizes in enumerate((([4096, 4096], [4096]), ([8192, 65536], [32768]))):
        found = pattern("matmul", (1, 1, 1), *sizes, 1 << 20)
        source, library = tmp_path / f"{number}.c", tmp_path / f"{number}.so"
        source.write_text(stream_code(found))
        subprocess.run(
            [
                compiler(),
                *compiler_flags(),
                "-std=gnu11",
                "-fPIC",
                "-shared",
                str(source),
                "-o",
                str(library),
            ],
            check=True,
        )
        arrays = []
        for size in [*sizes[0], *sizes[1]]:
            raw = np.zeros(size // 4 + 32, np.float32)
            skip = (-raw.ctypes.data % 64) // 4
            arrays.append(raw[skip : skip + size // 4])
        for array in arrays[:-1]:
            array[...] = 3.0
        arrays[-1][...] = np.nan
        table = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in arrays))
        sets = (ctypes.c_void_p * 1)(ctypes.addressof(table))
        loaded = ctypes.CDLL(str(library))
        for way in range(6):
            arrays[-1][...] = np.nan
            loaded.run(way, sets, ctypes.c_long(1), ctypes.c_long(1), ctypes.c_long(0))
            assert np.isfinite(arrays[-1]).all(), f"way {way} left some of the output"
            if number == 0:
                assert (arrays[-1] == 6.0).all()


def test_a_limit_streams_numbers_as_a_kernel_does(tmp_path):
    """Zeros move faster on some machines: a limit measured with them is one that no kernel comes near."""
    relu = pattern("relu", (64, 64), [4 * 64 * 64], [4 * 64 * 64], 1 << 20)
    machine = limits.Machine(stream_code(relu), [4 * 64 * 64, 4 * 64 * 64 + 1], 2, tmp_path)
    for array in machine.memory:
        assert np.isfinite(array).all() and np.count_nonzero(array) > 0.99 * array.size
    assert len(machine.stream(3)) == 3 and min(machine.stream(3)) > 0


# ------------------------------------------------------------------------------- the JSON and the report


LINE = "kernel softmax\nshape 8x16\njoin_scopes m@0\nsplit_scope m#1@1 4\nvectorize m#1@2\n"


def bench(*words: str, code: int = 0):
    result = CliRunner().invoke(app, ["bench", *words])
    assert isinstance(result.exception, SystemExit | None), result.exc_info
    assert result.exit_code == code, result.output
    return result


class _Tags(HTMLParser):
    """Checks that tags close; collects what the page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.fetched += [v for k, v in attributes if k in ("src", "href", "data") and v]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked_page(text: str) -> str:
    tags = _Tags()
    tags.feed(text)
    assert tags.open == [] and tags.fetched == [] and "@import" not in text and "url(" not in text
    return text


def test_a_bench_with_baselines_that_hang_and_crash(scripts, monkeypatch):
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 60.0)
    Path("a.line").write_text(LINE)
    against = [f"--against={name}" for name in ("hangs", "right", "crashes", "missing", "wrong")]
    table = bench(
        "softmax", "--line", "a.line", *against, "--rounds", "2", "--start", "--record",
        "--json", "b.json", "--html", "b.html",
    ).stdout  # fmt: skip
    assert "ours: line" in table and "timeout: No answer within 0.5 s" in table and "missing: Not" in table
    document = json.loads(Path("b.json").read_text())
    jsonschema.validate(document, SCHEMA)
    (report,) = document["reports"]
    rows = {row["entry"]: row for row in report["entries"]}
    named = ("start", "line", "right", "hangs", "crashes", "missing", "wrong")
    assert [rows[name]["status"] for name in named] == [
        "ok", "ok", "ok", "timeout", "failed", "missing", "wrong_result",
    ]  # fmt: skip
    assert report["reference"] == "line" and "ratio" not in rows["line"]
    assert all(len(r) == 10 for r in rows["right"]["samples_ns"])
    pairs = zip(rows["right"]["samples_ns"], rows["line"]["samples_ns"], strict=True)
    best = [min(theirs) / min(own) for theirs, own in pairs]
    assert rows["right"]["ratio"]["rounds"] == pytest.approx(best)
    assert "The records know no verified program of it on this machine." in report["remarks"]
    limit = report["limits"]["seconds"]
    assert report["limits"]["pattern"] == "1 read and 1 written"
    timed = [rows[name] for name in ("start", "line", "right")]
    assert all(row["share"] == limit / row["min"] <= 1 for row in timed)
    with Records() as kept:  # what every other page tells from then on
        start = kernels.get("softmax").program((8, 16))
        told = known(kept, Question(start, "softmax", "8x16", report["flops"]))
        assert told is not None and told.seconds == limit
    html = checked_page(Path("b.html").read_text())
    assert "killed by SIGSEGV" in html and "No time: hangs, crashes, missing, wrong." in html

    again = bench("--from", "b.json", "--html", "again.html").stdout  # measures nothing
    assert "ours: line" in again and Path("again.html").read_text() == html
    long = Path("b.json").read_text().replace('"remarks"', f'"_": "{"x" * 600_000}", "remarks"')
    Path("long.json").write_text(long)  # ten rounds of 16 kernels are longer than any program
    assert bench("--from", "long.json").stdout == again
    shape = report["shape"]
    Path("notes.txt").write_text(f"# why\nsoftmax {shape}: It is <small>.\nsoftmax 1x1: Not this.\n")
    for _ in range(2):  # a second time adds nothing
        bench("--from", "b.json", "--notes", "notes.txt", "--html", "noted.html", "--json", "b.json")
    noted = Path("noted.html").read_text()
    assert noted.count("It is &lt;small&gt;.") == 1 and "Not this" not in noted


def test_as_many_baselines_run_beside_each_other_as_half_the_memory_has_room_for(monkeypatch):
    game = Game.new(kernels.get("softmax").program((8, 16)), "softmax", "8x16")
    for free, groups in ((2.1, ["a", "b", "c"]), (4.1, ["ab", "c"]), (0.1, ["a", "b", "c"]), (99, ["abc"])):
        monkeypatch.setattr(rounds, "available_bytes", lambda free=free: free * rounds.PROCESS_BYTES)
        assert rounds._groups(list("abc"), game) == [list(group) for group in groups]
    assert rounds._groups([], game) == [[]]


@pytest.mark.thorough  # which run beside each other: above; rounds of one group: above
def test_baselines_that_do_not_fit_the_memory_together_have_rounds_of_their_own(scripts, monkeypatch):
    """A ratio is of runs of one round: what ours did beside one group is not compared with another."""
    monkeypatch.setattr(rounds, "available_bytes", lambda: rounds.PROCESS_BYTES)
    monkeypatch.setitem(BASELINES, "twin", BASELINES["right"])
    told: list[tuple[int, int]] = []
    game = Game.new(kernels.get("softmax").program((8, 16)), "softmax", "8x16")
    report = rounds.run_bench(
        game, [ours.Entry("start", game.start)], ["right", "twin"], 2, lambda *round_: told.append(round_)
    )
    mine, right, twin = (each["samples_ns"] for each in report["entries"])
    assert [len(each) for each in right] == [10, 10]
    assert [len(each) for each in twin] == [0, 0, 10, 10] and len(mine) == 4
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)] and report["rounds"] == 2
    ratios = report["entries"][2]["ratio"]["rounds"]
    assert ratios == pytest.approx([min(t) / min(m) for t, m in zip(twin[2:], mine[2:], strict=True)])


def test_one_of_ours_that_cannot_be_measured_is_a_row_but_for_the_one_that_ratios_are_against():
    game = Game.new(kernels.get("softmax").program((8, 16)), "softmax", "8x16")
    wrong = ours.Entry("start", parse(game.start.text.replace("exp(", "tanh(")))
    report = rounds.run_bench(game, [wrong, ours.Entry("line", game.start)], [], 1)
    start, line = report["entries"]
    assert (start["status"], start["verified"], line["status"]) == ("wrong_result", False, "ok")
    assert start["message"] and len(line["samples_ns"]) == 1
    with pytest.raises(BenchFailed, match="Our start of softmax 8x16 is not measurable"):
        rounds.run_bench(game, [wrong], [], 1)


def test_a_library_that_is_not_there_is_missing_wherever_it_is_imported(scripts, tmp_path, monkeypatch):
    (tmp_path / "early.py").write_text("import no_such_library.core\n")
    monkeypatch.setitem(BASELINES, "early", Baseline("early", "", str(tmp_path / "early.py"), prepare=60.0))
    row = rounds.Row("early", "early", False)
    assert rounds._start(row, ["softmax", "8x16", "2", str(scripts)]) is None
    assert row.status == "missing" and "no_such_library is not installed" in row.message
    assert "make bench" in row.message
    monkeypatch.setenv("DOJO_BENCH_PYTHON", "/no/python")
    row = rounds.Row("early", "early", False)
    assert rounds._start(row, ["softmax", "8x16", "2", str(scripts)]) is None
    assert row.status == "missing" and "DOJO_BENCH_PYTHON" in row.message


@pytest.mark.thorough  # one that hangs before its first: above
def test_a_baseline_that_hangs_in_a_round_keeps_the_rest(scripts, monkeypatch):
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 5.0)
    against = ("--against", "hangs_later", "--against", "right")
    bench("softmax", "--shape", "8x16", *against, "--rounds", "1", "--json", "b.json")
    rows = {r["entry"]: r for r in json.loads(Path("b.json").read_text())["reports"][0]["entries"]}
    assert (rows["hangs_later"]["status"], rows["right"]["status"]) == ("timeout", "ok")


def test_the_best_record_and_a_heuristic_compete(monkeypatch):
    monkeypatch.setattr(ours, "heuristics", lambda: {"naive": _joining, "broken": _broken})
    Path("a.line").write_text(LINE)
    game = Game.new(kernels.get("softmax").program((8, 16)), "softmax", "8x16")
    entries, remarks = ours.heuristic_entries(game)
    assert [e.name for e in entries] == ["naive"] and entries[0].program != game.start
    assert len(game.line()) == 1, "the heuristic plays a game of its own"
    assert remarks == ["broken failed: lost the thread"]

    program = entries[0].program
    known = Record(
        program.hash, program.text, game.start.hash, "softmax", "8x16", "f32", "reassoc", "", "cpu",
        this_machine().fingerprint, "", "code", "ok", True, 1e-9, (Sample(1.0),), player="Ada",
    )  # fmt: skip
    with Records() as records:
        assert ours.best_record(records, game) is None
        records.add(known)
        best = ours.best_record(records, game)
    assert best is not None and best.program == program and best.details == "the best record by Ada"
    bench("softmax", "--line", "a.line", "--record", "--heuristic", "--rounds", "1", "--json", "b.json")
    (report,) = json.loads(Path("b.json").read_text())["reports"]
    assert [e["entry"] for e in report["entries"]] == ["naive", "line"]
    assert report["remarks"] == ["broken failed: lost the thread", "The best record is the naive itself."]


def _joining(game):
    game.play("join_scopes m@0")


def _broken(game):
    raise RuntimeError("lost the thread")


@pytest.mark.thorough  # below, and without a clock
def test_what_is_made_of_constants_beforehand_is_a_row_of_its_own():
    bench("matmul", "--shape", "96x128x128", "--constant", "b", "--rounds", "1", "--json", "b.json")
    (report,) = json.loads(Path("b.json").read_text())["reports"]
    rows = {e["entry"]: e for e in report["entries"]}
    assert all((e["status"], e["verified"]) == ("ok", True) for e in rows.values())
    assert rows["heuristic, b made ahead"]["constants"] == ["b"] and "constants" not in rows["heuristic"]
    assert 0 < rows["heuristic, b made ahead"]["error"] < 1e-5, "off from float64 by what is told"


@pytest.mark.thorough
def test_another_policy_and_constants_are_rows_of_their_own():
    given = ["conv2d", "--shape", "1x16x16x24x24x3x1x1", "--rounds", "1", "--json", "b.json"]
    bench(*given, "--policy", "algebraic", "--constant", "w")
    document = json.loads(Path("b.json").read_text())
    jsonschema.validate(document, SCHEMA)
    (report,) = document["reports"]
    rows = {e["entry"]: e for e in report["entries"]}
    ahead = "heuristic algebraic, w made ahead"
    assert rows.keys() >= {"heuristic", "heuristic algebraic", ahead}
    assert all((e["status"], e["verified"]) == ("ok", True) for e in rows.values())
    assert (report["policy"], rows["heuristic"]["policy"]) == ("reassoc", "reassoc")
    assert report["reference"] in ("line", "heuristic"), "not one that may compute less"
    assert {rows[name]["policy"] for name in ("heuristic algebraic", ahead)} == {"algebraic"}
    # Each is told how far it is from float64: fewer products round more.
    exact = rows["heuristic"]["error"]
    assert 0 < exact < 1e-6
    assert all(exact < rows[name]["error"] < 1e-5 for name in ("heuristic algebraic", ahead))
    # One that computes less sets no limit.
    fewer = [e for e in report["entries"] if e.get("policy") == "algebraic"]
    ours = [dict(e, policy="reassoc") for e in fewer if e.get("constants")]
    assert len(fewer) == 2 and len(ours) == 1
    for less in (*fewer, *ours):
        faster = [*report["entries"], dict(less, min=1e-12)]
        assert settled({**report, "entries": faster})["limits"] == settled(report)["limits"]


def test_an_input_that_is_not_there_is_no_constant():
    said = bench("softmax", "--shape", "8x16", "--constant", "w", code=1).output
    assert "softmax has no input w. Its inputs: x." in said


def test_an_error_is_told_of_the_largest_element(tmp_path):
    script = tmp_path / "off.py"
    off = RIGHT.replace("e / e.sum(1, keepdims=True)", "e / e.sum(1, keepdims=True) * (1 + 2.0**-14)")
    script.write_text((off + SERVE).replace("BASELINES", repr(str(baselines.SCRIPTS))))
    folder = tmp_path / "job"
    folder.mkdir()
    baselines.write_job(folder, "softmax", (8, 16))
    row = rounds.Row("off", "off", False)
    made = {"off": Baseline("off", "", str(script))}
    process = rounds._start(row, ["softmax", "8x16", "1", str(folder)], baselines=made)
    assert process is not None and row.error == pytest.approx(2.0**-14, rel=0.01)
    process.close()


def test_the_heuristic_pass_is_registered():
    assert [point.value for point in entry_points(group="dojo.heuristics")] == [
        "agents.passes:play_heuristic"
    ]


def test_a_kernel_without_a_line_falls_back_to_its_start():
    bench("silu", "--shape", "8x16", "--rounds", "1", "--json", "b.json")
    (report,) = json.loads(Path("b.json").read_text())["reports"]
    assert [e["entry"] for e in report["entries"]] == ["start"] and report["reference"] == "start"
    assert report["remarks"] == ["There is no recorded line: the start program stands in."]


def test_table_3_has_sixteen_kernels():
    from dojo_core.cli.benching import _jobs

    jobs = _jobs([], True, None)
    assert len(jobs) == 16 and jobs == _jobs(["table3"], False, None)
    assert ("conv", "8x10x3x512x512x5") in jobs and ("swiglu", "1x256x4096x448") in jobs


def test_a_shape_of_a_network_is_told_by_the_name_of_its_first_layer():
    from dojo_core.cli.benching import _layers

    named = _layers(["llama3-8b", "resnet50.fc"])
    assert named["matmul", "512x4096x4096"] == "llama3-8b.q", "llama3-8b.output has the same shape"
    assert named["gemv", "1000x2048"] == "resnet50.fc" and ("softmax", "6144x512") not in named


@pytest.mark.thorough  # that it competes, and names of layers: above
def test_the_heuristic_stands_in_where_no_line_applies_to_a_shape():
    bench("add:33x21", "resnet50.layer4.add", "--heuristic", "--rounds", "1", "--json", "b.json")
    document = json.loads(Path("b.json").read_text())
    jsonschema.validate(document, SCHEMA)
    without, layer = document["reports"]
    assert [e["entry"] for e in without["entries"]] == ["heuristic"] == [without["reference"]]
    assert "does not apply to this shape: the heuristic stands in." in without["remarks"][0]
    assert [e["entry"] for e in layer["entries"]] == ["heuristic", layer["reference"]]
    assert title(layer) == "resnet50.layer4.add add 2048x49"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Name a kernel, or --all for the paper's 16."),
        (("--all", "--shape", "4x4"), "The kernels of table3 have shapes of their own"),
        (("--from", "no.json"), "There is no file no.json."),
        (("--from", "text.json"), "text.json is no JSON."),
        (("--from", "old.json"), "old.json is no bench of this version"),
        (("softmax", "--from", "old.json"), "leave the kernels out"),
        (("--from", "damaged.json"), "damaged.json is damaged"),
        (("softmax", "--json", "none/b.json"), "There is no folder none: make it first."),
        (("softmax", "--html", "/"), "/ is a folder: name a file in it."),
        (("softmax", "--notes", "text.json"), "text.json, line 1: a remark reads: softmax 24576x512: words"),
    ],
)
def test_what_cannot_be_benched_is_a_sentence(words, sentence):
    Path("text.json").write_text("hello")
    Path("old.json").write_text('{"reports": []}')
    Path("damaged.json").write_text('{"format": 2}')
    assert sentence in " ".join(bench(*words, code=1).output.split())


# ------------------------------------------------------------------------------- sums


def entry(name: str, kind: str, seconds: float, ours: float, **more) -> dict:
    ratio = seconds / ours
    return {
        "name": name, "entry": name, "kind": kind, "apart": False, "details": "",
        "status": "ok", "message": "",
        "verified": True, "variants": {}, "samples_ns": [[seconds * 1e9]], "min": seconds, "median": seconds,
        "spread": 0.0, "share": 0.5,
        "ratio": {"median": ratio, "min": ratio, "max": ratio, "rounds": [ratio]},
    } | more  # fmt: skip


def report(kernel: str, bound: str, line: float, **baseline: float) -> dict:
    rows = [entry("line", "ours", line, line)]
    rows += [entry(n, "baseline", s, line, apart=n == "default") for n, s in baseline.items()]
    limits = {
        "bound": bound, "seconds": line / 2, "memory_seconds": line / 2, "arithmetic_seconds": line / 4,
        "bytes": 1 << 27, "pattern": "1 read", "way": "<no> prefetch", "threads": 2,
        "gbytes_per_second": 20.0,
        "gflops_one_thread": 50.0, "gflops": 100.0, "samples_ns": [[line / 2 * 1e9]],
    }  # fmt: skip
    machine = json.dumps({"cpu": "a & b", "cores": 2})
    return {
        "kernel": kernel, "shape": "8x8", "policy": "reassoc", "line": [], "program": "", "rounds": 1,
        "samples": 1, "flops": 1000000, "bytes": 2000000, "machine": machine,
        "machine_summary": "<a machine>",
        "reference": "line", "limits": limits, "remarks": [], "entries": rows,
    }  # fmt: skip


def test_geometric_means_are_over_the_kernels_that_have_both():
    reports = [
        report("add", "memory", 1.0, torch=2.0, jax=4.0, default=1.1),
        report("matmul", "arithmetic", 1.0, torch=8.0, jax=0.5),
    ]
    found = summary(reports)
    against = found["against"]["reference"]
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0) == against["torch"]["geometric_mean"]
    assert best_baseline(reports[0])["entry"] == "torch"  # those shown apart do not count
    assert against["best"]["geometric_mean"] == pytest.approx(1.0)  # of 2 and 1/2
    assert (against["best"]["worst"], against["best"]["worst_kernel"]) == (0.5, "matmul 8x8")
    assert against["default"]["kernels"] == 1
    assert found["share"]["memory"]["kernels"] == found["share"]["arithmetic"]["kernels"] == 1
    assert geometric_mean([]) is None


def test_the_report_of_a_stored_bench_needs_nothing_else():
    reports = [report("add", "memory", 1e-3, torch=2e-3), report("matmul", "arithmetic", 2e-3, torch=1e-3)]
    document = {
        "format": 2, "time": "now", "versions": {"dojo": "1"}, "reports": reports,
        "summary": summary(reports),
        "skipped": [{"kernel": "conv", "shape": "1", "message": "not <today>"}],
    }  # fmt: skip
    jsonschema.validate(document, SCHEMA)
    html = checked_page(page(document))
    assert (
        "prefers-color-scheme: dark" in html and "not &lt;today&gt;" in html and "&lt;a machine&gt;" in html
    )
    assert html.count("<svg") == 3 + len(reports)  # two charts, the roofline, a panel a kernel
    assert re.search(r"<b>1\.00×</b><span>against the best baseline", html)
    checked_page(page(document | {"reports": []}))  # nothing measured is a page too
