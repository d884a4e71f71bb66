"""Positions that the board has are drawn before the server answers; what it says then stands."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.browser.playing import (
    BOARD,
    MOVE,
    expect,
    expect_entries,
    expect_here,
    play,
    until_it_rests,
    wait_for_entries,
)

# The page says when it knows what the move leads to: it has taken the answer to its end.
KNOWING = """move => {
  const { json } = Response.prototype;
  Response.prototype.json = async function () {
    const told = await json.call(this);
    if (told.ahead?.some((sheet) => sheet.move === move)) setTimeout(() => { window.knows = true; });
    return told;
  };
}"""


class Door:
    """Between the board and the server: messages are held (all, or what is asked of the positions beside
    the one on the board), or lost, and others pass."""

    def __init__(self, page: Any) -> None:
        self.page, self.mode, self.held = page, "open", list[Any]()
        page.route("**/exchange", self._asked)

    def _asked(self, route: Any) -> None:
        beside = route.request.post_data.startswith('{"ahead"')
        if self.mode == "open" or (self.mode == "beside" and not beside):
            route.continue_()
        elif self.mode == "lost":
            route.abort()
        else:
            self.held.append(route)

    def first_with(self, word: str) -> Any:
        """The first message that has a word, still held; those before it pass."""
        while True:
            while not self.held:
                self.page.wait_for_timeout(20)
            route = self.held.pop(0)
            if word in route.request.post_data:
                return route
            route.continue_()

    def open(self) -> None:
        self.mode = "open"
        for route in self.held:
            route.continue_()
        self.held.clear()

    def close(self) -> None:
        self.open()
        self.page.unroute("**/exchange")


def play_and_take_back(page: Any) -> None:
    """At the start again, of which a move is known."""
    play(page)
    page.keyboard.press("u")
    expect_here(page, 0)
    until_it_rests(page)


def lines(page: Any) -> str:
    return str(page.inner_text(".program .scroll"))


def test_arrows_and_moves_are_drawn_before_the_server_has_heard_of_them(small_board: Any) -> None:
    page = small_board
    start = lines(page)
    play(page)
    after = lines(page)
    door = Door(page)
    try:
        door.mode = "held"
        for key, number, shown in (("ArrowLeft", 0, start), ("ArrowRight", 1, after), ("u", 0, start)):
            page.keyboard.press(key)
            expect_here(page, number)
            expect(page.locator(".program .scroll").first).to_have_text(shown, use_inner_text=True)
        # its answers come late, one by one, and take the board nowhere else
        page.evaluate(
            f"() => {{ window.seen = new Set(); const look = () => {{"
            f"window.seen.add({BOARD}.querySelector('.entry.here').dataset.id);"
            "requestAnimationFrame(look); }; look(); }"
        )
        door.open()
        until_it_rests(page)
        assert page.evaluate("() => [...window.seen]") == ["0"]
    finally:
        door.close()


def test_measuring_switched_on_and_off_before_the_server_has_heard_of_it_is_off(small_board: Any) -> None:
    page = small_board
    door = Door(page)
    try:
        door.mode = "held"
        page.locator(f'.row[data-move="{MOVE}"] .apply').click()
        told = door.first_with('"play"')
        page.keyboard.press("m")
        with page.expect_response("**/exchange"):
            told.continue_()  # of the move alone: on its board nothing is measured
        expect_entries(page, "Start", f"1. {MOVE}")
        page.evaluate("() => new Promise((drawn) => setTimeout(() => requestAnimationFrame(drawn), 100))")
        page.keyboard.press("m")
        door.open()
        until_it_rests(page)
        expect(page.locator(".queue-text")).to_have_text(re.compile("off", re.IGNORECASE))
    finally:
        door.close()


@pytest.mark.thorough  # what the server does with messages twice or too late: test_service.py
def test_a_lost_message_is_sent_again_and_what_comes_of_a_game_that_was_left_is_no_error(
    small_board: Any,
) -> None:
    page = small_board
    play_and_take_back(page)
    door = Door(page)
    try:
        door.mode = "lost"
        with page.expect_event("requestfailed"):
            page.keyboard.press("ArrowRight")
            expect_here(page, 1)
        with page.expect_response("**/exchange"):
            door.mode = "open"
        until_it_rests(page)

        # what is told of a game that was left meanwhile is no error
        door.mode = "beside"
        page.reload()
        expect_here(page, 1)
        while not door.held:
            page.wait_for_timeout(20)
        page.click("text=New game")
        page.wait_for_selector(".card.kernel")
        with page.expect_response("**/exchange") as answer:
            door.open()
        answer.value.finished()
        page.evaluate("() => new Promise((rest) => setTimeout(rest))")
    finally:
        door.close()


def test_a_move_under_the_pointer_is_played_at_once(small_board: Any) -> None:
    page = small_board
    page.evaluate(KNOWING, MOVE)
    page.locator(f'.row[data-move="{MOVE}"]').hover()
    page.wait_for_function("() => window.knows")
    door = Door(page)
    try:
        door.mode = "held"
        page.locator(f'.row[data-move="{MOVE}"] .apply').click()
        expect_here(page, 1)
        expect_entries(page, "Start", f"1. {MOVE}")
        door.open()
        until_it_rests(page)
        expect_here(page, 1)
        page.keyboard.press("u")
        expect_here(page, 0)

    finally:
        door.close()


@pytest.mark.thorough  # what the server does with what was made on another position: test_service.py
def test_what_is_guessed_of_a_game_that_went_on_elsewhere_is_taken_back(
    small_board: Any, chromium: Any
) -> None:
    page = small_board
    play_and_take_back(page)
    door = Door(page)
    try:
        other = chromium.new_page()
        other.goto(page.url)
        other.wait_for_selector(".entry.here[data-id='0']")
        play(other, "split_scope s@0 2")
        page.keyboard.press("ArrowRight")
        expect_here(page, 2)
        other.close()
        wait_for_entries(page, 3)
    finally:
        door.close()
