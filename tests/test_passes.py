"""The passes: they end, keep the meaning, and leave nothing of their kind to do."""

import pytest

from agents.passes import naive
from dojo_core import kernels, legal_moves
from dojo_core.game import Game

TINY = {"softmax": "4x8", "rmsnorm": "4x8", "matmul": "4x4x4"}


def play(kernel: str, shape: str) -> Game:
    found = kernels.get(kernel)
    game = Game.new(found.program(found.shape(shape)), kernel)
    for _ in naive(game):
        pass
    return game


def test_naive_softmax_is_one_nest_with_a_number_for_each_row():
    assert play("softmax", "4x8").current.program.text.splitlines()[3:] == [
        "x f32 [4, 8] heap",
        "y f32 [4, 8] heap",
        "m f32 [4:N] heap",
        "d f32 [4:N, 8:N] heap",
        "e f32 [4:N, 8] heap",
        "s f32 [4:N] heap",
        "4 m[{0}] = -inf",
        "| 8 m[{0}] max= x[{0},{1}]",
        "| 8 d[{0},{1}] = x[{0},{1}] - m[{0}]",
        "| | e[{0},{1}] = exp(d[{0},{1}])",
        "| s[{0}] = 0",
        "| 8 s[{0}] += e[{0},{1}]",
        "| 8 y[{0},{1}] = e[{0},{1}] / s[{0}]",
    ]


@pytest.mark.parametrize("kernel", TINY)
def test_naive_ends_where_nothing_of_its_kind_is_legal(kernel):
    program = play(kernel, TINY[kernel]).current.program
    assert not {m.name for m in legal_moves(program)} & {"join_scopes", "reuse_dims"}
