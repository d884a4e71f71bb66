"""What calls say alike: a call as it is written, what to ask next, pages, times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypeVar

from dojo_core.calls.call import CallFault
from dojo_core.game import Game, Position
from dojo_core.service.queue import Outcome
from dojo_core.targets.registry import backend

LINE, LINES = 240, 200  # characters of a line of a text, lines of a page of it

GameId = Annotated[str, "id of a game, as open and games tell it", {"maxLength": 40}]
At = Annotated[
    int | None, "number of a position; without it the one where the game stands", {"maximum": 10**6}
]
Page = Annotated[int, "page, counted from 1", {"minimum": 1, "maximum": 10_000}]

Entry = TypeVar("Entry")


def written(name: str, /, **arguments: object) -> str:
    """A call as it is written: ``play(game="…", moves=["…"])``."""
    told = (f"{each}={json.dumps(value, ensure_ascii=False)}" for each, value in arguments.items())
    return f"{name}({', '.join(told)})"


def ended(lines: Sequence[str], following: Sequence[str]) -> str:
    """Lines as a text that ends with the calls that help most now."""
    return "\n".join([*lines, f"Next: {'; '.join(following)}"] if following else lines)


def paged(entries: Sequence[Entry], page: int, size: int) -> tuple[Sequence[Entry], int]:
    """The entries of a page, and how many pages there are: one at least. Raises CallFault."""
    pages = max(1, -(-len(entries) // size))
    if page > pages:
        raise CallFault(f"There is no page {page}: the last one is {pages}.", "not_found")
    return entries[(page - 1) * size : page * size], pages


def shortened_line(line: str) -> str:
    return line if len(line) <= LINE else f"{line[:LINE]} …"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def position_of(game: Game, at: int | None) -> Position:
    """A position by its number, or where the game stands. Raises CallFault."""
    number = game.cursor if at is None else at
    if number not in game.positions:
        raise CallFault(
            f"There is no position {number} in this game: {written('goto', game=game.id)} shows its tree.",
            "not_found",
        )
    return game.positions[number]


def ply(game: Game, position: int) -> int:
    """How many moves lead to a position."""
    return len(game.line(position)) - 1


def number_text(target: str, seconds: float) -> str:
    """A target's number as a person reads it: ``1.83 ms``, or ``12,345 cycles``."""
    return backend(target).clock().text(seconds)


def outcome_text(target: str, outcome: Outcome | None) -> str:
    """What is known of a program's time: a number, or why it has none."""
    if outcome is None:
        return "not measured"
    if outcome.ok:
        return number_text(target, outcome.seconds)
    why = f": {outcome.message[:280].rstrip('. ')}" if outcome.message else ""
    return f"{outcome.status.replace('_', ' ')}{why}"
