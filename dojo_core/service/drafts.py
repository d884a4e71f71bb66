"""What is told of a text of one's own while it is typed: what it is read as, and its first mistake."""

from __future__ import annotations

from dojo_core.faults import program_fault, text_fault
from dojo_core.from_code.recognise import OWN, kind_of
from dojo_core.from_code.source import sizes_of
from dojo_core.from_code.translate import translate
from dojo_core.program.dependence import POLICIES
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.service.view import Json
from dojo_core.targets.registry import UnknownTarget
from dojo_core.wording import counted

MOST_SIZES = 24
_REPLAYED = {
    "game": "A saved game: it is replayed when you play it.",
    "line": "A line: it is replayed when you play it.",
}


def sizes_said(said: object) -> dict[str, int]:
    """Sizes as a page sends them, ``m=512`` each. Raises TextError."""
    return sizes_of([str(each) for each in said[:MOST_SIZES]]) if isinstance(said, list) else {}


def draft(text: str, said: object, policy: str, target: str) -> Json:
    """``told`` sentences; the ``sizes`` that may be changed; of a translation its ``program``; the first
    mistake as ``error``, with the ``line`` and ``column`` that it is at (0: no place)."""
    found: Json = {"told": [], "sizes": [], "program": "", "error": "", "line": 0, "column": 0}
    if not text.strip():
        return found
    kind = kind_of(text)
    try:
        if kind in _REPLAYED:
            found["told"] = [_REPLAYED[kind]]
        elif kind in OWN:
            program = parse(text)
            known = policy if policy in POLICIES else POLICIES[1]
            fault = program_fault(program, target or DEFAULT_TARGET, known, text)
            found["error"] = fault or ""
            operations = counted(len(program.leaves), "operation")
            found["told"] = [] if fault else [f"A program of the Dojo: {program.name}, {operations}."]
        else:
            made = translate(text, sizes_said(said), lenient=True)
            found["told"] = [made.sentence, made.checked, *made.notes]
            found["sizes"] = [[name, size] for name, size in made.sizes.items()]
            found["program"] = made.program.text
    except UnknownTarget as error:
        found["error"] = str(error)
    except TextError as error:
        found["error"] = text_fault(error)
        if error.source:
            found |= {"line": error.line, "column": error.column}
    return found
