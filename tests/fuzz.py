"""Broken texts for as long as asked: ``python -m tests.fuzz SECONDS [SEED]``, or ``make fuzz SECONDS=600``.

Texts of programs, moves, lines, recipes and games are damaged and read. Only the documented exceptions may
come out, quickly; what is read must print to a text that reads back as the same. Prints the seed, the texts
tried, how many were read, the slowest, and every finding; ends with 1 where there is one.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from dojo_core import IllegalMove, MoveSyntax, TextError, kernels, parse
from dojo_core.game import Game
from dojo_core.line import LINES_FOLDER, read_line, recorded_lines
from dojo_core.moves import REGISTRY, parse_move
from dojo_core.program.text import with_births
from dojo_core.recipes import RECIPES, read_recipe
from tests.programs import random_program

SLOW = 2.0  # seconds of processor time for one text
WORDS = [
    "kernel", "in", "out", "heap", "stack", "register", "f32", "i8", "bool", "bf16", "->", "if", "and",
    "!prefetch(", "!stream", "exp(", "max(", "fma(", "select(", "inf", "-inf", "nan", "1e308", "1e-400",
    "99999999999999999999", "0", "-1", "|", "| |", "{0}", "{1}", "{99}", "{-1}", "*", "+", "-", "/", "==",
    "<=", ",", "[", "]", "(", ")", ":N", ":p", ":v", ":u", ":q", "=", "+=", "max=", "-=", "#", ";", "\t",
    "\r", "\x00", "\x1b", "\u200b", "é", "𝟙", "١", "$x", "x", "y", "let", "moves:", "start:", "dojo game 1",
    "9" * 5000, "-" * 5000, "{0}+" * 2000, "recipe", "@", "table", "domain", "idx[", "u8", "#1@2", "\n",
    "\n\n",
]  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """One of the doors: sound texts to begin with, how they are read, and what else may be raised."""

    name: str
    texts: list[str]
    read: Callable[[str], object]
    raises: tuple[type[Exception], ...] = (TextError,)


def _program(text: str) -> None:
    program = parse(text)
    again = parse(program.text)
    assert again == program and again.text == program.text, "the canonical text is another program"


def _game(text: str) -> None:
    game = Game.from_text(text)
    assert Game.from_text(game.to_text()).to_text() == game.to_text(), "the saved text is another game"


def readers(rng: random.Random) -> list[Reader]:
    """The doors, each with sound texts."""
    starts = [kernels.get(name) for name in kernels.names()]
    programs = [k.program(k.shapes[0]).text for k in starts] + [random_program(rng).text for _ in range(20)]
    games = []
    for line in recorded_lines().values():
        kernel = kernels.get(line.kernel or "")
        start = with_births(kernel.program(kernel.shape(line.shape)))
        game = Game.new(start, kernel.name, policy=line.policy)
        line.play(game)
        games.append(game.to_text())
    small = Game.new(with_births(kernels.get("softmax").program((4, 8))), "softmax", "4x8")
    small.play("join_scopes m@0")
    moves = [str(p.move) for p in game.line()[1:]] + [f"{name} y@0 16" for name in (*REGISTRY, *RECIPES)]
    lines = [file.read_text() for file in sorted(LINES_FOLDER.glob("*.line"))]
    recipes = ["recipe rows A W\ntile $A@1 $W\nvectorize_all $A@1\n"]
    return [
        Reader("program", programs, _program),
        Reader("move", moves, lambda text: parse_move(text), (MoveSyntax,)),
        Reader("line", lines, lambda text: read_line(text).steps()),
        Reader("recipe", recipes, read_recipe),
        Reader("game", [small.to_text(), *games[:1]], _game, (TextError, IllegalMove, MoveSyntax)),
    ]


def damaged(text: str, other: str, rng: random.Random) -> str:
    """The text after a few random edits; ``other`` lends pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        to = min(to, at + rng.choice((0, 1, 2, 10, 200)))
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:at] + text[to:]
        elif kind == 1:
            text = text[:at] + rng.choice(WORDS) + text[to:]
        elif kind == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) + text[to:]
        elif kind == 3:
            text = text[:at] + text[at:to] * rng.choice((2, 3, 50)) + text[to:]
        elif kind == 4:
            begin = rng.randrange(len(other) + 1)
            text = text[:at] + other[begin : begin + rng.choice((5, 50, 500))] + text[to:]
        else:
            lines = text.split("\n")
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            if kind == 5:
                lines[first], lines[second] = lines[second], lines[first]
            else:
                words = lines[first].split(" ")
                words[rng.randrange(len(words))] = rng.choice(WORDS)
                lines[first] = " ".join(words)
            text = "\n".join(lines)
    return text[:80_000]


def attempt(reader: Reader, text: str) -> tuple[bool, float, str]:
    """(was it read, seconds, what is wrong with that)"""
    began = time.process_time()
    try:
        reader.read(text)
        read, told = True, ""
    except reader.raises:
        read, told = False, ""
    except Exception as error:
        read, told = False, f"{type(error).__name__}: {error}"
    took = time.process_time() - began
    return read, took, told or (f"took {took:.1f} s" if took > SLOW else "")


def fuzz(seconds: float, seed: int, most: int | None = None) -> list[str]:
    """Findings, after printing what was done."""
    rng = random.Random(seed)
    doors = readers(rng)
    tried, accepted, slowest = 0, 0, 0.0
    findings: dict[str, str] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end and (most is None or tried < most):
        reader = rng.choices(doors, (6, 3, 2, 1, 1))[0]
        text = damaged(rng.choice(reader.texts), rng.choice(rng.choice(doors).texts), rng)
        read, took, told = attempt(reader, text)
        tried, accepted, slowest = tried + 1, accepted + read, max(slowest, took)
        if told:
            findings.setdefault(f"{reader.name}: {told[:60]}", f"{reader.name}: {told}\n{text!r}")
    print(
        f"seed {seed}: {tried} texts, {accepted} read, the slowest in {1e3 * slowest:.0f} ms, "
        f"{len(findings)} findings"
    )
    for finding in findings.values():
        print(f"\n{finding}")
    return list(findings.values())


if __name__ == "__main__":
    asked = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    raise SystemExit(bool(fuzz(asked, int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
