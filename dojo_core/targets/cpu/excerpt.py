"""Of the C that stands before every generated kernel, the declarations that one kernel needs: a small kernel
compiles in three quarters of the time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(
    r"^(?:#define (\w+)|typedef (?:struct \{.*\} )?.*?(\w+)(?: __attribute__\(\(.*\)\))?;"
    r"|(?:INLINE|CALLED) [^(]*?(\w+)\()",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Declaration:
    """A macro, a type or a function with the comment above it, or several under one ``#if``."""

    names: tuple[str, ...]
    text: str
    words: frozenset[str]


def declarations(preamble: str) -> list[Declaration]:
    """The preamble in order, cut so that the texts joined are the preamble again."""
    declared: list[Declaration] = []
    lines: list[str] = []
    body = False  # of a function
    conditions = 0  # of #if around whole declarations
    for line in preamble.splitlines(keepends=True):
        lines.append(line)
        bare = line.rstrip()
        if bare.endswith("\\"):  # of a macro, that goes on
            continue
        if body:
            body = bare != "}"
        elif bare.startswith(("INLINE", "CALLED")):
            body = bare.count("{") != bare.count("}")
        else:
            conditions += bare.startswith("#if") - bare.startswith("#endif")
        if not (body or conditions or bare.startswith("/*")):
            text = "".join(lines)
            names = tuple(n for m in _NAMED.findall(text) for n in m if n)
            declared.append(Declaration(names, text, frozenset(_WORD.findall(text))))
            lines = []
    assert not lines, "the preamble ends within a declaration"
    return declared


@lru_cache(maxsize=4)
def _known(preamble: str) -> tuple[tuple[Declaration, ...], dict[str, tuple[int, ...]]]:
    """The declarations, and the numbers of those that declare a name."""
    known = tuple(declarations(preamble))
    by_name: dict[str, tuple[int, ...]] = {}
    for number, each in enumerate(known):
        for name in each.names:
            by_name[name] = (*by_name.get(name, ()), number)
    return known, by_name


def needed(code: str, preamble: str) -> str:
    """The declarations of ``preamble`` that ``code`` uses, directly or through others, in their order, and
    whatever there declares no name."""
    known, by_name = _known(preamble)
    wanted = {number for number, each in enumerate(known) if not each.names and each.text.strip()}
    waiting = [frozenset(_WORD.findall(code)), *[known[number].words for number in wanted]]
    while waiting:
        for word in waiting.pop():
            for number in by_name.get(word, ()):
                if number not in wanted:
                    wanted.add(number)
                    waiting.append(known[number].words)
    text, before = "", ""
    for number in sorted(wanted):
        # A function of several lines stands by itself; types and one-line functions stand in blocks.
        declaration = known[number].text
        if before and (before.count("\n") > 1 or declaration.count("\n") > 1):
            text += "\n"
        before = declaration.rstrip() + "\n"
        text += before
    return text
