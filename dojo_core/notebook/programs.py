"""A program's text in colours, and its loops as a tree."""

from __future__ import annotations

import difflib
import re

from dojo_core.notebook.style import folded, span
from dojo_core.program.marks import mark_word
from dojo_core.program.printing import op_text
from dojo_core.program.tree import DTYPE_BYTES, Leaf, Node, Op, Program

LINES, COLUMNS = 300, 240  # of a text that is drawn

_TOKEN = re.compile(
    r"(?P<index>\{\d+\})"
    r"|(?P<mark>![a-z]+)"
    r"|(?P<name>[A-Za-z_][\w#]*)(?P<call>\()?"
    r"|(?P<number>(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?)"
)
_WORDS = frozenset(("kernel", "in", "out", "domain", "distinct", "table", "if", "and", *DTYPE_BYTES))
_LOCATIONS = frozenset(("heap", "stack", "register", "shared", "local"))


def coloured(program: Program, before: Program | None = None) -> str:
    """The canonical text; lines that ``before`` has not are marked as come."""
    rows = program.text.splitlines()
    came = _came(before.text.splitlines(), rows) if before is not None else frozenset()
    head = len(rows) - len(program.leaves)
    drawn = []
    for number, row in enumerate(rows[:LINES]):
        leaf = program.leaves[number - head] if number >= head else None
        line = _line(row if len(row) <= COLUMNS else f"{row[:COLUMNS]} …", leaf)
        drawn.append(f'<span class="came">{line}</span>' if number in came else line)
    if len(rows) > LINES:
        drawn.append(span("quiet", f"… {len(rows) - LINES} more lines: print(program) has them"))
    return "<pre>" + "\n".join(drawn) + "</pre>"


def _came(before: list[str], after: list[str]) -> frozenset[int]:
    opcodes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return frozenset(row for tag, _, _, b0, b1 in opcodes if tag != "equal" for row in range(b0, b1))


def _line(row: str, leaf: Leaf | None) -> str:
    if leaf is None:
        return _tokens(row)
    *slots, operation = row.split(" ", len(leaf.scopes))
    drawn = []
    for slot in slots:
        size, colon, mark = slot.partition(":")
        drawn.append(
            span("quiet" if size == "|" else "number", size) + span("mark", colon + mark) * bool(mark)
        )
    return " ".join([*drawn, _tokens(operation)])


def _tokens(text: str) -> str:
    drawn, end = [], 0
    for match in _TOKEN.finditer(text):
        drawn.append(span("", text[end : match.start()]))
        end = match.end()
        name = match["name"]
        if name is None:
            drawn.append(span(match.lastgroup or "", match.group()))
            continue
        kind = "word" if name in _WORDS else "quiet" if name in _LOCATIONS else ""
        drawn.append(span("function" if match["call"] and not kind else kind, name))
        drawn.append(match["call"] or "")
    return "".join([*drawn, span("", text[end:])])


def loops(program: Program) -> str:
    """The tree of scopes, each as a loop in words, folded up."""
    left = LINES

    def visit(node: Node, depth: int) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            return ""
        if isinstance(node, Op):
            return f"<li><code>{_tokens(op_text(node))}</code></li>"
        mark = span("mark", f", {mark_word(node.mark)}") if node.mark else ""
        times = span("index", f"{{{depth}}}") + span("", f" from 0 to {node.size - 1:,}")
        inside = "".join(visit(child, depth + 1) for child in node.body)
        return f"<li>for {times}{mark}<ul>{inside}</ul></li>"

    drawn = "".join(visit(node, 0) for node in program.body)
    return folded("As loops", f"<ul>{drawn}</ul>" + span("quiet", "… and more") * (left < 0))
