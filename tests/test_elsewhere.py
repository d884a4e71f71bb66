"""Played here, timed there: games, moves, passes, code, tuning and the app for a processor that is not this
machine's, which a worker, the records or a game told of."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.cli import app
from agents.scale import credentials
from agents.scale.pool import WorkerPool
from agents.scale.wire import Introduction, OtherVersion
from agents.timing import no_clock
from dojo_core import kernels
from dojo_core.export import library, of_game
from dojo_core.export.narrow import widest_vector
from dojo_core.game import Game
from dojo_core.line import line_for
from dojo_core.measure.machine import Machine, this_machine
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.moves import legal_moves
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.service import Service
from dojo_core.service.games import targets
from dojo_core.service.wiring import KernelLibrary, RecordStore
from dojo_core.sharing import link, open_link
from dojo_core.targets.cpu import machines
from dojo_core.targets.cpu.limits import limits_of
from dojo_core.targets.cpu.processor import NotAProcessor, Processor, from_json, host, known
from dojo_core.targets.registry import UnknownTarget, backend
from tests.cluster import Cluster, cluster
from tests.crossed import with_tools
from tests.homes import with_objects
from tests.stand_ins import Bench, Page
from tests.waiting import wait_until

THERE, OTHER = "a" * 16, "b" * 16
LAPTOP = "1" * 16
NARROW, WIDE = known("x86-64-v2"), known("x86-64-v4")
SHAPE = "8x64"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    monkeypatch.setattr(machines, "_brought", {})
    return tmp_path


@pytest.fixture
def cluster_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr("agents.scale.pool.POLL", 0.05)
    with cluster(tmp_path) as made:
        yield made


def on(machine: str, kernel: str = "softmax", shape: str = SHAPE) -> Game:
    definition = kernels.get(kernel)
    return Game.new(definition.program(definition.shape(shape)), kernel, shape, target=f"cpu@{machine}")


def dojo(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


def refused(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 1, result.output
    return " ".join(result.output.split())


def be_a_laptop(monkeypatch: pytest.MonkeyPatch, processor: Processor) -> None:
    """This process is on another machine than its workers, with this processor."""
    for module in ("limits", "codegen", "elsewhere"):
        monkeypatch.setattr(f"dojo_core.targets.cpu.{module}.host", lambda: processor)

    class Laptop:
        fingerprint = LAPTOP

    for place in ("dojo_core.targets.cpu.elsewhere", "dojo_core.targets.cpu.backend", "agents.scale.pool"):
        monkeypatch.setattr(f"{place}.this_machine", Laptop)


# ---------------------------------------------------------------------------- tuning


# Wider than here; make soak: narrower too.
TUNED = [(NARROW, "x86-64-v4", 64), pytest.param(WIDE, "x86-64-v2", 16, marks=pytest.mark.soak)]


@pytest.mark.thorough  # records of a run, moves, lines and passes of the machine: below
@pytest.mark.parametrize(("laptop", "claim", "bytes_"), TUNED)
def test_tuning_plays_for_the_processor_that_a_worker_tells(
    cluster_of_workers, monkeypatch, tmp_path, laptop, claim, bytes_
):
    be_a_laptop(monkeypatch, laptop)
    cluster_of_workers.start_worker(machine=THERE, claim=claim)
    game = tmp_path / "best.dojo"
    output = dojo(
        "tune", f"softmax:{SHAPE}", "--scheduler", cluster_of_workers.address, "--key",
        str(cluster_of_workers.key), "--budget", "12", "--machine", claim, "--json", "--save", str(game),
    )  # fmt: skip
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert len(events) > 12 and {each["status"] for each in events} == {"ok"}
    best = Game.from_text(game.read_text())
    assert best.target == f"cpu@{THERE}" and widest_vector(best.current.program) == bytes_
    assert best.context(best.cursor, 99).target.vector_widths == limits_of(known(claim)).vector_widths
    assert machines.remembered(THERE) == known(claim)


@pytest.mark.thorough  # a worker's records: test_scale.py; words, refusals: below
def test_records_of_a_run_say_the_machine_that_measured(cluster_of_workers, monkeypatch):
    """A worker of this very machine, from a laptop with the narrowest vectors."""
    worker = this_machine().fingerprint
    be_a_laptop(monkeypatch, NARROW)
    cluster_of_workers.start_real_worker()
    output = dojo(
        "tune", f"relu:{SHAPE}", "--scheduler", cluster_of_workers.address, "--key",
        str(cluster_of_workers.key), "--budget", "4", "--json",
    )  # fmt: skip
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert {each["status"] for each in events} == {"ok"}
    with Records() as records:
        measured_records = [record for _, record in records.measurements()]
        assert {(record.fingerprint, record.target) for record in measured_records} == {(worker, "cpu")}
        assert max(widest_vector(parse(record.program_text)) for record in measured_records) == max(
            host().vector_bytes
        )
        assert machines.of_details(measured_records[0].machine).vectors == host().vectors
    assert machines.remembered(worker).vectors == host().vectors
    assert dojo("machines").count(worker) == 1


@pytest.mark.thorough  # what is no claim of a worker: below
def test_a_worker_that_tells_nothing_readable_is_refused_with_a_sentence(cluster_of_workers):
    cluster_of_workers.start_worker(machine=THERE, claim="")
    with WorkerPool(cluster_of_workers.address, credentials.security(cluster_of_workers.key), 30) as pool:
        assert pool.choose() == THERE
        with pytest.raises(OtherVersion, match=r"tls://.* says of its processor cannot be used.*versions"):
            pool.processor(THERE)
        with pytest.raises(OtherVersion, match=f"machine {OTHER} do not tell their processor"):
            pool.processor(OTHER)
    assert machines.all_remembered() == {}
    where = ("--scheduler", cluster_of_workers.address, "--key", str(cluster_of_workers.key))
    output = refused("tune", f"relu:{SHAPE}", *where, "--budget", "4")
    assert "says of its processor cannot be used" in output
    cluster_of_workers.start_worker(machine=OTHER, claim="x86-64-v2")  # one that does, which is taken
    with WorkerPool(cluster_of_workers.address, credentials.security(cluster_of_workers.key), 30) as pool:
        wait_until(lambda: OTHER in pool.machines())
    dojo("tune", f"relu:{SHAPE}", *where, "--budget", "4")
    listed = {row["machine"]: row for row in json.loads(dojo("machines", "--json", *where))}
    assert listed[OTHER]["workers"] == 1 and "cannot be used" in listed[THERE]["unknown"]


@pytest.mark.parametrize(
    "change",
    [
        {"dojo worker": 3},
        {"processor": "[]"},
        {"processor": "{" * 70_000},
        {"processor": 7},
        {"processor": WIDE.json.replace("64", "9999")},
        {"more": "a" * (1 << 17)},
    ],
)
def test_an_introduction_is_read_within_limits(change):
    introduction = Introduction(THERE, WIDE)
    assert Introduction.read(introduction.text()) == introduction
    with pytest.raises(OtherVersion):
        Introduction.read(json.dumps(json.loads(introduction.text()) | change))


# ---------------------------------------------------------------------------- what machines are


def measured(machine: Machine, fingerprint: str, game: Game, seconds: float = 1e-3) -> Record:
    program = game.current.program
    return Record(
        program.hash, program.text, game.start.hash, game.kernel or "", game.shape, "f32", game.policy, "",
        "cpu", fingerprint, machine.details, f"code of {program.hash}", "ok", True, seconds,
        (Sample(seconds * 1e9),) * 3, effort="normal", time=time.time(), load=0.0,
    )  # fmt: skip


def test_a_machine_that_has_records_and_no_worker_is_known():
    machine = this_machine()
    assert machines.of_details(machine.details).json == host().json
    older = {k: v for k, v in asdict(machine).items() if k not in ("architecture", "caches")}
    older |= {"features": "fpu sse2 avx2 fma", "second_level_cache": 2 << 20, "cores": 2}
    processor = machines.of_details(json.dumps(older))
    assert (processor.instruction_set, processor.vectors) == ("x86-64", ((32, 16), (16, 16)))
    assert processor.caches[:2] == (0, 1 << 20) and processor.threads == 2
    older["features"] = "fp asimd asimddp"
    assert machines.of_details(json.dumps(older)).instruction_set == "aarch64"
    older["features"] = ""
    with pytest.raises(NotAProcessor, match="do not tell its instruction set: a worker on it does"):
        machines.of_details(json.dumps(older))
    for wrong in ("", "[]", "{}", json.dumps(older | {"cores": "many"}), json.dumps(older | {"cores": -3})):
        with pytest.raises(NotAProcessor):
            machines.of_details(wrong)


def test_machines_are_listed_with_what_is_not_known_of_them():
    start = on("x86-64-v3")
    other = replace(this_machine(), cpu="Some CPU", architecture="x86_64", features="sse2 avx2", cores=8)
    with Records() as records:
        records.add(measured(other, OTHER, start))
        records.add(measured(replace(other, architecture="", features=""), THERE, start))
        records.add(replace(measured(other, "c" * 16, start), verified=False))  # somebody's claim
    output = dojo("machines")
    assert "c" * 16 not in output
    rows = {line.split()[0]: line for line in output.splitlines()[1:]}
    assert "Some CPU, 8 threads, AVX2" in rows[OTHER] and "this one" in rows[this_machine().fingerprint]
    assert "do not tell its instruction set" in rows[THERE]
    listed = {row["machine"]: row for row in json.loads(dojo("machines", "--json"))}
    assert (
        listed[OTHER]["measurements"] == 1 and from_json(json.dumps(listed[OTHER]["processor"])).threads == 8
    )
    assert "Machine aaaaaaaaaaaaaaaa: Its records do not tell" in refused(
        "moves", "relu", "--machine", "aaaa"
    )


def test_the_oldest_is_forgotten_where_many_are_known(monkeypatch):
    monkeypatch.setattr(machines, "MOST", 2)
    for number in range(4):
        machines.remember(f"{number:016x}", WIDE)
        time.sleep(0.02)
    assert [*machines.all_remembered()] == ["0000000000000002", "0000000000000003"]
    with Records() as records:
        records.add(measured(this_machine(), OTHER, on("x86-64-v3")))
        assert machines.learn(records) == {} and machines.remembered(OTHER) is None  # records push none out
    machines.remember("0000000000000003", NARROW)  # it is another now
    assert machines.remembered("0000000000000003") == NARROW
    with pytest.raises(NotAProcessor, match="no fingerprint"):
        machines.remember("../../../etc/passwd", WIDE)
    assert machines.remembered("../../../etc/passwd") is None


# ---------------------------------------------------------------------------- playing


def test_moves_lines_passes_and_code_are_of_the_machine(home):
    wide = with_tools("x86-64-v4")
    machines.remember(THERE, replace(NARROW, name="Old CPU"))
    machines.remember(OTHER, replace(wide, name="New CPU"))
    for word in ("aaa", "old cpu", THERE):
        output = dojo(
            "moves", f"softmax:{SHAPE}", "vectorize", "--line", "softmax", "--machine", word, "--json"
        )
        assert json.loads(output) == []  # the line has made vectors of all
    line = line_for("softmax", SHAPE, f"cpu@{OTHER}")
    game = Game.new(on(OTHER).start, "softmax", SHAPE, f"cpu@{OTHER}", line.policy)
    assert all(entry.applies for entry in line.play(game).entries)
    assert widest_vector(game.current.program) == 64
    assert "f32x4_" in dojo("pass", f"softmax:{SHAPE}", "--machine", "aaa", "--code")
    assert "f32x16_" in dojo("pass", f"softmax:{SHAPE}", "--machine", "bbb", "--code")
    split = ("--do", "split_scope y@1 16", "--do", "vectorize y@2")
    saved = home / "wide.dojo"
    assert "zmm" in dojo("play", "relu:64x64", *split, "--machine", "bbb", "--asm", "--save", str(saved))
    assert "16 is no vector width" in refused("play", "relu:64x64", *split, "--machine", "aaa")
    assert "is not legal" in dojo("why", "relu:64x64", "vectorize y@1", "--machine", "x86-64-v2")
    assert "f32 [64, 64]" in dojo("show", "relu:64x64", "--machine", "bbb")
    assert "has its shape, policy, target and machine" in refused(
        "moves", "relu", "--line", str(saved), "--machine", "bbb"
    )
    assert "vectorize" not in dojo("moves", "relu", "vectorize y@2", "--line", str(saved))


def test_a_name_that_means_no_machine_or_several_is_told():
    for fingerprint in (THERE, "ab" * 8):
        machines.remember(fingerprint, replace(NARROW, name="Old CPU"))
    output = refused("moves", "relu", "--machine", "zz")
    assert "Nothing is known here of a machine 'zz': dojo machines lists" in output and "armv8-a" in output
    output = refused("moves", "relu", "--machine", "Old")
    assert f"may be {THERE}, {'ab' * 8}: give one of these" in output


def test_a_missing_compiler_is_one_sentence(monkeypatch):
    monkeypatch.setattr("dojo_core.targets.cpu.processor.shutil.which", lambda name: None)
    output = refused("play", "relu:64x64", "--do", "parallelize y@0", "--machine", "armv8-a", "--asm")
    assert "aarch64-linux-gnu-gcc" in output and "This brings it: apt-get install" in output


def test_agents_say_where_times_come_from():
    machines.remember(THERE, NARROW)
    assert f"dojo tune KERNEL --scheduler ADDRESS --machine {THERE}" in no_clock(f"cpu@{THERE}")
    assert "no machine that times" in no_clock("cpu@x86-64-v2")


# ---------------------------------------------------------------------------- games


def test_a_game_keeps_the_processor_that_it_is_for(home):
    machines.remember(THERE, WIDE)
    game = on(THERE, "relu", "64x64")
    game.play("split_scope y@1 16")
    game.play("vectorize y@2")
    text = game.to_text()
    (home / machines.FOLDER / f"{THERE}.json").unlink()
    with pytest.raises(UnknownTarget):
        backend(f"cpu@{THERE}")
    again = Game.from_text(text)
    assert again.to_text() == text and again.target == f"cpu@{THERE}"
    assert not machines.all_remembered()  # a game may come from anybody
    assert open_link(link(again)).game.current.program == again.current.program
    machines.remember(THERE, NARROW)  # what the machine says of itself counts
    with pytest.raises(TextError, match="does not apply"):
        Game.from_text(text)
    by_name = on("x86-64-v4").to_text()
    assert "processor:" not in by_name and Game.from_text(by_name).target == "cpu@x86-64-v4"


def test_a_game_for_this_machine_is_an_ordinary_one():
    game = on(this_machine().fingerprint)
    assert game.target == "cpu" and "processor:" not in game.to_text()


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("{}", "has a name"),
        ("[" * 1000, "JSON"),
        ("x" * (1 << 17), "JSON"),
        (WIDE.json.replace('"x86-64-v4"', '"x\\ny"'), "has a name"),
        (WIDE.json.replace("[[64", "[[128"), "widest first"),
    ],
)
def test_what_a_game_says_of_its_machine_is_read_with_care(told, sentence):
    machines.remember(THERE, WIDE)
    lines = on(THERE).to_text().splitlines()
    bad = "\n".join(f"processor: {told}" if line.startswith("processor:") else line for line in lines)
    with pytest.raises(TextError, match=sentence):
        Game.from_text(bad)


def test_a_game_for_another_machine_is_exported_as_c_for_any(home, monkeypatch):
    be_a_laptop(monkeypatch, NARROW)
    machines.remember(THERE, WIDE)
    game = on(THERE, "relu", "64x64")
    game.play("split_scope y@1 16")
    game.play("vectorize y@2")
    made = library([of_game(game, "the game")])
    kernel = made.files["kernels/relu_64x64.c"]
    assert "f32x16_store" in kernel and "f32x4_store" in made.files["kernels/relu_64x64_128bit.c"]
    (home / "best.dojo").write_text(game.to_text())
    assert "not measured" in dojo("export", str(home / "best.dojo"), "--to", str(home / "fast"))
    arm = on("armv8.4-a", "relu", "64x64")
    arm.play("split_scope y@1 4")
    arm.play("vectorize y@2")
    assert "f32x4_store" in library([of_game(arm, "the game")]).files["kernels/relu_64x64.c"]


# ---------------------------------------------------------------------------- the app


def test_the_app_offers_known_machines_and_shows_their_recorded_times(home):
    assert not [name for name, _, _ in targets() if "@" in name]
    machines.remember(THERE, replace(NARROW, name="Old CPU"))
    game, bench = on(THERE, "relu", "64x64"), Bench()
    legal = legal_moves(game.start, game.target)
    with Records() as records:
        records.add(measured(this_machine(), THERE, game))
        service = Service(RecordStore(records), KernelLibrary(), lambda: bench)
        try:
            page = Page(service)
            offered = {each["name"]: each["words"] for each in page.board["start"]["targets"]}
            assert offered[f"cpu@{THERE}"] == "Old CPU, 4 threads"
            page.send("start", kernel="relu", shape="64x64", policy="reassoc", target=f"cpu@{THERE}")
            board = page.board
            assert board["game"]["timed"] and not board["game"]["counts"]
            assert board["game"]["title"] == "relu 64x64 on cpu@aaaaaa"
            assert {row["text"] for row in board["moves"]} == {str(move) for move in legal}
            page.until(lambda: page.feed["explored"])
            assert page.feed["now"]["seconds"] == pytest.approx(1e-3)
            queue = page.feed["queue"]
            assert queue["state"] == "elsewhere" and "Times come from its worker" in queue["message"]
            page.send("play", move="parallelize y@0")
            page.until(lambda: page.feed["now"]["state"] == "no time")
            page.until(lambda: page.feed["explored"])
            assert not bench.measured
        finally:
            service.close()
