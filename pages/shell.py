"""What stands around every page: the table of pages, the bar on top, the styles that all share.

A page is a package ``pages/NAME/`` with a function ``page()`` that draws it, and a line in ``PAGES``; it is
served at ``/NAME`` (Play at ``/``). Class, a name that Python keeps for itself, lies in ``pages/classroom/``.
Those without a package are not shown. A page's own content goes into ``content()``; ``go(NAME)`` leaves for
another page. The bar tells of the game, the machine and the queue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import streamlit as st

from dojo_core.files import trouble_text
from dojo_core.measure.compiler import the_compiler
from dojo_core.measure.database import DatabaseFault
from dojo_core.measure.exclusive import waiting
from dojo_core.measure.machine import this_machine
from dojo_core.service import Player
from dojo_core.service.takeaway import file_name
from dojo_core.sharing import link
from dojo_core.spelling import meant
from dojo_core.version import version
from pages.access import browser_mark, secret_in
from pages.bar import bar
from pages.shared import the_library, the_player, the_service
from pages.theme import tokens

log = logging.getLogger("dojo.pages")

FAULT = "The page could not be drawn: a fault of the app, noted in its log. Your game is saved: reload."
FIRST = "play"
LOST = "lost"  # the address's parameter that names what was asked for and is no page (pages/lost.py)
TROUBLES = (DatabaseFault, OSError)  # that a person can mend: a full disk, a folder that may not be written
POLL = 1.0  # seconds, while something is being measured


@dataclass(frozen=True)
class Entry:
    """A line of the table of pages; ``about`` is what the bar says of it."""

    name: str
    title: str
    about: str
    package: str = ""  # where it is not the name

    @property
    def module(self) -> str:
        return f"pages.{self.package or self.name}"


PAGES = (
    Entry("play", "Play", "One game: its program, its moves, their times"),
    Entry("watch", "Watch", "Agents at play"),
    Entry("compare", "Compare", "Programs side by side, measured in turns"),
    Entry("study", "Study", "Games with words: written beside the board, built into pages"),
    Entry("learn", "Learn", "Lessons and puzzles"),
    Entry("class", "Class", "A class that learns together: who is where, what is given", "classroom"),
    Entry("model", "Model", "A model of one's own as kernels: what takes how long, and what to play next"),
    Entry("library", "Library", "Records, leaderboards and saved games"),
    Entry("train", "Train", "PerfLLM: an agent that learns"),
    Entry("tour", "Tour", "A softmax from naive to fast, in five stations"),
)

_MEANT = "address_meant"
_STYLE = Path(__file__).with_name("shell.css").read_text(encoding="utf-8")


def existing() -> tuple[Entry, ...]:
    """The pages that there are."""
    return tuple(entry for entry in PAGES if find_spec(entry.module) is not None)


def _drawn(entry: Entry) -> Callable[[], None]:
    """What draws a page: a fault in it is told in a sentence."""

    def run() -> None:
        try:
            import_module(entry.module).page()
        except TROUBLES as trouble:
            _tell_trouble(trouble)
        except Exception:
            log.exception("the page %s failed", entry.name)
            st.error(FAULT)

    run.__name__ = entry.name
    return run


def run() -> None:
    """Draw the page that the address names, the bar above it."""
    _keep_to_the_address()
    entries = existing()
    named = {entry.name: entry for entry in entries}
    drawn = {
        entry.name: st.Page(
            _drawn(entry),
            title=entry.title,
            url_path="home" if entry.name == FIRST else entry.name,
            default=entry.name == FIRST,
        )
        for entry in entries
    }
    # The first page is served at / alone: its own name leads there too.
    by_its_name = st.Page(_drawn(named[FIRST]), title=drawn[FIRST].title, url_path=FIRST)
    chosen = st.navigation([*drawn.values(), by_its_name], position="hidden")
    current = next((name for name, page in drawn.items() if page is chosen), FIRST)
    st.set_page_config(
        page_title="The Dojo" if current == "play" else f"{chosen.title} · The Dojo",
        page_icon="🥋", layout="wide", initial_sidebar_state="collapsed",
    )  # fmt: skip
    # Each page has a place of its own: of the page before, which stays until this one is drawn, none shows.
    others = f'[data-testid="stLayoutWrapper"]:has(> [class*="st-key-page-"]:not(.st-key-page-{current}))'
    st.html(f"<style>{tokens()}{_STYLE}{others} {{ display: none; }}</style>")
    try:
        _bar(current, drawn)
        _tell_what_was_mended()
        _tell_who_is_lost()
    except TROUBLES as trouble:  # there is no service: records of a newer Dojo, no place to write
        _tell_trouble(trouble)
        return
    places = {entry.name: st.container(key=f"page-{entry.name}") for entry in entries}
    # Not chosen.run(): what a page draws under its own hash, the browser drops as soon as a message names
    # another page, as the answer to a late timer of the page before does; the next timer's answer then finds
    # no place ("Bad delta path"), and the page is dead.
    with places[current]:
        _drawn(named[current])()


def _tell_trouble(trouble: Exception) -> None:
    log.warning("%s", trouble)
    notice(trouble_text(trouble) if isinstance(trouble, OSError) else str(trouble), "error")


def _tell_what_was_mended() -> None:
    """Records that were damaged are told of on every page, until that is closed."""
    mended = the_library().catalogue.notice
    if mended and st.session_state.get("mended_closed") != mended:
        message, close = st.columns([11, 1], vertical_alignment="center")
        with message:
            notice(f"{mended} dojo records-restore lists the back-ups.", "error")
        if close.button("Close", key="mended_close"):
            st.session_state["mended_closed"] = mended
            st.rerun()


def _tell_who_is_lost() -> None:
    """An address that names no page leads to the first one, whose board tells of it."""
    asked = st.query_params.pop(LOST, None)
    if asked:
        near = meant(asked, (entry.name for entry in existing()))
        the_service().say(the_player(), f"There is no page {asked!r}. {near}".rstrip())


def go(name: str) -> None:
    """Leave for another page, in the same session.

    A message of the page before that is under way meanwhile names that page and would call it back: the bar
    is told where the session was to go, and asks for it again.
    """
    st.session_state["going"] = {"n": time.monotonic_ns(), "to": name}
    st.switch_page(st.session_state["pages"][name])


def readdress(**parameters: str | None) -> NoReturn:
    """Change parameters of the address, None takes one away, and draw the page anew.

    A timer of the page before whose message is under way meanwhile has the address of before, and the later
    message's address counts (Streamlit's ``ScriptRequests``): what was meant is remembered, and holds.
    """
    for name, value in parameters.items():
        if value is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = value
    st.session_state[_MEANT] = st.query_params.to_dict()
    st.rerun()


def _keep_to_the_address() -> None:
    """At the start of a run: the address that the run before asked for."""
    meant = st.session_state.pop(_MEANT, None)
    if meant is not None and st.query_params.to_dict() != meant:
        st.query_params.from_dict(meant)


def content() -> Any:
    """The container of a page's own content: not wider than can be read, with space around it."""
    return st.container(key="content")


def head(title: str, about: str) -> None:
    """A page's title and a sentence about it."""
    st.html(f"<h1>{escape(title)}</h1><p class='about'>{escape(about)}</p>")


def _share(player: Player) -> dict[str, Any] | None:
    """What the Share dialog shows: the link's text, or the game's id where that is too long; the file."""
    table = player.table
    if table is None:
        return None
    with table.lock:
        text, file = link(table.game), the_library().game_file(table.game)
        return {
            "n": time.monotonic_ns(),
            "title": table.game.title,
            "moves": len(table.game.line()) - 1,
            "link": text or table.game.id,
            "id": table.game.id,
            "whole": text is not None,
            "name": f"{file_name(table.game.title)}.dojo",
            "file": file,
        }


def facts(words: str) -> None:
    """What was measured, where and how: beside the matter, in small."""
    st.html(f"<p class='facts'>{escape(words)}</p>")


def heading(words: str) -> None:
    """A heading that may hold names."""
    st.html(f"<h2>{escape(words)}</h2>")


def notice(words: str, kind: str = "info") -> None:
    """A sentence that may hold names: text, never markup. ``kind``: info or error."""
    sign = "✕ " if kind == "error" else ""
    st.html(f"<p class='notice {kind}' role='status'>{sign}{escape(words)}</p>")


def tell_of_waiting(key: str) -> None:
    """For a part that polls: whom this app's measuring waits for, where it does, and a way to go on."""
    wait = waiting()
    if wait is None:
        return
    words, button = st.columns([7, 2], vertical_alignment="center")
    with words:
        notice(wait.sentence)
    about = "Beside what runs there, without the lock: such times are marked"
    if button.button("Measure anyway", key=f"{key}_anyway", help=about, width="stretch"):
        wait.measure_anyway()


def _browser() -> str | None:
    """What tells this browser from others; None behind a login, where the account does."""
    if st.session_state.get("account"):
        return None
    return browser_mark(secret_in(st.context.cookies))


def _bar(current: str, drawn: dict[str, Any]) -> None:
    st.session_state["pages"] = drawn
    service = the_service()
    # On Play the board tells of the queue; elsewhere the bar does, as long as there is something to tell.
    telling = current != "play" and service.queue.serves() is not None

    def draw() -> None:
        player = the_player()
        game = player.table.game if player.table is not None else None
        state = service.queue.serves() if current != "play" else None
        queue = "" if state is None else f"Measuring, {service.queue.open_tasks(state)} to go"
        if state is not None and waiting() is not None:
            queue = "Waiting for the measuring lock"
        if service.queue.down and current != "play":
            queue = "The measurer has stopped"
        sharing = st.session_state.pop("sharing", None)
        sent = bar(
            key="bar",
            data={
                "pages": [
                    {
                        "name": entry.name, "title": entry.title, "about": entry.about,
                        "path": "" if entry.name == "play" else entry.name,
                    }
                    for entry in existing()
                ],
                "current": current,
                "version": version(),
                "browser": _browser(),
                "game": "" if game is None or current == "play" else game.title,
                "game_id": "" if game is None else game.id,
                "machine": this_machine().summary,
                "advice": the_compiler().advice,
                "queue": queue,
                "sharing": sharing,
                "going": st.session_state.get("going"),
            },
            on_go_change=lambda: None,
            on_share_change=lambda: st.session_state.update(sharing=_share(the_player())),
        )  # fmt: skip
        if isinstance(sent.get("go"), str) and sent["go"] in drawn and sent["go"] != current:
            st.switch_page(drawn[sent["go"]])
        if telling and state is None:
            st.rerun()

    # A fragment of each page's own: a timer of the page before, still under way, would draw only the bar.
    draw.__qualname__ = f"the bar of {current}"
    st.fragment(run_every=POLL if telling else None)(draw)()
