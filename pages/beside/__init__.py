"""A board with a panel beside it, as Learn and Study have them; in a narrow window one at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from dojo_core.service import Player
from pages.board import board, feed
from pages.shared import the_service
from pages.shell import notice

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def beside_board(
    name: str, player: Player, panel: Callable[[], None], called: str, width: str, without: str = ""
) -> None:
    """Draw the player's board with ``panel`` beside it, which the board's tabs name as ``called``.

    ``name``: the page's, which tells its board from others. ``width``: the panel's, in CSS. ``without``: what
    stands there instead while there is no board.
    """
    service = the_service()

    def events_came() -> None:
        sent = (st.session_state.get(f"{name}_board") or {}).get("events")
        if isinstance(sent, dict):  # anybody can write to a WebSocket
            service.handle(player, sent.get("client"), sent.get("events"))

    st.html(f"<style>:root {{ --beside: {width}; }}\n{_STYLE}</style>")
    with st.container(key="beside"):
        left, right = st.columns([3, 7])
        with right:
            if player.table is None:
                notice(without)
            else:
                data = {**service.board(player), "embedded": called, "key": player.key}
                board(key=f"{name}_board", data=data, on_events_change=events_came)
        with left:
            panel()
    with st.container():  # of its own, which is not shown
        feed(key=f"beside_feed_{name}", data=service.feed(player))
