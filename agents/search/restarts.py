"""Where a search over lines begins, and the pass again as for another machine: what belongs together changes
together.

A pass reads its choices off the target: tiles off its registers, blocks and panels off its caches, shares off
its threads, and what it leaves out off the moves that the target lacks. Played for a machine with half the
cache, or one that lacks a move, it writes another line that is all of a piece. Edits of single moves seldom
come to such a line, as each on the way is slower than both. Only the choices are made for that machine: each
move is then checked on the target itself, and left out where it is not legal there.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from agents.agent import Task
from agents.passes import PASSES, pass_moves
from agents.search.neighbours import edit
from agents.trail import Trail
from dojo_core.game import MAX_MOVES, Game
from dojo_core.line import lines_for
from dojo_core.moves.core import Move
from dojo_core.program.expressions import TextError
from dojo_core.program.target import Target
from dojo_core.recipes import Sketch
from dojo_core.targets.registry import target as target_named

PASS = "heuristic"
SHARE = 0.05  # of the neighbours, those that come from the pass, which takes as long as some edits
LACKS = 0.4  # of the changes to a machine, those to what it lacks; of the rest each is to a limit
# A limit's multiples that are tried. Of registers some are set aside for what a tile reads.
LIMITS = {
    "vector_registers": (0.5, 0.75, 1.25, 1.5, 2.0),
    "first_cache_bytes": (0.25, 0.5, 2.0, 4.0),
    "cache_bytes": (0.125, 0.25, 0.5, 2.0, 4.0),
    "shared_cache_bytes": (0.0625, 0.25, 4.0, 16.0),
    "threads": (2.0, 4.0),
}


@dataclass(frozen=True)
class Machine:
    """How a machine that the pass plays for differs from the target: multiples of limits, moves it lacks
    besides, and how many widths of vectors, of the widest ones."""

    limits: tuple[tuple[str, float], ...] = ()
    lacks: frozenset[str] = frozenset()
    narrower: int = 0

    def of(self, target: Target) -> Target:
        """That machine."""
        changed: dict[str, int] = {n: max(1, round(m * getattr(target, n))) for n, m in self.limits}
        widths = {d: w[min(self.narrower, len(w) - 1) :] for d, w in target.vector_widths.items() if w}
        return replace(
            target,
            vector_widths={**target.vector_widths, **widths},
            without=target.without | self.lacks,
            **changed,  # type: ignore[arg-type]
        )

    def beside(self, trail: Trail, rng: random.Random) -> Machine:
        """One that differs from this in one thing; ``trail``: what the pass plays for this one."""
        if rng.random() < LACKS:
            names = sorted({move.name for move in trail.moves} | self.lacks)
            return replace(self, lacks=self.lacks ^ {rng.choice(names)}) if names else self
        name = rng.choice((*LIMITS, "vector_widths"))
        if name == "vector_widths":
            return replace(self, narrower=1 - self.narrower)
        others = {n: m for n, m in self.limits if n != name}
        multiple = rng.choice([m for m in (1.0, *LIMITS[name]) if (name, m) not in self.limits])
        if multiple != 1.0:
            others[name] = multiple
        return replace(self, limits=tuple(sorted(others.items())))


class Restarts:
    """The beginning of a search over lines, and its neighbours. Knows for which machine a line was played."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._begin = Trail.at(task.game)
        self._tried = {Machine()}
        self._machines: dict[str, Machine] = {}  # by the hash of the program that the pass made

    def start(self) -> list[Trail]:
        """The pass's line, the recorded lines of the kernel, and the empty one."""
        game = self._task.game
        lines = [self._begin.played(moves) for moves in (pass_moves(game, PASS), *recorded(game))]
        return list({trail.program.hash: trail for trail in (*lines, self._begin)}.values())

    def next_to(self, trail: Trail, rng: random.Random) -> Trail | None:
        """An edit of the line, or now and then what the pass plays for a machine beside the line's own."""
        again = self.restarted(trail, rng) if rng.random() < SHARE else None
        return edit(trail, rng) if again is None else again

    def restarted(self, trail: Trail, rng: random.Random) -> Trail | None:
        """What the pass plays for a machine beside that of a line, or beside the target itself where the line
        comes from elsewhere. None where that was tried, or is the same line."""
        known = self._machines.get(trail.program.hash)
        machine = (known or Machine()).beside(trail, rng)
        if machine in self._tried:
            return None
        self._tried.add(machine)
        played = self._begin.played(self._moves(machine))
        if played.program.hash == trail.program.hash:
            return None
        self._machines.setdefault(played.program.hash, machine)
        return played

    def _moves(self, machine: Machine) -> list[Move]:
        context = self._begin.context()
        room = MAX_MOVES - len(self._task.game.positions)
        sketch = Sketch(replace(context, target=machine.of(context.target)), most=room)
        PASSES[PASS].run(sketch)
        return sketch.moves


def recorded(game: Game) -> list[list[Move]]:
    """The lines that come with the Dojo for a game's kernel and can be played to their end from its start, if
    the game stands there."""
    if game.kernel is None or game.current.parent is not None:
        return []
    limits = game.limits or target_named(game.target)
    found = []
    for line in lines_for(game.kernel, game.shape or None, game.target, limits).values():
        begun = Game.new(game.start, game.kernel, game.shape, game.target, game.policy, limits=game.limits)
        try:
            report = line.play(begun, longest_way=0)
        except TextError:
            continue  # a parameter has no value at this shape
        if all(entry.applies for entry in report.entries):
            found.append([position.move for position in begun.line() if position.move is not None])
    return found
