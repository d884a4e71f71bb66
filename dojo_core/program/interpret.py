"""What a program computes, in float64: the meaning that generated code is checked against.

f32 and f64 are not rounded, so that errors can be measured against the result. f16 and bf16 are rounded on
every write, sums and products after every term in the order of the text, and so are floating-point numbers
that go on into integers, which must come out exact. Integers wrap around. A conversion gives what its dtype
holds: a floating-point number becomes an integer towards zero, the nearest one that there is beyond the
range, and 0 where it is NaN. docs/promises.md says what is promised of NaN, infinities and zeros.

``interpret`` evaluates logical cells, a whole scope at a time where no iteration depends on another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dojo_core.program.affine import Affine
from dojo_core.program.arithmetic import (
    ACCUMULATIONS,
    Array,
    Combination,
    Meaning,
    folded,
    held,
    rounded,
    storage_dtype,
    tf32_value,
)
from dojo_core.program.dependence import rounds_factors
from dojo_core.program.dtypes import FLOATS, HALVES, STORAGE_FLOATS, STORAGE_INTEGERS, extremes
from dojo_core.program.minifloats import minifloat_stored, minifloat_values
from dojo_core.program.tables import Index, Indirect, Lookup, Table, affine
from dojo_core.program.tree import (
    Access,
    Comparison,
    Node,
    Number,
    Op,
    Program,
    Scope,
    leaves,
)

# Elements of one temporary (512 MiB of float64): larger steps are cut along their outermost iterator.
CHUNK_CELLS = 1 << 26

# Whole numbers that float64 holds: a sum of integer products below it is exact in float64.
_WHOLE = 2**53


def interpret(
    program: Program, inputs: Mapping[str, Array], each_write: bool = True, tf32: bool = False
) -> dict[str, Array]:
    """The outputs by name, from the inputs by name, in float64 (integers in int64, u64 in uint64).

    Without ``each_write`` a scope's sum of f16 or bf16 is rounded once, not after every term: no order of
    its terms comes nearer. With ``tf32`` all factors are rounded that the policy of that name lets
    be so. Cells that nothing writes are NaN (0 in integers). Raises ValueError for an input that is missing
    or has another shape, IndexError for an unguarded index outside its array.
    """
    return _Logical(program, inputs, each_write, tf32).run()


def input_array(program: Program, inputs: Mapping[str, Array], array: str, copy: bool = True) -> Array:
    """An input as its dtype holds it; where no ``copy`` is needed perhaps the given array. Raises ValueError
    where it is missing or has another shape."""
    if array not in inputs:
        raise ValueError(f"The input {array} is missing.")
    buffer = program.buffer_of[array]
    shape = tuple(d.size for d in buffer.dims)
    given = np.asarray(inputs[array])
    if given.shape != shape:
        raise ValueError(f"The input {array} has the shape {shape}, not {given.shape}.")
    if buffer.dtype in HALVES:
        return rounded(given, buffer.dtype)
    if buffer.dtype in STORAGE_FLOATS:
        return minifloat_values(minifloat_stored(given, buffer.dtype), buffer.dtype)
    if buffer.dtype in STORAGE_INTEGERS:
        return held(given, buffer.dtype)
    return given.astype(storage_dtype(buffer.dtype), copy=copy)


def unwritten(shape: tuple[int, ...], dtype: str) -> Array:
    """An array that nothing has written: NaN, 0 in integers."""
    kind = storage_dtype(dtype)
    return np.full(shape, np.nan if kind is np.float64 else 0, kind)


# ---------------------------------------------------------------------------- logical cells


class _Arrays(dict[str, Array]):
    """A program's arrays by name; what nothing has written is made when it is asked for: a large array that
    one operation writes as a whole is never filled before."""

    def __init__(self, program: Program) -> None:
        self._buffer_of = program.buffer_of

    def __missing__(self, name: str) -> Array:
        buffer = self._buffer_of[name]
        self[name] = unwritten(tuple(d.size for d in buffer.dims), buffer.dtype)
        return self[name]


class _Logical:
    """Every array whole. An iterator is a range: one value where the scope runs as a loop, else all."""

    def __init__(self, program: Program, inputs: Mapping[str, Array], each_write: bool, tf32: bool):
        self.program, self.meaning, self.tf32 = program, Meaning(program), tf32
        rounding = (leaf.op for leaf in program.leaves if each_write and self.meaning.rounds(leaf.op))
        self.ordered = frozenset(
            op.target.array for op in rounding
        )  # arrays whose terms count in their order
        written = {leaf.op.target.array for leaf in program.leaves}
        self.arrays = _Arrays(program)
        for array in program.inputs:
            self.arrays[array] = input_array(program, inputs, array, copy=array in written)

    def run(self) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            for node in self.program.body:
                self._node(node, (), ())
        return {array: self.arrays[array] for array in self.program.outputs}

    def _node(self, node: Node, ranges: tuple[tuple[int, int], ...], sizes: tuple[int, ...]) -> None:
        """Run a node; ``ranges`` are the values of the iterators above it, [begin, end)."""
        if isinstance(node, Op):
            self._op(node, ranges)
            return
        inner = (*sizes, node.size)
        whole = independent(node, sizes, self.ordered)
        steps = [(0, node.size)] if whole else [(k, k + 1) for k in range(node.size)]
        for step in steps:
            for child in node.body:
                self._node(child, (*ranges, step), inner)

    def _op(self, op: Op, ranges: tuple[tuple[int, int], ...]) -> None:
        self.terms = widest = math.prod(e - b for b, e in ranges)
        folds = op.accumulate in ("+", "*") and op.target.array in self.ordered
        contraction = not (folds or op.target.indirect) and self._is_contraction(op, ranges)
        if contraction:
            used = {d for form in op.target.index for d in form.depths}
            widest = max(
                math.prod(e - b for d, (b, e) in enumerate(ranges) if any(f.uses(d) for f in a.index))
                for a in op.sources
            )
            widest = max(widest, math.prod(e - b for d, (b, e) in enumerate(ranges) if d in used))
        if widest > CHUNK_CELLS:
            for depth, (begin, end) in enumerate(ranges):
                if end - begin > 1:
                    half = (begin + end) // 2
                    self._op(op, (*ranges[:depth], (begin, half), *ranges[depth + 1 :]))
                    self._op(op, (*ranges[:depth], (half, end), *ranges[depth + 1 :]))
                    return
        if contraction:
            self._contract(op, ranges)
        elif op.guard or op.target.indirect or (folds and _overlapping(op.target, ranges)):
            self._scattered(op, ranges, folds)
        elif folds:
            self._fold(op, ranges)
        else:
            self._strided(op, ranges)

    def _is_contraction(self, op: Op, ranges: Sequence[tuple[int, int]]) -> bool:
        if op.accumulate != "+" or op.function != "*" or len(op.sources) != 2 or op.guard:
            return False
        dtypes = [self.meaning.dtypes[a.array] for a in (op.target, *op.sources)]
        if dtypes[0] in FLOATS:
            if self._is_factored(op, ranges):
                return False
            begun = self._view(op.target, ranges)
            return not (np.signbit(begun) & (begun == 0)).any()  # what is added to -0 may leave it so
        # Sums that float64 holds exactly: those of bytes, up to 2**37 terms.
        largest = [max(-low, high) for low, high in map(extremes, dtypes[1:])]
        return dtypes[0] != "bool" and math.prod(largest) * self.terms <= _WHOLE

    def _is_factored(self, op: Op, ranges: Sequence[tuple[int, int]]) -> bool:
        """Does the sum go along one operand alone? numpy would sum that one before it multiplies, and an
        infinite factor would be of no sign's opposite, a sum overflow that has no large term."""
        for depth, (begin, end) in enumerate(ranges):
            if end - begin > 1 and not any(form.uses(depth) for form in op.target.index):
                first, second = (any(form.uses(depth) for form in read.index) for read in op.sources)
                if first != second:
                    return True
        return False

    def _view(self, access: Access, ranges: Sequence[tuple[int, int]]) -> Array:
        """The cells of an access over all iterators, one axis each, without a copy (stride 0: one cell)."""
        array = self.arrays[access.array]
        return self._gathered(access, ranges) if access.indirect else self._cells(access, array, ranges)

    def _operand(self, op: Op, access: Access, ranges: Sequence[tuple[int, int]]) -> Array:
        """The same of an operand, rounded where it is a factor and these are."""
        if not (self.tf32 and rounds_factors(self.program, op)):
            return self._view(access, ranges)
        if access.indirect:
            return tf32_value(self._gathered(access, ranges))
        return self._cells(access, tf32_value(self.arrays[access.array]), ranges)

    def _cells(self, access: Access, array: Array, ranges: Sequence[tuple[int, int]]) -> Array:
        strides, offset = [0] * len(ranges), 0
        for form, stride, size in zip(map(affine, access.index), array.strides, array.shape, strict=True):
            low = high = form.const
            for depth, coefficient in form.terms:
                begin, end = ranges[depth]
                low += min(coefficient * begin, coefficient * (end - 1))
                high += max(coefficient * begin, coefficient * (end - 1))
                strides[depth] += coefficient * stride
                offset += coefficient * begin * stride
            offset += form.const * stride
            if low < 0 or high >= size:
                raise IndexError(f"{access} leaves the array: the index runs from {low} to {high} of {size}.")
        extents = [1 if s == 0 else e - b for s, (b, e) in zip(strides, ranges, strict=True)]
        start: Array = np.ndarray((1,), array.dtype, array.data, offset) if array.size else array
        return np.lib.stride_tricks.as_strided(start, extents, strides)

    def _gathered(self, access: Access, ranges: Sequence[tuple[int, int]]) -> Array:
        """The cells of an indirect access, copied: one axis per iterator, of length 1 where unused."""
        array = self.arrays[access.array]
        index = [self._indices(form, ranges) for form in access.index]
        for positions, size in zip(index, array.shape, strict=True):
            if positions.min() < 0 or positions.max() >= size:
                raise IndexError(
                    f"{access} leaves the array: {positions.min()} to {positions.max()} of {size}."
                )
        return np.asarray(array[tuple(index)])

    def _indices(self, form: Index, ranges: Sequence[tuple[int, int]]) -> Array:
        """The values of an index, one axis per iterator."""
        if not isinstance(form, Indirect):
            return _grid(form, ranges)
        total = _grid(form.rest, ranges)
        for lookup, coefficient in form.lookups:
            source = lookup.source
            if isinstance(source, Table):
                values = _looked_up(lookup, source, _grid(source.flat(lookup.at), ranges))
            else:
                values = self._view(Access(source.name, lookup.at), ranges).astype(np.int64)
            total = total + values * coefficient
        return np.asarray(total)

    def _values(self, op: Op, ranges: Sequence[tuple[int, int]]) -> Array:
        """What an operation computes over all iterators, one axis each (of length 1 where none is used)."""
        operands: list[Any] = []
        for operand in op.operands:
            if isinstance(operand, Access):
                operands.append(self._operand(op, operand, ranges))
            elif isinstance(operand, Number):
                operands.append(np.asarray(operand.value))
            else:
                operands.append(_grid(operand, ranges))
        value = self.meaning.computed(op, operands)
        value = value.reshape((1,) * (len(ranges) - value.ndim) + value.shape)
        return self.meaning.term(value, op.target.array) if op.accumulate else value

    def _fold(self, op: Op, ranges: Sequence[tuple[int, int]]) -> None:
        """A sum or product that is rounded after every term; its cells are told apart by their iterators."""
        target = self._view(op.target, ranges)
        extents = [e - b for b, e in ranges]
        over = [d for d, extent in enumerate(extents) if target.shape[d] < extent]
        terms = np.moveaxis(np.broadcast_to(self._values(op, ranges), extents), over, range(len(over)))
        terms = terms.reshape(math.prod(extents[d] for d in over), -1)
        dtype = self.meaning.dtypes[op.target.array]
        target[...] = folded(op.accumulate, target.reshape(-1), terms, dtype).reshape(target.shape)

    def _strided(self, op: Op, ranges: Sequence[tuple[int, int]]) -> None:
        value = self._values(op, ranges)
        if not op.accumulate and self._is_whole(op.target, ranges, value):
            stored = self.meaning.stored(value, op.target.array)
            kind = storage_dtype(self.meaning.dtypes[op.target.array])
            # What lies in another array would change with it; a number, or one for many cells, is read-only.
            shared = any(np.may_share_memory(stored, self.arrays[read.array]) for read in op.reads)
            own = stored.flags.writeable and not shared
            self.arrays[op.target.array] = (
                stored.astype(kind, "C", copy=False) if own else np.array(stored, kind, order="C")
            )
            return
        target = self._view(op.target, ranges)
        if op.accumulate:
            combine = ACCUMULATIONS[op.accumulate]
            for axis, (extent, (begin, end)) in enumerate(zip(target.shape, ranges, strict=True)):
                if extent == 1 and end - begin > 1:
                    if value.shape[axis] > 1:
                        value = combine.reduce(value, axis=axis, keepdims=True)
                    elif op.accumulate == "+":
                        value = value * value.dtype.type(end - begin)
                    elif op.accumulate == "*":
                        value = value ** value.dtype.type(end - begin)
            if _overlapping(op.target, ranges):
                self._add_at(op, ranges, value, combine)
                return
            value = combine(target, value)
        target[...] = self.meaning.stored(value, op.target.array)

    def _is_whole(self, target: Access, ranges: Sequence[tuple[int, int]], value: Array) -> bool:
        """Does a value stand for all of an array, cell by cell, so that it need not be copied into it?"""
        shape = tuple(dim.size for dim in self.program.buffer_of[target.array].dims)
        forms = [Affine.iterator(depth) for depth in range(len(shape))]
        whole = [(0, size) for size in shape]
        return value.shape == shape and list(target.index) == forms and list(ranges) == whole

    def _add_at(self, op: Op, ranges: Sequence[tuple[int, int]], value: Array, combine: Combination) -> None:
        """An accumulation where several iterations share a cell by their sum, as in ``y[{0}+{1}]``."""
        array = self.arrays[op.target.array]
        used = [any(f.uses(d) for f in op.target.index) for d in range(len(ranges))]
        spans = [r if u else (r[0], r[0] + 1) for r, u in zip(ranges, used, strict=True)]
        index = np.broadcast_arrays(*(_grid(affine(form), spans) for form in op.target.index))
        combine.at(array, tuple(index), np.broadcast_to(value, index[0].shape))
        array[...] = self.meaning.stored(array, op.target.array)

    def _contract(self, op: Op, ranges: Sequence[tuple[int, int]]) -> None:
        """A sum of products: the matrix products of numpy do it."""
        target = self._view(op.target, ranges)
        operands: list[Any] = []
        present: set[int] = set()
        for access in op.sources:
            view = self._operand(op, access, ranges).astype(np.float64, copy=False)
            axes = [d for d, n in enumerate(view.shape) if n > 1]
            present.update(axes)
            operands += [
                view.reshape([view.shape[d] for d in axes]) if not axes else _squeeze(view, axes),
                axes,
            ]
        wanted = [d for d, n in enumerate(target.shape) if n > 1]
        repeats = math.prod(e - b for d, (b, e) in enumerate(ranges) if d not in present and d not in wanted)
        value = np.einsum(*operands, [d for d in wanted if d in present], optimize=True)
        value = np.asarray(value * repeats if repeats > 1 else value)
        value = value.reshape(
            [ranges[d][1] - ranges[d][0] if d in wanted and d in present else 1 for d in range(len(ranges))]
        )
        if _overlapping(op.target, ranges):
            spans = [
                r if any(f.uses(d) for f in op.target.index) else (r[0], r[0] + 1)
                for d, r in enumerate(ranges)
            ]
            self._add_at(op, spans, self._as_stored(op, value), ACCUMULATIONS["+"])
            return
        target[...] = self.meaning.stored(target + self._as_stored(op, value), op.target.array)

    def _as_stored(self, op: Op, value: Array) -> Array:
        """A sum of products in the kind that its array is kept in."""
        return value.astype(storage_dtype(self.meaning.dtypes[op.target.array]), copy=False)

    def _scattered(self, op: Op, ranges: Sequence[tuple[int, int]], folds: bool) -> None:
        """An operation point by point: only the iterations that its guard lets through, in their order, of
        which the last to write a cell stays."""
        shape = tuple(e - b for b, e in ranges)
        chosen = np.ones(shape, bool)
        for comparison in op.guard:
            chosen &= _holds(comparison, ranges)
        places = np.nonzero(chosen) if ranges else ()
        points = [p + b for p, (b, _) in zip(places, ranges, strict=True)]
        if points and not points[0].size:
            return
        if not points and not chosen:
            return

        def at(form: Index) -> Array:
            if isinstance(form, Indirect):
                values = (found(k) * c for k, c in form.lookups)
                return np.asarray(sum(values, start=at(form.rest)))
            return np.asarray(sum((points[d] * c for d, c in form.terms), start=np.int64(form.const)))

        def found(lookup: Lookup) -> Array:
            source = lookup.source
            if isinstance(source, Table):
                return _looked_up(lookup, source, at(source.flat(lookup.at)))
            return np.asarray(self.arrays[source.name][cell(Access(source.name, lookup.at))]).astype(np.int64)

        def cell(access: Access) -> tuple[Array, ...]:
            index = tuple(at(f) for f in access.index)
            for positions, size in zip(index, self.arrays[access.array].shape, strict=True):
                if positions.min() < 0 or positions.max() >= size:
                    least, most = positions.min(), positions.max()
                    raise IndexError(f"{access} leaves the array: {least} to {most} of {size}.")
            return index

        operands: list[Any] = []
        for operand in op.operands:
            if isinstance(operand, Access):
                values = self.arrays[operand.array][cell(operand)]
                rounds = self.tf32 and rounds_factors(self.program, op)
                operands.append(tf32_value(values) if rounds else values)
            else:
                operands.append(np.asarray(operand.value) if isinstance(operand, Number) else at(operand))
        value = self.meaning.computed(op, operands)
        array, index = self.arrays[op.target.array], cell(op.target)
        count = points[0].shape if points else ()
        if index:
            index = tuple(np.broadcast_to(i, count) for i in index)
        if not op.accumulate:
            value = np.broadcast_to(self.meaning.stored(value, op.target.array), count)
            array[index] = value if index or not count else value[-1]  # the last iteration's stays
            return
        value = np.broadcast_to(self.meaning.term(value, op.target.array), count)
        if folds:
            cells = np.ravel_multi_index(index, array.shape) if index else np.zeros(count, np.int64)
            self._fold_at(op, np.atleast_1d(cells), np.atleast_1d(value))
            return
        if index:
            ACCUMULATIONS[op.accumulate].at(array, index, value)
        else:
            array[...] = ACCUMULATIONS[op.accumulate](
                array, ACCUMULATIONS[op.accumulate].reduce(value.ravel())
            )
        array[...] = self.meaning.stored(array, op.target.array)

    def _fold_at(self, op: Op, cells: Array, terms: Array) -> None:
        """Terms in their order into cells by their number: the first of each cell, then the second, ..."""
        flat = self.arrays[op.target.array].reshape(-1)
        by_cell = np.argsort(cells, kind="stable")
        _, first, counts = np.unique(cells[by_cell], return_index=True, return_counts=True)
        turn = np.arange(len(cells)) - np.repeat(first, counts)
        for k in range(int(counts.max())):
            chosen = by_cell[turn == k] if k else by_cell[first]
            at = cells[chosen]
            flat[at] = folded(
                op.accumulate, flat[at], terms[None, chosen], self.meaning.dtypes[op.target.array]
            )


def _squeeze(view: Array, axes: list[int]) -> Array:
    return view.squeeze(axis=tuple(d for d in range(view.ndim) if d not in axes))


def _looked_up(lookup: Lookup, table: Table, places: Array) -> Array:
    """A table's values at places in row-major order."""
    values = np.asarray(table.values, np.int64)
    if places.min() < 0 or places.max() >= len(values):
        raise IndexError(f"{lookup} leaves the table.")
    return np.asarray(values[places])


def _grid(form: Affine, ranges: Sequence[tuple[int, int]]) -> Array:
    """The values of an affine form, one axis per iterator."""
    total: Array = np.full((1,) * len(ranges), form.const, np.int64)
    for depth, coefficient in form.terms:
        begin, end = ranges[depth]
        shape = [1] * len(ranges)
        shape[depth] = end - begin
        total = total + (np.arange(begin, end, dtype=np.int64) * coefficient).reshape(shape)
    return total


def _holds(comparison: Comparison, ranges: Sequence[tuple[int, int]]) -> Array:
    value = _grid(comparison.form, ranges)
    if comparison.relation == "<":
        return value < comparison.bound
    return value >= comparison.bound if comparison.relation == ">=" else value == comparison.bound


def _overlapping(access: Access, ranges: Sequence[tuple[int, int]]) -> bool:
    """Might two iterations (apart from those that no index uses) meet in one cell?"""
    extents = {d: e - b for d, (b, e) in enumerate(ranges)}
    pending = {d for form in access.index for d in form.depths if extents[d] > 1}
    # An index dimension tells its iterators apart where each coefficient exceeds what those below reach.
    for form in map(affine, access.index):
        reach = 0
        for depth, coefficient in sorted(form.terms, key=lambda t: abs(t[1])):
            if extents[depth] == 1:
                continue
            if abs(coefficient) <= reach:
                break
            reach += abs(coefficient) * (extents[depth] - 1)
        else:
            pending -= set(form.depths)
    return bool(pending)


@lru_cache(maxsize=4_000)
def independent(scope: Scope, above: tuple[int, ...], ordered: frozenset[str]) -> bool:
    """May all iterations of a scope run in lockstep, child by child?

    A sufficient test: any two accesses to one array, one of them a write, are told apart by an index
    dimension in which the scope's iterator has one coefficient, larger than what the iterators below
    it reach. Accumulations of one kind into the same cells commute; into the arrays ``ordered``, whose sums
    are rounded at every write, those of one operation keep their order as they are. The iterators above are
    the same on both sides where their coefficients are.
    """
    depth = len(above)
    by_array: dict[str, list[tuple[Access, str, tuple[int, ...]]]] = {}
    for leaf in leaves((scope,)):
        sizes = (*above, *(s.size for s in leaf.scopes))
        op = leaf.op
        by_array.setdefault(op.target.array, []).append((op.target, f"{op.accumulate}=", sizes))
        for access in op.reads:
            by_array.setdefault(access.array, []).append((access, "", sizes))
    for accesses in by_array.values():
        for k, (first, kind, sizes) in enumerate(accesses):
            for j, (second, other, others) in enumerate(accesses[k:]):
                if not kind and not other:
                    continue
                if kind == other != "=" and (not j or first.array not in ordered or kind[0] == "m"):
                    continue
                if not j and _keeps_its_order(scope, first):
                    continue
                if not _apart(first, sizes, second, others, depth):
                    return False
    return True


def _keeps_its_order(scope: Scope, target: Access) -> bool:
    """Is all that a scope holds one operation that writes where an array says, and reads nothing of what it
    writes? Its iterations are gone through point by point."""
    node: Node = scope
    while isinstance(node, Scope) and len(node.body) == 1:
        (node,) = node.body
    if not (isinstance(node, Op) and node.target is target and target.indirect):
        return False
    return all(read.array != target.array for read in node.reads)


def _apart(a: Access, a_sizes: tuple[int, ...], b: Access, b_sizes: tuple[int, ...], depth: int) -> bool:
    """Do different iterations of the scope at ``depth`` always access different cells?"""
    for left, right in zip(a.index, b.index, strict=True):
        if isinstance(left, Indirect) or isinstance(right, Indirect):
            continue
        c = left.coefficient(depth)
        if not c or right.coefficient(depth) != c:
            continue
        if any(left.coefficient(d) != right.coefficient(d) for d in range(depth)):
            continue
        low, high = Affine(tuple(t for t in left.terms if t[0] > depth), left.const).bounds(a_sizes)
        least, most = Affine(tuple(t for t in right.terms if t[0] > depth), right.const).bounds(b_sizes)
        if max(high - least, most - low) < abs(c):
            return True
    return False
