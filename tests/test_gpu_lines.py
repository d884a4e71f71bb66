"""The recorded lines for GPUs: each replays to its golden end, and computes what its kernel is."""

import ctypes
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gpu
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.program.gpu import kernels as launches
from dojo_core.program.tree import walk
from tests.compiled import random_inputs
from tests.emulated import code_of, emulate

GOLDEN = Path(__file__).parent / "golden" / "cuda"
LINES = recorded_lines("cuda")
BARRIERS = {"reducemean": 1, "rmsnorm": 1, "layernorm": 2, "matmul": 2, "bmm": 2, "batchnorm": 2}


def played(name: str, shape: str) -> Game:
    line, kernel = LINES[name], kernels.get(name)
    game = Game.new(kernel.program(kernel.shape(shape)), name, shape, line.target, line.policy)
    report = line.play(game)
    assert [(e.move, e.outcome, e.reason) for e in report.entries if e.outcome != "same"] == []
    return game


@pytest.mark.parametrize("name", LINES)
def test_each_line_replays_to_its_golden_end(name):
    program = played(name, LINES[name].shape).current.program
    births = [node.birth for node, _, _ in walk(program.body)]
    assert len(set(births)) == len(births), "every node is known by its birth"
    assert program.text == (GOLDEN / f"{name}.txt").read_text()
    assert all(launch.mapped for launch in launches(program))
    assert len(code_of(program).barriers) == BARRIERS.get(name, 0)


@pytest.mark.parametrize("name", LINES)
def test_each_end_computes_what_its_kernel_is(name):
    shape, kernel = gpu.SMALL[name], kernels.get(name)
    program = played(name, shape).current.program
    inputs = random_inputs(program)
    (output,) = program.outputs
    got, fault = emulate(code_of(program, LINES[name].policy), inputs)
    assert not fault
    expected = kernel.reference(inputs, kernel.shape(shape))[output]
    have = got[program.buffer_of[output].name].reshape(expected.shape)
    np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_the_one_script_is_tried_without_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu, "recorded_lines", lambda target: {n: LINES[n] for n in ("mul", "rmsnorm")})
    monkeypatch.setattr("sys.argv", ["gpu", "--out", str(tmp_path), "--emulate"])
    assert gpu.main() == 0
    told = json.loads((tmp_path / "gpu.json").read_text())
    assert [k["kernel"] for k in told["kernels"]] == ["mul", "rmsnorm"]
    assert all(k["verified"] and k["error"] < 1 and "cold" not in k for k in told["kernels"])
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    monkeypatch.setattr("sys.argv", ["gpu", "--out", str(tmp_path)])
    assert gpu.main() == 1
    assert "There is no NVIDIA driver here" in capsys.readouterr().out


def no_driver(name: str) -> None:
    raise OSError(name)


def test_the_script_tells_wrong_results():
    code = code_of(played("mul", "2x64").current.program)
    inputs = gpu.inputs_of(code)
    right = inputs["x"] * inputs["y"]
    assert gpu.verdict("mul", "2x64", {"z": right}, inputs)["verified"]
    right[1, 3] = np.nan
    assert not gpu.verdict("mul", "2x64", {"z": right}, inputs)["verified"]
