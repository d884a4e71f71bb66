"""Playing: moves and recipes, one or many, each checked."""

from __future__ import annotations

from typing import Annotated

from dojo_core import recipes
from dojo_core.calls.call import Answer
from dojo_core.calls.desk import Desk
from dojo_core.calls.looking import GameId, told
from dojo_core.calls.registry import call
from dojo_core.service.changes import usable_recipes


@call(changes=True)
def play(
    desk: Desk, game: GameId, moves: Annotated[list[str], "moves or recipes, in order", {"minItems": 1}]
) -> Answer:
    """Play moves or recipes, one after the other; stops at the first that is refused.

    Data: as ``show`` has it.
    """
    table = desk.own(game)
    with table.lock:
        try:
            for move in moves:
                recipes.play(table.game, move, usable_recipes())
        finally:
            desk.service.keep(table)
    return told(table)
