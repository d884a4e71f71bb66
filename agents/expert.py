"""What an expert makes of a kernel: the target's heuristic pass, from a game's start, on the same clock."""

from __future__ import annotations

from collections.abc import Callable

from agents.agent import Task
from agents.passes import pass_moves
from agents.timing import Timing
from agents.trail import Trail
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort

EXPERT = "heuristic"


def expert_seconds(game: Game, timing: Timing, cancelled: Callable[[], bool] = lambda: False) -> float | None:
    """Seconds of the heuristic pass's program, verified; None where it has none, or nobody waits for it any
    more."""
    begun = Game.new(game.start, game.kernel, game.shape, game.target, game.policy)
    trail = Trail.at(begun).played(pass_moves(begun, EXPERT))
    lines = {trail.program.hash: "\n".join(map(str, trail.moves))}
    [measured] = timing.measure(Task(begun).workload, [trail.program], lines, Effort.QUICK, cancelled)
    return measured.seconds if measured.verified else None
