"""Reading a text takes time in proportion to its length, whatever stands in it, at every door."""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dojo_core import IllegalMove, MoveSyntax, TextError, kernels, parse
from dojo_core.bounded_json import NotJson, read_json
from dojo_core.game import Game
from dojo_core.line import read_line
from dojo_core.moves import parse_move
from dojo_core.program.text import with_provenance
from dojo_core.recipes import read_recipe
from dojo_core.school.lesson import read_lesson
from dojo_core.school.prose import Terms
from dojo_core.sharing import _COMMON, MARK, BadLink, open_link, open_text

SHORT, TIMES = 2_500, 16  # characters, and how much longer the long text is
LEAST = 0.01  # seconds of processor time that count as nothing

SIGNS = [
    "[", "]", "(", "`", "*", "**", "|", "<", "#", "$", "[a](", "[a]", "*a ", "`a ", "- ", "{", '"', "\\",
    "a ", "vector ", " :: ", "1", "{0}", "-", "a,", "\n", "\n\n", "\n- ", "1+",
]  # fmt: skip
FILLED = [f"{before}%{after}" for before, after in (("a", "b"), ("a;", "b"), ("a", "b;c"), ("recipe a", "!"))]

PROGRAM = "kernel k\nin x\nout y\nf32 x [4]\nf32 y [4]\n\n4 y[{0}] = x[{0}]\n"
GAME = Game.new(with_provenance(kernels.get("softmax").program((4, 8))), "softmax", "4x8")
GAME.play("join_scopes m@0")
STEP = f"# T\nabout: x\n\n## S\n\n%s\n```program\n{PROGRAM}```\n"
TERMS = Terms({name: name for name in ("cache line", "vector", "memory bound")})

DOORS: list[tuple[Callable[[str], object], tuple[str, ...]]] = [
    (parse, (PROGRAM.replace("x[{0}]", "%s"), PROGRAM.replace("[4]", "[%s]", 1), "%s")),
    (parse_move, ("%s", "join_scopes %s")),
    (lambda text: read_line(text).steps(), ("kernel softmax\nshape 4x8\npolicy reassoc\n%s",)),
    (read_recipe, ("recipe rows A W\n%s\n", "recipe rows %s\ntile $A@1 $W\n")),
    (Game.from_text, (GAME.to_text().replace("join_scopes m@0", "%s"), "dojo game 1\n%s")),
    (open_text, ("%s", f"# claims %s\n{GAME.to_text()}")),
    (read_json, ('{"a": %s}', '["%s"]', "%s")),
    (
        lambda text: read_lesson(text, Path("lesson.md"), TERMS),
        (
            STEP,
            STEP.replace("%s", "- %s"),
            STEP.replace("%s", "![%s](%s)"),
            STEP.replace("%s", "```text %s\na\n```"),
            STEP.replace("%s", "```question\nq\n+ %s :: %s\n- %s\n```"),
            STEP.replace("%s", "```hint\n%s\n```"),
            STEP.replace("%s", "```goal\n%s\n```"),
            STEP.replace("%s", "```moves\n%s\n```"),
        ),
    ),
]


def seconds(read: Callable[[str], object], text: str) -> float:
    """Processor time, and only what the door may raise."""
    began = time.process_time()
    with suppress(TextError, MoveSyntax, IllegalMove, BadLink, NotJson):
        read(text)
    return time.process_time() - began


def texts(template: str, length: int) -> list[str]:
    pieces = [(sign * length)[:length] for sign in SIGNS]
    pieces += [form.replace("%", " " * length) for form in FILLED]
    return [template.replace("%s", piece) for piece in pieces]


LESSONS = 7  # the longest; they come with packages, never from who visits


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=pytest.mark.thorough if n == LESSONS else ()) for n in range(len(DOORS))],
)
def test_a_text_sixteen_times_as_long_takes_no_more_than_that(number: int) -> None:
    read, templates = DOORS[number]
    for template in templates:
        for short, long in zip(texts(template, SHORT), texts(template, SHORT * TIMES), strict=True):
            took = seconds(read, long)
            if took > 5 * TIMES * LEAST:  # else nothing is wrong; a pause of the machine may have been
                least = min(seconds(read, short) for _ in range(3))
                took = min(took, seconds(read, long))
                assert took < 5 * TIMES * max(least, LEAST), f"{template!r:.60} {long[-60:]!r}: {took:.1f} s"


def test_a_link_of_two_kilobytes_takes_no_longer() -> None:
    """It unfolds to 64 KB of spaces between two words."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_COMMON)
    packed = packer.compress(b"kernel softmax\npolicy reassoc\na" + b" " * 60_000 + b"b") + packer.flush()
    link = MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    began = time.process_time()
    with pytest.raises((BadLink, TextError)):
        open_link(link)
    assert time.process_time() - began < 20  # a millisecond; it was a minute
