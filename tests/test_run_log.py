"""What a run's log keeps, and what it makes of one that is damaged."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.run_log import RunKey, RunLog, SharedStart
from agents.timing import timed
from dojo_core import kernels
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.program.tree import Program

KEY = RunKey("softmax", "8x32", "reassoc", "cpu", "start", (), "annealing", 1, 10, None, "machine")


def measured(number: int) -> Measurement:
    samples = (1000.0 + number, 1100.0)
    conditions = Conditions(0.5, exclusive=number % 2 == 0)
    return Measurement(
        f"program {number}", "", "ok", "", samples, 1e-6, 1.1e-6, True, known=True, conditions=conditions
    )


def known(path: Path) -> list[Measurement]:
    with RunLog(path, KEY) as log:
        return list(log.known.values())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with RunLog(tmp_path / "run.jsonl", KEY) as log:
        for number in range(3):
            log.add(measured(number), Effort.QUICK, 1.0, "")
    return tmp_path / "run.jsonl"


def test_a_log_is_read_as_it_was_written(path: Path) -> None:
    assert known(path) == [measured(n) for n in range(3)]


def test_what_comes_behind_a_damaged_line_is_measured_again(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1001.0", b"1701.0"))
    assert known(path) == [measured(0)]
    assert known(path) == [measured(0)], "the rest is cut off"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_log_that_was_cut_goes_on_with_what_is_whole(path: Path, share: float) -> None:
    contents = path.read_bytes()
    path.write_bytes(contents[: int(share * len(contents))])
    found = known(path)
    assert found == [measured(n) for n in range(len(found))]


def test_a_log_without_checksums_is_read(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"".join(line.rpartition(b', "sum"')[0] + b"}\n" for line in lines))
    assert known(path) == [measured(n) for n in range(3)]
    path.write_bytes(path.read_bytes().replace(b'"samples": [1001.0', b'"samples": ["?"'))
    assert known(path) == [measured(0)]


class Clock:
    """Each run of a program takes a second longer than the one before."""

    def __init__(self) -> None:
        self.measured: list[str] = []

    def measure(self, workload: Workload, programs: Sequence[Program], *_: object) -> list[Measurement]:
        self.measured += [program.hash for program in programs]
        return [timed(program, float(len(self.measured))) for program in programs]


def test_runs_side_by_side_begin_from_one_time_of_their_start(tmp_path: Path) -> None:
    start, other = (kernels.get("relu").program((8, size)) for size in (16, 32))
    workload, clock, path = Workload(start, "relu"), Clock(), tmp_path / "start.jsonl"

    def seconds(lane: SharedStart, effort: Effort = Effort.QUICK) -> list[float | None]:
        programs = [other, start]
        return [each.seconds for each in lane.measure(workload, programs, {}, effort, lambda: False)]

    one, two, alone = (
        SharedStart(at, KEY, start.hash, clock) for at in (path, path, tmp_path / "gone" / "x")
    )
    assert seconds(one) == [2.0, 1.0] and seconds(two) == [3.0, 1.0]
    assert clock.measured.count(start.hash) == 1 and clock.measured.count(other.hash) == 2
    # at the end of a run all is timed anew, and where the other run was deleted, too
    assert seconds(one, Effort.FINAL) == [5.0, 5.0] and seconds(alone) == [7.0, 7.0]

    # while one measures it the other waits, unless it is stopped
    with RunLog(path, KEY):
        asked = iter([False, False, True])
        (stopped,) = two.measure(workload, [start], {}, Effort.QUICK, lambda: next(asked))
    assert stopped.status == "cancelled"
