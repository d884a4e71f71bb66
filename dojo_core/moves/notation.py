"""The text form of moves: ``split_scope y@0 16``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

from dojo_core.moves.core import KINDS, REGISTRY, Argument, Move, Parameter, Transformation
from dojo_core.moves.places import Place

_PLACE = re.compile(r"([A-Za-z_]\w{0,63})(?:#(\d{1,4}))?(?:@(\d{1,2}))?\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w{0,63}\Z", re.ASCII)
_DIGITS = re.compile(r"[0-9]+\Z")
_WORD = re.compile(r"[A-Za-z0-9_#@]{1,80}\Z", re.ASCII)
_KIND_WORDS = {
    "scope": "a scope such as t@0", "op": "an operation such as t or t#1",
    "reduction": "an operation and a scope above it, such as s#1@2",
    "node": "a scope or an operation, such as t@1 or t", "buffer": "a buffer's name", "name": "a new name",
    "location": "a location such as stack", "access": "an access such as x[{0}+1,{1}]",
    "number": "a whole number", "numbers": "whole numbers", "mode": "guard or free",
    "instruction": "an instruction such as vpdpbusd",
    "algorithm": "an algorithm such as winograd_2_3",
    "region": "root or a scope such as t@0", "word": "a place, a name or a number",
}  # fmt: skip


class MoveSyntax(ValueError):
    """A text that is no move; the message says what would be."""


def parse_move(text: str, others: Iterable[str] = ()) -> Move:
    """Read a move's text form. Raises MoveSyntax with a sentence, which names ``others`` beside the moves."""
    if len(text) > 500:
        raise MoveSyntax("A move is one short line.")
    words = text.split()
    if not words:
        raise MoveSyntax("An empty line is no move.")
    name = words[0]
    transformation = REGISTRY.get(name) or (None if name in others else called(name))
    if transformation is None:
        known = [*REGISTRY, *others]
        near = get_close_matches(name.lower(), known, 1)
        hint = f"Did you mean {near[0]}?" if near else f"The moves are: {', '.join(known)}."
        raise MoveSyntax(f"There is no move {name!r}. {hint}")
    return Move(transformation.name, read_arguments(transformation, words[1:]))


def called(name: str) -> Transformation[Any] | None:
    """The transformation that others call so (``Transformation.also``)."""
    return next((each for each in REGISTRY.values() if name in each.also), None)


class Described(Protocol):
    """What has a name and parameters: a transformation, or a recipe."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> tuple[Parameter, ...]: ...


def read_arguments(transformation: Described, words: Sequence[str]) -> tuple[Argument, ...]:
    """The words behind the name, by the parameters' kinds. Raises MoveSyntax."""
    arguments: list[Argument] = []
    rest = list(words)
    for parameter in transformation.parameters:
        if parameter.kind == "numbers":
            if not rest or not _DIGITS.match(rest[0]):
                raise MoveSyntax(usage(transformation, rest[0] if rest else "", parameter))
            while rest and _DIGITS.match(rest[0]):
                arguments.append(_number(rest.pop(0), parameter, transformation))
            continue
        if not rest:
            if parameter.optional:
                continue
            raise MoveSyntax(usage(transformation))
        word = rest.pop(0)
        if parameter.kind == "number":
            arguments.append(_number(word, parameter, transformation))
        elif KINDS[parameter.kind] is Place:
            arguments.append(_place(word, parameter.kind, parameter, transformation))
        elif parameter.kind == "region":
            arguments.append(word if word == "root" else _place(word, "scope", parameter, transformation))
        elif parameter.kind == "mode":
            if word not in ("guard", "free"):
                raise MoveSyntax(usage(transformation, word, parameter))
            arguments.append(word)
        elif parameter.kind == "word":
            if not _WORD.match(word):
                raise MoveSyntax(usage(transformation, word, parameter))
            arguments.append(word)
        elif parameter.kind == "access":
            arguments.append("".join([word, *rest]))
            rest = []
        else:
            if not _NAME.match(word):
                raise MoveSyntax(usage(transformation, word, parameter))
            arguments.append(word)
    if rest:
        raise MoveSyntax(f"{usage(transformation)} {rest[0]!r} is too much.")
    return tuple(arguments)


def form(described: Described) -> str:
    """How a move or recipe is written: ``split_scope SCOPE FACTOR``."""
    shown = [f"[{p.name.upper()}]" if p.optional else p.name.upper() for p in described.parameters]
    return " ".join([described.name, *shown])


def usage(described: Described, wrong: str = "", parameter: Parameter | None = None) -> str:
    """One sentence on how the move or recipe is written; before it, which word is no value of a parameter."""
    if wrong and parameter is not None:
        shown = wrong if len(wrong) <= 24 else f"{wrong[:21]}..."
        return f"{shown!r} is no {parameter.name.upper()}. {usage(described)}"
    words = "; ".join(f"{p.name.upper()} is {_KIND_WORDS[p.kind]}" for p in described.parameters)
    return f"It is written: {form(described)} ({words})."


def _number(word: str, parameter: Parameter, transformation: Described) -> int:
    if not _DIGITS.match(word) or len(word) > 12:
        raise MoveSyntax(usage(transformation, word, parameter))
    return int(word)


def _place(word: str, kind: str, parameter: Parameter, transformation: Described) -> Place:
    match = _PLACE.match(word)
    wrong = (
        match is None
        or (kind in ("scope", "reduction") and not match.group(3))
        or (kind == "op" and match.group(3))
    )
    if match is None or wrong:
        raise MoveSyntax(usage(transformation, word, parameter))
    array, number, depth = match.groups()
    return Place(array, int(number or 0), int(depth) if depth is not None else None)
