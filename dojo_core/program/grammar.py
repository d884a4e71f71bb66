"""The grammar of lines: what stands in one, as a tree, and where.

    names       NAME {"," NAME}
    buffer      NAME NAME "[" [dim {"," dim}] "]" NAME ["->" names]
    dim         NUMBER [":" NAME]
    operation   access ASSIGN expression ["if" comparison {"and" comparison}] {"!" mark}
    comparison  additive RELATION additive
    mark        "prefetch" "(" access ")" | "stream"
    expression  additive [RELATION additive]
    additive    term {SUM term}
    term        factor {PRODUCT factor}
    factor      "-" factor | access | call | NUMBER | ITERATOR | "(" expression ")"
    call        NAME "(" [expression {"," expression}] ")"
    access      NAME "[" [expression {"," expression}] "]"

The bars and sizes that open a body line are read by ``text``. A tree has a rule's name, or ``infix``,
``negative``, ``number``, ``iterator``, ``guard``, ``prefetch`` or ``stream``; words and signs that a rule
always has are left out of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

NESTED = 100  # expressions in one another

_PATTERNS = {
    "NAME": r"[A-Za-z_][A-Za-z0-9_]*",
    "NUMBER": r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf\b|nan\b",
    "ITERATOR": r"\{[0-9]{1,3}\}",
    "ASSIGN": r"(?:max|min|[-+*])?=(?!=)",
    "RELATION": r"[<>=!]=|[<>]",
    "SUM": r"[-+](?!=)",
    "PRODUCT": r"[*/](?!=)",
    "-": "-(?!=)",
    "!": "!(?!=)",
}
_WORDS = ("[", "]", "(", ")", ",", ":", "->", "if", "and", "prefetch", "stream")
_BLANKS = re.compile(r"[ \t]*")
_TOKENS = {
    name: re.compile(pattern)
    for name, pattern in (_PATTERNS | {word: re.escape(word) for word in _WORDS}).items()
}
END = "the end of the line"


class Token(str):
    """A word of a line; ``column`` counts from 1."""

    column: int

    def __new__(cls, text: str, column: int) -> Token:
        token = super().__new__(cls, text)
        token.column = column
        return token


@dataclass(frozen=True, slots=True)
class Tree:
    """``column``: where its first letter or sign stands, from 1."""

    data: str
    children: list[Tree | Token]
    column: int


class Unexpected(ValueError):
    """What the grammar has not: where, from 1, and the words and kinds of words that may stand there."""

    def __init__(self, column: int, expected: frozenset[str]) -> None:
        super().__init__(column, expected)
        self.column, self.expected = column, expected


class TooDeep(ValueError):
    """More than ``NESTED`` expressions in one another."""


def tree(rule: str, text: str) -> Tree:
    """All of ``text`` by ``names``, ``buffer``, ``operation`` or ``access``. Raises Unexpected, TooDeep."""
    line = _Line(text)
    made = _RULES[rule](line)
    if line.at < len(text):
        line.expected.add(END)
        raise Unexpected(line.column, frozenset(line.expected))
    return made


class _Line:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0  # where the next word stands
        self.expected = set[str]()  # what was looked for there
        self.nested = 0
        self.pass_to(0)

    def pass_to(self, at: int) -> None:
        blanks = _BLANKS.match(self.text, at)
        assert blanks is not None
        self.at = blanks.end()
        self.expected.clear()

    @property
    def column(self) -> int:
        return self.at + 1

    def may(self, kind: str) -> Token | None:
        """The next word, where it is of this kind."""
        found = _TOKENS[kind].match(self.text, self.at)
        if found is None:
            self.expected.add(kind)
            return None
        token = Token(found.group(), self.column)
        self.pass_to(found.end())
        return token

    def must(self, kind: str) -> Token:
        return self.may(kind) or self.fail()

    def fail(self) -> Token:
        raise Unexpected(self.column, frozenset(self.expected))

    # ------------------------------------------------------------------ rules

    def names(self) -> Tree:
        column, names = self.column, list[Tree | Token]([self.must("NAME")])
        while self.may(","):
            names.append(self.must("NAME"))
        return Tree("names", names, column)

    def buffer(self) -> Tree:
        column, parts = self.column, list[Tree | Token]([self.must("NAME"), self.must("NAME")])
        self.must("[")
        parts += self.separated(self.dim, "]")
        parts.append(self.must("NAME"))
        if self.may("->"):
            parts.append(self.names())
        return Tree("buffer", parts, column)

    def dim(self) -> Tree:
        column, size = self.column, self.must("NUMBER")
        return Tree("dim", [size, self.must("NAME")] if self.may(":") else [size], column)

    def operation(self) -> Tree:
        column = self.column
        parts: list[Tree | Token] = [self.access(), self.must("ASSIGN"), self.expression()]
        column_of_guard = self.column
        if self.may("if"):
            guard = list[Tree | Token]([self.comparison()])
            while self.may("and"):
                guard.append(self.comparison())
            parts.append(Tree("guard", guard, column_of_guard))
        while mark := self.may("!"):
            if self.may("stream"):
                parts.append(Tree("stream", [], mark.column))
                continue
            self.must("prefetch")
            self.must("(")
            parts.append(Tree("prefetch", [self.access()], mark.column))
            self.must(")")
        return Tree("operation", parts, column)

    def comparison(self) -> Tree:
        column = self.column
        return Tree("comparison", [self.additive(), self.must("RELATION"), self.additive()], column)

    def expression(self) -> Tree:
        column, left = self.column, self.additive()
        sign = self.may("RELATION")
        return left if sign is None else Tree("infix", [left, sign, self.additive()], column)

    def additive(self) -> Tree:
        column, total, sign = self.column, None, None
        while True:
            start, term = self.column, self.factor()
            while product := self.may("PRODUCT"):
                term = Tree("infix", [term, product, self.factor()], start)
            total = term if total is None or sign is None else Tree("infix", [total, sign, term], column)
            sign = self.may("SUM")
            if sign is None:
                return total

    def factor(self) -> Tree:
        self.nested += 1
        if self.nested > NESTED:
            raise TooDeep
        column = self.column
        if self.may("-"):
            made = Tree("negative", [self.factor()], column)
        elif self.may("("):
            made = self.expression()
            self.must(")")
        elif number := self.may("NUMBER"):
            made = Tree("number", [number], column)
        elif iterator := self.may("ITERATOR"):
            made = Tree("iterator", [iterator], column)
        else:
            name = self.must("NAME")
            if self.may("("):
                made = Tree("call", [name, *self.separated(self.expression, ")")], column)
            else:
                made = self.indexed(name)
        self.nested -= 1
        return made

    def access(self) -> Tree:
        return self.indexed(self.must("NAME"))

    def indexed(self, name: Token) -> Tree:
        self.must("[")
        return Tree("access", [name, *self.separated(self.expression, "]")], name.column)

    def separated(self, rule: Callable[[], Tree], close: str) -> list[Tree | Token]:
        """None, or several with commas between them, and the bracket that closes them."""
        if self.may(close):
            return []
        parts = list[Tree | Token]([rule()])
        while self.may(","):
            parts.append(rule())
        self.must(close)
        return parts


_RULES: dict[str, Callable[[_Line], Tree]] = {
    "names": _Line.names,
    "buffer": _Line.buffer,
    "operation": _Line.operation,
    "access": _Line.access,
}
