"""A text of another language: its limits, what its comments say of shapes, faults with a mark in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from dojo_core.program.expressions import TextError
from dojo_core.program.tree import NUMBER_DTYPES
from dojo_core.spelling import meant

LONGEST = 16 * 1024  # characters of a text that is translated
NESTED = 64  # brackets within one another: parsers recurse over them
LARGEST_SIZE = 2**24  # of an axis that is asked for
TOLERANCE = 1e-9  # of a difference between two float64 evaluations, relative to the largest value

SAY_SHAPES = "Say of which shapes the arrays are, in a comment such as # x[m, n], w[n] above it."


class Misfit(TextError):
    """Shapes that do not go together; other shapes might."""


class Unchecked(Exception):
    """Why a text is not worked out over values at certain sizes, as the end of a sentence."""


@dataclass(frozen=True)
class Declared:
    """An input as the text declares it: its axes, names or sizes, and its dtype."""

    axes: tuple[str, ...]
    dtype: str = "f32"


@dataclass(frozen=True)
class Source:
    """A text, and how faults in it are told."""

    text: str
    lines: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", self.text.splitlines())
        if len(self.text) > LONGEST:
            raise TextError(
                f"the text is longer than {LONGEST // 1024} KiB", "Translate one function at a time."
            )
        level = 0
        for number, line in enumerate(self.lines, 1):
            for column, sign in enumerate(line, 1):
                level += (sign in "([{") - (sign in ")]}")
                if level > NESTED:
                    self.fail(
                        number, column, f"more than {NESTED} brackets within one another", "Name parts."
                    )

    def fail(self, line: int, column: int, message: str, remedy: str, misfit: bool = False) -> NoReturn:
        """Raise a TextError at a place that counts from 1."""
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        raise (Misfit if misfit else TextError)(message, remedy, line, max(column, 1), shown)

    def unknown(self, line: int, column: int, what: str, name: str, known: Mapping[str, object]) -> NoReturn:
        """Raise a TextError for a name that there is not, with the nearest that there is."""
        some = ", ".join(list(known)[:12]) + (", …" if len(known) > 12 else "")
        remedy = meant(name, known) or (f"There are {some}." if known else "There are none.")
        self.fail(line, column, f"there is no {what} {name}", remedy)


_SHAPE = re.compile(
    rf"\b([A-Za-z_]\w*)\s?:?\s?[\[(]([\w\s,]*)[\])](?:\s?({'|'.join(NUMBER_DTYPES)})\b)?", re.ASCII
)


def shapes_of_comment(comment: str) -> dict[str, Declared]:
    """What a comment says of arrays: ``x[m, n], w: (64, 512), i[n] i32``."""
    declared: dict[str, Declared] = {}
    for match in _SHAPE.finditer(comment):
        declared[match[1]] = Declared(axes_of(match[2]), match[3] or "f32")
    return declared


def axes_of(form: str) -> tuple[str, ...]:
    """``m, n`` or ``m n`` or ``64x512`` as its axes."""
    parts = re.split(r"[,\s]+|(?<=\d)x(?=\d)", form.strip())
    return tuple(part for part in parts if part)


def size_of(name: str, value: int) -> int:
    """A size of an axis. Raises TextError beyond what there may be."""
    if not 0 < value <= LARGEST_SIZE:
        raise TextError(f"{name} is {value}", f"A size is a whole number from 1 to {LARGEST_SIZE:,}.")
    return value


def sizes_of(said: Sequence[str]) -> dict[str, int]:
    """Sizes by name from ``m=512`` each. Raises TextError for another form."""
    sizes: dict[str, int] = {}
    for each in said:
        match = re.fullmatch(r"\s*([A-Za-z_]\w{0,40})\s*=\s*(\d{1,12})\s*", each, re.ASCII)
        if match is None:
            raise TextError(f"{each[:60]!r} is no size", "A size reads m=512.")
        sizes[match[1]] = size_of(match[1], int(match[2]))
    return sizes
