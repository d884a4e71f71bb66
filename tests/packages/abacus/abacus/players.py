"""What plays on an abacus by itself: the target's own heuristic, a pass for every target, an agent."""

from __future__ import annotations

import random

from agents.agent import Agent, Budget, Proposals, Task
from agents.passes import Pass
from agents.passes.naive import naive
from agents.trail import Trail
from dojo_core.moves import legal_moves
from dojo_core.moves.places import place_of, scopes
from dojo_core.moves.storage import temporaries
from dojo_core.recipes import Sketch


def countdown(sketch: Sketch) -> None:
    """Reverse every scope that may be."""
    for path, _, _ in scopes(sketch.program):
        sketch.may("reverse_scope", place_of(sketch.program, path))


def heuristic(sketch: Sketch) -> None:
    """Few loops, temporaries near, and all that is left counted down."""
    naive(sketch)
    for buffer in list(temporaries(sketch.program)):
        sketch.may("set_location", buffer.name, "stack")
    countdown(sketch)


def steepest(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    """Try all moves of the fastest program, and go on from the best of them while one is faster."""
    best = Trail.at(task.game)
    [least] = yield [best]
    while True:
        moves = legal_moves(best.program, best.target, best.policy)
        tried = [best.played([move]) for move in moves]
        costs = yield tried
        fastest = min(range(len(tried)), key=costs.__getitem__, default=None)
        if fastest is None or costs[fastest] >= least:
            return
        best, least = tried[fastest], costs[fastest]


COUNTDOWN = Pass("countdown", "reverse every scope that may be", countdown)
STEEPEST = Agent("steepest", "the best of all moves, while one is faster", steepest)
