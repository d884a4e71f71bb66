"""Playing: moves and recipes, one or many, each checked; and back."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dojo_core import recipes
from dojo_core.game import Game, GameFull, Position
from dojo_core.moves import IllegalMove, Move, MoveSyntax
from dojo_core.recipes import Recipe

log = logging.getLogger(__name__)


class AtStart(ValueError):
    """There is no move to take back or away; ``str()`` is a sentence."""

    def __init__(self, sentence: str = "This is the start, which no move has led to.") -> None:
        super().__init__(sentence)


@dataclass(frozen=True)
class Played:
    """A text that was played: the moves that it came to, and the number of the position after it."""

    text: str
    moves: tuple[Move, ...]
    position: int


@dataclass(frozen=True)
class PlayedLine:
    """How far several came; ``refused`` is why the next one was not played, None where all were."""

    played: tuple[Played, ...]
    refused: IllegalMove | MoveSyntax | GameFull | None


def usable_recipes() -> dict[str, Recipe]:
    """The recipes that may be typed; a file of a user's own that is none is told in the log."""
    return recipes.known_recipes(lambda file, fault: log.warning("%s is no recipe: %s", file, fault))


def play(game: Game, texts: Sequence[str], known: Mapping[str, Recipe] | None = None) -> PlayedLine:
    """Play moves and recipes at the game's cursor, in order, up to the first that is refused; of a recipe all
    moves or none. ``known``: other recipes than those that may be typed."""
    usable = usable_recipes() if known is None else known
    played: list[Played] = []
    for text in texts:
        try:
            moves = recipes.play(game, text, usable)
        except (IllegalMove, MoveSyntax, GameFull) as refused:
            return PlayedLine(tuple(played), refused)
        played.append(Played(text, moves, game.cursor))
    return PlayedLine(tuple(played), None)


def take_back(game: Game, count: int = 1) -> Position:
    """Go back by some moves, as far as the start; they stay as a variation. Raises AtStart there."""
    if game.current.parent is None:
        raise AtStart
    line = game.line()
    return game.goto(line[max(0, len(line) - 1 - count)].id)
