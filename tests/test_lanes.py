"""A queue for each target: games on one clock go on while another clock is waited for."""

from __future__ import annotations

import os
import subprocess
import threading

from dojo_core.program.text import parse
from dojo_core.service import wiring
from dojo_core.service.lanes import Lanes
from dojo_core.service.queue import Task
from dojo_core.service.wiring import BESIDE_PRIORITY, _yield_to_clocks
from dojo_core.system import yield_to_others
from tests.stand_ins import TEXT, Bench
from tests.test_queue import settle


def task(target: str) -> Task:
    program = parse(TEXT)
    return Task(f"{program.hash}/pair/reassoc/{target}", None, program, program.hash)


def test_one_target_s_measurer_may_wait_while_another_s_measures() -> None:
    benches: list[Bench] = []

    def make_bench() -> Bench:
        benches.append(Bench())
        return benches[-1]

    lanes = Lanes(make_bench)
    lanes.begin()
    settle(lambda: len(benches) == 1)
    benches[0].gate.clear()  # the processor's clock: held by somebody else
    cpu, snitch = task("cpu"), task("snitch")
    lanes.want("ann", [(0, cpu)])
    settle(lambda: lanes.serves() == "ann")
    lanes.want("bob", [(0, snitch)])
    settle(lambda: lanes.of(snitch.key).results(snitch.key, [snitch.hash]) != [None])
    assert lanes.of(cpu.key).results(cpu.key, [cpu.hash]) == [None]
    assert (lanes.open_tasks("ann"), lanes.open_tasks("bob")) == (1, 0)
    benches[0].gate.set()
    settle(lambda: lanes.open_tasks("ann") == 0)
    lanes.close()


def test_who_goes_over_to_another_target_wants_nothing_more_of_the_first() -> None:
    bench = Bench()
    bench.gate.clear()
    lanes = Lanes(lambda: bench)
    lanes.want("ann", [(0, task("cpu"))])
    lanes.want("ann", [(0, task("hip"))])
    assert lanes.of(task("cpu").key).open_tasks("ann") == 0
    assert lanes.open_tasks("ann") == 1
    bench.gate.set()
    lanes.close()


def test_a_measurer_that_stopped_is_down_for_its_own_target() -> None:
    broken, sound = Bench(), Bench()
    broken.broken = "no compiler"
    made = iter([broken, broken, broken, sound, sound])
    lock = threading.Lock()

    def make_bench() -> Bench:
        with lock:
            return next(made)

    lanes = Lanes(make_bench)
    cpu, snitch = task("cpu"), task("snitch")
    lanes.want("ann", [(0, cpu)])
    settle(lambda: lanes.of(cpu.key).down == "no compiler")
    made = iter([sound])
    lanes.want("bob", [(0, snitch)])
    settle(lambda: lanes.open_tasks("bob") == 0)
    assert not lanes.of(snitch.key).down and lanes.down == "no compiler"
    lanes.close()


def test_what_no_clock_times_runs_at_a_lower_priority_in_its_own_thread_alone(monkeypatch) -> None:
    monkeypatch.setattr(wiring, "yield_to_others", yield_to_others)  # which the tests' set-up has taken away
    seen = []

    def emulate() -> None:
        _yield_to_clocks()
        _yield_to_clocks()
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        seen.append(int(subprocess.run(["nice"], capture_output=True, text=True, check=True).stdout))

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread = threading.Thread(target=emulate)
    thread.start()
    thread.join()
    lower = max(BESIDE_PRIORITY, before)  # where all of it runs at a low priority already
    assert seen == [lower, lower], "what it starts, too"
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
