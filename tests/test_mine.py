"""Puzzles are mined from a game: a plateau, then a gain that no single move brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dojo_core import parse
from dojo_core.game import Game
from dojo_core.measure.measurement import Measurement
from dojo_core.program.tree import Program
from dojo_core.school.check import check
from dojo_core.school.lesson import read_lesson
from dojo_core.school.mine import HEAD, Find, mine, puzzle_text
from dojo_core.school.school import LESSONS_FOLDER, glossary_for

PROGRAM = """\
kernel double
in x
out y
x f32 [54] heap
y f32 [54] heap
54 y[{0}] = x[{0}]*2
"""
LINE = ("split_scope y@0 9", "merge_scopes y@0", "cut_scope y@0 48", "split_scope y@0 4", "vectorize y@1")


class Clock:
    """Tells times by a rule in place of a machine."""

    def __init__(self, rule: Callable[[str], float]) -> None:
        self.rule = rule

    def measure(self, workload: Any, programs: Sequence[Program], *_: Any, **__: Any) -> list[Measurement]:
        return [
            Measurement(p.hash, "", "ok", seconds=self.rule(p.text), median=1.0, verified=True)
            for p in programs
        ]


def vectors(text: str) -> float:
    return 1.0 if ":v" in text else 8.0


def mined(rule: Callable[[str], float], *line: str) -> list[Find]:
    game = Game.new(parse(PROGRAM))
    for move in line:
        game.play(move)
    return list(mine(game, Clock(rule)))


def test_a_plateau_before_a_gain_is_a_puzzle_without_the_moves_that_it_does_not_need() -> None:
    (found, *others) = mined(vectors, *LINE)
    assert others == []
    assert found.ply == 3 and found.begin.text.endswith("48 y[{0}] = x[{0}]*2\n6 y[{0}+48] = x[{0}+48]*2\n")
    assert found.solution == ("split_scope y@0 4", "vectorize y@1")
    assert (found.gain, found.promised, found.idea_gain) == (8.0, 4.0, 1.0)


def test_where_one_move_brings_the_gain_there_is_no_puzzle() -> None:
    assert mined(lambda text: 1.0 if ":u" in text or ":v" in text else 8.0, *LINE) == []


def test_moves_that_gain_on_the_way_are_no_plateau() -> None:
    assert mined(lambda text: 1.0 / text.count("\n"), *LINE) == []


def test_what_was_mined_is_a_sound_lesson() -> None:
    (found,) = mined(vectors, *LINE)
    path = Path("mined.md")
    lesson = read_lesson(HEAD + puzzle_text(found), path, glossary_for(LESSONS_FOLDER).terms)
    (step,) = lesson.steps
    assert lesson.puzzles and step.measure and step.gain == 4.0
    goals = [goal.text for goal in step.goals]
    assert goals[:2] == ["the innermost scope of y is :v", "4 times faster"]
    assert goals[2:] == ["still not a scope of the reader of x is :p"]
    assert step.first_idea and len(step.hints) == 3 and check(lesson) == []
