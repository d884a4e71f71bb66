"""A function over numbers in processes that may crash or hang: what is left goes on in another one."""

from __future__ import annotations

import os
import pickle
import select
import struct
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def guarded(
    function: Callable[[int], Any],
    count: int,
    seconds: float,
    jobs: int = 2,
    came: Callable[[int, Any], None] | None = None,
) -> list[Any]:
    """``[function(0), …]``; in place of a result that does not come ``"crash"`` or ``"timeout"``.

    Each of ``jobs`` processes is forked, so that it has what is here, and takes every ``jobs``-th number.
    ``came`` is told each number with its result, here, as soon as that is there.
    """
    results: list[Any] = ["crash"] * count
    workers = [_Worker(function, range(k, count, jobs), seconds) for k in range(min(jobs, count))]
    while workers:
        ready, _, _ = select.select([w.pipe for w in workers], [], [], 0.5)
        for worker in list(workers):
            number = worker.now
            if worker.pipe in ready:
                worker.read(results)
            elif worker.is_late:
                results[number] = "timeout"
                worker.go_on()
            else:
                continue
            if came is not None:
                came(number, results[number])
            if worker.ended:
                workers.remove(worker)
    return results


class _Worker:
    """A forked process at work on numbers, one after the other."""

    def __init__(self, function: Callable[[int], Any], numbers: range, seconds: float) -> None:
        self.function, self.numbers, self.seconds = function, numbers, seconds
        self.place, self.ended = 0, False
        self.start()

    @property
    def now(self) -> int:
        return self.numbers[self.place]

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self.since > self.seconds

    def start(self) -> None:
        self.since = time.monotonic()
        self.pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writing)
            return
        os.close(self.pipe)
        try:
            for number in self.numbers[self.place :]:
                content = pickle.dumps(self.function(number))
                _write(writing, struct.pack("<q", len(content)) + content)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    def read(self, results: list[Any]) -> None:
        head = _read(self.pipe, 8)
        content = _read(self.pipe, struct.unpack("<q", head)[0]) if len(head) == 8 else b""
        if not content:  # it ended before its answer
            self.go_on()
            return
        results[self.now] = pickle.loads(content)
        self.place += 1
        self.since = time.monotonic()
        if self.place == len(self.numbers):
            self.stop()

    def go_on(self) -> None:
        """Behind the number that was not answered, in a new process."""
        self.stop()
        self.place += 1
        if self.place < len(self.numbers):
            self.ended = False
            self.start()

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)
        self.ended = True


def _write(pipe: int, content: bytes) -> None:
    while content:
        content = content[os.write(pipe, content) :]


def _read(pipe: int, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = os.read(pipe, count - len(parts))
        if not part:
            return b""
        parts += part
    return parts
