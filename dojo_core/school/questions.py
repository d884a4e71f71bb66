"""A question and its answers: ``+`` before the right one, ``-`` before others, `` :: `` before why."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dojo_core.program.expressions import TextError
from dojo_core.school.prose import Span, Terms, spans
from dojo_core.school.sections import Part

_ANSWER = re.compile(r"([-+]) (.+?)(?: :: (.+))?\Z")


@dataclass(frozen=True)
class Answer:
    """One choice of a question; ``why`` is told when it was chosen. ``text``: as it stands in the file."""

    words: list[Span]
    right: bool
    why: list[Span]
    text: str = ""


@dataclass(frozen=True)
class Question:
    words: list[Span]
    answers: tuple[Answer, ...]


def read_question(part: Part, terms: Terms, seen: set[str], several: bool = False) -> Question:
    """``several``: may more than one answer be right? Raises TextError."""
    asked: list[str] = []
    answers: list[Answer] = []
    for number, line in part.numbered:
        match = _ANSWER.match(line.strip())
        if match is None:
            if answers and line.strip():
                raise TextError(
                    "after the first answer stand answers only",
                    "An answer reads: + 512 :: why (- where it is wrong).",
                    number,
                    1,
                    line,
                )
            asked.append(line.strip())
            continue
        words = spans(match[2], Terms({}), set(), number)
        why = spans(match[3] or "", terms, seen, number)
        answers.append(Answer(words, match[1] == "+", why, match[2]))
    right = sum(answer.right for answer in answers)
    if len(answers) < 2 or right < 1 or (right > 1 and not several):
        fault = "a question has two answers or more, one of them right"
        raise TextError(fault, "Mark the right one with +, the others with -.", part.line)
    return Question(spans(" ".join(asked).strip(), terms, seen, part.line), tuple(answers))
