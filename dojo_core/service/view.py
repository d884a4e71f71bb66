"""What a page shows of a position, as plain data (JSON): lines with the nodes they come from.

A path is written as child numbers joined by dots (``0.2.1``), the key that joins the program text, the
generated C, the assembly and the moves.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from dojo_core.game import Game, Position
from dojo_core.measure.profile import Profile
from dojo_core.moves import REGISTRY
from dojo_core.moves.notation import form
from dojo_core.moves.reference import summary
from dojo_core.program.tree import Path, Program, Provenance
from dojo_core.recipes import Recipe

Json = dict[str, Any]


def path_text(path: Path) -> str:
    return ".".join(map(str, path))


def paths_text(paths: Iterable[Path]) -> list[str]:
    return [path_text(p) for p in paths]


LONG_LINE = 120


def program_lines(program: Program, hues: dict[Provenance, int]) -> Json:
    """The canonical text, one entry a line: ``head`` (names, buffers) and ``lines`` (operations).

    ``hues`` gives each operation a colour number by its provenance, so that it keeps its colour through the
    game; provenances seen for the first time are added.
    """
    text = program.text.splitlines()
    count = len(program.leaves)
    head_text, body_text = text[: len(text) - count], text[len(text) - count :]
    buffers = {b.name for b in program.buffers}
    head = []
    for number, line in enumerate(head_text):
        name = line.split(" ", 1)[0]
        is_buffer = number >= len(head_text) - len(program.buffers) and name in buffers
        if len(line) > LONG_LINE:  # a table; the text that is copied has it whole
            line = f"{line[:LONG_LINE]} …"
        head.append({"text": line, "buffer": name if is_buffer else None})
    lines = []
    for leaf, line in zip(program.leaves, body_text, strict=True):
        parts = line.split(" ", len(leaf.scopes))
        slots = []
        for depth, scope in enumerate(leaf.scopes):
            slots.append(
                {"path": path_text(leaf.path[: depth + 1]), "text": parts[depth], "mark": scope.mark}
            )
        hue = hues.setdefault(leaf.op.provenance, len(hues))
        lines.append(
            {"path": path_text(leaf.path), "slots": slots, "op": parts[-1], "hue": hue, "text": line}
        )
    return {"head": head, "lines": lines}


@cache
def _forms_of_moves() -> Json:
    return {name: [form(move), summary(name), " ".join(move.also)] for name, move in REGISTRY.items()}


def commands(recipes: Mapping[str, Recipe]) -> Json:
    """Every move and recipe that can be typed: how it is written, what it does in a sentence, and what others
    call it."""
    return _forms_of_moves() | {
        name: [form(recipe), recipe.about, " ".join(recipe.also)] for name, recipe in recipes.items()
    }


def difference(before: str, after: str, context: bool = True) -> list[tuple[str, str]]:
    """Lines with ``"-"`` (went), ``"+"`` (came) or ``" "`` (stayed; left out without ``context``)."""
    old, new = before.splitlines(), after.splitlines()
    result: list[tuple[str, str]] = []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            if context:
                result += [(" ", line) for line in old[a0:a1]]
            continue
        result += [("-", line) for line in old[a0:a1]]
        result += [("+", line) for line in new[b0:b1]]
    return result


def code_lines(text: Sequence[str], nodes: Sequence[Path | None]) -> list[tuple[str, str | None]]:
    """Lines of C or assembly with the path of the program node each comes from."""
    return [(line, None if path is None else path_text(path)) for line, path in zip(text, nodes, strict=True)]


def profile_view(told: Profile) -> Json:
    """Of each node its share of the time, what bounds it and a sentence; of the assembly the rows that take
    most."""
    return {
        "parts": {
            path_text(part.path): {
                "text": part.text,
                "share": part.share,
                "bound": part.bound,
                "source": part.source,
                "sentence": part.sentence,
            }
            for part in told.parts
        },
        "hot": [[each.first, each.last, each.share] for each in told.hot],
        "note": told.sentence,
    }


def history(game: Game) -> Json:
    """All positions, parents before children, and the line through the cursor."""
    nodes: list[Json] = []
    stack: list[tuple[Position, int, bool]] = [(game.positions[0], 0, False)]
    while stack:
        position, ply, variation = stack.pop()
        nodes.append(
            {
                "id": position.id,
                "parent": position.parent,
                "move": None if position.move is None else str(position.move),
                "ply": ply,
                "variation": variation,
                "hash": position.program.hash,
            }
        )
        children = game.children(position.id)
        for number, child in reversed(list(enumerate(children))):
            stack.append((child, ply + 1, variation or number > 0))
    cursor = game.positions[game.cursor]
    siblings = [] if cursor.parent is None else game.children(cursor.parent)
    return {
        "nodes": nodes,
        "line": [p.id for p in game.main_line(game.cursor)],
        "branches": len(siblings) > 1 or len(game.children(cursor.id)) > 1,
    }
