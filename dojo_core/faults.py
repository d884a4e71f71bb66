"""What is wrong with a text of one's own, as a person is told it by ``dojo check`` and the app."""

from __future__ import annotations

from dojo_core.program.expressions import TextError
from dojo_core.program.marks import mark_fault
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import operation_lines
from dojo_core.program.tree import Program
from dojo_core.program.validity import definition_fault, storage_fault
from dojo_core.targets.registry import target


def program_fault(
    program: Program, on: str | None = DEFAULT_TARGET, policy: str = "reassoc", source: str | None = None
) -> str | None:
    """Why a program that parses cannot be played on: its storage, what it reads and writes, its marks.

    With no target (``on`` None) the marks are left to whoever knows it. Lines are those of ``source``, the
    text that was parsed; without it, of the program's own.
    """
    lacking = None if on is None else target(on).lacks(program)
    if lacking is not None:
        return lacking
    fault = storage_fault(program)
    if fault is None and program_doubt(program) is None:  # what is not known to be wrong is let in
        fault = definition_fault(program)
    if fault is None and on is not None:
        fault = mark_fault(program, target(on), policy)
    if fault is None:
        return None
    text = source or program.text
    rows = text.splitlines()
    numbers = dict(zip((leaf.path for leaf in program.leaves), operation_lines(text), strict=True))
    lines = [fault.sentence]
    lines += [f"  line {numbers[p]}: {rows[numbers[p] - 1].strip()}" for p in fault.nodes if p in numbers]
    if fault.witness is not None:
        lines.append(str(fault.witness))
    return "\n".join(lines)


def program_doubt(program: Program) -> str | None:
    """What could not be shown of a program that has no fault, as a sentence: it is played on all the same."""
    doubt = definition_fault(program)
    if doubt is None or doubt.code != "undecided":
        return None
    return f"{doubt.sentence} It is checked before it is measured."


def text_fault(error: TextError) -> str:
    """The error with its line and mark; only the sentences where it is about no line."""
    message = shortened(error.message)
    if error.source:
        return str(TextError(message, error.remedy, error.line, error.column, error.source))
    return f"{message[:1].upper()}{message[1:].rstrip('.')}. {error.remedy}"


def shortened(message: str) -> str:
    """Without the names of all moves there are, which hide the sentence before them."""
    return message.partition(" The moves are: ")[0]
