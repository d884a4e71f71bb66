"""How often Python looks for garbage that holds itself.

Programs are trees, made by the thousand and never circles: reference counts free them. Looking for circles as
often as Python does of itself (700 objects more) took a tenth of the time of random walks.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MADE = 100_000  # objects that are there more, some 10 MB, before the youngest are looked through
YOUNGER = 20  # such looks before one at the next older generation

_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []  # what each that is looking seldom found set, the first one first


def look_seldom() -> None:
    """For a process of our own; in others: ``looking_seldom``."""
    gc.set_threshold(MADE, YOUNGER, YOUNGER)


@contextmanager
def looking_seldom() -> Iterator[None]:
    """While programs are made, in whosever process. PyTorch's million objects would be looked through again
    and again: without that a line is replayed in half the time. When the last thread has made its programs,
    what was set before the first one's comes back."""
    with _lock:
        _before.append(gc.get_threshold())
        look_seldom()
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)
