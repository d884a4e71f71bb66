"""Records go from one database to another, each once; an old database gets the new form; nothing is lost."""

import gzip
import json
import os
import random
import signal
import sqlite3
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from dojo_core.cli import app
from dojo_core.measure.exchange import NoRecord, Taken, exported, from_line, merge, take_in, to_line
from dojo_core.measure.records import _SCHEMA, Records
from tests.test_records import RECORD

SEVERAL = [
    replace(RECORD, program_hash=f"p{n}", time=100.0 + n, error=float("inf") if n == 2 else 0.5)
    for n in range(4)
]


def test_a_record_is_the_same_after_a_journey(tmp_path):
    assert from_line(to_line(SEVERAL[0])) == SEVERAL[0]
    with Records(tmp_path / "a.sqlite") as here, Records(tmp_path / "b.sqlite") as there:
        here.add_all(SEVERAL)
        assert take_in(there, exported(here)) == Taken(4, 0)
        assert [r for _, r in there.measurements()] == [r for _, r in here.measurements()]


def test_what_is_taken_in_twice_is_there_once(tmp_path):
    with Records(tmp_path / "a.sqlite") as here, Records(tmp_path / "b.sqlite") as there:
        here.add_all(SEVERAL[:3])
        there.add_all(SEVERAL[1:])
        assert merge(here, tmp_path / "b.sqlite") == Taken(1, 2)
        assert merge(here, tmp_path / "b.sqlite") == Taken(0, 3)
        assert len(here.measurements()) == 4
        assert here.add_all([SEVERAL[0], replace(SEVERAL[0], time=7.0)]) == 1


def test_conditions_travel_and_a_line_of_an_older_dojo_has_none():
    busy = replace(SEVERAL[0], load=0.6, exclusive=False)
    assert from_line(to_line(busy)) == busy
    told = json.loads(to_line(busy))
    del told["load"], told["exclusive"]
    assert from_line(json.dumps(told)) == replace(busy, load=None, exclusive=True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"dojo record": 2}, "does not begin"),
        ({"kernel": 5}, "kernel is 5"),
        ({"seconds": "fast"}, "seconds is 'fast'"),
        ({"seconds": -1.0}, "its status or its time"),
        ({"seconds": True}, "seconds is True"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"status": "great"}, "its status or its time"),
        ({"status": "crash"}, "verified without a time"),
        ({"samples": [[1.0, 0]]}, "samples are not lists"),
        ({"samples": []}, "verified without a time"),
        ({"time": 0.0}, "no date"),
        ({"load": 1.5}, "its load is no share"),
        ({"load": -0.5}, "its load is no share"),
        ({"load": "much"}, "load is 'much'"),
        ({"exclusive": 1}, "exclusive is 1"),
    ],
)
def test_a_line_that_is_no_record_is_told(tmp_path, change, why):
    bad = json.dumps({**json.loads(to_line(SEVERAL[1])), **change})
    with Records(tmp_path / "a.sqlite") as records:
        with pytest.raises(NoRecord, match=f"Line 2 .*{why}"):
            take_in(records, [to_line(SEVERAL[0]), bad, to_line(SEVERAL[2])])
        assert [r.program_hash for _, r in records.measurements()] == ["p0"]


@pytest.mark.parametrize("text", ["{", "[]", "7", "", "{}" * 600_000])
def test_a_text_that_is_no_json_object_is_told(text):
    with pytest.raises(NoRecord, match="Line 9"):
        from_line(text, 9)


def test_a_database_of_the_first_version_gets_the_new_form(tmp_path):
    path = tmp_path / "old.sqlite"
    with Records(tmp_path / "new.sqlite") as records:
        records.add_all(SEVERAL)
        columns = [
            row["name"]
            for row in records._rows("PRAGMA table_info(measurements)")
            if row["name"] not in ("key", "load", "exclusive")
        ]
        rows = [tuple(row[name] for name in columns) for row in records._rows("SELECT * FROM measurements")]
    old = sqlite3.connect(path)
    for statement in _SCHEMA.split(";"):
        old.execute(statement)
    old.execute("PRAGMA user_version = 1")
    marks = ",".join("?" * len(columns))
    twice = rows[0][1:]
    old.executemany(f"INSERT INTO measurements VALUES ({marks})", [*rows, (99, *twice)])
    old.commit()
    old.close()
    with Records(path) as records:
        kept = [r.program_hash for _, r in records.measurements()]
        assert kept == ["p0", "p1", "p2", "p3"]  # the one that stood there twice is there once
        assert records.add_all(SEVERAL) == 0
    with Records(path) as again:
        assert len(again.measurements()) == 4


def test_killed_a_hundred_times_while_writing_nothing_finished_is_lost(tmp_path):
    rng, finished = random.Random(0), set()
    for number in range(100):
        heard, told = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(heard)
            with Records(tmp_path / "r.sqlite") as records:
                for write in range(10_000):
                    records.add(replace(RECORD, program_hash=f"{number}.{write}", time=1.0 + write))
                    os.write(told, f"{number}.{write}\n".encode())
            os._exit(0)
        os.close(told)
        with os.fdopen(heard) as lines:
            finished.add(lines.readline().strip())
            time.sleep(rng.random() * 0.01)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            finished.update(lines.read().splitlines())
    with Records(tmp_path / "r.sqlite") as records:
        assert finished <= {record.program_hash for _, record in records.measurements()}
        assert records._rows("PRAGMA integrity_check")[0][0] == "ok"
    assert len(finished) > 100


# ---------------------------------------------------------------------------- the command line


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dojo(*words, code=0):
    told = CliRunner().invoke(app, list(words))
    assert told.exit_code == code, told.output
    return told


def test_records_travel_by_the_command_line(home, monkeypatch):
    with Records() as records:
        records.add_all(SEVERAL)
    assert "Wrote 4 measurements" in dojo("records-export", "mine.jsonl").stderr
    monkeypatch.setenv("DOJO_HOME", str(home / "other"))
    assert "4 measurements new, 0 measurements known" in dojo("records-import", "mine.jsonl").stdout
    assert "0 measurements new, 4 measurements known" in dojo("records-import", "home/records.sqlite").stdout
    (home / "bad.jsonl").write_text("{}\n")
    assert "Line 1 is no record" in dojo("records-import", "bad.jsonl", code=1).stderr
    (home / "bad.sqlite").write_text("nothing of the kind")
    assert "cannot be read as records" in dojo("records-import", "bad.sqlite", code=1).stderr
    assert "There is no file" in dojo("records-import", "none.jsonl", code=1).stderr


def test_the_best_of_some_kernels_travel_packed(home, monkeypatch):
    slow, fast = replace(RECORD, seconds=2.0, time=1.0), replace(RECORD, seconds=1.0, time=2.0)
    faster = replace(RECORD, program_hash="p2", seconds=0.5, time=3.0)
    wrong = replace(RECORD, program_hash="p3", seconds=0.1, verified=False)
    other = replace(RECORD, kernel="relu", start_hash="s2")
    with Records() as records:
        records.add_all([slow, fast, faster, wrong, other])
    assert (
        "Wrote 2 measurements" in dojo("records-export", "best.jsonl.gz", RECORD.kernel, "--best", "2").stderr
    )
    monkeypatch.setenv("DOJO_HOME", str(home / "other"))
    assert "2 measurements new" in dojo("records-import", "best.jsonl.gz").stdout
    with Records() as records:
        assert {record.seconds for _, record in records.measurements(0, 9)} == {1.0, 0.5}
    (home / "cut.jsonl.gz").write_bytes((home / "best.jsonl.gz").read_bytes()[:-20])
    assert "cannot be read as records" in dojo("records-import", "cut.jsonl.gz", code=1).stderr
    with gzip.open(home / "endless.jsonl.gz", "wt") as file:
        file.write(" " * 50 + "x" * (3 << 20))
    assert "longer than 1 MiB" in " ".join(dojo("records-import", "endless.jsonl.gz", code=1).stderr.split())
    assert "cannot be opened" in dojo("records-export", "none/best.jsonl", code=1).stderr


def test_the_best_line_is_a_query(home):
    assert "Nothing of softmax 4x8 has been measured" in " ".join(
        dojo("best", "softmax", "--shape", "4x8", code=1).stderr.split()
    )
    from dojo_core import kernels
    from dojo_core.game import Game
    from dojo_core.measure.machine import this_machine

    start = kernels.get("softmax").program((4, 8))
    record = replace(
        RECORD,
        start_hash=start.hash,
        fingerprint=this_machine().fingerprint,
        line="join_scopes m@0",
        time=5.0,
    )
    with Records() as records:
        records.add_all([record, replace(record, seconds=0.1, line="", program_hash="p2", verified=False)])
    assert "500 ms" in dojo("best", "softmax", "--shape", "4x8").stdout
    told = dojo("best", "softmax", "--shape", "4x8", "--line", "--save", "g")
    assert told.stdout == "join_scopes m@0\n"
    assert len(Game.from_text((home / "g").read_text()).line()) == 2
