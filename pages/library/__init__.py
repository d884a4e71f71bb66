"""Library: leaderboards, all records, saved games; to the board, in and out, deleting with undo."""

from __future__ import annotations

import streamlit as st

from dojo_core.service import Refused
from pages import shell
from pages.library.actions import deleted, importing
from pages.library.games import games
from pages.library.leaderboards import leaderboards
from pages.library.records import records

VIEWS = {"Leaderboards": leaderboards, "Records": records, "Games": games}


def page() -> None:
    with shell.content():
        left, right = st.columns([5, 1], vertical_alignment="bottom")
        with left:
            shell.head("Library", "What was measured and played: ranked, filtered, opened, taken along.")
        with right:
            importing()
        deleted()
        notice = st.session_state.pop("library_said", None)
        if notice is not None:
            shell.notice(*notice)
        view = st.segmented_control(
            "View", list(VIEWS), default="Leaderboards", key="library_view", label_visibility="collapsed",
            required=True,
        )  # fmt: skip
        try:
            VIEWS[view or "Leaderboards"]()
        except Refused as refusal:
            shell.notice(str(refusal), "error")
