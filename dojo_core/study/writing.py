"""A game as the beginnings of a study: its moves as blocks, for an author to put words between."""

from __future__ import annotations

from dojo_core.game import Game, Position
from dojo_core.line import RecordedLine
from dojo_core.program.target import DEFAULT_TARGET

TOLD = "What is there to see here?"


def of_game(game: Game, title: str = "", about: str = "", authors: str = "") -> str:
    """The text of a study that goes through a game: its main line, then each variation."""
    head = [
        f"# {title or game.title}",
        "kind: study",
        f"about: {about or f'{game.title}, move by move.'}",
        *([f"authors: {authors}"] if authors else ()),
        "",
    ]
    return "\n".join([*head, *chapter_of(game, "The game")]) + "\n"


def chapter_of(game: Game, title: str) -> list[str]:
    """The lines of a chapter that goes through a game."""
    lines = [
        f"## {title}",
        f"policy: {game.policy}",
        *([f"target: {game.target}"] if game.kernel is None else ()),
        "",
        TOLD,
        "",
        *_start(game),
    ]
    main = game.main_line(0)
    branching = {p.id: f"after-{n}" for n, p in enumerate(main) if len(p.children) > 1 and n}
    stretch: list[Position] = []
    for position in main[1:]:
        stretch.append(position)
        if position.id in branching or position is main[-1]:
            lines += _moves(stretch, f" as {branching[position.id]}" if position.id in branching else "")
            stretch = []
    if len(main) > 1:
        lines += ["", TOLD]
    names = {0: "start", **branching}
    waiting = [(p.id, child) for p in main for child in p.children[1:]]
    while waiting:
        at, first = waiting.pop(0)
        way = [game.positions[first]]
        while len(way[-1].children) == 1:
            way.append(game.positions[way[-1].children[0]])
        branches = way[-1].children
        name = f"variation-{way[-1].id}" if branches else ""
        if name:
            names[way[-1].id] = name
            waiting = [(way[-1].id, child) for child in branches] + waiting
        lines += _moves(way, f" after {names[at]}" + (f" as {name}" if name else ""))
        lines += ["", TOLD]
    return lines


def of_line(name: str, line: RecordedLine, authors: str = "") -> str:
    """The text of a study that goes through a recorded line, whose comments are its notes."""
    return "\n".join(
        [
            f"# {(line.kernel or name).capitalize()}, from the naive program to the fast one",
            "kind: study",
            f"about: {line.title.rstrip('.')}, move by move.",
            *([f"authors: {authors}"] if authors else ()),
            "",
            "## The line",
            f"line: {name}",
            *([f"target: {line.target}"] if line.target != DEFAULT_TARGET else ()),
            *([f"shape: {line.shape}"] if line.shape else ()),
            "",
            line.about or TOLD,
            "",
        ]
    )


def _start(game: Game) -> list[str]:
    if game.kernel is None:
        return ["```program", *game.start.text.splitlines(), "```"]
    return [
        "```line", f"kernel {game.kernel}", f"shape {game.shape}", f"policy {game.policy}",
        f"target {game.target}", "```",
    ]  # fmt: skip


def _moves(positions: list[Position], words: str) -> list[str]:
    return ["", f"```moves{words}", *(str(position.move) for position in positions), "```"]
