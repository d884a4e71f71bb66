"""Play: one board. It speaks with the service past this script (pages/door.py), which draws it once."""

import streamlit as st

from pages.board import board, feed
from pages.shared import the_player, the_service

_STYLE = """<style>
.st-key-feed, [data-testid="stLayoutWrapper"]:has(> [data-testid="stVerticalBlock"] > .st-key-feed)
  { display: none; }
/* The board says in its own words that the server is gone. */
body:has([data-test-connection-state]:not([data-test-connection-state="CONNECTED"])) [data-testid="stDialog"]
  { display: none; }
</style>"""


def page() -> None:
    service = the_service()
    state = st.session_state
    player = the_player()

    def events_came() -> None:
        sent = (state.get("board") or {}).get("events")  # nothing where the tab has just left for a page
        if isinstance(sent, dict):  # anybody can write to a WebSocket
            service.handle(player, sent.get("client"), sent.get("events"))
        state.game = player.table.game.id if player.table is not None else None

    st.html(_STYLE)
    # The board itself keeps the address: only there are a move of the player's and one of the browser's
    # Back told apart (address.js).
    data = {**service.board(player), "key": player.key}
    board(key="board", data=data, on_events_change=events_came)
    with st.container():  # of its own, which is not shown
        feed(key="feed", data=service.feed(player))
