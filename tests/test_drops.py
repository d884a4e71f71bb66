"""Dropping any one move of any recorded line: later moves keep to what they named, or are told why not."""

import copy
from collections import Counter

import pytest

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves.references import references
from dojo_core.targets.registry import target
from tests import oracle
from tests.targets import ABLE
from tests.thorough import covering

LINES = {
    f"{on} {name}": line
    for on in ("cpu", "snitch", "cuda")
    for name, line in recorded_lines(on).items()
    if on != "cuda" or name in ("mul", "softmax")  # the longer ones take seconds each, of the same moves
}
# Together their lines, with what recipes in them come to, have all moves that any of the lines has.
EVERY_MOVE = (
    "cpu conv2d_pointwise_small", "cuda softmax", "snitch dot", "cpu batchnorm_channels", "cpu conv2d_dense",
    "cpu softmax", "cpu qmatmul", "cpu gqa", "cpu layernorm_pipelined", "cpu swiglu_avx2", "snitch matmul",
    "cuda mul",
)  # fmt: skip


@pytest.fixture(autouse=True)
def wide_cpu(monkeypatch):
    monkeypatch.setattr(
        "dojo_core.moves.legality.target_named", lambda name: ABLE if name == "cpu" else target(name)
    )


def played(name: str, shape: str | None = None, **settings: int) -> Game:
    line = LINES[name]
    kernel = kernels.get(line.kernel)
    start = target(line.target).start(kernel.program(kernel.shape(shape or line.shape)))
    game = Game.new(start, line.kernel, target=line.target, policy=line.policy)
    assert all(entry.applies for entry in line.play(game, settings).entries)
    return game


def without(game: Game, number: int):
    """(report, the game with the branch that lacks that move)"""
    other = copy.copy(game)
    other.positions = {p.id: copy.copy(p) for p in game.positions.values()}
    for position in other.positions.values():
        position.children = list(position.children)
    return other.drop(number, skip_invalid=True), other


# Each drop replays what follows: here two drops of the longest of a few lines (220 moves, many of them of one
# recipe), ten of a line of 20; make soak drops each move of each line, of the longest each third.
@pytest.mark.parametrize(
    ("name", "moves"),
    [
        *covering([(name, 200) for name in EVERY_MOVE], lambda row: row[0].split()[0]),
        *(pytest.param(name, 20_000, marks=pytest.mark.soak) for name in LINES),
    ],
)
def test_no_later_move_silently_moves_to_another_node(name, moves):
    game = played(name)
    original = game.main_line(0)
    outcomes: Counter[str] = Counter()
    drops = max(2, moves // len(original))
    for dropped in original[1 :: max(1, len(original) // drops)]:
        report, branch = without(game, dropped.id)
        later = [p for p in original if p.id > dropped.id]
        assert len(report.entries) == len(later)
        applied = iter(branch.line()[dropped.id :])
        for entry, before in zip(report.entries, later, strict=True):
            outcomes[entry.outcome] += 1
            assert entry.outcome in ("same", "readdressed", "place changed", "refused")
            if not entry.applies:
                assert len(entry.reason) > 10
                continue
            now = next(applied)
            assert str(now.move) == entry.new and (now.origin, now.references) == (
                before.origin,
                before.references,
            )
            # and these are what the move names where it was played now
            here = branch.context(now.parent, now.origin)
            assert references(here, now.move) == before.references
    assert outcomes["same"] and outcomes["place changed"] + outcomes["refused"]


@pytest.mark.parametrize("each", [9, pytest.param(3, marks=pytest.mark.soak)])
def test_what_is_left_computes_the_same(each):
    """A line with one move dropped is a line of legal moves: the oracle agrees, whatever move it was."""
    game = played("cpu softmax", "4x64", block=32)
    terms = oracle.Terms()
    wanted = oracle.run(game.start, "algebraic", terms).outputs
    for dropped in game.main_line(0)[1::each]:
        _, branch = without(game, dropped.id)
        seen = oracle.run(branch.current.program, "algebraic", terms)
        assert seen.fault is None and seen.outputs == wanted, dropped.move
