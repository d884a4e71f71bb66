"""A position as words for a language model: the program, its legal moves by number, and what came of moves
so far.

A question stands by itself and is bounded, so that a long game fits a short memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dojo_core.measure.measurement import seconds_text
from dojo_core.moves.core import REGISTRY, Move
from dojo_core.moves.notation import form
from dojo_core.moves.reference import summary
from dojo_core.program.tree import Program

ROOM = 14_000  # characters of a question, where a model reads so much
PROGRAM_SHARE = 0.45  # of them
MOST_MOVES, FEWEST = 80, 8
HISTORY = 16  # outcomes

RULES = """\
You play a game: make a program fast by legal moves. Each move keeps the meaning; the score is the measured
time, less is better.

The program's text: a number opens a loop of so many iterations, | continues the loop above, {0} is the
iterator at depth 0, {1} at depth 1. Behind a size, :v makes the loop a vector, :u unrolls it, :p gives it to
threads. Behind a buffer's sizes stands where it lies: heap, stack or register. A place such as y@1 is the
loop at depth 1 around the operation that writes y; y#1 is the second operation that writes y.

What usually pays: join loops that read what the loop before wrote, shrink temporaries (reuse_dims) and move
them to stack or register, split the innermost loop by the vector width and vectorize it, parallelize an
outermost loop.

Answer with a sentence or two of why, then one last line, one of:
MOVE: 12                  (a number of the list of moves)
MOVE: split_scope y@1 16  (a move's text; other numbers than those listed are allowed)
MOVE: back 3              (go on from program 3)
MOVE: stop                (nothing more is worth trying)
"""


@dataclass(frozen=True)
class Outcome:
    """A program that was tried: its number, the one it was made from, the move, seconds (None: it failed)."""

    number: int
    parent: int
    move: str
    seconds: float | None


@dataclass(frozen=True)
class View:
    """What a model is shown. ``known``: seconds of the programs behind moves that were measured, None where
    one failed; ``moves`` are listed in this order."""

    title: str
    target: str
    policy: str
    program: Program
    number: int
    seconds: float | None
    first: float | None
    outcomes: Sequence[Outcome]
    moves: Sequence[Move]
    legal: int  # how many moves there are, listed or not
    known: Mapping[str, float | None]

    def words(self, room: int = ROOM) -> str:
        """The question, of about ``room`` characters at most, if so few can tell it."""
        program = _cut(self.program.text, int(PROGRAM_SHARE * room))
        return "\n".join(
            [
                f"{self.title}, target {self.target}, floating-point policy {self.policy}.",
                "",
                *self._history(),
                "",
                f"Program {self.number}, where you are ({self._time(self.seconds)}):",
                "",
                program,
                "",
                *self._moves(),
            ]
        )

    def _time(self, seconds: float | None) -> str:
        if seconds is None:
            return "it failed"
        against = f", {self.first / seconds:.3g} times as fast as the start" if self.first else ""
        return f"{seconds_text(seconds)}{against}"

    def _history(self) -> list[str]:
        timed = [each for each in self.outcomes if each.seconds is not None]
        if not timed:
            return ["Nothing has been measured so far."]
        best = min(timed, key=lambda each: each.seconds or 0.0)
        lines = [f"The fastest so far is program {best.number}: {self._time(best.seconds)}.", "Tried last:"]
        for each in self.outcomes[-HISTORY:]:
            how = "the start" if not each.move else f"program {each.parent}, then {each.move}"
            lines.append(f"- program {each.number}: {how}: {self._time(each.seconds)}")
        return lines

    def _moves(self) -> list[str]:
        some = f", of which {len(self.moves)} are listed" if len(self.moves) < self.legal else ""
        lines = [f"Legal moves here: {self.legal}{some}:"]
        last = ""
        for number, move in enumerate(self.moves, 1):
            if move.name != last:
                last = move.name
                lines.append(f"{form(REGISTRY[last])}: {summary(last)}")
            seen = f"  (measured: {self._time(self.known[str(move)])})" if str(move) in self.known else ""
            lines.append(f"  {number}. {move}{seen}")
        return lines


def listed(legal: Sequence[Move], most: int) -> list[Move]:
    """At most so many of the legal moves, some of each kind: kind by kind, in the order they came."""
    by_kind: dict[str, list[Move]] = {}
    for move in legal:
        by_kind.setdefault(move.name, []).append(move)
    taken = dict.fromkeys(by_kind, 0)
    left = most
    while left > 0 and any(taken[kind] < len(moves) for kind, moves in by_kind.items()):
        for kind, moves in by_kind.items():
            if left > 0 and taken[kind] < len(moves):
                taken[kind] += 1
                left -= 1
    return [move for kind, moves in by_kind.items() for move in _spread(moves, taken[kind])]


def _spread(moves: Sequence[Move], count: int) -> list[Move]:
    """So many of them, evenly: the candidates of a kind stand place by place."""
    return [moves[n * len(moves) // count] for n in range(count)]


def question(view: View, room: int) -> tuple[str, Sequence[Move]]:
    """The view in words, with fewer of its moves where they do not fit, and the moves that it numbers."""
    left = room - len(RULES)
    while len(words := view.words(left)) > left and len(view.moves) > FEWEST:
        view = replace(view, moves=listed(view.moves, max(FEWEST, len(view.moves) * 3 // 4)))
    return words, view.moves


def _cut(text: str, most: int) -> str:
    """A text without its middle, where it is too long."""
    if len(text) <= most:
        return text.rstrip()
    half = most // 2
    left_out = f"… {len(text) - 2 * half} characters are left out here …"
    return f"{text[:half].rstrip()}\n{left_out}\n{text[-half:].strip()}"
