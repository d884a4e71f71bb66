"""Pages made from the docstrings of moves: the reference, and what algebraic moves promise.

Made anew by ``python -m dojo_core.moves.reference > docs/moves.md`` and
``python -m dojo_core.moves.reference algebraic > docs/algebraic.md``.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from dojo_core import plugins
from dojo_core.checkout import OURS
from dojo_core.measure.patterns import PATTERNS
from dojo_core.moves import REGISTRY, Transformation, inverse
from dojo_core.moves.examples import example
from dojo_core.moves.notation import usage

FAMILIES = {  # in the order of the page; one of a package's own is titled by its name
    "scopes": "Scopes",
    "extent": "Extents of scopes",
    "storage": "Storage",
    "layout": "Layout of temporaries",
    "copies": "Copies",
    "values": "Values",
    "reductions": "Reductions",
    "algebra": "Algebra",
    "marks": "Marks",
    "mapping": "Mapping to blocks and threads",
    "tensor cores": "Tensor cores",
    "streaming": "Streams and hardware loops",
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
    return inspect.cleandoc(REGISTRY[name].__doc__ or "").split("\n\n")[0].replace("\n", " ")


def section(name: str) -> str:
    """One move as Markdown."""
    text = inspect.cleandoc(REGISTRY[name].__doc__ or "")
    text = re.sub(r"^ {2}(\d+)\. ", r"\1. ", text, flags=re.MULTILINE)
    text = re.sub(r"^ {5}(?=\S)", "   ", text, flags=re.MULTILINE)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"::\n\n((?: {4}.*\n?|\n(?= {4}))+)", _block, text + "\n").rstrip()
    text = text.replace("Legal iff\n", "Legal iff\n\n")
    also = REGISTRY[name].also
    others = f"It answers to {', '.join(f'`{each}`' for each in also)} too.\n" if also else ""
    return f"### {name}\n\n{text}\n\n{usage(REGISTRY[name])}\n{others}{_back(name)}\n"


def _back(name: str) -> str:
    """Which move takes the example back."""
    try:
        shown = example(name)
    except ValueError:
        return "It shows no example that can be played."
    back = inverse(shown.program, shown.move, shown.target, shown.policy)
    return "No single move takes it back." if back is None else f"In the example `{back}` takes it back."


def _block(match: re.Match[str]) -> str:
    lines = [line[4:] for line in match[1].rstrip("\n").split("\n")]
    return ":\n\n```\n" + "\n".join(lines) + "\n```\n"


def page() -> str:
    """The whole reference of the Dojo's own moves."""
    return "\n".join([INTRODUCTION, *families(OURS)])


def families(package: str) -> list[str]:
    """The moves of a package, by family."""
    moves = moves_of(package)
    parts = []
    for family in dict.fromkeys([*FAMILIES, *(t.family for t in moves.values())]):
        names = [n for n, t in moves.items() if t.family == family]
        if names:
            parts.append(
                f"## {title(family)}\n\n" + "\n".join(f"- `{n}`: {summary(n)}" for n in names) + "\n"
            )
            parts.extend(section(n) for n in names)
    return parts


def moves_of(package: str) -> dict[str, Transformation[Any]]:
    return {n: t for n, t in REGISTRY.items() if plugins.package("dojo.moves", n) == package}


def title(family: str) -> str:
    return FAMILIES.get(family) or family.replace("_", " ").capitalize()


ALGEBRAIC = """# What algebraic moves promise

Made from `dojo_core/moves/` by `python -m dojo_core.moves.reference algebraic`; a test keeps it so. These
moves replace a formula by another that is equal for numbers without rounding. The policy `algebraic` alone
allows them. Each says below what its results promise in floating point, and what they do not.

Every program under `algebraic` is verified on further inputs too, which are none but these, on every target
and in every dtype: its text does not tell which moves lie behind it, so they are drawn for each that its
start has an operation for. [measuring.md](measuring.md) says how, and what a result may be off by there.
"""


def algebraic_page() -> str:
    """What each algebraic move of the Dojo's own promises, and its worst inputs."""
    parts = [ALGEBRAIC]
    for name, move in moves_of(OURS).items():
        if move.worst_inputs:
            listed = "".join(f"- {each}: {PATTERNS[each].about}\n" for each in move.worst_inputs)
            text = f"{summary(name)}\n\n{promise(name)}".replace("``", "`")
            parts.append(f"## {name}\n\n{text}\n\nWorst for it, worst first:\n\n{listed}")
    return "\n".join(parts)


def promise(name: str) -> str:
    """The paragraph of a move's docstring that says what its results are worth; \"\" where it has none."""
    paragraphs = inspect.cleandoc(REGISTRY[name].__doc__ or "").split("\n\n")
    return next((p.replace("\n", " ") for p in paragraphs if p.startswith("Promises ")), "")


if __name__ == "__main__":
    print(algebraic_page() if sys.argv[1:] == ["algebraic"] else page(), end="")
