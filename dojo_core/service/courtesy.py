"""Answers go first: what is worked out beside them shares the interpreter, and would take half of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds: where many ask at once, what is beside them goes on all the same


class Courtesy:
    """Thread-safe. Whoever answers a page does so within ``answering``; whoever works beside calls
    ``give_way`` at every step, some milliseconds apart, with no lock held that an answer needs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until no answer is under way, for ``PATIENCE`` at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, PATIENCE)
