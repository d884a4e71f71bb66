"""Does an output depend on a cell that nothing has set? Decided by running the program on numbers of cells.

A read that no write comes before may be harmless: its value is copied, and the copy written over, or nobody
uses it. So the cells of one array that nothing has set are followed: each cell holds the number of one that
its value comes from, or 0; the result of an operation has that of one of its operands. Of the program only
the operations remain that such a value may come to, and sizes in which all cells fare alike are scaled down
to one; what is left is run in NumPy, all iterations of a scope at once where they are independent.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dojo_core.program.affine import Affine
from dojo_core.program.definedness import POINTS, Booleans, Grid, Integers, TooMany, alone, flat
from dojo_core.program.dependence import MemoryAccess, accesses
from dojo_core.program.interpret import independent
from dojo_core.program.tables import Indirect
from dojo_core.program.tree import Access, Node, Op, Path, Program, Scope, leaves

_PIECE = 2**20  # instances that are gone through at once
_STEP = 2**10  # instances whose time is that of calling NumPy for them

Ranges = tuple[tuple[int, int], ...]  # values of the iterators, [begin, end)
Numbers = npt.NDArray[np.int32]
Sizes = Mapping[str, Sequence[int]]  # of the dimensions of each array


class Origin(NamedTuple):
    """An element of an output, and a cell of an array that it depends on, which nothing has set."""

    output: Access
    array: str
    cell: tuple[int, ...]

    @property
    def sentence(self) -> str:
        cell = f"{self.array}[{','.join(map(str, self.cell))}]"
        if str(self.output) == cell:
            return f"{cell} of the output {self.array} is never written."
        return f"The value of {self.output} comes from {cell}, which no earlier write has set."


def any_origin(program: Program) -> Origin | None:
    """Of all arrays, however long it takes: about as long as the interpreter takes to run the program."""
    arrays = (array for buffer in program.buffers for array in buffer.arrays if array not in program.inputs)
    return next((o for o in (unset_origin(program, a, bounded=False) for a in arrays) if o is not None), None)


def unset_origin(program: Program, array: str, bounded: bool = True) -> Origin | None:
    """The first element of an output that depends on a cell of ``array`` that nothing has set, or None. Where
    the array is an output, an element that nothing writes is one.

    Raises TooMany where it would take longer than some tenths of a second and is ``bounded``.
    """
    reached = _reached(program, array)
    if reached.isdisjoint(program.outputs):
        return None
    whole = {a: [d.size for d in program.buffer_of[a].dims] for a in reached}
    body, sizes = _scaled_down(_reduced(program.body, reached), whole)
    cells = {name: math.prod(dims) for name, dims in sizes.items()}
    if bounded and max(sum(cells.values()), _effort(body, (), (), cells)) > POINTS:
        raise TooMany
    origins = _Run(sizes, array).run(body)
    for output in program.outputs:
        if output in reached and origins[output].any():
            number = int(origins[output].argmax())
            origin = origins[array].size - int(origins[output][number])
            index = tuple(Affine((), n) for n in _cell(number, sizes[output]))
            return Origin(Access(output, index), array, _cell(origin, sizes[array]))
    return None


def _cell(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(number, tuple(sizes)))) if sizes else ()


def _reached(program: Program, array: str) -> set[str]:
    """The arrays that a value of one may come to, in whatever order."""
    reached: set[str] = set()
    fresh = {array}
    while fresh:
        reached |= fresh
        targets = {
            leaf.op.target.array for leaf in program.leaves if any(r.array in fresh for r in leaf.op.reads)
        }
        fresh = targets - reached
    return reached


def _reduced(body: Sequence[Node], reached: set[str]) -> tuple[Node, ...]:
    """The operations that write these arrays, with the operands that one of these numbers may come from."""
    reduced: list[Node] = []
    for node in body:
        if isinstance(node, Scope):
            inside = _reduced(node.body, reached)
            if inside:
                reduced.append(replace(node, body=inside))
        elif node.target.array in reached:
            operands = tuple(read.opaque for read in node.reads if read.array in reached)
            sign = "+" if node.accumulate else ""
            reduced.append(replace(node, target=node.target.opaque, operands=operands, accumulate=sign))
    return tuple(reduced)


# ---------------------------------------------------------------------------- sizes


def _scaled_down(body: tuple[Node, ...], sizes: Sizes) -> tuple[tuple[Node, ...], Sizes]:
    """The same with one iteration, and one cell, in place of all that fare alike.

    A scope's iterations and the cells of a dimension that accesses go through by its iterator alone belong
    together. They fare alike where all accesses to the dimension do so, and no iteration sees what another
    one has left: each array under the scope is accessed there by the iterator in one dimension, or is only
    read, or is only added to.
    """
    alike = _Alike()
    for leaf in leaves(body):
        for access in accesses(leaf):
            for k, form in enumerate(access.element.index):
                place, d = (access.element.array, k), alone(access, k)
                scope = None if d is None else leaf.path[: d + 1]
                if scope is not None and leaf.scopes[len(scope) - 1].size == sizes[place[0]][k]:
                    alike.join(place, scope)
                else:
                    alike.part(place, *(leaf.path[: d + 1] for d in form.depths))
        for comparison in leaf.op.guard:
            alike.part(*(leaf.path[: d + 1] for d in comparison.form.depths))
    by_scope: dict[Path, dict[str, list[MemoryAccess]]] = {}
    for leaf in leaves(body):
        for depth in range(len(leaf.scopes)):
            arrays = by_scope.setdefault(leaf.path[: depth + 1], {})
            for access in accesses(leaf):
                arrays.setdefault(access.element.array, []).append(access)
    for scope, arrays in by_scope.items():
        if not all(_apart(each, len(scope) - 1) for each in arrays.values()):
            alike.part(scope)
    small = {a: [1 if alike.holds((a, k)) else n for k, n in enumerate(dims)] for a, dims in sizes.items()}
    return _with_one(body, (), alike), small


def _apart(accesses: Sequence[MemoryAccess], depth: int) -> bool:
    """Does no iteration of a scope see what another one has left in an array that it accesses so?"""
    kinds = {access.kind for access in accesses}
    if len(kinds) == 1 and "w" not in kinds:
        return True
    used = [
        tuple(k for k, form in enumerate(access.element.index) if form.uses(depth)) for access in accesses
    ]
    return len({*used}) == 1 and len(used[0]) == 1


def _with_one(body: tuple[Node, ...], path: Path, alike: _Alike) -> tuple[Node, ...]:
    smaller: list[Node] = []
    for number, node in enumerate(body):
        if isinstance(node, Scope):
            at = (*path, number)
            size = 1 if alike.holds(at) else node.size
            node = replace(node, size=size, body=_with_one(node.body, at, alike))
        smaller.append(node)
    return tuple(smaller)


class _Alike:
    """Scopes, by their paths, and dimensions, by array and number, that belong together."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}
        self._parted: list[Hashable] = []  # where iterations or cells do not fare alike

    def _root(self, one: Hashable) -> Hashable:
        while (parent := self._parents.setdefault(one, one)) != one:
            one = parent
        return one

    def join(self, one: Hashable, other: Hashable) -> None:
        self._parents[self._root(one)] = self._root(other)

    def part(self, *several: Hashable) -> None:
        self._parted += several

    def holds(self, one: Hashable) -> bool:
        return self._root(one) not in map(self._root, self._parted)


# ---------------------------------------------------------------------------- the run


def _effort(
    body: Sequence[Node], whole: tuple[int | None, ...], sizes: tuple[int, ...], cells: Mapping[str, int]
) -> int:
    """Instances that a run goes through, and cells, where it looks at a range of them. ``whole``: the sizes
    of the scopes around that run at once, None for others; of each iterator only the values that an access or
    a guard uses. ``cells``: how many each array has."""
    total = 0
    for node in body:
        if isinstance(node, Op):
            used = _used(node)
            points = math.prod(size for d, size in enumerate(whole) if size is not None and d in used)
            ranges = sum(cells[access.array] for access in (node.target, *node.reads) if _looked_up(access))
            total += max(points + ranges, _STEP)
        elif independent(node, sizes, frozenset()):
            total += _effort(node.body, (*whole, node.size), (*sizes, node.size), cells)
        else:
            total += node.size * _effort(node.body, (*whole, None), (*sizes, node.size), cells)
    return total


def _used(op: Op) -> set[int]:
    forms = [form for access in (op.target, *op.reads) for form in access.index]
    return {d for form in (*forms, *(c.form for c in op.guard)) for d in form.depths}


class _Run:
    """Of each array's cells the unset cell that the value comes from, by its number, counted back from the
    last, which is 1. 0: none."""

    def __init__(self, sizes: Sizes, unset: str) -> None:
        self.sizes = sizes
        self.origins = {a: np.zeros(math.prod(dims), np.int32) for a, dims in sizes.items()}
        cells = self.origins[unset]
        cells[:] = np.arange(len(cells), 0, -1)

    def run(self, body: Sequence[Node]) -> Mapping[str, Numbers]:
        self._nodes(body, (), ())
        return self.origins

    def _nodes(self, body: Sequence[Node], ranges: Ranges, sizes: tuple[int, ...]) -> None:
        for node in body:
            if isinstance(node, Op):
                self._operation(node, ranges)
                continue
            whole = independent(node, sizes, frozenset())
            steps = [(0, node.size)] if whole else [(n, n + 1) for n in range(node.size)]
            for step in steps:
                self._nodes(node.body, (*ranges, step), (*sizes, node.size))

    def _operation(self, op: Op, ranges: Ranges) -> None:
        used = _used(op)
        ranges = tuple(r if d in used else (r[0], r[0] + 1) for d, r in enumerate(ranges))
        for piece in _pieces(ranges):
            axes = {d: _axis(begin, end, d, len(piece)) for d, (begin, end) in enumerate(piece)}
            grid = Grid(axes, tuple(end - begin for begin, end in piece))
            held = grid.held(op.guard)
            value = np.zeros(grid.shape, np.int32)
            for read in op.reads:
                origins, dims = self._among(read, piece)
                if dims:  # it may be any of these
                    origins = origins.max(axis=dims, keepdims=True, initial=0)
                cells = _cells(read, dims, origins.shape, grid, held)
                np.maximum(value, origins.reshape(-1)[cells], out=value)
            target, dims = self._among(op.target, piece)
            shape = tuple(1 if k in dims else n for k, n in enumerate(target.shape))
            cells = _cells(op.target, dims, shape, grid, held)[held]
            if dims:  # it may be any of several cells, and each may stay as it is
                written = np.zeros(math.prod(shape), np.int32)
                np.maximum.at(written, cells, value[held])
                np.maximum(target, written.reshape(shape), out=target)
            elif op.accumulate:
                np.maximum.at(self.origins[op.target.array], cells, value[held])
            else:
                self.origins[op.target.array][cells] = value[held]

    def _among(self, access: Access, ranges: Ranges) -> tuple[Numbers, tuple[int, ...]]:
        """A view of an array with all the cells that an access may be, and the dimensions in which an array
        says which: along these it has the range of what may be looked up."""
        dims = _looked_up(access)
        begin, sizes = [b for b, _ in ranges], [e - b for b, e in ranges]
        chosen: list[EllipsisType | slice] = [..., *[slice(None)] * len(access.index)]
        for k in dims:
            form = access.index[k]
            assert isinstance(form, Indirect)
            rest = Affine(form.rest.terms, form.rest.value(begin))
            low, high = Indirect(form.lookups, rest).bounds(sizes)
            chosen[k + 1] = slice(max(low, 0), high + 1)  # a guard keeps what is outside from being one
        return self.origins[access.array].reshape(self.sizes[access.array])[tuple(chosen)], dims


def _looked_up(access: Access) -> tuple[int, ...]:
    """The dimensions whose index an array says."""
    return tuple([k for k, form in enumerate(access.index) if isinstance(form, Indirect) and form.through])


def _cells(access: Access, dims: Sequence[int], sizes: Sequence[int], grid: Grid, held: Booleans) -> Integers:
    """The number of the cell for each instance, where ``dims`` are of one place; 0 where the guard keeps it
    from being one."""
    known = tuple([Affine() if k in dims else form for k, form in enumerate(access.index)])
    return np.where(held, grid.value(flat(Access(access.array, known), sizes)), 0)


def _axis(begin: int, end: int, d: int, depth: int) -> Integers:
    return np.arange(begin, end).reshape([-1 if d == n else 1 for n in range(depth)])


def _pieces(ranges: Ranges) -> Iterator[Ranges]:
    """The instances in order, so many at once that what is computed of them stays small."""
    if math.prod(end - begin for begin, end in ranges) <= _PIECE:
        yield ranges
        return
    d = next(d for d, (begin, end) in enumerate(ranges) if end - begin > 1)
    begin, end = ranges[d]
    for half in ((begin, (begin + end) // 2), ((begin + end) // 2, end)):
        yield from _pieces((*ranges[:d], half, *ranges[d + 1 :]))
