"""Every page once, in a window as wide as a telephone and with a game whose title is markup.

Nothing stands beside a page, what a machine can tell of its look is right (``make looks`` tells it of all
states, in more windows), and what people type is text on each, never markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pages.shell import existing
from tests.browser.conftest import forget
from tests.browser.playing import NAME, TELEPHONE, markup, open_means, play
from tests.screens.looks import AUDIT

# The start screen and a board: test_narrow.py. What is typed into fields: test_names.py.
pytestmark = pytest.mark.thorough

# What the script has told is drawn, and laid out: nothing has changed in the page for a while.
AT_REST = """() => new Promise((rest) => {
  let timer = setTimeout(done, 250);
  const changes = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 250); });
  changes.observe(document.body, { subtree: true, childList: true, attributes: true });
  function done() { changes.disconnect(); rest(); }
})"""


@pytest.fixture(scope="module")
def pages(chromium: Any, server: Any) -> Iterator[dict[str, tuple[list[str], list[str]]]]:
    """What is told against the look of each place of the app, and what markup the title has become."""
    page = chromium.new_page()
    forget(page, server)  # which pane another test left on top
    page.set_viewport_size(TELEPHONE)
    seen: dict[str, tuple[list[str], list[str]]] = {}

    def look(place: str) -> None:
        seen[place] = page.evaluate(AUDIT), markup(page)

    page.goto(server.url)
    page.wait_for_selector(".card")
    look("the start screen")
    open_means(page)
    play(page)
    page.click("text=New game")
    page.click("text=More…")
    page.locator(".game-row").first.get_by_text("Rename").click()
    page.keyboard.type(NAME)
    page.keyboard.press("Enter")
    page.wait_for_selector(".game-row >> text=onerror")
    look("the list of games")
    page.locator(".game-open").first.click()
    page.wait_for_selector("h1 >> text=onerror")
    for entry in sorted(existing(), key=lambda entry: entry.name == "learn"):
        page.click(f".dojo-bar a >> text={entry.title}")
        page.wait_for_selector(f".dojo-bar a[aria-current=page] >> text={entry.title}")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        page.wait_for_selector("[data-testid=stSkeleton]", state="detached")
        page.evaluate(AT_REST)
        look(entry.name)
    page.click("text=Begin with the first lesson")
    page.click(".dock >> text=Moves")
    page.wait_for_selector(".board.embedded .row[data-move]")
    look("a lesson's board")
    page.click(".dock >> text=Lesson")
    page.wait_for_selector(".foot >> text=Next")
    look("a lesson's step")
    yield seen
    page.close()


def test_every_page_can_be_read_and_pressed_on_a_telephone(
    pages: dict[str, tuple[list[str], list[str]]],
) -> None:
    assert {place: told for place, (told, _) in pages.items() if told} == {}


def test_a_title_is_text_on_every_page(pages: dict[str, tuple[list[str], list[str]]]) -> None:
    assert [place for place, (_, told) in pages.items() if told] == []
