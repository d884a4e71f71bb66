"""The bar on every page: where the tab is, and that leaving loses nothing."""

from __future__ import annotations

from typing import Any

from tests.browser.playing import expect, open_means


def test_the_bar_marks_the_page_and_is_reached_by_keyboard(page: Any, server: Any) -> None:
    expect(page.locator(".dojo-bar a[aria-current=page]")).to_have_text("Play")
    focused = []
    for _ in range(4):
        page.keyboard.press("Tab")
        focused.append(page.evaluate("document.activeElement.textContent"))
    assert "Play" in focused
    open_means(page)
    assert page.locator(".dojo-bar").bounding_box()["height"] <= 37
    # links name the player and the game, for another tab
    page.wait_for_function(
        "document.querySelector('.dojo-bar a').getAttribute('href') === location.pathname + location.search"
    )
    # and it is found by its name too
    page.goto(f"{server.url}/play")
    page.get_by_text("Pick a kernel to begin").wait_for()
    expect(page.locator(".dojo-bar a[aria-current=page]")).to_have_text("Play")
    expect(page.get_by_text("Page not found")).to_have_count(0)
    # what names no page leads there, and says so
    page.goto(f"{server.url}/libary")
    page.get_by_text("There is no page 'libary'. Did you mean library?").wait_for()
    expect(page).to_have_url(f"{server.url}/")
    expect(page.get_by_text("Page not found")).to_have_count(0)
