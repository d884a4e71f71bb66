"""Expressions of C as values of a program: places that are affine, and what C computes of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np
from pycparser import c_ast
from pycparser.c_generator import CGenerator

from dojo_core.from_code import c_values
from dojo_core.from_code.c_text import Text, fail, nodes, number_of, type_of, word
from dojo_core.from_code.nests import Apply, Constant, Element, Iterators, Nests, Value, promoted
from dojo_core.primitives import identifier
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.tree import Access

MOST_INLINED = 8  # functions within one another

_SAME = (  # in both languages
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "floor", "ceil", "trunc", "pow",
    "fmod", "fma", "isnan", "isinf",
)  # fmt: skip

# C's functions, those of float without their f.
FUNCTIONS = {
    **{
        name: name
        for name in _SAME
    },
    "fabs": "abs", "abs": "abs", "labs": "abs", "fmax": "max", "fmin": "min", "MAX": "max", "MIN": "min",
    "max": "max", "min": "min", "rint": "round", "nearbyint": "round",
}  # fmt: skip
TAKES = {"pow": 2, "fmod": 2, "max": 2, "min": 2, "fma": 3}
_SIGNS = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="}
_BITS = {"&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "shr", "&&": "and", "||": "or", "%": "fmod"}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}

AFFINE = "Write a sum of loop variables, sizes and numbers, such as i*n + j + 1."


@dataclass(frozen=True)
class Declared:
    """``name`` is that of the program; ``around`` indices come first: of what is declared in loops, theirs.
    A size that is None shows in the subscripts."""

    name: str
    dtype: str
    sizes: tuple[int | None, ...]
    around: tuple[Affine, ...] = ()


Symbol = Affine | Declared | Value


class Expressions:
    """What a function's names stand for at certain sizes, and its expressions as values. Raises TextError."""

    def __init__(self, text: Text, function: Any, sizes: Mapping[str, int]) -> None:
        self.text, self.function = text, function
        self.n = Nests()
        self.names: dict[str, Symbol] = {}
        self.interface: dict[str, Declared] = {}
        self.undeclared: dict[str, Declared] = {}  # of bare statements
        self.predicates: list[Value] = []
        self.statements = self.inlined = 0
        self.changed = changed_in(function.body)
        for name, value in text.defined.items():
            self.names[name] = Affine((), value) if isinstance(value, int) else Constant(value, "f64")
        self.names |= {name: Affine((), size) for name, size in sizes.items()}

    def fail(self, node: Any, message: str, remedy: str) -> NoReturn:
        fail(self.text.source, node, message, remedy)

    def free(self, name: str) -> str:
        """A name for an array of the program."""
        name = identifier(name)
        while name in self.n.arrays or name in self.interface:
            name += "_"
        return name

    # -------------------------------------------------------------- places

    def element(self, node: Any, written: bool) -> Element:
        """An element of an array, or a number that has a name."""
        subscripts: list[Any] = []
        base = node
        while isinstance(base, c_ast.ArrayRef):
            subscripts.insert(0, base.subscript)
            base = base.name
        if isinstance(base, c_ast.UnaryOp) and base.op == "*" and not subscripts:
            base, subscripts = self.pointed(base)
        if not isinstance(base, c_ast.ID):
            self.fail(node, f"{word(base)} where an array's element stands", "Write x[i] or x[i][j].")
        array = self.names.get(base.name) or self.undeclared.get(base.name)
        if array is None and self.text.bare:
            array = Declared(self.free(base.name), "f32", (None,) * len(subscripts))
            self.undeclared[base.name] = self.interface[array.name] = array
        if array is None:
            column = node.coord.column if node.coord is not None else 1
            line = node.coord.line if node.coord is not None else 1
            self.text.source.unknown(line, column, "name", base.name, dict.fromkeys(self.names, 0))
        if not isinstance(array, Declared):
            self.fail(node, f"{base.name} is no array", "Write the subscripts of arrays.")
        if len(subscripts) != len(array.sizes):
            self.fail(
                node,
                f"{base.name} has {len(array.sizes)} dimensions and {len(subscripts)} subscripts",
                "Give one subscript for each.",
            )
        return Element(array.name, (*array.around, *(self.affine(each) for each in subscripts)), array.dtype)

    def pointed(self, node: Any) -> tuple[Any, list[Any]]:
        """``*p`` and ``*(p + i)`` as a base and a subscript."""
        inner = node.expr
        if isinstance(inner, c_ast.BinaryOp) and inner.op == "+" and isinstance(inner.left, c_ast.ID):
            return inner.left, [inner.right]
        return inner, [c_ast.Constant("int", "0")]

    def try_affine(self, node: Any) -> Affine | None:
        match node:
            case c_ast.Constant():
                try:
                    number = number_of(node.value)
                except ValueError:
                    return None
                return Affine((), number) if isinstance(number, int) else None
            case c_ast.ID():
                known = self.names.get(node.name)
                if isinstance(known, Iterators):
                    return known.form
                return known if isinstance(known, Affine) else None
            case c_ast.Cast():
                return self.try_affine(node.expr)
            case c_ast.UnaryOp(op="-" | "+"):
                form = self.try_affine(node.expr)
                return None if form is None else form if node.op == "+" else -form
            case c_ast.BinaryOp():
                a, b = self.try_affine(node.left), self.try_affine(node.right)
                if a is None or b is None:
                    return None
                match node.op:
                    case "+":
                        return a + b
                    case "-":
                        return a - b
                    case "*" if a.is_constant or b.is_constant:
                        return b * a.const if a.is_constant else a * b.const
                    case "/" if a.is_constant and b.is_constant and a.const >= 0 and b.const > 0:
                        return Affine((), a.const // b.const)
                    case "%" if a.is_constant and b.is_constant and a.const >= 0 and b.const > 0:
                        return Affine((), a.const % b.const)
        return None

    def affine(self, node: Any) -> Affine:
        form = self.try_affine(node)
        if form is None:
            self.fail(node, f"{shown(node)[:60]} is not affine", AFFINE)
        if max(map(abs, (form.const, *(c for _, c in form.terms)))) >= 2**40:
            self.fail(node, "a number that is too large", "Take smaller sizes.")
        return form

    # -------------------------------------------------------------- values

    def value(self, node: Any) -> Value:
        form = self.try_affine(node)
        if form is not None:
            return Constant(form.const, "i32") if form.is_constant else Iterators(form)
        match node:
            case c_ast.Constant():
                try:
                    number = number_of(node.value)
                except ValueError:
                    self.fail(node, f"{node.value[:20]} is no number", "Write a number.")
                return Constant(number, "f32" if node.value[-1] in "fF" else "f64")
            case c_ast.ID() if isinstance(self.names.get(node.name), Element | Constant | Apply):
                return self.names[node.name]  # type: ignore[return-value]
            case c_ast.ID(name="INFINITY" | "HUGE_VAL" | "HUGE_VALF"):
                return Constant(math.inf, "f32")
            case c_ast.ID(name="FLT_MAX" | "DBL_MAX"):
                return Constant(
                    float(np.finfo(np.float32 if node.name == "FLT_MAX" else np.float64).max), "f32"
                )
            case c_ast.ID(name="M_PI"):
                return Constant(math.pi, "f64")
            case c_ast.ID() | c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
                return self.element(node, written=False)
            case c_ast.UnaryOp(op="-"):
                return self.negated(self.value(node.expr))
            case c_ast.UnaryOp(op="+"):
                return self.value(node.expr)
            case c_ast.UnaryOp(op="!"):
                return Apply("==", (self.truth(node.expr), Constant(0, "i32")), "bool")
            case c_ast.BinaryOp(op="&&" | "||"):
                return Apply(_BITS[node.op], (self.truth(node.left), self.truth(node.right)), "bool")
            case c_ast.BinaryOp() if node.op in (*_SIGNS, *_BITS):
                return self.applied(
                    node, _BITS.get(node.op, node.op), [self.value(node.left), self.value(node.right)]
                )
            case c_ast.TernaryOp():
                parts = [self.value(node.iftrue), self.value(node.iffalse)]
                dtype = self.dtype(node, parts)
                return Apply("select", (self.truth(node.cond), *parts), dtype)
            case c_ast.Cast():
                value, dtype = self.value(node.expr), type_of(self.text.source, node.to_type)
                return value if value.dtype == dtype else Apply(dtype, (value,), dtype)
            case c_ast.FuncCall() if named(node.name):
                return self.call(node)
        self.fail(node, f"{word(node)}, which is not translated", "Write signs, calls, elements and numbers.")

    def truth(self, node: Any) -> Value:
        value = self.value(node)
        is_truth = isinstance(value, Apply) and value.dtype == "bool"
        return value if is_truth else Apply("!=", (value, Constant(0, "i32")), "bool")

    def negated(self, value: Value) -> Value:
        if isinstance(value, Constant):
            return replace(value, value=-value.value)
        return Apply("neg", (value,), promoted(value.dtype, value.dtype))

    def dtype(self, node: Any, operands: Iterable[Value]) -> str:
        """In which dtype C computes of these; a literal takes that of what it stands beside."""
        bound = [each for each in operands if not isinstance(each, Constant | Iterators)]
        free = [each for each in operands if isinstance(each, Constant | Iterators)]
        for each in bound:
            if each.dtype in ("u32", "u64"):
                self.fail(node, "arithmetic of unsigned integers", "Take int, or a smaller unsigned type.")
        dtypes = [each.dtype for each in bound]
        if not dtypes or (not set(dtypes) & set(FLOATS) and any(each.dtype in FLOATS for each in free)):
            dtypes += [each.dtype for each in free]
        return reduce(promoted, dtypes, promoted(dtypes[0], dtypes[0]))

    def applied(self, node: Any, function: str, operands: list[Value]) -> Value:
        if all(isinstance(each, Constant) for each in operands):
            a, b = (each.value for each in operands)  # type: ignore[union-attr]
            folded = c_values.of_numbers(function, a, b)
            if folded is None:
                self.fail(node, f"{function} of {a} and {b} has no value", "Write the number that is meant.")
            return Constant(folded, "f64" if isinstance(folded, float) else "i32")
        dtype = self.dtype(node, operands)
        if function in ("and", "or", "xor", "shl", "shr", "fmod") and dtype in FLOATS:
            self.fail(
                node, "a sign of integers beside floating-point numbers", "Write fmodf for a remainder."
            )
        return Apply(
            function, tuple(operands), "bool" if function in OPPOSITE or function in ("==", "!=") else dtype
        )

    def call(self, node: Any) -> Value:
        name = node.name.name
        arguments = [self.value(each) for each in (node.args.exprs if node.args is not None else ())]
        if name in self.text.functions:
            return self.inline(node, self.text.functions[name], arguments)
        function = FUNCTIONS.get(name_of(node))
        if function is None:
            self.text.source.unknown(
                node.coord.line, node.coord.column, "function", name, dict.fromkeys(_known())
            )
        takes = TAKES.get(function, 1)
        if len(arguments) != takes:
            self.fail(node, f"{name} takes {takes} arguments, not {len(arguments)}", "Give as many.")
        dtype = self.dtype(node, arguments)
        if dtype not in FLOATS and function not in ("max", "min", "abs"):
            dtype = "f32" if name.endswith("f") else "f64"
        return Apply(function, tuple(arguments), "bool" if function in ("isnan", "isinf") else dtype)

    def inline(self, node: Any, function: Any, arguments: list[Value]) -> Value:
        """A function that returns one expression, in place of its call."""
        body = function.body.block_items or []
        parameters = function.decl.type.args.params if function.decl.type.args is not None else []
        if len(body) != 1 or not isinstance(body[0], c_ast.Return) or len(parameters) != len(arguments):
            self.fail(node, "a call of a function of several statements", "Write it out where it is called.")
        self.inlined += 1
        if self.inlined > MOST_INLINED or function is self.function:
            self.fail(node, "functions that call one another", "Write them out.")
        before = self.names
        self.names = {
            **{n: s for n, s in before.items() if n in self.text.defined},
            **{
                each.name: self.kept(value) if isinstance(value, Apply) else value
                for each, value in zip(parameters, arguments, strict=True)
            },
        }
        result = self.value(body[0].expr)
        self.names = before
        self.inlined -= 1
        return result

    def kept(self, value: Value) -> Element:
        """A value worked out here, so that what follows does not change it."""
        operand = self.n.operand(value if isinstance(value, Apply) else Apply("", (value,), value.dtype))
        assert isinstance(operand, Access)
        return Element(operand.array, tuple(i for i in operand.index if isinstance(i, Affine)), value.dtype)


def _known() -> list[str]:
    return [f"{name}f" for name in FUNCTIONS if name.islower() and name not in ("abs", "max", "min")]


def name_of(node: Any) -> str:
    name = str(node.name.name)
    return name if name in FUNCTIONS else name.removesuffix("f")


def shown(node: Any) -> str:
    """A node as C has it."""
    return str(CGenerator().visit(node))


def named(node: Any) -> bool:
    return isinstance(node, c_ast.ID)


def changed_in(tree: Any) -> set[str]:
    """The names that statements change, loops' heads aside."""
    names: set[str] = set()
    heads = {
        id(n)
        for f in nodes(tree)
        if isinstance(f, c_ast.For)
        for h in (f.init, f.next)
        if h
        for n in nodes(h)
    }
    for node in nodes(tree):
        if isinstance(node, c_ast.Assignment) and named(node.lvalue) and id(node) not in heads:
            names.add(node.lvalue.name)
        elif (
            isinstance(node, c_ast.UnaryOp)
            and node.op in ("p++", "++", "p--", "--", "&")
            and id(node) not in heads
        ):
            names |= {node.expr.name} if named(node.expr) else set()
    return names
