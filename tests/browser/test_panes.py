"""The panes: edges that move, one that fills the board, wrapped lines, larger letters, one tab stop each."""

from __future__ import annotations

from typing import Any

from tests.browser.playing import BOARD, open_means, wait_for_entries

WIDTHS = f"[...{BOARD}.querySelectorAll('.columns > .pane')].map((e) => Math.round(e.offsetWidth))"
FOCUSED = f"{BOARD}.activeElement?.closest('.separator, .pane')?.ariaLabel"
NAME = f"() => {BOARD}.activeElement.textContent || {BOARD}.activeElement.ariaLabel"


def test_edges_are_moved_by_keys_and_by_pointer_and_stay_where_they_were_put(tab: Any, server: Any) -> None:
    page = tab
    page.goto(server.url)
    page.wait_for_selector(".card")
    open_means(page)
    program, code, moves = page.evaluate(WIDTHS)
    first, second = page.locator(".columns .separator").all()
    first.press("ArrowRight")
    second.press("End")
    assert (first.get_attribute("aria-valuenow"), second.get_attribute("aria-valuenow")) == ("33", "88")
    box = second.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] - 96, box["y"] + 60, steps=2)
    page.mouse.up()
    assert second.get_attribute("aria-valuenow") == "80"
    wider, wider_code, narrower = page.evaluate(WIDTHS)
    assert (wider > program, wider_code > code, narrower < moves) == (True, True, True)
    first.click()  # without dragging: the next of three places, 12 to 68 per cent
    assert first.get_attribute("aria-valuenow") == "40"
    chosen = page.evaluate(WIDTHS)
    line = page.locator(".program .line.op").first
    height = line.bounding_box()["height"]
    page.keyboard.press("+")
    page.keyboard.press("w")
    page.reload()
    page.wait_for_selector(".row[data-move]")
    assert page.evaluate(WIDTHS) == chosen
    assert line.bounding_box()["height"] > height
    assert line.evaluate("e => getComputedStyle(e).whiteSpace") == "pre-wrap"


def test_a_pane_fills_the_board_and_goes_back(small_board: Any) -> None:
    board = small_board
    board.locator(".code [aria-label^='Fill the board']").click()
    assert board.locator(".pane:visible").count() == 1
    assert board.locator(".pane.code").is_visible()
    board.keyboard.press("Escape")
    assert board.locator(".pane:visible").count() == 5
    board.get_by_role("listbox", name="Program text").focus()
    board.keyboard.press("f")
    assert board.locator(".program").bounding_box()["width"] > 1200
    board.keyboard.press("/")  # what is asked for comes up
    assert board.locator(".moves-pane").is_visible()
    board.locator("input[type=search]").press("Escape")
    board.keyboard.press("Escape")
    assert board.locator(".separator:visible").count() == 4


def test_each_pane_is_one_tab_stop_and_its_controls_are_reached_within(small_board: Any) -> None:
    board = small_board
    board.locator(".navs button").first.focus()
    stops: list[str] = []
    while "Speed-up over moves" not in stops:
        board.keyboard.press("Tab")
        at = board.evaluate(FOCUSED)
        stops += [at] * bool(at)
    assert stops == [
        "Program", "Edge of program and code", "Generated code", "Edge of code and moves", "Moves",
        "Edge of the program and the history", "History", "Edge of history and chart", "Speed-up over moves",
    ]  # fmt: skip
    board.get_by_role("listbox", name="Program text").focus()
    board.keyboard.press("Alt+ArrowUp")
    board.keyboard.press("ArrowLeft")
    assert board.evaluate(NAME) == "Wrap long lines"
    for _ in range(2):
        board.keyboard.press("ArrowLeft")
    assert board.evaluate(NAME) == "Changes"
    board.keyboard.press("Tab")
    board.keyboard.press("Shift+Tab")  # a pane is entered where it was left
    assert board.evaluate(NAME) == "Changes"
    # what has the focus goes away when it has done its work: the pane keeps the focus
    board.locator(".moves").focus()
    board.keyboard.press("ArrowDown")
    board.keyboard.press("Alt+ArrowDown")
    board.keyboard.press("ArrowRight")
    assert board.evaluate(NAME) == "Apply"
    board.keyboard.press("Enter")
    wait_for_entries(board, 2)
    board.wait_for_function(f"() => {BOARD}.activeElement?.matches('.moves')")
