"""Play: one board, and a feed of times while there is something to measure."""

import streamlit as st

from pages.board import board, feed
from pages.shared import the_player, the_service

POLL = 0.5  # seconds
WATCH = 3.0  # while all is measured and the machine is busy with other things

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
    drawn = service.board_version(player)
    data = service.board(player)
    # The board itself keeps the address: only there are a move of the player's and one of the browser's
    # Back told apart (address.js).
    board(key="board", data={**data, "player": player.id}, on_events_change=events_came)

    polling, watching = service.polling(player), service.watching(player)

    def times() -> None:
        going_on = service.polling(player)  # asked before the feed: the last poll brings all there is
        feed(key="feed", data=service.feed(player))
        if (
            service.board_version(player) != drawn
            or polling != going_on
            or watching != service.watching(player)
        ):
            st.rerun()

    st.fragment(run_every=POLL if polling else WATCH if watching else None)(times)()
