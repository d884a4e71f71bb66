"""Coverage: how near the write that defines a read surely is.

The writes of one iteration of the scopes that a write and a read share form a set of cells; a read is
covered where no instance of it falls outside. That is decided by the integer solver, so a read counts as
covered only where it is for certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby
from typing import NamedTuple

from dojo_core.program.affine import Affine
from dojo_core.program.dependence import (
    MemoryAccess,
    Order,
    System,
    Witness,
    cell_text,
    common_depth,
    meeting,
    renamed,
)
from dojo_core.program.integers import Constraint, solve
from dojo_core.program.tables import Index, Indirect, affine
from dojo_core.program.tree import Access, Comparison, Scope

LIMIT = 256  # combinations of sides that are gone into


def shared_depth(a: MemoryAccess, b: MemoryAccess) -> int:
    one, other = a.leaf.path, b.leaf.path
    return common_depth(a.leaf, b.leaf) if one and other and one[0] == other[0] else 0


def coverage(
    read: MemoryAccess, accesses: Sequence[MemoryAccess], any_value: bool = False, earlier: bool = False
) -> tuple[int, tuple[MemoryAccess, ...]] | None:
    """How near the write that defines a read surely is; ``accesses``: in tree order.

    Returns (depth, writes): every instance of the read is defined within the same iteration of the
    first ``depth`` scopes around it, by one of ``writes`` or a later write. None: not decided.
    With ``any_value``, instances whose cell nothing ever writes are left out: padding, whose value
    reaches no output. With ``earlier``, writes in earlier iterations of a scope that they share with the
    read count too, as one stage of a pipeline writes what the next one reads some iterations later.
    """
    read = relaxed(read)
    array = read.element.array
    partial: list[tuple[MemoryAccess, tuple[Constraint, ...]]] = []
    # From the read back: the nearer a write, the more scopes it shares.
    writes = [w for w in reversed(accesses) if w.kind != "r" and w.element.array == array]
    nearest = next(_by_nearness(read, writes, earlier), None)
    # To find out what padding is takes longest, and rarely brings a write nearer.
    if any_value and nearest is not None:
        whole = coverage(read, accesses, earlier=earlier)
        # implied: one that is less near is as sure
        if whole is not None and whole[0] == nearest[0]:
            return whole
    for depth, group in groupby(_by_nearness(read, writes, earlier), lambda each: each[0]):
        for _, write, carried in group:
            sides = _uncovered_sides(write, read, depth, accesses if any_value else (), carried)
            if sides is None:
                continue
            if not sides:
                return depth, (write,)
            if all(sides != known for _, known in partial):  # the later one defines what both reach
                partial.append((write, sides))
        # implied: one alone leaves its sides uncovered
        if len(partial) > 1 and _covers_together(read, [sides for _, sides in partial]):
            return depth, tuple(write for write, _ in partial)
    return None


def _by_nearness(
    read: MemoryAccess, writes: Sequence[MemoryAccess], earlier: bool
) -> Iterator[tuple[int, MemoryAccess, bool]]:
    """The writes that may define what is read, the nearest first; ``writes``: from the last back.

    Each with the number of scopes whose iteration they share, and whether it is one ``earlier`` of a further
    scope.
    """
    path = read.leaf.path
    behind = sum(1 for w in writes if path and not w.leaf.path < path)  # in tree order they come last
    before = ((shared_depth(w, read), w, False) for w in writes[behind:])
    # Those behind the read share fewer scopes the further they are. Mostly the nearest before it decides.
    if not earlier:
        yield from before
        return
    most = shared_depth(writes[behind - 1], read) if behind else 0
    first = next(before, None)
    near = 0
    if first is not None and most <= first[0] + 1:
        for each in chain((first,), before):
            if each[0] < first[0]:
                break
            near += 1
            yield each
    shared = [shared_depth(w, read) for w in writes]
    both = list(zip(shared, writes, strict=True))
    others = [(depth, w, False) for depth, w in both[behind + near :]]
    ordered = [depth for depth, scope in enumerate(read.leaf.scopes) if scope.mark in ("", "u")]
    others += [(depth, w, True) for most, w in both for depth in ordered if depth < most]
    yield from sorted(others, key=lambda each: (-each[0], each[2]))


def relaxed(read: MemoryAccess) -> MemoryAccess:
    """An indirect read as a read of every cell that the extremes of what is looked up allow: under scopes
    more."""
    if not read.element.indirect:
        return read
    index: list[Index] = []
    scopes = read.leaf.scopes
    for form in read.element.index:
        if isinstance(form, Indirect):
            form, sizes = form.relaxed(len(scopes))
            scopes = (*scopes, *(Scope(size, ()) for size in sizes))
        index.append(form)
    return MemoryAccess(
        read.leaf._replace(scopes=scopes), Access(read.element.array, tuple(index)), read.kind
    )


def _uncovered_sides(
    write: MemoryAccess, read: MemoryAccess, depth: int, among: Sequence[MemoryAccess], carried: bool = False
) -> tuple[Constraint, ...] | None:
    """Half-spaces of the read's iterators that this write does not reach; None: it reaches nothing surely.
    With ``among``, only those where some write among these accesses may. ``carried``: see ``_sides``."""
    sides = _sides(_Reach.of(write), _Reach.of(read), depth, carried)
    if not sides or not among:
        return sides
    return tuple(side for side in sides if _ever_written(read, side, among))


class _Reach(NamedTuple):
    """What of an access decides which cells those are."""

    forms: tuple[Index, ...]
    sizes: tuple[int, ...]  # of the scopes around it, outermost first
    guard: tuple[Comparison, ...]

    @staticmethod
    def of(access: MemoryAccess) -> _Reach:
        leaf = access.leaf
        return _Reach(access.element.index, tuple([s.size for s in leaf.scopes]), leaf.op.guard)


@lru_cache(maxsize=8_000)  # the nests that a move leaves alone ask the same again
def _sides(write: _Reach, read: _Reach, depth: int, carried: bool = False) -> tuple[Constraint, ...] | None:
    """Half-spaces of the read's iterators that the write does not reach; None: it reaches nothing surely.

    In one iteration of the common scopes the write's cells form, per dimension, either an interval
    without gaps or a set of digits that must match the read's own. ``carried``: in all iterations of the
    scope at ``depth``, which both share, before the read's own (``_unwritten_before``).
    """
    if any(isinstance(form, Indirect) for form in write.forms):
        return None  # which cells these are hangs on what is looked up
    if carried and write.guard:
        return None
    if carried and all(depth not in affine(form).depths for form in write.forms):
        return None  # the first iteration has none before it
    lows, sizes, guard = _within_guard(write, depth)
    if any(n < 1 for n in sizes):
        return None
    box = [(0, size - 1) for size in read.sizes]
    held = [Constraint.of(c) for c in read.guard]
    seen: set[int] = set()
    forced: dict[int, Affine] = {}  # iterators of the write that its cell fixes, in those of the read
    indexed: dict[tuple[tuple[int, int], ...], Affine] = {}  # the same for each index as a whole
    sides: list[Constraint] = []

    def uncovered(side: Constraint) -> None:
        if solve(box, [side, *held]).possible:
            sides.append(side)

    for form, wanted in zip(map(affine, write.forms), map(affine, read.forms), strict=True):
        local = [(d, c) for d, c in form.terms if d >= depth]
        if seen & {d for d, _ in local}:
            return None
        seen |= {d for d, _ in local}
        begin = form.const + sum(c * lows[d] for d, c in local)
        outer = Affine(tuple((d, c) for d, c in form.terms if d < depth), begin)
        low, high = Affine(tuple(local)).bounds(sizes)
        rest = wanted - outer
        indexed[tuple(local)] = rest + sum(c * lows[d] for d, c in local)
        if len(local) == 1 and local[0][1] == 1:
            forced[local[0][0]] = indexed[tuple(local)]
        if carried and any(d == depth for d, _ in local):
            carried_sides = _unwritten_before(local, sizes, depth, rest)
            if carried_sides is None:
                return None
            for side in carried_sides:
                uncovered(side)
            continue
        if is_dense([(abs(c), sizes[d]) for d, c in local]):
            uncovered(Constraint.at_least(-rest + (low - 1)))
            uncovered(Constraint.at_least(rest - (high + 1)))
            continue
        if (
            # implied: digits match only where they are the same
            any(d < depth for d, _ in rest.terms)
            # implied: digits match only where they are the same
            or any(c < 0 for _, c in (*rest.terms, *local))
            or rest.const
        ):
            return None
        mine = digits([(c, sizes[d]) for d, c in local])
        theirs = digits([(c, read.sizes[d]) for d, c in rest.terms])
        if mine is None or theirs is None or any(mine.get(c, 1) < n for c, n in theirs.items()):
            return None
    free: list[Comparison] = []
    for comparison in guard:
        if all(d >= depth and d not in seen for d in comparison.form.depths):
            free.append(comparison)  # the same for every cell: it need only hold once
            continue
        inner = tuple((d, c) for d, c in comparison.form.terms if d >= depth)
        if inner in indexed:
            form = Affine(tuple((d, c) for d, c in comparison.form.terms if d < depth)) + indexed[inner]
        elif all(d in forced for d, _ in inner):
            form = comparison.form.substitute(forced)
        else:
            return None
        form = form - comparison.bound
        if comparison.relation in ("<", "=="):
            uncovered(Constraint.at_least(form + (0 if comparison.relation == "<" else -1)))
        if comparison.relation in (">=", "=="):
            uncovered(Constraint.at_least(-form - 1))
    if free:
        ranges = [(low, low + size - 1) for low, size in zip(lows, sizes, strict=True)]
        if solve(ranges, [Constraint.of(c) for c in free]).point is None:
            return None
    return tuple(sides)


def _unwritten_before(
    local: Sequence[tuple[int, int]], sizes: Sequence[int], depth: int, wanted: Affine
) -> list[Constraint] | None:
    """Half-spaces where no iteration of the scope at ``depth`` before the read's own writes what is
    ``wanted`` in a dimension; None: not decided. ``local``: the terms of the write's index there, from
    ``depth`` on.

    Each iteration writes an interval, the one before lies a step below it, or above. Where steps leave no
    gap these are one interval, else the step and the place within the interval are read off one by one.
    """
    step = dict(local)[depth]
    inner = [(d, c) for d, c in local if d != depth]
    if not is_dense([(abs(c), sizes[d]) for d, c in inner]):
        return None
    low, high = Affine(tuple(inner)).bounds(sizes)
    width = high - low + 1
    now = Affine.iterator(depth)
    if abs(step) > width:
        iteration = Affine(
            tuple((d, c // step) for d, c in wanted.terms if c % step == 0),
            (wanted.const - low) // abs(step) * (1 if step > 0 else -1),
        )
        place = wanted - iteration * step
        ranges = [(iteration, Affine(), now - 1), (place, Affine(const=low), Affine(const=high))]
    elif step > 0:
        ranges = [(wanted, Affine(const=low), (now - 1) * step + high)]
    else:
        ranges = [(wanted, (now - 1) * step + low, Affine(const=high))]
    sides = [Constraint.at_least(first - value - 1) for value, first, _ in ranges]
    sides += [Constraint.at_least(value - last - 1) for value, _, last in ranges]
    if abs(step) < width:  # the bounds enclose cells in the first iteration too, before which there is none
        sides.append(Constraint.at_least(-now))
    return sides


def _within_guard(write: _Reach, depth: int) -> tuple[list[int], list[int], list[Comparison]]:
    """(first value, count) of each iterator of a write under its guard, and the comparisons left over:
    those of one iterator, ``{3} < 5``, cut its range; the scopes above ``depth`` stay as they are."""
    lows = [0] * len(write.sizes)
    highs = [*write.sizes]
    rest: list[Comparison] = []
    for comparison in write.guard:
        terms = comparison.form.terms
        if len(terms) != 1 or terms[0][0] < depth or terms[0][1] != 1 or comparison.relation == "==":
            rest.append(comparison)
        elif comparison.relation == "<":
            highs[terms[0][0]] = min(highs[terms[0][0]], comparison.bound)
        else:
            lows[terms[0][0]] = max(lows[terms[0][0]], comparison.bound)
    return lows, [high - low for low, high in zip(lows, highs, strict=True)], rest


def _ever_written(read: MemoryAccess, side: Constraint, among: Sequence[MemoryAccess]) -> bool:
    """May some write among these accesses write a cell that the read, on this side, reads?"""
    reach, array = _Reach.of(read), read.element.array
    writes = (t for t in among if t.kind != "r" and t.element.array == array)
    return any(_may_write(_Reach.of(write), reach, side) for write in writes)


@lru_cache(maxsize=4_000)
def _may_write(write: _Reach, read: _Reach, side: Constraint) -> bool:
    system = System()
    r = system.iterators(read.sizes, read.guard)
    system.constraints.append(Constraint(renamed(side.form, r), side.equality))
    w = system.iterators(write.sizes, write.guard)
    for a, b in zip(write.forms, read.forms, strict=True):
        system.equal(a, w, b, r)
    return system.solve() is not None


def is_dense(terms: Sequence[tuple[int, int]]) -> bool:
    """Do sums of coefficient*[0,size) reach every value between their ends?"""
    reach = 0
    for coefficient, size in sorted(terms):
        if size == 1:
            continue
        if coefficient > reach + 1:
            return False
        reach += coefficient * (size - 1)
    return True


def digits(terms: Sequence[tuple[int, int]]) -> dict[int, int] | None:
    """Mixed-radix digits coefficient -> size, neighbours merged; None where digits overlap."""
    result: list[tuple[int, int]] = []
    reach = 0  # the largest value of the digits so far
    for coefficient, size in sorted(t for t in terms if t[1] > 1):
        if coefficient <= reach:
            return None
        reach += coefficient * (size - 1)
        if result and result[-1][0] * result[-1][1] == coefficient:
            result[-1] = (result[-1][0], result[-1][1] * size)
        else:
            result.append((coefficient, size))
    return dict(result)


def unset(read: MemoryAccess, accesses: Sequence[MemoryAccess]) -> Witness | None:
    """An instance of a read that no write before it surely sets, where `coverage` with ``any_value`` finds
    none that is sure. None where no instance is known, and of what the caller reads."""
    wide = relaxed(read)
    writes = [w for w in accesses if w.kind != "r" and w.element.array == read.element.array]
    sides = []
    for write in reversed([w for w in writes if w.leaf.path < read.leaf.path]):
        each = _uncovered_sides(write, wide, shared_depth(write, wide), accesses)
        if each is not None:
            sides.append(each)
    if not read.leaf.path or _combinations(sides) > LIMIT:
        return None
    point = _outside(tuple([s.size for s in wide.leaf.scopes]), read.leaf.op.guard, tuple(sides))
    if point is None:
        return None
    values = point[: len(read.leaf.scopes)]
    return Witness(((read.leaf, values),), cell_text(read.element, values))


def carried(accesses: Sequence[MemoryAccess], read: MemoryAccess, depth: int) -> Witness | None:
    """A write in an earlier iteration of the first ``depth`` scopes, and a read of what it wrote."""
    writes = [w for w in accesses if w.kind != "r" and w.element.array == read.element.array]
    met = (
        meeting(write, read, level, [Order(level, "<")])
        for write in reversed(writes)
        for level in reversed(range(depth))
        if read.leaf.path
    )
    return next((w for w in met if w is not None), None)


def _combinations(sides: Sequence[tuple[Constraint, ...]]) -> int:
    return math.prod(map(len, sides))


def _covers_together(read: MemoryAccess, sides: Sequence[tuple[Constraint, ...]]) -> bool:
    """Is there no instance of the read that lies outside every write?"""
    if _combinations(sides) > LIMIT:  # implied: a limit on the work, not on what is right
        return False
    return _outside(tuple([s.size for s in read.leaf.scopes]), read.leaf.op.guard, tuple(sides)) is None


@lru_cache(maxsize=1_000)
def _outside(
    sizes: tuple[int, ...], guard: tuple[Comparison, ...], sides: tuple[tuple[Constraint, ...], ...]
) -> tuple[int, ...] | None:
    """An instance on one of the sides of each write; -1s where there is one, and not known which. Sides that
    exclude each other are not gone into."""
    box = [(0, size - 1) for size in sizes]

    def point(chosen: list[Constraint], rest: tuple[tuple[Constraint, ...], ...]) -> tuple[int, ...] | None:
        solution = solve(box, chosen)
        if not solution.possible:
            return None
        if not rest:
            return (-1,) * len(sizes) if solution.point is None else tuple(solution.point)
        deeper = (point([*chosen, side], rest[1:]) for side in rest[0])
        return next((p for p in deeper if p is not None), None)

    return point([Constraint.of(c) for c in guard], sides)
