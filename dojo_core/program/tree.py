"""The program: an immutable ordered tree of scopes and operations, and the buffers beside it.

Source: PerfDojo (SC '25), sections 2.1 and 2.2. Inner nodes are single-dimensional iteration
scopes, leaves are operations on scalars of named arrays; child order is execution order.
An edit makes new nodes along one path and shares the rest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from dojo_core.program.affine import Affine

DTYPE_BYTES: dict[str, int] = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1,
}  # fmt: skip

Path = tuple[int, ...]  # child numbers from the root of the program down to a node


class Birth(NamedTuple):
    """Where a node came from: the move that created it (0: the start text) and its ordinal there."""

    move: int = 0
    ordinal: int = 0

    def __str__(self) -> str:
        return f"{self.move}.{self.ordinal}"


@dataclass(frozen=True, slots=True)
class Access:
    """One scalar of an array: ``x[{0},{1}*16+{2}]``."""

    array: str
    index: tuple[Affine, ...]

    def substitute(self, images: Mapping[int, Affine]) -> Access:
        return Access(self.array, tuple(i.substitute(images) for i in self.index))

    def __str__(self) -> str:
        return f"{self.array}[{','.join(map(str, self.index))}]"


@dataclass(frozen=True, slots=True)
class Number:
    """A literal operand. Whole values are held as ``int``, others as ``float``."""

    value: int | float

    def __str__(self) -> str:
        return number_text(self.value)


Operand = Access | Number | Affine


def number_text(value: int | float) -> str:
    """The shortest text that reads back as the same double; infinities are ``inf``, NaN ``nan``."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 2**53 and not (value == 0 and math.copysign(1, value) < 0):
        return str(int(value))
    return repr(value)


def substituted(operand: Operand, images: Mapping[int, Affine]) -> Operand:
    """An operand with its iterators replaced; an iterator expression without iterators is a number."""
    if isinstance(operand, Number):
        return operand
    result = operand.substitute(images)
    return Number(result.const) if isinstance(result, Affine) and result.is_constant else result


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition of a guard, ``form relation bound``; relation is ``<``, ``>=`` or ``==``."""

    form: Affine  # its constant is 0
    relation: str
    bound: int

    def substitute(self, images: Mapping[int, Affine]) -> Comparison:
        form = self.form.substitute(images)
        return Comparison(Affine(form.terms), self.relation, self.bound - form.const)

    def holds(self, iterators: tuple[int, ...]) -> bool:
        value = self.form.value(iterators)
        if self.relation == "<":
            return value < self.bound
        return value >= self.bound if self.relation == ">=" else value == self.bound

    def __str__(self) -> str:
        return f"{self.form} {self.relation} {self.bound}"


@dataclass(frozen=True, slots=True)
class Op:
    """``target (accumulate)= function(operands) if guard marks``: one instruction.

    ``accumulate`` is ``""`` for a plain assignment, else ``+``, ``*``, ``max`` or ``min``.
    ``function`` is ``""`` for a plain copy, an infix sign, ``neg``, a function's name or a dtype's
    name (a conversion). ``prefetches`` and ``stream`` are marks that change no value.
    """

    target: Access
    accumulate: str
    function: str
    operands: tuple[Operand, ...]
    guard: tuple[Comparison, ...] = ()
    prefetches: tuple[Access, ...] = ()
    stream: bool = False
    birth: Birth = field(default=Birth(), compare=False)

    @property
    def reads(self) -> tuple[Access, ...]:
        """The accesses read as operands; an accumulation reads its target besides."""
        return tuple(o for o in self.operands if isinstance(o, Access))

    def substitute(self, images: Mapping[int, Affine]) -> Op:
        """The same operation with its iterators replaced (its birth stays)."""
        return Op(
            self.target.substitute(images),
            self.accumulate,
            self.function,
            tuple(substituted(o, images) for o in self.operands),
            tuple(c.substitute(images) for c in self.guard) if self.guard else (),
            tuple(a.substitute(images) for a in self.prefetches) if self.prefetches else (),
            self.stream,
            self.birth,
        )


@dataclass(frozen=True)
class Scope:
    """``size`` iterations of ``body``, 0 to size-1. ``mark`` is ``""`` or one letter of the text form."""

    size: int
    body: tuple[Node, ...]
    mark: str = ""
    birth: Birth = field(default=Birth(), compare=False)

    @cached_property
    def first_accessed(self) -> tuple[str, ...]:
        """Names of all arrays accessed below, by first access (prefetches, which touch nothing, aside)."""
        return _first_accessed(self.body)

    @cached_property
    def arrays(self) -> frozenset[str]:
        """The same names as a set."""
        return frozenset(self.first_accessed)

    @cached_property
    def prefetched(self) -> frozenset[str]:
        """Names of all arrays that an operation below prefetches."""
        return _prefetched(self.body)

    @cached_property
    def nodes(self) -> int:
        """How many nodes the subtree has, this one included."""
        return 1 + sum(c.nodes if isinstance(c, Scope) else 1 for c in self.body)

    @cached_property
    def height(self) -> int:
        """How many nodes the longest path down has, this one included."""
        return 1 + max((c.height if isinstance(c, Scope) else 1 for c in self.body), default=0)


Node = Scope | Op


def _prefetched(body: tuple[Node, ...]) -> frozenset[str]:
    names: set[str] = set()
    for child in body:
        if isinstance(child, Scope):
            names |= child.prefetched
        else:
            names.update(a.array for a in child.prefetches)
    return frozenset(names)


def _first_accessed(body: tuple[Node, ...]) -> tuple[str, ...]:
    """Arrays in the order in which operations name them first: the target, then what is read."""
    names: dict[str, None] = {}
    for child in body:
        if isinstance(child, Scope):
            names.update(dict.fromkeys(child.first_accessed))
        else:
            names[child.target.array] = None
            for operand in child.operands:
                if isinstance(operand, Access):
                    names[operand.array] = None
    return tuple(names)


def substitute(node: Node, images: Mapping[int, Affine]) -> Node:
    """Replace iterators by affine forms throughout a subtree; births stay."""
    if isinstance(node, Op):
        return node.substitute(images)
    return Scope(node.size, tuple(substitute(c, images) for c in node.body), node.mark, node.birth)


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a buffer; where not ``materialised`` (``:N``) all its indices share one address."""

    size: int
    materialised: bool = True
    birth: Birth = field(default=Birth(), compare=False)

    def __str__(self) -> str:
        return str(self.size) if self.materialised else f"{self.size}:N"


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where one or several arrays live: ``name dtype [dims] location -> arrays``."""

    name: str
    dtype: str
    dims: tuple[Dim, ...]
    location: str
    arrays: tuple[str, ...]
    birth: Birth = field(default=Birth(), compare=False)

    @property
    def cells(self) -> int:
        """Number of addresses that one instance of the buffer takes."""
        return math.prod(d.size for d in self.dims if d.materialised)

    @property
    def bytes(self) -> int:
        return self.cells * DTYPE_BYTES[self.dtype]

    def __str__(self) -> str:
        held = "" if self.arrays == (self.name,) else f" -> {', '.join(self.arrays)}"
        return f"{self.name} {self.dtype} [{', '.join(map(str, self.dims))}] {self.location}{held}"


class Leaf(NamedTuple):
    """An operation with where it stands: its path and the scopes around it, outermost first."""

    op: Op
    path: Path
    scopes: tuple[Scope, ...]


@dataclass(frozen=True)
class Program:
    """A kernel. Build one with ``parse`` or ``Program.make``, which put the buffers in canonical order."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Node, ...]
    age: int = field(default=0, compare=False)  # moves played since the start text

    @staticmethod
    def make(
        name: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        buffers: tuple[Buffer, ...],
        body: tuple[Node, ...],
        age: int = 0,
    ) -> Program:
        """A program with buffers in canonical order: inputs, outputs, temporaries by first access.

        A buffer that no operation touches and that is no input or output leaves, and prefetches of its
        arrays with it.
        """
        home = {a: b for b in buffers for a in b.arrays}
        ordered: dict[str, Buffer] = {}
        for array in inputs + outputs:
            if array in home:
                ordered.setdefault(home[array].name, home[array])
        for array in _first_accessed(body):
            if array in home:
                ordered.setdefault(home[array].name, home[array])
        gone = {a for a in _prefetched(body) if a not in home or home[a].name not in ordered}
        if gone:
            body = tuple(_without_prefetches(n, gone) for n in body)
        return Program(name, inputs, outputs, tuple(ordered.values()), body, age)

    def edit(
        self, body: tuple[Node, ...] | None = None, buffers: tuple[Buffer, ...] | None = None
    ) -> Program:
        """The same kernel with another body or other buffers, canonically ordered."""
        return Program.make(
            self.name,
            self.inputs,
            self.outputs,
            self.buffers if buffers is None else buffers,
            self.body if body is None else body,
            self.age,
        )

    @cached_property
    def buffer_of(self) -> dict[str, Buffer]:
        """The buffer that holds each array."""
        return {a: b for b in self.buffers for a in b.arrays}

    @cached_property
    def interface(self) -> frozenset[str]:
        """Arrays that the caller owns: inputs and outputs."""
        return frozenset(self.inputs + self.outputs)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every operation in tree order."""
        return tuple(leaves(self.body))

    @cached_property
    def text(self) -> str:
        """The canonical text."""
        from dojo_core.program.printing import print_program

        return print_program(self)

    @cached_property
    def hash(self) -> str:
        """Stable content hash of the canonical text: the key of every cache and record."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    def __str__(self) -> str:
        return self.text

    def node(self, path: Path) -> Node:
        """The node at a path. Raises IndexError where there is none."""
        node: Node = self.body[path[0]]
        for child in path[1:]:
            if isinstance(node, Op):
                raise IndexError(path)
            node = node.body[child]
        return node

    def scopes_above(self, path: Path) -> tuple[Scope, ...]:
        """The scopes strictly above a path, outermost first."""
        result: list[Scope] = []
        body = self.body
        for child in path[:-1]:
            scope = body[child]
            assert isinstance(scope, Scope)
            result.append(scope)
            body = scope.body
        return tuple(result)

    def siblings(self, path: Path) -> tuple[Node, ...]:
        """The children of the node above a path (the root's for a path of length 1)."""
        above = self.scopes_above(path)
        return above[-1].body if above else self.body

    def splice(self, path: Path, count: int, nodes: tuple[Node, ...]) -> Program:
        """Replace ``count`` siblings from ``path`` on by ``nodes``."""
        return self.edit(body=splice(self.body, path, count, nodes))


def splice(body: tuple[Node, ...], path: Path, count: int, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` with ``count`` siblings from ``path`` on replaced by ``nodes``; all else is shared."""
    first = path[0]
    if len(path) == 1:
        return body[:first] + nodes + body[first + count :]
    scope = body[first]
    assert isinstance(scope, Scope)
    changed = replace(scope, body=splice(scope.body, path[1:], count, nodes))
    return (*body[:first], changed, *body[first + 1 :])


def _without_prefetches(node: Node, arrays: set[str]) -> Node:
    if isinstance(node, Scope):
        return replace(node, body=tuple(_without_prefetches(c, arrays) for c in node.body))
    return replace(node, prefetches=tuple(a for a in node.prefetches if a.array not in arrays))


def leaves(body: tuple[Node, ...], path: Path = (), scopes: tuple[Scope, ...] = ()) -> Iterator[Leaf]:
    """Every operation of a body in tree order."""
    for number, node in enumerate(body):
        if isinstance(node, Op):
            yield Leaf(node, (*path, number), scopes)
        else:
            yield from leaves(node.body, (*path, number), (*scopes, node))


def walk(
    body: tuple[Node, ...], path: Path = (), scopes: tuple[Scope, ...] = ()
) -> Iterator[tuple[Node, Path, tuple[Scope, ...]]]:
    """Every node in tree order (a scope before its children) with its path and the scopes above."""
    for number, node in enumerate(body):
        here = (*path, number)
        yield node, here, scopes
        if isinstance(node, Scope):
            yield from walk(node.body, here, (*scopes, node))
