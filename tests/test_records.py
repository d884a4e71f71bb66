"""Measurements and games outlive their process."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import Measurement
from dojo_core.measure.records import Record, Records, Sample, SavedGame

RECORD = Record(
    program_hash="p1",
    program_text="Name: t",
    start_hash="s1",
    kernel="softmax",
    shape="24x512",
    dtype="f32",
    policy="reassoc",
    line="",
    target="cpu",
    fingerprint="here",
    machine="{}",
    code_hash="c1",
    status="ok",
    verified=True,
    seconds=0.5,
    samples=(Sample(5e8, 0, 3), Sample(6e8, 1, 0)),
    effort="quick",
    player="ann",
)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        records.add(replace(RECORD, time=12.0))
    with Records(tmp_path / "r.sqlite") as records:
        assert records.known("p1", "cpu", "here") == replace(RECORD, time=12.0)
        assert records.known("p1", "cpu", "elsewhere") is None
        assert records.known_code("c1", "s1", "here") == replace(RECORD, time=12.0)
        assert records.known_code("c1", "s2", "here") is None


def test_a_record_of_version_2_has_no_known_load_and_one_of_now_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with Records(path) as records:
        records.add(replace(RECORD, time=12.0))
        for column in ("load", "exclusive"):
            records._connection.execute(f"ALTER TABLE measurements DROP COLUMN {column}")
        records._connection.execute("PRAGMA user_version = 2")
    with Records(path) as records:
        old = records.known("p1", "cpu", "here")
        assert old == replace(RECORD, time=12.0)
        assert old.conditions == Conditions(None, True) and not old.conditions.quiet
        records.add(replace(RECORD, program_hash="p2", time=13.0, load=0.6, exclusive=False))
    with Records(path) as records:
        new = records.known("p2", "cpu", "here")
        assert new is not None and new.conditions == Conditions(0.6, False)


def test_a_time_from_the_records_says_its_age_and_what_else_the_machine_did() -> None:
    day = 86_400.0
    told = Measurement.recorded(replace(RECORD, time=10 * day, load=0.6)).provenance(now=13.5 * day)
    assert told == "from the records, 3 days ago, machine busy: other processes took 60% of the cores"
    assert Measurement.recorded(replace(RECORD, time=10 * day)).provenance(now=10 * day) == (
        "from the records, just now, load not known"
    )
    beside = Conditions(0.02, exclusive=False)
    assert str(beside) == "busy: another measurement ran beside it" and not beside.quiet
    assert str(Conditions(0.02)) == "idle" and Conditions(0.02).quiet
    assert str(Conditions(0.6, False)) == (
        "busy: other processes took 60% of the cores, and another measurement ran beside it"
    )


def test_only_a_verified_program_counts_as_best(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        records.add_all(
            [
                RECORD,
                replace(RECORD, program_hash="p2", seconds=0.1, verified=False, status="wrong_result"),
                replace(RECORD, program_hash="p3", seconds=0.3),
                replace(RECORD, program_hash="p3", seconds=0.4),
                replace(RECORD, program_hash="p4", seconds=0.2, fingerprint="elsewhere"),
                replace(RECORD, program_hash="p5", seconds=0.2, policy="algebraic"),
            ]
        )
        best = records.best("s1", "cpu", "here", "reassoc")
        assert best is not None and (best.program_hash, best.seconds) == ("p3", 0.3)
        assert [r.program_hash for r in records.ranking("s1", "cpu", "here", "reassoc")] == ["p3", "p1"]
        # what a stricter policy allows is allowed too
        assert [r.program_hash for r in records.ranking("s1", "cpu", "here", "algebraic")] == [
            "p5",
            "p3",
            "p1",
        ]
        assert records.best("s1", "cpu", "here", "strict") is None
        assert records.best("s2", "cpu", "here") is None


def test_what_is_known_may_be_asked_for_one_start_program(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        records.add_all([RECORD, replace(RECORD, start_hash="s2", status="wrong_result", verified=False)])
        found = records.known_all(["p1", "p2"], "cpu", "here", start_hash="s2")
        assert {h: r.status for h, r in found.items()} == {"p1": "wrong_result"}
        assert records.known_all(["p1"], "cpu", "here")["p1"].status == "ok"


def test_failures_are_counted_by_code(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        for status in ("crash", "timeout", "wrong_result"):
            records.add(replace(RECORD, status=status, verified=False, seconds=None))
        assert records.failures("c1", "here") == 2


def test_a_game_is_saved_over_its_older_state(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        first = records.save_game(SavedGame("g1", "ann", "softmax", "mine", "text 1"))
        records.save_game(SavedGame("g2", "ben", "matmul", "his", "text 2"))
        again = records.save_game(SavedGame("g1", "ann", "softmax", "mine", "text 3"))
        assert again.created == first.created
        assert [g.text for g in records.games("ann")] == ["text 3"]
        assert len(records.games()) == 2
        records.delete_game("g1")
        assert records.game("g1") is None


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        records._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ValueError, match="newer Dojo"):
        Records(tmp_path / "r.sqlite")


def test_threads_and_connections_share_one_database(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as one, Records(tmp_path / "r.sqlite") as two:

        def write(records: Records, player: str) -> None:
            for _ in range(20):
                records.add(replace(RECORD, player=player))

        threads = [threading.Thread(target=write, args=a) for a in ((one, "a"), (one, "b"), (two, "c"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(one.measurements()) == 60


def test_kill_9_while_writing_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    writer = f"""
from tests.test_records import RECORD, Records, replace
records = Records({str(tmp_path / "r.sqlite")!r})
for number in range(100000):
    records.add(replace(RECORD, program_hash=str(number)))
    print(number, flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", writer], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
    )
    assert process.stdout is not None
    for _ in range(50):
        finished = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    finished = max([finished, *(int(line) for line in process.stdout.read().split("\n")[:-1])])
    process.wait()
    with Records(tmp_path / "r.sqlite") as records:
        kept = {record.program_hash for _, record in records.measurements()}
    assert {str(number) for number in range(finished + 1)} <= kept
