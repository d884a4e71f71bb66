"""The first minute of somebody who reads nothing but the page: what is pressed, and when."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


def first_minute(page: Any, url: str, folder: Path) -> None:
    """In an empty Dojo: press what stands out, until the program is faster; a picture of each stage."""
    begin = time.monotonic()

    def told(words: str) -> None:
        name = words.partition(":")[0].replace(" ", "-")
        page.screenshot(path=folder / f"newcomer-{name}.png")
        print(f"  {time.monotonic() - begin:5.1f} s  {words}", flush=True)

    page.goto(url)
    page.wait_for_selector(".newcomer button")
    told("start: " + page.inner_text(".welcome").replace("\n", " "))
    page.click(".newcomer button")
    page.wait_for_selector(".row[data-move]")
    told("board: " + page.inner_text(".drawer").replace("\n", " "))
    page.wait_for_selector(".drawer .found button", timeout=180_000)
    told("offered: " + page.inner_text(".drawer .found"))
    page.click(".drawer .found button")
    page.wait_for_selector(".drawer button.primary")
    told("shown: " + page.inner_text(".drawer-head").replace("\n", " "))
    page.click(".drawer button.primary")
    page.wait_for_selector(".entry >> nth=1")
    page.wait_for_selector(".metric-time .chip:visible", timeout=60_000)
    told("faster: " + page.inner_text(".metric-row").replace("\n", " "))
