"""A game for Snitch on the board: its code, and its times: cycles of a model, which wait for no clock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import BOARD
from tests.browser.test_lock import holder

__all__ = ["holder"]  # a fixture, which pytest looks for here


@pytest.mark.usefixtures("holder")
def test_a_game_for_snitch_shows_its_code_and_the_cycles_of_each_move(page: Any) -> None:
    page.select_option("select[aria-label=Target]", "snitch")
    page.fill("[data-kernel=relu] input", "4x64")
    page.click("[data-kernel=relu] button")
    page.wait_for_selector(".code >> text=kernel_relu:")
    page.keyboard.press("m")
    page.wait_for_function(
        f"() => /^[0-9,]+ cycles$/.test({BOARD}.querySelector('.metric-time .metric-value')?.textContent)"
    )
    assert "of the FPU's peak" in page.text_content(".metric-time")
    # however long a model's name is, it leaves its neighbours alone
    right = "e => { e.textContent = 'x'.repeat(80); return e.getBoundingClientRect().right; }"
    beside = page.locator(".metric-gain").bounding_box()
    assert page.locator(".metric-time .metric-detail").evaluate(right) <= beside["x"]
    page.wait_for_selector("[data-move='ssr y@0'] .value >> text=×")
    assert not page.locator(".banner").is_visible()  # though another process measures on this machine
    page.click("[data-move='ssr y@0']")
    page.click("text=Apply")
    page.wait_for_selector(".metric-time .chip >> text=×")
    assert "ns" not in page.text_content(".metric-time")
