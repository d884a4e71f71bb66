"""A class at work: ``python -m benchmarks.classroom [--students 30] [--seconds 60] [--json FILE]``, and
``--minutes 10``: one that comes and goes.

Starts the app with a data directory of its own, on this machine, and has students play over sockets, each
with a cookie, a session and a board of their own as a browser has them, and pauses as people make them: one
half of the time a step of a lesson, then each a kernel of a size of their own that is measured while they
play. Told are

- an answer to a move, from the message to the position, and to the position's moves: what a student waits
  for;
- how many times of positions and moves each student was told, and until the first: everybody gets a turn;
- the memory of the server and of the measuring process before and after.

With ``--minutes``, students come and go all the time: each sits down for half a minute, at a lesson or at a
kernel that is measured, leaves, and comes back in a new tab with a new game, each third time in another
browser. The memory of both processes is told each minute: once the caches are full it stays where it is.

The times hold the students' own side as well, which this machine computes too. Nothing else should run on it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.app import Figure, percentile, resident_bytes, worker_of
from dojo_core.measure.machine import this_machine
from tests.browser.conftest import Server
from tests.browser.wire import Wire

LESSON, STEP = "02-fusion", "a-longer-chain"
THINKS = (1.0, 4.0), (4.0, 12.0)  # seconds between two moves: at a lesson, and where times are waited for
LINE = 6  # moves until a student goes back to the start
BOARD_MS, GROWTH_MB = 300, 64  # what is to hold
VISIT = 15.0, 45.0  # seconds that a student stays who comes and goes
VISITS_PER_BROWSER = 3
FILLED = 0.5  # of the minutes of coming and going: caches fill up


@dataclass
class Student:
    """One browser: its session over a WebSocket, its board over HTTP. Times in seconds."""

    port: int
    number: int
    positions: list[float] = field(default_factory=list)  # until the position of a move was told
    boards: list[float] = field(default_factory=list)  # until its moves were, too
    told: set[str] = field(default_factory=set)  # positions, and moves at positions, that had a time
    first: float | None = None  # until the first one
    faults: list[str] = field(default_factory=list)

    def learn(self, until: float) -> None:
        self._sit("learn", f"lesson={LESSON}&step={STEP}", until)

    def measure(self, until: float) -> None:
        self._sit("", "", until)

    def _sit(self, page: str, query: str, until: float) -> None:
        try:
            with Wire(self.port, query, page, Cookie=f"dojo_browser={self.number:032x}") as wire:
                if not page:
                    shape = f"{8 + self.number % 300}x16"  # nobody else's meanwhile
                    wire.event("start", kernel="reducemean", shape=shape, policy="reassoc")
                Board(self, wire.board, THINKS[not page]).play(until)
        except Exception as fault:
            self.faults.append(f"{type(fault).__name__}: {fault}")

    def come_and_go(self, until: float, every: int) -> None:
        """One visit after the other; ``every`` students there are, so that each new browser is its own."""
        chance, first, visit = random.Random(self.number), self.number, 0
        while (left := until - time.monotonic()) > 0:
            self.number = first + every * (visit // VISITS_PER_BROWSER)
            here = time.monotonic() + min(left, chance.uniform(*VISIT))
            (self.learn if visit % 2 else self.measure)(here)
            visit += 1


class Board:
    """What door.js does: messages with events, one at a time, and looks in between as the server says."""

    def __init__(self, student: Student, board: dict[str, Any], thinks: tuple[float, float]) -> None:
        self.student, self.board, self.thinks = student, board, thinks
        self.chance = random.Random(student.number)
        self.way = http.client.HTTPConnection("127.0.0.1", student.port, timeout=60)
        self.events: list[dict[str, Any]] = []
        self.number, self.begun = 0, time.monotonic()
        self.poll: float | None = 0.0

    def play(self, until: float) -> None:
        while time.monotonic() < until:
            self._pause(min(until, time.monotonic() + self.chance.uniform(*self.thinks)))
            moves = [each["text"] for each in self.board["moves"]]
            at = {"game": self.board["game"]["id"], "position": self.board["position"]["id"]}
            self.number += 1
            event: dict[str, Any] = {"seq": self.number, **at}
            if len(self.board["history"]["nodes"]) % LINE == 0 or not moves:
                event |= {"kind": "step", "to": "first"}
            else:
                event |= {"kind": "play", "move": self.chance.choice(moves)}
            self.events.append(event)
            begun = time.perf_counter()
            self._ask()
            self.student.positions.append(time.perf_counter() - begun)
            while self.poll == 0.0:  # the moves come with the next message
                self._ask()
            self.student.boards.append(time.perf_counter() - begun)
        self.way.close()

    def _pause(self, until: float) -> None:
        """Look as often as the server says, which renews the lease of what is measured."""
        while (left := until - time.monotonic()) > 0:
            time.sleep(left if self.poll is None else min(left, self.poll))
            if self.poll is not None:
                self._ask()

    def _ask(self) -> None:
        message = {"client": "class", "events": self.events, "version": self.board["version"]}
        headers = {"Content-Type": "application/json", "dojo-key": self.board["key"]}
        self.way.request("POST", "/exchange", json.dumps(message), headers)
        response = self.way.getresponse()
        text = response.read()
        if response.status != 200:
            raise ConnectionError(f"the server answered {response.status}")
        answer = json.loads(text)
        self.events, self.poll = [], answer["poll"]
        if answer["board"] is not None:
            self.board = {**answer["board"], "key": self.board["key"]}
        self._note(answer["feed"])

    def _note(self, feed: dict[str, Any]) -> None:
        """Which positions of the game have a time, and which moves of the one on the board."""
        told = {place for place, seconds in feed["times"].items() if isinstance(seconds, float)}
        for move, result in zip(self.board.get("moves") or [], feed["results"], strict=False):
            if isinstance(result, list) and isinstance(result[0], float):
                told.add(f"{feed['position']} {move['text']}")
        if told and self.student.first is None:
            self.student.first = time.monotonic() - self.begun
        self.student.told |= told


def together(students: list[Student], what: str, seconds: float, *more: int) -> None:
    """All students at once, who come within the first seconds as a class does."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=getattr(each, what), args=(until, *more)) for each in students]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()


def memory(server: Server) -> tuple[float, float]:
    """Megabytes of the server and of its measuring process."""
    assert server.process is not None
    worker = worker_of(server.process.pid)
    pids = (server.process.pid, worker)
    served, measures = (0.0 if pid is None else resident_bytes(pid) / 1e6 for pid in pids)
    return served, measures


def answers(students: list[Student], what: str) -> list[Figure]:
    shown = [1000 * each for student in students for each in student.positions]
    listed = [1000 * each for student in students for each in student.boards]
    figures = [Figure(f"{what}: moves played", len(shown), "")]
    if shown:
        figures += [
            Figure(f"{what}: the position, median", statistics.median(shown), "ms", BOARD_MS),
            Figure(f"{what}: the position, 95 %", percentile(shown, 0.95), "ms", BOARD_MS),
            Figure(f"{what}: its moves too, median", statistics.median(listed), "ms"),
            Figure(f"{what}: its moves too, 95 %", percentile(listed, 0.95), "ms"),
        ]
    return figures


def turns(students: list[Student], seconds: float) -> list[Figure]:
    counts = sorted(len(each.told) for each in students)
    firsts = [each.first if each.first is not None else seconds for each in students]
    return [
        Figure("times told to a student, the fewest", counts[0], ""),
        Figure("times told to a student, median", statistics.median(counts), ""),
        Figure("times told to a student, the most", counts[-1], ""),
        Figure("until a student's first time, median", statistics.median(firsts), "s"),
        Figure("until a student's first time, the last one's", max(firsts), "s", seconds),
    ]


def run(count: int, seconds: float) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start(measure=True)
        try:
            at_lesson = [Student(server.port, number + 1) for number in range(count)]
            together(at_lesson[:2], "learn", min(5.0, seconds / 4))  # what is made once, is made
            for each in at_lesson:
                each.positions, each.boards = [], []
            before = memory(server)
            together(at_lesson, "learn", seconds / 2)
            after_lesson = memory(server)
            at_play = [Student(server.port, number + 1) for number in range(count)]
            together(at_play, "measure", seconds / 2)
            after = memory(server)
        finally:
            server.stop()
    faults = [fault for each in (*at_lesson, *at_play) for fault in each.faults]
    for fault in faults[:5]:
        print(f"  {fault}")
    return [
        *answers(at_lesson, f"{count} at a lesson"),
        *answers(at_play, f"{count} at measured kernels"),
        *turns(at_play, seconds / 2),
        Figure("sessions that ended with a fault", len(faults), "", 1),
        Figure("the server's memory, before", before[0], "MB"),
        Figure("its growth over the lesson", after_lesson[0] - before[0], "MB", GROWTH_MB),
        Figure("its growth over the measured kernels", after[0] - after_lesson[0], "MB", 2 * GROWTH_MB),
        Figure("the measuring process' memory, after", after[1], "MB"),
    ]


def come_and_go(count: int, minutes: int) -> list[Figure]:
    """A class that comes and goes; its server's memory by the minute."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.start(measure=True)
        try:
            students = [Student(server.port, number + 1) for number in range(count)]
            visits = threading.Thread(target=together, args=(students, "come_and_go", 60.0 * minutes, count))
            visits.start()
            seen = []
            for minute in range(1, minutes + 1):
                visits.join(60)
                seen.append(memory(server))
                print(f"  minute {minute}: {seen[-1][0]:.0f} MB, measuring {seen[-1][1]:.0f} MB", flush=True)
            visits.join()
        finally:
            server.stop()
    faults = [fault for each in students for fault in each.faults]
    for fault in faults[:5]:
        print(f"  {fault}")
    filled = int(FILLED * minutes)
    served, measures = ([each[which] for each in seen[filled:]] for which in (0, 1))
    return [
        Figure("visits' moves", sum(len(each.positions) for each in students), ""),
        Figure("visits that ended with a fault", len(faults), "", 1),
        Figure(f"the server's memory after minute {filled + 1}", served[0], "MB"),
        Figure("its growth from there", served[-1] - served[0], "MB", GROWTH_MB / 4),
        Figure(f"the measuring process' memory after minute {filled + 1}", measures[0], "MB"),
        Figure("its growth from there", measures[-1] - measures[0], "MB", GROWTH_MB / 4),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="A class at work, over sockets.")
    parser.add_argument("--students", type=int, default=30, help="at once (30)")
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, without the server's start (60)")
    parser.add_argument("--minutes", type=int, help="have them come and go for so long instead")
    parser.add_argument("--json", type=Path, help="keep the figures here")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    busy = f"; {load:.1f} others run already: these figures are rough" if load > 0.5 else ""
    print(f"{this_machine().summary}{busy}")
    if options.minutes is not None:
        figures = come_and_go(options.students, options.minutes)
    else:
        figures = run(options.students, options.seconds)
    for figure in figures:
        print(figure)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in figures], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
