"""Affine loop nests in C as a program: what each statement of a function becomes.

Loops have bounds that are sums of loop variables, sizes and numbers; so have subscripts. Conditions on them
are guards. A pointer with subscripts such as ``i*n + j`` gets the dimensions that these show. What the
function's arrays hold before it runs is an input where anything of it can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from pycparser import c_ast

from dojo_core.faults import program_doubt, program_fault
from dojo_core.from_code.c_expressions import (
    AFFINE,
    FUNCTIONS,
    OPPOSITE,
    Declared,
    Expressions,
    changed_in,
    name_of,
    named,
    shown,
)
from dojo_core.from_code.c_text import type_of, word
from dojo_core.from_code.delinearise import with_dimensions
from dojo_core.from_code.nests import Apply, Constant, Element, Iterators, Nests, Value, promoted
from dojo_core.primitives import BuildError, identifier
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.program.tree import Access, Comparison, Node, Op, Program, Scope

MOST_STATEMENTS = 400


class Statements(Expressions):
    """A function gone through at certain sizes, statement by statement. Raises TextError."""

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
        array = Declared(self.free(node.name), dtype, sizes)
        self.names[node.name] = array
        self.interface[array.name] = array

    def sizes(self, node: Any) -> tuple[int | None, ...]:
        """The sizes of what is declared."""
        inner: Any = node.type
        sizes: list[int | None] = []
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
        return tuple(sizes)

    def constant(self, node: Any) -> int:
        form = self.affine(node)
        if not form.is_constant or form.const < 1:
            self.fail(
                node, "a size that is no number", "Write a number, or an integer that the function is given."
            )
        return form.const

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
            self.fail(node, "a pointer that is declared here", "Write x[i*n + j] in place of row[j].")
        outermost = self.text.bare and not self.n.sizes
        array = Declared(self.free(node.name), dtype, sizes, () if outermost else self.n.iterators)
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
        array = Declared(self.free("result"), value.dtype, ())
        self.interface[array.name] = array
        self.put(Element(array.name, (), array.dtype), "", value)

    def loop(self, node: Any) -> None:
        name, start = self.begins(node)
        step = self.steps(node, name)
        count = self.lasts(node, name, start, step)
        if name in changed_in(node.stmt):
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
        if isinstance(cond, c_ast.BinaryOp) and cond.op in (*OPPOSITE, "!="):
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
                    if cond.op == "!=" and apart.bounds(self.n.sizes)[0] < 0:
                        self.fail(cond, f"{name} may begin beyond its bound", f"Write {name} < n.")
                    return apart + 1 if "=" in op else apart
        self.fail(cond or node, "a loop that does not end at a bound", f"Write {name} < n, n affine.")

    def condition(self, node: Any) -> None:
        largest = self.extreme(node)
        if largest is not None:
            self.put(*largest)
            return
        comparisons = self.comparisons(node.cond)
        if comparisons is not None:
            self.guarded(comparisons, partial(self.statement, node.iftrue))
            if node.iffalse is not None:
                self.guarded(self.opposite(node.cond, comparisons), partial(self.statement, node.iffalse))
            return
        yes, no = _single(node.iftrue), _single(node.iffalse)
        if yes is not None and no is not None and yes.op == no.op and shown(yes.lvalue) == shown(no.lvalue):
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

    def guarded(self, comparisons: Sequence[Comparison], run: Callable[[], None]) -> None:
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
        if not (isinstance(cond, c_ast.BinaryOp) and cond.op in OPPOSITE):
            return None
        target, value = shown(body.lvalue), shown(body.rvalue)
        left, right = shown(cond.left), shown(cond.right)
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
                    self.guarded(comparisons, partial(self.assignment, one))
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
        lvalue = shown(node.lvalue)
        value = node.rvalue
        if isinstance(value, c_ast.BinaryOp) and value.op in ("+", "*", "-"):
            left, right = shown(value.left) == lvalue, shown(value.right) == lvalue
            if left and not right:
                other = self.value(value.right)
                return ("+", self.negated(other)) if value.op == "-" else (value.op, other)
            if right and not left and value.op != "-":
                return value.op, self.value(value.left)
        of = (
            FUNCTIONS.get(name_of(value), "")
            if isinstance(value, c_ast.FuncCall) and named(value.name)
            else ""
        )
        if of in ("max", "min") and value.args is not None and len(value.args.exprs) == 2:
            first, second = value.args.exprs
            if (shown(first) == lvalue) != (shown(second) == lvalue):
                return of, self.value(second if shown(first) == lvalue else first)
        if isinstance(value, c_ast.TernaryOp):
            as_if = c_ast.If(value.cond, c_ast.Assignment("=", node.lvalue, value.iftrue), None)
            if shown(value.iffalse) == lvalue:
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


def _sound(program: Program) -> bool:
    """Is all that it reads surely written before, and its outputs whole?"""
    return program_fault(program, on=None) is None and program_doubt(program) is None


def _fits(dtype: str, other: str) -> bool:
    """Is the sum of both computed in the first?"""
    return promoted(dtype, other) == promoted(dtype, dtype)


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
