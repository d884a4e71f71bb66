"""The text of a lesson: the part of Markdown that lessons use, as plain data that a page draws.

Paragraphs, lists, ``code``, **bold**, *emphasis*, links to the web and to the glossary, pictures, and fenced
blocks to look at (``text``, ``tree``). Anything else is text. A span is a list whose first entry is its kind:
``["text", words]``, ``["code", words]``, ``["strong", words]``, ``["em", words]``, ``["term", words, slug]``,
``["link", words, address]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dojo_core.program.expressions import TextError

Span = list[str]
Block = dict[str, Any]

# What may stand between two signs excludes the sign that opens: no two attempts look at the same text.
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|(?<![\w*])\*(?P<em>[^*\s][^*]*)\*(?![\w*])"
    r"|\[(?P<words>[^\[\]]+)\]\((?P<address>[^)\[\s]+)\)"
)
_PICTURE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<file>[^)\s]+)\)\Z")
_TERM = re.compile(r"glossary\.md#([a-z0-9-]+)\Z")


def slug(title: str) -> str:
    """A title as the end of a link: ``Cache line`` is ``cache-line``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


class Terms:
    """The glossary's words, to be linked where a text first says one.

    ``names`` are all words for each slug, the plurals with -s included by the pattern.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._slug_of = {name.lower(): target for name, target in names.items()}
        words = sorted(self._slug_of, key=len, reverse=True)
        self.slugs = frozenset(self._slug_of.values())
        self._pattern = (
            re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, words))})(s|es)?(?![\w-])", re.IGNORECASE)
            if words
            else None
        )

    def link(self, words: str, seen: set[str]) -> list[Span]:
        """Text as spans, the first mention of each term that is not in ``seen`` (which grows) a link."""
        if self._pattern is None:
            return [["text", words]]
        spans: list[Span] = []
        at = 0
        for match in self._pattern.finditer(words):
            target = self._slug_of[match.group(1).lower()]
            if target in seen:
                continue
            seen.add(target)
            if match.start() > at:
                spans.append(["text", words[at : match.start()]])
            spans.append(["term", match.group(), target])
            at = match.end()
        if at < len(words):
            spans.append(["text", words[at:]])
        return spans


def spans(text: str, terms: Terms, seen: set[str], number: int = 1) -> list[Span]:
    """One paragraph. Raises TextError for a link that leads nowhere."""
    parts: list[Span] = []
    at = 0
    for match in _INLINE.finditer(text):
        parts += terms.link(text[at : match.start()], seen) if match.start() > at else []
        at = match.end()
        kind = match.lastgroup
        if kind == "address":
            parts.append(_linked(match["words"], match["address"], terms, seen, number, text))
        else:
            assert kind is not None
            parts.append([kind, match[kind]])
    if at < len(text):
        parts += terms.link(text[at:], seen)
    return parts


def _linked(words: str, address: str, terms: Terms, seen: set[str], number: int, line: str) -> Span:
    term = _TERM.match(address)
    if term is not None:
        if term.group(1) not in terms.slugs:
            fault = f"the glossary has no entry {term.group(1)!r}"
            raise TextError(fault, "Add a heading to glossary.md, or correct the link.", number, 1, line)
        seen.add(term.group(1))
        return ["term", words, term.group(1)]
    if not re.match(r"https?://[\w.-]+(/\S*)?\Z", address):
        raise TextError(
            f"a link leads to the web or to the glossary, not to {address[:60]!r}",
            "Write [words](https://…) or [words](glossary.md#term).",
            number,
            1,
            line,
        )
    return ["link", words, address]


def blocks(lines: list[tuple[int, str]], terms: Terms, seen: set[str]) -> list[Block]:
    """Numbered lines of a text without fences as blocks: paragraphs, lists, pictures.

    A picture's block names its file; whoever has the folder puts the drawing in. Raises TextError.
    """
    parsed: list[Block] = []
    paragraph: list[tuple[int, str]] = []

    def close() -> None:
        if paragraph:
            text = " ".join(line.strip() for _, line in paragraph)
            parsed.append({"kind": "paragraph", "spans": spans(text, terms, seen, paragraph[0][0])})
            paragraph.clear()

    for number, line in lines:
        stripped = line.strip()
        picture = _PICTURE.match(stripped)
        if not stripped:
            close()
        elif picture is not None:
            close()
            parsed.append({"kind": "picture", "file": picture["file"], "alt": picture["alt"], "line": number})
        elif stripped.startswith("- "):
            close()
            item = spans(stripped[2:], terms, seen, number)
            if parsed and parsed[-1]["kind"] == "list" and parsed[-1]["open"]:
                parsed[-1]["items"].append(item)
            else:
                parsed.append({"kind": "list", "items": [item], "open": True})
        elif line.startswith("  ") and parsed and parsed[-1]["kind"] == "list" and not paragraph:
            parsed[-1]["items"][-1] += [["text", " "], *spans(stripped, terms, seen, number)]
        elif stripped.startswith("#"):
            raise TextError(
                "a heading of this depth has no meaning here", "Use # for the title and ## for a step.",
                number, 1, line,
            )  # fmt: skip
        else:
            paragraph.append((number, line))
        if parsed and parsed[-1]["kind"] == "list" and not stripped:
            parsed[-1]["open"] = False
    close()
    for block in parsed:
        block.pop("open", None)
    return parsed


def plain(text: list[Span]) -> str:
    """Spans as words."""
    return "".join(span[1] for span in text)
