"""Events that change a game or its cursor, and what removing a move would do."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from dojo_core.actions import playing
from dojo_core.game import Game, Position
from dojo_core.service.refused import Refused
from dojo_core.service.view import Json
from dojo_core.wording import counted

log = logging.getLogger(__name__)


def change(game: Game, kind: str, event: Json) -> None:
    """Apply one event. What cannot be done from here, such as taking back at the start, does nothing.

    Raises IllegalMove, MoveSyntax or GameFull.
    """
    at_start = game.current.parent is None
    match kind:
        case "play":
            refused = playing.play(game, [str(event.get("move", ""))]).refused
            if refused is not None:
                raise refused
        case "take_back":
            game.back()
        case "goto":
            number = event.get("id")
            if isinstance(number, int) and number in game.positions:
                game.goto(number)
        case "step":
            step(game, str(event.get("to", "")))
        case "promote":
            game.promote(game.cursor)
        case "drop":
            if not at_start and event.get("mode") in ("skip", "prefix"):
                game.drop(game.cursor, skip_invalid=event["mode"] == "skip")
        case _:
            log.warning("unknown event %r", kind)


def step(game: Game, to: str) -> None:
    """Move the cursor: ``first``, ``back``, ``forward``, ``last``, or to the next ``branch``."""
    current = game.current
    children = current.children
    match to:
        case "first":
            game.goto(0)
        case "back":
            game.back()
        case "forward":
            game.forward()
        case "last":
            game.goto(game.main_line()[-1].id)
        case "branch":
            siblings = [] if current.parent is None else game.positions[current.parent].children
            if len(siblings) > 1:
                game.goto(siblings[(siblings.index(current.id) + 1) % len(siblings)])
            elif len(children) > 1:
                game.goto(children[1])


@dataclass(frozen=True)
class Deleted:
    """A move and all that followed it, kept so that deleting them can be undone."""

    parent: int
    place: int  # among the parent's children
    positions: dict[int, Position]
    cursor: int

    @property
    def words(self) -> str:
        first = next(iter(self.positions.values()))
        more = len(self.positions) - 1
        rest = f" and {counted(more, 'later move')}" if more else ""
        return f"Deleted {first.move}{rest}."


def delete(game: Game) -> Deleted:
    """Delete the current move and all that was played after it. Raises Refused at the start."""
    current = game.current
    if current.parent is None:
        raise Refused(f"{playing.AtStart()} There is nothing to delete.")
    inside = [current.id]
    for each in inside:
        inside.extend(game.positions[each].children)
    removed = {number: game.positions[number] for number in inside}
    place = game.positions[current.parent].children.index(current.id)
    game.delete(current.id)
    return Deleted(current.parent, place, removed, current.id)


def restore(game: Game, deleted: Deleted) -> None:
    """Undo ``delete``. Raises Refused where moves played since stand in the way."""
    if deleted.parent not in game.positions or deleted.positions.keys() & game.positions.keys():
        raise Refused("The game has changed since: the deleted moves cannot come back.")
    game.positions.update(deleted.positions)
    game.positions[deleted.parent].children.insert(deleted.place, next(iter(deleted.positions)))
    game.cursor = deleted.cursor


def removal(game: Game) -> Json:
    """What removing the current move would do, tried on a copy of the game."""
    current = game.current
    if current.parent is None:
        raise Refused(f"{playing.AtStart()} There is nothing to remove.")
    replay = copied(game).drop(current.id, skip_invalid=True)
    entries = [
        {"move": e.move, "outcome": e.outcome, "new": e.new, "reason": e.reason} for e in replay.entries
    ]
    return {"move": str(current.move), "entries": entries}


def copied(game: Game) -> Game:
    """A game to try things on: positions of its own, the same programs."""
    positions = {p.id: replace(p, children=list(p.children)) for p in game.positions.values()}
    return replace(game, positions=positions)
