"""Jobs of many kernels: a process for each script imports its library once, and forks for each job.

A job that crashes costs its fork alone; one that does not answer in time ends the process, and the next job
starts another. Elsewhere than on Linux, where a process may not be safe to fork once it has loaded libraries,
each job has a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from dojo_core.bench.baselines import alone
from dojo_core.bench.processes import Dialogue, Process, Silent

END_SECONDS = 10.0  # for a fork to end once it is told to
ENDED = "ended"  # tells that a fork has, and its exit status


class Fork(Dialogue):
    """A job of a process that forks, which does one at a time."""

    def __init__(self, process: Process, arguments: Sequence[str]) -> None:
        self._process = process
        self._since = process.said
        self._ended = False
        process.say(list(arguments))

    def say(self, what: object) -> None:
        self._process.say(what)

    def read(self, seconds: float) -> dict[str, Any]:
        answer = self._process.read(seconds)
        if ENDED in answer:
            self._ended = True
            raise Silent("failed", self._process.ending(answer[ENDED], self._since))
        return answer

    def close(self) -> None:
        """End it; the process is ready for the next job."""
        if self._ended or self._process.closed:
            return
        self._ended = True
        self._process.say(None)
        try:
            while ENDED not in self._process.read(END_SECONDS):
                pass  # an answer that nobody waited for
        except Silent:
            pass  # the process is gone, and the next job starts another


class Forks:
    """The processes, by script and environment. ``start`` as ``alone``. Close it, or use it in ``with``."""

    def __init__(self) -> None:
        self._processes: dict[tuple[str, tuple[tuple[str, str], ...]], Process] = {}

    def start(self, script: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Dialogue:
        """A job, which is closed before the next one of that script starts. Raises Silent."""
        if sys.platform != "linux":
            return alone(script, arguments, environment)
        key = (script, tuple(sorted(environment.items())))
        process = self._processes.get(key)
        if process is None or process.closed:
            process = self._processes[key] = alone(script, (), environment)
        return Fork(process, arguments)

    def close(self) -> None:
        for process in self._processes.values():
            if not process.closed:
                process.close()
        self._processes.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
