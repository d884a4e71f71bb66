"""Which elements of an input a program's sums bring together, and which inputs reach an operation.

A slab of an input is what one result of a sum goes over, an index of the dimensions that the sum keeps: a row
of layer normalisation, a channel of all images of batch normalisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import FLOATS
from dojo_core.program.tables import Index
from dojo_core.program.tree import Access, Leaf, Op, Program

Kept = tuple[int, ...]  # dimensions of an input
_Origin = tuple[frozenset[int], ...]  # for each dimension of an array, those of an input that it goes along


def kept_dimensions(program: Program) -> dict[str, tuple[Kept, ...]]:
    """For each input, the dimensions that sums over it keep: the fewest, and others that do not hold these.

    So of sums of rows and of columns both. () where a sum goes over all of it. Where there is no sum, all
    but the last. A dimension that a sum goes over in part, as a tile's or a window's, is not kept.
    """
    origins: dict[str, dict[str, _Origin]] = {}
    alternatives: dict[str, set[Kept]] = {}
    for name in program.inputs:
        rank = len(program.buffer_of[name].dims)
        origins[name] = {name: tuple(frozenset([d]) for d in range(rank))}
        alternatives[name] = set()
    for leaf in program.leaves:
        target = leaf.op.target
        outside = {d for form in target.index for d in form.depths}
        for read in leaf.op.reads:
            for name, origin in origins.get(read.array, {}).items():
                along = _iterators(read, origin)
                summed = {dim for depth, dims in along.items() if depth not in outside for dim in dims}
                if leaf.op.accumulate and summed:
                    everything = frozenset().union(*along.values())
                    alternatives[name].add(tuple(sorted(everything - summed)))
                if target.array != read.array:
                    made = tuple(
                        frozenset(dim for d in form.depths for dim in along.get(d, ()))
                        for form in target.index
                    )
                    before = origins.setdefault(target.array, {}).get(name, made)
                    origins[target.array][name] = tuple(a | b for a, b in zip(before, made, strict=True))
    return {
        name: _fewest(choices) or (tuple(range(len(program.buffer_of[name].dims) - 1)),)
        for name, choices in alternatives.items()
    }


def _fewest(choices: Iterable[Kept]) -> tuple[Kept, ...]:
    ordered = sorted(choices, key=lambda dims: (len(dims), dims))
    return tuple(dims for k, dims in enumerate(ordered) if not any(set(o) <= set(dims) for o in ordered[:k]))


def _iterators(read: Access, origin: _Origin) -> dict[int, frozenset[int]]:
    """Along which dimensions of the input each iterator of a read goes."""
    along: dict[int, frozenset[int]] = {}
    for form, dims in zip(read.index, origin, strict=True):
        for depth in form.depths:
            along[depth] = along.get(depth, frozenset()) | dims
    return along


def read_box(program: Program, name: str) -> tuple[slice, ...]:
    """The elements of an input that are read, as a box around them: not what pads it."""
    sizes = [d.size for d in program.buffer_of[name].dims]
    begin, end = list(sizes), [0] * len(sizes)
    for leaf in program.leaves:
        for read in leaf.op.reads:
            if read.array == name:
                for dim, form in enumerate(read.index):
                    low, high = _range(form, leaf, sizes[dim])
                    begin[dim], end[dim] = min(begin[dim], low), max(end[dim], high)
    return tuple(slice(b, e) if b < e else slice(None) for b, e in zip(begin, end, strict=True))


def _range(form: Index, leaf: Leaf, size: int) -> tuple[int, int]:
    """What an index takes, [begin, end), within an array of ``size``."""
    if not isinstance(form, Affine):  # through a table: anywhere
        return 0, size
    low = high = form.const
    for depth, coefficient in form.terms:
        reach = coefficient * (leaf.scopes[depth].size - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return max(low, 0), min(high + 1, size)  # a guard keeps what is outside from being read


def sources(program: Program) -> dict[str, frozenset[str]]:
    """For each array, the inputs that go into it."""
    sources_of = {name: frozenset([name]) for name in program.inputs}
    while True:
        before = dict(sources_of)
        for leaf in program.leaves:
            read = (sources_of.get(access.array, frozenset()) for access in leaf.op.reads)
            sources_of[leaf.op.target.array] = sources_of.get(leaf.op.target.array, frozenset()).union(*read)
        if sources_of == before:
            return sources_of


def summed(program: Program) -> frozenset[str]:
    """The arrays that are a floating-point sum, or go into one."""
    arrays: frozenset[str] = frozenset()
    while True:
        before = arrays
        for leaf in program.leaves:
            target = leaf.op.target.array
            sums = leaf.op.accumulate == "+" and program.buffer_of[target].dtype in FLOATS
            if sums:
                arrays |= {target}
            if target in arrays:
                arrays |= {access.array for access in leaf.op.reads}
        if arrays == before:
            return arrays


def behind(op: Op, inputs: Mapping[str, frozenset[str]], sums: frozenset[str]) -> frozenset[str]:
    """The inputs that decide what a rewrite of an operation makes of it: a divisor's; those of a square that
    is summed (both factors have them), or of an exponential that is."""
    reads = [inputs.get(o.array, frozenset()) if isinstance(o, Access) else frozenset() for o in op.operands]
    if op.function == "/":
        return reads[1]
    if op.function in ("*", "fma") and op.target.array in sums:
        return reads[0] & reads[1]
    if op.function == "exp" and op.target.array in sums:
        return reads[0]
    return frozenset()


def takes_patterns(program: Program, name: str) -> bool:
    """Is an input filled with patterns beside the one that leads? One of any floating-point numbers is."""
    buffer = program.buffer_of[name]
    return buffer.dtype in FLOATS and bool(buffer.dims) and program.domain_of(name) is None
