"""The exact oracle: what a program computes, instance by instance and symbolically, and whether its storage,
its threads and its lanes keep that meaning. For small extents.

Two executions run side by side. The *logical* one keeps, for each (array, index), the write that defined it
last and its value as a term; the *physical* one keeps, for each address, which write left its value there.
A program is valid (docs/legality.md) when each read finds at its address the write
that defines it logically, and no two iterations of a parallel scope touch one address, one of them writing.
That is stricter than comparing values, which may be equal by chance, and says which condition fails.

Terms are hash-consed: two programs computed with one ``Terms`` agree where their terms are the same number.
An accumulation is a sequence where the policy is ``strict`` and the operator rounds, else a multiset; under
``algebraic`` a quotient is a product with the divisor's reciprocal, under ``tf32`` a number rounded to TF32
is itself, and but under ``strict`` an ``fma`` a product and a sum. A read that no write defines is poison.

What index arrays hold, and all that goes into them, are numbers besides: of inputs a drawing from their
domains, the same in every run, so that what is accessed through one is a known cell.

The lanes of a vectorised scope read before any of them writes, as one instruction does.

On a GPU each thread has a ``local`` and ``stack`` of its own: an operation reads and writes the copies of the
threads that execute it, and every one of those must hold the value that the program says. A ``:w``
scope of one accumulation whose target ignores the lane is one operation of all lanes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from random import Random

import numpy as np

from dojo_core.program.arithmetic import ACCUMULATIONS, Meaning
from dojo_core.program.dtypes import COMPARISONS, FLOATS, OF_BITS, extremes
from dojo_core.program.functions import IDENTITY
from dojo_core.program.tables import Index, Indirect, Table
from dojo_core.program.tree import (
    DTYPE_BYTES,
    Access,
    Buffer,
    Comparison,
    Node,
    Number,
    Op,
    Path,
    Program,
    Scope,
)

POISON = 0
Indices = tuple[int, ...]
Cell = tuple[str, Indices]
_Place = Callable[[Indices, Callable[[str, Indices], int] | None], Indices]  # from iterators and elements


@dataclass(frozen=True)
class Outcome:
    """``outputs``: terms of each output in row-major order. ``fault``: the first violation, or None; its
    first word is a code: race, lanes, clobber, lifetime, bounds, input."""

    outputs: dict[str, tuple[int, ...]]
    fault: str | None

    @property
    def defined(self) -> bool:
        """Does no output depend on a cell that nothing wrote?"""
        return all(POISON not in terms for terms in self.outputs.values())


class Terms:
    """The table of terms; number 0 is poison."""

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {("poison",): POISON}
        self.kept: list[tuple] = [("poison",)]
        self.one = self.number(1)
        self.identities: dict[tuple[str, str], int] = {}  # by operator and dtype

    def make(self, *term: object) -> int:
        number = self.numbers.setdefault(term, len(self.kept))
        if number == len(self.kept):
            self.kept.append(term)
        return number

    def number(self, value: int | float, kind: str = "f64") -> int:
        """A literal, clipped to the range of an integer dtype."""
        if kind[0] in "iu":
            low, high = extremes(kind)
            value = min(max(value, low), high)
        return self.make("number", value if isinstance(value, int) else repr(value))

    def call(self, function: str, operands: list[int], policy: str) -> int:
        if POISON in operands:
            return POISON
        if not function:
            return operands[0]
        one = self.one
        if function == "*" and one in operands:  # exact
            return operands[1] if operands[0] == one else operands[0]
        if function in ("+", "*"):  # exactly commutative
            operands = sorted(operands)
        if function == "tf32" and policy == "tf32":
            return operands[0]
        if function == "/" and policy == "algebraic":
            inverse = self.make("reciprocal", operands[1])
            return inverse if operands[0] == one else self.make("*", *sorted((operands[0], inverse)))
        return self.make(function, *operands)

    def converted(self, term: int, kind: str, mixed: bool) -> int:
        """What an operation on another dtype leaves in one."""
        return self.make("as", kind, term) if mixed and term != POISON else term

    def accumulate(self, operator: str, before: int, term: int, kind: str, regroup: bool) -> int:
        if POISON in (before, term):
            return POISON
        name = operator + "="
        identity = self.identities.get((operator, kind))
        if identity is None:
            identity = self.identities[operator, kind] = self.number(IDENTITY[operator], kind)
        if not regroup:
            # Adding to the identity is exact, as is adding the identity to a number.
            return term if before == identity else self.make(name, before, term)
        times: Counter[int] = Counter()  # a sum that adds itself to itself doubles them
        for each in (before, term):
            known = self.kept[each]
            if known[0] == name:
                times.update(dict(known[1:]))
            elif each != identity:
                times[each] += 1
        if sum(times.values()) < 2:
            return next(iter(times), identity)
        return self.make(name, *sorted(times.items()))


UNORDERED = "pgbw"
THREADS_OWN = ("local", "stack")


@dataclass(slots=True)
class _Seen:
    """Who touched an address within one run of a scope whose iterations are unordered."""

    region: int = -1
    reader: int = -1  # an iteration that read it; -2: several
    writer: int = -1


@dataclass(slots=True)
class _Address:
    """One address: the write whose value it holds, and who touched it, by nesting of unordered scopes."""

    write: int = -1
    seen: list[_Seen] = field(default_factory=list)


def run(program: Program, policy: str = "reassoc", terms: Terms | None = None) -> Outcome:
    """What the program computes, and the first place where its execution would differ."""
    return _Run(program, policy, terms or Terms()).outcome()


class _Run:
    def __init__(self, program: Program, policy: str, terms: Terms) -> None:
        self.program, self.policy, self.terms = program, policy, terms
        self.fault: str | None = None
        self.plans: dict[int, _Plan] = {}  # by the operation's id
        self.logical: dict[Cell, tuple[int, int]] = {}  # (write, term)
        self.memory: dict[str, dict[Indices, _Address]] = {b.name: {} for b in program.buffers}
        self.writes = 0
        self.levels: list[tuple[int, int]] = []  # (run, iteration) of the unordered scopes executed
        self.regions = 0
        self.above: list[Scope] = []  # the scopes being executed
        self.threads: Sequence[int] = (0,)  # that execute the operation at hand
        self.by_thread = _thread_dims(program) if _on_gpu(program.body) else {}
        self.feeds = _feeds(program)
        self.meaning = Meaning(program)
        self.numbers: dict[Cell, float] = {}  # what the cells of these arrays hold
        self.owned: dict[Path, list[str]] = {}
        for buffer in program.buffers:
            if buffer.location != "heap":
                self.owned.setdefault(_owner(program, buffer), []).append(buffer.name)
        self.stored = {array: _stored(buffer) for array, buffer in program.buffer_of.items()}
        written = {program.buffer_of[leaf.op.target.array].name for leaf in program.leaves}
        self.given: dict[str, Buffer] = {}  # inputs that nothing can change: a cell comes when it is read
        for array in program.inputs:
            buffer = program.buffer_of[array]
            if buffer.name not in written and buffer.arrays == (array,) and buffer.location == "heap":
                self.given[array] = buffer
                continue
            for flat, index in enumerate(_cells(buffer)):
                self.fill(buffer, array, index, flat)

    def fill(self, buffer: Buffer, array: str, index: Indices, flat: int) -> tuple[int, int]:
        """A cell of an input, as the caller left it: its write and its term."""
        self.writes += 1
        if array in self.feeds:
            self.numbers[array, index] = _drawn(self.program, array, flat)
        defined = self.logical[array, index] = self.writes, self.terms.make("input", array, flat)
        self.memory[buffer.name][self.stored[array].place(index)] = _Address(self.writes)
        return defined

    def defining(self, cell: Cell) -> tuple[int, int]:
        """The write that defined a cell last, and its term."""
        defined = self.logical.get(cell)
        if defined is not None:
            return defined
        buffer = self.given.get(cell[0])
        if buffer is None:
            return 0, POISON
        flat = 0
        for at, dim in zip(cell[1], buffer.dims, strict=True):
            if not 0 <= at < dim.size:
                return 0, POISON
            flat = flat * dim.size + at
        return self.fill(buffer, cell[0], cell[1], flat)

    def outcome(self) -> Outcome:
        self.body(self.program.body, (), ())
        outputs: dict[str, tuple[int, ...]] = {}
        for array in self.program.inputs + self.program.outputs:
            if array in self.given and array not in self.program.outputs:
                continue
            buffer = self.program.buffer_of[array]
            place, memory = self.stored[array].place, self.memory[buffer.name]
            found: list[int] = []
            for index in _cells(buffer):
                write, term = self.defining((array, index))
                if write:
                    held = memory.get(place(index))
                    if held is None or held.write != write:
                        self.blame("input" if array in self.program.inputs else "clobber", array, index)
                found.append(term)
            if array in self.program.outputs:
                outputs[array] = tuple(found)
        return Outcome(outputs, self.fault)

    def blame(self, code: str, array: str, index: Indices) -> None:
        if self.fault is None:
            self.fault = f"{code} {array}[{','.join(map(str, index))}]"

    def body(self, nodes: tuple[Node, ...], path: Path, iterators: Indices) -> None:
        for number, node in enumerate(nodes):
            here = (*path, number)
            if isinstance(node, Op):
                self.threads = self.executing(node, iterators)
                self.one(node, iterators)
            elif node.mark == "v" and len(node.body) == 1 and isinstance(node.body[0], Op):
                self.threads = self.executing(node.body[0], iterators)
                self.lanes(node.body[0], node, here, iterators)
            elif _reduces(node, len(iterators)):
                self.warp(node, here, iterators)
            else:
                self.scope(node, here, iterators)

    def scope(self, scope: Scope, path: Path, iterators: Indices) -> None:
        unordered = scope.mark in UNORDERED and scope.mark != ""
        self.regions += unordered
        region = self.regions
        self.above.append(scope)
        for value in range(scope.size):
            if unordered:
                self.levels.append((region, value))
            for name in self.owned.get(path, ()):
                self.memory[name] = {}
            self.body(scope.body, path, (*iterators, value))
            if unordered:
                self.levels.pop()
        self.above.pop()

    def executing(self, op: Op, iterators: Indices) -> Sequence[int]:
        """The threads of the block that execute an operation here."""
        marks = [s.mark for s in self.above]
        if not self.by_thread or "g" not in marks:
            return (0,)
        copies = self.program.buffer_of[op.target.array].location in THREADS_OWN
        if "b" not in marks:
            inner = self.above[len(marks) - 1 - marks[::-1].index("g")]
            return range(_block(inner.body)) if copies else (0,)
        first, width = 0, _width(self.above[marks.index("b")])
        for scope, value in zip(self.above, iterators, strict=False):
            if scope.mark == "b":
                first = first * scope.size + value
        if "w" in marks:
            return (first * width + iterators[marks.index("w")],)
        return range(first * width, (first + 1) * width) if copies else (first * width,)

    def warp(self, scope: Scope, path: Path, iterators: Indices) -> None:
        """A reduction over the lanes of a warp: all read, then one writes, or each its own copy."""
        (op,) = scope.body
        assert isinstance(op, Op)
        writing = self.executing(op, iterators)
        self.regions += 1
        region = self.regions
        self.above.append(scope)
        done: list[_Evaluated] = []
        for lane in range(scope.size):
            evaluated = self.evaluate(op, (*iterators, lane))
            if evaluated is not None:
                self.threads = self.executing(op, (*iterators, lane))
                self.levels.append((region, lane))
                self.check_reads(evaluated)
                self.levels.pop()
                done.append(evaluated)
        self.above.pop()
        self.threads = writing
        if done:
            self.touch(done[0].target, done[0].before, False)
            self.store(done[-1])

    # ------------------------------------------------------------------ one instance

    def one(self, op: Op, iterators: Indices) -> None:
        evaluated = self.evaluate(op, iterators)
        if evaluated is not None:
            self.check_reads(evaluated)
            if op.accumulate:
                self.touch(evaluated.target, evaluated.before, False)
            self.store(evaluated)

    def lanes(self, op: Op, scope: Scope, path: Path, iterators: Indices) -> None:
        """All lanes read, then all write; a reduction into one cell is one operation."""
        for name in self.owned.get(path, ()):
            self.memory[name] = {}
        found = [self.evaluate(op, (*iterators, lane)) for lane in range(scope.size)]
        active = [e for e in found if e is not None]
        for evaluated in active:
            self.check_reads(evaluated)
        addresses = [self.at(e.target) for e in active]
        single = len(set(addresses)) == 1
        if len(set(addresses)) < len(active) and not (single and op.accumulate):
            self.blame("lanes", *active[0].target)
        for number, evaluated in enumerate(active):
            if op.accumulate and not (single and number):
                self.touch(evaluated.target, evaluated.before, False)
        for evaluated in active:
            self.store(evaluated)

    def evaluate(self, op: Op, iterators: Indices) -> _Evaluated | None:
        """The logical side: values from the defining writes; the target's new value at once."""
        plan = self.plans.get(id(op))
        if plan is None:
            plan = self.plans[id(op)] = self.plan(op)
        if plan.holds is not None and not plan.holds(iterators):
            return None
        terms, kind = self.terms, plan.dtype
        reads: list[tuple[Cell, int]] = []
        values: list[int] = []
        for array, place in plan.indices:
            cell = array, place(iterators, None)
            reads.append((cell, self.defining(cell)[0]))
        for operand in plan.operands:
            if isinstance(operand, _Read):
                cell = operand.array, operand.index(iterators, self.element)
                write, term = self.defining(cell)
                reads.append((cell, write))
                if operand.converted:  # read exactly, so that n = 1/x and x*n are what x/x is
                    term = terms.converted(term, kind, True)
                values.append(term)
            elif isinstance(operand, int):
                values.append(operand)
            else:
                values.append(terms.number(operand(iterators)))
        function, mixed = op.function, plan.mixed
        if function == "fma" and self.policy != "strict":  # its one rounding is another's two
            factors = terms.call("*", values[:2], self.policy)
            values = [terms.converted(factors, kind, any(mixed[:2])), values[2]]
            function, mixed = "+", mixed[2:]
        term = terms.converted(terms.call(function, values, self.policy), kind, True in mixed)
        target: Cell = op.target.array, plan.target(iterators, self.element)
        before, held = self.defining(target)
        if op.accumulate:
            term = terms.accumulate(op.accumulate, held, term, kind, plan.regroup)
        if op.target.array in self.feeds:
            self.compute(op, plan, iterators, target)
        self.writes += 1
        self.logical[target] = self.writes, term
        return _Evaluated(reads, target, before, self.writes)

    def element(self, array: str, at: Indices) -> int:
        """What an index array holds; far out of any bounds where it holds nothing."""
        self.defining((array, at))  # which fills a cell of an input
        return int(self.numbers.get((array, at), -(10**9)))

    def compute(self, op: Op, plan: _Plan, iterators: Indices, target: Cell) -> None:
        """The number that an operation leaves in a cell, nothing where it reads nothing."""
        operands = []
        for operand, written in zip(plan.operands, op.operands, strict=True):
            if isinstance(operand, _Read):
                number = self.numbers.get((operand.array, operand.index(iterators, self.element)))
                if number is None:
                    self.numbers.pop(target, None)
                    return
                operands.append(np.asarray(number))
            elif isinstance(written, Number):
                operands.append(np.asarray(written.value))
            else:
                operands.append(np.asarray(operand(iterators)))
        with np.errstate(all="ignore"):
            value = self.meaning.computed(op, operands)
            if op.accumulate:
                if target not in self.numbers:
                    return
                term = self.meaning.term(value, target[0])
                value = ACCUMULATIONS[op.accumulate](np.asarray(self.numbers[target]), term)
            self.numbers[target] = self.meaning.stored(np.asarray(value), target[0]).item()

    def plan(self, op: Op) -> _Plan:
        """What is the same in all instances of an operation."""
        kind = self.program.buffer_of[op.target.array].dtype
        computed_in_target = op.function not in (*COMPARISONS, *DTYPE_BYTES, *OF_BITS, "select")
        operands: list[_Read | int | Callable[[Indices], int]] = []
        mixed: list[bool] = []
        for operand in op.operands:
            other = isinstance(operand, Access) and self.program.buffer_of[operand.array].dtype != kind
            mixed.append(other and not computed_in_target)
            if isinstance(operand, Access):
                operands.append(_Read(operand.array, _index(operand.index), other and computed_in_target))
            elif isinstance(operand, Number):
                operands.append(self.terms.number(operand.value, kind))
            else:
                operands.append(operand.value)
        regroup = self.policy != "strict" or op.accumulate in ("max", "min") or kind[0] not in "fb"
        holds = _holds(op.guard) if op.guard else None
        target = _index(op.target.index)
        accesses = [op.target, *[o for o in op.operands if isinstance(o, Access)]]
        looked = [k for a in accesses for i in a.index if isinstance(i, Indirect) for k, _ in i.lookups]
        indices = tuple((k.source.name, _index(k.at)) for k in looked if not isinstance(k.source, Table))
        return _Plan(holds, target, kind, tuple(operands), indices, tuple(mixed), regroup or kind == "bool")

    def check_reads(self, evaluated: _Evaluated) -> None:
        for cell, write in evaluated.reads:
            self.touch(cell, write, False)

    def store(self, evaluated: _Evaluated) -> None:
        self.touch(evaluated.target, evaluated.write, True)

    # ------------------------------------------------------------------ addresses

    def at(self, cell: Cell) -> tuple[str, Indices]:
        stored = self.stored[cell[0]]
        return stored.name, stored.place(cell[1])

    def touch(self, cell: Cell, write: int, writing: bool) -> None:
        """Read or write an address; ``write`` is the write that a read must find there (0: any)."""
        array, index = cell
        stored = self.stored[array]
        place = stored.places.get(index)
        if place is None:
            if not all(0 <= at < size for at, size in zip(index, stored.sizes, strict=True)):
                self.blame("bounds", array, index)
                return
            place = stored.places[index] = stored.place(index)
        if stored.name in self.by_thread:
            own = tuple(index[k] for k in self.by_thread[stored.name])
            for thread in self.threads:
                self.touch_at(cell, stored.name, (*own, thread), write, writing)
        else:
            self.touch_at(cell, stored.name, place, write, writing)

    def touch_at(self, cell: Cell, buffer: str, place: Indices, write: int, writing: bool) -> None:
        memory = self.memory[buffer]
        address = memory.get(place)
        if address is None:
            address = memory[place] = _Address()
        if self.levels:
            self.race(address, cell, writing)
        if writing:
            address.write = write
        elif write and address.write != write:
            self.blame("lifetime" if address.write < 0 else "clobber", *cell)

    def race(self, address: _Address, cell: Cell, writing: bool) -> None:
        """Two iterations of a scope without an order at one address, one of which writes."""
        while len(address.seen) < len(self.levels):
            address.seen.append(_Seen())
        for seen, (region, iteration) in zip(address.seen, self.levels, strict=False):
            if seen.region != region:
                seen.region, seen.reader, seen.writer = region, -1, -1
            mine = (-1, iteration)
            if seen.writer not in mine or (writing and seen.reader not in mine):
                self.blame("race", *cell)
            if writing:
                seen.writer = iteration
            else:
                seen.reader = iteration if seen.reader in mine else -2


@dataclass(frozen=True, slots=True)
class _Read:
    """An operand that is read, ``converted`` to the dtype that is computed in."""

    array: str
    index: _Place
    converted: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """An operation made ready. Operands are reads, terms of numbers, or numbers from iterators; ``mixed``
    says which are of another dtype than the target and not converted to it."""

    holds: Callable[[Indices], bool] | None
    target: _Place
    dtype: str
    operands: tuple[_Read | int | Callable[[Indices], int], ...]
    indices: tuple[tuple[str, _Place], ...]  # arrays that indices are read from, and where
    mixed: tuple[bool, ...]
    regroup: bool


@dataclass(slots=True)
class _Evaluated:
    """An instance: the cells it reads with the writes that define them, its target, the write that
    defined the target before, and its own write."""

    reads: list[tuple[Cell, int]]
    target: Cell
    before: int
    write: int


def _looked_up(op: Op) -> set[str]:
    """The arrays that an operation reads indices from."""
    accesses = [op.target, *[o for o in op.operands if isinstance(o, Access)]]
    lookups = [k for a in accesses for i in a.index if isinstance(i, Indirect) for k, _ in i.lookups]
    return {k.source.name for k in lookups if not isinstance(k.source, Table)}


def _feeds(program: Program) -> set[str]:
    """The arrays that indices are read from, and what goes into these."""
    ops = [leaf.op for leaf in program.leaves]
    feeds = set().union(*map(_looked_up, ops)) if ops else set()
    while True:
        into = [op for op in ops if op.target.array in feeds]
        more = {o.array for op in into for o in op.operands if isinstance(o, Access)}
        more |= set().union(*map(_looked_up, into))
        if more <= feeds:
            return feeds
        feeds |= more


def _drawn(program: Program, array: str, flat: int) -> float:
    """A value of an input within its domain, always the same one."""
    rng, domain = Random(f"{array} {flat}"), program.domain_of(array)
    dtype = program.buffer_of[array].dtype
    if dtype in FLOATS:
        return rng.uniform(domain.low, domain.high) if domain else rng.gauss(0, 4)
    low, high = (math.ceil(domain.low), math.floor(domain.high)) if domain else extremes(dtype)
    if domain and domain.distinct:
        cells = math.prod(d.size for d in program.buffer_of[array].dims)
        return Random(array).sample(range(low, high + 1), cells)[flat]
    return rng.randint(low, high)


def _owner(program: Program, buffer: Buffer) -> Path:
    """The innermost scope that holds all accesses of a buffer (written anew here: a second opinion)."""
    common: Path | None = None
    for leaf in program.leaves:
        read = {o.array for o in leaf.op.operands if isinstance(o, Access)} | _looked_up(leaf.op)
        if not {leaf.op.target.array, *read}.isdisjoint(buffer.arrays):
            above = leaf.path[:-1]
            if common is None:
                common = above
            while common and above[: len(common)] != common:
                common = common[:-1]
    if buffer.location == "shared":
        for depth in range(len(common or ())):
            if program.node(common[: depth + 1]).mark in ("b", "w"):
                return common[:depth]
    return common or ()


# ---------------------------------------------------------------------------- threads, written anew here too


def _on_gpu(body: tuple[Node, ...]) -> bool:
    return any(isinstance(n, Scope) and (n.mark in ("g", "b", "w") or _on_gpu(n.body)) for n in body)


def _width(scope: Scope) -> int:
    """Lanes of the ``:w`` scopes at or below."""
    below = [_width(n) for n in scope.body if isinstance(n, Scope)]
    return max([scope.size if scope.mark == "w" else 1, *below])


def _block(body: tuple[Node, ...]) -> int:
    """Threads of the largest phase in a body."""
    threads = 1
    for node in body:
        if isinstance(node, Scope):
            if node.mark == "b":
                count, inner = node.size, node
                while isinstance(inner.body[0], Scope) and inner.body[0].mark == "b":
                    inner = inner.body[0]
                    count *= inner.size
                threads = max(threads, count * _width(node))
            else:
                threads = max(threads, _block(node.body))
    return threads


def _reduces(scope: Scope, depth: int) -> bool:
    only = scope.body[0]
    return (
        scope.mark == "w"
        and len(scope.body) == 1
        and isinstance(only, Op)
        and only.accumulate != ""
        and not any(form.uses(depth) for form in only.target.index)
    )


def _thread_dims(program: Program) -> dict[str, tuple[int, ...]]:
    """For each buffer that threads have of their own: the dimensions that each of them stores."""
    result = {}
    for buffer in program.buffers:
        if buffer.location not in THREADS_OWN:
            continue
        chosen: set[int] = set()
        for leaf in program.leaves:
            threads = {d for d, s in enumerate(leaf.scopes) if s.mark in ("b", "w")}
            for access in (leaf.op.target, *leaf.op.reads):
                if access.array in buffer.arrays:
                    chosen |= {k for k, form in enumerate(access.index) if threads & set(form.depths)}
        result[buffer.name] = tuple(k for k in _kept(buffer) if k not in chosen)
    return result


def _cells(buffer: Buffer) -> Iterator[Indices]:
    return product(*(range(d.size) for d in buffer.dims))


def _kept(buffer: Buffer) -> tuple[int, ...]:
    return tuple(k for k, d in enumerate(buffer.dims) if d.materialised)


@dataclass(frozen=True, slots=True)
class _Stored:
    """Where an array's cells lie: its buffer, the sizes, the address of an index, those found so far."""

    name: str
    sizes: tuple[int, ...]
    place: Callable[[Indices], Indices]
    places: dict[Indices, Indices] = field(default_factory=dict)


def _stored(buffer: Buffer) -> _Stored:
    kept = _kept(buffer)
    whole = len(kept) == len(buffer.dims)
    place = (lambda index: index) if whole else (lambda index: tuple(index[k] for k in kept))
    return _Stored(buffer.name, tuple(d.size for d in buffer.dims), place)


def _look(values: tuple[int, ...], sizes: tuple[int, ...], *at: int) -> int:
    """A table's value; far out of any bounds where there is no such place."""
    flat = 0
    for index, size in zip(at, sizes, strict=True):
        if not 0 <= index < size:
            return -(10**9)
        flat = flat * size + index
    return values[flat]


def _source(form: Index) -> str:
    if isinstance(form, Indirect):
        looked = []
        for k, c in form.lookups:
            at = ", ".join(map(_source, k.at))
            if isinstance(k.source, Table):
                looked.append(f"look({k.source.values}, {k.source.dims}, {at})*{c}")
            else:
                looked.append(f"e({k.source.name!r}, ({at}{',' * bool(k.at)}))*{c}")
        return "+".join([*looked, f"({_source(form.rest)})"])
    return "+".join([f"i[{d}]*{c}" for d, c in form.terms] + [str(form.const)]).replace("+-", "-")


@lru_cache(maxsize=100_000)
def _index(forms: tuple[Index, ...]) -> _Place:
    """Indices from iterators and what index arrays hold, compiled once for each row of forms."""
    source = f"lambda i, e: ({''.join(_source(f) + ',' for f in forms)})"
    found: _Place = eval(source, {"look": _look})
    return found


@lru_cache(maxsize=100_000)
def _holds(guard: tuple[Comparison, ...]) -> Callable[[Indices], bool]:
    terms = [f"{_source(c.form)} {c.relation} {c.bound}" for c in guard]
    found: Callable[[Indices], bool] = eval(f"lambda i: {' and '.join(terms)}")
    return found
