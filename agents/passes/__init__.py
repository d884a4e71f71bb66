"""Passes: players that measure nothing and follow the structure of the program alone.

Source: PerfDojo, SC '25, section 4.1. ``naive`` joins and reuses; ``greedy`` adds the target's hardware moves
wherever they apply; ``heuristic`` does what an expert would. Each is a function of a sketch, and works on
any program: what it tries and may not do, it leaves. Packages bring passes of their own, and their targets
some under the usual names (docs/packages.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from agents.passes.greedy import greedy
from agents.passes.heuristic import heuristic
from agents.passes.naive import naive
from dojo_core import plugins
from dojo_core.game import MAX_MOVES, Game, GameFull
from dojo_core.moves.core import Move
from dojo_core.moves.legality import context
from dojo_core.program.tree import Program
from dojo_core.recipes import Sketch

_Play = Callable[[Sketch], None]
MOST = 4 * MAX_MOVES  # of a pass outside of games


@dataclass(frozen=True)
class Pass:
    """A pass by name. ``run`` plays on a sketch; ``about`` is told to people."""

    name: str
    about: str
    run: _Play


def _guarded(group: str, entry: str, run: _Play) -> _Play:
    """The same; what it raises and should not is Unusable, with a sentence about an entry of a package."""

    def play(sketch: Sketch) -> None:
        try:
            run(sketch)
        except GameFull:
            raise
        except Exception as fault:
            raise plugins.Unusable(plugins.failed(group, entry, fault)) from fault

    return play


def _targets_own(name: str, usual: _Play) -> _Play:
    """What the sketch's target has under this name (``Target.passes``), else the usual."""

    def play(sketch: Sketch) -> None:
        target = sketch.context.target
        where = target.passes.get(name)
        if where is None:
            usual(sketch)
        else:
            _guarded("dojo.targets", target.name, lambda s: resolve_name(where)(s))(sketch)

    return play


def _brought(builtin: Mapping[str, Pass]) -> dict[str, Pass]:
    """Passes of packages, by name."""
    return {
        name: Pass(name, each.about, _guarded("dojo.agents", name, each.run))
        for name, each in plugins.added("dojo.agents", object, builtin).items()
        if isinstance(each, Pass)
    }


_OURS = (
    Pass("naive", "join scopes and reuse dimensions until nothing more applies", naive),
    Pass(
        "greedy",
        "naive, then every move of the target's hardware wherever it applies",
        _targets_own("greedy", greedy),
    ),
    Pass(
        "heuristic",
        "what an expert would do, by the structure of the program",
        _targets_own("heuristic", heuristic),
    ),
)
PASSES: plugins.Extended[Pass] = plugins.Extended({each.name: each for each in _OURS}, _brought)


def pass_moves(game: Game, name: str) -> tuple[Move, ...]:
    """The moves of a pass from the game's cursor on; none is played. Raises KeyError for no such pass."""
    return tuple(_sketch(game, name).moves)


def sketch_of(start: Program, policy: str, constants: frozenset[str] = frozenset()) -> Sketch:
    """Where a pass plays from a program on this machine's CPU, with more moves than a game keeps.
    ``constants``: inputs that are the same in every run."""
    return Sketch(context(start, policy=policy, constants=constants), most=MOST)


def _sketch(game: Game, name: str) -> Sketch:
    born = max(game.positions) + 1
    sketch = Sketch(game.context(game.cursor, born), most=MAX_MOVES - len(game.positions))
    PASSES[name].run(sketch)
    return sketch


def play_heuristic(game: Game) -> int:
    """The heuristic pass, as ``dojo bench --heuristic`` finds it (an entry point in pyproject.toml)."""
    return play_pass(game, "heuristic")


def play_pass(game: Game, name: str) -> int:
    """Play a pass from the game's cursor on; gives how many moves it made."""
    return len(_sketch(game, name).play_on(game))
