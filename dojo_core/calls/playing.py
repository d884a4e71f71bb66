"""Playing: moves and recipes, one or many, each checked; back and forth in the tree of what was played."""

from __future__ import annotations

from typing import Annotated

from dojo_core import described
from dojo_core.actions import playing
from dojo_core.calls import answers
from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.looking import told
from dojo_core.calls.registry import call
from dojo_core.calls.words import (
    GameId,
    ended,
    outcome_text,
    ply,
    position_of,
    shortened_line,
    written,
)
from dojo_core.faults import shortened
from dojo_core.game import Game
from dojo_core.moves import IllegalMove
from dojo_core.service.view import Json, difference, history
from dojo_core.wording import counted

CHANGED = 40  # lines of what moves changed
SHOWN = 80  # positions of a tree


@call(answers.Played, changes=True)
def play(
    desk: Desk,
    game: GameId,
    moves: Annotated[
        list[str],
        "moves or recipes as they are written, in order",
        {"minItems": 1, "items": {"type": "string", "maxLength": 500}},
    ],
    at: Annotated[
        int | None, "position to play from; without it the one where the game stands", {"maximum": 10**6}
    ] = None,
) -> Answer:
    """Play moves or recipes, one after the other; stops at the first that is refused and says how far it
    came.

    Where others were played before, they become a variation. Refused at the first one, nothing has
    changed. Data: ``game``, ``position``, ``ply``; ``played``: of each its ``move`` as it was given, the
    ``moves`` that it came to and the ``position`` after it; ``stopped``, null where all were played: the
    ``move``, a ``sentence``, and the ``refusal`` as ``why`` tells it; ``changed``: lines that went
    (``-``) and came (``+``).
    """
    table = desk.own(game)
    stopped: Json | None = None
    with table.lock:
        position = position_of(table.game, at)
        stood, before = table.game.cursor, position.program.text
        table.game.goto(position.id)
        line = playing.play(table.game, moves)
        fault = line.refused
        if fault is not None:
            if not line.played:
                table.game.goto(stood)
                raise fault
            refused = described.refusal(fault.refusal) if isinstance(fault, IllegalMove) else None
            text = moves[len(line.played)]
            stopped = {"move": text, "sentence": shortened(str(fault)), "refusal": refused}
        desk.service.keep(table)
        at_last, target = table.game.current, table.game.target
        number, program = ply(table.game, at_last.id), at_last.program
    played = [
        {"move": each.text, "moves": [str(move) for move in each.moves], "position": each.position}
        for each in line.played
    ]
    changed = difference(before, program.text, context=False)
    (outcome,) = desk.service.known(table, [program.hash])
    count = f"{len(played)} of {len(moves)}" if len(moves) > 1 else "it"
    lines = [
        f"Played {count}: position {at_last.id}, {counted(number, 'move')} from the start, "
        f"{outcome_text(target, outcome)}."
    ]
    lines += [shortened_line(f"{mark} {line}") for mark, line in changed[:CHANGED]]
    if len(changed) > CHANGED:
        lines.append(f"… {len(changed) - CHANGED} more lines: {written('show', game=game)}")
    following = [written("measure", game=game), written("moves", game=game), written("show", game=game)]
    if stopped is not None:
        at_move = f"{len(played) + 1} of {len(moves)}, {shortened_line(stopped['move'])}"
        lines.append(f"Stopped at move {at_move}. {stopped['sentence']}")
        following = [written("moves", game=game), written("measure", game=game)]
    data = {
        "game": game, "position": at_last.id, "ply": number, "played": played, "stopped": stopped,
        "changed": [f"{mark}{line}" for mark, line in changed],
    }  # fmt: skip
    return Answer(ended(lines, following), data, tuple(following))


@call(answers.Standing, changes=True)
def take_back(
    desk: Desk,
    game: GameId,
    count: Annotated[int, "how many moves", {"minimum": 1, "maximum": 500}] = 1,
) -> Answer:
    """Take moves back: the game stands where it stood before them; they stay as a variation.

    Data: as ``open`` has it.
    """
    table = desk.own(game)
    with table.lock:
        try:
            playing.take_back(table.game, count)
        except playing.AtStart as start:
            words = f"{start} {written('moves', game=game)} tells what can be played."
            raise CallFault(words, "refused") from start
        desk.service.keep(table)
    return told(desk, table)


@call(answers.StandingOrTree, changes=True)
def goto(
    desk: Desk,
    game: GameId,
    position: Annotated[
        int | None, "number of a position; without it only the tree is told", {"maximum": 10**6}
    ] = None,
) -> Answer:
    """Go to a position of a game; or, without one, tell its tree: all positions, variations, and their
    times.

    Data: as ``open`` has it. Of the tree: ``game``, ``position``, and ``tree``: of each position its
    ``position``, ``parent``, ``move``, ``ply``, ``variation`` (is it beside the main line?) and
    ``seconds``, if known.
    """
    if position is not None:
        table = desk.own(game)
        with table.lock:
            table.game.goto(position_of(table.game, position).id)
            desk.service.keep(table)
        return told(desk, table)
    table = desk.table(game)
    with table.lock:
        here, target, nodes = table.game.cursor, table.game.target, history(table.game)["nodes"]
        near = _near(table.game, nodes)
    outcomes = desk.service.known(table, [node["hash"] for node in nodes])
    tree, lines = [], [f"{counted(len(nodes) - 1, 'move')} in this game; it stands at position {here}:"]
    for node, outcome in zip(nodes, outcomes, strict=True):
        seconds = outcome.seconds if outcome is not None and outcome.ok else None
        told_of = {"position": node["id"], "seconds": seconds}
        tree.append(told_of | {name: node[name] for name in ("parent", "move", "ply", "variation")})
        if node["id"] in near:
            mark = "→ " if node["id"] == here else "  "
            move = node["move"] or "start"
            lines.append(
                f"{mark}{node['id']}: {'  ' if node['variation'] else ''}{move} "
                f"(after {node['parent']}; {outcome_text(target, outcome)})"
                if node["parent"] is not None
                else f"{mark}0: start ({outcome_text(target, outcome)})"
            )
    if len(near) < len(nodes):
        lines.append(f"… {len(nodes) - len(near)} positions farther from there are left out.")
    following = (written("goto", game=game, position=tree[-1]["position"]), written("moves", game=game))
    return Answer(ended(lines, following), {"game": game, "position": here, "tree": tree}, following)


def _near(game: Game, nodes: list[Json]) -> set[int]:
    """The positions that are told: those of the line, then of the rest the newest."""
    line = [position.id for position in game.main_line()][:SHOWN]
    rest = sorted({node["id"] for node in nodes} - set(line), reverse=True)
    return {*line, *rest[: SHOWN - len(line)]}
