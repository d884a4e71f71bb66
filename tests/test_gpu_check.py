"""GPU positions without a GPU: the emulator's verdict, the compilers' report, what a missing tool says."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from dojo_core import apply, kernels, parse
from dojo_core.cli import app
from dojo_core.game import Game
from dojo_core.measure.measurement import Workload
from dojo_core.measure.records import Records
from dojo_core.service.analysis import Analysis
from dojo_core.service.feed import current
from dojo_core.service.players import Player
from dojo_core.service.queue import Outcome
from dojo_core.service.wiring import KernelLibrary, MeasurerBench, RecordStore, assemble
from dojo_core.targets.cuda import build as cuda
from dojo_core.targets.cuda.backend import Cuda
from dojo_core.targets.gpu.check import Checker
from dojo_core.targets.gpu.feedback import Feedback, KernelReport, NoFeedback, occupancy, summary
from dojo_core.targets.hip import build as hip
from tests.emulated import code_of
from tests.test_gpu_codegen import program_named

pytestmark = pytest.mark.usefixtures("kept_workers")

MOVES = ("map_grid y@0", "split_scope y@1 4", "vectorize y@2", "map_block y@1")


def mapped_relu() -> Game:
    game = Game.new(kernels.get("relu").program((8, 64)), "relu", "8x64", target="cuda")
    for move in MOVES:
        game.play(move)
    return game


def test_a_position_is_verified_in_the_emulator_and_has_no_time():
    game = mapped_relu()
    with Checker(Cuda()) as checker:
        workload = Workload(game.start, "relu", game.policy)
        verdict = checker.check(workload, game.current.program).verdict
        assert (verdict.status, verdict.verified, verdict.seconds) == ("ok", True, None)
        wrong = parse(game.current.program.text.replace("max(x[{0},{1}*4+{2}],0)", "max(x[{0},{1}*4+{2}],1)"))
        verdict = checker.check(workload, wrong).verdict
        assert verdict.status == "wrong_result" and "should be" in verdict.message
        half = parse(game.current.program.text.replace("8:g", "7:g"))
        assert checker.check(workload, half).verdict.status == "unwritten"


def test_the_command_line_tells_the_verdict_and_never_a_time(tmp_path):
    saved = tmp_path / "relu.game"
    saved.write_text(mapped_relu().to_text())
    result = CliRunner().invoke(app, ["time", "relu", "--line", str(saved), "--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 0 and told["verified"] and told["seconds"] is None
    shown = CliRunner().invoke(app, ["time", "relu", "--line", str(saved)]).stdout
    assert "Verified in the emulator" in shown and "No time" in shown
    code = CliRunner().invoke(app, ["show", "relu", "--line", str(saved), "--code"]).stdout
    assert "__global__" in code and "f32x4" in code


def test_without_a_compiler_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(cuda, "compiler", lambda: None)
    monkeypatch.setattr(hip, "compiler", lambda: None)
    for found in (
        cuda.feedback(code_of(program_named("mul"))),
        hip.feedback(code_of(program_named("mul"), hip=True)),
    ):
        assert isinstance(found, NoFeedback) and found.missing and "nstall" in found.message


def test_where_nvrtc_does_not_load_nvcc_compiles(monkeypatch, tmp_path):
    (tmp_path / "libnvrtc.so.13").write_bytes(b"no library")
    monkeypatch.setattr(cuda, "_library_folders", lambda: [tmp_path])
    monkeypatch.setattr(cuda.shutil, "which", lambda name: f"/opt/{name}")
    found = cuda.compiler.__wrapped__()
    assert found is not None and (found.name, found.nvcc) == ("nvcc", "/opt/nvcc")


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [(256, 32, 0, 1.0), (256, 40, 32, 0.75), (64, 117, 8448, 0.25), (8, 22, 0, 0.5), (1024, 255, 0, 0.0)],
)
def test_occupancy(threads, registers, shared, expected):
    assert occupancy(threads, registers, shared) == expected


def test_a_report_in_a_sentence():
    report = KernelReport("k", 8, 256, 32, 0, 0, 1024, 0.5)
    told = summary(Feedback("sm_90", "nvcc", (report,)))
    assert "32 registers" in told and "occupancy 50%." in told
    assert "12 loads and stores of 128 bits." in summary(
        Feedback("sm_90", "nvcc", (replace(report, wide=12),))
    )


@pytest.mark.skipif(cuda.compiler() is None, reason=cuda.HOW_TO_GET)
def test_what_ptxas_says():
    found = cuda.feedback(code_of(program_named("matmul")))
    assert isinstance(found, Feedback)
    (kernel,) = found.kernels
    assert (kernel.blocks, kernel.threads, kernel.shared_bytes, kernel.spill_bytes) == (6, 64, 8448, 0)
    assert 64 < kernel.registers < 255 and kernel.wide in (None, 24)
    with_fault = code_of(program_named("mul"))
    broken = type(with_fault)(
        **{f: getattr(with_fault, f) for f in with_fault.__slots__} | {"text": "int x = ;\n"}
    )
    told = cuda.feedback(broken)
    assert isinstance(told, NoFeedback) and not told.missing and "error" in told.message


@pytest.mark.skipif(hip.compiler() is None, reason=hip.HOW_TO_GET)
def test_what_clang_says_of_a_wave_of_64():
    found = hip.feedback(code_of(program_named("rmsnorm"), hip=True))
    assert isinstance(found, Feedback) and found.architecture == "gfx90a"
    (kernel,) = found.kernels
    assert kernel.shared_bytes == 32 and kernel.registers and not kernel.spill_bytes


def test_the_app_verifies_the_position_and_gives_no_move_a_time(tmp_path):
    game = mapped_relu()
    told: dict[str, Outcome] = {}
    with Records(tmp_path / "records.sqlite") as records:
        bench = MeasurerBench(records)
        workload = KernelLibrary().workload(game.start, "relu", game.policy, "cuda")
        after = apply(game.current.program, "clear_mark y@1", "cuda")
        try:
            bench.measure(workload, [game.current.program], True, told.__setitem__, lambda: False)
            bench.measure(workload, [after], False, told.__setitem__, lambda: False)
            # a second look, as the queue takes at programs that others are held against, takes nothing back
            bench.measure(
                workload, [game.current.program], False, told.__setitem__, lambda: False, again=True
            )
        finally:
            bench.close()
        assert RecordStore(records).known(workload, list(told)) == {}
    here, there = told[game.current.program.hash], told[after.hash]
    assert here.status == "verified" and "Verified in the emulator" in here.message
    assert there.status == "untimed" and not here.ok and not there.ok
    shown = current(Player("p"), "cuda", here, False, "")
    assert shown == {"state": "verified, no time", "about": here.message}


def test_the_board_shows_cuda_and_how_to_get_its_machine_code(monkeypatch):
    monkeypatch.setattr(cuda, "compiler", lambda: None)
    analysis = Analysis(mapped_relu().current.program, "cuda", "reassoc")
    assert any("__global__" in text for text, _ in analysis.code_view["lines"])
    assert "No CUDA compiler is here. Install" in assemble(analysis)["error"]
