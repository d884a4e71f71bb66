"""The board: what stands on it, the start screen or a position with its moves and history."""

from __future__ import annotations

import time
from datetime import datetime

from dojo_core.service.analysis import Analysis
from dojo_core.service.games import POLICIES, Games
from dojo_core.service.players import Player, Table
from dojo_core.service.view import Json, commands, difference, history, program_lines


def start_screen(games: Games, error: str) -> Json:
    """Cards of the kernels, saved games, recorded lines; ``error`` belongs to the text last tried."""
    groups: dict[str, list[Json]] = {}
    for card in games.cards():
        groups.setdefault(card.group, []).append(
            {"name": card.name, "formula": card.formula, "shape": card.shape, "dims": card.dims}
        )
    recent = [
        {"id": game, "title": title, "moves": moves_in(text), "when": when(changed)}
        for game, title, text, changed in games.recent(4)
    ]
    lines = [
        {"file": file.name, "title": f"{file.stem}: a recorded line", "words": "step through it"}
        for file in games.line_files()
    ]
    return {
        "groups": [{"name": name, "kernels": kernels} for name, kernels in groups.items()],
        "policies": [{"name": name, "sentence": sentence} for name, sentence in POLICIES],
        "recent": recent,
        "lines": lines,
        "error": error,
    }


def position(player: Player, table: Table, analysis: Analysis) -> Json:
    """The position at the cursor. The table is locked."""
    game = table.game
    here = game.current
    program = program_lines(here.program, table.hues)
    program["diff"], program["added"] = [], []
    if here.parent is not None:
        program["diff"] = difference(game.positions[here.parent].program.text, here.program.text)
        program["added"] = [line for mark, line in program["diff"] if mark == "+"]
    return {
        "game": {
            "id": game.id, "title": game.title, "kernel": game.kernel, "shape": game.shape,
            "policy": game.policy, "target": game.target,
        },
        "position": {"id": here.id, "parent": here.parent, "hash": here.program.hash},
        "program": program,
        "code": analysis.code_view,
        "assembly": analysis.assembly if player.assembly else None,
        "moves": analysis.rows,
        "blocked": analysis.known_blocked,
        "enablers": analysis.known_blocked is not None,
        "history": history(game),
        "drop": player.drop,
        "measuring": player.measuring,
        "commands": commands(),
    }  # fmt: skip


def moves_in(text: str) -> int:
    """How many moves a saved game's text has, without replaying it."""
    _, _, moves = text.partition("\nmoves:\n")
    return len(moves.splitlines())


def when(seconds: float) -> str:
    """A time as people say it, for the list of saved games."""
    ago = time.time() - seconds
    if ago < 90:
        return "just now"
    if ago < 5400:
        return f"{round(ago / 60)} minutes ago"
    if ago < 129600:
        return f"{round(ago / 3600)} hours ago"
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d")
