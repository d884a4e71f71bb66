"""What a learned policy says of the programs that are looked at: as a recording tells it, or asked in a
thread of its own, so that no page waits for a policy that is being loaded."""

from __future__ import annotations

import logging
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from threading import Lock

from agents.jobs import Entry
from agents.perfllm.across.asked import shipped_says, silent
from agents.perfllm.across.weights import folder_of
from dojo_core.game import Game
from dojo_core.moves import IllegalMove
from dojo_core.program.text import parse
from dojo_core.service.learned import Learned
from dojo_core.service.view import Json
from pages.watch.lanes import Lane, positions, target_of

KEPT = 512  # answers
Position = tuple[str, tuple[str, ...]]  # a game's text, and moves from its cursor on

log = logging.getLogger("dojo.pages")


class Asked:
    """Questions to the policies that come with the Dojo, one answered after the other. Any thread may ask."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Position, Future[Learned | None]] = OrderedDict()
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, "policy")

    def of(self, game: str, moves: tuple[str, ...]) -> Future[Learned | None]:
        """What is said of a position, None where the moves cannot be played here."""
        with self._lock:
            if (game, moves) not in self._answers:
                self._answers[game, moves] = self._thread.submit(_answer, game, moves)
            self._answers.move_to_end((game, moves))
            while len(self._answers) > KEPT:
                self._answers.popitem(last=False)[1].cancel()
            return self._answers[game, moves]


asked = Asked()


def _answer(text: str, moves: tuple[str, ...]) -> Learned | None:
    game = Game.from_text(text)
    try:
        for move in moves:
            game.play(move)
        return shipped_says(game)
    except (IllegalMove, ValueError):  # a recording of another machine: its vectors may be wider than ours
        return None
    except Exception:
        log.exception("no policy's word on a program of a run")
        return None


def shown(lane: Lane, entry: Entry | None, ply: int) -> Json | None:
    """What is drawn of it beside a program: None where there is nothing to tell, ``pending`` while it is
    asked."""
    if entry is None:
        return None
    target = target_of(lane.spec.game)
    following = entry.moves[ply] if ply < len(entry.moves) else ""
    if lane.learned:
        learned = lane.learned.get(_hash(lane, entry, ply))
        return None if learned is None else {**learned.as_json(changes=True), "played": following}
    if folder_of(target) is None:
        return None
    if why_not := silent(target):
        return Learned(why_not).as_json()
    answer = asked.of(lane.spec.game, entry.moves[:ply])
    if not answer.done():
        return {"pending": True, "words": "", "stop": None, "moves": []}
    learned = answer.result()
    return None if learned is None else {**learned.as_json(changes=True), "played": following}


def chances(lane: Lane, entry: Entry | None) -> list[float | None]:
    """Of each move of an entry's line the probability that the policy of a recording gave it then."""
    if entry is None or not lane.learned:
        return []
    told = []
    for at, move in enumerate(entry.moves):
        learned = lane.learned.get(_hash(lane, entry, at))
        moves = () if learned is None else learned.moves
        told.append(next((each.probability for each in moves if each.move == move), None))
    return told


def _hash(lane: Lane, entry: Entry, ply: int) -> str:
    return entry.hash if ply == len(entry.moves) else _hashes(lane.spec.game, entry.moves)[ply]


@lru_cache(maxsize=64)
def _hashes(game: str, moves: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(parse(text).hash for text in positions(game, moves))
    except (IllegalMove, ValueError):
        return ("",) * (len(moves) + 1)
