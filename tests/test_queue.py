"""The measuring queue by itself."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.speed import LOOKS
from dojo_core.program.text import parse
from dojo_core.service.queue import ERRANDS, MeasuringQueue, Outcome, Task
from dojo_core.service.standings import FINALISTS
from tests.stand_ins import TEXT, Bench, NoisyBench

Wanted = list[tuple[int, Task]]


def tasks(count: int, salt: int = 0, rank: int = 4) -> Wanted:
    found = []
    for number in range(count):
        program = parse(TEXT.replace("64", str(64 + 1000 * salt + number)))
        found.append((rank, Task("w", None, program, program.hash)))
    return found


def settle(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
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


def test_the_fastest_are_looked_at_twice_and_a_time_of_quiet_counts_before_a_shorter_one() -> None:
    board, candidates = tasks(1, 2, rank=0), tasks(20, 1)
    times = {task.hash: 1e-3 / (2 + n) for n, (_, task) in enumerate(candidates)}
    bench = NoisyBench(times, load=0.0)
    queue = MeasuringQueue(lambda: bench, clock=lambda: 0.0)
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    fastest = [task.hash for _, task in candidates[-FINALISTS:]]
    assert sorted(h for h in set(bench.looks) if bench.looks.count(h) == 2) == sorted(fastest)
    looks = list(bench.looks)
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    assert bench.looks == looks, "but only once"
    queue.close()
    quiet, busy = (Outcome("ok", s, conditions=Conditions(load)) for s, load in ((2.0, 0.0), (1.0, 0.6)))
    assert busy.better(quiet) == quiet == quiet.better(busy)


def verdicts(queue: MeasuringQueue, board: Wanted, candidates: Wanted) -> list[str | None]:
    speeds = queue.speeds("w", board[0][1].hash, [task.hash for _, task in candidates])
    return [None if speed is None else speed.verdict for speed in speeds]


@pytest.mark.parametrize("load", [0.0, 0.5, 2.0])
def test_on_a_loaded_machine_too_what_is_equal_is_neither_faster_nor_slower(load: float) -> None:
    board, equal, faster, slower = tasks(1, 2, rank=0), tasks(8, 1), tasks(3, 3), tasks(3, 4)
    times = {task.hash: 1e-3 / 1.1 for _, task in faster} | {task.hash: 1.5e-3 for _, task in slower}
    bench = NoisyBench(times, load)
    queue = MeasuringQueue(lambda: bench, clock=lambda: 0.0)
    queue.want("one", board + equal + faster + slower)
    settle(lambda: queue.open_tasks("one") == 0)
    assert not {"faster", "slower"} & set(verdicts(queue, board, equal))
    assert set(verdicts(queue, board, slower)) == {"slower"}
    if load < 1:
        assert set(verdicts(queue, board, faster)) == {"faster"}
    assert "slower" not in verdicts(queue, board, faster)
    queue.close()


def test_what_is_not_sure_is_timed_again_a_few_times_and_then_said_to_be_undecided() -> None:
    board, candidates = tasks(1, 2, rank=0), tasks(1, 1)
    bench = NoisyBench({}, load=4.0)
    idle = [False]
    queue = MeasuringQueue(lambda: bench, clock=lambda: 0.0, idle=lambda: idle[0])
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    assert bench.looks == [candidates[0][1].hash] * LOOKS
    assert verdicts(queue, board, candidates) == ["undecided"]
    assert queue.waits_for_quiet("one")
    bench.load, idle[0] = 0.0, True  # the other processes have ended: what they disturbed is looked at anew
    queue.renew("one")
    queue.want("one", board + candidates)
    settle(lambda: queue.open_tasks("one") == 0)
    assert len(bench.looks) > LOOKS
    known = queue.results("w", [board[0][1].hash])[0]
    assert known is not None and known.conditions.quiet and not queue.waits_for_quiet("one")
    queue.close()


def test_results_asked_for_stay_and_old_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dojo_core.service.standings.KEPT_RESULTS", 2)
    queue = MeasuringQueue(Bench)
    for name in ("a", "b"):
        queue.know("w", {name: Outcome("ok", 1.0)})
    queue.results("w", ["a"])
    queue.know("w", {"c": Outcome("ok", 1.0)})
    assert [o is not None for o in queue.results("w", ["a", "b", "c"])] == [True, False, True]
    queue.close()


def turns(bench: Bench, named: dict[str, Wanted]) -> list[str]:
    """Whose programs were measured, one entry for each batch."""
    owner = {task.hash: name for name, wanted in named.items() for _, task in wanted}
    order, at = [], 0
    for count, _ in bench.batches:
        order.append(owner[bench.measured[at]])
        at += count
    return order


def class_of_thirty(
    lease: float, clock: Callable[[], float]
) -> tuple[Bench, MeasuringQueue, dict[str, Wanted]]:
    """Thirty students, each with six programs; nothing is measured before ``bench.gate`` opens."""
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench, lease=lease, clock=clock)
    everybody = {f"student {number}": tasks(6, 1 + number) for number in range(30)}
    for name, wanted in everybody.items():
        queue.want(name, wanted, name)
    return bench, queue, everybody


@pytest.mark.parametrize("clock", [lambda: 0.0, time.monotonic], ids=["a clock that stands", "the real one"])
def test_thirty_students_each_have_a_turn_before_anybody_has_another(clock: Callable[[], float]) -> None:
    bench, queue, everybody = class_of_thirty(3_600, clock)
    bench.gate.set()
    settle(lambda: len(bench.measured) == 30 * 6)
    order = turns(bench, everybody)
    rounds = [order[at : at + 30] for at in range(0, len(order), 30)]
    assert all(len(set(each)) == len(each) for each in rounds) and len(set(rounds[0])) == 30
    queue.close()


def test_who_has_many_tabs_has_one_turn_all_the_same() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench, clock=lambda: 0.0)
    tabs = {f"tab {number}": tasks(8, 1 + number) for number in range(5)}
    other = tasks(8, 9)
    for name, wanted in tabs.items():
        queue.want(name, wanted, "ada")
    queue.want("a tab", other, "ben")
    bench.gate.set()
    settle(lambda: len(bench.measured) == 48)
    whose = turns(bench, {"ada": [each for wanted in tabs.values() for each in wanted], "ben": other})
    first = whose[: 2 * whose.count("ben")]
    assert first in (["ada", "ben"] * whose.count("ben"), ["ben", "ada"] * whose.count("ben"))
    queue.close()


def test_who_begins_one_game_after_the_other_goes_behind_those_who_wait() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench, clock=lambda: 0.0)
    queue.want("one", tasks(4, 1), "ada")
    settle(lambda: bool(bench.batches))  # ada's turn
    two, again = tasks(2, 2), tasks(2, 3)
    queue.drop("one")
    queue.want("one", again, "ada")
    queue.want("two", two, "ben")
    bench.gate.set()
    settle(lambda: len(bench.measured) >= 4)
    asked = [each for each in bench.measured if each in {task.hash for _, task in two + again}]
    assert asked[:2] == [task.hash for _, task in two]
    queue.close()


def test_errands_of_others_do_not_keep_anybody_from_their_turn() -> None:
    bench = Bench()
    bench.gate.clear()
    queue = MeasuringQueue(lambda: bench, clock=lambda: 0.0)
    queue.want("one", tasks(1, 1))
    settle(lambda: bool(bench.batches))
    done: list[int] = []
    for number in range(3 * ERRANDS):
        queue.errand(f"assembly/{number}", lambda: done.append(len(bench.measured)))
    queue.want("two", tasks(1, 2))
    bench.gate.set()
    settle(lambda: len(done) == 3 * ERRANDS)
    assert done.count(1) <= ERRANDS < done.count(2)
    queue.close()
