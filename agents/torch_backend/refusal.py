"""Why something of a PyTorch graph is no kernel."""

from __future__ import annotations


class Refusal(Exception):
    """What cannot be taken: a reason in words that continue "because", and what a person can do about it."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy
