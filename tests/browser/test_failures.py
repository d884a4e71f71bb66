"""What a player is told when something fails: each failure's row and drawer, a measurer that dies.

The failures are handed to the page as the feed would bring them: a correct generator makes none.
"""

from __future__ import annotations

from typing import Any

from tests.browser.playing import BOARD, apply, open_softmax, wait_for_entries

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


def quiet_softmax(page: Any) -> None:
    """A board that no poll redraws."""
    open_softmax(page)
    page.keyboard.press("m")
    page.wait_for_selector(".queue-text >> text=Off")
    page.wait_for_timeout(1500)


def test_every_failure_has_its_words_in_the_row_and_its_drawer_with_what_was_said(page: Any) -> None:
    quiet_softmax(page)
    page.select_option("select[aria-label='Order of the moves']", "listed")
    for number, (kind, (row, drawer)) in enumerate(KINDS.items()):
        page.click(f"#move-{number} .name")
        move = page.get_attribute(f"#move-{number}", "data-move")
        page.wait_for_function("move => window.dojoFeed.look.move === move", arg=move)
        feed(page, f"feed.results[{number}] = ['{kind}', 'the words of {kind}']")
        assert page.inner_text(f"#move-{number} .value") == f"✕ {row}"
        told = page.inner_text(".drawer")
        assert drawer in told and f"the words of {kind}" in told
        assert page.locator(".drawer >> text=Apply").count() == 1


def test_a_dead_measurer_is_told_play_goes_on_and_restart_asks_for_a_new_one(page: Any) -> None:
    quiet_softmax(page)
    assert not page.locator(".banner").is_visible()
    feed(page, "feed.queue.state = 'down'; feed.queue.message = 'The measurer has stopped (no gcc).'")
    page.wait_for_selector(".banner >> text=The measurer has stopped (no gcc).")
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)
    feed(page, "feed.queue.state = 'down'", f"{BOARD}.querySelector('.banner button').click();")
    page.wait_for_function(f"() => {BOARD}.querySelector('.banner').hidden")
