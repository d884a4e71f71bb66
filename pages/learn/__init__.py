"""Learn: the list of lessons and puzzles; or a step, its text beside the board; or a review of a game."""

from __future__ import annotations

import atexit
import logging
import secrets
import time
from dataclasses import dataclass

import streamlit as st

from dojo_core.classes.reports import witness
from dojo_core.school.panel import panel
from dojo_core.school.progress import Progress
from dojo_core.school.school import open_school, stamp
from dojo_core.school.tutoring import Tutor, TutoringSession
from dojo_core.service.view import Json
from pages.beside import beside_board
from pages.learn.component import lesson_panel
from pages.shared import the_classes, the_classes_elsewhere, the_owner, the_player, the_service
from pages.shell import go

log = logging.getLogger("dojo.pages.learn")

COOKIE = "dojo_learner"  # who learns in this browser; the panel's script keeps it
PANEL = "clamp(370px, 27vw, 480px)"  # how wide the text is beside the board


@st.cache_resource(show_spinner=False)
def the_tutor() -> Tutor:
    """Made at the first visit: it reads every lesson."""
    progress = Progress()
    progress.keep_backup()
    atexit.register(progress.close)
    tutor = Tutor(the_service(), open_school(), progress)
    tutor.stamp = stamp()
    tutor.witness = witness(the_classes(), the_classes_elsewhere().saw)
    return tutor


@dataclass(frozen=True)
class Lesson:
    """What stands beside the board of a session, as its ``Player.companion``."""

    tutor: Tutor
    session: TutoringSession

    @property
    def secret(self) -> bool:
        return self.session.secret

    @property
    def busy(self) -> bool:
        """Is a review under way?"""
        return self.session.review is not None and not self.session.review.done

    def told(self) -> Json:
        return panel(self.tutor, self.session)


def _learner() -> str:
    """Who learns: known by a cookie that the panel sets; new where there is none that is sound."""
    named = str(st.context.cookies.get(COOKIE, ""))
    return named if named.isalnum() and named.isascii() and 8 <= len(named) <= 40 else secrets.token_hex(8)


def the_session() -> TutoringSession:
    """This tab's session. The address says which step it was at, after a reload."""
    state = st.session_state
    # A player of its own: the game that is open on Play stays there.
    player = the_service().player(f"{the_player().id[:30]}-learn", owner=the_owner())
    if "tutoring" not in state or state.tutoring.player is not player:  # it was forgotten meanwhile
        state.tutoring = TutoringSession(_learner(), player)
        player.companion = Lesson(the_tutor(), state.tutoring)
        _follow_address(state.tutoring)
    session: TutoringSession = state.tutoring
    return session


def _follow_address(session: TutoringSession) -> None:
    asked = st.query_params
    if "review" in asked:
        the_tutor().handle(session, {"kind": "review", "game": asked["review"]})
        if session.review is None:
            session.view = "games"
    elif "lesson" in asked:
        the_tutor().open(session, asked["lesson"], asked.get("step", ""))


def _keep_address(session: TutoringSession) -> None:
    wanted = {"lesson": session.lesson, "step": session.step} if session.view == "step" else {}
    if session.view == "review":
        wanted = {"review": session.reviewed}
    for name in ("lesson", "step", "review"):
        if name in wanted and st.query_params.get(name) != wanted[name]:
            st.query_params[name] = wanted[name]
        elif name not in wanted and name in st.query_params:
            del st.query_params[name]


def _draw_panel(tutor: Tutor, session: TutoringSession) -> None:
    """The panel with its data as they are; beside a board, that one's way to the service tells what comes."""

    def events_came() -> None:
        sent = (st.session_state.get("panel") or {}).get("events")
        if not isinstance(sent, dict):  # anybody can write to a WebSocket
            return
        game = tutor.hear(session, sent.get("client"), sent.get("events"))
        if game is not None:
            st.session_state["for_play"] = game

    data = {**panel(tutor, session), "told": time.time()}
    lesson_panel(key="panel", data=data, on_events_change=events_came)


def _as_it_is_now(tutor: Tutor) -> None:
    """Lessons whose files have changed are read again, seen from the list."""
    latest = stamp()
    if tutor.stamp != latest:
        tutor.school, tutor.stamp = open_school(), latest


def page() -> None:
    tutor, session = the_tutor(), the_session()
    if session.view == "list":
        _as_it_is_now(tutor)
    if "for_play" in st.session_state:
        the_service().seat(the_player(), st.session_state.pop("for_play"))
        go("play")
    _keep_address(session)
    if session.player.table is None:
        with st.container(key="content"):
            _draw_panel(tutor, session)
        return
    beside_board("learn", session.player, lambda: _draw_panel(tutor, session), "Lesson", PANEL)
