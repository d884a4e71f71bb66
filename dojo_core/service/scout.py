"""One thread for what is too slow for an answer and too short for the queue: of each player what came last.

It begins a moment after it was asked: the page is drawn meanwhile, by a thread that would share the
interpreter with it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)

DRAWN = 0.12  # seconds that a page takes to be drawn after a move
MOST = 200  # that wait; of more the oldest is given up


@dataclass(frozen=True)
class _Work:
    begins: float
    run: Callable[[], None]
    give_up: Callable[[], None]


class Scout:
    """Those who wait take turns: who asks again keeps their place, and what they asked before is given up.

    What waits holds a game, which must not outlive the interest in it: there is no more of it than that.
    """

    def __init__(self) -> None:
        self._work: dict[str, _Work] = {}  # by who asked for what, in the order of their turns
        self._lock = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, name="scout", daemon=True).start()

    def add(self, who: str, run: Callable[[], None], give_up: Callable[[], None]) -> None:
        """``give_up`` is called in place of ``run`` where that never begins."""
        with self._lock:
            left = self._work.get(who)
            self._work[who] = _Work(time.monotonic() + DRAWN, run, give_up)
            if len(self._work) > MOST:
                left = self._work.pop(next(iter(self._work)))
            self._lock.notify()
        if left is not None:
            left.give_up()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify()

    def _next(self) -> _Work | None:
        """The work whose turn it is, once there is one; None at the end."""
        with self._lock:
            while not self._closed:
                now = time.monotonic()
                who = next((who for who, each in self._work.items() if each.begins <= now), None)
                if who is not None:
                    return self._work.pop(who)
                self._lock.wait(min((each.begins - now for each in self._work.values()), default=None))
            return None

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work.run()
            except Exception:
                log.exception("analysis failed")
            del work
