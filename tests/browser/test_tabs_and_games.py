"""The games one has, the browser's history, other tabs, and what is said to whom."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import Server
from tests.browser.playing import BOARD, MOVE, open_means, play, until_it_rests, wait_for_entries
from tests.browser.wire import Wire


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
    assert page.url == game != start
    page.go_back()
    page.wait_for_selector(".card.kernel")
    assert page.url == start
    page.go_forward()
    page.wait_for_selector(".entry.here[data-id='1']")
    assert page.url == game
    page.click("text=New game")
    page.wait_for_selector(".card.kernel")
    assert page.url == start
    page.go_back()
    page.wait_for_selector(".entry.here[data-id='1']")
    assert page.url == game


def test_an_error_is_told_once_and_to_the_tab_that_caused_it(small_board: Any) -> None:
    board = small_board
    board.fill("input[type=search]", "tile s#1@1 3")
    board.locator("input[type=search]").press("Enter")
    board.wait_for_selector(".typed-words .failure >> text=does not cut")
    board.reload()
    board.wait_for_selector(".row[data-move]")
    until_it_rests(board)
    assert not board.locator(".notice").is_visible() and not board.locator(".typed-words").is_visible()


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
    before = listed.count()
    assert not any("9x72" in words for words in listed.all_inner_texts())
    assert "1 move" in listed.first.inner_text() and MOVE in listed.first.inner_text()
    listed.first.get_by_text("Rename").click()
    page.keyboard.type("My softmax")
    page.keyboard.press("Enter")
    page.wait_for_selector(".game-row >> text=My softmax")
    page.click("[aria-label='Delete My softmax']")
    page.wait_for_selector(".game-row >> text=My softmax", state="detached")
    assert listed.count() == before - 1
    page.click(".notice >> text=Undo")
    page.wait_for_selector(".game-row >> text=My softmax")
    page.click(".game-open >> text=My softmax")
    wait_for_entries(page, 2)
    assert page.inner_text("h1 >> nth=-1") == "My softmax"


def test_escape_and_the_slash_in_the_filter(small_board: Any) -> None:
    board = small_board
    board.click(f'.row[data-move="{MOVE}"]')
    board.wait_for_selector(".drawer.open")
    board.keyboard.press("/")
    board.keyboard.type("/split_scope")
    assert board.input_value("input[type=search]") == "split_scope"
    assert board.locator(".drawer.open").count() == 0  # its row is hidden
    board.keyboard.press("ArrowDown")
    board.keyboard.press("Escape")
    assert board.input_value("input[type=search]") == ""


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
    assert "!prefetch" in board.inner_text("dialog")
    board.click("dialog [data-tab=moves]")
    assert "join_scopes SCOPE" in board.inner_text("dialog") and "`" not in board.inner_text("dialog")
    board.keyboard.press("Escape")
    assert board.locator(".row .name >> nth=0").get_attribute("title")


def test_a_shape_that_is_none_is_told_at_its_card(start_screen: Any) -> None:
    page = start_screen
    page.fill("[data-kernel=softmax] input", "12")
    page.click("[data-kernel=softmax] button")
    page.wait_for_selector("[data-kernel=softmax] .text-error >> text=softmax takes 2 sizes")
    assert "takes 2 sizes" not in page.locator(".notice").inner_text()
