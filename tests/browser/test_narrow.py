"""A window as wide as a telephone: one column, nothing beside it; what the board says of an open text."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pages.shell import existing
from tests.browser.playing import BOARD, open_softmax
from tests.test_doors import DOUBT, LONG

WIDTH = 390
WIDER = """() => [...document.querySelectorAll('[data-testid=stMain], [data-testid=stMainBlockContainer]')]
  .filter((e) => e.scrollWidth > window.innerWidth).length"""


@pytest.fixture
def narrow(page: Any) -> Any:
    page.set_viewport_size({"width": WIDTH, "height": 844})
    return page


def test_no_page_is_wider_than_a_telephone(narrow: Any, server: Any) -> None:
    assert narrow.evaluate(WIDER) == 0, "the start screen"
    open_softmax(narrow, "8x16")
    search = narrow.evaluate("() => window.location.search")
    for entry in existing():
        narrow.goto(f"{server.url}/{'' if entry.name == 'play' else entry.name}{search}")
        narrow.wait_for_selector(".dojo-bar")
        narrow.wait_for_timeout(1500)
        assert narrow.evaluate(WIDER) == 0, entry.name
    narrow.goto(f"{server.url}/learn{search}")
    narrow.click("text=Begin with the first lesson")
    narrow.wait_for_selector(".board.embedded .row[data-move]")
    assert narrow.evaluate(WIDER) == 0, "a lesson's step"


def test_the_panes_stand_below_each_other_and_can_be_used(narrow: Any) -> None:
    open_softmax(narrow, "8x16")
    panes = narrow.evaluate(
        f"[...{BOARD}.querySelectorAll('.pane')].map((e) => e.getBoundingClientRect())"
        ".map(({left, right, top, bottom}) => ({left, right, top, bottom}))"
    )
    assert len(panes) == 5
    assert all(pane["left"] >= 0 and pane["right"] <= WIDTH for pane in panes)
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
