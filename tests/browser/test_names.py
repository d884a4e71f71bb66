"""What people type is text on every page, never markup."""

from __future__ import annotations

from typing import Any

from pages.shell import existing
from tests.browser.playing import apply, open_softmax, wait_for_entries

NAME = "<img src=x onerror='window.pwned=1'>**b**[a](javascript:window.pwned=1)"


def clean(page: Any) -> None:
    assert page.evaluate("() => window.pwned") is None
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0


def test_a_title_is_text_on_every_page(page: Any, server: Any) -> None:
    open_softmax(page, "8x16")
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    page.click("text=New game")
    page.click("text=More…")
    page.locator(".game-row").first.get_by_text("Rename").click()
    page.keyboard.type(NAME)
    page.keyboard.press("Enter")
    page.wait_for_selector(".game-row >> text=onerror")
    clean(page)
    page.locator(".game-open").first.click()
    page.wait_for_selector("h1 >> text=onerror")
    clean(page)
    search = page.evaluate("() => window.location.search")
    for entry in existing():
        page.goto(f"{server.url}/{'' if entry.name == 'play' else entry.name}{search}")
        page.wait_for_selector("nav, .bar, [data-testid=stBidiComponentIsolated]")
        page.wait_for_timeout(400)
        clean(page)


def test_what_is_typed_into_each_field_is_text(page: Any) -> None:
    page.fill("textarea", f"kernel {NAME}\n# {NAME}\nin {NAME}\n")
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error >> text=onerror")
    page.fill("[data-kernel=softmax] input", NAME)
    page.click("[data-kernel=softmax] button")
    page.wait_for_selector("[data-kernel=softmax] .text-error")
    clean(page)
    page.fill("[data-kernel=softmax] input", "8x16")
    page.click("[data-kernel=softmax] button")
    page.wait_for_selector(".row[data-move]")
    page.fill("input[type=search]", f"tile {NAME}")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_selector(".notice.error")
    clean(page)
