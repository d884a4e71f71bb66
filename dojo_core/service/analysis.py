"""What can be said of a position without measuring: its moves, what they lead to, what is refused, its code.

Each part is made once, at the first question, and kept; positions that two games share are analysed once.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from dojo_core import described, recipes
from dojo_core.actions import looking
from dojo_core.moves import (
    REGISTRY,
    IllegalMove,
    Move,
    MoveSyntax,
    apply,
    each_blocked,
    legal_moves,
    places,
)
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Program
from dojo_core.service.view import Json, code_lines, difference, paths_text

log = logging.getLogger(__name__)

# The positions whose analysis stays in memory: so many, and so many programs that their moves lead to (about
# 10 KB each), which a position of a large kernel has ten times as many of as one of a small one.
KEPT, KEPT_SUCCESSORS = 24, 3000
BLOCKED_SHOWN = 400  # refusals sent to a page

NO_MOVES = (
    "The moves of this position were not found: a fault of ours, noted in the log. Take back and play on."
)


# Kinds of moves by how much they usually bring at once: a guess that orders the table and the queue.
LIKELY = (
    "vectorize",
    "parallelize",
    "online_rescale",
    "join_scopes",
    "reuse_dims",
    "share_buffer",
    "use_reciprocal",
    "split_reduction",
    "interchange",
    "set_location",
    "unroll",
    "stage_read",
    "stage_write",
    "reorder",
    "fission_scope",
    "prefetch",
    "split_scope",
)


def likelihood(name: str) -> int:
    """Rank of a kind of move in ``LIKELY``."""
    return LIKELY.index(name) if name in LIKELY else len(LIKELY)


def likeliest(program: Program, moves: Iterable[Move]) -> tuple[Move, ...]:
    """Moves in the order of what they promise: likelier kinds first, and of a kind what stands around the
    operations that are executed most often, each further move in one nest at half of them.

    Of a product of matrices the loops of its sum come before those that set its result to zero, and of a
    softmax one loop of each nest before the second one of any.
    """
    executed = {leaf.path: math.prod(scope.size for scope in leaf.scopes) for leaf in program.leaves}
    before: Counter[tuple[str, int]] = Counter()
    ranked: list[tuple[int, float, Move]] = []
    for move in moves:
        around = places(program, move)
        work = sum(times for leaf, times in executed.items() if any(leaf[: len(p)] == p for p in around))
        nest = (move.name, min(path[0] for path in around) if around and all(around) else -1)
        before[nest] += 1
        ranked.append((likelihood(move.name), -work / before[nest], move))
    ranked.sort(key=lambda entry: entry[:2])
    return tuple(move for *_, move in ranked)


@lru_cache(maxsize=256)
def words_for(name: str) -> str:
    """What a kind of move does, in its own words: the first sentence of its documentation."""
    transformation = REGISTRY.get(name)
    text = (transformation.__doc__ or "") if transformation is not None else ""
    return " ".join(text.split("\n\n")[0].split())


def shown_parts(move: Move) -> tuple[str, str]:
    """(place, parameters) of a move, for two columns of a table."""
    arguments = [str(a) for a in move.arguments]
    return (arguments[0] if arguments else "", " ".join(arguments[1:]))


@dataclass(frozen=True)
class Successor:
    """The position that a move leads to."""

    move: Move
    program: Program


def _no_rest() -> None:
    """Nobody is in a hurry."""


class Analysis:
    """One program under one target and policy. Thread-safe: each part is made by one thread only."""

    def __init__(self, program: Program, target: str, policy: str) -> None:
        self.program, self.target, self.policy = program, target, policy
        self._lock = threading.RLock()
        self._moves: tuple[Move, ...] | None = None
        self._rows: list[Json] | None = None
        self._successors: list[Successor] | None = None
        self._asked: dict[str, Program] = {}  # what single moves lead to, by their text
        self._blocked: list[Json] | None = None
        self._opens: dict[str, list[str]] = {}
        self._code_view: Json | None = None
        self.assembly: Json | None = None
        self.profile: Json | None = None
        self.fault = ""  # a sentence, where the moves could not be found

    @property
    def moves(self) -> tuple[Move, ...]:
        with self._lock:
            if self._moves is None:
                legal: tuple[Move, ...] = ()
                try:
                    legal = legal_moves(self.program, self.target, self.policy)
                except Exception:  # one faulty move must not lock a game up
                    log.exception("no moves for\n%s", self.program.text)
                    self.fault = NO_MOVES
                self._moves = likeliest(self.program, legal)
            return self._moves

    @property
    def rows(self) -> list[Json]:
        """The legal moves as table rows."""
        with self._lock:
            if self._rows is None:
                self._rows = []
                for move in self.moves:
                    place, parameters = shown_parts(move)
                    self._rows.append(
                        {
                            "text": str(move),
                            "name": move.name,
                            "place": place,
                            "params": parameters,
                            "paths": paths_text(places(self.program, move)),
                            "words": words_for(move.name),
                            "opens": [],
                        }
                    )
                self._mark_openers()
            return self._rows

    @property
    def listed(self) -> bool:
        """Have the rows and the code been made?"""
        return self._rows is not None and self._code_view is not None

    def prepare(self) -> None:
        """Make the rows and the code, which take some tens of milliseconds."""
        _ = self.rows, self.code_view

    @property
    def known_successors(self) -> list[Successor] | None:
        """What the moves lead to, if that has been found out."""
        return self._successors

    def find_successors(self, rest: Callable[[], None] = _no_rest) -> list[Successor]:
        """Apply every move, in the order of ``moves``. ``rest`` is called before each; what it raises
        ends it."""
        if self._successors is None:
            successors = []
            for move in self.moves:
                rest()
                after = apply(self.program, move, target=self.target, policy=self.policy)
                successors.append(Successor(move, after.lean()))
            self._successors = successors
            self._asked |= {str(each.move): each.program for each in successors}
        return self._successors

    def successor(self, move: str) -> Program:
        """What a move or a recipe leads to, kept. Raises IllegalMove or MoveSyntax."""
        known = self.known_successor(move)
        if known is None:
            known = recipes.result(self.program, move, self.target, self.policy).lean()
            self._asked[move] = known
        return known

    def known_successor(self, move: str) -> Program | None:
        """The same, if that has been found out."""
        return self._asked.get(move)

    @property
    def known_blocked(self) -> list[Json] | None:
        return self._blocked

    def find_blocked(self, rest: Callable[[], None] = _no_rest) -> list[Json]:
        """Refused moves with their reasons; and which legal moves would open some of them. ``rest`` is called
        before each; what it raises ends it."""
        if self._blocked is None:
            blocked: list[Json] = []
            opens: dict[str, list[str]] = {}
            for move, known in each_blocked(self.program, self.target, self.policy):
                rest()
                refusal = looking.explained(self.program, move, self.target, self.policy).refusal or known
                for way in refusal.ways:
                    if way.then and len(way.moves) == 1:
                        opens.setdefault(way.moves[0], []).append(str(move))
                if len(blocked) < BLOCKED_SHOWN:
                    told = described.refusal(refusal)
                    paths = paths_text(told.pop("nodes"))  # as all of a page names them
                    blocked.append({"text": str(move), **told, "paths": paths})
            with self._lock:
                # what a player can do something about stands first
                blocked.sort(key=lambda row: not row["ways"])
                self._opens = opens
                self._blocked = blocked
                self._mark_openers()
        return self._blocked

    def _mark_openers(self) -> None:
        for row in self._rows or ():
            row["opens"] = self._opens.get(row["text"], [])[:6]

    @property
    def code_view(self) -> Json:
        """The C text as lines with their nodes, or the sentence why there is none."""
        with self._lock:
            if self._code_view is None:
                try:
                    code = looking.code(self.program, self.target, self.policy)
                    self._code_view = {"lines": code_lines(code.text.splitlines(), code.nodes)}
                except looking.NotShown as fault:
                    self._code_view = {"error": str(fault)}
                except Exception:
                    log.exception("no code for\n%s", self.program.text)
                    self._code_view = {"error": "The code generator failed here: a fault of ours, logged."}
            return self._code_view

    def preview(self, text: str) -> list[tuple[str, str]]:
        """The lines that moves and recipes, separated by ``;``, take away and bring; none for what is not
        legal here."""
        try:
            after = recipes.result(self.program, text, self.target, self.policy)
        except (IllegalMove, MoveSyntax, NoSuchPlace):
            return []
        return difference(self.program.text, after.text, context=False)


class Analyses:
    """The analyses of the positions looked at last, by content: provenances do not change what is legal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str], Analysis] = OrderedDict()

    def of(self, program: Program, target: str, policy: str) -> Analysis:
        key = (program.hash, target, policy)
        with self._lock:
            analysis = self._kept.setdefault(key, Analysis(program, target, policy))
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT or (len(self._kept) > 1 and self._successors() > KEPT_SUCCESSORS):
                self._kept.popitem(last=False)
            return analysis

    def _successors(self) -> int:
        return sum(len(analysis.known_successors or ()) for analysis in self._kept.values())
