"""Play in a real browser: what a person does, on a softmax small enough to be quick."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.playing import (
    BOARD,
    MOVE,
    OFF,
    apply,
    expect,
    expect_entries,
    expect_here,
    open_kernel,
    play,
    rows,
    until_it_rests,
    wait_for_entries,
)
from tests.browser.wire import Wire


def test_select_filter_play_take_back_branch_and_reload(board: Any) -> None:
    page = board
    # one selection in all texts
    page.click(".line.op .instruction >> nth=1")
    expect(page.locator(".program .line.selected")).to_have_count(1)
    expect(page.locator(".code .line.selected")).not_to_have_count(0)
    every, listed = len(rows(page)), page.locator(".row[data-move]")
    page.click("[data-tab=selection]")
    expect(listed).not_to_have_count(every)
    assert 0 < listed.count() < every
    page.click("[data-tab=all]")
    expect(listed).to_have_count(every)

    page.keyboard.press("/")
    page.keyboard.type("join_scopes m")
    expect(listed).to_have_count(1)
    expect(listed).to_have_attribute("data-move", "join_scopes m@0")
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    # what was typed stays
    expect(page.locator("input[type=search]")).to_have_value("join_scopes m")
    page.click("[data-tab=changes]")
    expect(page.locator(".diff.minus")).not_to_have_count(0)
    page.click("[data-tab=text]")

    page.locator("input[type=search]").press("Escape")
    page.keyboard.press("u")
    page.wait_for_selector(".entry.here[data-id='0']")
    apply(page, "join_scopes d@0")
    page.wait_for_selector(".variation .entry.here")
    wait_for_entries(page, 3)

    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".entry.here[data-id='0']")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".entry.here[data-id='1']")
    page.keyboard.press("b")
    page.wait_for_selector(".entry.here[data-id='2']")

    expect(page).to_have_url(re.compile("g="))
    page.reload()
    page.wait_for_selector(".entry.here[data-id='2']")
    wait_for_entries(page, 3)


def test_measured_times_fill_the_table_and_rows_stay_in_place(start_screen: Any) -> None:
    page = start_screen
    open_kernel(page, "relu", "8x16", measured=True)
    page.select_option("select[aria-label='Order of the moves']", "gain")
    page.wait_for_selector(".row[data-state=known]", timeout=400_000)
    before = rows(page)
    page.locator(".moves").evaluate("list => { list.scrollTop = 60; }")
    page.wait_for_function(
        f"() => {BOARD}.querySelectorAll('.row[data-state=known]').length > 12",
        timeout=400_000,
    )
    assert rows(page) == before
    assert page.locator(".moves").evaluate("list => list.scrollTop") == 60
    page.click("button.lit >> text=Update order")
    assert rows(page) != before
    assert page.locator(".moves").evaluate("list => list.scrollTop") == 0
    # the order holds when the position comes back
    page.keyboard.press("m")
    expect(page.locator(".queue-text")).to_have_text(OFF)
    page.click("text=Update order")
    best = rows(page)[0]
    apply(page, best)
    wait_for_entries(page, 2)
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".entry.here[data-id='0']")
    page.wait_for_selector(f'.moves > :first-child[data-move="{best}"]')
    expect(page.locator("button.lit")).to_have_count(0)
    expect(page.locator(".metric-value").first).to_have_text(re.compile("[nµm]s"))


def test_a_double_click_plays_one_move(small_board: Any) -> None:
    page = small_board

    def second_click(place: str) -> None:
        page.locator(place).hover()
        page.mouse.down(click_count=2)
        page.mouse.up(click_count=2)

    def goes_on(*moves: str) -> None:
        """The last of them is played and the history has these, and no more."""
        apply(page, moves[-1])
        page.wait_for_selector(f".entry:has-text('{moves[-1]}')")
        expect_entries(page, "Start", *(f"{n}. {move}" for n, move in enumerate(moves, 1)))

    # slow: by the second click, the next position has brought another move under the pointer
    apply(page, MOVE)  # a click that looks again where rows have moved under the pointer
    wait_for_entries(page, 2)
    for part in (".apply", ".place"):
        second_click(f".row[data-move] {part} >> nth=0")
    expect(page.locator("[data-move][aria-selected=true]")).to_have_count(0)
    goes_on(MOVE, "unroll s@0")
    # at once: a burst of events leaves the browser before the answer comes
    page.wait_for_selector(".row[data-move]")  # drawn after the history
    first = rows(page)[0]
    page.locator(".row[data-move] .apply >> nth=0").evaluate(
        "b => { for (let i = 0; i < 10; i++) b.click(); }"
    )
    wait_for_entries(page, 4)
    page.wait_for_selector(".row[data-move]")
    goes_on(MOVE, "unroll s@0", first, rows(page)[0])


def test_two_tabs_are_two_players(common_server: Any) -> None:
    cookie = "dojo_browser=" + "2" * 32  # of one browser
    with Wire(common_server.port, Cookie=cookie) as one, Wire(common_server.port, Cookie=cookie) as other:
        for tab in (one, other):
            tab.event("start", kernel="reducemean", shape="8x16", policy="reassoc")
        one.event("play", move=MOVE)
        other.look()
        assert [len(tab.board["history"]["nodes"]) for tab in (one, other)] == [2, 1]
        assert one.board["game"]["id"] != other.board["game"]["id"]


def test_a_typed_move_or_recipe_is_played_and_a_wrong_one_is_kept(board: Any) -> None:
    board.keyboard.press("/")
    board.keyboard.type("tile m#1@1 8 2")
    expect(board.locator(".drawer")).to_contain_text("tile SCOPE SIZES")
    board.keyboard.press("Enter")
    expect_entries(board, "Start", "1. split_scope m#1@1 8", "2. split_scope m#1@2 2")
    typed = board.locator("input[type=search]")
    expect(typed).to_have_value("")
    typed.fill("tile m#1@1 3")
    typed.press("Enter")
    board.wait_for_selector(".typed-words .failure")
    expect(board.locator(".typed-words")).to_contain_text("3 does not cut")
    expect(typed).to_have_value("tile m#1@1 3")
    wait_for_entries(board, 3)
    typed.fill("vectorise everything")  # no command: what one of its words means
    expect(board.locator(".typed-words")).to_contain_text("vectorize_all")
    typed.fill("paralelize m@0")
    expect(board.locator(".typed-words")).to_contain_text("Did you mean")
    board.click(".typed-words >> text=parallelize m@0")
    expect(typed).to_have_value("parallelize m@0")
    typed.fill("frobnicate")
    expect(board.locator(".moves")).to_contain_text("? tells all moves and recipes")


def test_a_blocked_move_explains_itself_and_offers_its_enabler(board: Any) -> None:
    board.click("[data-tab=blocked]")
    board.click('.row.blocked[data-move="reuse_dims d 0"]')
    expect(board.locator(".drawer")).to_contain_text("clobbers")
    # its places are marked, and the enabler is looked at before it is played
    expect(board.locator(".line .involved")).not_to_have_count(0)
    board.wait_for_selector(".drawer .preview .minus")
    board.click(".drawer .enablers button.primary >> nth=0")
    wait_for_entries(board, 2)
    # and then the move itself is offered
    board.wait_for_selector(".drawer .news")
    expect(board.locator(".drawer")).to_contain_text("reuse_dims d 0 is legal now.")
    board.wait_for_selector(".drawer >> text=Legal, for: d holds no input or output")
    board.click(".drawer >> text=Play it")
    wait_for_entries(board, 3)


@pytest.mark.thorough  # in one: above; the steps: test_ways.py
def test_a_blocked_move_is_reached_in_two_steps(board: Any) -> None:
    board.click("[data-tab=blocked]")
    board.click('.row.blocked[data-move="reuse_dims d 1"]')
    expect(board.locator(".drawer .enablers")).to_contain_text("then join_scopes d@1")
    board.click(".drawer .enablers button.primary >> nth=0")
    wait_for_entries(board, 2)
    board.wait_for_selector(".drawer >> text=Next on the way to reuse_dims d 1.")
    board.click(".drawer >> text=Play it")
    wait_for_entries(board, 3)
    board.wait_for_selector(".drawer >> text=reuse_dims d 1 is legal now.")


UNWRITTEN = "4 y[{0}] = x[{0}]"  # half of its output


def test_a_wrong_text_is_shown_with_its_place_and_kept_and_so_is_one_that_leaves_output_unwritten(
    start_screen: Any,
) -> None:
    page = start_screen
    text = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = z[{0}]*2\n"
    page.fill("textarea", text)
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error")
    expect(page.locator(".own .text-error")).to_have_text(re.compile(r"z.*\^", re.DOTALL))
    expect(page.locator("textarea")).to_have_value(text)
    page.fill("textarea", text.replace("8 y[{0}] = z[{0}]*2", UNWRITTEN))
    page.click("text=Play this")
    page.wait_for_selector(f".own .text-error >> text={UNWRITTEN}")
    page.fill("textarea", text.replace("z[", "x["))
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")


def test_code_is_read_while_it_is_typed_and_played_at_the_sizes_that_are_chosen(start_screen: Any) -> None:
    page = start_screen
    page.fill("textarea", "def f(x):\n    return np.tanhh(x)")
    page.wait_for_selector(".own > .text-error >> text=Did you mean tanh?")
    page.click(".own > .text-error")
    area = f"{BOARD}.querySelector('textarea')"
    page.wait_for_function(
        f"() => {area}.value.slice({area}.selectionStart, {area}.selectionEnd) === 'tanhh'"
    )
    page.fill("textarea", "def f(x):\n    return np.tanh(x)")
    page.wait_for_selector(".own-told >> text=Read as Python: f of x[m, n].")
    expect(page.locator(".own > .text-error")).to_be_hidden()
    page.fill("[aria-label='Size m']", "8")
    page.fill("[aria-label='Size n']", "16")
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")
    shown = page.locator(".program, .columns").first
    expect(shown).to_contain_text("8 16 y[{0},{1}] = tanh(x[{0},{1}])", use_inner_text=True)


def test_a_title_is_never_markup(start_screen: Any) -> None:
    board = start_screen
    facts = "title: <img src=x onerror=alert(1)>\nkernel: -\nshape: -\ntarget: cpu\npolicy: reassoc\n"
    program = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"
    text = f"dojo game 1\n{facts}start:\n{program}moves:\n"
    board.fill("textarea", text)
    board.click("text=Play this")
    board.wait_for_selector(".row[data-move]")
    expect(board.locator("h1").last).to_have_text("<img src=x onerror=alert(1)>")
    expect(board.locator("img[src=x]")).to_have_count(0)


@pytest.mark.thorough  # test_saved_games.py; a text that is pasted: above
def test_a_saved_line_can_be_downloaded_and_played_again(small_board: Any) -> None:
    board = small_board
    play(board)
    board.click("text=Take away")
    with board.expect_download() as download:
        board.click("[aria-label='Download: The whole game']")
    text = Path(download.value.path()).read_text()
    assert text.startswith("dojo game 1") and MOVE in text
    board.keyboard.press("Escape")
    board.click("text=New game")
    board.wait_for_selector("textarea")
    board.fill("textarea", text)
    board.click("text=Play this")
    board.wait_for_selector(".entry.here[data-id='1']")  # in sight: those of the game before are only hidden
    wait_for_entries(board, 2)


def test_removing_a_move_asks_first(small_board: Any) -> None:
    board = small_board
    play(board)
    board.click("text=Remove this move")
    board.wait_for_selector("dialog[open]")
    board.click("dialog >> text=Cancel")
    board.wait_for_selector("dialog[open]", state="detached")
    until_it_rests(board)
    wait_for_entries(board, 2)


def test_a_recorded_line_is_stepped_through_without_measuring(start_screen: Any) -> None:
    board = start_screen
    board.locator("button.as-button", has_text="softmax 1x32000").first.click()
    board.wait_for_selector(".entry.here[data-id='0']")
    board.wait_for_selector(".queue-text >> text=off")
    for _ in range(4):  # quicker than the board is drawn: each of them counts
        board.keyboard.press("ArrowRight")
    board.wait_for_selector(".entry.here[data-id='4']")
    board.keyboard.down("ArrowRight")
    for _ in range(9):
        board.keyboard.down("ArrowRight")
    board.wait_for_selector(".entry.here[data-id='14']")
    until_it_rests(board)
    expect_here(board, 14)
