"""The one door for whoever plays: which moves are legal, what a move makes of a program, and why it may not.

``legality.py`` decides; a refusal that is told here comes with ``ways.py``'s ways around it.
"""

from __future__ import annotations

from dataclasses import replace

from dojo_core.moves.core import REGISTRY, IllegalMove, Move, Refusal, Verdict
from dojo_core.moves.legality import all_candidates, context, is_legal, outcome
from dojo_core.moves.notation import parse_move
from dojo_core.moves.reasons import met
from dojo_core.moves.ways import with_enablers
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.tree import Path, Program


def legal_moves(
    program: Program, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> tuple[Move, ...]:
    """All legal moves of a position, numbers from the documented grids."""
    here = context(program, target, policy)
    return tuple(m for m in all_candidates(here) if is_legal(here, m))


def blocked_moves(
    program: Program, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> tuple[tuple[Move, Refusal], ...]:
    """Well-formed moves that are refused, each with its reason (``why`` adds the enabling moves)."""
    here = context(program, target, policy)
    found = []
    for move in all_candidates(here):
        result = outcome(here, move)
        if isinstance(result, Refusal):
            found.append((move, result))
    return tuple(found)


def as_move(move: Move | str) -> Move:
    return parse_move(move) if isinstance(move, str) else move


def apply(
    program: Program,
    move: Move | str,
    target: str | Target = DEFAULT_TARGET,
    policy: str = "reassoc",
    born: int | None = None,
) -> Program:
    """The program after a move (a Move or its text).

    Raises IllegalMove with the refusal where the move is not legal, MoveSyntax where a text is no move.
    """
    here = context(program, target, policy, born)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), with_enablers(here, played, result))
    return replace(result, age=max(program.age + 1, here.born))


def why(
    program: Program, move: Move | str, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Verdict:
    """Why a move is legal or not, with the places, a witness and the moves that would enable it."""
    here = context(program, target, policy)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        refusal = with_enablers(here, played, result)
        return Verdict(False, f"{played} is not legal. {refusal}", refusal)
    read = "Every value is still read where and when it was written for."
    return Verdict(True, f"{played} is legal: {met(played)}. {read}")


def places(program: Program, move: Move | str) -> tuple[Path, ...]:
    """Every node that a move names or implies. Raises NoSuchPlace."""
    played = as_move(move)
    here = context(program)
    return REGISTRY[played.name].places(here, played.arguments)


def inverse(
    program: Program, move: Move | str, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Move | None:
    """The move that undoes a legal move: legal at once on its result, and gives the program back exactly.

    None where there is none: the table of moves has none, or the text has lost what would be needed (an
    iterator of one iteration, say).
    """
    here = context(program, target, policy)
    played = as_move(move)
    result = outcome(here, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), result)
    back = REGISTRY[played.name].inverse(here, played.arguments, result)
    if back is None or outcome(replace(here, program=result), back) != program:
        return None
    return back
