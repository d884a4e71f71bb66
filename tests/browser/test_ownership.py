"""Two browsers at one game: the one that began it plays, the other watches and forks."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import Server
from tests.browser.playing import apply, entries, open_softmax, wait_for_entries
from tests.browser.wire import Wire

SHAPE = "24x40"
PLAYED = ["Start", "1. join_scopes m@0"]


def begin(page: Any, shape: str = SHAPE) -> None:
    open_softmax(page, shape)
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 2)


def arrive(page: Any, count: int) -> None:
    """A page that was just opened."""
    page.wait_for_selector(".entry")
    wait_for_entries(page, count)


def cards(page: Any, server: Server) -> list[str]:
    page.goto(server.url)
    page.wait_for_selector(".card.kernel")
    return [str(words) for words in page.locator(".card.as-button").all_inner_texts()]


def test_who_opens_the_address_watches_and_plays_on_in_a_copy(page: Any, stranger: Any) -> None:
    begin(page)
    address = page.url
    (secret,) = [cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "dojo_browser"]
    for readable in (address, page.content(), page.evaluate("document.cookie")):
        assert secret not in readable

    stranger.goto(address)
    arrive(stranger, 2)
    assert entries(stranger) == PLAYED
    stranger.wait_for_selector(".watched >> text=belongs to another browser")
    for words in ("Take back", "Remove this move", "Make main line", "Delete from here", "Apply"):
        for button in stranger.get_by_role("button", name=words).all():
            assert button.is_disabled() and "another browser" in str(button.get_attribute("title"))
    assert stranger.locator(".row .apply").first.is_disabled()
    for key in ("u", "Delete", "Backspace"):
        stranger.keyboard.press(key)
    stranger.fill("input[type=search]", "split_scope m@0 2")
    stranger.locator("input[type=search]").press("Enter")
    stranger.wait_for_selector(".notice >> text=belongs to another browser")
    stranger.fill("input[type=search]", "")

    # what the owner plays is seen at once, and looking around moves nobody else
    apply(page, "join_scopes m@0")
    wait_for_entries(page, 3)
    wait_for_entries(stranger, 3)
    stranger.click(".entry >> text=1. join_scopes m@0")
    stranger.wait_for_selector(".entry.here[data-id='1']")
    assert page.locator(".entry.here").get_attribute("data-id") == "2"

    stranger.click("text=Fork: play on from here")
    stranger.wait_for_selector(".watched", state="hidden")
    assert stranger.url != address and stranger.locator(".entry.here").get_attribute("data-id") == "1"
    stranger.click("text=Delete from here")
    wait_for_entries(stranger, 1)

    page.reload()
    arrive(page, 3)
    assert not page.locator(".watched").is_visible()
    page.click("text=Take back")
    page.wait_for_selector(".entry.here[data-id='1']")


def test_forged_events_are_refused(page: Any, server: Server) -> None:
    begin(page)
    query = page.url.partition("?")[2]
    for cookie in ("", "dojo_browser=" + "0" * 32, "dojo_browser=../../x", "dojo_browser=" + "0" * 1_000):
        with Wire(server.port, query, Cookie=cookie) as foreign:
            assert foreign.board["game"]["watching"]
            for kind, fields in (
                ("goto", {"id": 1}), ("delete", {}), ("play", {"move": "join_scopes m@0"}),
                ("drop", {"mode": "skip"}), ("rename", {"title": "mine"}), ("forget", {}), ("take_back", {}),
            ):  # fmt: skip
                foreign.event(kind, **fields)
            assert [node["move"] for node in foreign.board["history"]["nodes"]] == [None, "join_scopes m@0"]
    page.reload()
    arrive(page, 2)
    assert entries(page) == PLAYED and page.locator(".entry.here").get_attribute("data-id") == "1"


def test_a_shared_link_adds_one_card_and_none_to_others(page: Any, stranger: Any, server: Server) -> None:
    begin(page, "24x48")
    page.click("nav ~ button >> text=Share")
    link = page.input_value(".dojo-share input")
    before = cards(page, server)
    for _ in range(4):
        stranger.goto(link)
        arrive(stranger, 2)
        assert not stranger.locator(".watched").is_visible()
    assert len([words for words in cards(stranger, server) if "24x48" in words]) == 1
    assert cards(page, server) == before


def test_a_second_tab_of_the_browser_plays_in_the_same_game(page: Any) -> None:
    begin(page, "24x56")
    other = page.context.new_page()
    other.goto(page.url)
    arrive(other, 2)
    other.click("text=Take back")
    other.wait_for_selector(".entry.here[data-id='0']")


def test_a_session_that_does_not_know_its_browser_begins_again(page: Any) -> None:
    """As an open page of a Dojo that kept no secret, when its server was started anew."""
    begin(page, "24x64")
    page.context.clear_cookies()
    with page.expect_event("load"):
        page.click("nav >> text=Library")
    page.click("nav >> text=Play")
    page.wait_for_selector(".watched")  # what it began belongs to the browser that it was
    assert {cookie["name"] for cookie in page.context.cookies()} >= {"dojo_browser", "dojo_browser_mark"}
