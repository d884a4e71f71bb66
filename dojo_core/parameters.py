"""Parameters of recorded lines: ``let NAME = VALUE``, a value for each width of vectors, told apart by ``|``.

A value is a number, or follows the kernel's sizes and earlier parameters::

    let lanes = 16 | 8 | 4
    let part = 8 4 2 dividing N
    let run = H * W
    let whole = run - run % 48

Numbers "dividing" a size give the first that divides it and is smaller, else the last. An expression has
whole numbers, names, ``+ - * / %`` and parentheses; ``/`` rounds down.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dojo_core.program.expressions import TextError
from dojo_core.program.target import VECTOR_BYTES

MOST = 10**12  # that a part of an expression may come to
LARGEST = 10**9 - 1  # that a parameter may be
LONGEST = 200  # characters of an expression

_LET = re.compile(r"let\s+([a-z][a-z0-9_]*)\s*=\s*(.+)\Z", re.ASCII)
_DIVIDING = re.compile(r"(\d{1,9}(?:\s+\d{1,9}){0,15})\s+dividing\s+([A-Za-z]\w*)", re.ASCII)
_EXPRESSION = re.compile(r"(\s*((0|[1-9]\d{0,12}|[A-Za-z]\w*)(?!\w)|[-+*/%()]))+\s*", re.ASCII)
_SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
          ast.Mod: operator.mod}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """An expression, or the first of ``choices`` that divides ``of`` and is smaller, else the last."""

    expression: str = ""
    choices: tuple[int, ...] = ()
    of: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes and parameters that it follows."""
        if self.of:
            return (self.of,)
        return tuple(dict.fromkeys(_names(ast.parse(self.expression, mode="eval").body)))

    def at(self, known: Mapping[str, int]) -> int:
        """Raises ValueError with a sentence where an expression has no value."""
        if not self.of:
            value = _value(ast.parse(self.expression, mode="eval").body, known)
            if not 0 <= value <= LARGEST:
                raise ValueError(f"{self.expression} is {value}")
            return value
        whole = known[self.of]
        return next((v for v in self.choices if 0 < v < whole and whole % v == 0), self.choices[-1])


@dataclass(frozen=True)
class Let:
    """A parameter. ``values``: for vectors of 64 bytes, of 32 and of less; the last serves the rest."""

    name: str
    values: tuple[Value, ...]

    def on(self, vector_bytes: int) -> Value:
        narrower = sum(vector_bytes < each for each in VECTOR_BYTES[:-1])
        return self.values[min(narrower, len(self.values) - 1)]


def read_let(line: str, known: Sequence[str], number: int, raw: str) -> Let:
    """A parameter as written; ``known``: the names that it may follow. Raises TextError."""

    def fault(message: str, remedy: str) -> TextError:
        return TextError(message, remedy, number, 1, raw)

    match = _LET.match(line)
    if match is None:
        raise fault("a parameter reads: let block = 32", "Correct the line.")
    texts = [text.strip() for text in match[2].split("|")]
    if len(texts) > len(VECTOR_BYTES):
        raise fault(
            "a parameter has at most three values by width of vectors", "Write: let lanes = 16 | 8 | 4"
        )
    values: list[Value] = []
    for text in texts:
        if re.fullmatch(r"\d+(\s+\d+)+", text, re.ASCII):
            raise fault("several values need what they divide", "Write: let block = 64 32 dividing N")
        dividing = _DIVIDING.fullmatch(text)
        value = Value(text)
        if dividing is not None:
            value = Value("", tuple(map(int, dividing[1].split())), dividing[2])
        elif not _is_expression(text):
            raise fault("a parameter reads: let block = 32", "Or an expression: let run = H * W - 2")
        for name in value.names:
            if name not in known:
                remedy = (
                    f"Known are: {', '.join(known)}." if known else "Name the kernel in a line before it."
                )
                raise fault(f"there is no size or earlier parameter {name}", remedy)
        values.append(value)
    return Let(match[1], tuple(values))


def _is_expression(text: str) -> bool:
    if len(text) > LONGEST or not _EXPRESSION.fullmatch(text):
        return False
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return _fits(tree)


def _fits(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return type(node.op) in _SIGNS and _fits(node.left) and _fits(node.right)
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value <= MOST
    return isinstance(node, ast.Name)


def _names(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from _names(node.left)
        yield from _names(node.right)
    elif isinstance(node, ast.Name):
        yield node.id


def _value(node: ast.expr, known: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, known), _value(node.right, known)
        if right == 0 and isinstance(node.op, ast.Div | ast.Mod):
            raise ValueError("it divides by zero")
        result: int = _SIGNS[type(node.op)](left, right)
        if abs(result) > MOST:
            raise ValueError("it is too large")
        return result
    if isinstance(node, ast.Name):
        return known[node.id]
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)  # as _fits has seen to
    return node.value
