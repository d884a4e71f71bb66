"""What a language model says, as a choice: the number of a move, a move's text, a way back, or stop.

Forgiving in form, and strict in what comes of it: a number that was shown, or a text that ``parse_move``
reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dojo_core.moves.core import REGISTRY, Move
from dojo_core.moves.notation import MoveSyntax, called, parse_move

MOST_READ = 40_000  # characters of an answer, its last: there its choice stands
MOST_WORDS, LAST_WORDS = 4_000, 1_000  # of it that are shown, and of these its last
FORM = "End with one line: MOVE: and a number of the list, or a move's text."
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_SAID = re.compile(r"\b(?:move|play|choice|answer)\b\W{0,6}?[:=]\W{0,6}(.{1,200})", re.IGNORECASE)
_BACK = re.compile(r"\bback\b(?:\s+to)?\W{0,4}(?:program\W{0,3})?(\d{1,6})", re.IGNORECASE)
_STOP = re.compile(r"\W*(?:stop|done|resign)\W*\Z", re.IGNORECASE)
_NUMBER = re.compile(r"\W{0,6}(\d{1,6})(?:[\s.):,*`]|\Z)")
_BIDIRECTIONAL = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


@dataclass(frozen=True)
class Choice:
    """What was chosen: a ``move``, or to go ``back`` to a program by its number, or to ``stop``."""

    move: Move | None = None
    back: int | None = None
    stop: bool = False


class NoChoice(ValueError):
    """Nothing was chosen that can be read; ``str()`` tells the model what to do."""


def cleaned(words: str) -> str:
    """Words as they are kept and shown: no control characters, no turned writing, of a bounded length."""
    plain = "".join(
        c if (c.isprintable() and c not in _BIDIRECTIONAL) or c == "\n" else " " for c in words
    ).strip()
    if len(plain) <= MOST_WORDS:
        return plain
    return f"{plain[: MOST_WORDS - LAST_WORDS]} … {plain[-LAST_WORDS:]}"


def choice_of(words: str, moves: Sequence[Move]) -> Choice:
    """The choice in an answer to a question that numbered these moves from 1 on.

    The last line that says ``MOVE: …`` counts; without one, the last line that is a choice by itself. Raises
    NoChoice.
    """
    said = _THINKING.sub(" ", words)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    marked = [match.group(1).strip() for line in lines for match in [_SAID.search(line)] if match]
    if marked:
        choice = _read(marked[-1], moves)
        if choice is None:
            raise NoChoice(f"{marked[-1][:80]!r} is no choice. {FORM}")
        return choice
    for line in reversed(lines):
        choice = _read(line, moves) if _alone(line) else None
        if choice is not None:
            return choice
    raise NoChoice(f"I found no choice in that. {FORM}")


def _alone(line: str) -> bool:
    """Is a line a choice and no prose? A sentence may begin with a number, and say that it goes back."""
    plain = line.strip(" .`*'\"()")
    return plain.isdigit() or (len(plain.split()) <= 8 and _name(plain)) or bool(_STOP.match(plain))


def _name(words: str) -> bool:
    """Does it begin with the name of a move?"""
    name = words.split(" ", 1)[0]
    return name in REGISTRY or called(name) is not None


def _read(text: str, moves: Sequence[Move]) -> Choice | None:
    """A choice; None where it is no attempt at one. Raises NoChoice with what is wrong with it."""
    if _STOP.match(text):
        return Choice(stop=True)
    if back := _BACK.search(text):
        return Choice(back=int(back.group(1)))
    plain = text.replace("`", " ").replace("*", " ").replace('"', " ").strip(" .'<>")
    words = re.sub(r"^\(?\d{1,6}[.):]\s+(?=[a-z_])", "", plain).strip()
    if _name(words):
        return Choice(_move(words))
    if number := _NUMBER.match(plain):
        chosen = int(number.group(1))
        if 1 <= chosen <= len(moves):
            return Choice(moves[chosen - 1])
        raise NoChoice(f"There is no move {chosen} in the list, which goes from 1 to {len(moves)}.")
    return None


def _move(words: str) -> Move:
    """A move's text; what is said behind it is passed over, where the beginning is a move."""
    parts = words.split()
    wrong: MoveSyntax | None = None
    for count in range(len(parts), 0, -1):
        try:
            return parse_move(" ".join(parts[:count]).rstrip(".,;:"))
        except MoveSyntax as fault:
            wrong = wrong or fault
    raise NoChoice(str(wrong))
