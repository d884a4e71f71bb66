"""A program's text as lines of tokens, from a closed vocabulary, with names that say nothing.

The first line, the kernel's name, is left out, and arrays are numbered in the order in which the text names
them: what a program is called must not tell how fast it is. Numbers up to 64 and powers of two are tokens;
others are three: the power of two below, the three bits after the first, the powers of two that divide them.
So two large sizes may read alike.

A line's bars stand for scopes that lines before it opened: their tokens are told beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import takewhile
from math import log2

from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.tree import DTYPE_BYTES

PAD, UNKNOWN, MASK = 0, 1, 2
ARRAYS = 40  # numbered; the next one is called like the first again
ITERATORS = 20
EXACT = 64  # whole numbers up to here have a token each
POWERS = 48

_WORDS = ("in", "out", "if", "and", "heap", "stack", "register", "shared", "global", "domain", "table",
          "prefetch", "stream", "inf", "nan", "fraction")  # fmt: skip
_SIGNS = ("|", "[", "]", "(", ")", ",", "=", "+=", "*=", "-=", "max=", "min=", "+", "-", "*", "/", "<", "<=",
          ">", ">=", "==", "!=", "!", "->", ":", "..")  # fmt: skip
# What the words of the bundled encoder's weights were; those that came later read as what they are like.
_FUNCTIONS = (
    "neg", "abs", "sqrt", "rsqrt", "exp", "log", "tanh", "erf", "sigmoid", "floor", "round", "max", "min",
    "pow", "fma", "select",
)  # fmt: skip
_DTYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")
_LIKE = {16: "i64", 8: "i64", 4: "i32", 2: "i16", 1: "u8"}  # a dtype of as many bytes
_MARKS = tuple(f":{mark}" for mark in "uvpgbwtfN")
_TOKEN = re.compile(
    r"(?P<mark>:[A-Za-z]\w*)|(?P<iterator>\{\d+\})|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<sign>max=|min=|->|\.\.|[-+*]=|[<>=!]=|[^\s\w])|(?P<name>[A-Za-z_]\w*)"
)


@cache
def vocabulary() -> tuple[str, ...]:
    """Every token, by its number."""
    named = dict.fromkeys((*_WORDS, *_FUNCTIONS, *_DTYPES))
    return (
        "<pad>", "<unknown>", "<mask>", *_SIGNS, *named, *_MARKS,
        *(f"array{n}" for n in range(ARRAYS)), *(f"{{{n}}}" for n in range(ITERATORS)),
        *map(str, range(EXACT + 1)), *(f"2^{n}" for n in range(7, POWERS)),
        *(f">2^{n}" for n in range(6, POWERS)), *(f"bits{n}" for n in range(8)),
        *(f"divided{n}" for n in range(8)),
    )  # fmt: skip


@cache
def _numbers() -> dict[str, int]:
    return {token: number for number, token in enumerate(vocabulary())}


@cache
def values() -> tuple[float, ...]:
    """What each token of a size adds to its logarithm to base 2, data types that of their bytes; else 0."""

    def value(token: str) -> float:
        if token in _DTYPES:
            return log2(DTYPE_BYTES[token])
        if token.isdigit():
            return log2(max(1, int(token)))
        if token.startswith(("2^", ">2^")):
            return float(token.partition("^")[2])
        return log2(1 + (int(token[4:]) + 0.5) / 8) if re.fullmatch(r"bits\d", token) else 0.0

    return tuple(map(value, vocabulary()))


@cache
def array_tokens() -> range:
    """The numbers of the tokens for arrays."""
    first = _numbers()["array0"]
    return range(first, first + ARRAYS)


def _number(text: str) -> tuple[str, ...]:
    if not text.isdigit():
        return ("fraction",)
    value = int(text)
    if value <= EXACT:
        return (text,)
    power = min(value.bit_length() - 1, POWERS - 1)
    if value == 1 << power:
        return (f"2^{power}",)
    divided = min((value & -value).bit_length() - 1, 7)
    return (f">2^{power}", f"bits{(value >> (power - 3)) & 7}", f"divided{divided}")


def _later(word: str, known: dict[str, int], called: bool) -> int | str:
    """A word that came after the vocabulary; an array's name as it is, a function's too if not called."""
    if word in DTYPE_BYTES:
        return known[_LIKE[DTYPE_BYTES[word]]]
    return UNKNOWN if called and word in FUNCTIONS else word


@lru_cache(maxsize=50_000)  # the successors of a position share nearly all their lines
def _words(line: str) -> tuple[int | str, ...]:
    """The numbers of a line's tokens; names of arrays as they are: their numbers depend on the program."""
    known = _numbers()
    tokens: list[int | str] = []
    for match in _TOKEN.finditer(line):
        kind, word = match.lastgroup, match.group()
        if kind == "number":
            tokens += [known[token] for token in _number(word)]
        elif kind == "name" and word not in known:
            tokens.append(_later(word, known, called=line[match.end() :][:1] == "("))
        else:
            tokens.append(known.get(word, UNKNOWN))
    return tuple(tokens)


@dataclass(frozen=True)
class Lines:
    """A program as lines, each the numbers of its tokens; without the kernel's name.

    ``above``: of each line, the tokens of the scopes that its bars stand for.
    """

    lines: tuple[tuple[int, ...], ...]
    above: tuple[tuple[int, ...], ...]


def lines_of(text: str, most_tokens: int = 64, most_lines: int = 192) -> Lines:
    """The lines of a program's text, each cut off after ``most_tokens``, the program after ``most_lines``."""
    names: dict[str, int] = {}
    first = array_tokens().start

    def tokens(line: str) -> Iterator[int]:
        for word in _words(line):
            if isinstance(word, str):
                yield first + names.setdefault(word, len(names)) % ARRAYS
            else:
                yield word

    rows = [line for line in text.splitlines() if not line.startswith("kernel ")]
    open_: list[str] = []  # scopes
    above: list[tuple[int, ...]] = []
    for row in rows[:most_lines]:
        bars, opened = _scopes(row)
        del open_[bars:]
        above.append(_sizes(tuple(open_)))
        open_ += opened
    return Lines(tuple(tuple(tokens(row))[:most_tokens] for row in rows[:most_lines]), tuple(above))


@lru_cache(maxsize=50_000)
def _scopes(line: str) -> tuple[int, tuple[str, ...]]:
    """How many bars a line begins with, and the scopes that it opens after them."""
    slots = line.split()
    bars = next((n for n, slot in enumerate(slots) if slot != "|"), len(slots))
    return bars, tuple(takewhile(lambda slot: slot[0].isdigit(), slots[bars:]))


@lru_cache(maxsize=50_000)
def _sizes(scopes: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(token for scope in scopes for token in _words(scope) if isinstance(token, int))
