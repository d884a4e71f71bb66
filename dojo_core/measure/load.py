"""How busy others keep the machine: the share of its cores that they use, from the system's own counts.

Linux counts for each core what its time went to (proc(5), /proc/stat), in ticks of 10 ms. What others used is
that, less what was used by who asks. Time that a hypervisor gave to other machines (steal) is theirs too.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dojo_core import system
from dojo_core.measure.conditions import UNKNOWN, Conditions

# A share over less is told by too few ticks: 0.2 s of two cores are 40.
SHORTEST_SECONDS = 0.2
# Between two measurements of a batch lie some milliseconds in which their results are kept; what lies
# further apart has a compiler between, ours, which disturbs neither: that time is left out.
LONGEST_GAP = 0.05
OLDEST_SECONDS = 3.0  # what others took before tells nothing of now
MARKS = 64  # moments that are kept to reckon from
NOW_SECONDS = 1.0  # over how long what the machine does "now" is told at least
STALE_SECONDS = 10.0  # and at most

# Fields of a line "cpu0 …" that are not idle or waiting for a disk; those of guests are in the first two.
_USED = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, steal


@dataclass(frozen=True, slots=True)
class Reading:
    """``wall``: seconds of a clock; ``used``: processor seconds that anybody used of the cores that this
    process may run on; ``own``: those of them that were its own; ``cores``: how many cores."""

    wall: float
    used: float
    own: float
    cores: int

    def less(self, other: Reading) -> Reading:
        """Without the time that another one stands for."""
        return replace(
            self, wall=self.wall - other.wall, used=self.used - other.used, own=self.own - other.own
        )


Read = Callable[[], Reading | None]


def used_seconds(text: str, cores: frozenset[int], ticks: int = 100) -> tuple[float, int] | None:
    """Processor seconds used and the number of cores, from the text of /proc/stat; None if it tells nothing.

    Where it has not all of these cores, as in a container that numbers its own anew, those it has count.
    """
    lines: dict[int, int] = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdecimal() and len(fields) > max(_USED):
            lines[int(name[3:])] = sum(int(fields[n]) for n in _USED)
    chosen = [lines[core] for core in cores if core in lines]
    if len(chosen) < len(cores):
        chosen = list(lines.values())
    return (sum(chosen) / ticks, len(chosen)) if any(chosen) else None  # some sandboxes print zeros


def share_of_others(before: Reading, after: Reading) -> float:
    """Between two readings, 0 to 1."""
    room = after.cores * (after.wall - before.wall)
    others = (after.used - before.used) - (after.own - before.own)
    return min(1.0, max(0.0, others / room)) if room > 0 else 0.0


def _reading(own_seconds: Callable[[], float]) -> Reading | None:
    try:
        text = (system.PROC / "stat").read_text()
        used = used_seconds(text, system.cores(), os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError):  # another system than Linux
        return None
    return None if used is None else Reading(time.perf_counter(), used[0], own_seconds(), used[1])


def read_beside_process() -> Reading | None:
    """A reading in which this process alone is not another."""
    return _reading(time.process_time)


def read_beside_family() -> Reading | None:
    """A reading in which this process and all that it started are not others."""
    return _reading(lambda: family_seconds(os.getpid()))


def family_seconds(pid: int, processes: Path | None = None) -> float:
    """Processor seconds of a process and of all that descend from it, also of those that ended."""
    parent: dict[int, int] = {}
    seconds: dict[int, float] = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for file in (processes or system.PROC).glob("[0-9]*/stat"):
        try:
            # "pid (name) state ppid …": the name may have spaces and brackets. Fields 4 and 14 to 17.
            fields = file.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if len(fields) >= 15:  # as an ended one has not
            number = int(file.parent.name)
            parent[number] = int(fields[1])
            seconds[number] = sum(map(int, fields[11:15])) / ticks
    return sum(each for number, each in seconds.items() if _descends(number, pid, parent))


def _descends(number: int, ancestor: int, parent: Mapping[int, int]) -> bool:
    seen = set()
    while number != ancestor:
        if number in seen or number not in parent:
            return False
        seen.add(number)
        number = parent[number]
    return True


@cache
def load_is_told() -> bool:
    """Whether this system tells how busy it is at all."""
    return read_beside_process() is not None


class Gauge:
    """What others took while something was timed, over no less than ``SHORTEST_SECONDS``.

    Measurements that follow each other share their moments, without those between them in which something
    is compiled; one that is short, with none before it, waits.
    """

    def __init__(self, read: Read = read_beside_process, sleep: Callable[[float], None] = time.sleep) -> None:
        self._read = read
        self._sleep = sleep
        self._marks: deque[tuple[float, Reading]] = deque(maxlen=MARKS)  # by the clock; of timed moments
        self._between = Reading(0.0, 0.0, 0.0, 0)  # what is left out, of all before now

    def begin(self) -> None:
        """A measurement begins."""
        reading = self._read()
        if reading is None:
            return
        if self._marks and reading.wall - self._marks[-1][0] > LONGEST_GAP:
            self._between = reading.less(self._marks[-1][1])
        while self._marks and reading.wall - self._marks[0][0] > OLDEST_SECONDS:
            self._marks.popleft()
        self._marks.append((reading.wall, reading.less(self._between)))

    def share(self) -> float | None:
        """The measurement that began last has ended: the share of the cores that others took, 0 to 1; None
        where the system does not tell."""
        reading = self._read()
        if reading is None or not self._marks:
            return None
        timed = reading.less(self._between)
        since = next(
            (mark for _, mark in reversed(self._marks) if timed.wall - mark.wall >= SHORTEST_SECONDS),
            self._marks[0][1],
        )
        lacking = SHORTEST_SECONDS - (timed.wall - since.wall)
        if lacking > 0:
            self._sleep(lacking)
            reading = self._read() or reading
            timed = reading.less(self._between)
        self._marks.append((reading.wall, timed))
        return share_of_others(since, timed)


class Watch:
    """What the machine does now, by others than this process and what it started. Cheap: some milliseconds at
    most once a second. Threads may share it."""

    def __init__(
        self,
        read: Read = read_beside_family,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._read = read
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._before: Reading | None = None
        self._checked = 0.0
        self._now = UNKNOWN

    def now(self, wait: bool = False) -> Conditions:
        """Over the last second or so. The first call, and one after a long time, knows nothing yet; with
        ``wait`` it takes ``SHORTEST_SECONDS`` to find out."""
        with self._lock:
            fresh = self._before is not None and self._clock() - self._checked < NOW_SECONDS
            if fresh and not (wait and self._now.load is None):
                return self._now
            reading, self._checked = self._read(), self._clock()
            if reading is None:
                return UNKNOWN
            before, self._before = self._before, reading
            if before is None or reading.wall - before.wall > STALE_SECONDS:
                self._now, before = UNKNOWN, None
            if before is None or reading.wall - before.wall < SHORTEST_SECONDS:
                if not wait:
                    return self._now
                self._sleep(SHORTEST_SECONDS)
                before, reading = reading, self._read() or reading
                self._before = reading
            self._now = Conditions(share_of_others(before, reading))
            return self._now


_watch = Watch()


def machine_now(wait: bool = False) -> Conditions:
    """What the machine does now, seen by this process (``Watch.now``)."""
    return _watch.now(wait)
