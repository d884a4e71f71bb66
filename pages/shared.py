"""What all pages share: the one service of the process."""

import gc
from pathlib import Path

import streamlit as st

from agents.passes import pass_moves
from dojo_core.game import Game
from dojo_core.moves import Move
from dojo_core.service import Player, Service
from dojo_core.service.wiring import open_service

LINES = Path(__file__).parent.parent / "lines"


def advise(game: Game) -> tuple[Move, ...]:
    """What hints say where no measured move is faster."""
    return pass_moves(game, "heuristic")


@st.cache_resource(show_spinner=False)
def the_service() -> Service:
    """Made at the first visit."""
    service = open_service(LINES, advise)
    # What start-up made stays for good: collections need not look at it again.
    gc.collect()
    gc.freeze()
    return service


def the_player() -> Player:
    """Who plays in this tab, the same on all pages. A reload, or another tab, is known by the address."""
    service, state = the_service(), st.session_state
    if "player" not in state:
        state.player = service.newcomer(st.query_params.get("p"), st.query_params.get("g")).id
    player = service.player(state.player, state.get("game"))
    player.account = state.get("account") or ""
    state.game = player.table.game.id if player.table is not None else None
    return player
