"""Study: the studies that are written here; or one of them, its words beside the board (docs/studies.md)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st

from dojo_core.game import Game
from dojo_core.measure.places import data_directory
from dojo_core.service import Player
from dojo_core.service.view import Json
from dojo_core.study.authoring import Author, AuthoringSession
from dojo_core.study.folder import Studies, folder_of
from dojo_core.study.panel import panel
from pages.access import is_private
from pages.beside import beside_board
from pages.shared import the_owner, the_player, the_service
from pages.study.component import study_editor

PANEL = "clamp(370px, 30vw, 560px)"  # how wide the words are beside the board
UNREAD = "The board stands here once the text can be read."


@st.cache_resource(show_spinner=False)
def the_author() -> Author:
    return Author(the_service())


@dataclass(frozen=True)
class Writing:
    """What stands beside the board of a session, as its ``Player.companion``."""

    author: Author
    session: AuthoringSession

    @property
    def secret(self) -> bool:
        return False

    @property
    def busy(self) -> bool:
        """Is a page being built, or are times being taken?"""
        return self.session.busy

    def told(self) -> Json:
        return panel(self.author, self.session)


def _copy_of(player: Player) -> Game | None:
    """The game on a player's board, once more."""
    table = player.table
    if table is None:
        return None
    with table.lock:
        return Game.from_text(table.game.to_text())


def the_session() -> AuthoringSession:
    """This tab's session. The address says which study it had open, after a reload."""
    state = st.session_state
    # A player of its own: the game that is open on Play stays there.
    playing = the_player()
    player = the_service().player(f"{playing.id[:30]}-study", owner=the_owner())
    if "authoring" not in state or state.authoring.player is not player:  # it was forgotten meanwhile
        studies = Studies(folder_of(data_directory(), the_owner(), is_private()))
        state.authoring = AuthoringSession(player, studies, lambda: _copy_of(the_player()))
        player.companion = Writing(the_author(), state.authoring)
        if "study" in st.query_params:
            event = {"kind": "open", "name": st.query_params["study"]}
            the_author().handle(state.authoring, "", event)
        elif "begin" in st.query_params:
            the_author().handle(state.authoring, "", {"kind": "begin"})
    session: AuthoringSession = state.authoring
    session.played = lambda: _copy_of(playing)
    return session


def _keep_address(session: AuthoringSession) -> None:
    st.query_params.pop("begin", None)
    if not session.name:
        st.query_params.pop("study", None)
    elif st.query_params.get("study") != session.name:
        st.query_params["study"] = session.name


def _draw_panel(author: Author, session: AuthoringSession) -> None:
    """The panel with its data as they are; beside a board, that one's way to the service tells what comes."""

    def events_came() -> None:
        sent = (st.session_state.get("study_editor") or {}).get("events")
        if isinstance(sent, dict):  # anybody can write to a WebSocket
            author.hear(session, sent.get("client"), sent.get("events"))

    data = {**panel(author, session), "told": time.time()}
    study_editor(key="study_editor", data=data, on_events_change=events_came)


def page() -> None:
    author, session = the_author(), the_session()
    _keep_address(session)
    if not session.name:
        with st.container(key="content"):
            _draw_panel(author, session)
        return
    beside_board("study", session.player, lambda: _draw_panel(author, session), "Words", PANEL, UNREAD)
