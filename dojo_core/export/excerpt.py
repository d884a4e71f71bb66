"""Of the C that stands before every generated kernel, the declarations that one kernel needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMED = (
    re.compile(r"#define (\w+)"),
    re.compile(r"typedef .*?(\w+)(?: __attribute__\(\(.*\)\))?;"),
    re.compile(r"INLINE [^(]*?(\w+)\("),
)


@dataclass(frozen=True)
class Declaration:
    """A macro, a type or an inline function with the comment above it. ``name`` is empty for what is none."""

    name: str
    text: str


def declarations(preamble: str) -> list[Declaration]:
    """The preamble in order, cut so that the texts joined are the preamble again."""
    found: list[Declaration] = []
    lines: list[str] = []
    inside = False  # a function's body, or a comment
    for line in preamble.splitlines(keepends=True):
        lines.append(line)
        bare = line.rstrip()
        if inside:
            inside = bare != "}"
        elif bare.startswith("INLINE") and bare.endswith("{"):
            inside = True
        if inside or (bare.startswith("/*") and bare.endswith("*/")):
            continue
        found.append(_declaration("".join(lines)))
        lines = []
    if lines:
        found.append(_declaration("".join(lines)))
    return found


def _declaration(text: str) -> Declaration:
    first = next((row for row in text.splitlines() if not row.startswith("/*")), "")
    match = next(filter(None, (pattern.match(first) for pattern in _NAMED)), None)
    return Declaration(match[1] if match else "", text)


def needed(code: str, preamble: str) -> str:
    """The declarations of ``preamble`` that ``code`` uses, directly or through others, in their order."""
    all_of_them = [d for d in declarations(preamble) if d.text.strip()]
    by_name = {d.name: d for d in all_of_them if d.name}
    wanted: set[str] = set()
    waiting = [code, *(d.text for d in all_of_them if not d.name)]
    while waiting:
        for word in _WORD.findall(waiting.pop()):
            if word in by_name and word not in wanted:
                wanted.add(word)
                waiting.append(by_name[word].text)
    kept = [d for d in all_of_them if not d.name or d.name in wanted]
    text = ""
    for before, here in zip([None, *kept], kept, strict=False):
        # A function of several lines stands by itself; types and one-line functions stand in blocks.
        if before is not None and (before.text.count("\n") > 1 or here.text.count("\n") > 1):
            text += "\n"
        text += here.text.rstrip() + "\n"
    return text
