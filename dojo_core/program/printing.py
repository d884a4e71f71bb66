"""Canonical printing of the text form; ``text.parse`` reads it back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.nodes import Access, Node, Number, Op, Operand, Scope, fact

if TYPE_CHECKING:
    from dojo_core.program.tree import Program

TERM = len("*549755813888+{10}")  # what a split adds to an iterator, at most


def print_program(program: Program) -> str:
    """The canonical text, with a newline at its end."""
    lines = [f"kernel {program.name}"]
    if program.inputs:
        lines.append(f"in {', '.join(program.inputs)}")
    lines.append(f"out {', '.join(program.outputs)}")
    lines.extend(map(str, program.domains))
    lines.extend(map(str, program.tables.values()))
    lines.extend(map(str, program.buffers))
    lines.extend(body_lines(program.body))
    return "\n".join(lines) + "\n"


def body_lines(body: Iterable[Node]) -> list[str]:
    """One line per operation: the slots of newly opened scopes, bars for those still open."""
    lines: list[str] = []

    def visit(node: Node, opened: int, slots: list[str]) -> None:
        if isinstance(node, Op):
            lines.append(" ".join(["|"] * opened + slots[opened:] + [op_text(node)]))
            return
        slot = slot_text(node)
        for number, child in enumerate(node.body):
            visit(child, opened if number == 0 else len(slots) + 1, [*slots, slot])

    for node in body:
        visit(node, 0, [])
    return lines


def slot_text(scope: Scope) -> str:
    """A scope's size, and its mark."""
    return f"{scope.size}:{scope.mark}" if scope.mark else str(scope.size)


class Extent(NamedTuple):
    """What the lines of a body take, at most: their number, all characters, what a move adds that gives each
    iterator another term and each line another condition, and the longest line with that."""

    lines: int
    characters: int
    terms: int
    longest: int


def extent(body: Iterable[Node]) -> Extent:
    """Kept by each scope, so that of a program with a few new nodes only these are printed."""
    lines = characters = terms = longest = 0
    for node in body:
        if isinstance(node, Op):
            text = op_text(node)
            more = TERM * (text.count("{") + 1)
            below = Extent(1, len(text) + 1, more, len(text) + more)
        else:
            below = _extent(node)
        lines += below.lines
        characters += below.characters
        terms += below.terms
        longest = max(longest, below.longest)
    return Extent(lines, characters, terms, longest)


@fact
def _extent(scope: Scope) -> Extent:
    lines, characters, terms, longest = extent(scope.body)
    slot = len(f"{scope.size}:{scope.mark} ")
    return Extent(lines, characters + lines * slot, terms, longest + slot)


def op_text(op: Op) -> str:
    """An operation without its slots; printed once."""
    if op.printed is None:
        object.__setattr__(op, "printed", _printed(op))
    return op.printed or ""


def _printed(op: Op) -> str:
    parts = [f"{op.target} {op.accumulate}= {_expression_text(op.function, op.operands)}"]
    if op.guard:
        parts.append("if " + " and ".join(map(str, op.guard)))
    parts.extend(f"!prefetch({a})" for a in op.prefetches)
    if op.stream:
        parts.append("!stream")
    if op.stream_load:
        parts.append("!stream_load")
    return " ".join(parts)


def _expression_text(function: str, operands: tuple[Operand, ...]) -> str:
    if not function:
        return str(operands[0])
    if function == "neg" and isinstance(operands[0], Access):  # -0 would be read as a number
        return f"-{_atom(operands[0])}"
    if FUNCTIONS[function].infix:
        left, right = _atom(operands[0]), _atom(operands[1])
        return f"{left}*{right}" if function == "*" else f"{left} {function} {right}"
    return f"{function}({','.join(map(str, operands))})"


def _atom(operand: Operand) -> str:
    text = str(operand)
    bare = isinstance(operand, Access) or (text[0] != "-" and not re.search(r"[-+*]", text))
    return text if bare or (isinstance(operand, Number) and text[0] != "-") else f"({text})"
