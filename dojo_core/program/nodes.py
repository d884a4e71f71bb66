"""What a program is made of: scopes and operations in an immutable ordered tree, and the buffers beside it.

Source: PerfDojo (SC '25), sections 2.1 and 2.2. Inner nodes are single-dimensional iteration
scopes, leaves are operations on scalars of named arrays; child order is execution order.
An edit makes new nodes along one path and shares the rest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import count
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

from dojo_core.program.affine import Affine
from dojo_core.program.tables import Index, IndexArray, Indirect, Lookup, affine

DTYPE_BYTES: dict[str, int] = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u64": 8, "u32": 4, "u16": 2, "u8": 1, "bool": 1,
    "i128": 16,  # keys alone, in temporaries
    # stored and converted, not computed in; one in a byte
    "f8e4m3fn": 1, "f8e5m2": 1, "f8e4m3fnuz": 1, "f8e5m2fnuz": 1, "f8e8m0fnu": 1, "f6e2m3fn": 1,
    "f6e3m2fn": 1, "f4e2m1fn": 1, "i4": 1, "u4": 1, "i2": 1, "u2": 1,
}  # fmt: skip

NUMBER_DTYPES = tuple(dtype for dtype in DTYPE_BYTES if dtype != "i128")
"""Those of inputs, outputs and conversions."""

Path = tuple[int, ...]  # child numbers from the root of the program down to a node


T = TypeVar("T")
Facts = dict[Callable[..., Any], Any]  # what functions found out of a node, by the function


class Factual(Protocol):
    @property
    def facts(self) -> Facts: ...


N = TypeVar("N", bound=Factual)


class derived(Generic[T]):
    """``functools.cached_property`` without the lock that it has up to Python 3.11: nodes are made by the
    thousand, and what is derived from them is the same whoever derives it."""

    def __init__(self, derive: Callable[[Any], T]) -> None:
        self.derive, self.name, self.__doc__ = derive, derive.__name__, derive.__doc__

    @overload
    def __get__(self, node: None, owner: type) -> derived[T]: ...

    @overload
    def __get__(self, node: object, owner: type) -> T: ...

    def __get__(self, node: object | None, owner: type) -> T | derived[T]:
        if node is None:
            return self
        value = node.__dict__[self.name] = self.derive(node)
        return value


def fact(derive: Callable[[N], T]) -> Callable[[N], T]:
    """A function of a program or a scope alone: computed once for each, and kept among its ``facts``."""

    @wraps(derive)
    def known(node: N) -> T:
        facts = node.facts
        if derive in facts:
            value: T = facts[derive]
            return value
        facts[derive] = value = derive(node)
        return value

    return known


class Provenance(NamedTuple):
    """Where a node came from: the move that created it (0: the start text) and its ordinal there."""

    move: int = 0
    ordinal: int = 0

    def __str__(self) -> str:
        return f"{self.move}.{self.ordinal}"


_OPAQUE = "?"  # begins the name of an array that is not known


@dataclass(frozen=True, slots=True)
class Access:
    """One scalar of an array: ``x[{0},{1}*16+{2}]``."""

    array: str
    index: tuple[Index, ...]

    @property
    def indirect(self) -> bool:
        """Does an index go through a table or an array?"""
        return Indirect in map(type, self.index)  # asked again and again: any() takes three times as long

    @property
    def indices(self) -> tuple[Access, ...]:
        """The elements of arrays that its indices are read from."""
        return tuple(
            [
                Access(lookup.source.name, lookup.at)
                for i in self.index
                if isinstance(i, Indirect)
                for lookup in i.through
                if not lookup.source.name.startswith(_OPAQUE)
            ]
        )

    @property
    def opaque(self) -> Access:
        """Without the names of arrays that its indices are read from: somewhere in the range of these. Those
        whose elements are distinct stay known to each other."""
        if not self.indices:
            return self
        number = count()  # two of them are not the same

        def hidden(lookup: Lookup) -> Lookup:
            assert isinstance(lookup.source, IndexArray)
            name = lookup.source.name if lookup.source.distinct else next(number)
            return Lookup(replace(lookup.source, name=f"{_OPAQUE}{name}"), lookup.at)

        return Access(
            self.array, tuple([i.replaced(hidden) if isinstance(i, Indirect) else i for i in self.index])
        )

    def reindexed(self, change: Callable[[Access], Access]) -> Access:
        """With its indices read from other elements; ``change`` gives affine ones."""

        def changed(lookup: Lookup) -> Lookup:
            source = lookup.source
            made = change(Access(source.name, lookup.at))
            return Lookup(IndexArray(made.array, source.least, source.most), tuple(map(affine, made.index)))

        index = tuple([i.replaced(changed) if isinstance(i, Indirect) else i for i in self.index])
        return self if index == self.index else Access(self.array, index)

    def substitute(self, images: Mapping[int, Affine]) -> Access:
        index = tuple([i.substitute(images) for i in self.index])
        return self if index == self.index else Access(self.array, index)

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


def _indirect(elements: Iterable[Access]) -> bool:
    return Indirect in [type(form) for access in elements for form in access.index]


@dataclass(frozen=True, slots=True)
class Op:
    """``target (accumulate)= function(operands) if guard marks``: one instruction.

    ``accumulate`` is ``""`` for a plain assignment, else ``+``, ``*``, ``max`` or ``min``.
    ``function`` is ``""`` for a plain copy, an infix sign, ``neg``, a function's name or a dtype's
    name (a conversion). ``prefetches``, ``stream`` (its store goes past the caches) and ``stream_load`` (its
    loads do) are marks that change no value.
    """

    target: Access
    accumulate: str
    function: str
    operands: tuple[Operand, ...]
    guard: tuple[Comparison, ...] = ()
    prefetches: tuple[Access, ...] = ()
    stream: bool = False
    stream_load: bool = False
    provenance: Provenance = field(default=Provenance(), compare=False)
    # What printing.op_text made of it: of a program's operations a move makes few anew, and each is hashed.
    printed: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def sources(self) -> tuple[Access, ...]:
        """The accesses that are operands."""
        return tuple([o for o in self.operands if isinstance(o, Access)])

    @property
    def elements(self) -> tuple[Access, ...]:
        """What it names: the target, then the accesses that are operands."""
        return (self.target, *self.sources)

    @property
    def indirect(self) -> bool:
        """Does an index of what it names go through a table or an array?"""
        return _indirect(self.elements)

    @property
    def reads(self) -> tuple[Access, ...]:
        """All that is read: the operands, then what their indices and the target's are read from; an
        accumulation reads its target besides."""
        sources = self.sources
        if _indirect((self.target, *sources)):
            return (*sources, *[index for each in (*sources, self.target) for index in each.indices])
        return sources

    def substitute(self, images: Mapping[int, Affine]) -> Op:
        """The same operation with its iterators replaced (its provenance stays)."""
        return Op(
            self.target.substitute(images),
            self.accumulate,
            self.function,
            tuple([substituted(o, images) for o in self.operands]),
            tuple(c.substitute(images) for c in self.guard) if self.guard else (),
            tuple(a.substitute(images) for a in self.prefetches) if self.prefetches else (),
            self.stream,
            self.stream_load,
            self.provenance,
        )


NOTHING: frozenset[str] = frozenset()

# Functions whose code is some twenty instructions: one counts as so many operations of generated code.
LONG_FUNCTIONS = dict.fromkeys(
    (
        "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "pow", "fmod",
    ),
    4,
)  # fmt: skip


class Summary(NamedTuple):
    """What the judges of legality ask of a subtree, gathered in one pass."""

    first_accessed: tuple[
        str, ...
    ]  # all arrays read or written, by first access: the target, then what is read
    prefetched: frozenset[str]  # all arrays that an operation prefetches (which is no access)
    marks: frozenset[str]  # all marks of scopes
    nodes: int
    height: int  # nodes on the longest path down
    unrolled: int  # operations of generated code: each once per iteration of the unrolled scopes around it
    largest: int  # iterations of the largest scope
    indirect: bool  # does an index of an element go through a table or an array?


@dataclass(frozen=True)
class Scope:
    """``size`` iterations of ``body``, 0 to size-1. ``mark`` is ``""`` or one letter of the text form."""

    size: int
    body: tuple[Node, ...]
    mark: str = ""
    provenance: Provenance = field(default=Provenance(), compare=False)

    @derived
    def facts(self) -> Facts:
        """What has been found out of it: see ``fact``."""
        return {}

    @derived
    def summary(self) -> Summary:
        """What of the subtree, this scope included, is asked most."""
        below = summary(self.body)
        return Summary(
            below.first_accessed,
            below.prefetched,
            below.marks | {self.mark} if self.mark else below.marks,
            below.nodes + 1,
            below.height + 1,
            below.unrolled * self.size if self.mark == "u" else below.unrolled,
            max(below.largest, self.size),
            below.indirect,
        )

    @derived
    def arrays(self) -> frozenset[str]:
        """Names of all arrays that operations below read or write."""
        return frozenset(self.summary.first_accessed)


Node = Scope | Op


def summary(body: tuple[Node, ...]) -> Summary:
    """What of these subtrees is asked most."""
    if len(body) == 1 and isinstance(body[0], Scope):
        return body[0].summary
    names: dict[str, None] = {}
    prefetched = marks = NOTHING
    nodes = height = unrolled = largest = 0
    indirect = False
    for child in body:
        if isinstance(child, Scope):
            below = child.summary
            names.update(dict.fromkeys(below.first_accessed))
            if below.prefetched:
                prefetched |= below.prefetched
            if below.marks:
                marks |= below.marks
            nodes += below.nodes
            unrolled += below.unrolled
            if height < below.height:
                height = below.height
            if largest < below.largest:
                largest = below.largest
            indirect = indirect or below.indirect
            continue
        names[child.target.array] = None
        for access in child.reads:
            names[access.array] = None
        if child.prefetches:
            prefetched |= {a.array for a in child.prefetches}
        nodes += 1
        unrolled += LONG_FUNCTIONS.get(child.function, 1)
        height = height or 1
        indirect = indirect or child.indirect
    return Summary(tuple(names), prefetched, marks, nodes, height, unrolled, largest, indirect)


def differing(
    before: tuple[Node, ...], after: tuple[Node, ...]
) -> tuple[int, tuple[Node, ...], tuple[Node, ...]]:
    """What is left of two bodies without the nodes that they share at their beginning and at their end,
    and the number of the first of these."""
    shorter = min(len(before), len(after))
    first = 0
    while first < shorter and before[first] is after[first]:
        first += 1
    last = 0
    while last < shorter - first and before[-1 - last] is after[-1 - last]:
        last += 1
    return first, before[first : len(before) - last], after[first : len(after) - last]


def substitute(node: Node, images: Mapping[int, Affine]) -> Node:
    """Replace iterators by affine forms throughout a subtree; provenances stay."""
    if isinstance(node, Op):
        return node.substitute(images)
    return Scope(node.size, tuple([substitute(c, images) for c in node.body]), node.mark, node.provenance)


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a buffer; where not ``materialised`` (``:N``) all its indices share one address."""

    size: int
    materialised: bool = True
    provenance: Provenance = field(default=Provenance(), compare=False)

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
    provenance: Provenance = field(default=Provenance(), compare=False)

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


@dataclass(frozen=True, slots=True)
class Domain:
    """Where the values of an input lie, bounds included: what it is promised to be, and is drawn from.
    ``distinct``: besides, no two of its elements are the same."""

    array: str
    low: float
    high: float
    distinct: bool = False

    def __str__(self) -> str:
        ends = f"{number_text(self.low)} {number_text(self.high)}"
        return f"domain {self.array} {ends}" + (" distinct" if self.distinct else "")


class Leaf(NamedTuple):
    """An operation with where it stands: its path and the scopes around it, outermost first."""

    op: Op
    path: Path
    scopes: tuple[Scope, ...]


def text_hash(text: str) -> str:
    """The hash of the program whose canonical text this is: 24 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def splice(body: tuple[Node, ...], path: Path, count: int, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` with ``count`` siblings from ``path`` on replaced by ``nodes``; all else is shared."""
    first = path[0]
    if len(path) == 1:
        return body[:first] + nodes + body[first + count :]
    scope = body[first]
    assert isinstance(scope, Scope)
    changed = Scope(scope.size, splice(scope.body, path[1:], count, nodes), scope.mark, scope.provenance)
    return (*body[:first], changed, *body[first + 1 :])


def leaves(body: tuple[Node, ...], path: Path = (), scopes: tuple[Scope, ...] = ()) -> tuple[Leaf, ...]:
    """Every operation of a body in tree order."""
    operations: list[Leaf] = []

    def gather(body: tuple[Node, ...], path: Path, scopes: tuple[Scope, ...]) -> None:
        for number, node in enumerate(body):
            if isinstance(node, Op):
                operations.append(Leaf(node, (*path, number), scopes))
            else:
                gather(node.body, (*path, number), (*scopes, node))

    gather(body, path, scopes)
    return tuple(operations)


def walk(
    body: tuple[Node, ...], path: Path = (), scopes: tuple[Scope, ...] = ()
) -> Iterator[tuple[Node, Path, tuple[Scope, ...]]]:
    """Every node in tree order (a scope before its children) with its path and the scopes above."""
    for number, node in enumerate(body):
        node_path = (*path, number)
        yield node, node_path, scopes
        if isinstance(node, Scope):
            yield from walk(node.body, node_path, (*scopes, node))
