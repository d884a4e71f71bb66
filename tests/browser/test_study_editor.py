"""The page Study: a study written beside the board, its text by hand, two tabs, a reload, its page built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dojo_core.study.folder import Studies
from tests.browser.playing import MOVE, expect, open_means, play
from tests.test_studies import told_by

HOSTILE = "<img src=x onerror='window.pwned=1'>"


@pytest.fixture
def written(tab: Any, server: Any) -> Any:
    """A study of a game of one move, just begun; in a tab of its own, which has had no other."""
    tab.goto(server.url)
    tab.wait_for_selector(".card")
    open_means(tab)
    play(tab)
    tab.click(".dojo-bar a >> text=Study")
    tab.click("text=/^Begin with the game on Play/")
    tab.wait_for_selector(".stops .stop >> text=The start")
    tab.wait_for_selector(".row[data-move]")
    return tab


def text_of(page: Any, server: Any) -> str:
    found = re.search(r"study=([\w-]+)", page.url)
    assert found
    return Studies(Path(server.home) / "studies").read(found[1]).text


def settled(page: Any) -> None:
    page.wait_for_selector(".head [role=status]:text-is('Saved')")


def test_words_about_a_position_are_kept_as_text(written: Any, server: Any) -> None:
    page = written
    page.fill("textarea.note", f"Two loops. {HOSTILE}")
    page.locator("textarea.note").press("Tab")
    page.wait_for_selector(".shown >> text=Two loops.")
    settled(page)
    assert HOSTILE in text_of(page, server) and page.evaluate("window.pwned") is None


@pytest.mark.thorough  # test_study_editing.py and test_studies.py; how the editor begins: above
def test_a_study_is_written_beside_the_board_and_built(written: Any, server: Any, tmp_path: Path) -> None:
    page = written
    page.fill("textarea.note", f"Two loops. {HOSTILE}")
    page.locator("textarea.note").press("Tab")
    page.wait_for_selector(".shown >> text=Two loops.")
    page.click(f".stop:has-text('{MOVE}')")
    page.wait_for_selector(f"text=After move 1: {MOVE}")
    page.fill("input[placeholder='One pass']", "Fusion")
    page.locator("input[placeholder='One pass']").press("Tab")
    page.wait_for_selector(".stop:has-text('Fusion')")

    # A move of the board's that the study has not: words about it put it in.
    page.locator(".row[data-move] .apply").first.click()
    page.wait_for_selector("text=which is not in the study yet")
    page.fill("textarea.note", "Further.")
    page.locator("textarea.note").press("Tab")
    page.wait_for_selector(".stops .stop[aria-current] >> text=¶")

    page.click("text=Ask a question here")
    legal = page.locator("#legal-moves option").first
    legal.wait_for(state="attached")
    page.fill("[aria-label='Answer 1']", "vectorize q@0")
    page.fill("[aria-label='Answer 2']", "vectorize y@0")
    page.click("text=Save the question")
    page.wait_for_selector("[role=alert] >> text=is to be right, and is refused")
    page.fill("[aria-label='Answer 1']", str(legal.get_attribute("value")))
    page.click("text=Save the question")
    page.wait_for_selector("text=Change the question")
    text = text_of(page, server)
    assert "```question move\nWhat would you play?\n+ " in text and "# Fusion\n" in text and HOSTILE in text

    page.click("[data-tab=whole]")
    page.fill("input[placeholder^='Ann']", "Ada")
    page.click("text=Build the page")
    with page.expect_download() as saved:
        page.click("text=Download the page")
    built = told_by(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert built["study"]["authors"] == ["Ada"] and len(built["chapters"][0]["stops"]) == 3
    assert page.evaluate("window.pwned") is None


@pytest.mark.thorough  # as above
def test_a_text_is_checked_while_it_is_typed_and_none_is_lost(written: Any, server: Any) -> None:
    page = written
    page.click("[data-tab=source]")
    field = page.locator("textarea.source")
    sound = field.input_value()
    field.fill(sound.replace(MOVE, "join_scopes q@0"))
    page.wait_for_selector("#source-told >> text=No operation writes q")
    page.reload()
    page.click("text=Show me where")
    expect(field).to_have_value(re.compile("join_scopes q@0"))
    assert "join_scopes q@0" in text_of(page, server)
    assert field.evaluate("f => f.value.slice(f.selectionStart, f.selectionEnd)") == "join_scopes q@0"
    field.fill(f"{sound}\nAn end.\n")
    page.wait_for_selector("#source-told >> text=Every move in it is legal")

    # Another window writes meanwhile: neither text is lost.
    name = re.search(r"study=([\w-]+)", page.url)
    assert name
    studies = Studies(Path(server.home) / "studies")
    kept = studies.read(name[1])
    studies.write(name[1], kept.text.replace("An end.", "Theirs."), kept.revision)
    field.fill(f"{sound}\nMine.\n")
    page.wait_for_selector("text=This study was changed in another window")
    expect(field).to_have_value(re.compile(r"Mine\."))
    assert "Theirs." in text_of(page, server)
    page.click("text=Put mine in its place")
    page.wait_for_selector("text=This study was changed in another window", state="hidden")
    settled(page)
    assert "Mine." in text_of(page, server)
