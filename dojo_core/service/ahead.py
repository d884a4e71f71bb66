"""Positions that a page has before they are asked for: those beside the one on its board.

A page that has them goes there at once and tells the service afterwards. What a sheet says hangs on the
position alone: it stays right for as long as the game has that position.
"""

from __future__ import annotations

from collections.abc import Callable

from dojo_core.game import Game, GameFull, Position
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Program
from dojo_core.service.analysis import Analysis
from dojo_core.service.board import sheet
from dojo_core.service.players import Table
from dojo_core.service.view import Json

MOST = 4  # of one request: each takes the time of a list of legal moves


def sheets(table: Table, analysis_of: Callable[[Game, Program], Analysis], wanted: object) -> list[Json]:
    """``wanted``: numbers of positions of the game, and texts of moves of the position at its cursor; what is
    neither is passed over. A sheet has the position's ``parent`` and, where a move leads there, its text.

    The table is locked for moments only: what takes time is done beside it.
    """
    found: list[Json] = []
    for each in wanted[:MOST] if isinstance(wanted, list) else []:
        with table.lock:
            game = table.game
            at = _position(game, each)
        if at is None:
            continue
        analysis = analysis_of(game, at.program)
        analysis.prepare()
        with table.lock:
            if at.parent is None or at.parent in game.positions:
                move = None if at.move is None else str(at.move)
                found.append({**sheet(game, at, analysis, dict(table.hues)), "move": move})
    return found


def _position(game: Game, wanted: object) -> Position | None:
    if isinstance(wanted, int):
        return game.positions.get(wanted)
    try:
        return game.after(wanted) if isinstance(wanted, str) else None
    except (IllegalMove, MoveSyntax, NoSuchPlace, GameFull):
        return None
