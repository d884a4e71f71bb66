"""The measuring queues, one for each target: a game on one clock does not wait for another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dojo_core.measure.exclusive import Wait, waiting
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service.queue import Bench, MeasuringQueue, Task
from dojo_core.targets.registry import backend


class Lanes:
    """Queues by target, each with a thread and a bench of its own, made at need. Thread-safe.

    The key of a workload ends with its target (``Games.table``).
    """

    def __init__(self, make_bench: Callable[[], Bench], idle: Callable[[], bool] = lambda: True) -> None:
        """``idle``: as ``MeasuringQueue`` has it."""
        self._make_bench = make_bench
        self._idle = idle
        self._lock = threading.Lock()
        self._queues: dict[str, MeasuringQueue] = {}

    def of(self, key: str) -> MeasuringQueue:
        """The queue that measures a workload."""
        target = key.rpartition("/")[2]
        with self._lock:
            if target not in self._queues:
                self._queues[target] = MeasuringQueue(self._make_bench, idle=self._idle)
            return self._queues[target]

    def _all(self) -> list[MeasuringQueue]:
        with self._lock:
            return list(self._queues.values())

    def begin(self) -> None:
        """Get ready on the target that most games are for, before there is something to measure."""
        self.of(DEFAULT_TARGET).begin()

    def want(self, player: str, tasks: Sequence[tuple[int, Task]], person: str = "") -> None:
        """Replace what a player wants measured, on whatever targets; as ``MeasuringQueue.want``."""
        wanted: dict[MeasuringQueue, list[tuple[int, Task]]] = {}
        for rank, task in tasks:
            wanted.setdefault(self.of(task.key), []).append((rank, task))
        for queue in self._all():
            if queue in wanted:
                queue.want(player, wanted[queue], person)
            else:
                queue.drop(player)

    def renew(self, player: str) -> None:
        """The player still looks at the results."""
        for queue in self._all():
            queue.renew(player)

    def drop(self, player: str) -> None:
        """Cancel what a player wants."""
        for queue in self._all():
            queue.drop(player)

    def open_tasks(self, player: str) -> int:
        """How many programs the player still waits for."""
        return sum(queue.open_tasks(player) for queue in self._all())

    def waits_for_quiet(self, player: str) -> bool:
        """Would more be timed again for the player, did the machine do nothing else?"""
        return any(queue.waits_for_quiet(player) for queue in self._all())

    def serves(self) -> str | None:
        """A player whose batch is being measured."""
        return next((player for queue in self._all() if (player := queue.serves()) is not None), None)

    @property
    def down(self) -> str:
        """Why measuring on some target has stopped for good, or an empty string."""
        return next((queue.down for queue in self._all() if queue.down), "")

    def restart(self) -> None:
        """Try again with new measurers."""
        for queue in self._all():
            queue.restart()

    def close(self) -> None:
        for queue in self._all():
            queue.close()


def waited_for(target: str) -> Wait | None:
    """Who has the clock that a game on this target waits for, where that has taken long."""
    lock = backend(target).clock().lock
    wait = None if lock is None else waiting()
    return wait if wait is not None and wait.clock == lock else None
