"""What a run's log keeps, and what it makes of one that is damaged."""

from pathlib import Path

import pytest

from agents.run_log import RunKey, RunLog
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Effort, Measurement

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
