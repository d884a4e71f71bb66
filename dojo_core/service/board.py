"""The board: what stands on it, the start screen or a position with its moves and history."""

from __future__ import annotations

from dataclasses import asdict

from dojo_core import plugins
from dojo_core.actions.playing import usable_recipes
from dojo_core.faults import program_doubt
from dojo_core.game import Game, Position
from dojo_core.ownership import watching
from dojo_core.program.tree import Provenance
from dojo_core.school.daily import daily
from dojo_core.service import saved_games
from dojo_core.service.analysis import Analysis
from dojo_core.service.games import POLICIES, Games, policies, targets
from dojo_core.service.players import Player, Table
from dojo_core.service.view import Json, commands, difference, history, program_lines
from dojo_core.targets.registry import backend


def start_screen(games: Games, player: Player) -> Json:
    """Cards of the kernels, saved games, recorded lines, the puzzle of the day, packages that cannot be used;
    the player's errors are of what was tried last, the draft is of the text that is being typed."""
    groups: dict[str, list[Json]] = {}
    for card in games.cards():
        groups.setdefault(card.group, []).append(
            {
                "name": card.name,
                "formula": card.formula,
                "shape": card.shape,
                "dims": card.dims,
                "layers": card.layers,
            }
        )
    lines = [
        {
            "file": file,
            "title": line.title,
            "kernel": line.kernel,
            "shape": line.shape,
            "moves": len(line.moves),
            "policy": line.policy,
            "lacks": line.lacks(),
        }
        for file, line in games.recorded()
    ]
    return {
        "groups": [{"name": name, "kernels": kernels} for name, kernels in groups.items()],
        "policies": [
            {"name": name, "words": words, "sentence": sentence} for name, words, sentence in POLICIES
        ],
        "targets": [
            {
                "name": name,
                "words": words,
                "sentence": sentence,
                "shapes": games.shapes(name),
                "policies": [policy for policy, *_ in policies(name)],
            }
            for name, words, sentence in targets()
        ],
        "games": [
            {
                **card,
                "yours": games.may_change(game.player, player.owner),
                "taken": games.may_take_over(game.player, player.owner),
            }
            for game in games.recent(saved_games.LISTED, player.owner)
            for card in saved_games.cards([game])
        ],
        "lines": lines,
        "daily": asdict(puzzle) if (puzzle := daily()) is not None else None,
        "faults": plugins.all_faults(),
        "errors": player.errors,
        "draft": player.draft,
    }


def rules(game: Game) -> list[list[str]]:
    """What holds in a game, its arithmetic and its target: some words for each, and a sentence."""
    policy = next([words, about] for name, words, about in POLICIES if name == game.policy)
    on = backend(game.target).words
    return [policy, [on.title, on.about]]


def sheet(
    game: Game, at: Position, analysis: Analysis, hues: dict[Provenance, int], listed: bool = True
) -> Json:
    """What is the same of a position whenever it stands on the board: its texts and its moves; the code and
    the moves are None unless ``listed``. The table is locked."""
    program = program_lines(at.program, hues)
    program["diff"], program["added"], program["since_start"] = [], [], []
    if at.parent is not None:
        program["since_start"] = difference(game.start.text, at.program.text)
        program["diff"] = difference(game.positions[at.parent].program.text, at.program.text)
        program["added"] = [line for mark, line in program["diff"] if mark == "+"]
    return {
        "position": {"id": at.id, "parent": at.parent, "hash": at.program.hash},
        "program": program,
        "code": analysis.code_view if listed else None,
        "moves": analysis.rows if listed else None,
        "blocked": analysis.known_blocked,
        "enablers": analysis.known_blocked is not None,
    }


def position(
    player: Player, table: Table, analysis: Analysis, taken: bool = False, listed: bool = True
) -> Json:
    """The position at the cursor; ``taken``: may the player take the game over? ``listed`` as above. The
    table is locked."""
    game = table.game
    clock, words = backend(game.target).clock(), backend(game.target).words
    return {
        "game": {
            "id": game.id, "title": game.title, "kernel": game.kernel, "shape": game.shape,
            "policy": game.policy, "target": game.target, "rules": rules(game),
            "profiled": clock.kind == "measured",
            "timed": clock.timed, "counts": clock.counts, "unit": clock.unit, "steady": clock.exact,
            "code": words.code, "play": words.play,
            "by": table.by, "changes": table.changes,
            "doubt": "" if game.kernel else program_doubt(game.start) or "",
            "watching": "" if table.source is None else watching(table.owner),
            "client": table.client, "taken": taken,
        },
        **sheet(game, game.current, analysis, table.hues, listed),
        "assembly": analysis.assembly if player.assembly else None,
        "profile": analysis.profile if player.profile else None,
        "profiling": player.profile,
        "history": history(game),
        "drop": player.drop,
        "measuring": player.measuring,
        "paused": sorted(player.paused),
        "commands": commands(usable_recipes()),
    }  # fmt: skip
