"""The recorded lines for Snitch: each replays to its golden end, is right, and comes near the peak."""

import pytest

from agents.passes import play_pass
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import walk
from dojo_core.targets.snitch.simulate import judge
from tests.compiled import random_inputs
from tests.goldens import FOLDER
from tests.targets import SNITCH

LINES = recorded_lines("snitch")
PEAK = {"add": 0.98, "relu": 0.98, "dot": 0.87, "sum": 0.87, "gemv": 0.95, "matmul": 0.88}


def played(name: str, shape: str = "", **settings: int) -> Game:
    line, kernel = LINES[name], kernels.get(name)
    shape = shape or line.shape
    start = SNITCH.start(kernel.program(kernel.shape(shape)))
    game = Game.new(start, name, shape, line.target, line.policy)
    report = line.play(game, settings)
    assert [(e.move, e.outcome, e.reason) for e in report.entries if e.outcome != "same"] == []
    return game


@pytest.mark.parametrize("name", LINES)
def test_each_line_replays_to_its_golden_end(golden, name):
    program = played(name).current.program
    provenances = [node.provenance for node, _, _ in walk(program.body)]
    assert len(set(provenances)) == len(provenances), "every node is known by its provenance"
    golden(FOLDER / "snitch" / f"{name}.txt", program.text)


@pytest.mark.parametrize("name", LINES)
def test_each_end_is_right_and_near_the_peak(name):
    game = played(name)
    verdict = judge(game.current.program, game.start)
    assert verdict.status == "ok" and verdict.run is not None, verdict.message
    assert verdict.run.utilisation == pytest.approx(PEAK[name], abs=0.01)


def test_the_start_is_the_kernel_in_doubles():
    start = played("relu").start
    assert {b.dtype for b in start.buffers} == {"f64"}
    inputs = random_inputs(start)
    reference = kernels.get("relu").reference(inputs, (16, 64))
    assert (interpret(start, inputs)["y"] == reference["y"]).all()


def test_each_step_of_the_sum_gains_what_the_paper_says():
    """Scalar, streams, the hardware loop, then four sums: 24% of the peak becomes 87%."""
    cycles: dict[int, tuple[int, float]] = {}
    for sums in (1, 2, 4):
        game = played("dot", sums=sums) if sums > 1 else Game.new(played("dot").start, "dot", "256", "snitch")
        if sums == 1:
            for move in (
                "stage_write s root t",
                "set_location t register",
                "wrap t#1@0 1",
                "ssr t#1@0",
                "frep t#1@1",
            ):
                game.play(move)
        run = judge(game.current.program, game.start).run
        assert run is not None
        cycles[sums] = run.cycles, run.utilisation
    scalar = judge(played("dot").start).run
    assert scalar is not None and scalar.cycles > 1800
    assert cycles[1][1] == pytest.approx(0.244, abs=0.01)
    assert cycles[2][1] == pytest.approx(0.47, abs=0.02)
    assert cycles[4][1] == pytest.approx(0.87, abs=0.01)


HEURISTIC = {  # cycles of the start over those after the pass, at least
    "add 4x64": 8, "axpy 256": 9, "dot 256": 8, "sum 256": 7, "gemv 32x64": 9, "matmul 16x16x16": 9,
    "reducemean 16x64": 8, "conv 1x2x3x10x10x3": 9, "sumpool 1x2x8x10x3x1": 7, "transpose 16x16": 5,
    "relu_ffn 1x2x8x8": 6, "gemm 8x8x8": 7,
}  # fmt: skip


@pytest.mark.parametrize("name", HEURISTIC)
def test_the_heuristic_pass_streams_and_repeats(name):
    kernel, shape = name.split()
    found = kernels.get(kernel)
    start = SNITCH.start(found.program(found.shape(shape)))
    game = Game.new(start, kernel, shape, "snitch")
    play_pass(game, "heuristic")
    before, after = judge(start), judge(game.current.program, start)
    assert before.run is not None and after.run is not None
    assert (before.status, after.status) == ("ok", "ok"), after.message
    assert before.run.cycles / after.run.cycles > HEURISTIC[name]


PUBLISHED = {  # cycles of compiled code on this core, as simulated by others (docs/snitch.md)
    "matmul 1x20x5": 151, "matmul 1x200x5": 1056, "matmul 4x16x8": 668, "conv 1x1x1x6x6x3": 248,
    "maxpool 1x1x6x6x3x1": 224, "sumpool 1x1x6x6x3x1": 230,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_pass_is_near_what_was_published(name):
    kernel, shape = name.split()
    found = kernels.get(kernel)
    game = Game.new(SNITCH.start(found.program(found.shape(shape))), kernel, shape, "snitch")
    play_pass(game, "heuristic")
    verdict = judge(game.current.program, game.start)
    assert verdict.status == "ok" and verdict.run is not None, verdict.message
    assert verdict.run.cycles == pytest.approx(PUBLISHED[name], rel=0.15)
