"""What people type into each field is text, never markup; what test_pages.py tells of titles is so too."""

from __future__ import annotations

from typing import Any

from tests.browser.playing import NAME, markup


def test_what_is_typed_into_each_field_is_text(start_screen: Any) -> None:
    page = start_screen
    page.fill("textarea", f"kernel {NAME}\n# {NAME}\nin {NAME}\n")
    page.click("text=Play this")
    page.wait_for_selector(".own .text-error >> text=onerror")
    page.fill("[data-kernel=reducemean] input", NAME)
    page.click("[data-kernel=reducemean] button")
    page.wait_for_selector("[data-kernel=reducemean] .text-error")
    assert markup(page) == []
    page.fill("[data-kernel=reducemean] input", "8x16")
    page.click("[data-kernel=reducemean] button")
    page.wait_for_selector(".row[data-move]")
    page.fill("input[type=search]", f"tile {NAME}")
    page.locator("input[type=search]").press("Enter")
    page.wait_for_selector(".typed-words .failure")
    assert markup(page) == []
