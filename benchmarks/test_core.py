"""Speed of the core: moves listed and played. Run: make benchmark (the figure to read is the minimum)."""

import pytest

from dojo_core import apply, kernels, legal_moves
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves.examples import WIDE


def softmax():
    kernel = kernels.get("softmax")
    return kernel.program(kernel.shapes[0])


@pytest.fixture(scope="module")
def final():
    line = recorded_lines()["softmax"]
    game = Game.new(softmax(), policy=line.policy)
    line.play(game)
    return game.current.program


def test_legal_moves_of_the_softmax_start(benchmark):
    program = softmax()
    assert len(benchmark.pedantic(legal_moves, (program, WIDE), rounds=20, warmup_rounds=2)) > 100


def test_legal_moves_of_the_softmax_end(benchmark, final):
    found = benchmark.pedantic(legal_moves, (final, WIDE, "algebraic"), rounds=20, warmup_rounds=2)
    assert len(found) > 50


def test_playing_the_softmax_line(benchmark):
    line = recorded_lines()["softmax"]
    program = softmax()
    moves = [step.move for step in line.steps()]

    def play():
        here = program
        for move in moves:
            here = apply(here, move, WIDE, "algebraic")
        return here

    assert benchmark.pedantic(play, rounds=20, warmup_rounds=2).hash
