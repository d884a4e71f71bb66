"""How many moves a program tries at a puzzle until one is right."""

from __future__ import annotations

from agents.passes import PASSES, pass_moves
from dojo_core.game import GameFull
from dojo_core.moves import apply, legal_moves
from dojo_core.moves.core import IllegalMove
from dojo_core.school.lesson import Step

RANDOM = "random"
AGENTS = (RANDOM, *PASSES)


def tries(step: Step, agent: str) -> float:
    """On average, of a puzzle of one move. ``random`` tries the legal moves in any order; a pass those moves
    of its line from here that are legal at once, in their order, and then the others in any order. Raises
    KeyError for no such agent, ValueError where no legal move is recorded as right."""
    begin, asked, gains = step.begin, step.asked, step.gains
    if asked is None or gains is None:
        raise ValueError(f"{step.title} is no puzzle of one move")
    program = begin.current.program
    legal = legal_moves(program, begin.target, begin.policy)
    right = set()
    for legal_move in legal:
        after = apply(program, legal_move, target=begin.target, policy=begin.policy)
        gain = gains.by_program.get(after.hash)
        if gain is not None and gain.low >= asked:
            right.add(str(legal_move))
    if not right:
        raise ValueError(f"no move that is legal here is recorded as right for {step.title}")
    tried: list[str] = []
    if agent != RANDOM:
        try:
            planned = [str(move) for move in pass_moves(step.game(), agent)]
        except (IllegalMove, GameFull):
            planned = []
        possible = {str(move) for move in legal}
        for move in planned:
            if move in possible and move not in tried:
                tried.append(move)
                if move in right:
                    return float(len(tried))
    rest = len(legal) - len(tried)
    return len(tried) + (rest + 1) / (len(right) + 1)
