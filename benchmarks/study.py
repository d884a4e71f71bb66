"""How soon a study's page is there on a phone: ``python -m benchmarks.study PAGE.html … [--rounds 5]``.

Each page is opened from its file in a real Chromium, in a window of 390 × 844 pixels whose processor is four
times slower (``--slower``), in turns with the others. Told are the shortest and the median of the
milliseconds from the navigation to

- the words and the program of the first position on the screen,
- from then, where Next is pressed at once, the words of the next one: what is left to be read comes before.

``dojo study build softmax.md`` makes such a page; another version of the Dojo makes another one to compare
with.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import ViewportSize, sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM

PHONE: ViewportSize = {"width": 390, "height": 844}

# When the first position was on the screen: two frames after it came to be there.
WATCH = """
window.opened = new Promise((done) => {
  const look = () => {
    const host = document.querySelector('.host');
    const drawn = document.querySelector('.words .body h2') && host && host.shadowRoot.querySelector('.line');
    if (!drawn) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
  };
  requestAnimationFrame(look);
});
"""

# From a press of Next until the next position's words are there, perhaps once the rest of the page is read.
STEP = """() => new Promise((done) => {
  const begun = performance.now();
  const place = () => document.querySelector('.walk .quiet').textContent;
  const before = place();
  const look = () => (place() === before && performance.now() - begun < 20000 ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done(performance.now() - begun)));
  document.querySelector('.question .ghost')?.click(); // a question holds a reader up
  document.querySelector('.walk .primary').click();
  look();
})"""


def opened(browser: Any, page_file: Path, slower: float) -> tuple[float, float]:
    """Milliseconds until a page is there, and until it has answered a step."""
    page = browser.new_page()
    page.add_init_script(WATCH)
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.goto(page_file.resolve().as_uri(), wait_until="commit")
    there = float(page.evaluate("() => window.opened"))
    step = float(page.evaluate(STEP))
    page.close()
    return there, step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slower", type=float, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {str(page): [] for page in options.pages}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=ARGUMENTS, viewport=PHONE
        )
        for _ in range(options.rounds):
            for page in options.pages:
                found[str(page)].append(opened(browser, page, options.slower))
        browser.close()
    for name, times in found.items():
        there, step = zip(*times, strict=True)
        size = Path(name).stat().st_size / 1024
        middle = statistics.median(there), statistics.median(step)
        print(
            f"{name}: {size:.0f} KB; there after {min(there):.0f} ms (median {middle[0]:.0f}), "
            f"a step {min(step):.0f} ms (median {middle[1]:.0f})"
        )
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
