"""What moves of a game were worth, with times that are given: by what was reachable afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from dojo_core import kernels, parse
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.conditions import Conditions
from dojo_core.school.review import Review
from dojo_core.school.verdicts import NOISE, Judge, Neighbour, Verdict
from dojo_core.service.queue import Outcome

PROGRAM = "kernel k\nin x\nout y\nx f32 [64] heap\ny f32 [64] heap\n64 y[{0}] = x[{0}]*2\n"
TWO = PROGRAM.replace("out y", "out y, t").replace("64 y", "t f32 [64] heap\n64 t[{0}] = x[{0}]+1\n64 y")
BUSY = Conditions(0.6)


def took(seconds: float, conditions: Conditions | None = None) -> Outcome:
    outcome = Outcome("ok", seconds, seconds)
    return outcome if conditions is None else replace(outcome, conditions=conditions)


def played(*moves: str, program: str = PROGRAM) -> Game:
    game = Game.new(parse(program))
    for move in moves:
        game.play(move)
    return game


def judged(
    game: Game, times: Sequence[float | Outcome | None], beside: dict[int, dict[str, float]] | None = None
) -> list[Verdict]:
    """Verdicts on the main line; ``times`` by position, ``beside`` what was measured there and not played."""
    outcomes = {n: t if isinstance(t, Outcome) else took(t) for n, t in enumerate(times) if t is not None}
    neighbours = {n: [Neighbour(m, took(t)) for m, t in moves.items()] for n, moves in (beside or {}).items()}
    judge, line = Judge(game, outcomes, neighbours), game.main_line(0)
    return [judge.verdict(at, after) for at, after in pairwise(line)]


def kinds(verdicts: list[Verdict]) -> list[str]:
    return [verdict.kind for verdict in verdicts]


SPLIT, VECTOR = "split_scope y@0 4", "vectorize y@1"


def test_a_slower_move_that_a_later_one_needed_is_an_investment() -> None:
    split, vector = judged(played(SPLIT, VECTOR), [1.0, 1.2, 0.4], {0: {"unroll y@0": 0.8}})
    assert (split.kind, vector.kind) == ("investment", "gain")
    assert split.words == (
        "20% slower here. vectorize y@1, the next move, needed it; the line ended 2.00× as fast as anything "
        "reachable without it."
    )
    assert vector.words == "3.00× as fast."


def test_a_move_that_the_later_ones_did_not_need_is_idle() -> None:
    game = played("split_scope t@0 4", SPLIT, VECTOR, program=TWO)
    idle, split, _ = judged(game, [1.0, 1.2, 1.2, 0.4])
    assert (idle.kind, split.kind) == ("idle", "investment")
    assert idle.words == (
        "20% slower here. The moves that followed apply without it as well: they were not built on it."
    )
    # once the line without it has been played and measured, that counts
    for move in (SPLIT, VECTOR):
        game.play(move, at=0 if move == SPLIT else game.cursor)
    idle, *_ = judged(game, [1.0, 1.2, 1.2, 0.4, 1.0, 0.41])
    assert idle.words == "20% slower here. Nothing was lost by it: as much could still be had afterwards."
    needed, *_ = judged(game, [1.0, 1.2, 1.2, 0.4, 1.0, 0.8])
    assert (
        needed.kind == "investment" and "also plays without it, but is 2.00× as fast with it" in needed.words
    )


def test_a_loss_is_what_was_not_to_be_had_afterwards() -> None:
    game = played(SPLIT, VECTOR)
    lost, vector = judged(game, [1.0, 1.2, 0.8], {0: {"split_scope y@0 16": 0.4}})
    assert (lost.kind, vector.kind) == ("loss", "gain")
    assert lost.words == "Another move here was 2.00× as fast as anything that was reached after this."
    # It is lost at the last move before which it could be had: what is measured later counts as reachable.
    first, last = judged(game, [1.0, 1.2, 0.8], {0: {"split_scope y@0 16": 0.4}, 1: {"unroll y@1": 0.41}})
    assert (first.kind, last.kind) == ("idle", "loss")
    # and so does what was played in a variation below it
    game.goto(1)
    game.play("unroll y@1")
    first, last = judged(game, [1.0, 1.2, 0.8, 0.4])
    assert (first.kind, last.kind) == ("investment", "loss")
    assert last.words == "The variation with unroll y@1 became 2.00× as fast as anything after this."


def test_playing_on_from_the_best_position_is_one_loss() -> None:
    verdicts = judged(played(SPLIT, "unroll y@1", "split_scope y@0 2"), [1.0, 0.5, 0.8, 0.79])
    assert kinds(verdicts) == ["gain", "loss", "noise"]
    assert "The position before it was 1.58× as fast" in verdicts[1].words


@pytest.mark.parametrize(
    ("before", "here", "kind"),
    [
        (took(1.0), took(1.0 + NOISE / 2), "noise"),
        (took(1.0), Outcome("ok", 1.3, 1.6), "noise"),  # its runs are all over the place
        (took(1.0), took(1.3), "loss"),
        (took(1.0), took(1.8, BUSY), "noise"),  # others ran beside it: it may be half as long
        (took(1.0, BUSY), took(1.8), "loss"),  # load only adds: that one is no longer than it says
        (took(1.0), took(2.5, BUSY), "loss"),
        (took(2.5), took(1.0, BUSY), "gain"),
        (took(1.0), None, "unknown"),
    ],
)
def test_what_two_times_may_differ_by_is_noise(before: Outcome, here: Outcome | None, kind: str) -> None:
    (verdict,) = judged(played(SPLIT), [before, here])
    assert verdict.kind == kind
    assert verdict.busy == any(each is not None and each.conditions.busy for each in (before, here))


# ---------------------------------------------------------------------- a game that was won

# Milliseconds of its start and after each move at 24576x512, on an AMD EPYC with AVX-512, 25 November 2026.
MILLISECONDS = (
    23.37, 23.25, 23.21, 23.65, 23.53, 23.35, 23.53, 23.12, 23.21, 22.88, 22.98, 23.47, 24.12, 24.73,
    23.51, 23.85, 23.77, 23.14, 18.67, 18.65, 14.56, 14.72, 12.35, 10.24, 10.16, 12.04, 11.48, 11.36,
    11.29, 11.41, 9.779, 10.98, 11.23, 7.612, 7.472, 5.218, 5.893, 6.185, 5.878, 6.566, 5.462, 5.645,
    5.27, 5.129, 5.26, 5.165, 5.129, 4.995, 4.957, 5.077, 3.594, 3.653, 3.58, 3.645, 3.666, 3.604,
    3.561, 2.519, 2.479, 2.441, 2.503, 2.426, 2.358, 2.472, 2.474, 2.485, 2.372, 2.529, 1.625, 1.439,
)  # fmt: skip
SOFTMAX = [each / 1e3 for each in MILLISECONDS]


@pytest.fixture(scope="module")
def softmax() -> Game:
    """The recorded line of 69 moves, on a small matrix; its times are those of a large one."""
    line = recorded_lines()["softmax"]
    kernel = kernels.get("softmax")
    game = Game.new(kernel.program(kernel.shape("96x128")), "softmax", "96x128", policy=line.policy)
    assert all(entry.applies for entry in line.play(game).entries) and len(game.positions) == len(SOFTMAX)
    return game


@pytest.mark.thorough  # each kind of verdict, on lines of a few moves: above
def test_a_game_that_became_16_times_as_fast_has_no_losses(softmax: Game) -> None:
    """At each move another one stands beside it that would gain 5% at once: a greedy player's choice."""
    beside = {n: {"unroll y@0": 0.95 * seconds} for n, seconds in enumerate(SOFTMAX[:-1])}
    one_ply = sum(SOFTMAX[n + 1] > 1.03 * 0.95 * SOFTMAX[n] for n in range(len(SOFTMAX) - 1))
    assert one_ply > 40  # so many moves would be blunders to who looks one move ahead
    verdicts = judged(softmax, SOFTMAX, beside)
    found = kinds(verdicts)
    assert found.count("loss") == 0
    assert found.count("investment") > 20 and found.count("gain") >= 8
    for verdict in verdicts:
        if verdict.kind == "investment":
            assert "needed it" in verdict.words or "also plays without it" in verdict.words
    # A move that was worth it at the end, and was not played, is lost at the last one.
    beside[len(SOFTMAX) - 2] = {"unroll y@0": 0.5 * SOFTMAX[-1]}
    verdicts = judged(softmax, SOFTMAX, beside)
    assert kinds(verdicts).count("loss") == 1 and verdicts[-1].kind == "loss"


# ---------------------------------------------------------------------- the review of a whole game


def test_a_review_looks_up_what_stood_beside_the_moves() -> None:
    game = played(SPLIT, VECTOR)
    times = {game.positions[n].program.hash: took(t) for n, t in enumerate((1.0, 1.2, 0.4))}
    times[played("split_scope y@0 16").current.program.hash] = took(0.9)

    def known(hashes: Sequence[str]) -> list[Outcome | None]:
        return [times.get(each) for each in hashes]

    review = Review(game, known).begin().wait(300)
    assert review.counts == {"investment": 1, "gain": 1} and review.compared == 2
    assert review.findings == [] and review.open is None
    # faster than all that was played, and never tried
    times[played(SPLIT, "unroll y@1").current.program.hash] = took(0.2)
    review = Review(game, known).begin().wait(300)
    assert review.open is not None and (review.open.position, review.open.move) == (1, "unroll y@1")
    (lost,) = review.findings
    assert (lost.ply, lost.better, lost.ratio) == (2, "unroll y@1", 2.0)
