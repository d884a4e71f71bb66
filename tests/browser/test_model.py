"""Model in a real browser: an example is opened, a kernel of it comes to the board, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import expect


@pytest.mark.soak  # test_model_page.py looks at what is told and kept, test_pages.py at the page
def test_a_kernel_of_an_example_is_opened_on_the_board_and_left_again(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/model")
    tab.locator(".st-key-model_example_perceptron").get_by_role("button").first.click()
    tab.get_by_role("heading", name="Perceptron").wait_for()
    tab.get_by_label("Search calls and kernels").fill("fc2")
    expect(tab.locator(".row.found")).to_have_count(1)
    tab.locator(".row.found button").click()
    tab.get_by_text("Perceptron: matmul_add_relu_2").first.wait_for()
    tab.wait_for_selector(".row[data-move]")
    assert "/model" not in tab.url
    tab.click(".dojo-bar a >> text=Model")
    tab.get_by_role("heading", name="Perceptron").wait_for()
    tab.wait_for_selector(".model .kernel")
