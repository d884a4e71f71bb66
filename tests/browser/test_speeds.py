"""How fast moves are, as a player reads it: a sign and a colour only where the rounds are sure, the machine's
state, and the start's time that speed-ups stand on. The numbers come as the feed would bring them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.playing import expect, open_means, play, until_it_rests
from tests.browser.test_failures import choose, feed

# [verdict, value, low, high, rounds]: what stands in the row, what in its tooltip and its drawer.
ROWS = {
    "faster": ([1.42, 1.36, 1.49, 12], "▲ 1.42×", "between 1.36× and 1.49×, by 12 rounds in turns"),
    "slower": ([0.031, 0.02, 0.04, 2], "▼ 0.031×", "between 0.02× and 0.04×, by 2 rounds in turns"),
    "equal": ([1.01, 0.98, 1.02, 5], "≈ equal", "about equal, between 0.98× and 1.02×"),
    "unsure": ([1.08, 0.93, 1.21, 5], "? 1.08×", "not sure yet, between 0.93× and 1.21×"),
    "undecided": ([0.9, 0.2, 4.0, 26], "? 0.90×", "cannot be told now, by 26 rounds"),
}
QUIET = "{taken: Date.now() / 1000, busy: false, machine: 'machine idle'}"
BUSY = (
    "{taken: Date.now() / 1000, busy: true, machine: 'machine busy: other processes took 60% of the cores'}"
)


def test_a_row_has_a_colour_only_where_its_interval_leaves_out_one(small_board: Any) -> None:
    choose(small_board)
    for verdict, (speed, row, told) in ROWS.items():
        feed(small_board, f"feed.results[0] = [0.001, 0.0011, '{verdict}', ...{speed}]")
        value = small_board.locator("#move-0 .value")
        expect(value).to_have_text(row)
        expect(value).to_have_attribute("title", re.compile(re.escape(told)))
        for colour in ("faster", "slower"):
            seen = expect(value)
            (seen.to_contain_class if colour == verdict else seen.not_to_contain_class)(colour)
        expect(small_board.locator(".drawer")).to_contain_text(told)


@pytest.mark.thorough  # test_yardstick.py
def test_the_machine_s_state_stands_beside_the_time_and_busy_times_are_marked(small_board: Any) -> None:
    feed(small_board, "feed.machine = {busy: false, quiet: true, words: 'idle', share: 1}")
    expect(small_board.locator(".machine-now")).to_have_text("machine idle")
    feed(
        small_board,
        "feed.machine = {busy: true, quiet: false, share: 60, words: 'busy: other processes took 60% of the "
        "cores'};"
        f"Object.assign(feed.now, {{state: 'ok', seconds: 0.002, median: 0.003, spread: 0.5}}, {BUSY});"
        f"feed.times[0] = 0.002; feed.provenance[0] = {BUSY}",
    )
    expect(small_board.locator(".machine-now")).to_have_text("busy 60%")
    metric = small_board.locator(".metric-time")
    expect(metric).to_contain_text("taken busy")
    expect(metric).to_have_attribute("title", re.compile("other processes took 60% of the cores"))
    expect(small_board.locator(".entry small.taken-busy")).to_have_count(1)


@pytest.mark.thorough  # test_yardstick.py
def test_a_start_timed_again_is_offered_and_taken_only_when_pressed(start_screen: Any) -> None:
    page = start_screen
    open_means(page, measured=True)
    page.wait_for_function("() => window.dojoFeed && window.dojoFeed.start > 0")
    page.keyboard.press("m")
    page.wait_for_selector(".queue-text >> text=Off")
    play(page)
    until_it_rests(page)
    again = f"{{seconds: 0.052, ...{QUIET}}}"
    feed(page, f"feed.start = 0.177; feed.yardstick = {{...{BUSY}, again: {again}}}")
    expect(page.locator(".chart-pane .note-of")).to_have_text(re.compile("^against 177 ms, .*busy$"))
    button = page.locator(".chart-pane button", has_text="Use 52.0 ms")
    expect(button).to_have_attribute("title", re.compile("Speed-ups stand on 177 ms"))
    feed(page, f"feed.start = 0.052; feed.yardstick = {{...{QUIET}, again: null}}")
    expect(page.locator(".chart-pane button", has_text="Use")).to_be_hidden()
    expect(page.locator(".metric-gain .metric-detail")).to_have_text("start 52.0 ms")
