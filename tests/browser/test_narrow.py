"""A window as wide as a telephone: one column, nothing beside it; what the board says of an open text."""

from __future__ import annotations

import itertools
from typing import Any

from tests.browser.playing import BOARD, TELEPHONE, open_means, play
from tests.test_doors import DOUBT, LONG


def test_the_panes_stand_below_each_other_and_can_be_used(tab: Any, server: Any) -> None:
    narrow = tab
    narrow.set_viewport_size(TELEPHONE)
    narrow.goto(server.url)
    narrow.wait_for_selector(".card")
    open_means(narrow)
    panes = narrow.evaluate(
        f"[...{BOARD}.querySelectorAll('.pane')].map((e) => e.getBoundingClientRect())"
        ".map(({left, right, top, bottom}) => ({left, right, top, bottom}))"
    )
    assert len(panes) == 5
    assert all(pane["left"] >= 0 and pane["right"] <= TELEPHONE["width"] for pane in panes)
    panes.sort(key=lambda pane: pane["top"])
    assert all(upper["bottom"] <= lower["top"] for upper, lower in itertools.pairwise(panes))
    play(narrow)


def test_the_board_says_what_could_not_be_shown_of_a_text(start_screen: Any) -> None:
    page = start_screen
    page.fill("textarea", LONG)
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")
    assert page.inner_text(".doubt") == DOUBT
    page.click("text=New game")
    open_means(page)
    assert not page.locator(".doubt").is_visible()
