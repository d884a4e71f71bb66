"""The clocks of this machine for many players of a process: one measurer a target, whoever asks.

A measurer of the CPU is a process with pools of inputs: environments that are vectorised in one process share
it and measure in turn. Those in processes of their own have one each, and the measuring lock
(dojo_core/measure/exclusive.py) gives the turns.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agents.timing import MeasurersTiming
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.records import Records
from dojo_core.program.tree import Program
from dojo_core.targets.measurers import Measurers


@dataclass
class _Pool:
    """The measurers of a process, and how many use them."""

    records: Records | None
    measurers: Measurers
    turn: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


# By process, for a fork has its parent's and must not use them; and by whether times are kept in the records.
_POOLS: dict[tuple[int, bool], _Pool] = {}
_LOCK = threading.Lock()


class SharedTiming:
    """A ``Timing`` by the process's measurers: made when the first program is measured, closed with the last
    ``SharedTiming`` that used them. With a ``player`` times go to the records under that name, and those that
    are known there are taken from them; without one they are forgotten."""

    def __init__(self, player: str = "") -> None:
        self._player = player
        self._key: tuple[int, bool] | None = None  # of the pool that it uses

    def measure(
        self,
        workload: Workload,
        programs: Sequence[Program],
        lines: Mapping[str, str],
        effort: Effort,
        cancelled: Callable[[], bool],
    ) -> list[Measurement]:
        pool = self._pool()
        with pool.turn:
            timing = MeasurersTiming(pool.measurers, self._player)
            return timing.measure(workload, programs, lines, effort, cancelled)

    def close(self) -> None:
        """Let go of the measurers. What is measured afterwards takes hold of them anew."""
        with _LOCK:
            pool = _POOLS.get(self._key) if self._key is not None and self._key[0] == os.getpid() else None
            if pool is not None and self._key is not None:
                pool.users -= 1
                if pool.users == 0:
                    del _POOLS[self._key]
                    pool.measurers.close()
                    if pool.records is not None:
                        pool.records.close()
            self._key = None

    def _pool(self) -> _Pool:
        key = os.getpid(), bool(self._player)
        with _LOCK:
            if key not in _POOLS:
                records = Records() if self._player else None
                _POOLS[key] = _Pool(records, Measurers(records))
            if self._key != key:
                self._key = key
                _POOLS[key].users += 1
            return _POOLS[key]
