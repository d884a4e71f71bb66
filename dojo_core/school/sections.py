"""Markdown files with facts and fenced blocks, cut into sections: the form that lessons and studies share.

``# Title`` first, then facts, ``name: value``; ``## Title`` begins a section, with facts of its own, text and
blocks. What blocks mean is for the reader of each kind of file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dojo_core.program.expressions import TextError

_FENCE = re.compile(r"```([a-z-]*)[ \t]*(.*)\Z")
_FACT = re.compile(r"([a-z-]+): (.+)")


@dataclass(frozen=True)
class Part:
    """Text (then ``block`` is empty) or a block; ``words`` stand behind its name, ``line`` is its first."""

    line: int
    block: str
    words: str
    body: list[str]

    @property
    def numbered(self) -> list[tuple[int, str]]:
        """The lines of the body with their numbers in the file."""
        return list(enumerate(self.body, self.line + 1 if self.block else self.line))

    @property
    def last(self) -> int:
        """Its last line: of a block, the one that closes it."""
        return self.line + len(self.body) + (1 if self.block else -1)


@dataclass
class Section:
    """A heading and what stands below it."""

    title: str
    line: int
    facts: dict[str, tuple[int, str]] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    def fact(self, name: str, otherwise: str = "") -> str:
        return self.facts.get(name, (0, otherwise))[1]

    def only(self, names: Sequence[str], what: str) -> None:
        """Raises TextError where another fact is stated. ``what`` begins the sentence: "a step has"."""
        for name, (number, _) in self.facts.items():
            if name not in names:
                raise TextError(f"{what} no fact {name!r}", f"Here can stand: {', '.join(names)}.", number)


def sections(text: str, blocks: Sequence[str]) -> Iterator[Section]:
    """The title's section and the others, cut at headings outside of fences. Raises TextError."""
    section: Section | None = None
    prose: list[str] = []
    prose_line = 0
    fence: tuple[int, str, str] | None = None
    body: list[str] = []
    may_have_facts = False
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.strip() == "```":
                assert section is not None
                section.parts.append(Part(*fence, body))
                fence = None
            else:
                body.append(line)
            continue
        heading = re.match(r"(#{1,2}) (.+)", line)
        opening = _FENCE.match(line.rstrip())
        if section is None and line.strip() and (heading is None or heading[1] != "#"):
            raise TextError("the first line is no title", "Begin with: # What it teaches", number, 1, line)
        if (heading or opening) and section is not None and any(each.strip() for each in prose):
            section.parts.append(Part(prose_line, "", "", prose))
        if heading or opening:
            prose, prose_line = [], 0
        if heading is not None:
            if heading[1] == "#" and section is not None:
                raise TextError(
                    "a file has one title", "Begin a part with ## in place of #.", number, 1, line
                )
            if section is not None:
                yield section
            section = Section(heading[2].strip(), number)
            may_have_facts = True
        elif opening is not None:
            if opening[1] not in blocks:
                fault = f"there is no block {opening[1]!r}"
                raise TextError(fault, f"The blocks: {', '.join(blocks)}.", number, 1, line)
            fence, body, may_have_facts = (number, opening[1], opening[2]), [], False
        elif section is not None:
            fact = _FACT.match(line)
            if fact is not None and may_have_facts:
                section.facts[fact[1]] = (number, fact[2].strip())
            elif line.strip() or prose:
                may_have_facts = False
                prose_line = prose_line or number
                prose.append(line)
    if fence is not None:
        raise TextError("this block has no end", "Close it with a line ``` of its own.", fence[0])
    if section is None:
        raise TextError("the file is empty", "Begin with: # What it teaches")
    if any(each.strip() for each in prose):
        section.parts.append(Part(prose_line, "", "", prose))
    yield section
