"""Who weighs the actions of a position: how often kinds of moves stand in good lines; policies (policy.py).

Without a guide the player is blind: each kind of move is as likely as any other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from agents.perfllm.actions import Action
from agents.trail import Trail

Actions = Sequence[Action]


class Guide(Protocol):
    """Logits of stop and of each action of a position: float64 [1 + actions]."""

    def __call__(self, trail: Trail, actions: Actions) -> np.ndarray: ...


def kind_of(move: str) -> str:
    return move.split(" ", 1)[0]


def alike(moves: Sequence[str]) -> np.ndarray:
    """Logits by which stop and each kind of move are equally likely, and moves of a kind: [1 + moves]."""
    count = Counter(map(kind_of, moves))
    return np.array([0.0, *(-math.log(count[kind_of(move)]) for move in moves)])


class Kinds:
    """As often as a kind of move stands in good lines; the program is not read. The control: what a policy
    that reads it adds is the difference."""

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        every = list(lines)
        self.lines = len(every)
        self.count = Counter(kind_of(move) for line in every for move in line)

    def __call__(self, trail: Trail, actions: Actions) -> np.ndarray:
        here = Counter(kind_of(move) for _, move in actions)
        often = [(self.count[kind_of(move)] + 0.3) / here[kind_of(move)] for _, move in actions]
        return np.log(np.array([max(1, self.lines), *often], float))
