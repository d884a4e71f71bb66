"""Loop nests over arrays, whatever language they were in, as scopes and operations of a program.

A loop counts ``{d}`` from 0; its variable is an affine form of the iterators. Where how often it goes depends
on loops around it, its scope is as long as the longest, and what stands in it has a guard. An expression of
several functions becomes an operation for each, through temporaries that have a place for each iteration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dojo_core.primitives import BuildError
from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import COMPARISONS, FLOATS, holds
from dojo_core.program.tree import Access, Buffer, Comparison, Dim, Node, Number, Op, Operand, Program, Scope

MOST_CELLS = 2**40  # of an array


@dataclass(frozen=True)
class Element:
    """An element of an array, its index over the iterators around; or a value of them."""

    array: str
    index: tuple[Affine, ...]
    dtype: str


@dataclass(frozen=True)
class Iterators:
    form: Affine
    dtype: str = "i32"


@dataclass(frozen=True)
class Constant:
    """A literal takes the dtype of what it stands beside; ``dtype`` is its own."""

    value: int | float
    dtype: str


@dataclass(frozen=True)
class Apply:
    """One function of the text form, in the dtype in which the language computes it."""

    function: str
    operands: tuple[Value, ...]
    dtype: str


Value = Element | Iterators | Constant | Apply


@dataclass
class _Open:
    """A scope that is being filled; ``guard`` holds for what is put into it."""

    size: int
    body: list[Node] = field(default_factory=list)
    guard: tuple[Comparison, ...] = ()


class Nests:
    """A program in the making out of loops and assignments."""

    def __init__(self) -> None:
        self.arrays: dict[str, tuple[str, tuple[int, ...], bool]] = {}  # dtype, sizes, does it take memory?
        self.open: list[_Open] = [_Open(1)]
        self.temporaries = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the scopes around, outermost first."""
        return tuple(scope.size for scope in self.open[1:])

    @property
    def iterators(self) -> tuple[Affine, ...]:
        """Those around."""
        return tuple(map(Affine.iterator, range(len(self.sizes))))

    @property
    def guard(self) -> tuple[Comparison, ...]:
        """What holds where an operation would be put now."""
        return tuple(dict.fromkeys(each for scope in self.open for each in scope.guard))

    def declare(self, name: str, dtype: str, sizes: Sequence[int], stored: bool = True) -> None:
        """An array of a name that is free."""
        if math.prod(sizes) > MOST_CELLS:
            raise BuildError(f"The array {name} has {math.prod(sizes):,} elements: take smaller sizes.")
        self.arrays[name] = dtype, tuple(sizes), stored

    # -------------------------------------------------------------- structure

    def begin(self, count: Affine, step: int = 1) -> bool:
        """Open a loop that goes on while its iterator times ``step`` is less than ``count``, a form of the
        iterators around; False, and nothing is open, where it never goes."""
        _, most = count.bounds(self.sizes)
        size = -(-most // step)
        if size < 1:
            return False
        scope = _Open(size)
        if not count.is_constant:
            form = Affine.iterator(len(self.sizes), step) - Affine(count.terms)
            scope.guard = (Comparison(form, "<", count.const),)
        self.open.append(scope)
        return True

    def end(self) -> None:
        """Close the innermost loop."""
        scope = self.open.pop()
        if scope.body:
            self.open[-1].body.append(Scope(scope.size, tuple(scope.body)))

    def restrict(self, comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
        """Let a condition hold for what follows in this loop; gives what held before, for ``release``."""
        before = self.open[-1].guard
        self.open[-1].guard = (*before, *comparisons)
        return before

    def release(self, before: tuple[Comparison, ...]) -> None:
        self.open[-1].guard = before

    # -------------------------------------------------------------- operations

    def assign(self, target: Element, accumulate: str, value: Value) -> None:
        """``target (accumulate)= value``; the outermost function of the value is that of the operation."""
        dtype = target.dtype
        if isinstance(value, Apply) and (value.dtype == dtype or value.function in COMPARISONS):
            function, operands = value.function, self._operands(value, dtype)
        elif holds(dtype, _dtype(value)) or isinstance(value, Constant | Iterators):
            function, operands = "", (self.operand(value),)
        elif accumulate:
            function, operands = "", (self.operand(Apply(dtype, (value,), dtype)),)
        else:
            function, operands = dtype, (self.operand(value),)
        self._put(Op(Access(target.array, target.index), accumulate, function, operands, self.guard))

    def operand(self, value: Value) -> Operand:
        """A value as an operand; of a function, the temporary that it is put into."""
        match value:
            case Element(array, index, _):
                return Access(array, index)
            case Iterators(form, _):
                return Number(form.const) if form.is_constant else form
            case Constant(number, _):
                return Number(number)
        operands = self._operands(value, value.dtype)
        self.temporaries += 1
        name = f"t{self.temporaries}"
        while name in self.arrays:
            name += "_"
        # What is larger than all arrays of the text together is not kept: one place, used again.
        kept = max((math.prod(sizes) for _, sizes, stored in self.arrays.values() if stored), default=1)
        self.declare(name, value.dtype, self.sizes, stored=math.prod(self.sizes) <= kept)
        place = Access(name, self.iterators)
        self._put(Op(place, "", value.function, operands, self.guard))
        return place

    def _operands(self, value: Apply, dtype: str) -> tuple[Operand, ...]:
        given = list(value.operands)
        first = 1 if value.function == "select" else 0  # a condition may be of any dtype
        if value.function not in (*COMPARISONS, dtype):
            for k, each in enumerate(given):
                if k >= first and isinstance(each, Element | Apply) and not holds(dtype, each.dtype):
                    given[k] = Apply(dtype, (each,), dtype)
        return tuple(self.operand(each) for each in given)

    def _put(self, op: Op) -> None:
        self.open[-1].body.append(op)

    # -------------------------------------------------------------- the whole

    def program(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Program:
        """The program; arrays that nothing names leave it."""
        buffers = tuple(
            Buffer(array, dtype, tuple(Dim(size, stored) for size in sizes), "heap", (array,))
            for array, (dtype, sizes, stored) in self.arrays.items()
        )
        return Program.make(name, tuple(inputs), tuple(outputs), buffers, tuple(self.open[0].body))


def _dtype(value: Value) -> str:
    return value.dtype


def promoted(a: str, b: str) -> str:
    """The dtype in which C computes of two: integers of fewer bits are int."""
    if a in FLOATS or b in FLOATS:
        return "f64" if "f64" in (a, b) else "f32"
    return "i64" if "i64" in (a, b) else "i32"
