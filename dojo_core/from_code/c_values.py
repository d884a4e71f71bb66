"""What a C function computes, by a walk of its syntax tree over values: the judge of a translation.

It knows nothing of affine forms or programs: loops go round, subscripts are worked out, one statement after
the other. Floating-point numbers are float64, integers those of Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pycparser import c_ast

from dojo_core.from_code.c_text import Text, fail, number_of, type_of
from dojo_core.from_code.source import Unchecked
from dojo_core.primitives import identifier
from dojo_core.program.tree import Program

MOST_STEPS = 150_000  # expressions that are worked out
_TOO_LONG = "at these sizes that takes too long"
Number = int | float
Arrays = dict[str, np.ndarray[Any, Any]]


def _real(function: Callable[[float], float]) -> Callable[..., Number]:
    def of(x: Number) -> Number:
        with np.errstate(all="ignore"):
            return float(function(np.float64(x)))

    return of


_ANGLES = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{name: _real(getattr(np, name)) for name in ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log1p")},
    **{name: _real(getattr(np, name)) for name in ("floor", "ceil", "trunc", "rint", "fabs")},
    **{name: _real(getattr(np, name)) for name in _ANGLES},
    **{f"a{name}": _real(getattr(np, f"arc{name}")) for name in _ANGLES},
    "nearbyint": _real(np.rint), "erf": lambda x: math.erf(x), "abs": abs, "labs": abs,
    "isnan": lambda x: int(math.isnan(x)), "isinf": lambda x: int(math.isinf(x)),
    "pow": lambda x, y: float(np.power(np.float64(x), np.float64(y))),
    "fmod": lambda x, y: float(np.fmod(np.float64(x), np.float64(y))), "fma": lambda x, y, z: x * y + z,
    "fmax": max, "fmin": min, "MAX": max, "MIN": min, "max": max, "min": min,
}  # fmt: skip


def of_numbers(sign: str, a: Number, b: Number) -> Number | None:
    """Two literals as one; None where that has no value, or is no number of 64 bits."""
    try:
        value = _sign(sign, a, b)
    except (ArithmeticError, ValueError):
        return None
    return value if isinstance(value, float) or abs(value) < 2**62 else None


def _sign(sign: str, a: Number, b: Number) -> Number:
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" if isinstance(a, int) and isinstance(b, int):
            if b == 0:
                return 0
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "/":
            with np.errstate(all="ignore"):
                return float(np.float64(a) / np.float64(b))
        case "%" | "fmod":
            return int(math.fmod(a, b)) if b else 0
        case "<" | "<=" | ">" | ">=" | "==" | "!=":
            compared = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
            return int(compared[sign])
        case "&" | "and":
            return int(a) & int(b)
        case "|" | "or":
            return int(a) | int(b)
        case "^" | "xor":
            return int(a) ^ int(b)
        case "<<" | "shl":
            return int(a) << min(int(b), 64)
        case ">>" | "shr":
            return int(a) >> min(int(b), 64)
    raise ValueError(sign)


@dataclass
class _Array:
    """Elements in one row, and the sizes by which subscripts find them; of a number, no sizes."""

    cells: list[Number]
    sizes: tuple[int, ...]
    whole: bool  # of integers


@dataclass
class _Run:
    text: Text
    names: dict[str, Any]
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Unchecked(_TOO_LONG)

    # -------------------------------------------------------------- statements

    def statement(self, node: Any) -> Number | None:
        """What is returned, if anything."""
        self.step()
        match node:
            case c_ast.Compound():
                before = set(self.names)
                shadowed = {
                    each.name: self.names[each.name]
                    for each in node.block_items or ()
                    if isinstance(each, c_ast.Decl) and each.name in before
                }
                for each in node.block_items or ():
                    value = self.statement(each)
                    if value is not None:
                        return value
                self.names.update(shadowed)
            case c_ast.Decl():
                self.declare(node)
            case c_ast.DeclList():
                for each in node.decls:
                    self.declare(each)
            case c_ast.ExprList():
                for each in node.exprs:
                    self.statement(each)
            case c_ast.For():
                if node.init is not None:
                    self.statement(node.init)
                while node.cond is None or self.value(node.cond):
                    value = self.statement(node.stmt)
                    if value is not None:
                        return value
                    self.statement(node.next)
            case c_ast.If():
                branch = node.iftrue if self.value(node.cond) else node.iffalse
                return None if branch is None else self.statement(branch)
            case c_ast.Assignment():
                value = self.value(node.rvalue)
                if node.op != "=":
                    value = _sign(node.op[:-1], self.value(node.lvalue), value)
                self.store(node.lvalue, value)
            case c_ast.UnaryOp(op="p++" | "++" | "p--" | "--"):
                self.store(node.expr, self.value(node.expr) + (1 if "+" in node.op else -1))
            case c_ast.Return():
                return None if node.expr is None else self.value(node.expr)
        return None

    def declare(self, node: Any) -> None:
        sizes = []
        inner = node.type
        while isinstance(inner, c_ast.ArrayDecl):
            sizes.append(int(self.value(inner.dim)))
            inner = inner.type
        whole = type_of(self.text.source, node) not in ("f16", "f32", "f64")
        count = math.prod(sizes)
        if count > MOST_STEPS:
            raise Unchecked(_TOO_LONG)
        self.names[node.name] = _Array([0 if whole else math.nan] * count, tuple(sizes), whole)
        if node.init is not None:
            self.store(c_ast.ID(node.name), self.value(node.init))

    # -------------------------------------------------------------- places

    def place(self, node: Any) -> tuple[_Array, int]:
        subscripts: list[int] = []
        while isinstance(node, c_ast.ArrayRef):
            subscripts.insert(0, int(self.value(node.subscript)))
            node = node.name
        if isinstance(node, c_ast.UnaryOp):  # *p, *(p + i)
            inner = node.expr
            if isinstance(inner, c_ast.BinaryOp):
                node, subscripts = inner.left, [int(self.value(inner.right))]
            else:
                node, subscripts = inner, [0]
        array = self.names.get(node.name)
        if not isinstance(array, _Array):
            fail(self.text.source, node, f"{node.name}, which has no value here", "Give it a value before.")
        at = 0
        sizes = array.sizes if len(array.sizes) == len(subscripts) else (len(array.cells),) * len(subscripts)
        for k, (subscript, size) in enumerate(zip(subscripts, sizes, strict=True)):
            if not 0 <= subscript < size and (k or subscript < 0):
                fail(
                    self.text.source,
                    node,
                    f"a subscript {subscript} outside of {size}",
                    "Stay within the array.",
                )
            at = at * size + subscript
        if at >= len(array.cells):
            fail(
                self.text.source,
                node,
                f"a place {at} outside of {len(array.cells)}",
                "Stay within the array.",
            )
        return array, at

    def store(self, node: Any, value: Number) -> None:
        if isinstance(node, c_ast.ID) and not isinstance(self.names.get(node.name), _Array):
            self.names[node.name] = _Array([0], (), True)  # a loop's variable of bare statements
        array, at = self.place(node)
        array.cells[at] = (int(value) if math.isfinite(value) else 0) if array.whole else float(value)

    # -------------------------------------------------------------- values

    def value(self, node: Any) -> Number:
        self.step()
        match node:
            case c_ast.Constant():
                return number_of(node.value)
            case c_ast.ID() if isinstance(self.names.get(node.name), int | float):
                return self.names[node.name]  # type: ignore[no-any-return]
            case c_ast.ID() if node.name not in self.names:
                return _CONSTANTS[node.name]
            case c_ast.ID() | c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
                array, at = self.place(node)
                return array.cells[at]
            case c_ast.UnaryOp():
                value = self.value(node.expr)
                return -value if node.op == "-" else int(not value) if node.op == "!" else value
            case c_ast.BinaryOp(op="&&"):
                return int(bool(self.value(node.left)) and bool(self.value(node.right)))
            case c_ast.BinaryOp(op="||"):
                return int(bool(self.value(node.left)) or bool(self.value(node.right)))
            case c_ast.BinaryOp():
                return _sign(node.op, self.value(node.left), self.value(node.right))
            case c_ast.TernaryOp():
                return self.value(node.iftrue if self.value(node.cond) else node.iffalse)
            case c_ast.Cast():
                value = self.value(node.expr)
                real = type_of(self.text.source, node.to_type) in ("f16", "f32", "f64")
                return float(value) if real else int(value)
            case c_ast.FuncCall():
                return self.call(node)
        raise AssertionError(type(node).__name__)  # the translation has refused it before

    def call(self, node: Any) -> Number:
        name = node.name.name
        arguments = [self.value(each) for each in (node.args.exprs if node.args is not None else ())]
        if name in self.text.functions:
            function = self.text.functions[name]
            parameters = [each.name for each in function.decl.type.args.params]
            inner = _Run(
                self.text, {**self.text.defined, **dict(zip(parameters, arguments, strict=True))}, self.steps
            )
            value = inner.value(function.body.block_items[0].expr)
            self.steps = inner.steps
            return value
        return _FUNCTIONS[name if name in _FUNCTIONS else name.removesuffix("f")](*arguments)


_CONSTANTS = {
    "INFINITY": math.inf, "HUGE_VAL": math.inf, "HUGE_VALF": math.inf, "M_PI": math.pi,
    "FLT_MAX": float(np.finfo(np.float32).max), "DBL_MAX": float(np.finfo(np.float64).max),
}  # fmt: skip


def run(text: Text, function: Any, sizes: Mapping[str, int], inputs: Arrays, program: Program) -> Arrays:
    """The outputs of a program's interface by name, of its inputs by name.

    Raises Unchecked, and TextError for a subscript outside of its array.
    """
    walk = _Run(text, {**text.defined, **sizes})
    arrays: dict[str, _Array] = {}
    for name in dict.fromkeys((*program.inputs, *program.outputs)):
        buffer = program.buffer_of[name]
        shape = tuple(d.size for d in buffer.dims)
        whole = buffer.dtype not in ("f16", "f32", "f64")
        before = inputs.get(name, inputs.get(f"{name}_in"))
        cells = [0 if whole else math.nan] * math.prod(shape) if before is None else before.ravel().tolist()
        arrays[name] = _Array(cells, shape, whole)
    given = [node.name for node in text.globals]
    given += [
        node.name for node in (function.decl.type.args.params if function.decl.type.args else ()) if node.name
    ]
    for name in given:
        if identifier(name) in arrays and name not in sizes:
            walk.names[name] = arrays[identifier(name)]
    if text.bare:
        walk.names |= {name: array for name, array in arrays.items() if name not in walk.names}
    returned = None
    for node in function.body.block_items or ():
        if text.bare and isinstance(node, c_ast.Decl) and node.name in arrays:
            if node.init is not None:
                walk.store(c_ast.ID(node.name), walk.value(node.init))
            continue
        returned = walk.statement(node)
    if returned is not None:
        arrays[program.outputs[-1]].cells[:] = [returned]
    return {
        name: np.array(arrays[name].cells).reshape(tuple(d.size for d in program.buffer_of[name].dims))
        for name in program.outputs
    }
