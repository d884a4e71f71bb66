"""What the docstring of each move shows is what the move does, and its inverse takes it back."""

import inspect
import re
from pathlib import Path

import pytest

from dojo_core import apply, parse
from dojo_core.moves import REGISTRY, inverse
from dojo_core.moves.reference import FAMILIES, page
from tests.conftest import WIDE
from tests.gpu import GPU
from tests.snitch import SNITCH

ALL = 128  # a dimension that the docstring leaves open
BLOCK = re.compile(r"^(Before|After ``(?P<move>[^`]+)``)::\n\n(?P<text>(?: {4}.*\n?|\n)+)", re.MULTILINE)
BUFFER = re.compile(r"[a-z]\w* [fiu]\d+ \[")


def blocks(name: str) -> tuple[str, list[str], list[str]]:
    """(move, lines before, lines after) of a docstring."""
    doc = inspect.cleandoc(type(REGISTRY[name]).__doc__ or "")
    found = list(BLOCK.finditer(doc))
    assert len(found) >= 2, f"{name} shows no before and after"
    before, after = (
        [line.strip() for line in block["text"].splitlines() if line.strip()] for block in found[:2]
    )
    return found[1]["move"], before, after


def whole(lines: list[str], more: list[str]) -> str:
    """A kernel of these lines: what they leave undeclared is large enough, what nothing writes is input."""
    declared = {line.split()[0]: line for line in lines if BUFFER.match(line)}
    body = [line for line in lines if not BUFFER.match(line)]
    text = "\n".join(body + [line for line in more if not BUFFER.match(line)])
    ranks: dict[str, int] = {}
    for array, index in re.findall(r"([a-z]\w*)\[([^\]]*)\]", "\n".join(body)):
        ranks.setdefault(array, index.count(",") + 1 if index else 0)
    held = {a.strip() for line in declared.values() if "->" in line for a in line.split("->")[1].split(",")}
    written = set(re.findall(r"([a-z]\w*)\[[^\]]*\] (?:[+*]|max|min)?=", text))
    output = "y" if "y" in written else sorted(written)[-1]
    inputs = [a for a in ranks if a not in written]
    for array, rank in ranks.items():
        if array not in declared and array not in held:
            declared[array] = f"{array} f32 [{', '.join([str(ALL)] * rank)}] heap"
    head = ["kernel k", f"in {', '.join(inputs)}" if inputs else "", f"out {output}"]
    return "\n".join([*(h for h in head if h), *declared.values(), *body]) + "\n"


def shown(name: str) -> bool:
    _, before, after = blocks(name)
    return all(any(not BUFFER.match(line) for line in lines) for lines in (before, after))


@pytest.mark.parametrize("name", [n for n in REGISTRY if shown(n)])
def test_the_docstring_is_true(name):
    move, before, after = blocks(name)
    program = parse(whole(before, after))
    target = {"mapping": GPU, "streaming": SNITCH}.get(REGISTRY[name].family, WIDE)
    result = apply(program, move, target, "algebraic")
    assert result.text.splitlines()[-len([a for a in after if not BUFFER.match(a)]) :] == [
        line for line in after if not BUFFER.match(line)
    ]
    for line in after:
        if BUFFER.match(line):
            assert line in result.text.splitlines()
    assert parse(result.text) == result
    back = inverse(program, move, target, "algebraic")
    if back is not None:
        assert apply(result, back, target, "algebraic") == program


@pytest.mark.parametrize("name", REGISTRY)
def test_every_docstring_has_its_numbered_conditions(name):
    doc = inspect.cleandoc(type(REGISTRY[name]).__doc__ or "")
    assert f"``{name} " in doc
    numbers = [int(n) for n in re.findall(r"^  (\d)\. ", doc.split("Legal iff")[1], re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers


def test_the_reference_page_is_up_to_date():
    assert {t.family for t in REGISTRY.values()} == set(FAMILIES)
    written = Path(__file__).parent.parent / "docs" / "moves.md"
    assert written.read_text() == page(), "run: python -m dojo_core.moves.reference > docs/moves.md"
