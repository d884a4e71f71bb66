"""What a learned policy says of a position: how likely each move is to be a good line's next.

The core learns nothing: who opens a service hands in whom to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dojo_core.game import Game
from dojo_core.service.view import Json

LIKELIEST = 10  # moves that are told of a position


@dataclass(frozen=True)
class LearnedMove:
    """A legal move, its probability (0 to 1), and the program's lines that it changes: (``"-"`` or ``"+"``,
    line)."""

    move: str
    probability: float
    changes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Learned:
    """``words``: what the policy has seen of the kernel, or why there is nothing to tell, a sentence each;
    ``stop``: its probability that no move is worth more; ``moves``: the likeliest, in order."""

    words: str
    stop: float | None = None
    moves: tuple[LearnedMove, ...] = ()

    def as_json(self, changes: bool = False) -> Json:
        """``changes``: with the lines that each move changes."""
        rows = [
            {"move": each.move, "probability": round(each.probability, 4)}
            | ({"changes": [list(change) for change in each.changes]} if changes else {})
            for each in self.moves
        ]
        stop = None if self.stop is None else round(self.stop, 4)
        return {"words": self.words, "stop": stop, "moves": rows}

    @staticmethod
    def of_json(data: Json) -> Learned:
        """Of ``as_json`` with changes. Raises KeyError, TypeError or ValueError where it is none."""
        return Learned(
            str(data["words"]),
            float(data["stop"]),
            tuple(
                LearnedMove(
                    str(each["move"]),
                    float(each["probability"]),
                    tuple((str(sign), str(line)) for sign, line in each["changes"]),
                )
                for each in data["moves"]
            ),
        )


# Asks a policy about a game's cursor; takes seconds the first time, and some tenths from then on.
AskPolicy = Callable[[Game], Learned]
