"""Speed of our encoder: the 300 successors of a position of some forty lines. Run: make benchmark."""

import pytest
import torch

from agents.perfllm.encoders import encoder
from dojo_core import apply, kernels, legal_moves
from dojo_core.game import Game
from dojo_core.line import recorded_lines

SUCCESSORS, LINES = 300, 40


def position(name):
    """The one of a recorded line whose text has nearest to LINES lines."""
    line = recorded_lines()[name]
    kernel = kernels.get(line.kernel)
    game = Game.new(kernel.program(kernel.shape(line.shape)), kernel.name, policy=line.policy)
    line.play(game)
    return min((p.program for p in game.line()), key=lambda p: abs(p.text.count("\n") - LINES))


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["batchnorm_channels", "batchnorm", "layernorm_long"])
def test_embedding_the_successors_of_a_position(benchmark, threads, name):
    program = position(name)
    assert abs(program.text.count("\n") - LINES) <= 4
    found = {p.hash: p for p in (apply(program, m) for m in legal_moves(program))}
    successors = list(found.values())[:SUCCESSORS]
    assert len(successors) == SUCCESSORS

    def setup():
        embed = encoder(cached=False)
        embed([program])  # where the agent stands
        return (embed, successors), {}

    benchmark.pedantic(lambda embed, programs: embed(programs), setup=setup, rounds=5, warmup_rounds=1)
