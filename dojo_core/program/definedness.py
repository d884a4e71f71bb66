"""Does each instance of a read find a write before it? Decided by going through the cells, in NumPy.

``coverage`` proves most of it at once, for any sizes; what it leaves open is settled here, exactly, where the
instances are few enough. Iterators that neither an index nor a guard uses stand at their first value, and a
dimension that every access indexes by an iterator of its own, over all of it, stands for one of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dojo_core.program.affine import Affine
from dojo_core.program.dependence import MemoryAccess, System
from dojo_core.program.integers import divided
from dojo_core.program.must_writes import relaxed, shared_depth
from dojo_core.program.tables import Index, Indirect, Table, affine, plus
from dojo_core.program.tree import Access, Comparison, Scope

POINTS = 2**24  # instances of an access, and cells, that are gone through: some tenths of a second
ORDERED = 2**22  # where it matters too when a cell was written first
_CHUNK = 2**20
_MANY = 2**16  # before they are gone through, the corners are tried
_FEW = 2**12  # cells that are gone through as they are
_NEVER = 2**62

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class TooMany(Exception):
    """There are more instances than are gone through."""


def first_unset(
    read: MemoryAccess,
    accesses: Sequence[MemoryAccess],
    sizes: Sequence[int],
    cell: Sequence[int] | None = None,
) -> tuple[int, ...] | None:
    """The iterators of the first instance of a read whose cell no write has set before; None: there is
    none. ``found``: the accesses to its buffer, ``sizes`` that one's dimensions. Raises TooMany.

    Iterations of marked scopes, but unrolled ones, have no order: a write in another one does not count. Nor
    does one whose place is looked up, since it sets no cell for certain. With ``cell``, only instances count
    that read that one.
    """
    if any(isinstance(form, Indirect) and form.through for form in read.element.index):
        found = first_unset(relaxed(read), accesses, sizes, cell)  # it may be any of these
        return None if found is None else found[: len(read.leaf.scopes)]
    written = (t for t in accesses if t.kind != "r" and t.element.array == read.element.array)
    writes = [t for t in written if not t.element.indirect]
    if math.prod(sizes) > _FEW and cell is None:
        cut = _cut(read, writes, sizes)
        if cut is not None:
            return cut.values(first_unset(cut.read, cut.writes, cut.sizes))
    pairs = [_Pair.of(write, read) for write in writes]
    pairs = [pair for pair in pairs if pair.depth or pair.before]
    whole = _whole_dims(read, pairs) if cell is None else {}
    apart = {d for pair in pairs for d in pair.unordered}
    wanted = _Instances.of(read, apart, whole)
    if wanted.points > _MANY and cell is None:
        corner = _unset_corner(read, pairs)
        if corner is not None:
            return corner
    if wanted.points > POINTS:
        raise TooMany
    served = ~wanted.held()
    if cell is not None:
        served |= ~wanted.reading(cell)
    for pair in pairs:
        if served.all():
            break
        pair.serve(wanted, served, sizes, whole)
    if served.all():
        return None
    return wanted.values(int(served.argmin()), len(read.leaf.scopes))


@dataclass(frozen=True)
class _Instances:
    """The instances of an access that matter, in order: ``running`` iterators (depth, size), others at 0."""

    access: MemoryAccess
    running: tuple[tuple[int, int], ...]
    whole: Mapping[int, int]  # dimensions that one cell stands for, each with its iterator

    @staticmethod
    def of(access: MemoryAccess, apart: set[int], whole: Mapping[int, int]) -> _Instances:
        used = {d for form in access.element.index for d in form.depths} | apart
        used |= {d for c in access.leaf.op.guard for d in c.form.depths}
        scopes = access.leaf.scopes
        running = [(d, scopes[d].size) for d in sorted(used - {*whole.values()}) if scopes[d].size > 1]
        return _Instances(access, tuple(running), whole)

    @property
    def points(self) -> int:
        return math.prod(size for _, size in self.running)

    def values(self, number: int, depth: int) -> tuple[int, ...]:
        """All iterators of an instance."""
        at = np.unravel_index(number, tuple(size for _, size in self.running)) if self.running else ()
        known = {d: int(value) for (d, _), value in zip(self.running, at, strict=True)}
        return tuple(known.get(d, 0) for d in range(depth))

    def chunks(self) -> list[tuple[int, int]]:
        """The first running iterator in pieces, so that what is computed at once stays small."""
        if not self.running:
            return [(0, 1)]
        size = self.running[0][1]
        step = max(1, _CHUNK * size // self.points)
        return [(first, min(first + step, size)) for first in range(0, size, step)]

    def grids(self) -> Iterator[Grid]:
        return (self.grid(*chunk) for chunk in self.chunks())

    def grid(self, first: int, last: int) -> Grid:
        axes: dict[int, Integers] = {}
        for n, (d, size) in enumerate(self.running):
            line = np.arange(first, last) if n == 0 else np.arange(size)
            axes[d] = line.reshape([-1 if n == m else 1 for m in range(len(self.running))])
        shape = tuple(size for _, size in self.running[1:])
        return Grid(axes, (last - first, *shape) if self.running else (1,))

    def held(self) -> Booleans:
        """Of each instance whether its guard holds."""
        guard = self.access.leaf.op.guard
        if not guard:
            return np.ones(self.points, np.bool_)
        return np.concatenate([grid.held(guard).ravel() for grid in self.grids()])

    def reading(self, cell: Sequence[int]) -> Booleans:
        """Of each instance whether it accesses that cell."""
        one = [
            np.all(
                [g.value(f) == n for f, n in zip(self.access.element.index, cell, strict=True)], axis=0
            ).ravel()
            for g in self.grids()
        ]
        return np.concatenate(one)

    def cell(self, sizes: Sequence[int], unordered: Sequence[int]) -> Index:
        """The number of the cell: by the dimensions that count, and the iterators without an order."""
        flat: Index = Affine()
        for k, size in enumerate(sizes):
            if k not in self.whole:
                flat = plus(flat * size, self.access.element.index[k])
        for d in unordered:
            flat = plus(flat * self.access.leaf.scopes[d].size, Affine.iterator(d))
        return flat


def flat(access: Access, sizes: Sequence[int]) -> Index:
    """The number of an access's cell in an array of these sizes."""
    number: Index = Affine()
    for form, size in zip(access.index, sizes, strict=True):
        number = plus(number * size, form)
    return number


@dataclass(frozen=True)
class Grid:
    """Values of iterators, each along an axis of its own."""

    axes: Mapping[int, Integers]
    shape: tuple[int, ...]

    def value(self, form: Index) -> Integers:
        """An index for each instance; iterators that do not run are 0."""
        if isinstance(form, Indirect):
            total = self.value(form.rest)
            for lookup, coefficient in form.lookups:
                table = lookup.source
                assert isinstance(table, Table), "what is read through an array is relaxed first"
                place = self.value(table.flat(lookup.at))
                values = np.array(table.values, np.int64)
                total = total + coefficient * values[place.clip(0, len(values) - 1)]
            return total
        value = np.full(self.shape, form.const, np.int64)
        for d, coefficient in form.terms:
            if d in self.axes:
                value += coefficient * self.axes[d]
        return value

    def held(self, guard: Sequence[Comparison]) -> Booleans:
        held = np.ones(self.shape, np.bool_)
        for comparison in guard:
            value = self.value(comparison.form)
            if comparison.relation == "<":
                held &= value < comparison.bound
            elif comparison.relation == ">=":
                held &= value >= comparison.bound
            else:
                held &= value == comparison.bound
        return held


@dataclass(frozen=True)
class _Pair:
    """A write and a read, and what decides which of their instances comes first."""

    write: MemoryAccess
    depth: int  # scopes that hold both
    before: bool  # does the write come first where these are at the same iteration?
    ordered: tuple[int, ...]  # of these scopes
    unordered: tuple[int, ...]

    @staticmethod
    def of(write: MemoryAccess, read: MemoryAccess) -> _Pair:
        depth = shared_depth(write, read)
        ordered = tuple(d for d in range(depth) if write.leaf.scopes[d].mark in ("", "u"))
        rest = tuple(d for d in range(depth) if d not in ordered)
        before = not read.leaf.path or write.leaf.path < read.leaf.path
        return _Pair(write, depth, before, ordered, rest)

    def serve(
        self, wanted: _Instances, served: Booleans, sizes: Sequence[int], whole: Mapping[int, int]
    ) -> None:
        """Mark the instances of the read whose cell this write has set before."""
        mine = {k: d for k, d in ((k, alone(self.write, k)) for k in whole) if d is not None}
        given = _Instances.of(self.write, set(self.unordered), mine)
        running = {d for d, _ in (*wanted.running, *given.running)}
        order = Affine()
        for d in self.ordered:
            if d in running:
                order = order * self.write.leaf.scopes[d].size + Affine.iterator(d)
        if not (self.before or order.terms):
            return
        scopes = self.write.leaf.scopes
        cells = math.prod(size for k, size in enumerate(sizes) if k not in whole)
        cells *= math.prod(scopes[d].size for d in self.unordered)
        if max(given.points, wanted.points, cells) > (ORDERED if order.terms else POINTS):
            raise TooMany
        target = given.cell(sizes, self.unordered)
        source = wanted.cell(sizes, self.unordered)
        guard = self.write.leaf.op.guard
        if order.terms:
            first = np.full(cells, _NEVER, np.int64)
            for chunk in reversed(given.chunks()):  # so that the first write stays
                grid = given.grid(*chunk)
                held = grid.held(guard).ravel()
                at = grid.value(target).ravel()[held][::-1]
                first[at] = grid.value(order).ravel()[held][::-1]
            last = first if self.before else first + 1
        else:
            written = np.zeros(cells, np.bool_)
            for grid in given.grids():
                written[grid.value(target)[grid.held(guard)]] = True
        begin = 0
        for grid in wanted.grids():
            held = grid.held(wanted.access.leaf.op.guard).ravel()
            at = grid.value(source).ravel()
            at[~held] = 0
            if order.terms:
                seen = last[at] <= grid.value(order).ravel()
            else:
                seen = written[at]
            served[begin : begin + len(at)] |= seen
            begin += len(at)


def alone(access: MemoryAccess, k: int) -> int | None:
    """The iterator that is index ``k`` of an access by itself, and is used nowhere else in it."""
    form = access.element.index[k]
    if isinstance(form, Indirect) or form.const or len(form.terms) != 1 or form.terms[0][1] != 1:
        return None
    ((d, _),) = form.terms
    others = (
        *access.element.index[:k],
        *access.element.index[k + 1 :],
        *[c.form for c in access.leaf.op.guard],
    )
    return None if any(other.uses(d) for other in others) else d


def _whole_dims(read: MemoryAccess, pairs: Sequence[_Pair]) -> dict[int, int]:
    """Dimensions whose cells fare alike, each with the read's iterator: every access runs over all that are
    read by an iterator of its own, and where that is of a scope that holds both, it is the same."""
    whole: dict[int, int] = {}
    for k in range(len(read.element.index)):
        mine = alone(read, k)
        if mine is None:
            continue
        size = read.leaf.scopes[mine].size
        for pair in pairs:
            theirs = alone(pair.write, k)
            if theirs is None or pair.write.leaf.scopes[theirs].size < size:
                break
            if min(mine, theirs) < pair.depth and mine != theirs:
                break
        else:
            whole[k] = mine
    return whole


@dataclass(frozen=True)
class _Cut:
    """The same question with one dimension cut in two: where tiles leave gaps that others fill, each tile may
    fare alike."""

    read: MemoryAccess
    writes: Sequence[MemoryAccess]
    sizes: Sequence[int]
    depth: int  # the iterator that was the read's index there, now two of them: this one and the last
    factor: int

    def values(self, cut: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The iterators of an instance as they were."""
        if cut is None:
            return None
        *values, inner = cut
        values[self.depth] = values[self.depth] * self.factor + inner
        return tuple(values)


def _cut(read: MemoryAccess, writes: Sequence[MemoryAccess], sizes: Sequence[int]) -> _Cut | None:
    """A dimension that the read goes through by an iterator of its own, and that a stride of the writes cuts
    evenly for all of them. None where there is none."""
    shared = max((shared_depth(write, read) for write in writes), default=0)
    for k, size in enumerate(sizes):
        d = alone(read, k)
        forms = [affine(write.element.index[k]) for write in writes]
        if d is None or d < shared or read.leaf.scopes[d].size != size:
            continue
        strides = {abs(c) for form in forms for _, c in form.terms}
        for factor in sorted((s for s in strides if 1 < s < size and size % s == 0), reverse=True):
            parts = [
                divided(form, factor, tuple([s.size for s in write.leaf.scopes]), write.leaf.op.guard)
                for form, write in zip(forms, writes, strict=True)
            ]
            if None in parts:
                continue
            leaf = read.leaf
            scopes = [*leaf.scopes, Scope(factor, ())]
            scopes[d] = Scope(size // factor, (), scopes[d].mark)
            halves = (Affine.iterator(d), Affine.iterator(len(leaf.scopes)))
            again = [_with_index(w, k, part) for w, part in zip(writes, parts, strict=True) if part]
            asked = _with_index(read._replace(leaf=leaf._replace(scopes=tuple(scopes))), k, halves)
            return _Cut(asked, again, (*sizes[:k], size // factor, factor, *sizes[k + 1 :]), d, factor)
    return None


def _with_index(access: MemoryAccess, k: int, halves: tuple[Affine, Affine]) -> MemoryAccess:
    index = access.element.index
    return access._replace(element=Access(access.element.array, (*index[:k], *halves, *index[k + 1 :])))


def _unset_corner(read: MemoryAccess, pairs: Sequence[_Pair]) -> tuple[int, ...] | None:
    """The first or the last instance of an unguarded read, where surely no write sets its cell at all."""
    scopes = read.leaf.scopes
    if read.leaf.op.guard or read.element.indirect:
        return None
    for values in (tuple(s.size - 1 for s in scopes), (0,) * len(scopes)):
        cell = [Affine((), form.value(values)) for form in read.element.index]
        if not any(_may_access(pair.write, cell) for pair in pairs):
            return values
    return None


def _may_access(write: MemoryAccess, cell: Sequence[Affine]) -> bool:
    system = System()
    iterators = system.instance(write.leaf)
    for form, place in zip(write.element.index, cell, strict=True):
        system.equal(form, iterators, place, ())
    return system.solve() is not None
