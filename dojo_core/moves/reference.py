"""The reference of all moves, made from their docstrings: docs/moves.md.

Made anew by ``python -m dojo_core.moves.reference > docs/moves.md``.
"""

from __future__ import annotations

import inspect
import re

from dojo_core.moves import REGISTRY, inverse
from dojo_core.moves.examples import POLICY, example
from dojo_core.moves.notation import usage

FAMILIES = {
    "scopes": "Scopes",
    "extent": "Extents of scopes",
    "storage": "Storage",
    "layout": "Layout of temporaries",
    "copies": "Copies",
    "values": "Values",
    "reductions": "Reductions",
    "algebra": "Algebra",
    "marks": "Marks",
    "mapping": "Mapping to a GPU",
    "streaming": "Streams and hardware loops (Snitch)",
    "instructions": "Instructions",
}

INTRODUCTION = """# The moves

Made from the docstrings of `dojo_core/moves/` by `python -m dojo_core.moves.reference`; a test keeps it so,
and plays every example. Beside the conditions listed, every result must keep its storage sound (V2) and its
marks and limits (V3): [legality.md](legality.md). What a floating-point policy lets a line change of the
results, and what it keeps, is in [promises.md](promises.md).
"""


def summary(name: str) -> str:
    """The first sentence of a move's docstring."""
    return inspect.cleandoc(type(REGISTRY[name]).__doc__ or "").split("\n\n")[0].replace("\n", " ")


def section(name: str) -> str:
    """One move as Markdown."""
    text = inspect.cleandoc(type(REGISTRY[name]).__doc__ or "")
    text = re.sub(r"^ {2}(\d+)\. ", r"\1. ", text, flags=re.MULTILINE)
    text = re.sub(r"^ {5}(?=\S)", "   ", text, flags=re.MULTILINE)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"::\n\n((?: {4}.*\n?|\n(?= {4}))+)", _block, text + "\n").rstrip()
    text = text.replace("Legal iff\n", "Legal iff\n\n")
    return f"### {name}\n\n{text}\n\n{usage(REGISTRY[name])}\n{_back(name)}\n"


def _back(name: str) -> str:
    """Which move takes the example back."""
    shown = example(name)
    back = inverse(shown.program, shown.move, shown.target, POLICY)
    return "No single move takes it back." if back is None else f"In the example `{back}` takes it back."


def _block(match: re.Match[str]) -> str:
    lines = [line[4:] for line in match[1].rstrip("\n").split("\n")]
    return ":\n\n```\n" + "\n".join(lines) + "\n```\n"


def page() -> str:
    """The whole reference."""
    parts = [INTRODUCTION]
    for family, title in FAMILIES.items():
        names = [n for n, t in REGISTRY.items() if t.family == family]
        parts.append(f"## {title}\n\n" + "\n".join(f"- `{n}`: {summary(n)}" for n in names) + "\n")
        parts.extend(section(n) for n in names)
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
