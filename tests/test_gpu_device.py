"""What a GPU session does, on a device that is the emulator: verdicts, times, spoilt workers, agents."""

import ctypes
import json
import os
import signal
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.gpu.report import mean_of, table
from benchmarks.gpu.stand_in import Emulated, StandIn
from dojo_core import kernels, parse
from dojo_core.bench.ours import Entry
from dojo_core.cli import app
from dojo_core.game import Game
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.judgement import row_errors
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records
from dojo_core.service.queue import Outcome
from dojo_core.service.wiring import MeasurerBench, RecordStore
from dojo_core.targets.cpu import codegen as cpu
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.cuda import measurer as on_gpu
from dojo_core.targets.cuda.backend import Cuda
from dojo_core.targets.cuda.bench import ROWS, run_gpu_bench
from dojo_core.targets.cuda.driver import CudaError, Device, LaunchLimits
from dojo_core.targets.cuda.measurer import GpuMeasurer, NoGpu
from dojo_core.targets.cuda.session import LEAD_SECONDS, WARM_RUNS, Session
from dojo_core.targets.gpu.code import Launch
from dojo_core.targets.gpu.feedback import NoFeedback
from dojo_core.targets.registry import backend
from tests.homes import with_objects

STAND_IN = (sys.executable, "-m", "benchmarks.gpu.stand_in")
MOVES = ("map_grid y@0", "split_scope y@1 4", "vectorize y@2", "map_block y@1")


def mapped_relu() -> Game:
    game = Game.new(kernels.get("relu").program((8, 64)), "relu", "8x64", target="cuda")
    for move in MOVES:
        game.play(move)
    return game


@pytest.fixture(scope="module")
def gpu():
    with GpuMeasurer(STAND_IN) as measurer:
        yield measurer


@pytest.fixture
def timed_gpu(gpu, monkeypatch, tmp_path):
    """The stand-in as a device whose times count, with a lock of its own."""
    monkeypatch.setenv("DOJO_LOCK_DIR", str(tmp_path / "lock"))
    monkeypatch.setattr(gpu, "device", replace(gpu.device, timed=True))
    monkeypatch.setattr(on_gpu, "compiled", lambda code, architecture: "")
    monkeypatch.setattr(on_gpu, "_shared", lambda: gpu)
    return gpu


def test_a_position_is_verified_and_timed_and_wrong_ones_are_told(gpu):
    game = mapped_relu()
    workload = Workload(game.start, "relu", game.policy, "cuda")
    program = game.current.program
    wrong = parse(program.text.replace("max(x[{0},{1}*4+{2}],0)", "max(x[{0},{1}*4+{2}],1)"))
    half = parse(program.text.replace("8:g", "7:g"))
    told = []
    found = gpu.measure(workload, [program, wrong, half, program], Effort.QUICK, told.append)
    assert [m.status for m in found] == ["ok", "wrong_result", "unwritten", "ok"] and len(told) == 3
    assert found[0].verified and found[0].seconds and len(found[0].samples) == Effort.QUICK.samples
    assert "should be" in found[1].message and "never written" in found[2].message
    assert gpu.measure(workload, [program], Effort.QUICK)[0] is found[0], "what is known is not timed again"
    assert gpu.measure(workload, [program], Effort.QUICK, cancelled=lambda: True, fresh=True)[0].status == (
        "cancelled"
    )
    assert len(gpu.copied(4096, 3)) == 3


def test_who_times_on_a_device_waits_for_that_and_not_for_the_processor(timed_gpu):
    game = mapped_relu()
    workload = Workload(game.start, "relu", game.policy, "cuda")
    with measuring():
        found = timed_gpu.measure(workload, [game.current.program], Effort.QUICK, fresh=True)
        assert found[0].status == "ok" and found[0].conditions.exclusive
    until = time.monotonic() + 0.5
    with measuring(clock=timed_gpu.device.clock_name):
        stopped = timed_gpu.measure(
            workload, [game.current.program], Effort.QUICK, None, lambda: time.monotonic() > until, fresh=True
        )
        assert stopped[0].status == "cancelled"


class Astray(StandIn):
    """A device on which each run, from the third on, also stores a byte so far from an array's start."""

    def __init__(self, array: int, offset: int) -> None:
        super().__init__()
        self.array, self.offset, self.runs = array, offset, 0

    def load(self, code, image, arrays, workspace):
        loaded = super().load(code, image, arrays, workspace)

        def run() -> None:
            loaded.run()
            self.runs += 1
            if self.runs > 2:
                ctypes.memset(arrays[self.array] + self.offset, 1, 1)

        return Emulated(run, loaded.fault)


@pytest.mark.parametrize(
    ("array", "offset", "message"),
    [
        (0, -1, "before the start of x"),
        (1, 8 * 64 * 4, "behind the end of y"),
        (0, 0, "into the input x"),
    ],
)
def test_writes_where_none_belong_are_noticed(array, offset, message):
    game = mapped_relu()
    code, built = cpu.generate(game.start, game.policy), build([cpu.generate(game.start, game.policy)])[0]
    session = Session(Astray(array, offset))
    prepare = {
        "do": "prepare", "start": game.start.text, "library": built.library, "symbol": built.symbol,
        "parameters": [asdict(p) for p in code.parameters],
        "workspace": code.workspace_bytes, "seed": 3, "policy": "reassoc", "cache": "",
        "sets": [asdict(InputSet())],
    }  # fmt: skip
    assert session.answer(prepare)["status"] == "ok"
    request = {
        "do": "measure", "program": game.current.program.text, "policy": game.policy, "image": "",
        "samples": 2, "cold": True,
    }  # fmt: skip
    assert session.answer(request)["status"] == "ok"
    assert session.answer({**request, "trusted": True})["status"] == "ok", "it was verified on these inputs"
    found = session.answer({**request, "again": True})
    assert found["status"] == "out_of_bounds" and message in found["message"] and found["spoilt"]
    session.close()


def test_algebraic_programs_are_judged_on_their_worst_inputs_too(gpu):
    """Of 8 rows none is adversarial; an outlier, which is among the worst inputs, tells these two apart."""
    same, clipped = (
        parse(
            f"kernel k\nin x\nout y\nx f32 [8, 64] heap\ny f32 [8, 64] heap\n8:g 64:b y[{{0}},{{1}}] = {term}"
        )
        for term in ("x[{0},{1}]*1", "min(x[{0},{1}],90)")
    )
    start = parse(same.text.replace("8:g 64:b", "8 64"))
    for policy, status in (("reassoc", "ok"), ("algebraic", "wrong_result"), ("reassoc", "ok")):
        workload = Workload(start, None, policy, "cuda")
        right, wrong = gpu.measure(workload, [same, clipped], Effort.QUICK, fresh=True)
        assert right.status == "ok" and wrong.status == status
    assert gpu.measure(workload, [same], Effort.FINAL)[0].status == "ok"


def test_a_cold_sample_finds_nothing_in_the_second_level_cache():
    """Each has fills of twice its size before it, as long as handing a run over takes; warm ones follow each
    other."""

    class Filled(StandIn):
        fills = 0

        def fill(self, pointer, value, size):
            if size == 2 * self.l2_bytes:
                self.fills += 1
                self.time += LEAD_SECONDS / 3.5
            super().fill(pointer, value, size)

    counted = []
    for cold in (True, False):
        device = Filled()
        session = Session(device)
        assert session.answer({"do": "copy", "bytes": 64, "samples": 5, "cold": cold})["status"] == "ok"
        counted.append(device.fills)
        session.close()
    assert counted == [1 + WARM_RUNS + 5 * 4, 1]  # one clears the room for it


def test_finalists_are_verified_on_inputs_that_nobody_has_seen(gpu, monkeypatch):
    seeds = []
    ask = GpuMeasurer._ask

    def asked(self, request, seconds):
        seeds.extend([request["seed"]] if request["do"] == "prepare" else [])
        return ask(self, request, seconds)

    monkeypatch.setattr(GpuMeasurer, "_ask", asked)
    game = mapped_relu()
    workload = Workload(game.start, "relu", game.policy, "cuda")
    for effort in (Effort.FINAL, Effort.ROUND, Effort.QUICK, Effort.FINAL):
        assert gpu.measure(workload, [game.current.program], effort, fresh=True)[0].status == "ok"
    assert len(set(seeds)) == 2 == len(seeds), "rounds go on with what is there"


def test_a_worker_that_ends_over_a_candidate_is_replaced(gpu):
    game = mapped_relu()
    workload = Workload(game.start, "relu", game.policy, "cuda")
    assert gpu.measure(workload, [game.start], Effort.QUICK, fresh=True)[0].status == "ok"
    os.kill(gpu._worker.pid, signal.SIGKILL)
    died = gpu.measure(workload, [game.start], Effort.QUICK, fresh=True)[0]
    assert died.status == "crash" and "killed" in died.message
    assert gpu.measure(workload, [game.start], Effort.QUICK, fresh=True)[0].status == "ok"


def test_times_of_a_device_are_kept_in_the_records_and_found_again(timed_gpu, monkeypatch, tmp_path):
    gpu, game = timed_gpu, mapped_relu()
    workload, program = Workload(game.start, "relu", game.policy, "cuda"), game.current.program
    told = {"lines": {program.hash: "\n".join(MOVES)}, "player": "ann"}
    with Records(tmp_path / "records.sqlite") as records:
        first = gpu.measure(workload, [program], Effort.QUICK, fresh=True, records=records, **told)[0]
        kept = records.best(game.start.hash, "cuda", gpu.origin.fingerprint)
        assert kept is not None and (kept.seconds, kept.player, kept.shape) == (first.seconds, "ann", "8x64")
        assert kept.line.splitlines() == list(MOVES)
        monkeypatch.setattr(gpu, "_known", {})  # as in another process
        again = gpu.measure(workload, [program], Effort.QUICK, records=records)[0]
        assert again.known and again.samples == first.samples
        gpu.measure(workload, [program], Effort.QUICK, fresh=True, cold=False, records=records)
        assert len(records.measurements()) == 1, "times with a warm cache are another matter"
        strictly = replace(workload, policy="strict")  # the same text, compiled with other flags
        assert not gpu.measure(strictly, [program], Effort.QUICK, records=records)[0].known


def test_the_best_is_told_for_the_target(timed_gpu, monkeypatch, tmp_path):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    words = ["best", "relu", "--shape", "8x64", "--target"]
    nothing = CliRunner().invoke(app, [*words, "cuda"])
    assert nothing.exit_code == 1 and "dojo tune relu --target cuda" in " ".join(nothing.output.split())
    assert "Nothing here times programs for hip." in CliRunner().invoke(app, [*words, "hip"]).output
    game = Game.new(kernels.get("relu").program((8, 64)), "relu", "8x64", target="cuda")
    for move in ("split_scope y@0 2", "map_grid y@0"):  # which no pass plays
        game.play(move)
    workload = Workload(game.start, "relu", game.policy, "cuda")
    moves = [str(position.move) for position in game.line()[1:]]
    lines = {game.current.program.hash: "\n".join(moves)}
    with Records() as records:
        timed_gpu.measure(workload, [game.current.program], fresh=True, records=records, lines=lines)
        store = RecordStore(records)
        assert store.known(workload, [game.current.program.hash])[game.current.program.hash].status == "ok"
    told = CliRunner().invoke(app, [*words, "cuda", "--line"])
    assert told.exit_code == 0 and told.output.split("\n")[: len(moves)] == moves
    file = tmp_path / "bench.json"
    words = ["bench", "relu", "--shape", "8x64", "--target", "cuda", "--record", "--rounds", "1"]
    shown = CliRunner().invoke(app, [*words, "--json", str(file)])
    assert shown.exit_code == 0, shown.output
    (report,) = json.loads(file.read_text())["reports"]
    assert "record" in [e["entry"] for e in report["entries"]] and report["reference"] != "record"


def test_the_command_line_tunes_on_the_device(timed_gpu, monkeypatch, tmp_path):
    from agents import cli  # noqa: F401 (adds its commands)

    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    words = ["tune", "relu", "--shape", "8x64", "--agent", "sampling-lines", "--budget", "2", "--target"]
    told = CliRunner().invoke(app, [*words, "cuda", "--json"])
    assert told.exit_code == 0, told.output
    with Records() as records:
        start = kernels.get("relu").program((8, 64))
        assert records.best(start.hash, "cuda", timed_gpu.origin.fingerprint) is not None
    refused = CliRunner().invoke(app, [*words, "hip"])
    assert refused.exit_code == 1 and "let a pass play" in " ".join(refused.output.split())


@pytest.mark.soak
def test_agents_learn_and_are_compared_on_the_device(timed_gpu, monkeypatch, tmp_path):
    from agents import cli  # noqa: F401 (adds its commands)

    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    words = ["--shape", "8x64", "--budget", "3", "--target"]
    learned = ["train", "relu", "--encoder", "bag", "--json", *words]
    told = CliRunner().invoke(app, [*learned, "cuda"])
    assert told.exit_code == 0, told.output
    run = json.loads(told.output.splitlines()[0])
    assert (run["event"], run["machine"]) == ("run", timed_gpu.origin.fingerprint)
    compared = ["compare", "relu", "--agents", "random-lines", "--seeds", "1", "--out", str(tmp_path), *words]
    told = CliRunner().invoke(app, [*compared, "cuda"])
    assert told.exit_code == 0 and json.loads((tmp_path / "compare.json").read_text()), told.output
    for command in (learned, compared):
        refused = CliRunner().invoke(app, [*command, "hip"])
        assert refused.exit_code == 1 and "let a pass play" in " ".join(refused.output.split())


def test_without_a_driver_it_says_so(monkeypatch):
    def no_driver(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    with pytest.raises(CudaError, match="no NVIDIA driver"):
        Device()
    with pytest.raises(NoGpu, match="no NVIDIA driver"):
        GpuMeasurer()


def test_errors_of_rows_as_on_the_cpu():
    inf, nan = np.inf, np.nan
    want = np.array([[1.0, 2.0], [inf, 1.0], [nan, 3.0], [4.0, 4.0]])
    got = np.array([[1.5, 2.0], [inf, 1.0], [0.0, 3.0], [nan, 4.0]])
    error, scale = row_errors(got, want, 2)
    assert list(error) == [0.5, 0, inf, inf] and list(scale) == [2, 1, 3, 4]


def test_launches_that_the_device_would_refuse():
    limits = LaunchLimits(threads=1024, shared_bytes=49152, blocks=2**31 - 1)
    launch = Launch("k", 8, 512, (), (), True, (0,))
    assert limits.fault(launch, 1024, 49152) == ""
    assert "device takes 256" in limits.fault(launch, 256, 0)
    assert "shared memory" in limits.fault(launch, 1024, 50000)
    assert "blocks" in limits.fault(replace(launch, blocks=2**31), 1024, 0)


class FakeDriver:
    """libcuda's names: allocations count up, a module has one function of 255 registers."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name):
        def call(*arguments):
            self.called.append(name)
            value = getattr(arguments[0], "_obj", None) if arguments else None
            if name == "cuDeviceGetCount":
                value.value = 1
            elif name == "cuDeviceGetAttribute":
                value.value = {10: 32, 1: 1024, 5: 2**31 - 1, 8: 49152, 75: 9, 76: 0}.get(arguments[1], 1)
            elif name == "cuFuncGetAttribute":
                value.value = 256 if arguments[1] == 0 else 0
            elif name == "cuMemAlloc_v2":
                value.value = 256 * len(self.called)
            elif name == "cuLaunchKernel":
                return 700
            elif name == "cuGetErrorName":
                arguments[1]._obj.value = b"CUDA_ERROR_ILLEGAL_ADDRESS"
            elif name == "cuGetErrorString":
                arguments[1]._obj.value = b"an illegal memory access was encountered"
            return 0

        return call


def test_the_driver_is_called_and_its_faults_are_sentences(monkeypatch):
    from dojo_core.targets.gpu.codegen import generate

    driver = FakeDriver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    code = generate(mapped_relu().current.program, "reassoc")
    with Device() as device:
        assert device.architecture == "sm_90"
        arrays = [device.allocate(2048) for _ in code.parameters]
        loaded = device.load(code, b"cubin", arrays, 0)
        with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS to cuLaunchKernel"):
            loaded.run()
        device.events(2)
    assert driver.called.count("cuMemFree_v2") == 2 and driver.called.count("cuEventDestroy_v2") == 2
    assert driver.called[-1] == "cuDevicePrimaryCtxRelease_v2"


@pytest.mark.thorough  # test_the_command_line_tunes_on_the_device has one
def test_an_agent_tunes_on_the_device_unchanged(timed_gpu, monkeypatch, tmp_path):
    from agents.agent import Budget, Task, run
    from agents.players import AGENTS
    from agents.timing import MachineTiming, no_clock

    assert no_clock("cuda") == "" and "hip" in no_clock("hip")
    game = mapped_relu()
    with Records(tmp_path / "records.sqlite") as records:
        timing = MachineTiming(Measurer(records), "sampling-edges")
        events = list(run(Task(game), AGENTS["sampling-edges"], timing, Budget(3), seed=1))
        kept = records.best(game.start.hash, "cuda", timed_gpu.origin.fingerprint)
    assert events[-1].best is not None and events[-1].evaluation >= 3
    assert kept is not None and kept.player == "sampling-edges"
    monkeypatch.setattr(on_gpu, "_shared", lambda: "There is no NVIDIA driver here.")
    assert "no NVIDIA driver" in no_clock("cuda")


def test_the_bench_the_board_and_the_command_line_measure_on_the_device(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(on_gpu, "_shared", lambda: gpu)
    monkeypatch.setenv("DOJO_BENCH_PYTHON", "false")  # no PyTorch beside it
    told = tmp_path / "relu.json"
    words = ["bench", "relu", "--shape", "8x64", "--target", "cuda", "--against", "torch", "--rounds", "2"]
    page = tmp_path / "relu.html"
    shown = CliRunner().invoke(app, [*words, "--json", str(told), "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "a copy of as many bytes within the device" in page.read_text()
    (report,) = json.loads(told.read_text())["reports"]
    ours, torch = report["entries"]
    assert (ours["kind"], ours["verified"], len(ours["samples_ns"])) == ("ours", True, 2)
    assert torch["status"] == "failed" and report["cache"] == "cold" and report["limits"]["seconds"] > 0

    monkeypatch.setattr(Cuda, "feedback", lambda _, code: NoFeedback(f"of {code.kernels[0]}", True))
    game = mapped_relu()
    outcomes: dict[str, Outcome] = {}
    with Records(tmp_path / "records.sqlite") as records:
        bench = MeasurerBench(records)
        try:
            workload = Workload(game.start, "relu", game.policy, "cuda")
            bench.measure(workload, [game.current.program], True, outcomes.__setitem__, lambda: False)
        finally:
            bench.close()
    here = outcomes[game.current.program.hash]
    assert here.ok and here.message == "of kernel_relu_0" and backend("cuda").clock().timed
    assert not backend("hip").clock().timed

    saved = tmp_path / "relu.game"
    saved.write_text(game.to_text())
    shown = CliRunner().invoke(app, ["time", "relu", "--line", str(saved), "--json"])
    assert json.loads(shown.stdout)[0]["seconds"] > 0


@pytest.mark.thorough  # PyTorch starts; what a row of a bench is: test_bench.py, of a GPU: above
def test_a_bench_ends_in_time_and_tells_what_tensor_cores_may_do(gpu, monkeypatch):
    game = Game.new(kernels.get("matmul").program((16, 16, 16)), "matmul", "16x16x16", "cuda")
    torch = (sys.executable, "benchmarks/gpu/torch_stand_in.py")
    told = run_gpu_bench(gpu, game, [Entry("start", game.start)], rounds=2, torch=torch)
    rows = {e["entry"]: e for e in told["entries"]}
    assert {name: rows[name]["verified"] for name in ROWS} == {name: "tf32" not in name for name in ROWS}
    assert rows["library"]["details"].startswith("PyTorch 2") and "TF32" in told["remarks"][0]
    late = run_gpu_bench(gpu, game, [Entry("start", game.start)], rounds=2, torch=torch, until=0.0)
    assert late["rounds"] == 1 and late["entries"][0]["status"] == "ok"
    assert {e["message"] for e in late["entries"][1:]} == {"It was stopped before it ran."}


def test_a_bench_without_a_gpu_says_so(monkeypatch):
    monkeypatch.setattr(on_gpu, "_shared", lambda: "There is no NVIDIA driver here.")
    shown = CliRunner().invoke(app, ["bench", "relu", "--target", "cuda"])
    assert shown.exit_code == 1 and "no NVIDIA driver" in shown.output


def test_the_page_has_the_table_of_the_evidence():
    root = Path(__file__).parents[1]
    data = json.loads((root / "docs" / "bench" / "gpu_h200.json").read_text())
    page = (root / "docs" / "gpu.md").read_text()
    assert "\n".join(table(data)) in page
    assert f"rival {mean_of(data):.2f} of the best other" in page
