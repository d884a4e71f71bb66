"""Perft: how many lines of legal moves there are from a position, to a depth.

The word is chess programmers' for the count that tells at once when a generator of moves has changed, and at
which kind of move. A position that several lines reach (a transposition) is looked at once.
"""

from __future__ import annotations

from collections import Counter

from dojo_core.moves.api import legal_moves
from dojo_core.moves.core import REGISTRY, Refusal
from dojo_core.moves.legality import context, outcome
from dojo_core.program.target import DEFAULT_TARGET, Target
from dojo_core.program.tree import Program


def perft(
    program: Program, depth: int, target: str | Target = DEFAULT_TARGET, policy: str = "reassoc"
) -> Counter[str]:
    """The lines of ``depth`` legal moves from a position, by the name of their last move; ``total()`` is all
    of them. Each further move takes some hundred times as long.

    Raises ValueError where the depth is below 1 or the policy unknown, UnknownTarget where the target does
    not take the program.
    """
    if depth < 1:
        raise ValueError(f"Lines of 1 move or more are counted, not of {depth}.")
    reached = Counter({program: 1})
    for _ in range(depth - 1):
        following: Counter[Program] = Counter()
        for position, lines in reached.items():
            asked = context(position, target, policy)
            for move in legal_moves(position, target, policy):
                after = outcome(asked, move)
                assert not isinstance(after, Refusal), f"{move} was listed, and is refused: {after}"
                following[after] += lines
        reached = following
    last: Counter[str] = Counter()
    for position, lines in reached.items():
        for move in legal_moves(position, target, policy):
            last[move.name] += lines
    return last


def by_family(moves: Counter[str]) -> dict[str, int]:
    """Lines by the family of their last move, families in the order in which they are shown."""
    lines = dict.fromkeys((move.family for move in REGISTRY.values()), 0)
    for name, count in moves.items():
        lines[REGISTRY[name].family] += count
    return {family: count for family, count in lines.items() if count}
