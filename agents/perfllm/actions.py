"""The actions of a position: its legal moves, of those to one program one, each kind of move in turn."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from agents.trail import Trail
from dojo_core.moves.core import Move, Refusal
from dojo_core.moves.legality import all_candidates, outcome
from dojo_core.program.tree import Program

Action = tuple[Program, str]  # the program after a move, and the move


def actions_in_turn(trail: Trail, rng: random.Random, shuffled: bool = False) -> Iterator[Action]:
    """Legal moves that change the program, one of each kind, then another of each, and so on; moves of a kind
    in any order, kinds as they are registered or ``shuffled``. No hardware is asked.

    Legality is asked of one after the other: who takes a few pays for a few.
    """
    context = trail.context()
    kinds: dict[str, list[Move]] = {}
    for move in all_candidates(context):
        kinds.setdefault(move.name, []).append(move)
    for moves in kinds.values():
        rng.shuffle(moves)
    seen = {trail.program.hash}
    turn = list(kinds.values())
    if shuffled:
        rng.shuffle(turn)
    while turn:
        for moves in list(turn):
            while moves:
                move = moves.pop()
                result = outcome(context, move)
                if not isinstance(result, Refusal) and result.hash not in seen:
                    seen.add(result.hash)
                    yield result, str(move)
                    break
            if not moves:
                turn.remove(moves)


def legal_actions(trail: Trail, moves: Iterable[Move]) -> Iterator[Action]:
    """Of moves in any order those that are legal and change the program, of those to one the first."""
    context = trail.context()
    seen = {trail.program.hash}
    for move in moves:
        result = outcome(context, move)
        if not isinstance(result, Refusal) and result.hash not in seen:
            seen.add(result.hash)
            yield result, str(move)
