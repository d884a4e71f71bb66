"""How busy others keep the machine, by readings that are made up: no test depends on what runs beside it."""

from pathlib import Path

import pytest

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.load import Gauge, Reading, Watch, family_seconds, share_of_others, used_seconds

STAT = """\
cpu  400 0 200 9000 50 0 6 38 0 0
cpu0 300 10 100 4000 50 1 2 7 90 0
cpu1 100 0 100 5000 0 0 4 31 0 0
intr 12 0 0
"""


class Machine:
    """Two cores whose clock ``run`` and ``sleep`` move; ``others``: what else they do (0 to 1)."""

    def __init__(self, others: float = 0.0) -> None:
        self.others = others
        self.wall = self.used = self.own = 0.0
        self.slept = 0.0

    def run(self, seconds: float, own: float = 0.0) -> None:
        """``own``: the share of the cores that we use ourselves meanwhile."""
        self.wall += seconds
        self.used += 2 * seconds * min(1.0, self.others + own)
        self.own += 2 * seconds * own

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.run(seconds)

    def read(self) -> Reading:
        return Reading(self.wall, self.used, self.own, 2)


def test_used_time_is_all_that_is_neither_idle_nor_waiting() -> None:
    assert used_seconds(STAT, frozenset({0, 1})) == (6.55, 2)
    # a process that may run on one core hears of that one, in ticks of another length too
    assert used_seconds(STAT, frozenset({1}), ticks=1000) == (0.235, 1)
    # a container that numbers its cores anew: what it shows is what there is
    assert used_seconds(STAT, frozenset({6, 7})) == (6.55, 2)
    # a sandbox that prints zeros tells nothing
    assert used_seconds("cpu0 0 0 0 0 0 0 0 0 0 0\n", frozenset({0})) is None
    assert used_seconds("", frozenset({0})) is None


def test_the_share_of_others_is_what_was_used_less_our_own() -> None:
    before = Reading(10.0, 100.0, 5.0, 2)
    assert share_of_others(before, Reading(11.0, 101.7, 5.5, 2)) == pytest.approx(0.6)
    # ticks are coarse: never less than none, nor more than all
    assert share_of_others(before, Reading(11.0, 100.9, 6.0, 2)) == 0.0
    assert share_of_others(before, Reading(11.0, 109.0, 5.0, 2)) == 1.0
    assert share_of_others(before, before) == 0.0


def test_a_long_measurement_is_gauged_by_itself() -> None:
    machine = Machine(others=0.9)
    gauge = Gauge(machine.read, machine.sleep)
    gauge.begin()
    machine.run(0.1)
    gauge.share()
    machine.others = 0.25
    gauge.begin()
    machine.run(0.4, own=0.5)
    assert gauge.share() == pytest.approx(0.25)


def test_a_short_one_alone_waits_and_those_after_it_do_not() -> None:
    machine = Machine(others=0.3)
    gauge = Gauge(machine.read, machine.sleep)
    gauge.begin()
    machine.run(0.01, own=0.5)
    assert gauge.share() == pytest.approx(0.3) and machine.slept == pytest.approx(0.19)
    for _ in range(40):
        machine.run(0.005)  # the results are kept
        gauge.begin()
        machine.run(0.01, own=0.5)
        assert gauge.share() == pytest.approx(0.3)
    assert machine.slept == pytest.approx(0.19)


def test_what_a_compiler_did_before_is_no_load() -> None:
    machine = Machine()
    gauge = Gauge(machine.read, machine.sleep)
    gauge.begin()
    machine.run(0.3, own=0.5)
    assert gauge.share() == 0.0
    machine.others = 1.0
    machine.run(0.5)
    machine.others = 0.0
    gauge.begin()
    machine.run(0.01, own=0.5)
    assert gauge.share() == pytest.approx(0.0)


def test_short_ones_of_batches_with_compilers_between_share_what_is_timed() -> None:
    machine = Machine()
    gauge = Gauge(machine.read, machine.sleep)
    shares = []
    for batch in range(8):
        machine.others = 1.0  # our own compilers
        machine.run(0.3)
        machine.others = 0.3 * (batch >= 4)
        for _ in range(8):
            gauge.begin()
            machine.run(0.01, own=0.5)
            shares.append(gauge.share())
            machine.run(0.003)
    assert machine.slept == pytest.approx(0.19), "the first waits, and no other"
    assert shares[:32] == pytest.approx([0.0] * 32, abs=1e-9)
    assert shares[-8:] == pytest.approx([0.3] * 8)


def test_what_others_took_seconds_ago_tells_nothing_of_now() -> None:
    machine = Machine(others=0.6)
    gauge = Gauge(machine.read, machine.sleep)
    gauge.begin()
    machine.run(0.4)
    assert gauge.share() == pytest.approx(0.6)
    machine.run(5.0)
    machine.others = 0.0
    gauge.begin()
    machine.run(0.01)
    assert gauge.share() == pytest.approx(0.0) and machine.slept == pytest.approx(0.19)


def test_a_system_that_does_not_tell_gives_no_load() -> None:
    gauge = Gauge(lambda: None)
    gauge.begin()
    assert gauge.share() is None
    assert Watch(lambda: None).now(wait=True) == Conditions()


def test_the_machine_now_is_asked_at_most_once_a_second() -> None:
    machine, asked = Machine(others=0.6), 0

    def read() -> Reading:
        nonlocal asked
        asked += 1
        return machine.read()

    watch = Watch(read, machine.sleep, lambda: machine.wall)
    assert watch.now() == Conditions()  # nothing to compare with yet
    assert watch.now(wait=True).load == pytest.approx(0.6) and machine.slept == pytest.approx(0.2)
    asked = 0
    for _ in range(50):
        machine.run(0.01)
        watch.now()
    assert asked == 0
    machine.run(0.7)
    machine.others = 0.0
    machine.run(1.0, own=1.0)
    assert watch.now().load == pytest.approx(0.6 * 1.2 / 2.2)
    machine.run(1.0, own=1.0)
    assert str(watch.now()) == "idle"
    machine.run(60.0)
    assert str(watch.now()) == "load not known"  # what was a minute ago is not now
    machine.others = 0.6
    machine.run(1.5)
    assert str(watch.now()) == "busy: other processes took 60% of the cores"


def test_a_family_is_a_process_and_all_that_came_of_it(tmp_path: Path) -> None:
    def process(pid: int, parent: int, *ticks: int, name: str = "python") -> None:
        (tmp_path / str(pid)).mkdir()
        user, system, ended_user, ended_system = ticks
        fields = ["S", parent, pid, pid, 0, -1, 0, 0, 0, 0, 0, user, system, ended_user, ended_system, 20]
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(map(str, fields))}\n")

    process(1, 0, 9, 9, 9, 9)
    process(10, 1, 100, 20, 3, 4)
    process(11, 10, 200, 0, 0, 0, name="a (strange) name")
    process(12, 11, 50, 0, 0, 0)
    process(20, 1, 1000, 0, 0, 0)
    (tmp_path / "13").mkdir()  # one that has just ended
    assert family_seconds(10, tmp_path) == pytest.approx(3.77)
