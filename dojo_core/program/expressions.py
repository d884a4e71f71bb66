"""Reading a line of the text form: what lark makes of it, expressions, accesses and their bounds.

The grammar is ``grammar.lark``; errors say where, what is wrong, and what to do about it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from dojo_core.program.affine import Affine
from dojo_core.program.functions import FUNCTIONS, LARGEST
from dojo_core.program.line_parser import line_parser
from dojo_core.program.tables import Index, IndexArray, Indirect, Lookup, Table, plus
from dojo_core.program.tree import DTYPE_BYTES, Access, Comparison, Dim, Leaf, Number, Operand, Program
from dojo_core.spelling import meant

DIGITS = 40  # of a whole number: a longer one is written as 1e50
LINE = 16384  # characters
DEEP = 200  # expressions in one another
RESERVED = frozenset(("kernel", "in", "out", "inf", "nan"))  # where an array's name may stand, they mean this


class TextError(ValueError):
    """A text that is not a program: where, what is wrong, and what to do about it.

    ``line`` and ``column`` count from 1. ``str()`` shows the line with a mark under the place.
    """

    def __init__(self, message: str, remedy: str, line: int = 1, column: int = 1, source: str = ""):
        super().__init__(message)
        self.message, self.remedy = message, remedy
        self.line, self.column, self.source = line, column, source

    def __str__(self) -> str:
        shown, mark = _excerpt(self.source, self.column)
        return f"line {self.line}, column {self.column}: {self.message}\n  {shown}\n  {mark}^\n{self.remedy}"


def _excerpt(source: str, column: int, width: int = 100) -> tuple[str, str]:
    """The part of a line around a column, control characters made visible, and the mark's indent."""
    begin = max(0, column - 1 - width // 2)
    shown = "".join(c if c.isprintable() else "·" for c in source[begin : begin + width])
    return shown, " " * (column - 1 - begin)


@dataclass(frozen=True)
class Call:
    function: str
    operands: tuple[Operand, ...]


Value = Operand | Indirect | Call  # of an expression while it is read; Indirect stays in an index


SHORT = 400  # characters of a line whose tree is remembered


@lru_cache(maxsize=2_000)
def _remembered(start: str, text: str) -> Tree[Token]:
    """Most lines stay as they are from one text to the next; a tree is only read, never changed."""
    return line_parser().parse(text, start=start)


class LineReader:
    """Reads lines under scopes of ``sizes``, with arrays of ``dims`` and tables. Raises TextError."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.number = 0  # of the current line, from 1
        self.offset = 0  # columns of the current line before what lark sees
        self.sizes: list[int] = []  # of the scopes around, outermost first
        self.dims: dict[str, tuple[Dim, ...]] = {}
        self.tables: dict[str, Table] = {}
        self.indexing = False  # is an index being read, in which an array is looked up?

    def fail(self, message: str, remedy: str, column: int = 1) -> NoReturn:
        source = self.lines[self.number - 1] if 0 < self.number <= len(self.lines) else ""
        raise TextError(message, remedy, max(self.number, 1), column, source)

    def fail_at(self, where: Tree[Token] | Token, message: str, remedy: str) -> NoReturn:
        start = where.column if isinstance(where, Token) else getattr(where.meta, "column", 1)
        self.fail(message, remedy, self.offset + (start or 1))

    def read(self, start: str, line: str, offset: int) -> Tree[Token]:
        self.offset = offset
        if len(line) > LINE:
            self.fail(f"a line of {len(line)} characters", f"A line has {LINE} at most.")
        try:
            text = line[offset:]
            tree = _remembered(start, text) if len(text) < SHORT else line_parser().parse(text, start=start)
            # Reading a tree recurses; a short line cannot be too deep for that.
            if len(line) > DEEP and _is_deep(tree):
                self.fail("an expression of too many parts", ONE_FUNCTION)
            return tree
        except UnexpectedInput as error:
            column = getattr(error, "column", -1)
            column = column if isinstance(column, int) and column > 0 else len(line) - offset + 1
            token = getattr(error, "token", None)
            if token is not None and token.type == "$END":
                column = len(line) - offset + 1
            self.fail(f"expected {_expected(error)}", _SHAPE_OF[start], offset + column)

    def negated(self, value: Value, where: Any) -> Value:
        if isinstance(value, Number):
            return Number(-value.value)
        if isinstance(value, Affine | Indirect):
            return -value
        if isinstance(value, Access):
            return Call("neg", (value,))
        return self.fail_at(where, "more than one function in an operation", ONE_FUNCTION)

    def expression(self, tree: Any, within_bounds: bool = True) -> Value:
        if not isinstance(tree, Tree):
            raise AssertionError(tree)
        if tree.data == "number":
            text = str(tree.children[0])
            if not (text.isascii() and text.isdigit()):
                return Number(_float(text))
            if len(text) > DIGITS:
                self.fail_at(
                    tree,
                    f"a number of {len(text)} digits",
                    f"Write it as 1e50, or with {DIGITS} digits at most.",
                )
            return Number(int(text))
        if tree.data == "iterator":
            return Affine.iterator(self.depth(tree))
        if tree.data == "access":
            if self.indexing or str(tree.children[0]) in self.tables:
                return self.lookup(tree, within_bounds)
            return self.access(tree, within_bounds)
        if tree.data == "negative":
            return self.negated(self.expression(tree.children[0], within_bounds), tree)
        if tree.data == "call":
            return self.call(tree, within_bounds)
        left = self.expression(tree.children[0], within_bounds)
        sign = str(tree.children[1])
        right = self.expression(tree.children[2], within_bounds)
        folded = _fold(left, sign, right)
        if folded is not None:
            if _too_large(folded):
                self.fail_at(tree, "a number beyond 64 bits beside an iterator", "Use smaller numbers.")
            return folded
        if sign == "*" and isinstance(left, Affine) and isinstance(right, Affine):
            remedy = "Keep one of them in an array: t[{0}] = {0}"
            self.fail_at(tree, f"{left} times {right} is no iterator expression", remedy)
        return Call(sign, (self.operand(left, tree), self.operand(right, tree)))

    def operand(self, value: Value, where: Any) -> Operand:
        if isinstance(value, Call):
            self.fail_at(where, "more than one function in an operation", ONE_FUNCTION)
        if isinstance(value, Indirect):
            if value.through:
                self.fail_at(
                    where,
                    f"{value} is an index, and more is done with it",
                    "Add iterators and numbers to it, or multiply it by a number; the rest is a line before.",
                )
            self.fail_at(where, f"{value} is a table's value", "A table stands only in the index of a read.")
        return value

    def call(self, tree: Tree[Token], within_bounds: bool) -> Call:
        name, *rest = [c for c in tree.children if c is not None]
        assert isinstance(name, Token)
        function = FUNCTIONS.get(str(name))
        if function is None or function.infix:
            known = [f.name for f in FUNCTIONS.values() if not f.infix]
            near = "" if str(name) in DTYPE_BYTES else meant(name, known)  # that one is no conversion either
            remedy = near or f"The functions are {', '.join(known)}."
            self.fail_at(name, f"unknown function {name}", remedy)
        if len(rest) != function.arity:
            self.fail_at(
                name, f"{name} takes {function.arity} operands, not {len(rest)}", "Add or drop operands."
            )
        operands: list[Operand] = []
        for child in rest:
            value = self.expression(child, within_bounds)
            operands.append(self.operand(value, tree))
        return Call(str(name), tuple(operands))

    def access(self, tree: Any, within_bounds: bool = True) -> Access:
        name, *rest = [c for c in tree.children if c is not None]
        dims = self.dims.get(str(name))
        if dims is None:
            remedy = f"Add a line such as: {name} f32 [8] heap"
            self.fail_at(
                name, f"no buffer holds an array {name}", f"{meant(name, self.dims)} {remedy}".lstrip()
            )
        if len(rest) != len(dims):
            self.fail_at(
                name, f"{name} has {len(dims)} dimensions, not {len(rest)}", "Give one index per dimension."
            )
        index = tuple(self.index(child, within_bounds) for child in rest)
        if within_bounds:
            self.check_bounds(str(name), index, [d.size for d in dims], rest)
        elif _far(index, dims, self.sizes):
            self.fail_at(
                name, f"this place of {name} lies beyond 64 bits of addresses", "Use smaller numbers."
            )
        return Access(str(name), index)

    def check_bounds(self, name: str, index: Sequence[Index], dims: Sequence[int], where: list[Any]) -> None:
        for k, (form, size) in enumerate(zip(index, dims, strict=True)):
            if isinstance(form, Indirect) and form.through:
                continue  # ``indices.index_fault`` looks at it
            low, high = form.bounds(self.sizes)
            if low < 0 or high >= size:
                self.fail_at(
                    where[k],
                    f"index {k} of {name} runs from {low} to {high}, outside 0 to {size - 1}",
                    "Change the index, the scopes' sizes, or the buffer's dimension.",
                )

    def lookup(self, tree: Any, within_bounds: bool) -> Index:
        """``idx[...]`` in an index, of a table or an array; folded where a table's place is constant."""
        name, *rest = [c for c in tree.children if c is not None]
        table = self.tables.get(str(name))
        if table is None and str(name) not in self.dims:
            self.fail_at(name, f"no buffer holds an array {name}", f"Add a line such as: {name} i32 [8] heap")
        dims = table.dims if table is not None else [d.size for d in self.dims[str(name)]]
        if len(rest) != len(dims):
            self.fail_at(
                name, f"{name} has {len(dims)} dimensions, not {len(rest)}", "Give one index per dimension."
            )
        at = tuple(self.affine(child) for child in rest)
        if within_bounds or (table is not None and all(form.is_constant for form in at)):
            self.check_bounds(str(name), at, dims, rest)
        # What an array holds is known once all of the text is read (``indices.with_bounds``).
        source = IndexArray(str(name), 0, 0) if table is None else table
        return Indirect.make([(Lookup(source, at), 1)], Affine())

    def comparison(self, tree: Tree[Token]) -> Comparison:
        left, sign, right = tree.children
        form = self.affine(left) - self.affine(right)
        bound = -form.const
        form = Affine(form.terms)
        relation = str(sign)
        if relation == "!=":
            self.fail_at(tree, "a guard compares with < <= > >= or ==", "Write the guard with one of these.")
        if relation in ("<=", ">"):
            bound += 1
        return Comparison(form, {"<=": "<", ">": ">="}.get(relation, relation), bound)

    def affine(self, tree: Any) -> Affine:
        value = self.index(tree)
        if isinstance(value, Indirect):
            what = f"what {value} holds" if value.through else "a table's value"
            self.fail_at(
                tree,
                f"{what} where only iterators may stand",
                "A table or an array stands in an index, such as x[idx[{0}]], in no guard and no index of "
                "another: that goes by an array, k[{0}] = i[j[{0}]] in a line before, and then x[k[{0}]].",
            )
        return value

    def index(self, tree: Any, within_bounds: bool = True) -> Index:
        indexing, self.indexing = self.indexing, True
        value = self.expression(tree, within_bounds)
        self.indexing = indexing
        if isinstance(value, Number) and isinstance(value.value, int):
            return Affine((), value.value)
        if not isinstance(value, Affine | Indirect):
            self.fail_at(
                tree,
                "not affine in the iterators",
                "An index is a sum of iterators times whole numbers, such as {0}*16+{1}+3.",
            )
        return value

    def depth(self, tree: Tree[Token]) -> int:
        depth = int(str(tree.children[0])[1:-1])
        if depth >= len(self.sizes):
            inside = f"{{0}} to {{{len(self.sizes) - 1}}}" if self.sizes else "none"
            self.fail_at(tree, f"no scope at depth {depth} here", f"The iterators of this line: {inside}.")
        return depth


ONE_FUNCTION = "Write one instruction per line, with a temporary between them."
_SHAPE_OF = {
    "names": "Write names with commas between them, such as: in x, w",
    "buffer": "A buffer line reads: name dtype [dims] location -> arrays, such as: m f32 [8, 16:N] heap",
    "access": "An access reads: array[indices], such as x[{0}+1,{1}]",
    "operation": "A line reads: sizes or bars, then target = operation, "
    "such as: 8 16 y[{0},{1}] = exp(x[{0},{1}])",
}
_TOKEN_WORDS = {
    "NAME": "a name", "NUMBER": "a number", "ITERATOR": "an iterator such as {0}",
    "ASSIGN": "= or += *= max= min=",
    "SUM": "+ or -", "PRODUCT": "* or /", "RELATION": "a comparison", "LSQB": "[", "RSQB": "]", "LPAR": "(",
    "RPAR": ")", "COMMA": "a comma", "IF": "if", "AND": "and", "BANG": "!", "COLON": ":",
    "$END": "the end of the line",
    "PREFETCH": "prefetch", "STREAM": "stream", "STREAM_LOAD": "stream_load", "MINUS": "-",
}  # fmt: skip


def _expected(error: UnexpectedInput) -> str:
    accepted = (
        getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None)
    )
    words = sorted({_TOKEN_WORDS.get(t, str(t)) for t in accepted or ()})
    return " or ".join(words) if words else "something else"


def _is_deep(tree: Tree[Token]) -> bool:
    level: list[Any] = [tree]
    for _ in range(DEEP):
        level = [child for node in level if isinstance(node, Tree) for child in node.children]
        if not level:
            return False
    return True


def _too_large(form: Index) -> bool:
    numbers = [c for _, c in form.lookups] if isinstance(form, Indirect) else []
    rest = form.rest if isinstance(form, Indirect) else form
    return max(map(abs, [rest.const, *numbers, *(c for _, c in rest.terms)])) >= LARGEST


def _far(index: Sequence[Index], dims: Sequence[Dim], sizes: Sequence[int]) -> bool:
    """May the address of a place, if all of its buffer is stored, be beyond 64 bits?"""
    reach = 0
    for form, dim in zip(index, dims, strict=True):
        reach = reach * dim.size + (form.rest if isinstance(form, Indirect) else form).reach(sizes)
    return 8 * reach >= LARGEST


def _float(text: str) -> int | float:
    value = float(text)
    if math.isnan(value):
        return math.nan  # one object: a NaN equals nothing but itself
    whole = value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def _fold(left: Value, sign: str, right: Value) -> Index | None:
    """An iterator expression stays one operand: ``{0}*2+1``."""

    def form(value: Value) -> Index | None:
        if isinstance(value, Affine | Indirect):
            return value
        if isinstance(value, Number) and isinstance(value.value, int):
            return Affine((), value.value)
        return None

    a, b = form(left), form(right)
    if a is None or b is None or (isinstance(left, Number) and isinstance(right, Number)):
        return None
    if sign == "+":
        return plus(a, b)
    if sign == "-":
        return plus(a, -b)
    if sign == "*" and isinstance(a, Affine) and a.is_constant:
        return b * a.const
    if sign == "*" and isinstance(b, Affine) and b.is_constant:
        return a * b.const
    return None


def parse_access(program: Program, leaf: Leaf, text: str) -> Access:
    """Read an access as it could stand in a prefetch of that operation (out of bounds is allowed)."""
    array = text.split("[", 1)[0].strip()
    home = program.buffer_of.get(array)
    return _access(text, array, home.dims if home else None, tuple(s.size for s in leaf.scopes))


@lru_cache(maxsize=1_000)
def _access(text: str, array: str, dims: tuple[Dim, ...] | None, sizes: tuple[int, ...]) -> Access:
    reader = LineReader((text or " ").splitlines())
    reader.number = 1
    reader.dims = {} if dims is None else {array: dims}
    reader.sizes = [*sizes]
    return reader.access(reader.read("access", reader.lines[0], 0), within_bounds=False)


def reads_back(access: Access, text: str) -> bool:
    """Does ``parse_access`` surely make this access of its text?"""
    return len(text) <= DEEP and not access.indirect and not any(map(_too_large, access.index))
