"""Saved games: open, fork, export, delete."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dojo_core.game import Game
from dojo_core.ownership import name as owner_name
from dojo_core.service.library import GameCard, when_words
from dojo_core.sharing import Opened
from pages import shell
from pages.library import actions
from pages.library.tables import chosen
from pages.shared import the_library, the_player, the_service


def games() -> None:
    library = the_library()
    the_service().note(the_player())
    words = st.text_input(
        "Search", key="games_words", placeholder="Title, kernel or player", label_visibility="collapsed"
    )
    everybodys = st.toggle(
        "Everybody's games", key="games_all", help="Also those of other browsers: to watch and fork."
    )
    cards = library.games(words.strip(), None if everybodys else the_player().owner)
    if not cards:
        message = "No game fits." if words else "No game with moves is saved yet: what you play is kept here."
        shell.notice(message)
        return
    cells = [_cells(card) for card in cards]
    if not any(card.claim for card in cards):
        for cell in cells:
            cell.pop("Claim")
    place = st.container()
    picked = [cards[at] for at in chosen(cells, [card.id for card in cards], "games", "Saved games")]
    with place:
        _actions(picked)


def _cells(card: GameCard) -> dict[str, Any]:
    return {
        "Title": card.title,
        "Kernel": card.kernel or "own text",
        "Shape": card.shape,
        "Moves": card.moves,
        "Best": card.best,
        "Claim": card.claim,
        "Who": "you" if card.player == the_player().owner else owner_name(card.player),
        "Last played": when_words(card.updated),
    }


def _opened(card: GameCard) -> Opened:
    """The game at the end of its main line."""
    game = Game.from_text(the_service().game_text(card.id))
    game.goto(game.main_line(0)[-1].id)
    return Opened(game)


def _actions(cards: list[GameCard]) -> None:
    library, one = the_library(), cards[0] if len(cards) == 1 else None
    with st.container(horizontal=True, vertical_alignment="center", key="games-actions"):
        if st.button("Open on the board", disabled=one is None, type="primary", key="games-open") and one:
            actions.to_board(one.id)
        if st.button("Fork", disabled=one is None, key="games-fork", help="Play on in a copy.") and one:
            actions.to_board(the_service().fork(one.id, the_player().owner))
        st.download_button(
            ".dojo file", lambda: library.saved_file(cards[0].id)[1], "game.dojo", "text/plain",
            disabled=one is None, key="games-dojo", on_click="ignore", help="The whole game as a text.",
        )  # fmt: skip
        actions.c_file(lambda: _opened(cards[0]), one is None, "games")
        actions.archive(lambda: [_opened(card) for card in cards], not cards, "games")
        if st.button("Delete", disabled=not cards, key="games-delete"):
            actions.delete(lambda: library.delete_games([card.id for card in cards], the_player().owner))
            st.rerun()
        actions.tell_chosen(len(cards))
