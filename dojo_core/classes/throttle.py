"""How often somebody may be wrong: a code of eight letters is no secret against a million tries."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from dojo_core.service.refused import Refused

WINDOW = 60.0  # seconds
ONE, ALL = 40, 120  # wrong tries in it: of one client (a whole school may have one address), and of all
REMEMBERED = 1_000  # clients


class Throttle:
    """Counts wrong tries by client, in windows. Thread-safe; its memory is bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun = clock()
        self._all = 0
        self._wrong: OrderedDict[str, int] = OrderedDict()

    def check(self, client: str) -> None:
        """Raises Refused where a client, or all together, were wrong too often: before the next try is looked
        at, so that a right guess is not told from a wrong one then."""
        with self._lock:
            self._turn()
            if self._all >= ALL or self._wrong.get(client, 0) >= ONE:
                raise Refused("Too many codes that were none: wait a minute, then try again.")

    def wrong(self, client: str) -> None:
        """A try was wrong."""
        with self._lock:
            self._turn()
            self._all += 1
            self._wrong[client] = self._wrong.pop(client, 0) + 1
            while len(self._wrong) > REMEMBERED:
                self._wrong.popitem(last=False)

    def _turn(self) -> None:
        if self._clock() - self._begun >= WINDOW:
            self._begun, self._all = self._clock(), 0
            self._wrong.clear()
