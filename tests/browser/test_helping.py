"""What helps a player along: the first minute, hints, the tree, lists by keyboard, a GPU board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.playing import BOARD, apply, expect, wait_for_entries

# Rows lie one after the other in memory, so that going along the columns costs several times as much as
# along the rows: some single move is faster by far, however busy the machine is.
BY_COLUMNS = """kernel columns
in x
out y
x f32 [512, 1024] heap
t f32 [512, 1024] heap
y f32 [512, 1024] heap
1024 512 t[{1},{0}] = x[{1},{0}]*2
| | y[{1},{0}] = t[{1},{0}]+1
"""


@pytest.mark.thorough  # its steps: test_play.py; what it counts: python -m tests.screens
def test_a_newcomer_improves_a_program_unblocks_a_move_and_takes_the_game_away_in_nine_clicks(
    start_screen: Any,
) -> None:
    page = start_screen
    clicks = 0

    def click(selector: str, **options: Any) -> None:
        nonlocal clicks
        page.click(selector, **options)
        clicks += 1

    page.fill("[aria-label='Find a kernel']", "log_softmax")
    expect(page.locator(".card.kernel:visible strong")).to_have_text(["log_softmax"])
    page.fill("[aria-label='Find a kernel']", "")
    page.fill("textarea", BY_COLUMNS)
    click("text=Play this")
    page.wait_for_selector(".row[data-move]")
    page.keyboard.press("m")
    page.wait_for_selector(".drawer >> text=Your first move.")
    # it is offered as soon as something is surely faster, which takes more rounds on a busy machine
    click(".drawer .found button", timeout=400_000)
    click(".drawer button.primary")
    wait_for_entries(page, 2)
    page.wait_for_selector(".chip")
    # the limit of the machine follows, as a number and as a line in the chart
    page.wait_for_selector(".metric-name >> text=Of the roofline")
    page.wait_for_selector(".chart .roofline", state="attached")
    expect(page.locator(".metric-rate .metric-value")).to_contain_text("%")
    # a move that is refused tells which one would unblock it, and stands ready once that is played
    click("[data-tab=blocked]")
    click(".row.blocked[data-move='set_location t stack']")
    click(".drawer .enabler button.primary")
    wait_for_entries(page, 3)
    click(".drawer >> text=Play it")
    wait_for_entries(page, 4)
    with page.expect_download() as saved:
        click("text=Take away")
        click("[aria-label='Download: The whole game']")
    assert "set_location t stack" in Path(saved.value.path()).read_text()
    assert clicks == 9
    page.keyboard.press("Escape")


def test_h_tells_the_kind_then_the_place_then_the_move_and_enter_like_apply_plays_it(board: Any) -> None:
    board.keyboard.press("h")  # unmeasured: a pass is asked
    board.wait_for_selector(".drawer >> text=Hint 1 of 3")
    expect(board.locator(".drawer")).not_to_contain_text("Nothing measured here is faster")
    expect(board.locator(".line .involved")).to_have_count(0)
    board.keyboard.press("h")
    board.wait_for_selector(".drawer >> text=Hint 2 of 3")
    expect(board.locator(".line .involved")).not_to_have_count(0)
    board.click("[data-tab=tree]")
    expect(board.locator(".tree .involved")).not_to_have_count(0)
    board.keyboard.press("h")
    board.click(".drawer >> text=Apply")
    wait_for_entries(board, 2)


@pytest.mark.thorough  # one selection in all texts: test_play.py
def test_the_tree_selects_what_the_texts_select(board: Any) -> None:
    board.click("[data-tab=tree]")
    expect(board.locator(".tree .leaf")).to_have_count(7)
    board.click(".tree .scope >> nth=0")
    expect(board.locator(".tree .selected")).to_have_count(4)  # a scope, its reduction's, and two operations
    expect(board.locator(".code .line.selected").nth(1)).to_be_attached()
    board.click("[data-tab=text]")
    expect(board.locator(".line .slot.selected")).not_to_have_count(0)


def test_lists_by_keyboard_tell_a_screen_reader_which_row_is_chosen(small_board: Any) -> None:
    board = small_board
    board.keyboard.press("ArrowDown")
    board.keyboard.press("ArrowDown")
    expect(board.locator(".moves")).to_have_attribute("aria-activedescendant", "move-1")
    expect(board.locator("#move-1")).to_have_attribute("aria-selected", "true")
    board.keyboard.press("Enter")
    wait_for_entries(board, 2)
    # up and down lead from move to move in the history, where that is the list
    board.locator(".history").focus()
    board.keyboard.press("ArrowUp")
    board.wait_for_selector(".entry.here[data-id='0']")
    board.keyboard.press("ArrowDown")
    board.wait_for_selector(".entry.here[data-id='1']")


@pytest.mark.soak
def test_a_game_for_a_gpu_shows_its_code_and_what_the_emulator_found(page: Any) -> None:
    page.select_option("select[aria-label=Target]", "cuda")
    page.fill("[data-kernel=relu] input", "4x32")
    page.click("[data-kernel=relu] button")
    page.wait_for_selector(".code >> text=__global__")
    page.keyboard.press("m")
    expect(page.locator("[data-tab=c]")).to_have_text("CUDA")
    page.wait_for_function(
        f"() => {BOARD}.querySelector('.code .note').textContent.startsWith('Verified in the emulator.')"
    )
    page.wait_for_selector(".metric-value >> text=verified, no time")
    expect(page.locator(".metric-gain")).to_be_hidden()
    # a move that was a candidate without a time is verified once it has been played
    apply(page, "map_grid y@0")
    wait_for_entries(page, 2)
    page.wait_for_selector(".metric-value >> text=verified, no time")
