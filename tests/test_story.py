"""Lines told move by move: the pages in docs/ are what their lines and their times make."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from dojo_core.cli import app
from dojo_core.line import read_line, recorded_lines
from dojo_core.moves.examples import WIDE
from dojo_core.program.expressions import TextError
from dojo_core.story import Times, page, plot, read_times, story
from tests.homes import with_objects

DOCS = Path(__file__).parent.parent / "docs"
LINE = """\
# A line for a test.
kernel relu
shape 8x32
let lanes = 4
# Vectors: one instruction does lanes elements.
split_scope y@1 $lanes
vectorize y@2
# Threads: each core takes rows
parallelize y@0
"""


@pytest.fixture
def wide_cpu(monkeypatch):
    """The lines' vectors have 16 lanes, whatever this machine has."""
    monkeypatch.setattr("dojo_core.moves.legality.target_named", lambda name: WIDE)


@pytest.mark.parametrize("name", ["softmax", "matmul"])
def test_each_page_is_what_its_line_and_its_times_make(wide_cpu, golden, name):
    told = story(recorded_lines()[name])
    times = read_times((DOCS / f"{name}.json").read_text())
    remedy = f"take the times again: dojo story {name} --out docs/{name}.md"
    assert len(times.seconds) == len(told.programs) == len(recorded_lines()[name].moves) + 1, remedy
    golden(DOCS / f"{name}.md", page(told, times, f"{name}.svg"))
    golden(DOCS / f"{name}.svg", plot(told, times))
    assert all(group.note.endswith(".") for group in told.groups), "a sentence says what each group gains"


def test_comments_between_moves_make_groups():
    told = story(read_line(LINE, "mine"))
    assert told.about == "A line for a test."
    assert [(g.title, g.note, len(g.steps)) for g in told.groups] == [
        ("Vectors", "One instruction does lanes elements.", 2),
        ("Threads", "Each core takes rows", 1),
    ]
    assert told.groups[1].before == told.groups[0].after != told.start
    plain = story(read_line(re.sub("# [VT].*\n", "", LINE), "mine"))
    assert [(g.title, g.note, len(g.steps)) for g in plain.groups] == [("Moves", "", 3)]
    assert plain.programs == told.programs


def test_a_page_shows_what_changes_and_the_times():
    told = story(read_line(LINE, "mine"))
    times = Times("a machine", "2026-01-01", 3, (1e-3, 2e-3, None, 1e-4))
    text = page(told, times, "mine.svg")
    assert (
        "relu 8x32, floating-point policy reassoc: from 1 ms to 100 µs, 10 times as fast, in 3 moves." in text
    )
    assert "## 1. Vectors: no C for it" in text and "## 2. Threads: 100 µs" in text
    assert "- 8 8 4:v y[{0},{1}*4+{2}] = " in text and "+ 8:p 8 4:v y[{0},{1}*4+{2}] = " in text
    assert (
        "| 1 | `split_scope y@1 4` | 2 ms | 0.5× |" in text
        and "| 3 | `parallelize y@0` | 100 µs | 10× |" in text
    )
    assert read_times(times.text()) == times
    ElementTree.fromstring(plot(told, times))
    assert "3: parallelize y@0, 100 µs" in plot(told, times) and "2: vectorize" not in plot(told, times)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LINE.replace("kernel relu", ""), "names no kernel"),
        (LINE.replace("shape", "target cuda\nshape"), "the line is for cuda"),
        (LINE.replace("vectorize y@2", "vectorize y@0"), "move 2, vectorize y@0, does not apply"),
        (LINE.replace("vectorize y@2", "vectorize_all y@0"), "cannot be told in groups"),
    ],
)
def test_a_line_that_cannot_be_told_says_why(text, sentence):
    with pytest.raises(TextError, match=sentence):
        story(read_line(text, "mine"))


def test_the_command_times_each_position_and_writes_the_page_again(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.chdir(tmp_path)
    Path("mine.line").write_text(LINE)

    def dojo(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["story", *words])
        assert isinstance(result.exception, SystemExit | None), result.exc_info
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    told = dojo("mine.line", "--out", "mine.md", "--rounds", "1")
    assert "Wrote mine.md, mine.svg and mine.json." in told
    times = read_times(Path("mine.json").read_text())
    assert len(times.seconds) == 4 and all(times.seconds)
    written = Path("mine.md").read_text()
    assert written == page(story(read_line(LINE, "mine")), times, "mine.svg")
    Path("mine.md").unlink()
    dojo("mine.line", "--out", "mine.md", "--again")
    assert Path("mine.md").read_text() == written
    Path("mine.line").write_text(LINE.replace("parallelize y@0\n", ""))
    assert "has the times of another line" in dojo("mine.line", "--out", "mine.md", "--again", code=1)
    Path("mine.json").write_text("{}")
    assert "Take them again" in dojo("mine.line", "--out", "mine.md", "--again", code=1)
    assert "The recorded lines: add," in dojo("nope", "--out", "mine.md", code=1)
