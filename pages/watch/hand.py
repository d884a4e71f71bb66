"""From an agent's hands into a player's: a position becomes a variation of its game, and Play opens on it."""

from __future__ import annotations

import secrets

from agents.jobs import JobSpec
from dojo_core.game import Game, GameFull
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.expressions import TextError
from dojo_core.service import Refused
from pages.shared import the_player, the_service


class NotOpened(ValueError):
    """A sentence for the person who asked."""


def opened(spec: JobSpec, moves: tuple[str, ...]) -> str:
    """Put a position on this tab's board: as a variation of the run's game, or of a copy where that is gone
    or somebody else's.

    The game's id. Raises NotOpened.
    """
    service, owner = the_service(), the_player().owner
    try:
        try:
            game = spec.saved
            service.branch(game, spec.at, moves, owner, go=True)
        except Refused:  # a recording from elsewhere, or a game that was deleted, or is somebody else's
            copy = Game.from_text(spec.game)
            for move in moves:
                copy.play(move)
            game = service.take_in(copy, owner, once=True)
    except (IllegalMove, MoveSyntax, GameFull, TextError, Refused) as fault:
        raise NotOpened(f"This position cannot be played on: {fault}") from fault
    sit(game)
    return game


def sit(game: str) -> None:
    """This tab's player opens a saved game."""
    event = {"seq": 1, "kind": "open", "game": game}
    the_service().handle(the_player(), f"watch-{secrets.token_hex(4)}", [event])
