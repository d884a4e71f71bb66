"""What a learner tried at a step, for those who may hear of it (dojo_core/classes)."""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.game import Game
from dojo_core.school.lesson import TRY, Step


@dataclass(frozen=True)
class Attempt:
    """A learner at a step, as it stands.

    ``refused`` is the first move that was asked for and refused, where the step does not ask for it.
    ``astray`` is the first move that was played and led away from the goal: one that the solution does not
    have, nor, once the goal is reached, the line that reached it. ``speed_up`` and ``seconds`` are those of
    the position on the board, where they are known.
    """

    lesson: str
    step: str
    reached: bool = False
    helped: bool = False
    refused: str = ""
    astray: str = ""
    speed_up: float | None = None
    seconds: float | None = None
    game: str = ""  # its id, or the text of a link that holds it (dojo_core/sharing.py)


def asks_for(step: Step, refused: str) -> bool:
    """Is a move to be refused a part of the step?"""
    return TRY + refused in step.solution


def first_astray(step: Step, game: Game, reached: bool) -> str:
    """The first move of a step's game, in the order in which they were played, that leads astray; or ""."""
    led_there = {position.id for position in game.line()} if reached else set()
    for number, position in sorted(game.positions.items()):
        if position.move is None or number in led_there:
            continue
        if str(position.move) not in step.solution:
            return str(position.move)
    return ""
