"""What a run is, as the first line of its journal says it."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from agents.timing import no_clock
from dojo_core.game import Game

MOST_EVALUATIONS = 100_000
MOST_SECONDS = 24 * 3600.0
TIMINGS = {
    "machine": "measured time",
    "count": "operations counted, no program run or verified",
}


@dataclass(frozen=True)
class JobSpec:
    """A run: who plays, from where, for how long.

    ``game`` is the game's text with its cursor where the run starts; ``saved`` the id it is stored under and
    ``at`` the position's number there, so that what is found becomes a variation of it. ``timing`` is one of
    ``TIMINGS``; ``seconds`` a wall-clock limit without pauses; ``beside`` the run that it was begun side by
    side with, whose time of the program that both begin from is its own too.
    """

    id: str
    title: str
    kernel: str
    shape: str
    game: str
    saved: str
    at: int
    agent: str
    seed: int
    evaluations: int
    seconds: float
    timing: str = "machine"
    created: float = 0.0
    beside: str = ""

    @staticmethod
    def of(
        game: Game,
        agent: str,
        seed: int = 0,
        evaluations: int = 200,
        seconds: float = 600.0,
        timing: str = "machine",
        saved: str = "",
        beside: str = "",
    ) -> JobSpec:
        """A new run from a game's cursor."""
        return JobSpec(
            id=secrets.token_hex(5),
            title=game.title,
            kernel=game.kernel or game.start.name,
            shape=game.shape,
            game=game.to_text(),
            saved=saved,
            at=game.cursor,
            agent=agent,
            seed=seed,
            evaluations=evaluations,
            seconds=seconds,
            timing=timing,
            created=time.time(),
            beside=beside,
        )

    @property
    def fault(self) -> str:
        """What is wrong with it, as a sentence; empty where nothing is."""
        if not re.fullmatch("[0-9a-f]{4,32}", self.id):
            return "This run has no valid id."
        if self.beside and not re.fullmatch("[0-9a-f]{4,32}", self.beside):
            return "The run that this one was begun beside has no valid id."
        if not 1 <= self.evaluations <= MOST_EVALUATIONS:
            return f"Give a budget of 1 to {MOST_EVALUATIONS} programs."
        if not 1 <= self.seconds <= MOST_SECONDS:
            return f"Give a limit of 1 to {MOST_SECONDS:.0f} seconds."
        if self.timing not in TIMINGS:
            return f"There is no timing {self.timing!r}: take one of {', '.join(TIMINGS)}."
        return no_clock(Game.from_text(self.game).target) if self.timing == "machine" else ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> JobSpec:
        """Raises ValueError where it is none."""
        try:
            wanted: dict[str, Any] = {}
            for field in fields(JobSpec):
                name = field.name
                if name == "beside" and name not in data:  # older ones began from starts of their own
                    continue
                value = data[name]
                make = {"str": str, "int": int, "float": float}[str(field.type)]
                if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                    raise ValueError(name)
                if (make is str) != isinstance(value, str):
                    raise ValueError(name)
                wanted[name] = make(value)
        except KeyError as missing:
            raise ValueError(f"a run without {missing.args[0]}") from None
        except ValueError as wrong:
            raise ValueError(f"a run with a wrong {wrong}") from None
        return JobSpec(**wanted)
