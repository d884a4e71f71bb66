"""What a player is told when something fails: each failure's row and drawer, a measurer that dies.

The failures are handed to the page as the feed would bring them: a correct generator makes none.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import BOARD, expect, play

KINDS = {
    "compile_error": ("does not compile", "the compiler said"),
    "wrong_result": ("wrong result", "differs from the reference"),
    "unwritten": ("unwritten elements", "never written"),
    "out_of_bounds": ("out of bounds", "outside its arrays"),
    "crash": ("crash", "nothing else was harmed"),
    "timeout": ("timeout", "longer than its time limit"),
    "refused": ("no code for it", "can be played all the same"),
}


# What is told of the game on the board is changed where it arrives, whichever message brings it: a new game's
# feed comes twice.
FEEDING = """({ change, then }) => {
  const now = structuredClone(window.dojoFeed), at = location.href;
  let told = null, changing = true;
  const hear = (feed) => {
    if (changing && location.href === at) change(feed);
    told = feed;
  };
  Object.defineProperty(window, 'dojoFeed', { configurable: true, get: () => told, set: hear });
  window.dojoFeed = now;
  window.dispatchEvent(new Event('dojo:feed'));
  if (!then) return;
  changing = false;
  then();
}"""


def feed(page: Any, change: str, then: str = "") -> None:
    """What the server tells of this game from now on, or once, where something happens ``then``."""
    after = f"() => {{ {then} }}" if then else "null"
    page.evaluate(f"({FEEDING})({{ change: (feed) => {{ {change}; }}, then: {after} }})")


def choose(page: Any) -> None:
    """The first move of the list, until the server has told of it."""
    page.select_option("select[aria-label='Order of the moves']", "listed")
    page.click("#move-0 .name")
    move = page.get_attribute("#move-0", "data-move")
    page.wait_for_function("move => window.dojoFeed.look.move === move", arg=move)


def test_every_failure_has_its_words_in_the_row_and_its_drawer_with_what_was_said(small_board: Any) -> None:
    choose(small_board)
    for kind, (row, drawer) in KINDS.items():
        feed(small_board, f"feed.results[0] = ['{kind}', 'the words of {kind}']")
        expect(small_board.locator("#move-0 .value")).to_have_text(f"✕ {row}")
        expect(small_board.locator(".drawer")).to_contain_text(drawer)
        expect(small_board.locator(".drawer")).to_contain_text(f"the words of {kind}")
        expect(small_board.locator(".drawer >> text=Apply")).to_have_count(1)


@pytest.mark.thorough  # test_service.py
def test_a_dead_measurer_is_told_play_goes_on_and_restart_asks_for_a_new_one(small_board: Any) -> None:
    expect(small_board.locator(".banner")).to_be_hidden()
    feed(small_board, "feed.queue.state = 'down'; feed.queue.message = 'The measurer has stopped (no gcc).'")
    small_board.wait_for_selector(".banner >> text=The measurer has stopped (no gcc).")
    play(small_board)
    feed(small_board, "feed.queue.state = 'down'", f"{BOARD}.querySelector('.banner button').click();")
    expect(small_board.locator(".banner")).to_be_hidden()
