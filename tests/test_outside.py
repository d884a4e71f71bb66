"""What others wrote (JSON, events of a page) is read within limits; errors of writing name the file."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agents import curves, leaderboard
from agents.cli import app
from agents.jobs.journal import Journal
from agents.jobs.recording import RECORDINGS
from agents.jobs.trainings import TrainingSpec
from agents.leaderboard import NoLeaderboard
from agents.llm.reply import NoChoice, choice_of
from agents.scale.wire import Answer, OtherVersion, Request
from agents.search import cost_model
from dojo_core.bounded_json import DEEPEST, NotJson, read_json, read_object
from dojo_core.export.kernel import _facts
from dojo_core.files import naming, trouble_text, write_text
from dojo_core.measure import evidence
from dojo_core.program.expressions import TextError
from dojo_core.service.events import client_name, sound
from dojo_core.service.library import _summary
from dojo_core.study.times import read_times

pytestmark = pytest.mark.usefixtures("kept_workers")

NESTED = "[" * 100_000
HOSTILE = [
    NESTED,
    NESTED + "]" * 100_000,
    '{"a":' * 100_000,
    '{"weights": ' + NESTED,
    '{"dojo job": 1, "x": "\\ud800"}',
    '{"dojo job": 1, "seed": ' + "9" * 5000 + "}",
    '{"dojo job": 1, "seed": 1e999}',
    '{"dojo job": 1, "dojo job": 1}',
    "9" * 5000,
    '"' * 99_999,
    "\x00" * 1000,
    "null",
    "{}",
    "[]",
    "",
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5, "b", null, true], "c": {}}', {"a": [1, -2.5, "b", None, True], "c": {}}),
        ("\ufeff[1]\r\n", [1]),
        (b"\xef\xbb\xbf[1]", [1]),
        ('["\\ud83d\\ude00"]', ["😀"]),
        ("[" * DEEPEST + "]" * DEEPEST, None),
        ('"' + "[" * 1000 + '"', "[" * 1000),
        ('["' + "\\\\" * 1000 + '[", "]"]', ["\\" * 1000 + "[", "]"]),
        (str(2**127), 2**127),
    ],
)
def test_json_is_read_as_it_says(text: str | bytes, value: object) -> None:
    read = read_json(text)
    assert value is None or read == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NESTED, f"nested deeper than {DEEPEST}"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested deeper"),
        ('{"a": "' + "x" * 99 + '", "b":' + "[" * 99, "nested deeper"),
        ("[NaN]", "NaN is no number of JSON"),
        ("[-Infinity]", "-Infinity is no number"),
        ("[1e400]", "larger than any number"),
        ("9" * 400, "a number of 400 characters"),
        ("1." + "9" * 400, "a number of 402 characters"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('{"\\udfff": 1}', "half of a surrogate pair"),
        ('["\ud800"]', "half of a surrogate pair"),
        (b"\xff[]", "its byte 1 is not UTF-8"),
        ("[1, 2", "no JSON [(].*line 1, column 6"),
        ("", "no JSON"),
        ("[" + "1," * 2_100_000 + "1]", "more than 2,000,000 values"),
        (" " * (17 << 20), "longer than 16 MiB"),
    ],
)
def test_what_is_no_json_is_told(text: str | bytes, why: str) -> None:
    with pytest.raises(NotJson, match=why):
        read_json(text)


def test_an_object_is_asked_for_and_python_s_own_infinities() -> None:
    with pytest.raises(NotJson, match="no JSON object"):
        read_object("[1]")
    assert read_object('{"a": Infinity}', nonfinite=True) == {"a": float("inf")}


DOORS: dict[str, tuple[Callable[[str, Path], object], tuple[type[Exception], ...]]] = {
    "journal": (lambda text, path: Journal(path), (ValueError,)),
    "run log": (lambda text, path: curves.logged(path.parent, "h", "m"), ()),
    "cost model": (lambda text, path: cost_model.load(path), (ValueError,)),
    "training": (lambda text, path: TrainingSpec.read(path), (ValueError,)),
    "request": (lambda text, path: Request.read(text), (OtherVersion,)),
    "answer": (lambda text, path: Answer.read(text), (OtherVersion,)),
    "evidence": (lambda text, path: evidence.load(path), (ValueError,)),
    "times": (lambda text, path: read_times(text), (TextError,)),
    "leaderboard": (lambda text, path: leaderboard.read(path), (NoLeaderboard,)),
    "a model's words": (lambda text, path: choice_of(text, ()), (NoChoice,)),
    "machine": (lambda text, path: _summary(text), ()),
    "facts": (lambda text, path: _facts(text), ()),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_hostile_text_raises_what_its_door_may_raise(door: str, tmp_path: Path) -> None:
    read, raises = DOORS[door]
    for text in HOSTILE:
        path = tmp_path / "hostile.jsonl"
        path.write_text(text + "\n")
        try:
            read(text, path)
        except raises as error:
            assert len(str(error)) < 400


def test_a_hostile_line_in_a_journal_is_passed_over(tmp_path: Path) -> None:
    first, *rest = (RECORDINGS / "softmax-agent.jsonl").read_text().splitlines()
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join([first, *HOSTILE, *rest, ""]))
    assert len(Journal(path).entries) == len(Journal(RECORDINGS / "softmax-agent.jsonl").entries)


@pytest.mark.parametrize(
    "command", [["bench", "--from", "FILE"], ["compare", "--plot", "FILE"], ["compare", "--from", "FILE"]]
)
def test_a_hostile_file_ends_a_command_in_a_sentence(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in [*HOSTILE, '{"curves": [{"points": 1}]}', '{"format": 1, "reports": [[]]}']:
        (tmp_path / "FILE").write_text(text)
        told = CliRunner().invoke(app, command)
        assert told.exit_code == 1, (text[:40], told.output)
        assert "Traceback" not in told.output and (told.exception is None or told.exc_info[0] is SystemExit)  # type: ignore[index]


def test_events_of_a_page_hold_nothing_that_cannot_be_kept() -> None:
    good: dict[str, Any] = {"seq": 1, "kind": "rename", "title": "é 😀"}
    bad = [
        {**good, "title": value} for value in ("\ud800", [["x"]], {"a": 1}, float("nan"), 10**400, ["\udfff"])
    ]
    assert list(sound([good, *bad, {"seq": 2, "\udc00": 1}, NESTED, None])) == [good]
    assert client_name("\ud800") == ""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert list(sound([{**good, "title": deep}, deep])) == []


# ---------------------------------------------------------------------------- errors of writing


def test_an_error_of_writing_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_text(Path("/dev/full"), "x")
    with pytest.raises(OSError, match=r"some\.npy") as cut, naming("some.npy"):
        raise OSError("16 requested and 8 written")
    assert trouble_text(cut.value) == "some.npy: 16 requested and 8 written."
    with pytest.raises(FileNotFoundError) as missing, naming("another"):
        (tmp_path / "none" / "file").read_text()
    assert trouble_text(missing.value) == f"{tmp_path / 'none' / 'file'}: No such file or directory."


def test_no_sentence_begins_with_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    nameless = OSError(errno.ENOSPC, "No space left on device")
    assert trouble_text(nameless).startswith(f"No space left on device: free some on the disk of {tmp_path}")
    assert trouble_text(OSError(errno.EIO, "Input/output error")) == "Input/output error."
    assert trouble_text(OSError()) == "The system reports OSError."


@pytest.mark.parametrize(
    "command",
    [
        ["play", "softmax", "--do", "join_scopes m@0", "--save", "/dev/full"],
        ["pass", "softmax", "--save", "/dev/full"],
        ["records-export", "/dev/full"],
        ["export", "softmax", "--shape", "4x8", "--to", "/dev/full/x"],
    ],
)
def test_a_full_disk_is_told_with_the_file(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dojo_core.measure.records import Records
    from tests.test_records import RECORD

    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    with Records() as records:
        records.add(RECORD)
    told = CliRunner().invoke(app, command)
    said = " ".join(told.output.split())
    assert told.exit_code == 1 and "/dev/full" in said and "None" not in said and "Traceback" not in said, (
        said
    )


def test_reading_hostile_json_takes_no_time() -> None:
    began = time.process_time()
    for text in (
        NESTED * 20,
        '"\\' * 500_000,
        "[[],{}]" * 100_000,
        json.dumps("[" * 1_000_000),
        '"[' * 400_000,
    ):
        with pytest.raises(NotJson):
            read_object(text)
    assert time.process_time() - began < 20  # a tenth of a second
