"""What stands in a game: its program, its code, its moves, and why a move is legal or not."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.registry import call
from dojo_core.service.players import Table

GameId = Annotated[str, "id of a game"]
At = Annotated[int | None, "number of a position of the game; without it the one where the game stands"]


def told(table: Table) -> Answer:
    """The position where a game stands: its program, and what to ask next."""
    with table.lock:
        game = table.game
        program = game.current.program
        data = {
            "game": game.id, "title": game.title, "target": game.target, "policy": game.policy,
            "position": game.cursor, "ply": len(game.line()) - 1, "program": program.text,
        }  # fmt: skip
        following = (f'moves(game="{game.id}")', f'measure(game="{game.id}")')
        text = f"Game {game.id}: {game.title}, position {game.cursor}.\n{program.text}\nNext: {', '.join(following)}."
        return Answer(text, data, following)


@call()
def show(
    desk: Desk, game: GameId, what: Annotated[Literal["program", "code"], "which text"] = "program"
) -> Answer:
    """The program or the generated code of a position.

    Data: ``program``, the text.
    """
    table = desk.table(game)
    if what == "program":
        return told(table)
    with table.lock:
        view = desk.service.attention.analysis(table.game, table.game.current.program).code_view
    if "error" in view:
        raise CallFault(view["error"], "refused")
    text = "\n".join(line["text"] for line in view["lines"])
    return Answer(text, {"game": game, "code": text})


@call()
def moves(
    desk: Desk, game: GameId, find: Annotated[str, "only those with this in their text"] = ""
) -> Answer:
    """The legal moves of a position, by kind.

    Data: ``moves``: their texts; ``kinds``: how many of each kind.
    """
    table = desk.table(game)
    with table.lock:
        analysis = desk.service.attention.analysis(table.game, table.game.current.program)
    listed = [move for move in analysis.moves if find in str(move)]
    kinds = Counter(move.name for move in listed)
    texts = [str(move) for move in listed]
    return Answer("\n".join(texts), {"game": game, "moves": texts, "kinds": dict(kinds)})
