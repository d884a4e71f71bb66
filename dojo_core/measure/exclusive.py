"""One measurement at a time on this machine, and none beside a compiler.

A lock file shared by all of this user's processes: compilers hold it shared, whoever times holds it
exclusively. Whoever wants it takes his turn first, a second lock that is kept until he has the first: else
compilers that overlap would keep out for good who wants to time (a turnstile; Downey, The Little Book of
Semaphores, 4.2). Hence none who holds it may ask for it. The kernel releases both when their holder dies,
however it dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from dojo_core.measure.places import machine_directory

_POLL_SECONDS = 0.01


@contextmanager
def _lock(mode: int, cancelled: Callable[[], bool] | None) -> Iterator[bool]:
    with ExitStack() as until_done:
        with _file("measure.turn", fcntl.LOCK_EX, cancelled) as my_turn:
            held = my_turn and until_done.enter_context(_file("measure.lock", mode, cancelled))
        yield held


@contextmanager
def _file(name: str, mode: int, cancelled: Callable[[], bool] | None) -> Iterator[bool]:
    # Each holder opens the file anew: the lock belongs to the open file, so threads exclude each other too.
    descriptor = os.open(machine_directory() / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        held = False
        while not held:
            if cancelled is None:
                fcntl.flock(descriptor, mode)
                held = True
                break
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                if cancelled():
                    break
                time.sleep(_POLL_SECONDS)
        yield held
    finally:
        os.close(descriptor)


def compiling(cancelled: Callable[[], bool] | None = None) -> AbstractContextManager[bool]:
    """Hold the machine together with other compilers. The value is False where ``cancelled`` said so."""
    return _lock(fcntl.LOCK_SH, cancelled)


def measuring(cancelled: Callable[[], bool] | None = None) -> AbstractContextManager[bool]:
    """Hold the machine alone: no compiler and no other measurement runs meanwhile."""
    return _lock(fcntl.LOCK_EX, cancelled)
