"""A review of a game: what each move of its line was worth, by what was reachable afterwards (verdicts.py).

Only times that are known count; nothing is measured here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dojo_core.game import Game, Position
from dojo_core.moves import apply, legal_moves
from dojo_core.school.verdicts import Judge, Neighbour, Reached, Verdict, faster, ratio
from dojo_core.service.queue import Outcome

log = logging.getLogger(__name__)

SHOWN = 12  # findings
LOOKING_SECONDS = 240.0  # for what stood beside the moves; of positions after that only their own times count

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
    "stream_load": "What is read once makes room first, and what the cache holds is not written back for it.",
    "prefetch": "Data is asked for before it is needed.",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A move of the line by which something was lost. ``seconds``: the shortest time that was reached after
    it; ``better``: the move to play in its place, empty where the position before it was the best."""

    ply: int
    position: int  # where both could be played
    played: str
    seconds: float
    better: str
    better_seconds: float
    words: str = ""
    busy: bool = False  # a time was taken on a busy machine

    @property
    def ratio(self) -> float:
        return self.seconds / self.better_seconds

    @property
    def why(self) -> str:
        return WHY.get(self.better.split(" ")[0], "")


def finding(verdict: Verdict) -> Finding:
    """What a verdict of a loss says to whoever looks for the better move."""
    without, after = verdict.without, verdict.after
    assert without is not None and after is not None
    better = without.first or without.move
    return Finding(
        verdict.ply, verdict.position, verdict.played, after.seconds, better, without.seconds, verdict.words,
        verdict.busy,
    )  # fmt: skip


def neighbours(game: Game, at: Position, known: Known) -> list[Neighbour]:
    """The legal moves that have a time at a position and were not played there."""
    played = {str(child.move) for child in game.children(at.id)}
    moves = [move for move in legal_moves(at.program, game.target, game.policy) if str(move) not in played]
    hashes = [apply(at.program, move, target=game.target, policy=game.policy).hash for move in moves]
    return [
        Neighbour(str(move), outcome)
        for move, outcome in zip(moves, known(hashes), strict=True)
        if outcome is not None and outcome.ok
    ]


class Review:
    """Judges a game's main line in a thread of its own; ``version`` tells how far it is."""

    def __init__(self, game: Game, known: Known) -> None:
        self.game = game
        self.line = game.main_line(0)
        self.verdicts: list[Verdict] = []  # move by move, once all has been looked at
        self.findings: list[Finding] = []  # the real losses, the largest first
        self.open: Reached | None = None  # what was measured, never played, and faster than all that was
        self.unplayed = ""  # the same as a sentence, where no finding tells of it
        self.looked = 0  # moves of the line
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

    @property
    def compared(self) -> int:
        """Moves that could be judged."""
        return sum(verdict.kind != "unknown" for verdict in self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """Moves by the kind of their verdicts."""
        return dict(Counter(verdict.kind for verdict in self.verdicts))

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
            self._judge()
        except Exception:
            log.exception("the review of game %s failed", self.game.id)
            self.fault = "The review stopped: a fault of the app, noted in its log."
        finally:
            self.done = True

    def _judge(self) -> None:
        beside: dict[int, list[Neighbour]] = {}
        line = {position.id for position in self.line}
        others = [position for position in self.game.positions.values() if position.id not in line]
        until = time.monotonic() + LOOKING_SECONDS
        for position in (*self.line, *others):
            if self._stop:
                return
            if time.monotonic() < until:
                beside[position.id] = neighbours(self.game, position, self._known)
            self.looked = min(self.moves, self.looked + (position.id in line))
        positions = list(self.game.positions.values())
        known = zip(positions, self._known([p.program.hash for p in positions]), strict=True)
        times = {p.id: outcome for p, outcome in known if outcome is not None and outcome.ok}
        judge = Judge(self.game, times, beside)
        verdicts = []
        for at, after in zip(self.line, self.line[1:], strict=False):
            if self._stop:
                return
            verdicts.append(judge.verdict(at, after))
        losses = sorted((each for each in verdicts if each.kind == "loss"), key=lambda each: -each.lost)
        best, played = judge.best(), min(times.values(), key=lambda each: each.seconds, default=None)
        if best is not None and best.move and played is not None and faster(best.outcome, played):
            self.open = best
            if all(each.position != best.position for each in losses):
                where = len(self.game.line(best.position)) - 1
                self.unplayed = (
                    f"After move {where} a move was measured and never played that leads to a program "
                    f"{ratio(played.seconds / best.seconds)} as fast as the best that was."
                )
        self.findings = [finding(each) for each in losses[:SHOWN]]
        self.verdicts = verdicts
