"""Play: one board, and a feed of times while there is something to measure."""

import logging

import streamlit as st

from pages.board import board, feed
from pages.shared import the_service

log = logging.getLogger("dojo.pages.play")

POLL = 0.5  # seconds

# The page is one screen: Streamlit's own header and paddings would take an eighth of it.
_STYLE = """<style>
[data-testid="stHeader"], [data-testid="stAppIframeResizerAnchor"] { display: none; }
[data-testid="stMainBlockContainer"] { padding: 10px 14px 0; }
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: 0; }
.st-key-feed, [data-testid="stLayoutWrapper"]:has(.st-key-feed) { display: none; }
/* The board says in its own words that the server is gone. */
body:has([data-test-connection-state]:not([data-test-connection-state="CONNECTED"])) [data-testid="stDialog"]
  { display: none; }
[data-stale="true"] { opacity: 1 !important; transition: none !important; }
</style>"""


def _page() -> None:
    service = the_service()
    state = st.session_state
    if "player" not in state:
        # A reload, or another tab: the ids in the address say who this is and which game it was.
        state.player = service.newcomer(st.query_params.get("p"), st.query_params.get("g")).id
    player = service.player(state.player, state.get("game"))
    state.game = player.table.game.id if player.table is not None else None

    def events_came() -> None:
        sent = state["board"].get("events")
        if isinstance(sent, dict):
            service.handle(player, str(sent.get("client", "")), sent.get("events") or [])
        state.game = player.table.game.id if player.table is not None else None

    st.html(_STYLE)
    drawn = service.board_version(player)
    data = service.board(player)
    # The board itself keeps the address: only there are a move of the player's and one of the browser's
    # Back told apart (address.js).
    board(key="board", data={**data, "player": player.id}, on_events_change=events_came)

    polling = service.polling(player)

    def times() -> None:
        going_on = service.polling(player)  # asked before the feed: the last poll brings all there is
        feed(key="feed", data=service.feed(player))
        if service.board_version(player) != drawn or (polling and not going_on):
            st.rerun()

    st.fragment(run_every=POLL if polling else None)(times)()


def page() -> None:
    """What ``st.navigation`` runs."""
    try:
        _page()
    except Exception:
        log.exception("the Play page failed")
        st.error(
            "The page could not be drawn: a fault of the app, noted in its log. Your game is saved: reload."
        )
