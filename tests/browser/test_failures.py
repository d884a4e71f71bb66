"""What a player is told when something fails: each failure's row and drawer, a measurer that dies.

The failures are handed to the page as the feed would bring them: a correct generator makes none.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.playing import BOARD, expect, play, until_it_rests

KINDS = {
    "compile_error": ("does not compile", "the compiler said"),
    "wrong_result": ("wrong result", "differs from the reference"),
    "unwritten": ("unwritten elements", "never written"),
    "out_of_bounds": ("out of bounds", "outside its arrays"),
    "crash": ("crash", "nothing else was harmed"),
    "timeout": ("timeout", "longer than its time limit"),
    "refused": ("no code for it", "can be played all the same"),
}


def feed(page: Any, change: str, then: str = "") -> None:
    """What the server might tell next; ``then`` happens before it can tell anything else."""
    page.evaluate(
        f"() => {{ const feed = structuredClone(window.dojoFeed); {change};"
        f"window.dojoFeed = feed; window.dispatchEvent(new Event('dojo:feed')); {then} }}"
    )


@pytest.fixture
def quiet(small_board: Any) -> Any:
    """A board that no poll redraws."""
    until_it_rests(small_board)
    return small_board


def choose(page: Any) -> None:
    """The first move of the list, until the server has told of it: what ``feed`` tells later stays."""
    page.select_option("select[aria-label='Order of the moves']", "listed")
    page.click("#move-0 .name")
    move = page.get_attribute("#move-0", "data-move")
    page.wait_for_function("move => window.dojoFeed.look.move === move", arg=move)


def test_every_failure_has_its_words_in_the_row_and_its_drawer_with_what_was_said(quiet: Any) -> None:
    choose(quiet)
    for kind, (row, drawer) in KINDS.items():
        feed(quiet, f"feed.results[0] = ['{kind}', 'the words of {kind}']")
        expect(quiet.locator("#move-0 .value")).to_have_text(f"✕ {row}")
        expect(quiet.locator(".drawer")).to_contain_text(drawer)
        expect(quiet.locator(".drawer")).to_contain_text(f"the words of {kind}")
        expect(quiet.locator(".drawer >> text=Apply")).to_have_count(1)


def test_a_dead_measurer_is_told_play_goes_on_and_restart_asks_for_a_new_one(quiet: Any) -> None:
    expect(quiet.locator(".banner")).to_be_hidden()
    feed(quiet, "feed.queue.state = 'down'; feed.queue.message = 'The measurer has stopped (no gcc).'")
    quiet.wait_for_selector(".banner >> text=The measurer has stopped (no gcc).")
    play(quiet)
    feed(quiet, "feed.queue.state = 'down'", f"{BOARD}.querySelector('.banner button').click();")
    expect(quiet.locator(".banner")).to_be_hidden()
