"""Games for what this machine is not: for Snitch, whose times are cycles of a model and wait for no
clock, and for the processor of another machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dojo_core.targets.cpu import machines
from dojo_core.targets.cpu.processor import known
from tests.browser.conftest import Server
from tests.browser.playing import BOARD, apply, expect, open_kernel
from tests.browser.test_lock import holder

__all__ = ["holder"]  # a fixture, which pytest looks for here


def leave(page: Any) -> None:
    """The start screen as the next test finds it."""
    page.click("text=New game")
    page.select_option("select[aria-label=Target]", "cpu")


@pytest.mark.thorough  # test_snitch_doors.py
@pytest.mark.usefixtures("holder")
def test_a_game_for_snitch_shows_its_code_and_the_cycles_of_each_move(start_screen: Any) -> None:
    page = start_screen
    policies = page.locator("select[aria-label='Floating-point policy']")
    page.select_option("select[aria-label=Target]", "cuda")
    policies.select_option("tf32")
    page.select_option("select[aria-label=Target]", "snitch")
    expect(policies).to_have_value("reassoc")  # there are no tensor cores
    expect(policies).not_to_contain_text("TF32")
    page.fill("[data-kernel=relu] input", "4x64")
    page.click("[data-kernel=relu] button")
    page.wait_for_selector(".code >> text=kernel_relu:")
    page.keyboard.press("m")
    page.wait_for_function(
        f"() => /^[0-9,]+ cycles$/.test({BOARD}.querySelector('.metric-time .metric-value')?.textContent)"
    )
    metric = page.locator(".metric-time")
    expect(metric).to_contain_text("of the FPU's peak")
    # however long a model's name is, it leaves its neighbours alone
    right = "e => { e.textContent = 'x'.repeat(80); return e.getBoundingClientRect().right; }"
    beside = page.locator(".metric-gain").bounding_box()
    assert page.locator(".metric-time .metric-detail").evaluate(right) <= beside["x"]
    page.wait_for_selector("[data-move='ssr y@0'] .value >> text=×")
    expect(page.locator(".banner")).to_be_hidden()  # though another process measures on this machine
    apply(page, "ssr y@0")
    page.wait_for_selector(".metric-time .chip >> text=×")
    expect(metric).not_to_contain_text("ns")
    leave(page)


@pytest.mark.thorough  # test_elsewhere.py
def test_a_machine_that_is_known_here_can_be_played_for(
    small_board: Any, common_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOJO_HOME", str(common_server.home))
    machines.remember("a" * 16, replace(known("x86-64-v4"), name="Big Iron 9000"))
    page = small_board
    page.click("text=New game")
    page.select_option("select[aria-label=Target]", f"cpu@{'a' * 16}")
    expect(page.locator("select[aria-label=Target] option:checked")).to_contain_text("Big Iron 9000")
    open_kernel(page, "relu", "8x16")
    apply(page, "vectorize y@1")  # whatever the vectors of this machine are
    page.wait_for_selector(".code >> text=f32x16")
    expect(page.locator(".board")).to_contain_text(
        "dojo tune KERNEL --scheduler ADDRESS --machine aaaaaaaaaaaaaaaa"
    )
    expect(page.locator(".metric-time .metric-value")).to_have_text("no time")
    leave(page)
