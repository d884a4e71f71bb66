"""Where a step or a chapter begins: a program's text, or a kernel's line, as a game."""

from __future__ import annotations

from typing import Any

from dojo_core import kernels
from dojo_core.faults import program_fault
from dojo_core.game import Game, GameFull
from dojo_core.line import read_line
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.dependence import POLICIES
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.recipes import RECIPES, play
from dojo_core.school.sections import Part, Section
from dojo_core.targets.registry import target


def policy_of(section: Section, otherwise: str) -> str:
    """The policy that a section states. Raises TextError for one that there is not."""
    policy = section.fact("policy", otherwise)
    if policy not in POLICIES:
        number = section.facts["policy"][0]
        raise TextError(f"there is no policy {policy!r}", f"The policies: {', '.join(POLICIES)}.", number)
    return policy


def from_program(part: Part, policy: str, on: str = DEFAULT_TARGET) -> Game:
    """A game on the program that a block holds. Raises TextError with the line in the file."""
    program = at_line(part.line, lambda: parse("\n".join(part.body)))
    fault = program_fault(program, on, policy, "\n".join([""] * part.line + part.body))
    if fault is not None:
        raise TextError(fault, "Correct the program.", part.line)
    return Game.new(program, policy=policy, target=on)


def from_line(part: Part, policy: str | None) -> Game:
    """A game on the kernel that a block names, with the moves that stand there played. ``policy``: in place
    of the line's own. Raises TextError with the line in the file."""
    line = at_line(part.line, lambda: read_line("\n".join(part.body)))
    if line.kernel is None or not line.shape:
        raise TextError(
            "the line names no kernel and shape", "Write: kernel softmax, and: shape 24x64.", part.line
        )
    try:
        kernel = kernels.get(line.kernel)
        program = target(line.target).start(kernel.program(kernel.shape(line.shape)))
    except ValueError as fault:
        raise TextError(str(fault), "Correct kernel or shape.", part.line) from fault
    game = Game.new(program, line.kernel, line.shape, line.target, policy or line.policy)
    for entry in line.play(game).entries:
        if not entry.applies:
            raise TextError(f"{entry.move} does not apply: {entry.reason}", "Correct the line.", part.line)
    return game


def play_move(game: Game, move: str, number: int) -> None:
    """Play a move or a recipe that stands in a line of the file. Raises TextError."""
    try:
        play(game, " ".join(move.split()), RECIPES)
    except (IllegalMove, MoveSyntax, GameFull) as fault:
        raise TextError(str(fault), "Correct the move.", number, 1, move) from fault


def at_line(number: int, read: Any) -> Any:
    """Errors of a text inside a block, with their line in the file."""
    try:
        return read()
    except TextError as error:
        raise TextError(
            error.message, error.remedy, number + error.line, error.column, error.source
        ) from error
