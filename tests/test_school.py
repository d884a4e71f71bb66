"""Lessons and puzzles: those that come with the Dojo are sound, and what is wrong in a file is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dojo_core import parse
from dojo_core.game import Game
from dojo_core.program.expressions import TextError
from dojo_core.recipes import RECIPES, play
from dojo_core.school.check import check, played, unreached
from dojo_core.school.goals import FORMS, Situation, read_goal
from dojo_core.school.lesson import Lesson, read_lesson
from dojo_core.school.pictures import read_picture
from dojo_core.school.school import LESSONS_FOLDER, glossary_for, open_school, read_glossary
from dojo_core.targets.cpu import limits
from dojo_core.targets.cpu.processor import known
from dojo_core.targets.registry import target

HERE = Path(__file__).parent
FILES = sorted(p for p in LESSONS_FOLDER.glob("*.md") if p.name not in ("glossary.md", "README.md"))

PROGRAM = """\
kernel two
in x
out y
x f32 [64] heap
y f32 [64] heap
t f32 [64] heap
64 t[{0}] = x[{0}]*2
64 y[{0}] = t[{0}] + 1
"""

LESSON = f"""\
# A lesson
about: What it is for.

## One loop

Text.

```program
{PROGRAM}```

```goal
t and y are fused
```

```hint
First.
```

```hint
Second.
```

```solution
join_scopes t@0
```
"""


def lesson(text: str = LESSON) -> Lesson:
    return read_lesson(text, Path("a.md"), glossary_for(LESSONS_FOLDER).terms)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_lesson_of_the_dojo_is_sound(path: Path) -> None:
    found = read_lesson(path.read_text(), path, glossary_for(path.parent).terms)
    assert [str(fault) for fault in check(found)] == []
    if not found.puzzles:
        assert 5 <= len(found.steps) <= 8


@pytest.fixture
def narrowest(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The cpu is one with vectors of 16 bytes, as every processor has, and no wider ones."""
    monkeypatch.setattr(limits, "host", lambda: known("x86-64-v2"))
    yield


def test_every_lesson_and_puzzle_can_be_solved_on_any_processor(narrowest: None) -> None:
    assert target("cpu").vector_widths["f32"] == (4,)
    for each in open_school([LESSONS_FOLDER]).lessons:
        for step in each.steps:
            game, tried = played(step, step.solution)
            assert unreached(step, game, tried) == [], (each.id, step.title)


def test_there_are_ten_lessons_and_twenty_puzzles() -> None:
    school = open_school([LESSONS_FOLDER])
    assert school.faults == ()
    assert sum(not each.puzzles for each in school.lessons) >= 10
    assert sum(len(each.steps) for each in school.lessons if each.puzzles) >= 20
    assert [each.puzzles for each in school.lessons] == sorted(each.puzzles for each in school.lessons)


def test_a_lesson_is_read_as_it_stands() -> None:
    (step,) = lesson().steps
    assert (step.id, step.title, len(step.hints), step.solution) == (
        "one-loop", "One loop", 2, ("join_scopes t@0",)
    )  # fmt: skip
    assert step.begin.current.program == parse(PROGRAM)
    assert check(lesson()) == []


def test_a_step_without_a_position_goes_on_where_the_last_one_ends() -> None:
    more = "\n## Then\n\nText.\n\n```goal\nt takes at most 4 bytes\n```\n```hint\na\n```\n```hint\nb\n```\n"
    found = lesson(LESSON + more + "```solution\nreuse_dims t 0\n```\n")
    assert found.steps[1].begin.current.program.text.endswith("64 t[{0}] = x[{0}]*2\n| y[{0}] = t[{0}] + 1\n")
    assert check(found) == []


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("# A lesson", "A lesson", "no title"),
        ("about: What it is for.\n", "", "does not say what it is about"),
        ("## One loop", "## One loop\ncolour: red", "no fact 'colour'"),
        ("## One loop", "## One loop\npolicy: lax", "no policy 'lax'"),
        ("## One loop", "## One loop\ngain: much", "number above 1"),
        ("```goal", "```gaol", "no block 'gaol'"),
        ("t and y are fused", "t and y are friends", "no goal"),
        ("t and y are fused", "join_scops t@0 is legal", "join_scops"),
        ("t and y are fused", "", "no goal"),
        ("64 t[{0}]", "64 t[{1}]", "{1}"),
        ("Text.", "### Deep", "a heading of this depth"),
        ("Text.", "[here](javascript:alert(1))", "leads to the web"),
        ("Text.", "[here](glossary.md#nowhere)", "no entry 'nowhere'"),
        ("Text.", "![a](../x.svg)", "SVG file beside the lesson"),
        ("Text.", "```question\nWhich?\n- a\n- b\n```", "one of them right"),
        ("join_scopes t@0\n```", "join_scopes t@0\n", "no end"),
        ("```program", "```program\n", ""),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_told_with_its_line(before: str, after: str, told: str) -> None:
    text = LESSON.replace(before, after, 1)
    if not told:  # an empty line in a program is none of its lines
        assert lesson(text).steps
        return
    with pytest.raises(TextError) as error:
        lesson(text)
    assert told in str(error.value) + error.value.message and error.value.remedy
    assert 1 <= error.value.line <= len(text.splitlines())


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("join_scopes t@0", "reuse_dims t 0", "the solution stops"),
        ("join_scopes t@0", "reorder y", "the solution stops"),
        ("join_scopes t@0", "unroll t@0", "does not reach 't and y are fused'"),
        ("join_scopes t@0", "try join_scopes t@0", "is to be refused"),
        ("t and y are fused", "y is on the heap", "reached at the start"),
        ("t and y are fused", "t and y are fused\nstill y is on the stack", "does not hold at the start"),
        ("```hint\nFirst.\n```", "", "1 of 2 hints"),
        ("```solution\njoin_scopes t@0\n```", "", "no solution"),
        ("```hint\nFirst.", "```note dance\nNo.\n```\n```hint\nFirst.", "which is no move"),
    ],
)
def test_the_checker_tells_what_is_unsound(before: str, after: str, told: str) -> None:
    faults = check(lesson(LESSON.replace(before, after, 1)))
    assert any(told in fault.message for fault in faults), faults
    assert all(fault.remedy for fault in faults)


def test_a_puzzle_that_one_move_solves_is_none() -> None:
    puzzle = LESSON.replace("about:", "kind: puzzles\nabout:")
    told = [fault.message for fault in check(lesson(puzzle))]
    assert told == ["it has no first idea", "one move solves it: join_scopes t@0"]
    easy = puzzle.replace("```hint\nFirst", "```first-idea\njoin_scopes t@0\n```\n```hint\nFirst")
    assert "the first idea solves it" in [fault.message for fault in check(lesson(easy))]


def after(*moves: str) -> Game:
    game = Game.new(parse(PROGRAM))
    for move in moves:
        play(game, move, RECIPES)
    return game


FUSED = ("join_scopes t@0",)
SPLIT = ("split_scope y@0 4", "vectorize y@1", "parallelize y@0")  # 4: every machine has such vectors


@pytest.mark.parametrize(
    ("goal", "no", "yes"),
    [
        ("t and y are fused", (), FUSED),
        ("not t and y are fused", FUSED, ()),
        ("t and y share 1 scopes", (), FUSED),
        ("y stands in 2 scopes", (), SPLIT),
        ("the scopes of y are 16:p 4:v", (), SPLIT),
        ("the innermost scope of y has size 4", (), SPLIT),
        ("the outermost scope of y has size 16", (), SPLIT),
        ("the innermost scope of y is :v", (), SPLIT),
        ("the outermost scope of the reader of t is :p", (), SPLIT),
        ("a scope of y is :p", (), SPLIT),
        ("every innermost scope is :v", SPLIT, (*SPLIT, "split_scope t@0 4", "vectorize t@1")),
        ("t is on the stack", FUSED, (*FUSED, "set_location t stack")),
        ("t takes at most 4 bytes", FUSED, (*FUSED, "reuse_dims t 0")),
        ("temporaries take at most 4 bytes", FUSED, (*FUSED, "reuse_dims t 0")),
        ("t has dimensions 4 16", (), ("split_scope t@0 16", "split_scope y@0 16", "split_dim t 0 16")),
        ("reuse_dims t 0 is legal", (), FUSED),
        ("at most 0 moves", FUSED, ()),
    ],
)  # fmt: skip
def test_a_goal_tells_positions_apart(goal: str, no: tuple[str, ...], yes: tuple[str, ...]) -> None:
    asked = read_goal(goal)

    def seen(moves: tuple[str, ...]) -> bool | None:
        game = after(*moves)
        return asked.look(Situation(game.current.program, game.start, len(moves))).reached

    assert (seen(no), seen(yes)) == (False, True)


@pytest.mark.parametrize(
    ("program", "goal", "reached"),
    [
        ("4 8 y[{0},{1}] = x[{0},{1}]", "the innermost scope of y walks x with stride 1", True),
        ("8 4 y[{1},{0}] = x[{1},{0}]", "the innermost scope of y walks x with stride 8", True),
        ("4 8 y[{0},{1}] = x[{0},{1}]", "y walks x in order", True),
        ("8 4 y[{1},{0}] = x[{1},{0}]", "y walks x in order", False),
        ("4 8 y[{0},{1}] = x[{0},{1}]*x[{0},0]", "x is read at most 64 times", True),
        ("4 8 y[{0},{1}] = x[{0},{1}]*x[{0},0]", "x is read at most 63 times", False),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}])", "exp runs at most 31 times", False),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}])", "z stands in 2 scopes", False),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}])", "at most 1 operations", True),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}])", "at most 0 operations", False),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}])", "t is gone", True),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}])", "x is gone", False),
    ],
)
def test_a_goal_looks_at_memory(program: str, goal: str, reached: bool) -> None:
    head = "kernel k\nin x\nout y\nx f32 [4, 8] heap\ny f32 [4, 8] heap\n"
    here = parse(head + program)
    assert read_goal(goal).look(Situation(here, here)).reached is reached


def test_a_speed_up_is_relative_and_has_a_tolerance() -> None:
    goal = read_goal("2 times faster")
    here = parse(PROGRAM)

    def seen(speed_up: float | None) -> bool | None:
        return goal.look(Situation(here, here, speed_up=speed_up)).reached

    assert [seen(each) for each in (None, 1.7, 1.85, 3.0)] == [None, False, True, True]


def test_the_guide_tells_every_goal() -> None:
    guide = (HERE.parent / "docs" / "lessons.md").read_text()
    assert [form.words for form in FORMS if f"| `{form.words}` | {form.about} |" not in guide] == []


def test_a_teachers_file_with_an_error_is_left_out_and_told(tmp_path: Path) -> None:
    (tmp_path / "01-mine.md").write_text(LESSON)
    (tmp_path / "02-bad.md").write_text(LESSON.replace("are fused", "are friends"))
    (tmp_path / "glossary.md").write_text("# Words\n\n## Gadget\n\nA thing.\n")
    school = open_school([LESSONS_FOLDER, tmp_path])
    assert school.lesson("01-mine") is not None and school.lesson("02-bad") is None
    ((name, told),) = school.faults
    assert name == "02-bad.md" and "no goal" in told
    titles = [entry.title for entry in school.glossary.entries]
    assert "Gadget" in titles and "Scope" in titles


def test_a_picture_is_shapes_and_words_alone(tmp_path: Path) -> None:
    def drawn(body: str) -> list[object]:
        path = tmp_path / "a.svg"
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{body}</svg>')
        return read_picture(path)

    assert drawn('<text x="1" class="ink">a</text>')[3] == [["text", {"x": "1", "class": "ink"}, "a", []]]
    for bad in (
        "<script>1</script>",
        '<rect onclick="1"/>',
        '<rect class="url"/>',
        '<use href="#a"/>',
        "<g>",
    ):
        with pytest.raises(TextError):
            drawn(bad)


def test_words_of_the_glossary_are_links_where_a_step_first_says_them() -> None:
    glossary = read_glossary("# G\n\n## Cache line\nalso: line of a cache\n\nBytes.\n\n## Cache\n\nNear.\n")
    text = LESSON.replace("Text.", "Two caches, a cache line, `cache`, a cache.")
    (paragraph,) = read_lesson(text, Path("a.md"), glossary.terms).steps[0].text
    assert [span for span in paragraph["spans"] if span[0] != "text"] == [
        ["term", "caches", "cache"], ["term", "cache line", "cache-line"], ["code", "cache"],
    ]  # fmt: skip
