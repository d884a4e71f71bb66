"""The measuring queue by itself."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dojo_core.program.text import parse
from dojo_core.service.queue import FINALISTS, MeasuringQueue, Outcome, Task
from tests.stand_ins import TEXT, Bench


def tasks(count: int, salt: int = 0, rank: int = 4) -> list[tuple[int, Task]]:
    found = []
    for number in range(count):
        program = parse(TEXT.replace("64", str(64 + 1000 * salt + number)))
        found.append((rank, Task("w", None, program, program.hash)))
    return found


def settle(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_players_take_turns_and_the_first_batch_is_small() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench)
    one, two = tasks(30, 1), tasks(30, 2)
    queue.want("one", one)
    queue.want("two", two)
    bench.gate.set()
    settle(lambda: len(bench.measured) == 60)
    first = bench.measured.index(two[0][1].hash)
    assert first < 20, "the second player waited for all of the first one's work"
    assert bench.batches[0][0] == 2
    queue.close()


def test_ranks_decide_and_the_position_itself_is_measured_alone_and_with_care() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    queue.want("one", tasks(5, 1, rank=4) + tasks(1, 2, rank=0))
    settle(lambda: len(bench.measured) == 6)
    assert bench.measured[0] == tasks(1, 2)[0][1].hash
    assert bench.batches[0] == (1, True)
    queue.close()


def test_what_is_wanted_twice_is_measured_once_with_the_smaller_rank() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    queue.want("one", tasks(1, rank=0) + tasks(1, rank=1))  # the start program on the board
    settle(lambda: len(bench.measured) == 1)
    assert bench.batches == [(1, True)]
    queue.close()


def test_a_candidate_without_a_time_is_verified_once_it_is_on_the_board() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    ((_, task),) = tasks(1)
    queue.know("w", {task.hash: Outcome("untimed")})
    queue.want("one", [(4, task)])
    assert queue.open_tasks("one") == 0
    queue.want("one", [(0, task)])
    settle(lambda: bench.measured == [task.hash])
    queue.close()


def test_what_nobody_looks_at_is_dropped() -> None:
    bench = Bench()
    bench.gate.clear()
    now = [0.0]
    queue = MeasuringQueue(lambda: bench, lease=5, clock=lambda: now[0])
    queue.want("one", tasks(20))
    settle(lambda: bool(bench.batches))
    now[0] = 6.0
    bench.gate.set()
    time.sleep(0.2)
    assert len(bench.measured) == 0
    queue.renew("one")  # the page is back: the work goes on
    settle(lambda: len(bench.measured) == 20)
    queue.close()


def test_new_wants_cancel_the_old_ones() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench)
    queue.want("one", tasks(30, 1))
    settle(lambda: bool(bench.batches))
    fresh = tasks(3, 2)
    queue.want("one", fresh)
    bench.gate.set()
    settle(lambda: all(r is not None for r in queue.results("w", [t.hash for _, t in fresh])))
    assert len(bench.measured) <= 4
    queue.close()


def test_a_finished_result_is_not_measured_again() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    queue.know("w", {tasks(1)[0][1].hash: Outcome("ok", 0.5, 0.5, 5)})
    queue.want("one", tasks(3))
    settle(lambda: queue.open_tasks("one") == 0)
    assert len(bench.measured) == 2
    queue.close()


def test_the_board_and_the_finalists_are_timed_again_and_the_shorter_time_counts() -> None:
    bench = Bench()
    queue = MeasuringQueue(lambda: bench)
    board, candidates = tasks(1, 2, rank=0), tasks(20, 1)
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    own = board[0][1].hash
    assert own in bench.again[: -FINALISTS - 1], "timed again between the batches"
    refined = [h for h in bench.again if h != own]
    assert refined == [t.hash for _, t in candidates[:FINALISTS]]
    assert [o.seconds for o in queue.results("w", [own, refined[0]]) if o] == [0.0005, 0.0005]
    before = list(bench.again)
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    assert bench.again == before, "but only once"
    queue.close()


def test_results_asked_for_stay_and_old_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dojo_core.service.queue.KEPT_RESULTS", 2)
    queue = MeasuringQueue(Bench)
    for name in ("a", "b"):
        queue.know("w", {name: Outcome("ok", 1.0)})
    queue.results("w", ["a"])
    queue.know("w", {"c": Outcome("ok", 1.0)})
    assert [o is not None for o in queue.results("w", ["a", "b", "c"])] == [True, False, True]
    queue.close()
