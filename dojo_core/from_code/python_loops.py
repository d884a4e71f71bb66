"""Loops over elements in Python as the loops in C that they are: ``for i in range(n): y[i] = a*x[i]``.

The tree that is made is C's, so that one walk makes programs of both and one judges both. Lengths of arrays
are sizes; names that are given numbers are declared where they first stand.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple, NoReturn

from pycparser import c_ast

from dojo_core.from_code.c_text import Text, nodes
from dojo_core.from_code.plain import fail
from dojo_core.from_code.python import shapes_said
from dojo_core.from_code.source import Source

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "&&", ast.Or: "||", ast.USub: "-", ast.UAdd: "+", ast.Not: "!",
}  # fmt: skip
_CALLED = {"abs": "fabs", "max": "fmax", "min": "fmin", "maximum": "fmax", "minimum": "fmin", "round": "rint"}
_REALS = {"f32": "float", "f64": "double", "i32": "int", "i64": "long"}


class _Place(NamedTuple):
    line: int
    column: int


def has_loops(tree: ast.Module) -> bool:
    """Does it assign elements of arrays, or add up, in loops over ranges?"""
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For) and _is_call(n.iter, "range")]
    assigned = [n for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Assign | ast.AugAssign)]
    read = [n for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Subscript)]
    return bool(assigned) and any(_indices(n) for n in read)


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _indices(node: ast.Subscript) -> bool:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(n, ast.Name) for part in parts for n in ast.walk(part)) and not any(
        isinstance(part, ast.Slice) for part in parts
    )


def as_c(source: Source, tree: ast.Module) -> Text:
    """The last function of a text, or its lines, as a function in C. Raises TextError."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    translated = _Loops(source, functions[-1] if functions else None)
    return translated.text(functions[-1].body if functions else tree.body)


_NOWHERE = _Place(1, 1)
_PLAIN = "Write loops over ranges, signs, calls and elements."


class _Loops:
    def __init__(self, source: Source, function: ast.FunctionDef | None) -> None:
        self.source, self.function = source, function
        self.arrays: dict[str, int] = {}  # how many subscripts
        self.sizes: list[str] = []  # names of whole numbers
        self.locals: set[str] = set()
        self.loops: list[str] = []
        self.said = shapes_said(source)

    def text(self, body: list[ast.stmt]) -> Text:
        elements = [n for each in body for n in ast.walk(each) if isinstance(n, ast.Subscript)]
        inner = {id(n.value) for n in elements}  # the x[i] of x[i][j]
        measured = [n for each in body for n in ast.walk(each) if self.length(n)]
        inner |= {id(part) for each in measured for part in ast.walk(each)}  # the x[0] of len(x[0])
        for node in (n for n in elements if id(n) not in inner):
            name, subscripts = self.subscripts(node)
            if name and self.arrays.setdefault(name, len(subscripts)) != len(subscripts):
                self.fail(node, f"{name} with another number of subscripts", "Give one for each axis.")
        statements = [made for node in body for made in self.statement(node)]
        name = self.function.name if self.function is not None else "own"
        parameters = [each.arg for each in self.function.args.args] if self.function is not None else []
        known = list(dict.fromkeys([*parameters, *self.arrays, *self.free(statements)]))
        given = [self.parameter(each, statements) for each in known if each not in self.locals]
        given += [self.declared(size, "int") for size in dict.fromkeys(self.sizes) if size not in known]
        declaration = c_ast.Decl(
            name, [], [], [], [], c_ast.FuncDecl(c_ast.ParamList(given), None), None, None, _NOWHERE
        )
        function = c_ast.FuncDef(declaration, None, c_ast.Compound(statements), _Place(1, 1))
        return Text(self.source, {name: function}, (), {}, bare=False)

    def free(self, statements: list[Any]) -> list[str]:
        """Numbers that lines read and nothing gives a value."""
        parts = [part for each in statements for part in nodes(each)]
        called = {id(part.name) for part in parts if isinstance(part, c_ast.FuncCall)}
        known = {part.name for part in parts if isinstance(part, c_ast.Decl)} | {*self.sizes, "INFINITY"}
        read = [part.name for part in parts if isinstance(part, c_ast.ID) and id(part) not in called]
        return [name for name in read if name not in known] if self.function is None else []

    def fail(self, node: ast.AST, message: str, remedy: str) -> NoReturn:
        fail(self.source, node, message, remedy)

    def parameter(self, name: str, statements: list[Any]) -> Any:
        said = self.said.get(name)
        kind = _REALS.get(said.dtype, "float") if said is not None else "float"
        if name not in self.arrays:
            return self.declared(name, "int" if name in self.sizes else kind)
        inner = self.of_type(name, kind)
        for axis in reversed(said.axes if said is not None else [""] * self.arrays[name]):
            dim = c_ast.Constant("int", axis) if axis.isdigit() else None
            inner = c_ast.ArrayDecl(inner, dim, [])
        return c_ast.Decl(name, [], [], [], [], inner, None, None, _Place(1, 1))

    def of_type(self, name: str, kind: str) -> Any:
        return c_ast.TypeDecl(name, [], None, c_ast.IdentifierType([kind]))

    def declared(self, name: str, kind: str, value: Any = None, place: _Place = _NOWHERE) -> Any:
        return c_ast.Decl(name, [], [], [], [], self.of_type(name, kind), value, None, place)

    def place(self, node: ast.AST) -> _Place:
        return _Place(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)

    # -------------------------------------------------------------- statements

    def statement(self, node: ast.stmt) -> list[Any]:
        place = self.place(node)
        match node:
            case ast.For(ast.Name(name), over, body, []) if _is_call(over, "range"):
                return [self.loop(node, name, over, body)]  # type: ignore[arg-type]
            case ast.If(test, body, otherwise):
                other = self.block(otherwise) if otherwise else None
                return [c_ast.If(self.value(test), self.block(body), other, place)]
            case ast.AugAssign(target, sign, value) if type(sign) in _SIGNS:
                return [
                    c_ast.Assignment(f"{_SIGNS[type(sign)]}=", self.value(target), self.value(value), place)
                ]
            case ast.Assign([target], value):
                return self.assignment(node, target, value)
            case ast.Return(ast.Name(name)) if name in self.arrays:
                return []
            case ast.Return(value) if value is not None:
                return [c_ast.Return(self.value(value), place)]
            case ast.Expr(ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
                return []
        self.fail(node, "a statement that is not translated in loops", _PLAIN)

    def block(self, body: list[ast.stmt]) -> Any:
        return c_ast.Compound([made for node in body for made in self.statement(node)])

    def loop(self, node: ast.stmt, name: str, over: ast.Call, body: list[ast.stmt]) -> Any:
        place = self.place(node)
        if not 1 <= len(over.args) <= 3:
            self.fail(
                over, "a range of no or of more than three numbers", "Write range(n) or range(1, n, 2)."
            )
        for each in over.args:
            self.count(each)
        limits = [self.value(each) for each in over.args]
        start = limits[0] if len(limits) > 1 else c_ast.Constant("int", "0")
        step = limits[2] if len(limits) == 3 else c_ast.Constant("int", "1")
        down = isinstance(step, c_ast.UnaryOp)
        by = step.expr if down else step
        variable = c_ast.ID(name, place)
        self.loops.append(name)
        inner = self.block(body)
        self.loops.pop()
        return c_ast.For(
            c_ast.DeclList([self.declared(name, "int", start, place)]),
            c_ast.BinaryOp(">" if down else "<", variable, limits[min(1, len(limits) - 1)], place),
            c_ast.Assignment("-=" if down else "+=", variable, by, place),
            inner,
            place,
        )

    def count(self, node: ast.AST) -> None:
        """What a loop goes to is a size: a name that is no loop's variable."""
        measured = {id(n) for m in ast.walk(node) if self.length(m) for n in ast.walk(m)}
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and id(each) not in measured:
                inner = each.id in self.loops or each.id in self.locals or each.id == "len"
                self.sizes += [] if inner else [each.id]

    def assignment(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> list[Any]:
        place = self.place(node)
        match target, value:
            case ast.Tuple(parts), ast.Attribute(ast.Name(), "shape"):  # m, n = x.shape
                self.sizes += [part.id for part in parts if isinstance(part, ast.Name)]
                return []
            case ast.Name(name), _ if self.length(value) or name in self.sizes:
                self.sizes.append(name)
                return []
            case ast.Name(name), ast.Call(
                ast.Attribute(_, "zeros" | "empty" | "zeros_like" | "empty_like" as made)
            ):
                if name in self.arrays:
                    return self.zeros(name, value, place) if made == "zeros" else []
            case ast.Name(name), _ if name not in self.arrays:
                if name in self.locals:
                    return [c_ast.Assignment("=", c_ast.ID(name, place), self.value(value), place)]
                self.locals.add(name)
                return [self.declared(name, "float", self.value(value), place)]
        return [c_ast.Assignment("=", self.value(target), self.value(value), place)]

    def zeros(self, name: str, call: Any, place: _Place) -> list[Any]:
        shape = call.args[0] if call.args else call
        parts = shape.elts if isinstance(shape, ast.Tuple) else [shape]
        if len(parts) != self.arrays[name]:
            self.fail(call, f"{name} with another number of subscripts", "Give one for each axis.")
        names = [f"{name}_{k}" for k in range(len(parts))]
        element: Any = c_ast.ID(name, place)
        for each in names:
            element = c_ast.ArrayRef(element, c_ast.ID(each, place), place)
        inner: Any = c_ast.Assignment("=", element, c_ast.Constant("float", "0.0f"), place)
        for each, part in reversed(list(zip(names, parts, strict=True))):
            self.count(part)
            inner = c_ast.For(
                c_ast.DeclList([self.declared(each, "int", c_ast.Constant("int", "0"), place)]),
                c_ast.BinaryOp("<", c_ast.ID(each, place), self.value(part), place),
                c_ast.UnaryOp("p++", c_ast.ID(each, place), place),
                inner,
                place,
            )
        return [inner]

    # -------------------------------------------------------------- expressions

    def length(self, node: ast.AST) -> str:
        """The size that ``len(x)`` and ``x.shape[0]`` are, else nothing."""
        match node:
            case ast.Call(ast.Name("len"), [ast.Name(array)]):
                return f"{array}_size0"
            case ast.Call(ast.Name("len"), [ast.Subscript(ast.Name(array), ast.Constant(0))]):
                return f"{array}_size1"
            case ast.Subscript(ast.Attribute(ast.Name(array), "shape"), ast.Constant(int() as axis)):
                return f"{array}_size{axis}"
        return ""

    def subscripts(self, node: ast.AST) -> tuple[str, list[ast.expr]]:
        """``x[i, j]`` and ``x[i][j]`` as a name and its subscripts; no name of anything else."""
        found: list[ast.expr] = []
        while isinstance(node, ast.Subscript):
            found[:0] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            node = node.value
        return (node.id, found) if isinstance(node, ast.Name) else ("", found)

    def value(self, node: ast.expr) -> Any:
        place = self.place(node)
        measured = self.length(node)
        if measured:
            self.sizes.append(measured)
            return c_ast.ID(measured, place)
        match node:
            case ast.Constant(bool() | int() as number) if abs(number) < 2**60:
                return c_ast.Constant("int", str(int(number)), place)
            case ast.Constant(float() as real):
                return c_ast.Constant("float", f"{min(max(real, -1e300), 1e300)!r}f", place)
            case ast.Attribute(_, "inf"):
                return c_ast.ID("INFINITY", place)
            case ast.Name(name):
                return c_ast.ID(name, place)
            case ast.Subscript():
                name, found = self.subscripts(node)
                element: Any = c_ast.ID(name, place)
                for each in found:
                    if isinstance(each, ast.Slice):
                        self.fail(
                            each, "a slice in a loop", "Write each element, or whole arrays without loops."
                        )
                    element = c_ast.ArrayRef(element, self.value(each), place)
                return element
            case ast.BinOp(left, ast.Pow(), ast.Constant(2)):
                return c_ast.BinaryOp("*", self.value(left), self.value(left), place)
            case ast.BinOp(left, ast.Pow(), right):
                return self.called("powf", [left, right], place)
            case ast.BinOp(left, ast.Div(), right):  # of whole numbers, too, a quotient of reals
                return c_ast.BinaryOp("/", self.real(left), self.value(right), place)
            case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
                return c_ast.BinaryOp(_SIGNS[type(sign)], self.value(left), self.value(right), place)
            case ast.BoolOp(sign, [first, *others]):
                made = self.value(first)
                for each in others:
                    made = c_ast.BinaryOp(_SIGNS[type(sign)], made, self.value(each), place)
                return made
            case ast.Compare(left, [sign], [right]) if type(sign) in _SIGNS:
                return c_ast.BinaryOp(_SIGNS[type(sign)], self.value(left), self.value(right), place)
            case ast.UnaryOp(sign, operand) if type(sign) in _SIGNS:
                return c_ast.UnaryOp(_SIGNS[type(sign)], self.value(operand), place)
            case ast.IfExp(test, yes, no):
                return c_ast.TernaryOp(self.value(test), self.value(yes), self.value(no), place)
            case ast.Call(ast.Name("float"), [value]):
                return self.value(value)
            case ast.Call(ast.Name(name) | ast.Attribute(_, name), arguments, []):
                return self.called(f"{_CALLED.get(name, name)}f", arguments, place)
        self.fail(node, "an expression that is not translated in loops", _PLAIN)

    def real(self, node: ast.expr) -> Any:
        """A value; a whole number as a real."""
        place = self.place(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return c_ast.Constant("float", f"{float(node.value)!r}f", place)
        value = self.value(node)
        if not isinstance(value, c_ast.ID) or value.name not in (*self.sizes, *self.loops):
            return value
        real = c_ast.TypeDecl(None, [], None, c_ast.IdentifierType(["float"]))
        return c_ast.Cast(c_ast.Typename(None, [], None, real), value, place)

    def called(self, name: str, arguments: list[ast.expr], place: _Place) -> Any:
        given = [self.value(each) for each in arguments]
        return c_ast.FuncCall(c_ast.ID(name, place), c_ast.ExprList(given), place)
