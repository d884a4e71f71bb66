"""Snitch from the command line and in the app: cycles on a model, and never seconds."""

import json

import pytest
from typer.testing import CliRunner

from dojo_core import apply, kernels
from dojo_core.cli import app
from dojo_core.measure.records import Records
from dojo_core.service.analysis import Analysis
from dojo_core.service.feed import now
from dojo_core.service.games import begun
from dojo_core.service.players import Player
from dojo_core.service.queue import Outcome
from dojo_core.service.wiring import KernelLibrary, MeasurerBench, RecordStore, assemble


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
        (("time", "softmax", "--shape", "4x8"), "refused: The FPU of Snitch has no exp"),
        (("time", "relu"), "the memory of a Snitch cluster holds 131,072: choose a smaller shape"),
    ],
)
def test_what_cannot_run_says_so(words, told):
    assert told in said(*words, code=1)


def test_why_tells_what_would_enable_it():
    result = CliRunner().invoke(app, ["why", "relu", "frep y@1", "--shape", "4x64", "--target", "snitch"])
    assert "only a stream reaches it" in " ".join(result.output.split()) and "ssr y@0" in result.output


def test_the_app_tells_cycles_and_no_seconds(tmp_path):
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
        assert RecordStore(records).known(workload, list(told)) == {}
    here: Outcome = told[program.hash]
    assert here.status == "verified" and "cycles on a calibrated model" in here.message
    assert told[after.hash].status == "verified" and "275 cycles" in told[after.hash].message
    assert now(Player("p"), here, False, False) == {"state": "verified, no time", "about": here.message}
    analysis = Analysis(program, "snitch", "reassoc")
    assert any("kernel_relu:" in text for text, _ in analysis.code_view["lines"])
    assert "assembly already" in assemble(analysis)["error"]


def test_the_app_refuses_what_snitch_cannot_run():
    with pytest.raises(ValueError, match="choose a smaller shape"):
        begun(kernels.get("relu").program((4096, 4096)), "relu", "4096x4096", "snitch", "reassoc")
