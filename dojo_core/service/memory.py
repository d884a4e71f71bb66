"""A process that serves for weeks: what it frees goes back to the system; no page waits long for a thread."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from contextlib import suppress

from dojo_core.garbage import look_seldom

# Of glibc's malloc (malloc.h; the manual's "Malloc Tunable Parameters").
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGE = 256 << 10  # bytes: a board with its moves as JSON, and each copy on its way to the page
SPARE = 1 << 20  # bytes that may stay free at a heap's end
TURN = 0.001  # seconds that a thread keeps the interpreter while others want it; Python's own 5 ms add up
ANOTHER_LIBC = (OSError, AttributeError)  # has its own ways
TIDY = 60.0  # seconds of play after which memory is given back
ARENAS = 2  # heaps that threads share: each that is made under load stays, some 7 MB of it


def settle() -> None:
    """Called once, when a server has started.

    What start-up made stays for good: collections need not look at it again. And large blocks are mapped,
    each by itself. Left to itself glibc does so with the first ones only: later ones lie in the heap, where
    a small block behind them keeps them from the system. The setting is this process's own: what is
    measured, in other processes, keeps theirs.
    """
    sys.setswitchinterval(TURN)
    look_seldom()
    gc.collect()
    gc.freeze()
    with suppress(*ANOTHER_LIBC):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, SPARE)
        mallopt(M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """What nobody holds any more goes back to the system.

    A tab that was closed is a circle of its session, its player and what was drawn for it. Those have lived
    too long for the collections that Python takes of itself here, of which a full one would come after forty
    million objects. Then free pages within the heaps are given back: of some 250 MB in about 10 ms, beside
    Python.
    """
    gc.collect()
    with suppress(*ANOTHER_LIBC):
        ctypes.CDLL(None).malloc_trim(0)


class Tidying:
    """A thread that gives memory back a minute after something was played, and again while that goes on.

    It waits for no idle moment: in a class there is none. Looking for circles keeps the others waiting, some
    0.15 s in a class of thirty.
    """

    def __init__(self) -> None:
        self._played, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="tidying", daemon=True).start()

    def played(self) -> None:
        self._played.set()

    def close(self) -> None:
        self._closed.set()
        self._played.set()

    def _run(self) -> None:
        while self._played.wait() and not self._closed.wait(TIDY):
            self._played.clear()
            give_back()
