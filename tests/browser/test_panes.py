"""The panes: edges that move, one that fills the board, wrapped lines, larger letters, one tab stop each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import BOARD, expect, open_means, wait_for_entries

WIDTHS = f"[...{BOARD}.querySelectorAll('.columns > .pane')].map((e) => Math.round(e.offsetWidth))"
FOCUS = f"{BOARD}.activeElement"
FOCUSED = f"{FOCUS}?.closest('.separator, .pane')?.ariaLabel"


def wait_for_focus(board: Any, name: str) -> None:
    """Until what is called so has the focus."""
    board.wait_for_function(f"name => [{FOCUS}?.textContent, {FOCUS}?.ariaLabel].includes(name)", arg=name)


@pytest.mark.thorough  # by keys: below
def test_edges_are_moved_by_keys_and_by_pointer_and_stay_where_they_were_put(tab: Any, server: Any) -> None:
    page = tab
    page.goto(server.url)
    page.wait_for_selector(".card")
    open_means(page)
    program, code, moves = page.evaluate(WIDTHS)
    first, second = page.locator(".columns .separator").all()
    first.press("ArrowRight")
    second.press("End")
    expect(first).to_have_attribute("aria-valuenow", "33")
    expect(second).to_have_attribute("aria-valuenow", "88")
    box = second.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] - 96, box["y"] + 60, steps=2)
    page.mouse.up()
    expect(second).to_have_attribute("aria-valuenow", "80")
    wider, wider_code, narrower = page.evaluate(WIDTHS)
    assert (wider > program, wider_code > code, narrower < moves) == (True, True, True)
    first.click()  # without dragging: the next of three places, 12 to 68 per cent
    expect(first).to_have_attribute("aria-valuenow", "40")
    chosen = page.evaluate(WIDTHS)
    line = page.locator(".program .line.op").first
    height = line.bounding_box()["height"]
    page.keyboard.press("+")
    page.keyboard.press("w")
    page.reload()
    page.wait_for_selector(".row[data-move]")
    page.wait_for_function(f"chosen => String({WIDTHS}) === String(chosen)", arg=chosen)
    assert line.bounding_box()["height"] > height
    expect(line).to_have_css("white-space", "pre-wrap")


@pytest.mark.thorough  # by keys: below
def test_a_pane_fills_the_board_and_goes_back(small_board: Any) -> None:
    board = small_board
    board.locator(".code [aria-label^='Fill the board']").click()
    expect(board.locator(".pane:visible")).to_have_count(1)
    expect(board.locator(".pane.code")).to_be_visible()
    board.keyboard.press("Escape")
    expect(board.locator(".pane:visible")).to_have_count(5)
    board.get_by_role("listbox", name="Program text").focus()
    board.keyboard.press("f")
    assert board.locator(".program").bounding_box()["width"] > 1200
    board.keyboard.press("/")  # what is asked for comes up
    expect(board.locator(".moves-pane")).to_be_visible()
    board.locator("input[type=search]").press("Escape")
    board.keyboard.press("Escape")
    expect(board.locator(".separator:visible")).to_have_count(4)


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
    edge = board.locator(".columns .separator").first
    at = edge.get_attribute("aria-valuenow")
    edge.press("ArrowRight")
    expect(edge).not_to_have_attribute("aria-valuenow", at)
    edge.press("ArrowLeft")
    board.get_by_role("listbox", name="Program text").focus()
    board.keyboard.press("f")  # it fills the board
    expect(board.locator(".pane:visible")).to_have_count(1)
    board.keyboard.press("Escape")
    expect(board.locator(".pane:visible")).to_have_count(5)
    board.keyboard.press("Alt+ArrowUp")
    board.keyboard.press("ArrowLeft")
    wait_for_focus(board, "Wrap long lines")
    for _ in range(2):
        board.keyboard.press("ArrowLeft")
    wait_for_focus(board, "Changes")
    board.keyboard.press("Tab")
    board.keyboard.press("Shift+Tab")  # a pane is entered where it was left
    wait_for_focus(board, "Changes")
    # what has the focus goes away when it has done its work: the pane keeps the focus
    board.locator(".moves").focus()
    board.keyboard.press("ArrowDown")
    board.keyboard.press("Alt+ArrowDown")
    board.keyboard.press("ArrowRight")
    wait_for_focus(board, "Apply")
    board.keyboard.press("Enter")
    wait_for_entries(board, 2)
    board.wait_for_function(f"() => {BOARD}.activeElement?.matches('.moves')")
