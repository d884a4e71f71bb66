"""Hints in three levels: the kind of a good move, its place, the move itself.

What has been measured at the position comes first; where nothing measured is faster, a pass is asked what it
would play, which looks at the program's structure alone. Who follows its hints plays its line to the end.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dojo_core.game import Game
from dojo_core.measure.speed import Speed
from dojo_core.moves import Move, places
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.target import Target
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.service.analysis import Analysis, shown_parts, words_for
from dojo_core.service.view import Json, paths_text

KIND, PLACE, MOVE = 1, 2, 3

STARTS = 16  # whose lines are kept
DETOURS = 16  # of one start: lines that begin at other positions

# A pass: it plays on a game, from the cursor on.
Advise = Callable[[Game], object]
# A line that a pass planned: what it plays at each of its programs, by their hashes; None at the last.
Line = Mapping[str, Move | None]
# What a line is planned for: the hash of a game's start, the target or its limits, the policy.
Plan = tuple[str, str | Target, str]


@dataclass(frozen=True)
class Hint:
    """What is hinted at a position; a page is told only what its ``level`` shows."""

    at: tuple[str, int]  # game and position
    source: str  # "measured", "pass", "none", or "waiting" while the pass is asked
    move: str = ""
    name: str = ""
    place: str = ""
    paths: tuple[str, ...] = ()
    gain: float | None = None  # against the position itself, where measured
    level: int = KIND

    @property
    def further(self) -> Hint:
        """One level more."""
        return replace(self, level=min(MOVE, self.level + 1))

    def as_json(self) -> Json:
        shown: Json = {"source": self.source, "level": self.level}
        if self.source in ("measured", "pass"):
            shown |= {"kind": self.name, "words": words_for(self.name)}
            if self.level >= PLACE:
                shown |= {"place": self.place, "paths": list(self.paths)}
            if self.level >= MOVE:
                shown |= {"move": self.move, "gain": self.gain}
        return shown


def measured_hint(at: tuple[str, int], analysis: Analysis, speeds: Mapping[str, Speed | None]) -> Hint | None:
    """The fastest of the moves (``speeds``: by their text, against now) that are surely faster."""
    faster = {text: speed for text, speed in speeds.items() if speed and speed.verdict == "faster"}
    best = max(faster, key=lambda text: faster[text].value, default=None)
    if best is None:
        return None
    move = next(move for move in analysis.moves if str(move) == best)
    return _hint(at, "measured", analysis.program, move, faster[best].value)


class Adviser:
    """Hints of a pass, by the lines that it plans. Any thread may ask.

    A pass plans from the position it is given, and takes work of its own that is half done for the program
    it begins with: asked anew after each move, it could begin the same work again without end. So its lines
    are kept: that from the start of a game, and one from each position asked for that lies on none. The
    oldest line through a position tells the move there, so all lead to an end, where the pass plays nothing.
    """

    def __init__(self, advise: Advise) -> None:
        self._advise = advise
        self._lock = threading.Lock()
        self._kept: OrderedDict[Plan, tuple[Line, ...]] = OrderedDict()  # lines of the start first

    def known(self, game: Game) -> Hint | None:
        """The hint at a game's cursor by the lines that are kept, at once; None where none comes by there."""
        here = game.current.program.hash
        line = next((line for line in self._lines(game) if here in line), None)
        return None if line is None else _advised(game, line)

    def hint(self, game: Game) -> Hint:
        """The hint at a game's cursor; ``none`` where the pass plays nothing. Raises what the pass raises."""
        if not self._lines(game):
            self._plan(game, game.start)
        return self.known(game) or _advised(game, self._plan(game, game.current.program))

    def _lines(self, game: Game) -> tuple[Line, ...]:
        with self._lock:
            lines = self._kept.get(_plan_of(game), ())
            if lines:
                self._kept.move_to_end(_plan_of(game))
            return lines

    def _plan(self, game: Game, begin: Program) -> Line:
        """The line of the pass from a program on, as in a new game; it is kept."""
        planned = Game.new(
            parse(begin.text), game.kernel, game.shape, game.target, game.policy, limits=game.limits
        )
        self._advise(planned)
        positions = planned.line()
        moves = [*(position.move for position in positions[1:]), None]
        # Where the line comes by a program twice, what it played in between is left out.
        line = {each.program.hash: move for each, move in zip(positions, moves, strict=True)}
        with self._lock:
            first, *others = *self._kept.get(_plan_of(game), ()), line
            self._kept[_plan_of(game)] = (first, *others[-DETOURS:])
            self._kept.move_to_end(_plan_of(game))
            while len(self._kept) > STARTS:
                self._kept.popitem(last=False)
        return line


def _advised(game: Game, line: Line) -> Hint:
    """What a line through the position at a game's cursor plays there."""
    at, program = (game.id, game.cursor), game.current.program
    move = line[program.hash]
    return Hint(at, "none") if move is None else _hint(at, "pass", program, move)


def _plan_of(game: Game) -> Plan:
    return game.start.hash, game.limits or game.target, game.policy


def _hint(at: tuple[str, int], source: str, program: Program, move: Move, gain: float | None = None) -> Hint:
    try:
        paths = tuple(paths_text(places(program, move)))
    except NoSuchPlace:
        paths = ()
    return Hint(at, source, str(move), move.name, shown_parts(move)[0], paths, gain)
