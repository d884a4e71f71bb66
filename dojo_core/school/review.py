"""A review of a game: the moves where a measured alternative was faster than what was played.

Only times that are known count; nothing is measured here. A difference counts beyond the noise of both times.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dojo_core.game import Game, Position
from dojo_core.moves import apply, legal_moves
from dojo_core.service.queue import Outcome

log = logging.getLogger(__name__)

NOISE = 0.03  # two times of one program differ by so much anyhow
WIDEST = 0.5  # a spread above this says that a time is bad, not that everything is alike
SHOWN = 12  # findings

Known = Callable[[Sequence[str]], Sequence[Outcome | None]]  # times by program hash, where they are known

WHY = {
    "vectorize": "One instruction then does the work of several rounds.",
    "parallelize": "The rounds are then shared among the cores.",
    "join_scopes": "Values are then used right after they are made; less travels to memory and back.",
    "reuse_dims": "The buffer then needs less memory and stays in the cache or in registers.",
    "set_location": "Near memory takes the place of far memory.",
    "interchange": "The inner loop then walks through memory in another order: it uses cache lines up.",
    "split_reduction": "Additions then no longer wait for each other.",
    "split_scope": "Smaller runs stay in the cache, and can become vectors.",
    "unroll": "Less time goes into counting rounds, and instructions can overlap.",
    "stage_read": "What is read many times is then read from a near copy.",
    "stage_write": "Results are then collected near the processor and stored once.",
    "use_reciprocal": "A multiplication takes the place of a division, which is many times slower.",
    "share_buffer": "Less memory is touched, so more of it stays in the cache.",
    "stream_store": "Results that nobody reads again soon no longer push other data out of the cache.",
    "prefetch": "Data is asked for before it is needed.",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A move of the line, and a better one. ``later``: how many times as fast as the alternative the line
    became in the end, where it did: then the move played may have been worth its price."""

    ply: int
    position: int  # where both could be played
    played: str
    seconds: float
    better: str
    better_seconds: float
    later: float | None = None

    @property
    def ratio(self) -> float:
        return self.seconds / self.better_seconds

    @property
    def why(self) -> str:
        return WHY.get(self.better.split(" ")[0], "")


def spread(outcome: Outcome) -> float:
    """How far the median lies above the shortest time, as a part of it."""
    return min(WIDEST, max(0.0, outcome.median / outcome.seconds - 1)) if outcome.seconds > 0 else WIDEST


def finding(game: Game, at: Position, after: Position, known: Known) -> tuple[Finding | None, int]:
    """The best measured alternative to a move of the line, and how many alternatives have times."""
    moves = legal_moves(at.program, game.target, game.policy)
    programs = {str(m): apply(at.program, m, target=game.target, policy=game.policy).hash for m in moves}
    own, *others = known([after.program.hash, *programs.values()])
    timed = [
        (outcome.seconds, move, outcome)
        for move, outcome in zip(programs, others, strict=True)
        if outcome is not None and outcome.ok and move != str(after.move)
    ]
    if own is None or not own.ok or not timed:
        return None, len(timed)
    seconds, move, best = min(timed, key=lambda each: each[0])
    if own.seconds <= seconds * (1 + NOISE + spread(own) + spread(best)):
        return None, len(timed)
    ply = len(game.line(at.id))
    return Finding(ply, at.id, str(after.move), own.seconds, move, seconds), len(timed)


class Review:
    """Goes through a game's main line in a thread of its own; ``version`` grows with what was found."""

    def __init__(self, game: Game, known: Known) -> None:
        self.game = game
        self.line = game.main_line(0)
        self.findings: list[Finding] = []
        self.looked = 0  # moves of the line
        self.compared = 0  # moves that have a time and alternatives with times
        self.done = False
        self.fault = ""
        self._known = known
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="review", daemon=True)

    @property
    def version(self) -> str:
        return f"{self.looked}/{self.done}"

    @property
    def moves(self) -> int:
        return len(self.line) - 1

    def begin(self) -> Review:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop = True

    def wait(self, seconds: float | None = None) -> Review:
        self._thread.join(seconds)
        return self

    def _run(self) -> None:
        try:
            found: list[Finding] = []
            for at, after in zip(self.line, self.line[1:], strict=False):
                if self._stop:
                    return
                here, alternatives = finding(self.game, at, after, self._known)
                own = self._known([after.program.hash])[0]
                self.compared += bool(alternatives and own is not None and own.ok)
                if here is not None:
                    found.append(self._with_later(here))
                    self.findings = sorted(found, key=lambda f: (f.later is not None, -f.ratio))[:SHOWN]
                self.looked += 1
        except Exception:
            log.exception("the review of game %s failed", self.game.id)
            self.fault = "The review stopped: a fault of the app, noted in its log."
        finally:
            self.done = True

    def _with_later(self, here: Finding) -> Finding:
        """Did the line become faster than the alternative afterwards?"""
        rest = self.line[here.ply + 1 :]
        times = [o.seconds for o in self._known([p.program.hash for p in rest]) if o is not None and o.ok]
        best = min(times, default=None)
        if best is None or best * (1 + NOISE) >= here.better_seconds:
            return here
        return Finding(
            here.ply, here.position, here.played, here.seconds, here.better, here.better_seconds,
            here.better_seconds / best,
        )  # fmt: skip
