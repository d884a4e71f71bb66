"""The one door for whoever plays: which moves are legal, what a move makes of a program, and why it may not.

``legality.py`` decides; a refusal that is told here comes with ``ways.py``'s ways around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dojo_core.moves import legality
from dojo_core.moves.core import REGISTRY, IllegalMove, Move, Refusal, Verdict
from dojo_core.moves.notation import parse_move
from dojo_core.moves.reasons import met
from dojo_core.moves.ways import with_enablers
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.tree import Path, Program


def legal_moves(
    program: Program, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> tuple[Move, ...]:
    """All legal moves of a position, numbers from the documented grids."""
    context = legality.context(program, target, policy)
    return tuple(m for m in legality.all_candidates(context) if legality.is_legal(context, m))


def blocked_moves(
    program: Program, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> tuple[tuple[Move, Refusal], ...]:
    """Well-formed moves that are refused, each with its reason (``why`` adds the enabling moves)."""
    return tuple(each_blocked(program, target, policy))


def each_blocked(
    program: Program, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Iterator[tuple[Move, Refusal]]:
    """``blocked_moves``, found one by one."""
    context = legality.context(program, target, policy)
    for move in legality.all_candidates(context):
        result = legality.outcome(context, move)
        if isinstance(result, Refusal):
            yield move, result


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
    context = legality.context(program, target, policy, born)
    played = as_move(move)
    result = legality.outcome(context, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), with_enablers(context, played, result))
    return replace(result, age=max(program.age + 1, context.born))


def why(
    program: Program, move: Move | str, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Verdict:
    """Why a move is legal or not, with the places, a witness and the moves that would enable it."""
    context = legality.context(program, target, policy)
    played = as_move(move)
    result = legality.outcome(context, played)
    if isinstance(result, Refusal):
        refusal = with_enablers(context, played, result)
        return Verdict(False, f"{played} is not legal. {refusal}", refusal)
    read = "Every value is still read where and when it was written for."
    return Verdict(True, f"{played} is legal: {met(played)}. {read}")


def places(program: Program, move: Move | str) -> tuple[Path, ...]:
    """Every node that a move names or implies. Raises NoSuchPlace."""
    played = as_move(move)
    context = legality.context(program)
    return REGISTRY[played.name].places(context, played.arguments)


def inverse(
    program: Program, move: Move | str, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Move | None:
    """The move that undoes a legal move: legal at once on its result, and gives the program back exactly.

    None where there is none: the table of moves has none, or the text has lost what would be needed (an
    iterator of one iteration, say).
    """
    context = legality.context(program, target, policy)
    played = as_move(move)
    result = legality.outcome(context, played)
    if isinstance(result, Refusal):
        raise IllegalMove(str(played), result)
    back = REGISTRY[played.name].inverse(context, played.arguments, result)
    if back is None or legality.outcome(replace(context, program=result), back) != program:
        return None
    return back
