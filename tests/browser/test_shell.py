"""The bar on every page: where the tab is, and that leaving loses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import expect, open_means


def test_the_bar_marks_the_page_and_is_reached_by_keyboard(tab: Any, server: Any) -> None:
    # what names no page leads to the first one, and says so
    tab.goto(f"{server.url}/libary")
    tab.get_by_text("There is no page 'libary'. Did you mean library?").wait_for()
    expect(tab).to_have_url(f"{server.url}/")
    expect(tab.get_by_text("Page not found")).to_have_count(0)
    expect(tab.locator(".dojo-bar a[aria-current=page]")).to_have_text("Play")
    tab.wait_for_selector(".card")
    focused = []
    for _ in range(4):
        tab.keyboard.press("Tab")
        focused.append(tab.evaluate("document.activeElement.textContent"))
    assert "Play" in focused
    open_means(tab)
    assert tab.locator(".dojo-bar").bounding_box()["height"] <= 37
    # links name the player and the game, for another tab
    tab.wait_for_function(
        "document.querySelector('.dojo-bar a').getAttribute('href') === location.pathname + location.search"
    )


@pytest.mark.thorough  # what the server answers: test_address.py
def test_the_first_page_is_found_by_its_name_too(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/play")
    tab.get_by_text("Pick a kernel to begin").wait_for()
    expect(tab.locator(".dojo-bar a[aria-current=page]")).to_have_text("Play")
    expect(tab.get_by_text("Page not found")).to_have_count(0)
