"""One thread for what is too slow for an answer and too short for the queue, newest first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Scout:
    def __init__(self) -> None:
        self._work: list[Callable[[], None]] = []
        self._lock = threading.Condition()
        self._closed = False
        threading.Thread(target=self._run, name="scout", daemon=True).start()

    def add(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._work.append(work)
            self._lock.notify()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._work and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                work = self._work.pop()
            try:
                work()
            except Exception:
                log.exception("analysis failed")
            del work  # it holds a game, which must not outlive the interest in it
