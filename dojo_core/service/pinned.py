"""A position that was pinned: its texts, which a page compares with those on the board, and its time."""

from __future__ import annotations

from dojo_core.service.analysis import Analysis
from dojo_core.service.feed import speed_view
from dojo_core.service.players import Pinned, Player, Table
from dojo_core.service.queue import MeasuringQueue
from dojo_core.service.view import Json
from dojo_core.targets.registry import backend


def at_cursor(table: Table, analysis: Analysis) -> Pinned:
    """The position on the board, pinned. The table is locked."""
    position, moves = table.game.current, [str(each.move) for each in table.game.line()[1:]]
    name = f"{len(moves)}. {position.move}" if moves else "Start"
    return Pinned(table, position.id, name, "\n".join(moves), analysis)


def texts(player: Player) -> Json | None:
    """The three texts of what is pinned: the program as lines, C and assembly as the board's own."""
    pinned = player.pinned
    if pinned is None:
        return None
    game, analysis = pinned.table.game, pinned.analysis
    return {
        "game": game.id, "title": game.title, "id": pinned.number, "name": pinned.name,
        "hash": analysis.program.hash,
        "program": analysis.program.text.splitlines(),
        "code": analysis.code_view,
        "assembly": analysis.assembly if player.assembly else None,
    }  # fmt: skip


def times(player: Player, table: Table, queue: MeasuringQueue) -> Json | None:
    """The time of what is pinned, None while it has none, and how fast the ``board``'s program, told by its
    hash, is against it, where both are of one start program: in turns, once both were timed so. The table is
    locked."""
    pinned = player.pinned
    if pinned is None or pinned.table.key != table.key:
        return None
    before, now = pinned.analysis.program.hash, table.game.current.program.hash
    outcome = queue.results(table.key, [before])[0]
    speed = queue.speeds(table.key, now, [before], backend(table.game.target).clock().steady)[0]
    return {
        "board": now,
        "seconds": outcome.seconds if outcome is not None and outcome.ok else None,
        "speed": None if speed is None else speed_view(speed.inverse),
    }
