"""Records go from one database to another, each once; an old database gets the new form; nothing is lost."""

import gzip
import json
import os
import random
import signal
import sqlite3
import time
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from dojo_core import kernels
from dojo_core.cli import app
from dojo_core.measure.exchange import (
    LONGEST,
    NoRecord,
    Taken,
    exported,
    from_line,
    merge,
    take_in,
    to_line,
)
from dojo_core.measure.records import _SCHEMA, Record, Records, Sample
from dojo_core.program.tree import text_hash
from tests import test_records

LONG_AGO = 1.7e9  # in November 2023


def measured(rows: int = 4, seconds: float = 0.5, **changes: Any) -> Record:
    """What a measurement of softmax may have been."""
    start = kernels.get("softmax").program((rows, 8))
    samples = (Sample(1e9 * seconds, 0, 3), Sample(6e8, 1, 0))
    told = replace(
        test_records.RECORD, program_text=start.text, program_hash=start.hash, start_hash=start.hash,
        shape=f"{rows}x8", seconds=seconds, samples=samples, time=LONG_AGO,
    )  # fmt: skip
    return replace(told, **changes)


RECORD = measured()
SEVERAL = [
    measured(n + 4, time=LONG_AGO + n, error=float("inf") if n == 2 else 0.5, verified=n != 2)
    for n in range(4)
]
HASHES = [record.program_hash for record in SEVERAL]


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
        assert here.add_all([SEVERAL[0], replace(SEVERAL[0], time=LONG_AGO - 7)]) == 1


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
        ({"dojo record": True}, "does not begin"),
        ({"kernel": 5}, "kernel is 5"),
        ({"kernel": ""}, "names no kernel"),
        ({"kernel": "soft\x1bmax"}, "control character"),
        ({"seconds": "fast"}, "seconds is 'fast'"),
        ({"seconds": -1.0}, "a time of -1 s is none"),
        ({"seconds": 0}, "a time of 0 s is none"),
        ({"seconds": 1e-12}, "a time of 1e-12 s is none"),
        ({"seconds": 1e9}, "a time of 1e[+]09 s is none"),
        ({"seconds": 10**60}, "a time of 1e[+]60 s is none"),
        ({"seconds": 0.25}, "not the least of its samples"),
        ({"seconds": None}, "verified without a time"),
        ({"seconds": None, "verified": False}, "its status is ok and it has no time"),
        ({"seconds": True}, "seconds is True"),
        ({"seconds": float("nan")}, "NaN is no number"),
        ({"seconds": float("inf")}, "Infinity is no number"),
        ({"error": float("nan")}, "NaN is no number"),
        ({"error": -2.0}, "its error is -2"),
        ({"calibration": -1.0}, "its calibration took -1 ms"),
        ({"status": "great"}, "no status 'great'"),
        ({"status": "crash"}, "verified without a time"),
        ({"policy": "anything"}, "no policy 'anything'"),
        ({"target": "abacus"}, "no target 'abacus'"),
        ({"dtype": "f31"}, "no dtype 'f31'"),
        ({"shape": "4 by 8"}, "'4 by 8' is no shape"),
        ({"samples": [[1.0, 0]]}, "samples are not lists"),
        ({"samples": [[True, 0, 0]]}, "samples are not lists"),
        ({"samples": [[0.1, 0, 0]]}, "a sample of 0.1 ns is none"),
        ({"samples": [[5e8, -1, 0]]}, "samples are not lists"),
        ({"samples": [[5e8, 2**60, 0]]}, "counts more than there can be"),
        ({"samples": [[5e8, 0, 0]] * 20_000}, "more than 10,000 samples"),
        ({"samples": []}, "verified without a time"),
        ({"program_hash": "a" * 24}, "that of another program text"),
        ({"program_text": "kernel x"}, "that of another program text"),
        ({"program_text": "no program", "program_hash": text_hash("no program")}, "cannot be read"),
        ({"start_hash": "../../etc"}, "its start_hash"),
        ({"fingerprint": ""}, "its fingerprint"),
        ({"machine": "a machine"}, "its machine is no JSON object"),
        ({"message": "x" * 200_000}, "message is longer than"),
        ({"time": 0.0}, "no date"),
        ({"time": 100.0}, "before 2020"),
        ({"time": 9e9}, "in the future"),
        ({"load": 1.5}, "its load is no share"),
        ({"load": -0.5}, "its load is no share"),
        ({"load": "much"}, "load is 'much'"),
        ({"exclusive": 1}, "exclusive is 1"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_told_and_nothing_is_kept(tmp_path, change, why):
    bad = json.dumps({**json.loads(to_line(SEVERAL[1])), **change})
    with Records(tmp_path / "a.sqlite") as records:
        with pytest.raises(NoRecord, match=f"Line 2 .*{why}.*Nothing of the file was taken in"):
            take_in(records, [to_line(SEVERAL[0]), bad, to_line(SEVERAL[2])])
        assert records.measurements() == []
    assert {file.name for file in tmp_path.iterdir()} == {"a.sqlite", ".a.sqlite.lock"}


LINE = to_line(SEVERAL[0])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (LINE.replace("0.5,", "9" * 400 + ",", 1), "a number of 400 characters"),
        (LINE.replace("0.5,", "9" * 5000 + ",", 1), "a number of 5,000 characters"),
        (LINE.replace("0.5,", "1e400,", 1), "larger than any number"),
        ("[" * 100_000, "nested deeper"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('{"a":' * 100_000, "nested deeper"),
        (LINE.replace('"softmax"', '"\\ud800"'), "half of a surrogate pair"),
        (LINE.replace('"softmax"', '"a", "kernel": "b"'), "'kernel' stands twice"),
        ("\x00" * 1000, "it is no JSON"),
        ("{", "it is no JSON"),
        ("[]", "no JSON object"),
        ("7", "no JSON object"),
        ("x" * (LONGEST + 5), "longer than 1 MiB"),
        ('"' * 700_000, "no JSON"),
        ('"' + "\\" * 700_000, "no JSON"),
        ("\n" * 2_000_000, "10,000 lines before it are empty"),
        (b"\xff\xfe\x00garbage", "not UTF-8"),
        (b"\x1f\x8b\x08\x00garbage", "damaged or cut off"),
        (b"\x1f\x8b", "damaged or cut off"),
        (b"\x7fELF" + b"\x00" * 99, "no JSON"),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) < 60 else "data",
)  # fmt: skip
def test_a_hostile_file_is_a_sentence_with_its_line(home, data, why):
    (home / "bad.jsonl").write_bytes(data if isinstance(data, bytes) else data.encode())
    began = time.process_time()
    told = " ".join(dojo("records-import", "bad.jsonl", code=1).stderr.split())
    assert "bad.jsonl: Line" in told and why in told and "Nothing of the file was taken in" in told
    assert time.process_time() - began < 20  # a tenth of a second, on a machine that does nothing else


def test_what_unpacks_to_gigabytes_is_not_unpacked(home):
    """Two gigabytes behind two megabytes: no more than some of it is looked at, and none of it kept."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = (" " * 9_999 + "\n").encode() * 100
    first, again = (packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    (home / "bomb.jsonl.gz").write_bytes(first + 300 * again)  # a piece hangs on none before it
    tracemalloc.start()
    told = " ".join(dojo("records-import", "bomb.jsonl.gz", code=1).stderr.split())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "unpacks to more than 64 times its size" in told or "are empty" in told
    assert peak < 60e6


def test_files_are_read_however_they_came(home):
    """A mark at the beginning, the line ends of another system, empty lines, several packed parts."""
    lines = [to_line(record) for record in SEVERAL]
    (home / "windows.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, "", ""]).encode())
    assert "4 measurements new" in dojo("records-import", "windows.jsonl").stdout
    parts = [gzip.compress((line + "\n").encode()) for line in lines]
    (home / "parts").write_bytes(b"".join(parts))
    assert "4 measurements known" in dojo("records-import", "parts").stdout
    (home / "cut").write_bytes(b"".join(parts)[:-3])
    assert "cut off" in dojo("records-import", "cut", code=1).stderr
    with Records(home / "other.sqlite") as records:
        records.add_all([*SEVERAL, replace(RECORD, seconds=-1.0, time=LONG_AGO - 1), test_records.RECORD])
    os.rename(home / "other.sqlite", home / "without-its-ending")
    told = " ".join(dojo("records-import", "without-its-ending").stdout.split())
    assert "0 measurements new, 4 measurements known already. 2 rows left out" in told


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
        assert kept == HASHES  # the one that stood there twice is there once
        assert records.add_all(SEVERAL) == 0
    with Records(path) as again:
        assert len(again.measurements()) == 4


@pytest.mark.thorough  # test_records.py has one kill
@pytest.mark.parametrize("kills", [15, pytest.param(300, marks=pytest.mark.soak)])
def test_killed_again_and_again_while_writing_nothing_finished_is_lost(tmp_path, kills):
    rng, finished = random.Random(kills), set()
    for number in range(kills):
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
    assert len(finished) > kills


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
    assert "Line 1 is no record" in dojo("records-import", "bad.sqlite", code=1).stderr
    assert "There is no file" in dojo("records-import", "none.jsonl", code=1).stderr


def test_the_best_of_some_kernels_travel_packed(home, monkeypatch):
    slow, fast = measured(seconds=2.0), measured(seconds=1.0, time=LONG_AGO + 2)
    start = fast.start_hash
    faster = measured(5, seconds=0.5, time=LONG_AGO + 3, start_hash=start)
    wrong = measured(6, seconds=0.1, verified=False, start_hash=start)
    other = measured(kernel="relu", start_hash="s2")
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
    assert "cut off" in dojo("records-import", "cut.jsonl.gz", code=1).stderr
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
