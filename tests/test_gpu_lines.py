"""The recorded lines for GPUs: each replays to its golden end, and computes what its kernel is."""

import ctypes
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import benchmarks.gpu.__main__ as script
from agents.passes import play_pass
from benchmarks.gpu import on_device
from benchmarks.gpu.positions import SMALL, TABLE, inputs_of, shapes, verdict
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.program.gpu import kernels as launches
from dojo_core.program.tree import walk
from dojo_core.targets.gpu.emulator import build_emulated
from dojo_core.targets.gpu.feedback import Feedback
from dojo_core.targets.hip import build as hip
from tests.compiled import random_inputs
from tests.emulated import code_of, emulate

GOLDEN = Path(__file__).parent / "golden" / "cuda"
LINES = recorded_lines("cuda")
# Of lines that are not the first of their kernel.
OTHERS = {
    "conv_channels": "2x64x8x4x56x3",
    "layernorm_long": "2x4096",
    "batchnorm_narrow": "8x1x300x300",
}
BARRIERS = {
    "reducemean": 1, "rmsnorm": 1, "layernorm": 2, "matmul": 2, "bmm": 2, "batchnorm": 2,
    "swiglu": 4, "conv": 2, "conv_channels": 2, "layernorm_long": 2, "batchnorm_narrow": 2,
}  # fmt: skip


def played(name: str, shape: str, target: str = "cuda") -> Game:
    line = recorded_lines(target)[name]
    assert line.kernel is not None
    kernel = kernels.get(line.kernel)
    game = Game.new(kernel.program(kernel.shape(shape)), kernel.name, shape, target, line.policy)
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
    shape, kernel = OTHERS.get(name) or SMALL[name], kernels.get(str(LINES[name].kernel))
    program = played(name, shape).current.program
    inputs = random_inputs(program)
    (output,) = program.outputs
    got, fault = emulate(code_of(program, LINES[name].policy), inputs)
    assert not fault
    expected = kernel.reference(inputs, kernel.shape(shape))[output]
    have = got[program.buffer_of[output].name].reshape(expected.shape)
    np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_the_one_script_is_tried_without_a_gpu(tmp_path, monkeypatch, capsys):
    words = ["gpu", "--out", str(tmp_path), "--only", "mul", "rmsnorm", "--search", "8"]
    monkeypatch.setattr("sys.argv", [*words, "--emulate"])
    assert script.main() == 0
    told = json.loads((tmp_path / "gpu.json").read_text())
    kinds = [next((k for k in ("walk", "search") if k in r), "kernel") for r in told["results"]]
    assert kinds == ["kernel", "walk", "walk", "kernel", "walk", "walk", "search"]
    assert all(r["verified"] and "cold" not in r for r in told["results"])
    assert [list(r["ways"]) for r in told["results"] if "ways" in r] == [["line", "heuristic"]] * 2
    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    monkeypatch.setattr("sys.argv", words)
    assert script.main() == 1
    assert "There is no NVIDIA driver here" in capsys.readouterr().out


HIP = {name: SMALL[name] for name in ("softmax", "conv")}


@pytest.mark.parametrize("name", HIP)
def test_lines_replay_for_amd_gpus_too(name):
    """The same moves are legal where a wave has 64 lanes; what they lead to is compiled, and emulated."""
    program = played(name, HIP[name], "hip").current.program
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


def test_the_script_tells_wrong_results():
    inputs = inputs_of(played("mul", "2x64").start)
    right = inputs["x"] * inputs["y"]
    assert verdict("mul", "2x64", {"z": right}, inputs)["verified"]
    right[1, 3] = np.nan
    assert not verdict("mul", "2x64", {"z": right}, inputs)["verified"]


class HostDevice:
    """A device that is the emulator: memory of the host, launches at once, a clock that counts runs."""

    name, architecture, l2_bytes = "the emulator", "sm_90", 1 << 10

    def __init__(self) -> None:
        self.held: dict[int, np.ndarray] = {}
        self.clock = 0.0

    def allocate(self, size: int) -> int:
        room = np.zeros(size + 256, np.uint8)
        pointer = room.ctypes.data + -room.ctypes.data % 256
        self.held[pointer] = room
        return pointer

    def free(self, pointer: int) -> None:
        del self.held[pointer]

    def upload(self, pointer: int, host: int, size: int) -> None:
        ctypes.memmove(pointer, host, size)

    def download(self, host: int, pointer: int, size: int) -> None:
        ctypes.memmove(host, pointer, size)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def fill(self, pointer: int, value: int, size: int) -> None:
        ctypes.memset(pointer, value, size)

    def synchronize(self) -> None:
        pass

    def events(self, count: int) -> list[list[float]]:
        return [[0.0] for _ in range(count)]

    def record(self, event: list[float]) -> None:
        event[0] = self.clock

    def seconds(self, first: list[float], last: list[float]) -> float:
        return last[0] - first[0]

    def load(self, code, image, arrays, workspace):
        built = build_emulated(code)
        library = ctypes.CDLL(built.library)
        pointers = (ctypes.c_void_p * len(arrays))(*arrays)

        def run() -> None:
            library[built.symbol](pointers, ctypes.c_void_p(workspace))
            self.clock += 1e-6 * len(code.text)

        return SimpleNamespace(run=run, unload=lambda: None)


def test_what_needs_the_device_is_tried_on_a_stand_in(monkeypatch):
    """All that the script does with a device, but the device; nothing stays allocated."""
    monkeypatch.setattr(on_device, "cubin", lambda code, architecture: b"")
    monkeypatch.setattr(script, "shapes", lambda name: [SMALL[name]])
    device = HostDevice()
    found = script.compared(device, "rmsnorm", SMALL["rmsnorm"])
    assert found["verified"] and list(found["ways"]) == ["line", "heuristic"]
    assert (
        {"dojo line", "dojo heuristic", "copy of as many bytes"}
        == found["warm"].keys()
        == found["cold"].keys()
    )
    assert script.walk_on(device, "softmax", 0)["verified"]
    told = script.search_on(device, "relu_ffn", 6)
    assert told["verified"] and told["evaluations"] >= 6 and told["best"] <= told["start"]
    assert not device.held
