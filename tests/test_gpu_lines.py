"""The recorded lines for GPUs: each replays to its golden end, and computes what its kernel is."""

import ctypes
import json
import sys
from functools import cache, lru_cache

import numpy as np
import pytest

import benchmarks.gpu.__main__ as script
from agents.passes import play_pass
from benchmarks.gpu.positions import SMALL, TABLE, shapes
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.program.gpu import kernels as launches
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Program, walk
from dojo_core.targets.gpu.code import GpuCode
from dojo_core.targets.gpu.feedback import Feedback
from dojo_core.targets.hip import build as hip
from tests.compiled import random_inputs
from tests.emulated import ORDERS, barriers_met, code_of, emulate
from tests.goldens import FOLDER
from tests.thorough import covering, group, one_of
from tests.tiny import TINY

LINES = recorded_lines("cuda")
# Of lines that are not the first of their kernel.
OTHERS = {
    "conv_channels": "2x64x32x6x56x3",
    "layernorm_long": "2x4096",
    "batchnorm_narrow": "8x1x300x300",
    "batchnorm_moments": "1x1x2048x2048",
    "matmul_parts": "128x512x512",
    "matmul_tf32": "256x512x512",
    "bmm_tf32": "2x256x128x128",
}
# How many barriers each text has; none stands in a loop but those of a tile that is filled anew.
BARRIERS = {
    "reducemean": 1, "rmsnorm": 1, "matmul": 2, "bmm": 2, "batchnorm": 2,
    "swiglu": 4, "conv": 1, "conv_channels": 2, "matmul_parts": 2, "layernorm_long": 2, "batchnorm_narrow": 2,
    "batchnorm_moments": 7, "matmul_tf32": 4, "bmm_tf32": 4,
}  # fmt: skip

# How many of them a thread meets at the line's own shape: what comes before a loop is waited for once, as are
# partial sums handed over through shared memory; matmul's tiles each step fills anew, in a pipeline too.
MET = {
    "reducemean": 1, "rmsnorm": 1, "layernorm_long": 2, "batchnorm": 2,
    "batchnorm_narrow": 2, "matmul": 2 * 64, "bmm": 2 * 8, "swiglu": 4 * 8, "conv": 1, "matmul_parts": 2 * 16,
    "conv_channels": 2 * 4, "batchnorm_moments": 7, "matmul_tf32": 2 * 8, "bmm_tf32": 2 * 4,
}  # fmt: skip

# What a rounded mean is off by: it makes up for an error of the mean, and itself adds next to nothing.
MADE_UP_FOR = {"batchnorm_moments": 2}


def kind(name: str) -> str:
    """What kind of kernel a line is for."""
    return group(str(LINES[name].kernel))


@cache
def played(name: str, shape: str, target: str = "cuda") -> Program:
    """The end of a line."""
    line = recorded_lines(target)[name]
    assert line.kernel is not None
    kernel = kernels.get(line.kernel)
    game = Game.new(kernel.program(kernel.shape(shape)), kernel.name, shape, target, line.policy)
    report = line.play(game)
    assert [(e.move, e.outcome, e.reason) for e in report.entries if e.outcome != "same"] == []
    return game.current.program


@pytest.mark.parametrize("name", covering(LINES, kind))
def test_each_line_replays_to_its_golden_end(golden, name):
    program = played(name, LINES[name].shape)
    provenances = [node.provenance for node, _, _ in walk(program.body)]
    assert len(set(provenances)) == len(provenances), "every node is known by its provenance"
    golden(FOLDER / "cuda" / f"{name}.txt", program.text)
    assert all(launch.mapped for launch in launches(program))
    assert len(code_of(program).barriers) == BARRIERS.get(name, 0)
    assert barriers_met(program) == MET.get(name, 0)


def emulated(
    name: str, program: Program, shape: str, code: GpuCode, order: int = -1, text: str | None = None
):
    """The end of a line, run on random inputs; its fault, what came out and what should have."""
    inputs, expected = given(name, program, shape)
    (output,) = program.outputs
    got, fault = emulate(code, inputs, order, text)
    return fault, got[program.buffer_of[output].name].reshape(expected.shape), expected


@lru_cache(maxsize=1)  # for all barriers and orders of a line
def given(name: str, program: Program, shape: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Random inputs, and the output that they should have; of rounded factors what the text means."""
    kernel, inputs = kernels.get(str(LINES[name].kernel)), random_inputs(program)
    (output,) = program.outputs
    if LINES[name].policy == "tf32":
        return inputs, interpret(program, inputs)[output]
    return inputs, kernel.reference(inputs, kernel.shape(shape))[output]


def close(have: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(have, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


# One line asks for four million elements, whose threads take the emulator as long as half of all others; one
# for as many products as these (test_tensor_cores.py has what the pass makes of a smaller one).
LONG = ("batchnorm_moments", "matmul_tf32")


@pytest.mark.parametrize(
    "name",
    covering((pytest.param(name, marks=pytest.mark.soak if name in LONG else ()) for name in LINES), kind),
)
def test_each_end_computes_what_its_kernel_is(name):
    shape = OTHERS.get(name) or SMALL[name]
    program = played(name, shape)
    fault, have, expected = emulated(name, program, shape, code_of(program, LINES[name].policy))
    assert not fault and close(have, expected)


# A tile that is filled anew, sums of a row and of a block, one after another; make soak tries all lines.
FEW = ("matmul", "swiglu", "layernorm_long", "batchnorm")


@pytest.mark.parametrize(
    "name",
    one_of(2, (pytest.param(n, marks=() if n in FEW else pytest.mark.soak) for n in LINES if n in BARRIERS)),
)
def test_no_barrier_can_be_spared(name):
    """With any of them taken away, some order of threads goes wrong, where nothing makes up for it."""
    shape = OTHERS.get(name) or SMALL[name]
    program = played(name, shape)
    code = code_of(program, LINES[name].policy)
    lines = code.text.splitlines()
    assert code.barriers
    unseen = []
    for barrier in code.barriers:
        without = "\n".join(lines[:barrier] + lines[barrier + 1 :]) + "\n"
        runs = (emulated(name, program, shape, code, order, without) for order in ORDERS)
        if not any(fault or not close(have, expected) for fault, have, expected in runs):
            unseen.append(barrier)
    assert len(unseen) == MADE_UP_FOR.get(name, 0), unseen


# Each kernel's bench starts PyTorch: make soak tries two, as the script does. In the suite that process ends
# at once (test_gpu_device.py has a bench beside PyTorch).
@pytest.mark.thorough  # its parts are tried below and in test_gpu_device.py
@pytest.mark.parametrize(
    ("names", "beside"),
    [(["rmsnorm"], False), pytest.param(["mul", "rmsnorm"], True, marks=pytest.mark.soak)],
)
def test_the_one_script_is_tried_without_a_gpu(tmp_path, monkeypatch, capsys, names, beside):
    if not beside:
        monkeypatch.setattr(script, "TORCH_STAND_IN", (sys.executable, "-c", "raise SystemExit(1)"))
        monkeypatch.setattr(script, "WALKS", 1)
    words = ["--out", str(tmp_path), "--only", *names, "--search", "4" if beside else "2"]
    assert script.main([*words, "--emulate"]) == 0, capsys.readouterr().out
    told = json.loads((tmp_path / "gpu.json").read_text())
    walks = script.WALKS * len(names)
    parts = [*["bench"] * len(names), *["walk"] * walks, *["lines"] * len(names), "search"]
    assert [r["part"] for r in told["results"]] == parts
    assert all(r["verified"] for r in told["results"]) and told["left_out"] == []
    benches = [r["report"]["entries"] for r in told["results"] if "report" in r]
    torch = ["torch", "torch-compile", "torch-compile-graphs"]
    assert [[e["entry"] for e in b] for b in benches] == [["line", "heuristic", *torch]] * len(names)
    for entry in (e for b in benches for e in b if beside or e["entry"] not in torch):
        assert entry["status"] == "ok" and entry["verified"] and not entry["samples_ns"]
    settings = {r["kernel"]: set(r["settings"]) for r in told["results"] if r["part"] == "lines"}
    assert settings == {name: set(LINES[name].settings) for name in names}
    assert "search rmsnorm" in (tmp_path / "report.md").read_text()
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    assert script.main(words) == 1
    assert "There is no NVIDIA driver here" in capsys.readouterr().out


def test_the_one_script_verifies_every_kernel(gpu_report):
    report, gpu = gpu_report
    for name in ("rope", "softmax_bf16", "blocksparse"):
        report.add("correct", name, "x".join(map(str, TINY[name])),
                   lambda n=name: script.correct(gpu, n, "x".join(map(str, TINY[n]))))  # fmt: skip
    (found,) = report.data["results"]
    assert (found["kernel"], found["verified"]) == ("rope", True) and report.right
    assert ["bf16" in each or "tables" in each for each in report.data["left_out"]] == [True, True]


@pytest.fixture
def gpu_report(tmp_path):
    with script.GpuMeasurer(script.STAND_IN) as gpu:
        yield script.Report(tmp_path, 1.0), gpu


HIP = {name: SMALL[name] for name in ("softmax", "conv")}


@pytest.mark.parametrize("name", HIP)
def test_lines_replay_for_amd_gpus_too(name):
    """The same moves are legal where a wave has 64 lanes; what they lead to is compiled, and emulated."""
    program = played(name, HIP[name], "hip")
    inputs, kernel = random_inputs(program), kernels.get(str(LINES[name].kernel))
    (output,) = program.outputs
    code = code_of(program, hip=True)
    got, fault = emulate(code, inputs)
    assert not fault
    expected = kernel.reference(inputs, kernel.shape(HIP[name]))[output]
    have = got[program.buffer_of[output].name].reshape(expected.shape)
    np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    if hip.compiler() is not None:
        found = hip.feedback(code)
        assert isinstance(found, Feedback) and found.kernels[0].spill_bytes == 0, found


@pytest.mark.parametrize(("name", "shape"), [("softmax", "64x512"), ("rmsnorm", "16x2048")])
def test_waves_of_64_compute_what_a_kernel_is(name, shape):
    kernel = kernels.get(name)
    game = Game.new(kernel.program(kernel.shape(shape)), name, shape, "hip")
    play_pass(game, "heuristic")
    program = game.current.program
    inputs = random_inputs(program)
    got, fault = emulate(code_of(program, hip=True), inputs)
    assert "64:w" in program.text and not fault
    for output, expected in kernel.reference(inputs, kernel.shape(shape)).items():
        assert close(got[program.buffer_of[output].name].reshape(expected.shape), expected)


def test_the_pass_for_amd_gpus_gives_a_wave_of_64_a_row():
    kernel = kernels.get("softmax")
    game = Game.new(kernel.program((4096, 512)), "softmax", "4096x512", "hip")
    play_pass(game, "heuristic")
    assert "64:w" in game.current.program.text
    assert all(launch.mapped for launch in launches(game.current.program))


def test_every_shape_of_the_table_has_its_line():
    assert {(name, shape) for name in TABLE for shape in shapes(name)} == {
        (line.kernel, line.shape) for line in LINES.values()
    }


def no_driver(name: str) -> None:
    raise OSError(name)


def test_a_failure_is_a_result_and_what_has_no_time_left_is_told(tmp_path):
    def fails():
        raise RuntimeError("no luck")

    report = script.Report(tmp_path, 1.0)
    report.add("bench", "mul", "2x64", fails)
    late = script.Report(tmp_path / "late", 0.0)
    late.add("walks", "mul", "2x64", fails)
    assert not report.right and "no luck" in (tmp_path / "report.md").read_text()
    assert late.data["left_out"] == ["walks mul 2x64: no time was left"] and late.right
