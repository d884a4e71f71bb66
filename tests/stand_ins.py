"""What the tests of the service use in place of a measurer, the kernels and a browser."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Workload
from dojo_core.measure.records import Sample
from dojo_core.measure.speed import FIRST_ROUNDS, ROUNDS
from dojo_core.measure.turns import take_turns
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.service import KernelCard, Player, Service
from dojo_core.service.queue import Outcome

TEXT = """kernel pair
in x
out y
x f32 [64] heap
t f32 [64] heap
y f32 [64] heap
64 t[{0}] = x[{0}]*2
64 y[{0}] = t[{0}] + 1
"""


class Bench:
    """Answers every program with a time; can be held up, made slow, or broken."""

    def __init__(self) -> None:
        self.measured: list[str] = []
        self.batches: list[tuple[int, bool]] = []
        self.again: list[str] = []  # what was timed once more
        self.gate = threading.Event()
        self.gate.set()
        self.broken = ""
        self.lines: dict[str, str] = {}  # the moves to each program, by its hash

    def measure(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
        again: bool = False,
        lines: Mapping[str, str] | None = None,
        against: Program | None = None,
    ) -> None:
        self.lines.update(lines or {})
        if again:
            for program in programs:
                self.again.append(program.hash)
                on_result(program.hash, Outcome("ok", 0.0005, 0.0005, 5))
            return
        self.batches.append((len(programs), careful))
        for program in programs:
            self.gate.wait(300)
            if self.broken:
                raise RuntimeError(self.broken)
            if cancelled():
                on_result(program.hash, Outcome("cancelled"))
                continue
            self.measured.append(program.hash)
            on_result(program.hash, Outcome("ok", 0.001 * len(self.measured), 0.001, 5))

    def warm(self) -> None:
        pass

    def close(self) -> None:
        pass


class NoisyBench:
    """A scripted machine: programs have true times, and every round is slowed down by what else runs.

    ``times``: seconds by program hash, else 1 ms. ``load``: by which factor a run takes longer than it need,
    drawn anew for each round and, less, for each run.
    """

    def __init__(self, times: Mapping[str, float], load: float = 1.0, seed: int = 1) -> None:
        self.times = times
        self.load = load
        self.looks: list[str] = []  # programs that took turns, one entry for each time
        self._random = random.Random(seed)

    def measure(
        self,
        workload: Any,
        programs: Sequence[Program],
        careful: bool,
        on_result: Callable[[str, Outcome], None],
        cancelled: Callable[[], bool],
        again: bool = False,
        lines: Mapping[str, str] | None = None,
        against: Program | None = None,
    ) -> None:
        all_of_them = [against or programs[0], *programs]

        def run(order: Sequence[int]) -> list[Sample]:
            slow = 1 + self.load * self._random.random()
            return [Sample(1e9 * self._run(all_of_them[each], slow)) for each in order]

        rounds = ROUNDS if again else FIRST_ROUNDS
        taken = take_turns(run, len(programs), rounds, cancelled)
        for program, turns in zip(programs, taken[1:], strict=True):
            if against is not None:
                self.looks.append(program.hash)
            seconds = [sample.nanoseconds / 1e9 for sample in turns.samples]
            ratios = tuple(turns.ratios) if against is not None else ()
            conditions = Conditions(min(1.0, self.load / 2))
            on_result(
                program.hash,
                Outcome(
                    "ok", min(seconds), sorted(seconds)[len(seconds) // 2], len(seconds),
                    conditions=conditions, ratios=ratios,
                ),
            )  # fmt: skip

    def _run(self, program: Program, slow: float) -> float:
        own = 1 + 0.1 * self.load * self._random.random() + 0.01 * self._random.random()
        return self.times.get(program.hash, 1e-3) * slow * own

    def close(self) -> None:
        pass


class Kernels:
    """One kernel, of one dimension."""

    def cards(self) -> list[KernelCard]:
        return [KernelCard("pair", "Element-wise", "2x + 1", "64")]

    def start(self, kernel: str, shape: str) -> Program:
        if not shape.isdigit():
            raise ValueError("it has one dimension")
        return parse(TEXT.replace("64", shape))

    def work(self, kernel: str | None, shape: str, start: Program) -> tuple[float, float]:
        return 128.0, 512.0

    def workload(self, start: Program, kernel: str | None, policy: str, target: str) -> Any:
        return Workload(start, kernel, policy, target)


class Page:
    """A browser tab: numbers its events and sends them with the position it has drawn."""

    def __init__(self, service: Service, name: str = "tab", owner: str = "") -> None:
        self.service, self.name, self.number = service, name, 0
        self.player: Player = service.player(None, owner=owner)

    def send(self, kind: str, **fields: Any) -> None:
        self.number += 1
        board = self.service.board(self.player)
        at: dict[str, Any] = {}
        if board["view"] == "play":
            at = {"game": board["game"]["id"], "position": board["position"]["id"]}
        self.service.handle(self.player, self.name, [{"seq": self.number, "kind": kind, **at, **fields}])

    def start(self, shape: str = "64") -> None:
        self.send("start", kernel="pair", shape=shape, policy="reassoc")

    @property
    def board(self) -> dict[str, Any]:
        return self.service.board(self.player)

    @property
    def feed(self) -> dict[str, Any]:
        return self.service.feed(self.player)

    def until(self, condition: Callable[[], bool]) -> None:
        """Poll as a page does, which renews the lease."""
        end = time.monotonic() + 300
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            self.service.feed(self.player)
            time.sleep(0.01)


def move_of(page: Page, name: str) -> str:
    return next(m["text"] for m in page.board["moves"] if m["name"] == name)
