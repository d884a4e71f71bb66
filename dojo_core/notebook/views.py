"""What the functions for notebooks give, beside the core's own values: each draws itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from dojo_core.drawn import Drawn
from dojo_core.measure.measurement import Measurement
from dojo_core.measure.speed import Speed
from dojo_core.moves import Move


@dataclass(frozen=True)
class Moves(Sequence[Move], Drawn):
    """Moves as a sequence, drawn by kind. (Of a tuple IPython knows its own way to tell it as text.)"""

    listed: tuple[Move, ...]

    @overload
    def __getitem__(self, at: int) -> Move: ...
    @overload
    def __getitem__(self, at: slice) -> Moves: ...
    def __getitem__(self, at: int | slice) -> Move | Moves:
        return Moves(self.listed[at]) if isinstance(at, slice) else self.listed[at]

    def __len__(self) -> int:
        return len(self.listed)


@dataclass(frozen=True)
class Listing(Drawn):
    """A text to read, such as a program's C: what it is, and its lines."""

    title: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Measured(Drawn):
    """What was measured of a line: the start first, the game's own position last.

    ``names``: the start, then the moves; ``results``: a measurement of each, None where it was left out.
    ``speed``: of the last against the start, with its interval; None at the start itself, and where one of
    them has no time.
    """

    title: str
    target: str
    names: tuple[str, ...]
    results: tuple[Measurement | None, ...]
    speed: Speed | None

    @property
    def result(self) -> Measurement:
        """Of the game's position."""
        result = self.results[-1]
        assert result is not None
        return result

    @property
    def seconds(self) -> float | None:
        """The position's time; None where it is wrong, or nothing here has a number for it."""
        return self.result.seconds

    @property
    def points(self) -> list[tuple[int, str, float | None]]:
        """Of each that was measured its number, its name, and how many times as fast as the start it is;
        None where one of the two has no time."""
        start = self.results[0].seconds if self.results[0] is not None else None
        points = [
            (number, name, start / each.seconds if start and each.seconds else None)
            for number, (name, each) in enumerate(zip(self.names, self.results, strict=True))
            if each is not None
        ]
        return points if self.speed is None else [*points[:-1], (*points[-1][:2], self.speed.value)]
