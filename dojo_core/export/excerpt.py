"""Of the C that stands before every generated kernel, the declarations that one kernel needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(
    r"^(?:#define (\w+)|typedef .*?(\w+)(?: __attribute__\(\(.*\)\))?;|INLINE [^(]*?(\w+)\()", re.MULTILINE
)


@dataclass(frozen=True)
class Declaration:
    """A macro, a type or an inline function with the comment above it, or several under one ``#if``."""

    names: tuple[str, ...]
    text: str


def declarations(preamble: str) -> list[Declaration]:
    """The preamble in order, cut so that the texts joined are the preamble again."""
    found: list[Declaration] = []
    lines: list[str] = []
    body = False  # of a function
    conditions = 0  # of #if around whole declarations
    for line in preamble.splitlines(keepends=True):
        lines.append(line)
        bare = line.rstrip()
        if body:
            body = bare != "}"
        elif bare.startswith("INLINE"):
            body = bare.count("{") != bare.count("}")
        else:
            conditions += bare.startswith("#if") - bare.startswith("#endif")
        if not (body or conditions or bare.startswith("/*")):
            text = "".join(lines)
            found.append(Declaration(tuple(n for m in _NAMED.findall(text) for n in m if n), text))
            lines = []
    assert not lines, "the preamble ends within a declaration"
    return found


def needed(code: str, preamble: str) -> str:
    """The declarations of ``preamble`` that ``code`` uses, directly or through others, in their order."""
    known = declarations(preamble)
    by_name: dict[str, list[Declaration]] = {}
    for each in known:
        for name in each.names:
            by_name.setdefault(name, []).append(each)
    wanted: set[Declaration] = set()
    waiting = [code]
    while waiting:
        for word in set(_WORD.findall(waiting.pop())):
            for each in by_name.get(word, ()):
                if each not in wanted:
                    wanted.add(each)
                    waiting.append(each.text)
    text, before = "", ""
    for each in known:
        if each in wanted:
            # A function of several lines stands by itself; types and one-line functions stand in blocks.
            if before and (before.count("\n") > 1 or each.text.count("\n") > 1):
                text += "\n"
            before = each.text.rstrip() + "\n"
            text += before
    return text
