"""A small window, a telephone's or one at 200%: one pane at a time; what the board says of an open text."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import BOARD, TELEPHONE, expect, open_means, wait_for_entries
from tests.screens.looks import AUDIT, Window, findings
from tests.test_doors import DOUBT, LONG

ZOOMED = {"width": 640, "height": 400}  # 1280 by 800 at 200%
TOP = "document.querySelector('[data-testid=stMain]').scrollTop"
NAMES = f"[...{BOARD}.querySelectorAll('.row[data-move] .name')]"
EDGES = """buttons => buttons.map((button) => {
  const { left, right, top, bottom } = button.getBoundingClientRect();
  return [left, right, top, bottom];
})"""
CUT = f"{NAMES}.filter((name) => name.scrollWidth > name.clientWidth).length"


def test_one_pane_at_a_time_with_what_is_pressed_always_in_reach(tab: Any, server: Any) -> None:
    narrow = tab
    narrow.set_viewport_size(TELEPHONE)
    narrow.goto(server.url)
    narrow.wait_for_selector(".card")
    assert narrow.evaluate(AUDIT) == []
    narrow.set_viewport_size({"width": 390, "height": 560})  # less than the board's height
    open_means(narrow)  # whose card is farther down
    narrow.wait_for_function(f"() => {TOP} === 0")  # the board begins at its top all the same
    narrow.set_viewport_size(TELEPHONE)
    tabs = narrow.get_by_role("tablist", name="Panes").get_by_role("tab")
    expect(tabs).to_have_text(["Program", "Code", "Moves", "History", "Chart"])
    narrow.click(".row[data-move] >> nth=0")
    for size in (TELEPHONE, ZOOMED):
        narrow.set_viewport_size(size)
        for chosen in tabs.all():
            chosen.click()
            expect(narrow.locator(".pane:visible")).to_have_count(1)
            buttons = narrow.locator(".dock button:visible")
            expect(buttons).to_have_count(13)  # Apply, Hint, Take back, five ways through the line, the tabs
            boxes = buttons.evaluate_all(EDGES)
            assert all(left >= 0 and right <= size["width"] for left, right, _, _ in boxes)
            assert all(top >= 0 and bottom <= size["height"] for _, _, top, bottom in boxes)
    narrow.click(".dock >> text=Apply")
    wait_for_entries(narrow, 2)
    narrow.keyboard.press("/")  # what is asked for comes up
    narrow.locator(".moves-pane input").press("Escape")
    tabs.nth(2).press("ArrowLeft")
    expect(narrow.locator(".pane:visible")).to_have_attribute("aria-label", "Generated code")


@pytest.mark.thorough  # python -m tests.screens looks at all states, test_pages.py at all pages
def test_letters_of_any_size_are_read_whole(tab: Any, server: Any) -> None:
    narrow = tab
    narrow.set_viewport_size(TELEPHONE)
    narrow.goto(server.url)
    narrow.wait_for_selector(".card")
    open_means(narrow)
    narrow.get_by_role("tablist", name="Panes").get_by_role("tab").nth(4).click()
    # The smallest windows of each kind.
    assert findings(narrow, [Window(390, 844, 200), Window(1280, 1024, 400)], rest=50) == {}
    narrow.set_viewport_size(TELEPHONE)
    larger = narrow.get_by_label("Larger letters")
    while larger.is_enabled():
        larger.click()
        assert narrow.evaluate(CUT) == 0
    narrow.evaluate("localStorage.removeItem('dojo-layout')")  # the tests' tabs share what the browser keeps


@pytest.mark.thorough  # test_doors.py
def test_the_board_says_what_could_not_be_shown_of_a_text(start_screen: Any) -> None:
    page = start_screen
    page.fill("textarea", LONG)
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")
    expect(page.locator(".doubt")).to_have_text(DOUBT)
    page.click("text=New game")
    open_means(page)
    expect(page.locator(".doubt")).to_be_hidden()
