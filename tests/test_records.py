"""Measurements and games outlive their process."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dojo_core.measure.catalogue import Catalogue, Wanted
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.exchange import exported
from dojo_core.measure.measurement import Measurement, Origin
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
        records._connection.execute("DROP TABLE limits")
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


DAY = 86_400.0


def test_of_a_programs_times_those_taken_in_quiet_count_and_of_them_the_shortest(tmp_path: Path) -> None:
    now = time.time()
    busy = replace(RECORD, seconds=0.1, time=now, load=0.6)
    beside = replace(RECORD, seconds=0.2, time=now - 1, load=0.0, exclusive=False)
    unknown = replace(RECORD, seconds=0.3, time=now - 2)
    old = replace(RECORD, seconds=0.4, time=now - 31 * DAY, load=0.0)
    slower = replace(RECORD, seconds=0.6, time=now - 1 * DAY, load=0.1)
    quiet = replace(RECORD, seconds=0.5, time=now - 2 * DAY, load=0.02)
    with Catalogue(tmp_path / "r.sqlite") as records:
        for newest, expected in ((busy, busy), (beside, busy), (unknown, unknown), (old, old),
                                 (slower, slower), (quiet, quiet)):  # fmt: skip
            records.add(newest)
            assert records.known("p1", "cpu", "here") == expected
            assert records.known_code("c1", "s1", "here") == expected
            assert records.best("s1", "cpu", "here") == expected
            (row,) = records.rows(Wanted(), "time")
            assert (row.seconds, row.conditions) == (expected.seconds, expected.conditions)
            assert [board.best for board in records.boards()] == [expected.seconds]
            assert [json.loads(line)["seconds"] for line in exported(records, best=1)] == [expected.seconds]
        assert row.runs == 6


def test_a_time_of_a_busy_machine_keeps_its_rank_for_noise_only_adds(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        records.add_all([
            replace(RECORD, program_hash="busy", seconds=0.2, load=0.9),
            replace(RECORD, program_hash="quiet", seconds=0.3, load=0.0),
            replace(RECORD, program_hash="again", seconds=0.1, load=0.9),
            replace(RECORD, program_hash="again", seconds=0.4, load=0.0),
        ])  # fmt: skip
        ranking = records.ranking("s1", "cpu", "here")
        assert [(r.program_hash, r.seconds) for r in ranking] == [
            ("busy", 0.2), ("quiet", 0.3), ("again", 0.4),
        ]  # fmt: skip


def test_who_takes_a_time_again_does_not_take_the_program_from_who_came_to_it_first(tmp_path: Path) -> None:
    with Catalogue(tmp_path / "r.sqlite") as records:
        records.add_all([
            replace(RECORD, line="split_scope y@0 2\nunroll y@1", player="ann", load=0.9, time=1.0),
            replace(RECORD, line="", player="", load=0.0, time=2.0),
            replace(RECORD, line="another way", player="ben", load=0.0, seconds=0.7, time=3.0),
        ])  # fmt: skip
        (best,) = records.ranking("s1", "cpu", "here")
        assert (best.line, best.player, best.load) == ("split_scope y@0 2\nunroll y@1", "ann", 0.0)
        (row,) = records.rows(Wanted())
        assert (row.moves, row.player, row.load) == (2, "ann", 0.0)


def test_what_is_old_marked_or_doubtful_is_not_believed() -> None:
    now = time.time()
    here, gpu = Origin("cpu", "here", "{}", gauged=True), Origin("cuda", "there", "{}")
    quiet = replace(RECORD, time=now - 29 * DAY, load=0.05)
    assert here.believes(quiet) and gpu.believes(quiet)
    assert not here.believes(replace(quiet, time=now - 31 * DAY))
    assert not here.believes(replace(quiet, load=0.2))
    assert not here.believes(replace(quiet, exclusive=False))
    # of an older Dojo; a clock that never tells is not doubted for it
    unknown = replace(quiet, load=None)
    assert not here.believes(unknown) and gpu.believes(unknown)
    assert not gpu.believes(replace(unknown, time=now - 31 * DAY))
    # a verdict on the code does not depend on the machine's mood
    assert here.believes(replace(unknown, status="out_of_bounds", verified=False))
    assert not here.believes(replace(unknown, status="crash", verified=False))


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


def test_records_in_memory_leave_no_file_where_the_command_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with Records(":memory:"):
        pass
    assert list(tmp_path.iterdir()) == []
