"""Index arrays: between which values their elements surely lie, and whether what they lead to exists.

An access ``x[i[{0}],{1}]``, read or written, is legal where all values that ``i`` may hold lie in the
dimension. Of an input that is what its domain promises, else all of its dtype; of an array that operations
write it is derived from them: copies, conversions, clamps by numbers, iterators, choices, sums and products
that do not wrap. The rest is taken to be any value of its dtype. What cannot be derived is refused, and a
clamp makes it so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dojo_core.program.affine import Affine
from dojo_core.program.dependence import may_leave
from dojo_core.program.dtypes import COMPARISONS, FLOATS, INTEGERS, dtypes_of, extremes, key_read
from dojo_core.program.nodes import fact
from dojo_core.program.tables import IndexArray, Indirect, Lookup
from dojo_core.program.tree import (
    DTYPE_BYTES,
    Access,
    Comparison,
    Leaf,
    Node,
    Op,
    Operand,
    Path,
    Program,
    Scope,
)

Interval = tuple[float, float]  # ends included; of floating-point numbers a NaN may be beside it
_ANY: Interval = (-math.inf, math.inf)
# Whole numbers up to here are written in the dtype as they stand in the text.
_EXACT = {"f64": 2**53, "f32": 2**24, "f16": 2**11, "bf16": 2**8}
_ROUNDS = 8  # in which what arrays hold settles, but where a loop lets it grow


class IndexFault(NamedTuple):
    """What is wrong with an index that is read from an array."""

    path: Path
    message: str
    remedy: str


@fact
def feeding(program: Program) -> frozenset[str]:
    """The arrays that indices are read from, and all that go into these."""
    arrays = new = program.index_arrays
    while new:
        read = {
            access.array for leaf in program.leaves if leaf.op.target.array in new for access in leaf.op.reads
        }
        new = frozenset(read - arrays)
        arrays |= new
    return arrays


def promised(program: Program, array: str) -> Interval | None:
    """Between which values an input has to lie, so that all indices made of it are in range; None: it may
    hold anything."""
    if array not in feeding(program) or program.domain_of(array) is None:
        return None
    return _promised(program, array, dtypes_of(program)[array])


@fact
def bounds_of(program: Program) -> dict[str, tuple[int, int]]:
    """The least and the greatest value that an element of each index array may have."""
    return {
        array: (int(low), int(high))
        for array, (low, high) in _intervals(program).items()
        if array in program.index_arrays
    }


def _intervals(program: Program) -> dict[str, Interval]:
    arrays, dtypes = feeding(program), dtypes_of(program)
    known = {a: _promised(program, a, dtypes[a]) for a in arrays if a in program.inputs}
    writes = [leaf for leaf in program.leaves if leaf.op.target.array in arrays]
    number, grown = 0, {""}
    while grown:
        grown = set()
        for leaf in writes:
            array = leaf.op.target.array
            made = _made(leaf.op, [s.size for s in leaf.scopes], known, dtypes)
            before = known.get(array)
            if made is None or (before is not None and before[0] <= made[0] and made[1] <= before[1]):
                continue
            grown.add(array)
            known[array] = made if before is None else (min(before[0], made[0]), max(before[1], made[1]))
        if number >= _ROUNDS:  # what goes into itself grows with the iterations: no end is known
            known |= {array: _whole(dtypes[array]) for array in grown & _loops(writes)}
        number += 1
    return {array: known.get(array, _whole(dtypes[array])) for array in arrays}


def _loops(writes: Sequence[Leaf]) -> set[str]:
    """The arrays that go into themselves, be it through others."""
    into: dict[str, set[str]] = {}
    for leaf in writes:
        into.setdefault(leaf.op.target.array, set()).update(a.array for a in leaf.op.sources)
    for _ in into:
        for arrays in into.values():
            arrays |= {far for near in tuple(arrays) for far in into.get(near, ())}
    return {array for array, arrays in into.items() if array in arrays}


def _whole(dtype: str) -> Interval:
    return _ANY if dtype in FLOATS else extremes(dtype)


def _promised(program: Program, array: str, dtype: str) -> Interval:
    domain = program.domain_of(array)
    if domain is None:
        return _whole(dtype)
    if dtype in FLOATS:  # an end may be rounded as a value of the dtype, to a whole number at most
        low, high = math.floor(domain.low), math.ceil(domain.high)
        return (low, high) if max(abs(low), abs(high)) <= _EXACT[dtype] else _ANY
    return math.ceil(domain.low), math.floor(domain.high)


def _made(
    op: Op, sizes: Sequence[int], known: Mapping[str, Interval], dtypes: Mapping[str, str]
) -> Interval | None:
    """Between which values what an operation writes lies; None: an array that it reads holds nothing yet."""
    dtype = dtypes[op.target.array]
    if op.accumulate in ("+", "*"):
        return _whole(dtype)
    computed = op.function if op.function in DTYPE_BYTES else dtype
    within = _within(op, sizes)
    operands = [_operand(o, within, op.guard, known, dtypes, computed) for o in op.operands]
    settled = [o for o in operands if o is not None]
    if len(settled) < len(operands):
        return None
    # The greater or the lesser of what is there and this lies between the two, which the array holds anyhow.
    value = _applied(op, settled, dtypes)
    if computed not in FLOATS:
        value = _kept(value, computed)
    return value if dtype in FLOATS else _kept(value, dtype)


def _kept(value: Interval, dtype: str) -> Interval:
    """What an integer dtype makes of it: what does not fit wraps around."""
    low, high = extremes(dtype)
    return value if low <= value[0] and value[1] <= high else (low, high)


def _within(op: Op, sizes: Sequence[int]) -> list[int]:
    """The sizes of the scopes as the guard cuts them."""
    within = [*sizes]
    for comparison in op.guard:
        terms = comparison.form.terms
        if comparison.relation == "<" and len(terms) == 1 and terms[0][1] == 1 and comparison.bound > 0:
            within[terms[0][0]] = min(within[terms[0][0]], comparison.bound)
    return within


def _operand(
    operand: Operand,
    sizes: Sequence[int],
    guard: Sequence[Comparison],
    known: Mapping[str, Interval],
    dtypes: Mapping[str, str],
    computed: str,
) -> Interval | None:
    if isinstance(operand, Access):
        return known.get(operand.array)
    if isinstance(operand, Affine):
        low, high = operand.bounds(sizes)
        for comparison in guard:  # of the same sum
            if comparison.relation == "<" and comparison.form.terms == operand.terms:
                high = max(low, min(high, comparison.bound - 1 + operand.const))
        rounded = computed in FLOATS and max(abs(low), abs(high)) > _EXACT[computed]
        return _ANY if rounded else (low, high)
    value = operand.value
    if computed not in FLOATS:
        low, high = extremes(computed)
        return _ANY if math.isnan(value) else (min(max(value, low), high),) * 2
    # Any other number is rounded.
    exact = isinstance(value, int) and abs(value) <= _EXACT[computed]
    return (value, value) if exact or math.isinf(value) else _ANY


def _applied(op: Op, values: Sequence[Interval], dtypes: Mapping[str, str]) -> Interval:
    """A function of values between these; ``_ANY`` where that is not known."""
    function = op.function
    whole = all(dtypes[a.array] not in FLOATS for a in (op.target, *op.sources))
    if not function:
        return values[0]
    if function in COMPARISONS:
        return 0, 1
    if function in DTYPE_BYTES:
        return _converted(op, values[0], dtypes)
    if function in ("max", "min"):
        choose = max if function == "max" else min
        return choose(a for a, _ in values), choose(b for _, b in values)
    if function == "select":
        return min(a for a, _ in values[1:]), max(b for _, b in values[1:])
    if function in ("floor", "round"):
        return (values[0][0], values[0][1]) if whole else _whole_part(values[0])
    if function == "keyindex":
        return 0, 2 ** (4 * DTYPE_BYTES[key_read(op, dtypes)] - 1) - 1
    if whole and function in ("+", "-", "*", "neg", "abs"):
        return _whole_numbers(function, values)
    return _ANY


def _whole_part(value: Interval) -> Interval:
    low, high = (v if math.isinf(v) else float(math.floor(v)) for v in value)
    return low, (high if math.isinf(high) else high + (value[1] != high))


def _converted(op: Op, value: Interval, dtypes: Mapping[str, str]) -> Interval:
    """A conversion to an integer: towards zero, the nearest that there is; of NaN it is 0."""
    if op.function in FLOATS or op.function == "bool":
        return _ANY if op.function in FLOATS else (0, 1)
    if all(dtypes[a.array] not in FLOATS for a in op.sources):
        return value
    low, high = (min(max(v, least), most) for v, (least, most) in ((v, extremes(op.function)) for v in value))
    return min(math.trunc(low), 0), max(math.trunc(high), 0)


def _whole_numbers(function: str, values: Sequence[Interval]) -> Interval:
    if any(math.isinf(end) for value in values for end in value):
        return _ANY
    (low, high), (least, most) = values[0], values[-1]
    if function == "+":
        return low + least, high + most
    if function == "-":
        return low - most, high - least
    if function == "neg":
        return -high, -low
    if function == "abs":
        ends = (abs(low), abs(high))
        return (0 if low <= 0 <= high else min(ends)), max(ends)
    products = [a * b for a in (low, high) for b in (least, most)]
    return min(products), max(products)


# ---------------------------------------------------------------------------- programs


def with_bounds(program: Program) -> Program:
    """The program with what is known of its index arrays in each index that is read from one."""
    if not program.index_arrays:
        return program
    bounds = bounds_of(program)
    distinct = {domain.array for domain in program.domains if domain.distinct}

    def renewed(access: Access) -> Access:
        def known(lookup: Lookup) -> Lookup:
            name = lookup.source.name
            return Lookup(IndexArray(name, *bounds[name], distinct=name in distinct), lookup.at)

        index = tuple([i.replaced(known) if isinstance(i, Indirect) else i for i in access.index])
        return Access(access.array, index)

    def visit(node: Node) -> Node:
        if isinstance(node, Scope):
            if node.arrays.isdisjoint(bounds):
                return node
            body = tuple([visit(child) for child in node.body])
            same = all(a is b for a, b in zip(body, node.body, strict=True))
            return node if same else Scope(node.size, body, node.mark, node.provenance)
        operands = tuple([renewed(o) if isinstance(o, Access) and o.indirect else o for o in node.operands])
        target = renewed(node.target) if node.target.indirect else node.target
        same = operands == node.operands and target == node.target
        return node if same else replace(node, target=target, operands=operands)

    body = tuple([visit(node) for node in program.body])
    return program if body == program.body else program.edit(body=body)


def index_fault(program: Program) -> IndexFault | None:
    """The first access through an array that may lie outside of what it accesses, or None. The program is
    one ``with_bounds``."""
    if not program.index_arrays:
        return None
    dtypes = dtypes_of(program)
    for leaf in program.leaves:
        sizes = [scope.size for scope in leaf.scopes]
        for access in leaf.op.elements:
            for index in access.indices:
                if dtypes[index.array] not in INTEGERS:
                    return IndexFault(
                        leaf.path,
                        f"{index.array} is {dtypes[index.array]}, and an index is a whole number",
                        f"Convert it in a line before, such as: j[{{0}}] = i32({index.array}[{{0}}])",
                    )
            dims = program.buffer_of[access.array].dims
            for k, (form, dim) in enumerate(zip(access.index, dims, strict=True)):
                if not isinstance(form, Indirect) or not form.through:
                    continue
                low, high = form.bounds(sizes)
                if (low < 0 or high >= dim.size) and may_leave(form, dim.size, sizes, leaf.op.guard):
                    message = (
                        f"index {k} of {access.array}, {form}, may run from {low} to {high}, "
                        f"outside 0 to {dim.size - 1}"
                    )
                    return IndexFault(leaf.path, message, _remedy(program, form, dim.size, sizes))
    return None


def _remedy(program: Program, form: Indirect, size: int, sizes: Sequence[int]) -> str:
    (lookup, coefficient), *others = form.lookups
    name, low, high = form.through[0].source.name, 0, size - 1
    if not others and coefficient > 0:
        least, most = form.rest.bounds(sizes)
        low, high = -(least // coefficient), (size - 1 - most) // coefficient
    dtype = program.buffer_of[name].dtype
    low, high = max(low, extremes(dtype)[0]), min(high, extremes(dtype)[1])
    if high < low:
        return f"No value of {name} would do: change the index or the dimension."
    if name in program.inputs:
        return f"Promise where the values of {name} lie, below the line in: domain {name} {low} {high}"
    at = f"[{','.join(map(str, lookup.at))}]"
    return (
        f"Clamp it in lines before: a{at} = max({name}{at},{low}), then b{at} = min(a{at},{high}), "
        "and index by b."
    )
