"""What the browser tests do again and again, on kernels small enough to be quick."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OFF = re.compile("^Off")  # what the queue says of a game that is not measured
MOVE = "join_scopes s@0"  # one of the 39 of the means of rows, where a softmax has 151
TELEPHONE = {"width": 390, "height": 844}
NAME = "<img src=x onerror='window.pwned=1'>**b**[a](javascript:window.pwned=1)"
# Undefined while a page is drawn that has none: what waits for something in it goes on waiting.
BOARD = "document.querySelector('[data-testid=stBidiComponentIsolated]')?.shadowRoot"


def expect(shown: Any) -> Any:
    """Playwright's assertions, which look again until what they say is so.

    What was asked for may still be on its way, or be drawn anew at this very moment, which is all that
    ``assert locator.count() == 1`` would see.
    """
    from playwright.sync_api import expect  # where it is not installed, all that needs a browser is skipped

    return expect(shown)


# The page says when the server has told all there is: it has taken that answer to its end, has nothing under
# way and asks no more. To hear of it, it is come back to as if some seconds had gone by.
RESTING = """() => {
  window.rests = false;
  if (!window.listens) {
    const { fetch } = window;
    let under = 0; // what the board has said and the server not answered
    window.fetch = async (...message) => {
      if (!String(message[1]?.body).includes('"events"')) return fetch(...message);
      under += 1;
      const answer = await fetch(...message).finally(() => { under -= 1; });
      answer.json = async () => {
        const told = await Response.prototype.json.call(answer);
        setTimeout(() => { window.rests = told.poll === null && under === 0; });
        return told;
      };
      return answer;
    };
    window.listens = true;
  }
  const { now } = Date;
  window.later = (window.later ?? 0) + 4000;
  Date.now = () => now() + window.later;
  window.dispatchEvent(new Event('focus'));
  Date.now = now;
}"""


def until_it_rests(page: Any) -> None:
    """Until no poll redraws a board that is not measured."""
    page.evaluate(RESTING)
    page.wait_for_function("() => window.rests")


def open_kernel(page: Any, kernel: str, shape: str, measured: bool = False) -> None:
    """``measured``: where a test is about times, or about what is pressed while they come."""
    page.fill(f"[data-kernel={kernel}] input", shape)
    page.click(f"[data-kernel={kernel}] button")
    page.wait_for_selector(".row[data-move]")
    if measured:
        page.keyboard.press("m")
        expect(page.locator(".queue-text")).not_to_have_text(OFF)


def open_softmax(page: Any, shape: str = "96x32", measured: bool = False) -> None:
    open_kernel(page, "softmax", shape, measured)


def open_means(page: Any, shape: str = "8x16", measured: bool = False) -> None:
    """The smallest board with loops to join: quicker to draw than a softmax."""
    open_kernel(page, "reducemean", shape, measured)


def play(page: Any, move: str = MOVE) -> None:
    """A move of the position on the board, until it is drawn."""
    shown = page.wait_for_function(f"() => {BOARD}.querySelectorAll('.entry').length")  # one at least
    before = int(shown.json_value())
    apply(page, move)
    wait_for_entries(page, before + 1)


def expect_entries(page: Any, *lines: str) -> None:
    """The history's lines, whatever times have come to stand behind them."""
    time = r"(\s*[\d.,]+\s?(s|ms|µs|ns))?"
    expect(page.locator(".entry")).to_have_text([re.compile(f"^{re.escape(line)}{time}$") for line in lines])


def wait_for_entries(page: Any, count: int) -> None:
    page.wait_for_function(
        f"count => {BOARD}.querySelectorAll('.entry').length === count",
        arg=count,
    )


def apply(page: Any, move: str) -> None:
    page.locator(f'.row[data-move="{move}"] .apply').click()


def expect_here(page: Any, number: int) -> None:
    """The position on the board, by its number in the history."""
    page.wait_for_selector(f".entry.here[data-id='{number}']")


def rows(page: Any) -> list[str]:
    """The moves of the position, which come some milliseconds after it."""
    page.wait_for_selector(".row[data-move]")
    found = page.locator(".row[data-move]").evaluate_all("rows => rows.map(r => r.dataset.move)")
    return [str(row) for row in found]


def markup(page: Any) -> list[str]:
    """What has become of ``NAME`` where it was read as markup: nothing."""
    made = [sign for sign in ("img[src=x]", "a[href^='javascript']") if page.locator(sign).count()]
    return made if page.evaluate("() => window.pwned") is None else [*made, "a script that ran"]


class Way:
    """Between a page and the server: within ``slow()`` what the server says is held back, to come at once."""

    def __init__(self, page: Any) -> None:
        self.held: list[tuple[Any, Any]] = []
        self.asked = 0  # what the page has said
        self._slow = False
        page.route_web_socket("**/_stcore/stream", self._through)

    def _through(self, browser: Any) -> None:
        server = browser.connect_to_server()
        server.on_message(lambda said: self._pass(browser, said))
        browser.on_message(lambda said: self._ask(server, said))

    def _ask(self, server: Any, said: Any) -> None:
        self.asked += 1
        server.send(said)

    def _pass(self, browser: Any, said: Any) -> None:
        if self._slow:
            self.held.append((browser, said))
        else:
            browser.send(said)

    def until_held(self, page: Any, more_than: int = 0) -> None:
        """Until the server has said so much that the page does not hear yet."""
        while len(self.held) <= more_than:
            page.wait_for_timeout(20)

    def until_asked(self, page: Any, more_than: int) -> None:
        """Until the page has said so much to the server."""
        while self.asked <= more_than:
            page.wait_for_timeout(20)

    @contextmanager
    def slow(self) -> Iterator[None]:
        self._slow = True
        yield
        while self.held:  # in order: more may come meanwhile
            browser, said = self.held.pop(0)
            browser.send(said)
        self._slow = False
