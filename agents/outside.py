"""What a player asks of something outside, such as a language model, and what that took.

No seed decides such an answer. So a run's log holds the answers in their order, and a run that goes on
takes them from there before it asks anew: nothing is asked, or paid for, twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What came back.

    ``read`` and ``written`` are tokens of the question and of the answer, as the other side counts them
    (``counted``) or estimated; ``cost`` is theirs by the price that was given, None without one;
    ``seconds`` is how long it took.
    """

    words: str
    read: int = 0
    written: int = 0
    counted: bool = True
    cost: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.read + self.written


def read_answer(data: Mapping[str, Any]) -> Answer:
    """An answer of a log. Raises KeyError, TypeError or ValueError where it is none."""
    cost = data["cost"]
    return Answer(
        str(data["words"]),
        int(data["read"]),
        int(data["written"]),
        bool(data["counted"]),
        None if cost is None else float(cost),
        float(data["seconds"]),
    )


Ask = Callable[[], Answer]
Consult = Callable[[str, Ask], Answer]  # a question, which names the answer in a log; who answers it


def ask_at_once(question: str, ask: Ask) -> Answer:
    """The answer, where nothing is logged."""
    return ask()


def digest(question: str) -> str:
    """What stands for a question in a log."""
    return hashlib.sha256(question.encode("utf-8", "replace")).hexdigest()[:16]


def cost_of(answers: Sequence[Answer]) -> float | None:
    """What they cost together; None where no price is known."""
    costs = [answer.cost for answer in answers if answer.cost is not None]
    return sum(costs) if costs else None


def cost_text(cost: float) -> str:
    """In the currency of the price, which nobody told."""
    return f"{cost:.2f}" if cost >= 1 else f"{cost:.2g}"


def told(answers: Sequence[Answer]) -> str:
    """What they took, as a sentence; empty where nothing was asked."""
    if not answers:
        return ""
    read, written = sum(a.read for a in answers), sum(a.written for a in answers)
    about = "" if all(a.counted for a in answers) else "about "
    cost = cost_of(answers)
    price = "" if cost is None else f", at a cost of {cost_text(cost)}"
    plural = "" if len(answers) == 1 else "s"
    return (
        f"{len(answers)} answer{plural} in {sum(a.seconds for a in answers):.0f} s: "
        f"{about}{read:,} tokens read, {written:,} written{price}."
    )
