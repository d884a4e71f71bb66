"""What the heuristic pass makes of a kernel for this process alone."""

from __future__ import annotations

import logging

from dojo_core.garbage import looking_seldom
from dojo_core.passed import Passed, passed
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.limits import cpu

log = logging.getLogger(__name__)


def heuristic(start: Program, policy: str = "reassoc", constants: frozenset[str] = frozenset()) -> Program:
    """What the heuristic pass plays from a program on this machine's CPU, as far as it comes where it fails.
    ``constants``: its inputs that are the same in every run.

    It is kept on disk: a second process does not play again.
    """
    return played(start, policy, constants).program


def outgrows_a_game(start: Program, policy: str) -> bool:
    """Has the pass's line more moves than a game keeps? A search would go on from a part of it, which is no
    better than none: of a transposed convolution with 1,062 moves the first 496 take 17 times as long."""
    from dojo_core.game import MAX_MOVES  # where it is asked: with it come the moves

    return len(played(start, policy).moves) >= MAX_MOVES


def played(start: Program, policy: str = "reassoc", constants: frozenset[str] = frozenset()) -> Passed:
    """The same with its moves."""

    def play() -> Passed:
        with looking_seldom():
            return _played(start, policy, constants)

    return passed("heuristic", ["agents.passes"], start, policy, cpu(), play, constants)


def _played(start: Program, policy: str, constants: frozenset[str]) -> Passed:
    # Imported where something is played: what is kept needs no player.
    from agents.passes import PASSES, sketch_of
    from dojo_core.moves import IllegalMove

    sketch = sketch_of(start, policy, constants)
    try:
        PASSES["heuristic"].run(sketch)
    except IllegalMove as fault:
        log.warning(
            "The heuristic pass did not finish %s, which runs as far as it came: %s", start.name, fault
        )
    return Passed(sketch.program, tuple(str(move) for move in sketch.moves))
