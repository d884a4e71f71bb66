"""Arrays whose values are known: numbers, iterator expressions, tables, and what the caller has to bind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dojo_core.primitives.array import Array, BuildError, axis_of, filled
from dojo_core.primitives.builder import Builder, checked_dtype
from dojo_core.program.affine import Affine
from dojo_core.program.arithmetic import rounded
from dojo_core.program.dtypes import FLOATS, HALVES
from dojo_core.program.tables import Index, Indirect, Lookup, Table
from dojo_core.program.tree import Access, Number, Op

Values = np.ndarray[Any, Any]

DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
}  # fmt: skip

# What a text spends on constants at most: lines for cells, values in tables.
CELLS, TABLE_VALUES = 16, 4096


def constant(b: Builder, values: Any, dtype: str | None = None, name: str = "constant") -> Array:
    """Known values as an array, in the cheapest form that there is.

    Equal values are a number, those that grow evenly an iterator expression, both without a pass; a few
    different ones are cells that a table chooses from. All others are an input of this name (or one like it),
    whose values are in ``b.constants``: the caller binds them. Raises BuildError for a dtype that there is
    not.
    """
    given = np.asarray(values)
    if dtype is None:
        if given.dtype.name not in DTYPES:
            raise BuildError(f"There is no dtype for NumPy's {given.dtype}: name one.")
        dtype = DTYPES[given.dtype.name]
    checked_dtype(dtype)
    exact = _exact(given, dtype)
    if not exact.size:
        return filled(0, dtype, exact.shape)
    varying = tuple(k for k in range(exact.ndim) if not _same(exact, np.take(exact, [0], axis=k)))
    core = exact[tuple(slice(None) if k in varying else 0 for k in range(exact.ndim))]
    axes = tuple(map(axis_of, exact.shape))
    numbers = [sum(map(len, axes[:k])) for k in varying]
    places = [Affine.iterator(n) for n in numbers]
    if not varying:
        return Array(dtype, Number(_number(core.item(), dtype)), axes)
    form = _evenly(core, places)
    if form is not None:
        return Array(dtype, form, axes)
    return Array(dtype, _cells(b, core, dtype, places, name), axes)


def lookup(b: Builder, values: Values, places: Sequence[Affine]) -> Index | None:
    """Whole numbers as an index over iterators: affine where they grow evenly, else through a table.

    None where they are too many.
    """
    form = _evenly(values, places)
    if form is not None:
        return form
    if values.size + b.table_values > TABLE_VALUES:
        return None
    b.table_values += values.size
    low, high = int(values.min()), int(values.max())
    dtype = "u8" if low >= 0 and high < 256 else "i32"
    b.tables += 1
    key = f"lookup{b.tables}"
    while key in b.inputs:
        key += "_"
    b.reserved.add(key)
    table = Table(key, dtype, values.shape, tuple(map(int, values.ravel())))
    return Indirect.make([(Lookup(table, tuple(places)), 1)], Affine())


def _exact(values: Values, dtype: str) -> Values:
    """The values as the dtype holds them: float64, or whole numbers."""
    if dtype in HALVES:
        return rounded(values.astype(np.float64), dtype)
    if dtype in FLOATS:
        return values.astype(np.float64)
    if dtype == "bool":
        return values.astype(bool).astype(np.int64)
    return values.astype(np.uint64 if dtype == "u64" else np.int64)


def _number(value: int | float, dtype: str) -> int | float:
    """A number for the text; the shortest one that f32 rounds to the same."""
    if isinstance(value, float) and dtype == "f32" and np.isfinite(value):
        value = float(str(np.float32(value)))
    return int(value) if float(value).is_integer() and abs(value) < 2**53 and str(value) != "-0.0" else value


def _same(a: Values, b: Values) -> bool:
    return bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | ((a != a) & (b != b))))


def _evenly(values: Values, places: Sequence[Affine]) -> Affine | None:
    """The affine form of values that are whole numbers and grow evenly along each axis."""
    if not np.all(np.isfinite(values)) or np.abs(values).max() >= 2**24 or np.any(values != np.rint(values)):
        return None
    first = int(values[(0,) * values.ndim])
    steps = [
        int(values[tuple(1 if j == k else 0 for j in range(values.ndim))]) - first for k in range(values.ndim)
    ]
    form = Affine((), first)
    expected = np.full(values.shape, first, np.int64)
    for k, (step, place) in enumerate(zip(steps, places, strict=True)):
        form = form + place * step
        shape = [-1 if j == k else 1 for j in range(values.ndim)]
        expected = expected + (np.arange(values.shape[k]) * step).reshape(shape)
    return form if np.array_equal(expected, values) else None


def _cells(b: Builder, core: Values, dtype: str, places: Sequence[Affine], name: str) -> Access:
    """The element of a constant that varies, over its iterators."""
    if core.size <= CELLS:
        key = b.temporary(dtype, core.shape, name)
        for place in np.ndindex(core.shape):
            _cell(b, key, place, core[place].item(), dtype)
        return Access(key, tuple(places))
    bits = core.view(np.int64)
    _, first, inverse = np.unique(bits.ravel(), return_index=True, return_inverse=True)
    if len(first) <= CELLS:
        order = np.argsort(np.argsort(first))  # by first occurrence, as a reader meets them
        index = lookup(b, order[inverse].reshape(core.shape), places)
        if index is not None:
            key = b.temporary(dtype, (len(first),), name)
            for cell, at in enumerate(sorted(first)):
                _cell(b, key, (cell,), core.ravel()[at].item(), dtype)
            return Access(key, (index,))
    return Access(b.bound(name, dtype, core), tuple(places))


def _cell(b: Builder, key: str, place: Sequence[int], value: int | float, dtype: str) -> None:
    target = Access(key, tuple(Affine((), k) for k in place))
    b.add(Op(target, "", "", (Number(_number(value, dtype)),)))
