"""One thread for what is too slow for an answer and too short for the queue, newest first.

It begins a moment after it was asked: the page is drawn meanwhile, by a thread that would share the
interpreter with it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dojo_core.service.memory import give_back

log = logging.getLogger(__name__)

DRAWN = 0.12  # seconds that a page takes to be drawn after a move
TIDY = 60.0  # seconds of play after which memory is given back, once nothing is left to do
OVERDUE = 2 * TIDY  # after which it is in any case: in a class there is always something left


class Scout:
    def __init__(self) -> None:
        self._work: list[tuple[float, Callable[[], None]]] = []  # each with the time when it begins
        self._lock = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, name="scout", daemon=True).start()

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append((time.monotonic() + DRAWN, work))
            self._lock.notify()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify()

    def _run(self) -> None:
        tidied = time.monotonic()
        while True:
            with self._lock:
                while not self._closed:
                    wait = self._work[-1][0] - time.monotonic() if self._work else None
                    if wait is not None and wait <= 0:
                        break
                    self._lock.wait(wait)
                if self._closed:
                    return
                _, work = self._work.pop()
            try:
                work()
            except Exception:
                log.exception("analysis failed")
            del work  # it holds a game, which must not outlive the interest in it
            if time.monotonic() - tidied > (OVERDUE if self._work else TIDY):
                give_back()
                tidied = time.monotonic()
