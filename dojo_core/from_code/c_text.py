"""C as a syntax tree: pycparser reads it, after comments and directives are blanked out in their places.

Nothing is compiled or run. Macros are not expanded: a number that is defined is a size, or a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from pycparser import c_ast
from pycparser.c_parser import CParser, ParseError

from dojo_core.from_code.source import Source
from dojo_core.program.expressions import TextError

DEEP = 100  # nodes within one another

# Of each type's words, in order of the alphabet, the dtype.
TYPES = {
    "float": "f32", "double": "f64", "_Float16": "f16", "int": "i32", "int signed": "i32", "signed": "i32",
    "long": "i64", "int long": "i64", "long long": "i64", "int long long": "i64", "short": "i16",
    "int short": "i16", "char": "i8", "char signed": "i8", "char unsigned": "u8", "short unsigned": "u16",
    "unsigned": "u32", "int unsigned": "u32", "long unsigned": "u64", "_Bool": "bool", "bool": "bool",
    "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64", "uint8_t": "u8",
    "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64", "size_t": "u64", "ssize_t": "i64",
    "ptrdiff_t": "i64", "intptr_t": "i64", "float32_t": "f32", "float64_t": "f64", "uint": "u32",
}  # fmt: skip
_TYPEDEFS = "".join(
    f"typedef int {name};" for name in TYPES if name.endswith("_t") or name in ("bool", "uint")
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)(.*)$")
_DEFINE = re.compile(r"\s+([A-Za-z_]\w*)\s+\(?\s*([-+]?[\d.][\w.+-]*)\s*\)?\s*")
_MACRO = re.compile(r"\s+(?:MAX|MIN|max|min)\s*\(")
_BLANKED = re.compile(
    r"\bextern\s*\"C\"(?!\s*\{)|__attribute__\s*\(\([^()]*\)\)|\b__(?:restrict__|restrict|inline__|inline|extension__)\b"
)


@dataclass(frozen=True)
class Text:
    """A C text: its functions in order, arrays that stand outside of them, numbers that are defined.

    ``bare``: statements alone, put into a function that has no parameters.
    """

    source: Source
    functions: dict[str, Any]
    globals: tuple[Any, ...]
    defined: dict[str, int | float]
    bare: bool


def fail(source: Source, node: Any, message: str, remedy: str) -> NoReturn:
    """Raise a TextError at a node."""
    coordinate = getattr(node, "coord", None)
    line, column = (coordinate.line, coordinate.column) if coordinate is not None else (1, 1)
    source.fail(line or 1, column or 1, message, remedy)


def read_text(source: Source) -> Text:
    """The syntax tree. Raises TextError at the place where it is no C."""
    text = _COMMENT.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0][0] == "/" else match[0], source.text
    )
    defined: dict[str, int | float] = {}
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        directive = _DIRECTIVE.match(row)
        if directive is not None:
            _directive(source, number, directive[1], directive[2], defined)
            rows[number - 1] = ""
    text = _BLANKED.sub(lambda match: " " * len(match[0]), "\n".join(rows))
    text = re.sub(r"\bconstexpr\b", "const    ", text)  # of C23 and C++
    tree = _tree(source, text)
    bare = isinstance(tree, TextError)
    if isinstance(tree, TextError):
        alone = _tree(source, f"void own(void) {{\n#line 1\n{text}\n}}")
        if isinstance(alone, TextError):  # whichever came further was meant
            raise max(alone, tree, key=lambda fault: (fault.line, fault.column))
        tree = alone
    if deep(tree):
        source.fail(1, 1, f"more than {DEEP} expressions within one another", "Name parts of them.")
    functions: dict[str, Any] = {}
    arrays: list[Any] = []
    _rename_types(tree)
    for node in tree.ext:
        if _constants(node, defined):
            continue
        if isinstance(node, c_ast.FuncDef):
            functions[node.decl.name] = node
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.ArrayDecl | c_ast.TypeDecl):
            arrays.append(node)
        elif not isinstance(node, c_ast.Typedef | c_ast.Pragma) and not (
            isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl)
        ):
            fail(source, node, f"{word(node)} outside of a function", "Write one function over arrays.")
    return Text(source, functions, tuple(arrays), defined, bare)


def _rename_types(tree: Any) -> None:
    """The types that a text names itself, ``typedef float real``, as what they are."""
    named = {
        node.name: node.type.type.names
        for node in tree.ext
        if isinstance(node, c_ast.Typedef)
        and node.name not in TYPES
        and isinstance(node.type, c_ast.TypeDecl)
        and isinstance(node.type.type, c_ast.IdentifierType)
    }
    for node in nodes(tree):
        if isinstance(node, c_ast.IdentifierType) and len(node.names) == 1:
            node.names = named.get(node.names[0], node.names)


def _constants(node: Any, defined: dict[str, int | float]) -> bool:
    """Is it ``const int N = 64;`` or ``enum { N = 64 };``? What these define is put with the rest."""
    if not isinstance(node, c_ast.Decl):
        return False
    pairs: list[tuple[str, Any]] = []
    if isinstance(node.type, c_ast.TypeDecl) and "const" in node.quals:
        pairs = [(node.name, node.init)]
    elif isinstance(node.type, c_ast.Enum) and node.type.values is not None:
        pairs = [(each.name, each.value) for each in node.type.values.enumerators]
    if not pairs or not all(isinstance(value, c_ast.Constant) for _, value in pairs):
        return False
    try:
        defined.update({name: number_of(value.value) for name, value in pairs})
    except ValueError:
        return False
    return True


def _directive(source: Source, number: int, name: str, rest: str, defined: dict[str, int | float]) -> None:
    if name in ("include", "pragma", "undef", "ifndef", "endif", "ifdef", ""):
        return
    match = _DEFINE.fullmatch(rest) if name == "define" else None
    if match is not None:
        try:
            defined[match[1]] = number_of(match[2])
            return
        except ValueError:
            pass
    if name == "define" and (_MACRO.match(rest) or len(rest.split()) < 2):
        return
    source.fail(
        number,
        1,
        f"#{name}, which is not expanded",
        "Write numbers as #define N 1024, and the rest as C itself.",
    )


def number_of(literal: str) -> int | float:
    """A C number. Raises ValueError for another literal."""
    plain = literal.rstrip("uUlL") if re.fullmatch(r"[-+]?\w+", literal) and "." not in literal else literal
    if re.fullmatch(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,18})", plain):
        return int(plain, 16 if "x" in plain.lower() else 10)
    value = float(literal.rstrip("fFlL"))
    if value != value:
        raise ValueError(literal)
    return value


def _tree(source: Source, text: str) -> Any:
    """The syntax tree, or the fault at the place where there is none."""
    try:
        try:
            return CParser().parse(f"{_TYPEDEFS}\n#line 1\n{text}")
        except ParseError as error:
            match = re.match(r".*?:(\d+):(\d+): (.*)", str(error))
            line, column, message = (int(match[1]), int(match[2]), match[3]) if match else (1, 1, str(error))
            told = re.sub(r"^before: (.*)", r"something is wrong before \1", message.strip(": "))
            line = min(line, len(source.lines)) or 1
            told = told[:1].lower() + told[1:] or "this is no C"
            source.fail(line, column, told, "C's parser stops here: mend this place.")
        except RecursionError:
            source.fail(1, 1, "expressions too deep within one another", "Name parts of them.")
        except AssertionError:
            source.fail(1, 1, "a text that C's parser does not take", "Write one plain function over arrays.")
    except TextError as fault:
        return fault


def deep(tree: Any) -> bool:
    """Is it deeper than what is walked through by recursion?"""
    level = [tree]
    for _ in range(DEEP):
        level = [child for node in level for _, child in node.children()]
        if not level:
            return False
    return True


def nodes(tree: Any) -> Iterator[Any]:
    """All nodes of a tree, in their order."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for _, child in node.children()][::-1]


def type_of(source: Source, declaration: Any) -> str:
    """The dtype of what is declared. Raises TextError for a type of another kind."""
    inner = declaration.type
    while isinstance(inner, c_ast.PtrDecl | c_ast.ArrayDecl | c_ast.TypeDecl):
        inner = inner.type
    if isinstance(inner, c_ast.IdentifierType):
        words = " ".join(sorted(inner.names))
        if words in TYPES:
            return TYPES[words]
    fail(source, declaration, "a type that is not translated", "Take float, double or int, of one size each.")


_WORDS = {
    "While": "a while loop", "DoWhile": "a do loop", "Goto": "goto", "Switch": "switch", "Break": "break",
    "Continue": "continue", "StructRef": "a struct", "Struct": "a struct", "Union": "a union",
    "Enum": "an enum",
    "Label": "a label", "InitList": "a list of values", "CompoundLiteral": "a list of values",
    "FuncCall": "a call", "Return": "a return", "Typename": "a type",
    "ExprList": "several expressions in one",
    "Assignment": "an assignment in an expression", "UnaryOp": "this sign", "Decl": "a declaration",
}  # fmt: skip


def word(node: Any) -> str:
    """What a node is, to a person."""
    return _WORDS.get(type(node).__name__, type(node).__name__)
