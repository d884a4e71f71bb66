"""The README's picture of the Play page, taken from the running app: ``python -m tests.screenshot``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM, Server

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "play.png"
CALLS = ("fuse m@0 4", "join_scopes d@1", "parallelize m@0")


def play(page: Any, url: str) -> None:
    """Softmax, a few moves in, with a line and a move selected."""
    page.goto(url)
    page.click("[data-kernel=softmax] strong")
    for call in CALLS:
        before = page.locator(".entry").count()
        page.fill("input[type=search]", call)
        page.locator("input[type=search]").press("Enter")
        page.wait_for_function(
            "n => document.querySelector('[data-testid=stBidiComponentIsolated]').shadowRoot"
            ".querySelectorAll('.entry').length > n",
            arg=before,
        )
    page.wait_for_function(
        "() => document.querySelector('[data-testid=stBidiComponentIsolated]').shadowRoot"
        ".querySelector('.queue-text').textContent.startsWith('Measured')",
        timeout=120_000,
    )
    page.select_option("select[aria-label='Order of the moves']", "gain")
    page.click(".line.op .instruction >> nth=1")
    page.click(".row[data-move] >> nth=1")
    page.wait_for_timeout(1500)


def main() -> None:
    with tempfile.TemporaryDirectory() as home, sync_playwright() as driver:
        server = Server(Path(home))
        server.start()
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 880})
        play(page, server.url)
        page.screenshot(path=PICTURE)
        browser.close()
        server.stop()
    print(f"Wrote {PICTURE}.")


if __name__ == "__main__":
    main()
