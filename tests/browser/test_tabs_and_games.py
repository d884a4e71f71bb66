"""The games one has, the browser's history, other tabs, and what is said to whom."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.conftest import Server
from tests.browser.playing import BOARD, MOVE, expect, open_means, play, until_it_rests, wait_for_entries
from tests.browser.wire import Wire


@pytest.mark.thorough  # test_saved_games.py
def test_what_is_deleted_comes_back_with_undo(small_board: Any) -> None:
    board = small_board
    play(board)
    board.click("text=Delete from here")
    wait_for_entries(board, 1)
    board.wait_for_selector(".notice >> text=Deleted join_scopes s@0.")
    board.click(".notice >> text=Undo")
    wait_for_entries(board, 2)
    board.wait_for_selector(".entry.here[data-id='1']")


def test_back_and_forward_lead_to_the_start_screen_and_to_the_game(start_screen: Any) -> None:
    page = start_screen
    start = page.url
    open_means(page)
    game = page.url
    play(page)
    expect(page).to_have_url(game)
    assert game != start
    page.go_back()
    page.wait_for_selector(".card.kernel")
    expect(page).to_have_url(start)
    page.go_forward()
    page.wait_for_selector(".entry.here[data-id='1']")
    expect(page).to_have_url(game)
    page.click("text=New game")
    page.wait_for_selector(".card.kernel")
    expect(page).to_have_url(start)
    page.go_back()
    page.wait_for_selector(".entry.here[data-id='1']")
    expect(page).to_have_url(game)


@pytest.mark.thorough  # test_service.py
def test_an_error_is_told_once_and_to_the_tab_that_caused_it(small_board: Any) -> None:
    board = small_board
    board.fill("input[type=search]", "tile s#1@1 3")
    board.locator("input[type=search]").press("Enter")
    board.wait_for_selector(".typed-words .failure >> text=does not cut")
    board.reload()
    board.wait_for_selector(".row[data-move]")
    until_it_rests(board)
    expect(board.locator(".notice")).to_be_hidden()
    expect(board.locator(".typed-words")).to_be_hidden()


@pytest.mark.thorough  # test_service.py
def test_another_tab_on_the_same_game_says_that_it_went_on(small_board: Any) -> None:
    page = small_board
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(".row[data-move]")
    play(page)
    until_it_rests(other)
    other.wait_for_selector(".notice >> text=went on in another tab")
    wait_for_entries(other, 2)
    # and each goes its own way
    other.click("text=New game")
    other.wait_for_selector(".card.kernel")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".entry.here[data-id='0']")


@pytest.mark.thorough  # test_saved_games.py; a field that is typed into: below
def test_all_games_with_moves_are_listed_renamed_and_deleted(
    start_screen: Any, common_server: Server
) -> None:
    page = start_screen
    (browser,) = [each["value"] for each in page.context.cookies(page.url) if each["name"] == "dojo_browser"]
    for shape, moves in ((8, 1), (32, 1), (72, 0)):  # one without a move is not listed
        with Wire(common_server.port, Cookie=f"dojo_browser={browser}") as wire:
            wire.event("start", kernel="reducemean", shape=f"9x{shape}", policy="reassoc")
            for _ in range(moves):
                wire.event("play", move=MOVE)
    open_means(page)
    page.go_back()
    page.wait_for_selector(".card.kernel")
    page.click("text=More…")
    listed = page.locator(".game-row")
    expect(listed.first).to_contain_text("1 move")
    expect(listed.first).to_contain_text(MOVE)
    before = listed.count()
    expect(listed.filter(has_text="9x72")).to_have_count(0)
    listed.first.get_by_text("Rename").click()
    page.keyboard.type("My softmax")
    page.keyboard.press("Enter")
    page.wait_for_selector(".game-row >> text=My softmax")
    page.click("[aria-label='Delete My softmax']")
    page.wait_for_selector(".game-row >> text=My softmax", state="detached")
    expect(listed).to_have_count(before - 1)
    page.click(".notice >> text=Undo")
    page.wait_for_selector(".game-row >> text=My softmax")
    page.click(".game-open >> text=My softmax")
    wait_for_entries(page, 2)
    expect(page.locator("h1").last).to_have_text("My softmax")


def test_a_game_that_comes_to_the_list_takes_no_field_from_who_types(
    start_screen: Any, common_server: Server
) -> None:
    page = start_screen
    page.click("textarea")
    (browser,) = [each["value"] for each in page.context.cookies(page.url) if each["name"] == "dojo_browser"]
    with Wire(common_server.port, Cookie=f"dojo_browser={browser}") as wire:
        wire.event("start", kernel="reducemean", shape="9x88", policy="reassoc")
        wire.event("play", move=MOVE)
    page.keyboard.type("mk,kn->m")
    page.wait_for_selector(".continue >> text=9x88")  # with the answer to what was typed
    page.keyboard.type("n")
    expect(page.locator("textarea")).to_have_value("mk,kn->mn")


def test_escape_and_the_slash_in_the_filter_whose_letters_are_no_keys_of_streamlit(small_board: Any) -> None:
    board = small_board
    board.click(f'.row[data-move="{MOVE}"]')
    board.wait_for_selector(".drawer.open")
    board.keyboard.press("/")
    board.keyboard.type("/split_scope")
    expect(board.locator("input[type=search]")).to_have_value("split_scope")
    expect(board.locator(".drawer.open")).to_have_count(0)  # its row is hidden
    board.keyboard.press("ArrowDown")
    board.keyboard.press("Escape")
    expect(board.locator("input[type=search]")).to_have_value("")
    board.keyboard.press("/")
    board.keyboard.type("crc")
    expect(board.locator("input[type=search]")).to_have_value("crc")
    expect(board.locator("[role=dialog]")).to_have_count(0)
    board.keyboard.press("Escape")


def test_a_selected_line_is_in_view_in_the_assembly(small_board: Any) -> None:
    board = small_board
    board.click(".line.op .instruction >> nth=2")
    board.click("[data-tab=asm]")
    board.wait_for_selector(".code .line.selected", timeout=400_000)
    board.wait_for_function(
        f"""() => {{ const pane = {BOARD}.querySelector('.pane.code');
        const b = pane.querySelector('.scroll').getBoundingClientRect();
        const l = pane.querySelector('.line.selected').getBoundingClientRect();
        return l.top >= b.top && l.bottom <= b.bottom; }}"""
    )


def test_help_explains_the_notation_and_the_moves(small_board: Any) -> None:
    board = small_board
    board.keyboard.press("?")
    board.click("dialog [data-tab=notation]")
    dialog = board.locator("dialog[open]")
    expect(dialog).to_contain_text("!prefetch", use_inner_text=True)
    board.click("dialog [data-tab=moves]")
    expect(dialog).to_contain_text("join_scopes SCOPE", use_inner_text=True)
    expect(dialog).not_to_contain_text("`", use_inner_text=True)
    board.keyboard.press("Escape")
    expect(board.locator(".row .name").first).to_have_attribute("title", re.compile("."))


def test_a_shape_that_is_none_is_told_at_its_card(start_screen: Any) -> None:
    page = start_screen
    page.fill("[data-kernel=softmax] input", "12")
    page.click("[data-kernel=softmax] button")
    page.wait_for_selector("[data-kernel=softmax] .text-error >> text=softmax takes 2 sizes")
    expect(page.locator(".notice")).not_to_contain_text("takes 2 sizes")
