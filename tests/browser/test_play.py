"""Play in a real browser: what a person does, on a softmax small enough to be quick."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.browser.playing import BOARD, apply, entries, here, open_softmax, rows, wait_for_entries


def test_select_filter_play_take_back_branch_and_reload(page: Any) -> None:
    open_softmax(page)
    # one selection in all texts
    page.click(".line.op .instruction >> nth=1")
    assert page.locator(".program .line.selected").count() == 1
    assert page.locator(".code .line.selected").count() >= 1
    page.click("[data-tab=selection]")
    chosen = page.locator(".row[data-move]").count()
    page.click("[data-tab=all]")
    assert 0 < chosen < page.locator(".row[data-move]").count()

    page.keyboard.press("/")
    page.keyboard.type("join_scopes m")
    assert rows(page)[0].startswith("join_scopes")
    assert page.locator(".row[data-move]").count() == 1
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    # what was typed stays
    assert page.input_value("input[type=search]") == "join_scopes m"
    page.click("[data-tab=changes]")
    assert page.locator(".diff.minus").count() >= 1
    page.click("[data-tab=text]")

    page.locator("input[type=search]").press("Escape")
    page.keyboard.press("u")
    page.wait_for_selector(".entry.here[data-id='0']")
    apply(page, "join_scopes d@0")
    page.wait_for_selector(".variation .entry.here")
    assert len(entries(page)) == 3

    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".entry.here[data-id='0']")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".entry.here[data-id='1']")
    page.keyboard.press("b")
    page.wait_for_selector(".entry.here[data-id='2']")

    game = page.url
    assert "g=" in game
    page.reload()
    page.wait_for_selector(".entry.here[data-id='2']")
    assert len(entries(page)) == 3


def test_measured_times_fill_the_table_and_rows_stay_in_place(page: Any) -> None:
    open_softmax(page, "96x64")
    page.select_option("select[aria-label='Order of the moves']", "gain")
    page.wait_for_selector(".row[data-state=known]", timeout=400_000)
    before = rows(page)
    page.locator(".moves").evaluate("list => { list.scrollTop = 120; }")
    page.wait_for_function(
        f"() => {BOARD}.querySelectorAll('.row[data-state=known]').length > 12",
        timeout=400_000,
    )
    assert rows(page) == before
    assert page.locator(".moves").evaluate("list => list.scrollTop") == 120
    page.click("button.lit >> text=Update order")
    assert rows(page) != before
    assert page.locator(".moves").evaluate("list => list.scrollTop") == 0
    # the order holds when the position comes back
    page.keyboard.press("m")
    page.wait_for_function(f"() => {BOARD}.querySelector('.queue-text').textContent.startsWith('Off')")
    page.click("text=Update order")
    best = rows(page)[0]
    apply(page, best)
    wait_for_entries(page, 2)
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".entry.here[data-id='0']")
    page.wait_for_selector(f'.moves > :first-child[data-move="{best}"]')
    assert page.locator("button.lit").count() == 0
    assert "ms" in page.inner_text(".metric-value >> nth=0") or "µs" in page.inner_text(
        ".metric-value >> nth=0"
    )


def test_a_double_click_plays_one_move(page: Any) -> None:
    open_softmax(page)
    page.locator('.row[data-move="join_scopes m@0"] .apply').dblclick()
    wait_for_entries(page, 2)
    time.sleep(1.5)
    assert len(entries(page)) == 2
    # and so does a burst of events that leaves the browser before the answer comes
    page.locator(".row[data-move] .apply >> nth=0").evaluate(
        "b => { for (let i = 0; i < 10; i++) b.click(); }"
    )
    wait_for_entries(page, 3)
    time.sleep(1.5)
    assert len(entries(page)) == 3


def test_two_tabs_are_two_players(page: Any, server: Any) -> None:
    other = page.context.new_page()
    other.goto(server.url)
    other.wait_for_selector(".card")
    open_softmax(page)
    open_softmax(other)
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    time.sleep(1)
    assert len(entries(other)) == 1
    assert page.url != other.url


def test_a_typed_move_or_recipe_is_played_and_a_wrong_one_is_kept(page: Any) -> None:
    open_softmax(page)
    page.keyboard.press("/")
    page.keyboard.type("tile m#1@1 8 2")
    assert "tile SCOPE SIZES" in page.locator(".drawer").inner_text()
    page.keyboard.press("Enter")
    wait_for_entries(page, 3)
    assert page.input_value("input[type=search]") == ""
    assert entries(page)[1:] == ["1. split_scope m#1@1 8", "2. split_scope m#1@2 2"]
    page.fill("input[type=search]", "tile m#1@1 3")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_selector(".notice.error")
    assert "3 does not cut" in page.locator(".notice").inner_text()
    assert page.input_value("input[type=search]") == "tile m#1@1 3"
    assert len(entries(page)) == 3


def test_typing_c_and_r_reaches_the_filter_and_not_streamlit(page: Any) -> None:
    open_softmax(page)
    page.keyboard.press("/")
    page.keyboard.type("crc")
    assert page.input_value("input[type=search]") == "crc"
    assert page.locator("[role=dialog]").count() == 0


def test_a_blocked_move_explains_itself_and_offers_its_enabler(page: Any) -> None:
    open_softmax(page)
    page.click("[data-tab=blocked]")
    page.click('.row.blocked[data-move="reuse_dims d 0"]')
    assert "clobbers" in page.inner_text(".drawer")
    # its places are marked, and the enabler is looked at before it is played
    assert page.locator(".line .involved").count() >= 1
    page.wait_for_selector(".drawer .preview .minus")
    page.click(".drawer .enablers button.primary >> nth=0")
    wait_for_entries(page, 2)
    # and then the move itself is offered
    page.wait_for_selector(".drawer .news")
    assert "reuse_dims d 0 is legal now." in page.inner_text(".drawer")
    page.wait_for_selector(".drawer >> text=Legal, for: d holds no input or output")
    page.click(".drawer >> text=Play it")
    wait_for_entries(page, 3)


def test_a_blocked_move_is_reached_in_two_steps(page: Any) -> None:
    open_softmax(page)
    page.click("[data-tab=blocked]")
    page.click('.row.blocked[data-move="reuse_dims d 1"]')
    assert "then join_scopes d@1" in page.inner_text(".drawer .enablers")
    page.click(".drawer .enablers button.primary >> nth=0")
    wait_for_entries(page, 2)
    page.wait_for_selector(".drawer >> text=Next on the way to reuse_dims d 1.")
    page.click(".drawer >> text=Play it")
    wait_for_entries(page, 3)
    page.wait_for_selector(".drawer >> text=reuse_dims d 1 is legal now.")


def test_a_wrong_text_is_shown_with_its_place_and_kept(page: Any) -> None:
    text = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = z[{0}]*2\n"
    page.fill("textarea", text)
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error")
    assert "z" in page.inner_text(".own .text-error") and "^" in page.inner_text(".own .text-error")
    assert page.input_value("textarea") == text
    page.fill("textarea", text.replace("z[", "x["))
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")


def test_a_text_that_leaves_its_output_unwritten_is_refused(page: Any) -> None:
    page.fill("textarea", "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n4 y[{0}] = x[{0}]\n")
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error")
    assert "4 y[{0}] = x[{0}]" in page.inner_text(".own .text-error")


def test_a_title_is_never_markup(page: Any) -> None:
    facts = "title: <img src=x onerror=alert(1)>\nkernel: -\nshape: -\ntarget: cpu\npolicy: reassoc\n"
    program = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"
    text = f"dojo game 1\n{facts}start:\n{program}moves:\n"
    page.fill("textarea", text)
    page.click("text=Play this")
    page.wait_for_selector(".row[data-move]")
    assert page.inner_text("h1 >> nth=-1") == "<img src=x onerror=alert(1)>"
    assert page.locator("img[src=x]").count() == 0


def test_a_saved_line_can_be_downloaded_and_played_again(page: Any) -> None:
    open_softmax(page)
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    with page.expect_download() as download:
        page.click("text=Save line")
    text = Path(download.value.path()).read_text()
    assert text.startswith("dojo game 1") and "join_scopes m@0" in text
    page.click("text=New game")
    page.wait_for_selector("textarea")
    page.fill("textarea", text)
    page.click("text=Play this")
    wait_for_entries(page, 2)


def test_removing_a_move_asks_first(page: Any) -> None:
    open_softmax(page)
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    page.click("text=Remove this move")
    page.wait_for_selector("dialog[open]")
    page.click("dialog >> text=Cancel")
    page.wait_for_selector("dialog[open]", state="detached")
    assert len(entries(page)) == 2


def test_a_recorded_line_is_stepped_through_without_measuring(page: Any) -> None:
    page.locator("button.as-button", has_text="steps · rewrite formulas").first.click()
    page.wait_for_selector(".entry.here[data-id='0']")
    page.wait_for_selector(".queue-text >> text=off")
    for _ in range(4):  # quicker than the board is drawn: each of them counts
        page.keyboard.press("ArrowRight")
    page.wait_for_selector(".entry.here[data-id='4']")
    page.keyboard.down("ArrowRight")
    for _ in range(9):
        page.keyboard.down("ArrowRight")
    page.wait_for_selector(".entry.here[data-id='14']")
    time.sleep(1)
    assert here(page) == "14"
    page.keyboard.press("m")
    page.wait_for_function(f"() => !{BOARD}.querySelector('.queue-text').textContent.includes('off')")
