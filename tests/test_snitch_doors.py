"""Snitch from the command line, in the app and for agents: cycles on a model, told as cycles."""

import json

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core import apply, kernels
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records
from dojo_core.service.analysis import Analysis
from dojo_core.service.feed import current
from dojo_core.service.games import begun
from dojo_core.service.players import Player
from dojo_core.service.queue import Outcome
from dojo_core.service.wiring import KernelLibrary, MeasurerBench, RecordStore, assemble
from dojo_core.targets.registry import backend
from dojo_core.targets.snitch.measurer import SnitchMeasurer


def said(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*words, "--target", "snitch"])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_the_time_of_a_line_is_cycles_and_a_share_of_the_peak():
    told = said("time", "relu", "--line", "relu")
    assert "1,043" in told and "98.2%" in told and "cycles on a calibrated model" in told
    (row,) = json.loads(
        CliRunner().invoke(app, ["time", "relu", "--line", "relu", "--target", "snitch", "--json"]).stdout
    )
    assert row["verified"] and row["run"]["cycles"] == 1043 and "seconds" not in row


def test_every_move_has_its_cycles():
    told = said("time", "relu", "--shape", "2x8", "--moves")
    assert "ssr y@1" in told and "this position" in told


def test_the_code_is_assembler_text():
    told = said("show", "relu", "--shape", "4x64", "--code")
    assert "kernel_relu:" in told and "fmax.d" in told
    assert "assembly already" in said("play", "relu", "--shape", "4x64", "--do", "ssr y@0", "--asm", code=1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("time", "qmatmul"), "u8: the Snitch generator has f64 and f32"),
        (("time", "relu"), "the model of a Snitch core holds 67,108,864: choose a smaller shape"),
    ],
)
def test_what_cannot_run_says_so(words, told):
    assert told in said(*words, code=1)


def test_why_tells_what_would_enable_it():
    result = CliRunner().invoke(app, ["why", "relu", "frep y@1", "--shape", "4x64", "--target", "snitch"])
    assert "only a stream reaches it" in " ".join(result.output.split()) and "ssr y@0" in result.output


def test_the_app_times_programs_by_the_cycles_of_the_model(tmp_path):
    game = begun(kernels.get("relu").program((4, 64)), "relu", "4x64", "snitch", "reassoc")
    game.play("ssr y@0")
    program, told = game.current.program, {}
    with Records(tmp_path / "records.sqlite") as records:
        bench = MeasurerBench(records)
        workload = KernelLibrary().workload(game.start, "relu", game.policy, "snitch")
        after = apply(program, "frep y@1", "snitch")
        try:
            bench.measure(workload, [program], True, told.__setitem__, lambda: False)
            bench.measure(workload, [after], False, told.__setitem__, lambda: False)
        finally:
            bench.close()
        kept = RecordStore(records).known(workload, [program.hash])[program.hash]
    here: Outcome = told[program.hash]
    assert (
        here.ok
        and here.message.endswith("% of the FPU's peak")
        and (kept.seconds, kept.message) == (here.seconds, here.message)
    )
    assert told[after.hash].ok and round(told[after.hash].seconds * 1e9) == 275
    assert current(Player("p"), "snitch", here, False, "")["seconds"] == here.seconds
    analysis = Analysis(program, "snitch", "reassoc")
    assert any("kernel_relu:" in text for text, _ in analysis.code_view["lines"])
    assert "assembly already" in assemble(analysis)["error"]


def test_the_model_is_a_machine_of_its_own_whose_times_never_vary(tmp_path):
    game = begun(kernels.get("relu").program((4, 64)), "relu", "4x64", "snitch", "reassoc")
    workload = Workload(game.start, "relu", game.policy, "snitch")
    start, after = game.start, apply(game.start, "ssr y@0", "snitch")
    with Records(tmp_path / "records.sqlite") as records:
        first = SnitchMeasurer(records).measure(workload, [start, after], player="me")
        again = SnitchMeasurer(records).measure(workload, [start, after])
        final = SnitchMeasurer().measure(workload, [after], Effort.FINAL, fresh=True)
        here = backend("snitch").clock().origin
        assert here is not None and here.fingerprint != this_machine().fingerprint
        assert records.best(start.hash, "snitch", here.fingerprint).player == "me"
    assert [m.known for m in (*first, *again)] == [False, False, True, True]
    assert [m.seconds for m in first] == [m.seconds for m in again] and final[0].seconds == first[1].seconds
    stopped = SnitchMeasurer().measure(workload, [start], cancelled=lambda: True)
    assert stopped[0].status == "cancelled"


def test_agents_play_for_the_model_and_say_what_its_times_are(monkeypatch, tmp_path):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    told = said("tune", "relu", "--shape", "4x64", "--agent", "random-edges", "--budget", "30", "--seed", "1")
    assert "cycles on a calibrated model" in told and "µs" in told
    kept = said("best", "relu", "--shape", "4x64")
    assert "random-edges" in kept


def test_the_app_refuses_what_snitch_cannot_run():
    with pytest.raises(ValueError, match="choose a smaller shape"):
        begun(kernels.get("relu").program((4096, 4096)), "relu", "4096x4096", "snitch", "reassoc")
