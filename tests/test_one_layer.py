"""Doors say and do alike: no sentence stands in two places, and of what several do there is one function."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.goldens import ROOT

# What people and programs come in by, and what lies directly beneath.
DOORS = (
    "dojo_core/*.py", "dojo_core/actions", "dojo_core/calls", "dojo_core/cli", "dojo_core/notebook",
    "dojo_core/service", "agents/*.py", "agents/doors", "agents/jobs", "pages",
)  # fmt: skip
WORDS = 4  # of a sentence at least: shorter ones are labels


def files() -> Iterator[Path]:
    for place in DOORS:
        yield from ROOT.glob(place if place.endswith(".py") else f"{place}/**/*.py")


def sentences(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The sentences of a module's texts for people, what is filled in as ``{}``, and their lines. Without
    docstrings, and without the arguments of ``help``, where a command names its own."""
    passed_over: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed_over.update(node.values)
        elif isinstance(node, ast.keyword) and node.arg == "help":
            passed_over.update(ast.walk(node.value))
        elif isinstance(node, ast.Expr):
            passed_over.add(node.value)
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if node in passed_over:
            continue
        for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", text):
            if len(re.findall(r"[^\W\d_]{2,}", sentence)) >= WORDS and sentence.rstrip().endswith(
                (".", "?", "!")
            ):
                yield " ".join(sentence.split()), node.lineno


def test_no_sentence_is_written_twice():
    places = defaultdict(list)
    for file in files():
        for sentence, line in sentences(ast.parse(file.read_text(encoding="utf-8"))):
            places[sentence].append(f"{file.relative_to(ROOT)}:{line}")
    twice = {sentence: where for sentence, where in places.items() if len(where) > 1}
    told = "\n".join(f"{sentence}\n  {', '.join(where)}" for sentence, where in twice.items())
    assert not twice, f"Written twice; let one function or constant have it:\n{told}"
