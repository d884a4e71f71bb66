"""A window as wide as a telephone: one column, nothing beside it; what the board says of an open text."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.browser.playing import BOARD, TELEPHONE, open_softmax
from tests.test_doors import DOUBT, LONG


@pytest.fixture
def narrow(page: Any) -> Any:
    page.set_viewport_size(TELEPHONE)
    return page


def test_the_panes_stand_below_each_other_and_can_be_used(narrow: Any) -> None:
    open_softmax(narrow, "8x16")
    panes = narrow.evaluate(
        f"[...{BOARD}.querySelectorAll('.pane')].map((e) => e.getBoundingClientRect())"
        ".map(({left, right, top, bottom}) => ({left, right, top, bottom}))"
    )
    assert len(panes) == 5
    assert all(pane["left"] >= 0 and pane["right"] <= TELEPHONE["width"] for pane in panes)
    panes.sort(key=lambda pane: pane["top"])
    assert all(upper["bottom"] <= lower["top"] for upper, lower in itertools.pairwise(panes))
    narrow.locator('.row[data-move="join_scopes m@0"] .apply').click()
    narrow.wait_for_function(f"{BOARD}.querySelectorAll('.entry').length === 2")


def test_the_board_says_what_could_not_be_shown_of_a_text(page: Any) -> None:
    page.fill("textarea", LONG)
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")
    assert page.inner_text(".doubt") == DOUBT
    page.click("text=New game")
    open_softmax(page, "8x16")
    assert not page.locator(".doubt").is_visible()


def test_the_share_dialogue_has_the_theme_of_the_page(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    open_softmax(page, "8x16")
    page.click("text=Share")
    page.wait_for_selector(".dojo-share")
    ground = "(e) => getComputedStyle(e).backgroundColor"
    assert page.eval_on_selector(".dojo-share", ground) == page.eval_on_selector(".stApp", ground)
