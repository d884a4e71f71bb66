"""What calls say alike: a call as it is written, what to ask next, pages, times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypeVar

from dojo_core.actions.timing import number_text
from dojo_core.calls.call import CallFault
from dojo_core.game import Game, NoSuchPosition, Position
from dojo_core.service.queue import Outcome

LINE, LINES = 240, 200  # characters of a line of a text, lines of a page of it

READING = """A line of a program is an operation behind the sizes of the loops (scopes) around it, outermost
first; a bar stands for a loop that is the one of the line above. {0} is the index of the outermost loop, :v
behind a size makes it vectors, :p threads, :u unrolled; heap, stack and register are where a buffer lies. y@1
names the loop at depth 1 around the first operation that writes y, y#1@0 the outermost around the second,
y the operation itself."""

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


def position_of(game: Game, at: int | None) -> Position:
    """A position by its number, or where the game stands. Raises CallFault."""
    try:
        return game.at(at)
    except NoSuchPosition as fault:
        raise CallFault(f"{fault} {written('goto', game=game.id)} shows its tree.", "not_found") from fault


def ply(game: Game, position: int) -> int:
    """How many moves lead to a position."""
    return len(game.line(position)) - 1


def outcome_text(target: str, outcome: Outcome | None) -> str:
    """What is known of a program's time: a number, or why it has none."""
    if outcome is None:
        return "not measured"
    if outcome.ok:
        return number_text(target, outcome.seconds)
    why = f": {outcome.message[:280].rstrip('. ')}" if outcome.message else ""
    return f"{outcome.status.replace('_', ' ')}{why}"
