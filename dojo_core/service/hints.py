"""Hints in three levels: the kind of a good move, its place, the move itself.

What has been measured at the position comes first; where nothing measured is faster, a pass is asked what it
would play, which looks at the program's structure alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dojo_core.game import Game
from dojo_core.measure.speed import Speed
from dojo_core.moves import Move, places
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Program
from dojo_core.service.analysis import Analysis, shown_parts, words_for
from dojo_core.service.view import Json, paths_text

KIND, PLACE, MOVE = 1, 2, 3

# A pass: the moves that it would play from a game's cursor on.
Advise = Callable[[Game], Sequence[Move]]


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


def advised_hint(at: tuple[str, int], game: Game, advise: Advise) -> Hint:
    """The first move that the pass would play from the game's cursor on; ``none`` where it plays none."""
    moves = advise(game)
    return _hint(at, "pass", game.current.program, moves[0]) if moves else Hint(at, "none")


def _hint(at: tuple[str, int], source: str, program: Program, move: Move, gain: float | None = None) -> Hint:
    try:
        paths = tuple(paths_text(places(program, move)))
    except NoSuchPlace:
        paths = ()
    return Hint(at, source, str(move), move.name, shown_parts(move)[0], paths, gain)
