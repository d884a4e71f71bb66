"""Affine loop nests in C as a program: what each statement of a function becomes.

Loops have bounds that are sums of loop variables, sizes and numbers; so have subscripts. Conditions on them are
guards. A pointer with subscripts such as ``i*n + j`` gets the dimensions that these show. What the function's
arrays hold before it runs is an input where anything of it can be seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from pycparser import c_ast
from pycparser.c_generator import CGenerator

from dojo_core.faults import program_doubt, program_fault
from dojo_core.from_code import c_values
from dojo_core.from_code.c_text import Text, fail, nodes, number_of, read_text, type_of, word
from dojo_core.from_code.delinearise import with_dimensions
from dojo_core.from_code.nests import Apply, Constant, Element, Iterators, Nests, Value, promoted
from dojo_core.from_code.source import Source
from dojo_core.primitives import BuildError, identifier
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Access, Comparison, Dim, Node, Op, Program, Scope

MOST_STATEMENTS = 400
MOST_INLINED = 8  # functions within one another

# C's functions, those of float without their f.
FUNCTIONS = {
    **{
        name: name
        for name in (
            "sqrt exp exp2 expm1 log log2 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
            "floor ceil trunc pow fmod fma isnan isinf"
        ).split()
    },
    "fabs": "abs", "abs": "abs", "labs": "abs", "fmax": "max", "fmin": "min", "MAX": "max", "MIN": "min",
    "max": "max", "min": "min", "rint": "round", "nearbyint": "round",
}  # fmt: skip
TAKES = {"pow": 2, "fmod": 2, "max": 2, "min": 2, "fma": 3}
_SIGNS = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="}
_BITS = {"&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "shr", "&&": "and", "||": "or", "%": "fmod"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FIRST = {1: 65536, 2: 1024, 3: 256}  # sizes that a text has not, by how deep its loops are
_LEAST = 16

AFFINE = "Write a sum of loop variables, sizes and numbers, such as i*n + j + 1."


@dataclass(frozen=True)
class CReading:
    """A function in C whose sizes are open."""

    text: Text
    function: Any
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    made: dict[tuple[int, ...], Program] = field(default_factory=dict, repr=False)  # by sizes

    @property
    def name(self) -> str:
        return identifier(self.function.decl.name)

    def program(self, sizes: Mapping[str, int]) -> Program:
        at = tuple(sizes.values())
        if at not in self.made:
            self.made[at] = _Walk(self.text, self.function, sizes).program()
        return self.made[at]

    def values(
        self, sizes: Mapping[str, int], inputs: dict[str, np.ndarray[Any, Any]]
    ) -> dict[str, np.ndarray[Any, Any]]:
        return c_values.run(self.text, self.function, sizes, inputs, self.program(sizes))


def read(source: Source) -> CReading:
    """A function in C, or statements alone. Raises TextError."""
    text = read_text(source)
    if not text.functions:
        source.fail(1, 1, "there is no function", "Write a function over arrays, with for loops.")
    function = list(text.functions.values())[-1]
    counted = _counted(text, function)
    first = _FIRST.get(_depth(function.body), 32)
    called = {
        node.name.name for node in nodes(function) if isinstance(node, c_ast.FuncCall) and _named(node.name)
    }
    notes: tuple[str, ...] = ()
    if called & {"fmax", "fmaxf", "fmin", "fminf"}:
        notes = ("C's fmax and fmin leave a NaN out; max and min of a program keep it.",)
    plain = called & {name for name in FUNCTIONS if not name.startswith(("fma", "fmin", "M", "m"))}
    if plain:
        told = ", ".join(sorted(plain))
        notes += (f"{told} and numbers such as 0.5 are computed in the precision of what they stand beside.",)

    def at(size: int) -> CReading:
        sizes = {name: int(text.defined.get(name, size)) for name in counted}
        reading = CReading(text, function, sizes, notes)
        reading.program(sizes)
        return reading

    least = at(_LEAST)
    for size in (first, 64):  # the largest at which its arrays go into memory
        with suppress(TextError):
            return at(size)
    return least


def _named(node: Any) -> bool:
    return isinstance(node, c_ast.ID)


def _depth(node: Any) -> int:
    inner = max((_depth(child) for _, child in node.children()), default=0)
    return inner + isinstance(node, c_ast.For)


def _counted(text: Text, function: Any) -> list[str]:
    """The names that are sizes: integers that the function is given, numbers that are defined, and in bare
    statements what loops go to."""
    names: list[str] = []
    arguments = function.decl.type.args
    for each in arguments.params if arguments is not None and not text.bare else ():
        if isinstance(each, c_ast.Decl) and isinstance(each.type, c_ast.TypeDecl):
            if type_of(text.source, each) not in FLOATS:
                names.append(each.name)
    used = [node.name for node in nodes(function) if isinstance(node, c_ast.ID)]
    used += [n.name for each in text.globals for n in nodes(each) if isinstance(n, c_ast.ID)]
    names += [name for name, value in text.defined.items() if isinstance(value, int) and name in used]
    if text.bare:
        own = {node.name for node in nodes(function) if isinstance(node, c_ast.Decl)}
        loops = [node for node in nodes(function) if isinstance(node, c_ast.For)]
        own |= {
            n.lvalue.name
            for loop in loops
            for n in nodes(loop.init or loop)
            if isinstance(n, c_ast.Assignment) and isinstance(n.lvalue, c_ast.ID) and loop.init is not None
        }
        places = [loop.cond for loop in loops if loop.cond is not None]
        places += [n.subscript for n in nodes(function) if isinstance(n, c_ast.ArrayRef)]
        places += [n.dim for n in nodes(function) if isinstance(n, c_ast.ArrayDecl) and n.dim is not None]
        arrays = {n.name.name for n in nodes(function) if isinstance(n, c_ast.ArrayRef) and _named(n.name)}
        for place in places:
            names += [n.name for n in nodes(place) if _named(n) and n.name not in own | arrays]
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class _Array:
    """``name`` is that of the program; ``around`` indices come first: of what is declared in loops, theirs.
    A size that is None shows in the subscripts."""

    name: str
    dtype: str
    sizes: tuple[int | None, ...]
    around: tuple[Affine, ...] = ()


_Symbol = Affine | _Array | Value


class _Walk:
    """A function gone through at certain sizes. Raises TextError."""

    def __init__(self, text: Text, function: Any, sizes: Mapping[str, int]) -> None:
        self.text, self.function = text, function
        self.n = Nests()
        self.names: dict[str, _Symbol] = {}
        self.interface: dict[str, _Array] = {}
        self.undeclared: dict[str, _Array] = {}  # of bare statements
        self.predicates: list[Value] = []
        self.statements = self.inlined = 0
        self.changed = _changed(function.body)
        for name, value in text.defined.items():
            self.names[name] = Affine((), value) if isinstance(value, int) else Constant(value, "f64")
        self.names |= {name: Affine((), size) for name, size in sizes.items()}

    def fail(self, node: Any, message: str, remedy: str) -> NoReturn:
        fail(self.text.source, node, message, remedy)

    # -------------------------------------------------------------- the whole

    def program(self) -> Program:
        """The program; an array that it writes and that holds something before has an input beside it."""
        try:
            for each in self.text.globals:
                self.parameter(each)
            arguments = self.function.decl.type.args
            for each in arguments.params if arguments is not None else ():
                if isinstance(each, c_ast.Decl):
                    self.parameter(each)
            for each in self.function.body.block_items or ():
                self.statement(each)
            body = tuple(self.n.open[0].body)
        except BuildError as error:
            self.fail(self.function, str(error).rstrip("."), "Take smaller sizes.")
        written = {op.target.array for op in _operations(body)}
        read = {access.array for op in _operations(body) for access in op.reads}
        outputs = [each for each in self.interface if each in written]
        if not outputs:
            self.fail(self.function, "nothing is written", "Let it write an array that it is given.")
        open_sizes = {a.name: a.sizes for a in self.interface.values()}
        body, sizes = with_dimensions(body, open_sizes, self.unclear)
        for name, dims in sizes.items():
            self.n.declare(name, self.interface[name].dtype, dims)
        inputs = [each for each in self.interface if each in read and each not in written]
        kept = set(outputs)  # which arrays' values from before are needed: no more than have to be
        if _sound(self.made(body, inputs, outputs, kept)):
            for each in outputs:
                if _sound(self.made(body, inputs, outputs, kept - {each})):
                    kept.discard(each)
        return self.made(body, inputs, outputs, kept)

    def unclear(self, name: str) -> NoReturn:
        self.fail(self.function, f"the places of {name} go below 0", "Let subscripts begin at 0.")

    def made(
        self, body: tuple[Node, ...], inputs: Sequence[str], outputs: Sequence[str], kept: set[str]
    ) -> Program:
        """The program, in which outputs that are ``kept`` begin as copies of inputs."""
        before = {name: f"{name}_in" for name in outputs if name in kept}
        arrays = dict(self.n.arrays)
        copies: list[Node] = []
        for name, old in before.items():
            while old in arrays:
                old += "_"
            before[name] = old
            dtype, sizes, stored = arrays[name]
            arrays[old] = (dtype, sizes, stored)
            places = tuple(map(Affine.iterator, range(len(sizes))))
            node: Node = Op(Access(name, places), "", "", (Access(old, places),))
            for size in reversed(sizes):
                node = Scope(size, (node,))
            copies.append(node)
        nests = Nests()
        nests.arrays = arrays
        nests.open[0].body = [*copies, *body]
        named = [before.get(name, name) for name in self.interface if name in inputs or name in before]
        program = nests.program(identifier(self.function.decl.name), named, outputs)
        try:
            return parse(program.text)
        except TextError as error:
            self.fail(self.function, error.message, error.remedy)

    # -------------------------------------------------------------- declarations

    def parameter(self, node: Any) -> None:
        """An array or a number that the function is given; sizes are known before."""
        if node.name is None or node.name in self.names:
            return
        dtype = type_of(self.text.source, node)
        sizes = self.sizes(node)
        array = _Array(self.free(node.name), dtype, sizes)
        self.names[node.name] = array
        self.interface[array.name] = array

    def sizes(self, node: Any) -> tuple[int | None, ...]:
        """The sizes of what is declared."""
        inner, sizes = node.type, []
        while not isinstance(inner, c_ast.TypeDecl):
            if isinstance(inner, c_ast.PtrDecl):
                if sizes:
                    self.fail(
                        node, "pointers to pointers", "Take one array, with subscripts such as i*n + j."
                    )
                sizes.append(None)
            elif isinstance(inner, c_ast.ArrayDecl):
                sizes.append(None if inner.dim is None else self.constant(inner.dim))
            else:
                self.fail(node, f"{word(inner)} in a declaration", "Declare arrays and numbers.")
            inner = inner.type
        if None in sizes[1:]:
            self.fail(node, "pointers to pointers", "Take one array, with subscripts such as i*n + j.")
        return tuple(sizes)

    def constant(self, node: Any) -> int:
        form = self.affine(node)
        if not form.is_constant or form.const < 1:
            self.fail(
                node, "a size that is no number", "Write a number, or an integer that the function is given."
            )
        return form.const

    def free(self, name: str) -> str:
        """A name for an array of the program."""
        name = identifier(name)
        while name in self.n.arrays or name in self.interface:
            name += "_"
        return name

    def declaration(self, node: Any) -> None:
        if node.name is None or isinstance(node.type, c_ast.FuncDecl):
            self.fail(node, "a declaration that is not translated", "Declare numbers and arrays.")
        dtype = type_of(self.text.source, node)
        sizes = self.sizes(node)
        form = None if sizes or node.init is None or dtype in FLOATS else self.try_affine(node.init)
        if form is not None and node.name not in self.changed:
            self.names[node.name] = form
            return
        if isinstance(node.init, c_ast.InitList):
            self.fail(
                node.init, "a list of values", "Assign each, or make it an array that the function is given."
            )
        if None in sizes:
            self.fail(node, "a pointer that is declared here", "Use the array that it points to.")
        outermost = self.text.bare and not self.n.sizes
        array = _Array(self.free(node.name), dtype, sizes, () if outermost else self.n.iterators)
        value = None if node.init is None else self.value(node.init)
        self.names[node.name] = array
        if outermost:
            self.interface[array.name] = array
        else:
            self.n.declare(array.name, dtype, (*self.n.sizes, *(size for size in sizes if size)))
        if value is not None:
            self.put(Element(array.name, array.around, dtype), "", value)

    # -------------------------------------------------------------- statements

    def statement(self, node: Any) -> None:
        self.statements += 1
        if self.statements > MOST_STATEMENTS:
            self.fail(node, f"more than {MOST_STATEMENTS} statements", "Translate a smaller function.")
        match node:
            case c_ast.Compound():
                before = dict(self.names)
                for each in node.block_items or ():
                    self.statement(each)
                self.names = before
            case c_ast.Decl():
                self.declaration(node)
            case c_ast.DeclList():
                for each in node.decls:
                    self.declaration(each)
            case c_ast.Assignment():
                self.assignment(node)
            case c_ast.ExprList():
                for each in node.exprs:
                    self.statement(each)
            case c_ast.UnaryOp(op="p++" | "++" | "p--" | "--"):
                one = Constant(1 if "+" in node.op else -1, "i32")
                self.put(self.element(node.expr, written=True), "+", one)
            case c_ast.For():
                self.loop(node)
            case c_ast.If():
                self.condition(node)
            case c_ast.Return() if self.is_last(node):
                if node.expr is not None:
                    self.give(node)
            case c_ast.EmptyStatement() | c_ast.Pragma():
                return
            case _:
                self.fail(
                    node,
                    f"{word(node)}, which is not translated",
                    "Write for loops, assignments to arrays, and conditions.",
                )

    def is_last(self, node: Any) -> bool:
        return bool(self.function.body.block_items) and self.function.body.block_items[-1] is node

    def give(self, node: Any) -> None:
        """What is returned is an output of its own."""
        value = self.value(node.expr)
        array = _Array(self.free("result"), value.dtype, ())
        self.interface[array.name] = array
        self.put(Element(array.name, (), array.dtype), "", value)

    def loop(self, node: Any) -> None:
        name, start = self.begins(node)
        step = self.steps(node, name)
        count = self.lasts(node, name, start, step)
        if name in _changed(node.stmt):
            self.fail(
                node, f"a loop that changes {name} itself", "Let a loop's variable change in its head alone."
            )
        before = dict(self.names)
        depth = len(self.n.sizes)
        if self.n.begin(count, abs(step)):
            self.names[name] = start + Affine.iterator(depth, step)
            self.statement(node.stmt)
            self.n.end()
        self.names = before

    def begins(self, node: Any) -> tuple[str, Affine]:
        match node.init:
            case c_ast.DeclList(decls=[c_ast.Decl(name=name, init=init)]) if init is not None:
                return name, self.affine(init)
            case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=init):
                return name, self.affine(init)
        self.fail(node, "a loop whose variable does not begin here", "Write for (int i = 0; i < n; i++).")

    def steps(self, node: Any, name: str) -> int:
        match node.next:
            case c_ast.UnaryOp(op="p++" | "++" | "p--" | "--" as op, expr=c_ast.ID(name=other)) if (
                other == name
            ):
                return 1 if "+" in op else -1
            case c_ast.Assignment(op="+=" | "-=" as op, lvalue=c_ast.ID(name=other), rvalue=by) if (
                other == name
            ):
                form = self.affine(by)
                if form.is_constant and form.const > 0:
                    return form.const if op == "+=" else -form.const
            case c_ast.Assignment(
                op="=",
                lvalue=c_ast.ID(name=other),
                rvalue=c_ast.BinaryOp(op="+" | "-" as op, left=c_ast.ID(name=same), right=by),
            ) if other == same == name:
                form = self.affine(by)
                if form.is_constant and form.const > 0:
                    return form.const if op == "+" else -form.const
        self.fail(node.next or node, "a step that is no number", f"Write {name}++ or {name} += 4.")

    def lasts(self, node: Any, name: str, start: Affine, step: int) -> Affine:
        """How far the loop goes: on while its iterator times the step is below."""
        cond = node.cond
        if isinstance(cond, c_ast.BinaryOp) and cond.op in (*_OPPOSITE, "!="):
            left, op, right = cond.left, cond.op, cond.right
            if isinstance(right, c_ast.ID) and right.name == name:
                turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}
                left, op, right = right, turned[op], left
            if isinstance(left, c_ast.ID) and left.name == name:
                bound = self.affine(right)
                if op == "!=" and abs(step) == 1:
                    op = "<" if step > 0 else ">"
                if (op in ("<", "<=")) == (step > 0) and op != "!=":
                    apart = bound - start if step > 0 else start - bound
                    return apart + 1 if "=" in op else apart
        self.fail(cond or node, "a loop that does not end at a bound", f"Write {name} < n, n affine.")

    def condition(self, node: Any) -> None:
        largest = self.extreme(node)
        if largest is not None:
            self.put(*largest)
            return
        comparisons = self.comparisons(node.cond)
        if comparisons is not None:
            self.guarded(node, comparisons, lambda: self.statement(node.iftrue))
            if node.iffalse is not None:
                self.guarded(
                    node, self.opposite(node.cond, comparisons), lambda: self.statement(node.iffalse)
                )
            return
        yes, no = _single(node.iftrue), _single(node.iffalse)
        if yes is not None and no is not None and yes.op == no.op and _shown(yes.lvalue) == _shown(no.lvalue):
            value = c_ast.TernaryOp(node.cond, yes.rvalue, no.rvalue, node.coord)
            self.assignment(c_ast.Assignment(yes.op, yes.lvalue, value, node.coord))
            return
        chosen = self.kept(self.truth(node.cond))
        self.predicates.append(chosen)
        self.statement(node.iftrue)
        if node.iffalse is not None:
            self.predicates[-1] = Apply("==", (chosen, Constant(0, "i32")), "bool")
            self.statement(node.iffalse)
        self.predicates.pop()

    def guarded(self, node: Any, comparisons: Sequence[Comparison], run: Any) -> None:
        """Run under a condition on loop variables; not at all where it never holds."""
        constant = [each for each in comparisons if each.form.is_constant]
        if not all(each.holds(()) for each in constant):
            return
        before = self.n.restrict([each for each in comparisons if not each.form.is_constant])
        run()
        self.n.release(before)

    def comparisons(self, node: Any) -> list[Comparison] | None:
        """A condition on loop variables and sizes; None of one on values."""
        if not isinstance(node, c_ast.BinaryOp):
            return None
        if node.op == "&&":
            left, right = self.comparisons(node.left), self.comparisons(node.right)
            return None if left is None or right is None else [*left, *right]
        if node.op not in ("<", "<=", ">", ">=", "=="):
            return None
        a, b = self.try_affine(node.left), self.try_affine(node.right)
        if a is None or b is None:
            return None
        form = a - b
        bound = -form.const + (node.op in ("<=", ">"))
        return [Comparison(Affine(form.terms), {"<=": "<", ">": ">="}.get(node.op, node.op), bound)]

    def opposite(self, node: Any, comparisons: Sequence[Comparison]) -> list[Comparison]:
        if len(comparisons) == 1 and comparisons[0].relation != "==":
            (each,) = comparisons
            return [replace(each, relation=">=" if each.relation == "<" else "<")]
        self.fail(
            node, "else of a condition that is no single < or >", "Write a condition of its own for it."
        )

    def extreme(self, node: Any) -> tuple[Element, str, Value] | None:
        """``if (x > m) m = x;`` as ``m max= x``."""
        body, cond = _single(node.iftrue), node.cond
        if node.iffalse is not None or body is None or body.op != "=":
            return None
        if not (isinstance(cond, c_ast.BinaryOp) and cond.op in _OPPOSITE):
            return None
        target, value = _shown(body.lvalue), _shown(body.rvalue)
        left, right = _shown(cond.left), _shown(cond.right)
        if {left, right} != {target, value} or target == value:
            return None
        greater = (left == value) == (cond.op in (">", ">="))
        return self.element(body.lvalue, written=True), "max" if greater else "min", self.value(body.rvalue)

    def assignment(self, node: Any) -> None:
        if node.op not in ("=", "+=", "-=", "*=", "/="):
            self.fail(node, f"{node.op}, which is not translated", "Write = += -= *= or /=.")
        if isinstance(node.lvalue, c_ast.ID) and isinstance(self.names.get(node.lvalue.name), Affine):
            self.fail(node, f"{node.lvalue.name} is a size or counts a loop, and is changed", AFFINE)
        if isinstance(node.rvalue, c_ast.TernaryOp):
            chosen = self.comparisons(node.rvalue.cond)
            if chosen is not None:
                parts = (
                    (node.rvalue.iftrue, chosen),
                    (node.rvalue.iffalse, self.opposite(node.rvalue, chosen)),
                )
                for part, comparisons in parts:
                    one = c_ast.Assignment(node.op, node.lvalue, part, node.coord)
                    self.guarded(node, comparisons, lambda one=one: self.assignment(one))  # type: ignore[misc]
                return
        accumulate, value = self.accumulation(node)
        self.put(self.element(node.lvalue, written=True), accumulate, value)

    def accumulation(self, node: Any) -> tuple[str, Value]:
        """How the value goes into the target, and the value."""
        match node.op:
            case "+=" | "*=":
                return node.op[0], self.value(node.rvalue)
            case "-=":
                return "+", self.negated(self.value(node.rvalue))
            case "/=":
                target = self.element(node.lvalue, written=False)
                return "", self.applied(node, "/", [target, self.value(node.rvalue)])
        target = _shown(node.lvalue)
        value = node.rvalue
        if isinstance(value, c_ast.BinaryOp) and value.op in ("+", "*", "-"):
            left, right = _shown(value.left) == target, _shown(value.right) == target
            if left and not right:
                other = self.value(value.right)
                return ("+", self.negated(other)) if value.op == "-" else (value.op, other)
            if right and not left and value.op != "-":
                return value.op, self.value(value.left)
        of = (
            FUNCTIONS.get(_function(value), "")
            if isinstance(value, c_ast.FuncCall) and _named(value.name)
            else ""
        )
        if of in ("max", "min") and value.args is not None and len(value.args.exprs) == 2:
            first, second = value.args.exprs
            if (_shown(first) == target) != (_shown(second) == target):
                return of, self.value(second if _shown(first) == target else first)
        if isinstance(value, c_ast.TernaryOp):
            as_if = c_ast.If(value.cond, c_ast.Assignment("=", node.lvalue, value.iftrue), None)
            if _shown(value.iffalse) == target:
                found = self.extreme(as_if)
                if found is not None:
                    return found[1], found[2]
        return "", self.value(value)

    def put(self, target: Element, accumulate: str, value: Value) -> None:
        """Add an operation, under the conditions on values that hold here."""
        if accumulate and not (isinstance(value, Constant | Iterators) or _fits(target.dtype, value.dtype)):
            value = self.applied(self.function, accumulate, [target, value])
            accumulate = ""
        for predicate in self.predicates:
            other: Value = target
            if accumulate:
                value = self.applied(self.function, accumulate, [target, value])
                accumulate = ""
            value = Apply("select", (predicate, value, other), target.dtype)
        self.n.assign(target, accumulate, value)

    def kept(self, value: Value) -> Element:
        """A value worked out here, so that what follows does not change it."""
        operand = self.n.operand(value if isinstance(value, Apply) else Apply("", (value,), value.dtype))
        assert isinstance(operand, Access)
        return Element(operand.array, tuple(i for i in operand.index if isinstance(i, Affine)), value.dtype)

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
            array = _Array(self.free(base.name), "f32", (None,) * len(subscripts))
            self.undeclared[base.name] = self.interface[array.name] = array
        if array is None:
            column = node.coord.column if node.coord is not None else 1
            line = node.coord.line if node.coord is not None else 1
            self.text.source.unknown(line, column, "name", base.name, {n: 0 for n in self.names})
        if not isinstance(array, _Array):
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
            self.fail(node, f"{_shown(node)[:60]} is not affine", AFFINE)
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
            case c_ast.FuncCall() if _named(node.name):
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
        whole = dtypes[0]
        for each in (*dtypes[1:], dtypes[0]):
            whole = promoted(whole, each)
        return whole

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
            function, tuple(operands), "bool" if function in _OPPOSITE or function in ("==", "!=") else dtype
        )

    def call(self, node: Any) -> Value:
        name = node.name.name
        arguments = [self.value(each) for each in (node.args.exprs if node.args is not None else ())]
        if name in self.text.functions:
            return self.inline(node, self.text.functions[name], arguments)
        function = FUNCTIONS.get(_function(node))
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


def _sound(program: Program) -> bool:
    """Is all that it reads surely written before, and its outputs whole?"""
    return program_fault(program, on=None) is None and program_doubt(program) is None


def _fits(dtype: str, other: str) -> bool:
    """Is the sum of both computed in the first?"""
    return promoted(dtype, other) == promoted(dtype, dtype)


def _known() -> list[str]:
    return [f"{name}f" for name in FUNCTIONS if name.islower() and name not in ("abs", "max", "min")]


def _function(node: Any) -> str:
    name = str(node.name.name)
    return name if name in FUNCTIONS else name.removesuffix("f")


def _changed(tree: Any) -> set[str]:
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
        if isinstance(node, c_ast.Assignment) and _named(node.lvalue) and id(node) not in heads:
            names.add(node.lvalue.name)
        elif (
            isinstance(node, c_ast.UnaryOp)
            and node.op in ("p++", "++", "p--", "--", "&")
            and id(node) not in heads
        ):
            names |= {node.expr.name} if _named(node.expr) else set()
    return names


def _single(node: Any) -> Any:
    """The assignment that a branch is, None where it is more."""
    while isinstance(node, c_ast.Compound) and len(node.block_items or ()) == 1:
        node = node.block_items[0]
    return node if isinstance(node, c_ast.Assignment) else None


def _operations(body: Iterable[Node]) -> list[Op]:
    found: list[Op] = []
    for node in body:
        found += [node] if isinstance(node, Op) else _operations(node.body)
    return found


def _shown(node: Any) -> str:
    """A node as C has it."""
    return str(CGenerator().visit(node))
