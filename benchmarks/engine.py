"""Where the time of a tuning goes: ``python -m benchmarks.engine [KERNEL] [--agent NAME] [--budget N]``.

Tunes with empty records and caches, as ``dojo tune`` does, and prints candidates a second, and the shares of
the wall-clock time: generating and compiling C; running and verifying (in the measuring process, inputs
included); waiting for other processes of this user that measure or compile; proposing (the agent's own
thinking); the rest (records, the run's log). The finalists are left out. Besides, milliseconds of processor
time a candidate, by process, which depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Shares:
    """Seconds by what they were spent on; of nested ones, the inner counts."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._open: list[str] = []
        self._since = time.perf_counter()

    @contextmanager
    def spent(self, on: str) -> Iterator[None]:
        self._mark()
        self._open.append(on)
        try:
            yield
        finally:
            self._mark()
            self._open.pop()

    def _mark(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, on: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            with self.spent(on):
                return call(*arguments, **named)

        return wrapped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel", nargs="?", default="softmax")
    parser.add_argument("--shape")
    parser.add_argument("--agent", default="sampling-lines")
    parser.add_argument("--budget", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dojo-engine-") as home:
        os.environ["DOJO_HOME"] = os.environ["DOJO_CACHE"] = home
        _run(options)


def _run(options: argparse.Namespace) -> None:
    from agents.agent import Agent, Budget
    from agents.players import AGENTS
    from agents.tuning import Tuning
    from dojo_core import kernels
    from dojo_core.game import Game
    from dojo_core.measure import exclusive as exclusive_module
    from dojo_core.measure.load import family_seconds
    from dojo_core.measure.records import Records
    from dojo_core.measure.trial import Trials
    from dojo_core.targets.cpu import measurer as measuring_module
    from dojo_core.targets.cpu.measurer import Measurer

    shares = Shares()
    agent = AGENTS[options.agent]

    def strategy(*arguments: Any) -> Any:
        proposals = agent.strategy(*arguments)
        answer = None
        while True:
            try:
                with shares.spent("proposing"):
                    batch = next(proposals) if answer is None else proposals.send(answer)
            except StopIteration:
                return
            answer = yield batch

    exclusive = exclusive_module.measuring

    @contextmanager
    def held(*arguments: Any) -> Iterator[Any]:
        with shares.spent("waiting"):
            lock = exclusive(*arguments)
            got = lock.__enter__()
        try:
            yield got
        finally:
            lock.__exit__(None, None, None)

    measuring_module.build = shares.timed("compiling", measuring_module.build)
    Measurer._code = shares.timed("compiling", Measurer._code)  # type: ignore[method-assign]
    exclusive_module.measuring = held
    Trials.run = shares.timed("running", Trials.run)  # type: ignore[method-assign]
    threading.Thread.join = shares.timed("running", threading.Thread.join)  # type: ignore[method-assign]

    found = kernels.get(options.kernel)
    shape = found.shape(options.shape) if options.shape else found.shapes[0]
    game = Game.new(found.program(shape), options.kernel, "x".join(map(str, shape)))
    with Records() as records, Measurer(records) as measurer:
        measurer.warm()
        watched = Agent(agent.name, agent.about, strategy)
        tuning = Tuning(game, watched, measurer, Budget(options.budget), keep=False)

        def used() -> dict[str, float]:
            """Seconds of processor time so far."""
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            worker = measurer.worker_pid
            return {
                "this process": time.process_time(),
                "compilers": children.ru_utime + children.ru_stime,
                "the worker": family_seconds(worker) if worker is not None else 0.0,
            }

        before = used()
        began, count, ended = time.perf_counter(), 0, 0.0
        bests = []
        with shares.spent("rest"):
            for event in tuning.events():
                if event.final:
                    tuning.control.stop()
                    break
                count, ended = count + 1, time.perf_counter()
                bests.append((ended - began, event.best.seconds if event.best else 0.0))
                if count == options.budget:
                    break
        after = used()
    whole = sum(shares.seconds.values())
    fast = next((n for n, (_, best) in enumerate(bests) if 0 < best < 10e-3), None)
    rate = ""
    if fast is not None and fast + 1 < len(bests):
        rate = f", {(len(bests) - fast - 1) / (bests[-1][0] - bests[fast][0]):.1f} once it ran under 10 ms"
    print(
        f"{options.kernel} {game.shape}, {options.agent}: {count} candidates in {whole:.1f} s, "
        f"{count / whole:.1f} a second{rate}; the best {1e3 * bests[-1][1]:.3g} ms"
    )
    for name in ("compiling", "running", "waiting", "proposing", "rest"):
        part = shares.seconds[name]
        print(
            f"  {name:10} {part:7.2f} s {100 * part / whole:5.1f} % {1e3 * part / count:8.1f} ms a candidate"
        )
    spent = ", ".join(f"{name} {1e3 * (after[name] - before[name]) / count:.1f}" for name in after)
    print(f"  of processor time, ms a candidate: {spent}")


if __name__ == "__main__":
    main()
