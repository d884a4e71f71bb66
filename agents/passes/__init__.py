"""Passes: players that measure nothing and follow the structure of the program alone.

Source: PerfDojo, SC '25, section 4.1. ``naive`` joins and reuses; ``greedy`` adds the target's hardware moves
wherever they apply; ``heuristic`` does what an expert would. Each is a function of a sketch, and works on
any program: what it tries and may not do, it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agents.passes.gpu import greedy_on_a_gpu, heuristic_on_a_gpu
from agents.passes.greedy import greedy
from agents.passes.heuristic import heuristic
from agents.passes.naive import naive
from agents.passes.snitch import heuristic_on_snitch
from dojo_core.game import MAX_MOVES, Game
from dojo_core.moves.core import Move
from dojo_core.recipes import Sketch
from dojo_core.targets.gpu.limits import GpuTarget
from dojo_core.targets.snitch.limits import SnitchTarget

_Play = Callable[[Sketch], None]


@dataclass(frozen=True)
class Pass:
    """A pass by name. ``run`` plays on a sketch; ``about`` is told to people."""

    name: str
    about: str
    run: _Play


def _on(sketch: Sketch, cpu: _Play, gpu: _Play, snitch: _Play) -> None:
    target = sketch.context.target
    (gpu if isinstance(target, GpuTarget) else snitch if isinstance(target, SnitchTarget) else cpu)(sketch)


_GREEDY = partial(_on, cpu=greedy, gpu=greedy_on_a_gpu, snitch=greedy)
_HEURISTIC = partial(_on, cpu=heuristic, gpu=heuristic_on_a_gpu, snitch=heuristic_on_snitch)

PASSES: dict[str, Pass] = {
    each.name: each
    for each in (
        Pass("naive", "join scopes and reuse dimensions until nothing more applies", naive),
        Pass("greedy", "naive, then every move of the target's hardware wherever it applies", _GREEDY),
        Pass("heuristic", "what an expert would do, by the structure of the program", _HEURISTIC),
    )
}


def pass_moves(game: Game, name: str) -> tuple[Move, ...]:
    """The moves of a pass from the game's cursor on; none is played. Raises KeyError for no such pass."""
    born = max(game.positions) + 1
    sketch = Sketch(game.context(game.cursor, born), most=MAX_MOVES - len(game.positions))
    PASSES[name].run(sketch)
    return tuple(sketch.moves)


def play_heuristic(game: Game) -> int:
    """The heuristic pass, as ``dojo bench --heuristic`` finds it (an entry point in pyproject.toml)."""
    return play_pass(game, "heuristic")


def play_pass(game: Game, name: str) -> int:
    """Play a pass from the game's cursor on; gives how many moves it made."""
    moves = pass_moves(game, name)
    for move in moves:
        game.play(move)
    return len(moves)
