"""Train in a real browser: a training is paused, left, gone on with in another tab, and its agent plays."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.soak  # test_train_page.py looks at the page, test_trainings.py at runs that are left and found
def test_a_training_is_left_found_gone_on_with_in_another_tab_and_played(tab: Any, server: Any) -> None:
    tab.goto(f"{server.url}/train")
    tab.get_by_label("Shape").first.fill("8x32")
    tab.get_by_label("Shape").first.press("Enter")
    tab.get_by_text("operations counted").click()
    tab.get_by_role("combobox", name="Encoder").click()  # one without transformers: its import takes seconds
    tab.get_by_role("option", name="bag").click()
    count = tab.get_by_role("spinbutton", name="Programs")
    count.fill("24")
    count.press("Enter")
    tab.wait_for_timeout(700)  # the last choice has reached the server
    tab.get_by_role("button", name="Start", exact=True).click()
    tab.get_by_role("button", name="Pause", exact=True).click(timeout=400_000)
    tab.get_by_role("button", name="Go on", exact=True).wait_for(timeout=400_000)
    other = tab.context.new_page()
    other.goto(tab.url)
    other.get_by_role("button", name="Go on", exact=True).click(timeout=400_000)
    for each in (other, tab):  # the first one notices by itself
        each.get_by_text("✓ done").wait_for(timeout=400_000)
    tab.get_by_role("button", name="Play this checkpoint").click()
    tab.get_by_role("button", name="Open in Play").click(timeout=400_000)
    tab.wait_for_selector(".entry.here", timeout=400_000)
