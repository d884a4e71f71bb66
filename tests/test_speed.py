"""How many times as fast: rounds in turns, and what may be said of their ratios."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from dojo_core.measure.conditions import UNKNOWN, Conditions
from dojo_core.measure.confidence import few_ratios
from dojo_core.measure.records import Sample
from dojo_core.measure.speed import ROUNDS, Speed, apart, drift, in_turns
from dojo_core.measure.turns import GIVEN_UP, LEAST, take_turns
from tests.thorough import one_of


@pytest.mark.parametrize(
    ("speed", "verdict", "words"),
    [
        (Speed(1.23, 1.18, 1.27, 7), "faster", "▲ 1.23×"),
        (Speed(0.8, 0.75, 0.99, 7), "slower", "▼ 0.80×"),
        (Speed(1.01, 0.98, 1.02, 7), "equal", "≈ about equal"),
        (Speed(1.02, 1.01, 1.029, 7), "equal", "≈ about equal"),  # surely so little that nobody would play it
        (Speed(1.02, 1.01, 1.04, 7), "faster", "▲ 1.02×"),
        (Speed(1.2, 0.99, 1.4, 7), "unsure", "? not sure yet: 0.99 to 1.40×"),
        (Speed(1.2, 0.99, 1.4, 28, final=True), "undecided", "? cannot be told now: 0.99 to 1.40×"),
    ],
)
def test_an_arrow_stands_only_where_the_interval_leaves_out_one(
    speed: Speed, verdict: str, words: str
) -> None:
    assert (speed.verdict, str(speed)) == (verdict, words)


def test_of_nine_rounds_the_interval_is_their_range_and_of_more_it_leaves_out_what_is_far_off() -> None:
    ratios = [1.2, 1.21, 1.19, 1.2, 1.22, 1.18, 1.2, 1.2, 0.3]
    assert in_turns(ratios) == Speed(1.2, 0.3, 1.22, 9)
    twice = in_turns(ratios * 2)
    assert (twice.low, twice.high, twice.verdict) == (1.18, 1.21, "faster")


def test_few_rounds_say_something_only_where_they_agree() -> None:
    assert in_turns([2.0, 2.01]).verdict == "faster"
    assert in_turns([2.0, 2.4]).verdict == "unsure"
    assert in_turns([1.1, 1.12, 1.11]).verdict == "faster"
    assert in_turns([1.0, 1.0]).verdict == "equal"
    with pytest.raises(ValueError, match="Two to 8 ratios, not 1"):
        few_ratios([1.0])


@pytest.mark.parametrize("rounds", one_of(3, [2, 3, 5, 7, 14, 28]))
def test_equal_programs_are_seldom_called_anything_else(rounds: int) -> None:
    draw = random.Random(rounds)
    wrong = 0
    for _ in range(2000):
        ratios = [draw.lognormvariate(0, 0.2) for _ in range(rounds)]
        wrong += in_turns(ratios).decided
    assert wrong / 2000 < 0.015  # 0.64% by the level of the interval


def test_times_of_different_moments_are_told_apart_only_where_they_differ_by_more_than_moments_do() -> None:
    quiet, busy = Conditions(0.02), Conditions(0.6)
    assert drift(quiet, quiet) == 1.1 and drift(quiet, busy) == drift(UNKNOWN, quiet) == 4
    assert apart(1.05, 1.0, drift(quiet, quiet)).verdict == "unsure"
    assert apart(1.2, 1.0, drift(quiet, quiet)).verdict == "faster"
    assert apart(3.0, 1.0, drift(quiet, busy)).verdict == "unsure"
    assert apart(1.0, 5.0, drift(quiet, busy)).verdict == "slower"
    assert apart(1.01, 1.0, 1.0).verdict == "equal"  # cycles of a model
    assert apart(1.05, 1.0, 1.0).verdict == "faster"


class Clock:
    """Runs of programs whose times are given, by number, each slowed down by a factor of the round."""

    def __init__(self, times: Sequence[float], slow: Sequence[float] = (1.0,) * 100) -> None:
        self.times, self.slow = times, slow
        self.orders: list[list[int]] = []

    def __call__(self, order: Sequence[int]) -> list[Sample] | None:
        if len(self.orders) == len(self.slow):
            return None
        slow = self.slow[len(self.orders)]
        self.orders.append(list(order))
        return [Sample(1e9 * self.times[each] * slow) for each in order]


def test_a_round_that_is_slow_is_slow_for_all() -> None:
    clock = Clock([1e-3, 1e-3, 0.5e-3], [1, 5, 1, 3, 1, 1, 9])
    other, equal, faster = take_turns(clock, 2)
    assert equal.ratios == pytest.approx([1.0] * ROUNDS) and faster.ratios == pytest.approx([2.0] * ROUNDS)
    assert len(other.samples) == ROUNDS
    assert clock.orders[:2] == [[0, 1, 2], [2, 1, 0]]  # so that a drift favours neither


def test_what_is_surely_slower_after_two_rounds_gets_no_more() -> None:
    clock = Clock([1e-3, 1e-3, 3e-3])
    _, equal, slower = take_turns(clock, 2)
    assert len(slower.ratios) == GIVEN_UP and len(equal.ratios) == ROUNDS
    assert clock.orders[GIVEN_UP:] == [[0, 1], [1, 0]] * 2 + [[0, 1]]


def test_long_runs_have_fewer_rounds_and_what_ends_early_has_the_rounds_before() -> None:
    _, slow = take_turns(Clock([0.1, 0.09]), 1)
    assert len(slow.ratios) == LEAST
    _, cut = take_turns(Clock([1e-3, 1e-3], [1.0] * 4), 1)
    assert len(cut.ratios) == 4
    asked = iter([False, False, True])
    _, cancelled = take_turns(Clock([1e-3, 1e-3]), 1, cancelled=lambda: next(asked))
    assert len(cancelled.ratios) == 2
