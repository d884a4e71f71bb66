"""A compiler's assembly as a person reads it: instructions and labels, each with the node it comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dojo_core.program.tree import Path

_LOCATION = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_CODE = (".text", "__TEXT,__text")  # sections of ELF's and of macOS' files
_LABEL = re.compile(r"([.\w$]+):")


@dataclass(frozen=True, slots=True)
class Assembly:
    """Instructions and labels, without the directives that tell a reader nothing.

    For each line, ``c_lines`` gives the line of the generated text it comes from (0 the first) and
    ``nodes`` the program node; None where there is none. ``inlined``: the numbers of the lines that come from
    an inline function, which have the line and the node of what stands before them.
    """

    lines: tuple[str, ...]
    nodes: tuple[Path | None, ...]
    c_lines: tuple[int | None, ...]
    inlined: frozenset[int] = frozenset()


def linked(text: str, nodes: Sequence[Path | None], before: int, comment: str) -> Assembly:
    """Assembly with ``.loc`` directives, linked to the lines of what was compiled.

    ``nodes``: of each line of the generated text, before which the compiler was given ``before`` lines more.
    Labels that nothing mentions go, local ones.
    """
    rows: list[tuple[str, int | None, bool]] = []
    in_text = True
    line: int | None = None
    inlined = False
    for row in text.splitlines():
        words = row.split()
        if words and words[0] in (".text", ".section", ".data", ".bss"):
            in_text = words[0] == ".text" or (words[0] == ".section" and words[1].startswith(_CODE))
        location = _LOCATION.match(row)
        if location:
            number = int(location[2]) - 1 - before
            inlined = not 0 <= number < len(nodes)
            if not inlined:
                line = number
            continue
        shown = row.split(comment)[0].rstrip().expandtabs(8)
        if shown.startswith("#"):  # where assembly of the C's own begins and ends
            continue
        if in_text and shown and (_LABEL.match(shown) or not shown.lstrip().startswith(".")):
            rows.append((shown, line, inlined))
    mentioned = {word for row, _, _ in rows if not _LABEL.match(row) for word in re.findall(r"[.\w$]+", row)}
    lines: list[tuple[str, int | None, bool]] = []
    for row, came_from, within in rows:
        label = _LABEL.match(row)
        if label is None or label[1] in mentioned or not label[1].startswith("."):
            lines.append((row, came_from, within))
    return Assembly(
        tuple(row for row, _, _ in lines),
        tuple(None if number is None else nodes[number] for _, number, _ in lines),
        tuple(number for _, number, _ in lines),
        frozenset(k for k, (_, _, within) in enumerate(lines) if within),
    )
