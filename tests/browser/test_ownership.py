"""Two browsers at one game: the one that began it plays, the other watches and forks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.sharing import link
from tests.browser.conftest import Server
from tests.browser.playing import (
    MOVE,
    expect,
    expect_entries,
    expect_here,
    open_means,
    play,
    wait_for_entries,
)
from tests.browser.wire import Wire

REFUSED = ("Take back", "Remove this move", "Make main line", "Delete from here", "Apply")
ANN, BEN, CAT = ("dojo_browser=" + sign * 32 for sign in "abc")


def arrive(page: Any, count: int) -> None:
    """A page that was just opened."""
    page.wait_for_selector(".entry")
    wait_for_entries(page, count)


def games(server: Server, browser: str) -> list[str]:
    """The games on a browser's start screen."""
    with Wire(server.port, Cookie=browser) as wire:
        return [f"{card['title']}, {card['moves']}" for card in wire.board["start"]["games"]]


def game_in(page: Any) -> str:
    """The game that a page's address names."""
    return str(page.url).partition("g=")[2]


@pytest.mark.thorough  # forged events: below; test_ownership.py; watched live: test_clients.py
def test_who_opens_the_address_watches_and_plays_on_in_a_copy(small_board: Any, tab: Any) -> None:
    board = small_board
    play(board)
    address = board.url
    (secret,) = [
        cookie["value"] for cookie in board.context.cookies(address) if cookie["name"] == "dojo_browser"
    ]
    for readable in (address, board.content(), board.evaluate("document.cookie")):
        assert secret not in readable

    tab.goto(address.replace("localhost", "127.0.0.1"))
    arrive(tab, 2)
    expect_entries(tab, "Start", f"1. {MOVE}")
    tab.wait_for_selector(".watched >> text=belongs to another browser")
    buttons = tab.locator("button:visible").evaluate_all(
        "(all, refused) => all.filter((b) => refused.includes(b.textContent.trim()))"
        ".map((b) => [b.textContent.trim(), b.disabled, b.title])",
        REFUSED,
    )
    assert {words for words, _, _ in buttons} == set(REFUSED)
    assert all(disabled and "another browser" in title for _, disabled, title in buttons)
    for key in ("u", "Delete", "Backspace"):
        tab.keyboard.press(key)
    tab.fill("input[type=search]", "split_scope s@0 2")
    tab.locator("input[type=search]").press("Enter")
    tab.wait_for_selector(".notice >> text=belongs to another browser")
    tab.fill("input[type=search]", "")

    # what the owner plays is seen at once, and looking around moves nobody else
    play(board, "split_scope s@0 2")
    wait_for_entries(tab, 3)
    tab.click(f".entry >> text=1. {MOVE}")
    tab.wait_for_selector(".entry.here[data-id='1']")
    expect_here(board, 2)

    tab.click("text=Fork: play on from here")
    tab.wait_for_selector(".watched", state="hidden")
    expect_here(tab, 1)
    assert game_in(tab) != game_in(board)
    tab.click("text=Delete from here")
    wait_for_entries(tab, 1)

    board.reload()
    arrive(board, 3)
    expect(board.locator(".watched")).to_be_hidden()
    board.click("text=Take back")
    board.wait_for_selector(".entry.here[data-id='1']")


def test_forged_events_are_refused(common_server: Server) -> None:
    with Wire(common_server.port, Cookie=ANN) as ann:
        ann.event("start", kernel="reducemean", shape="24x16", policy="reassoc")
        ann.event("play", move=MOVE)
        query = urlencode({"g": ann.board["game"]["id"]})
    for cookie in ("", "dojo_browser=" + "0" * 32, "dojo_browser=../../x", "dojo_browser=" + "0" * 1_000):
        with Wire(common_server.port, query, Cookie=cookie) as foreign:
            assert foreign.board["game"]["watching"]
            for kind, fields in (
                ("goto", {"id": 1}), ("delete", {}), ("play", {"move": MOVE}),
                ("drop", {"mode": "skip"}), ("rename", {"title": "mine"}), ("forget", {}), ("take_back", {}),
            ):  # fmt: skip
                foreign.event(kind, **fields)
            assert [node["move"] for node in foreign.board["history"]["nodes"]] == [None, MOVE]
    with Wire(common_server.port, query, Cookie=ANN) as ann:
        assert not ann.board["game"]["watching"] and ann.board["position"]["id"] == 1
        assert [node["move"] for node in ann.board["history"]["nodes"]] == [None, MOVE]


@pytest.mark.thorough  # test_doors.py has links; another visitor: above
def test_a_shared_link_brings_the_line_to_another_visitor(
    small_board: Any, tab: Any, common_server: Server
) -> None:
    board = small_board
    play(board)
    board.emulate_media(color_scheme="dark")
    board.get_by_role("button", name="Share", exact=True).click()
    board.wait_for_selector(".dojo-share[open]")
    ground = "(e) => getComputedStyle(e).backgroundColor"  # the dialogue has the theme of the page
    assert board.eval_on_selector(".dojo-share", ground) == board.eval_on_selector(".stApp", ground)
    board.emulate_media(color_scheme="light")
    shared = board.get_by_role("textbox", name="Link").input_value()
    assert shared.startswith(f"{common_server.other_url}/?g=1.") and len(shared) < 300
    watching = board.get_by_label("For watching").input_value()  # the game itself, as its address has it
    assert game_in(board) and watching == f"{common_server.other_url}/?g={game_in(board)}"
    with board.expect_download() as saved:
        board.get_by_role("button", name="Download .dojo").click()
    assert Path(saved.value.path()).read_text().startswith("dojo game 1\n")
    board.click(".dojo-share >> text=Close")
    board.wait_for_selector(".dojo-share[open]", state="detached")

    tab.goto(shared.replace("localhost", "127.0.0.1"))
    tab.wait_for_selector(".entry")
    wait_for_entries(tab, 2)
    expect(tab.locator(".entry.here")).to_contain_text("join_scopes")
    tab.wait_for_selector("text=Replayed 1 move through the legality checks.")
    expect(tab).not_to_have_url(re.compile(r"g=1\."))
    expect(tab.locator(".watched")).to_be_hidden()
    tab.goto(f"{common_server.url}/?g=1.AAAA")
    tab.wait_for_selector("text=damaged or cut off")


def test_a_shared_link_adds_one_card_and_none_to_others(common_server: Server) -> None:
    with Wire(common_server.port, Cookie=ANN) as ann:
        ann.event("start", kernel="reducemean", shape="24x48", policy="reassoc")
        ann.event("play", move=MOVE)
    game = Game.new(kernels.get("reducemean").program((24, 48)), "reducemean", "24x48")
    game.play(MOVE)
    before, text = games(common_server, ANN), link(game)
    assert text is not None and games(common_server, CAT) == []
    for _ in range(4):
        with Wire(common_server.port, urlencode({"g": text}), Cookie=CAT) as cat:
            assert not cat.board["game"]["watching"] and len(cat.board["history"]["nodes"]) == 2
    assert games(common_server, CAT) == before[:1] and games(common_server, ANN) == before


def test_a_second_tab_of_the_browser_plays_in_the_same_game(common_server: Server) -> None:
    with Wire(common_server.port, Cookie=BEN) as one:
        one.event("start", kernel="reducemean", shape="24x64", policy="reassoc")
        one.event("play", move=MOVE)
        with Wire(common_server.port, urlencode({"g": one.board["game"]["id"]}), Cookie=BEN) as other:
            other.event("take_back")
            assert not other.board["game"]["watching"] and other.board["position"]["id"] == 0


@pytest.mark.thorough  # whose a game is: above, and in test_ownership.py
def test_a_session_that_does_not_know_its_browser_begins_again(page: Any) -> None:
    """As an open page of a Dojo that kept no secret, when its server was started anew."""
    open_means(page)
    play(page)
    page.context.clear_cookies(domain="127.0.0.1")
    with page.expect_event("load"):
        page.click("nav >> text=Library")
    page.click("nav >> text=Play")
    page.wait_for_selector(".watched")  # what it began belongs to the browser that it was
    assert {cookie["name"] for cookie in page.context.cookies(page.url)} >= {
        "dojo_browser",
        "dojo_browser_mark",
    }
