"""Why a legal move is legal: the conditions of its docstring, with what the move names in their place."""

from __future__ import annotations

import inspect
import re

from dojo_core.moves.core import REGISTRY, Move

_USE = re.compile(r"``(?P<name>\w+)(?P<parameters>[^`]*)``")
_CONDITION = re.compile(r"^ {2}\d+\. (.*(?:\n {5}.*)*)", re.MULTILINE)
_ANALYSES = re.compile(r" \(V\d[^)]*\)")
_SOUND = ("V2 and V3 hold", "storage, marks and limits stay sound")


def conditions(name: str) -> list[str]:
    """The numbered conditions of a move, each in one line."""
    text = inspect.cleandoc(REGISTRY[name].__doc__ or "").partition("Legal iff")[2]
    listed = (" ".join(condition.split()) for condition in _CONDITION.findall(text))
    return [_ANALYSES.sub("", each).replace(*_SOUND).replace("``", "`").rstrip(".;") for each in listed]


def met(move: Move) -> str:
    """What a legal move had to meet, as a sentence without its end."""
    named = _named(move)
    words = re.compile(rf"\b({'|'.join(named)})(?=[a-z]?\b)")  # NAMEq: a name made of NAME
    return "; ".join(
        words.sub(lambda m: named[m[1]], each) if named else each for each in conditions(move.name)
    )


def _named(move: Move) -> dict[str, str]:
    """What the parameters of the docstring's usage stand for: ``OP@S`` has two."""
    text = inspect.cleandoc(REGISTRY[move.name].__doc__ or "")
    use = next((u for u in _USE.finditer(text) if u["name"] == move.name), None)
    forms = [form.strip("[]") for form in use["parameters"].split()] if use else []
    given = [str(argument) for argument in move.arguments]
    values: dict[str, str] = {}
    for number, form in enumerate(forms):
        if number >= len(given):
            break
        if form.endswith("..."):
            values[form.removesuffix("...")] = " ".join(given[number:])
            break
        if "@" in form:
            operation, _, scope = form.partition("@")
            values[operation] = given[number].partition("@")[0]
            values[scope] = given[number]
        else:
            values[form] = given[number]
    return {form: value for form, value in values.items() if form.isupper()}
