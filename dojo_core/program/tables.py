"""Indices that are looked up, ``idx[{0},{1}]*16+{2}``, in a constant table or an integer array.

A table's values are part of the program; of an array it is known between which values all of its elements lie
(indices.py). So an indirect index stays analysable: an analysis knows its range, an executor looks it up, and
an unrolled one that goes through a table folds to a number. What is written goes through arrays alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dojo_core.program.affine import Affine

TABLE_DTYPES = ("u8", "i8", "u16", "i16", "i32")


@dataclass(frozen=True)
class Table:
    """``values`` in row-major order of ``dims``; stored as ``dtype``."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    values: tuple[int, ...]
    least: int = field(init=False, compare=False, repr=False)
    most: int = field(init=False, compare=False, repr=False)
    text: str = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        values = " ".join(map(str, self.values))
        text = f"table {self.name} {self.dtype} [{', '.join(map(str, self.dims))}] = {values}"
        for name, value in (
            ("least", min(self.values)),
            ("most", max(self.values)),
            ("text", text),
            ("_hash", hash(text)),
        ):
            object.__setattr__(self, name, value)

    def __hash__(self) -> int:  # tables are large, and parts of many keys
        return self._hash

    def __str__(self) -> str:
        return self.text

    def flat(self, at: Sequence[Affine]) -> Affine:
        """The number of a cell in ``values``."""
        flat, step = Affine(), 1
        for form, size in zip(reversed(at), reversed(self.dims), strict=True):
            flat = flat + form * step
            step *= size
        return flat


@dataclass(frozen=True, slots=True)
class IndexArray:
    """An integer array that indices are read from, and bounds of all its elements (``indices.bounds_of``);
    ``distinct``: no two of them are the same, and nothing writes it."""

    name: str
    least: int
    most: int
    distinct: bool = False


Element = Callable[[str, tuple[int, ...]], int]  # the value of an array at a place


@dataclass(frozen=True, slots=True)
class Lookup:
    """One cell of a table or an array, ``idx[{0},{1}]``."""

    source: Table | IndexArray
    at: tuple[Affine, ...]

    def substitute(self, images: Mapping[int, Affine]) -> Lookup:
        return Lookup(self.source, tuple([form.substitute(images) for form in self.at]))

    def uses(self, depth: int) -> bool:
        return any(form.uses(depth) for form in self.at)

    def value(self, iterators: Sequence[int], element: Element | None = None) -> int:
        if isinstance(self.source, Table):
            return self.source.values[self.source.flat(self.at).value(iterators)]
        assert element is not None, f"{self} hangs on what {self.source.name} holds"
        return element(self.source.name, tuple([form.value(iterators) for form in self.at]))

    @property
    def settled(self) -> int | None:
        """The value in a table at a place without iterators, else None. Outside of the table, where only a
        guard that never holds can leave it, any value will do."""
        if isinstance(self.source, IndexArray) or not all(form.is_constant for form in self.at):
            return None
        place = self.source.flat(self.at).const
        return self.source.values[min(max(place, 0), len(self.source.values) - 1)]

    def __str__(self) -> str:
        return f"{self.source.name}[{','.join(map(str, self.at))}]"


@dataclass(frozen=True, slots=True)
class Indirect:
    """``sum(coefficient * lookup) + rest``, at least one lookup, none in a table at a constant place."""

    lookups: tuple[tuple[Lookup, int], ...]
    rest: Affine

    @staticmethod
    def make(lookups: Sequence[tuple[Lookup, int]], rest: Affine) -> Affine | Indirect:
        """Collect like lookups and fold those whose place in the table is known."""
        total: dict[Lookup, int] = {}
        for lookup, coefficient in lookups:
            settled = lookup.settled
            if settled is not None:
                rest = rest + settled * coefficient
            else:
                total[lookup] = total.get(lookup, 0) + coefficient
        terms = sorted(((k, c) for k, c in total.items() if c), key=lambda term: str(term[0]))
        return Indirect(tuple(terms), rest) if terms else rest

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, Indirect):
            return Indirect.make((*self.lookups, *other.lookups), self.rest + other.rest)
        return Indirect(self.lookups, self.rest + other)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + -other

    def __mul__(self, factor: int) -> Index:
        return Indirect.make([(k, c * factor) for k, c in self.lookups], self.rest * factor)

    def substitute(self, images: Mapping[int, Affine]) -> Index:
        return Indirect.make(
            [(k.substitute(images), c) for k, c in self.lookups], self.rest.substitute(images)
        )

    def uses(self, depth: int) -> bool:
        return self.rest.uses(depth) or self.looks_up(depth)

    def looks_up(self, depth: int) -> bool:
        """Does the place in a table or an array depend on that iterator?"""
        return any(lookup.uses(depth) for lookup, _ in self.lookups)

    @property
    def depths(self) -> tuple[int, ...]:
        looked_up = {d for lookup, _ in self.lookups for form in lookup.at for d in form.depths}
        return tuple(sorted(looked_up.union(self.rest.depths)))

    def bounds(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Between which values it lies for certain: any value that is looked up beside any of the rest."""
        low, high = self.rest.bounds(sizes)
        for lookup, coefficient in self.lookups:
            ends = (lookup.source.least * coefficient, lookup.source.most * coefficient)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def reach(self, sizes: Sequence[int]) -> int:
        """No partial sum is further from 0."""
        ends = (abs(c) * max(abs(k.source.least), abs(k.source.most)) for k, c in self.lookups)
        return self.rest.reach(sizes) + sum(ends)

    @property
    def through(self) -> tuple[Lookup, ...]:
        """The lookups in arrays, whose values hang on what was written there."""
        return tuple([lookup for lookup, _ in self.lookups if isinstance(lookup.source, IndexArray)])

    def value(self, iterators: Sequence[int], element: Element | None = None) -> int:
        return self.rest.value(iterators) + sum(c * k.value(iterators, element) for k, c in self.lookups)

    def replaced(self, change: Callable[[Lookup], Lookup]) -> Index:
        """With other lookups in arrays."""
        lookups = [(change(k) if isinstance(k.source, IndexArray) else k, c) for k, c in self.lookups]
        return Indirect.make(lookups, self.rest)

    def relaxed(self, first: int) -> tuple[Affine, list[int]]:
        """An affine form that takes at least its values: each lookup a free iterator from depth ``first`` on.

        With the form, the number of values of each.
        """
        form, sizes = self.rest, []
        for lookup, coefficient in self.lookups:
            sizes.append(lookup.source.most - lookup.source.least + 1)
            free = Affine.iterator(first + len(sizes) - 1) + lookup.source.least
            form = form + free * coefficient
        return form, sizes

    def __str__(self) -> str:
        parts: list[str] = []
        for lookup, coefficient in self.lookups:
            sign = "-" if coefficient < 0 else "+" if parts else ""
            parts.append(f"{sign}{lookup}" + (f"*{abs(coefficient)}" if abs(coefficient) != 1 else ""))
        rest = str(self.rest)
        if rest != "0":
            parts.append(rest if rest.startswith("-") else f"+{rest}")
        return "".join(parts)


Index = Affine | Indirect


def bounded(
    name: object, index: Sequence[Index], sizes: Sequence[int]
) -> Iterator[tuple[int, object, Index, int]]:
    """What must lie in a range for an access: (k, name, form, size) for index k of what is called ``name``,
    tables' own indices too."""
    for k, (form, size) in enumerate(zip(index, sizes, strict=True)):
        yield k, name, form, size
        for lookup, _ in form.lookups if isinstance(form, Indirect) else ():
            if isinstance(lookup.source, Table):  # what is read of an array is an access by itself
                yield from bounded(lookup.source.name, lookup.at, lookup.source.dims)


def composed(form: Affine, images: Mapping[int, Index]) -> Index:
    """An affine form with iterators replaced by indices."""
    total: Index = Affine((), form.const)
    for depth, coefficient in form.terms:
        total = plus(total, images.get(depth, Affine.iterator(depth)) * coefficient)
    return total


def plus(a: Index, b: Index) -> Index:
    """The sum of two indices."""
    return b + a if isinstance(a, Affine) and isinstance(b, Indirect) else a + b  # type: ignore[operator]


def affine(index: Index) -> Affine:
    """An index that is known to be affine: those of writes are, and what a transformation has checked."""
    assert isinstance(index, Affine), index
    return index
