"""Streams: results too large for the caches are stored past them; data is asked for ahead of its use."""

from __future__ import annotations

import math

from agents.passes.nests import shared_scopes
from agents.passes.structure import LINE, from_memory, stride, uses, widths_for
from dojo_core.program.affine import Affine
from dojo_core.program.nodes import LONG_FUNCTIONS
from dojo_core.program.tables import affine
from dojo_core.program.target import Target
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Program
from dojo_core.recipes import Sketch

AHEAD = 1024  # elements, where a row is read but once
FAR = 8 << 10  # bytes of rows between what is worked on and what is asked for: nearer comes too late
ROWS = 16  # between what is worked on and what is asked for, where a loop takes a piece of each
SHORT = 512  # bytes of a piece; of longer ones the processor foresees most
APART = 1 << 10  # bytes from piece to piece at least
LINES = 16  # written one after the other, of which the first and the last may be in part
ROW_BYTES = 64 << 10  # a longer row would push out what it was asked for beside


def stream_results(sketch: Sketch) -> None:
    """Store past the caches what is an output, written in vectors, and read nowhere."""
    program = sketch.program
    if not from_memory(program, sketch.context.target):
        return
    read = {program.buffer_of[a.array].name for leaf in program.leaves for a in _read(leaf)}
    for leaf in program.leaves:
        array = leaf.op.target.array
        vector = not leaf.op.accumulate and leaf.scopes and leaf.scopes[-1].mark == "v"
        once = array in program.outputs and program.buffer_of[array].name not in read
        if vector and once and _aligned(program, leaf, sketch.context.target):
            sketch.may("stream_store", sketch.place(leaf.path))


def _read(leaf: Leaf) -> tuple[Access, ...]:
    """What is added to is read as well."""
    return (*leaf.op.reads, leaf.op.target) if leaf.op.accumulate else leaf.op.reads


def _aligned(program: Program, leaf: Leaf, target: Target) -> bool:
    """Is each store a whole vector of the widest kind, at a multiple of its size, and are whole lines written
    at once?

    Others would go through the caches in part, and half a line each way is slower than either: a line leaves
    for memory when another one is begun.
    """
    lanes, access = leaf.scopes[-1].size, leaf.op.target
    if access.indirect or lanes != max(widths_for(program, [leaf], target), default=0):
        return False
    line = LINE // DTYPE_BYTES[program.buffer_of[access.array].dtype]
    first = affine(access.index[-1]).const
    run, strides = _run(program, leaf, access)
    if any(each % lanes for each in (run, *strides, first)):
        return False
    return run >= LINES * line or not any(each % line for each in (run, first, *strides))


def _run(program: Program, leaf: Leaf, access: Access) -> tuple[int, list[int]]:
    """How many elements an operation goes over one after the other, and its strides from run to run."""
    strides = [stride(program, access, depth) for depth in range(len(leaf.scopes))]
    run = 1
    while strides and strides[-1] == run:
        run *= leaf.scopes[len(strides) - 1].size
        strides.pop()
    return run, strides


def ask_for_operands(sketch: Sketch) -> None:
    """Ask for what a tile's results meet, such as a residual or a mask, when its sums begin.

    It is a piece of each of several rows, which no processor foresees.
    """
    for start in sketch.program.leaves:
        array = start.op.target.array
        sums = [
            leaf for leaf in sketch.program.leaves if leaf.op.accumulate and leaf.op.target.array == array
        ]
        if sketch.program.buffer_of[array].location == "register" and not start.op.accumulate and sums:
            depth = shared_scopes(sketch, start.op.provenance, sums[0].op.provenance)
            for operand in _met(sketch.program, start, depth, sketch.context.target):
                sketch.may("prefetch", sketch.place(start.path), str(operand))


def _met(program: Program, start: Leaf, depth: int, target: Target) -> list[Access]:
    """What operations beside a tile's sums read, vector by vector, of arrays that outgrow the first cache."""
    beside = [leaf for leaf in program.leaves if leaf.path[:depth] == start.path[:depth]]
    made = {leaf.op.target.array for leaf in beside}
    shape = [(scope.size, scope.mark == "v") for scope in start.scopes[depth:]]
    found = dict[Access, None]()
    for leaf in beside:
        if leaf.op.accumulate or [(scope.size, scope.mark == "v") for scope in leaf.scopes[depth:]] != shape:
            continue
        for access in leaf.op.reads:
            buffer = program.buffer_of[access.array]
            rows = [d for d in range(depth, len(leaf.scopes)) if uses(access, d)]
            far = buffer.location == "heap" and buffer.bytes > target.first_cache_bytes
            if far and access.array not in made and not access.indirect and len(rows) > 1:
                found[access] = None
    return list(found)


def ask_for_rows(sketch: Sketch) -> None:
    """Ask for later rows where a loop takes a short piece of each row of an array: the processor follows what
    lies within a page. Not for what is asked for already."""
    asked = _asked(sketch.program)
    for leaf in sketch.program.leaves:
        for depth, access in _short_pieces(sketch.program, leaf, sketch.context.target):
            if access.array in asked:
                continue
            later = access.substitute({depth: Affine.iterator(depth) + ROWS})
            sketch.may("prefetch", sketch.place(leaf.path), str(later))


def _short_pieces(program: Program, leaf: Leaf, target: Target) -> list[tuple[int, Access]]:
    """What a vector operation reads piece by piece of rows, with the depth of the scope over the rows."""
    loops = [d for d, scope in enumerate(leaf.scopes) if scope.mark not in ("u", "v")]
    if not loops or leaf.scopes[-1].mark != "v" or leaf.scopes[loops[-1]].size < 2 * ROWS:
        return []
    rows, found = loops[-1], list[tuple[int, Access]]()
    beside = [other for other in program.leaves if other.path[: rows + 1] == leaf.path[: rows + 1]]
    for access in leaf.op.reads:
        buffer = program.buffer_of[access.array]
        element = DTYPE_BYTES[buffer.dtype]
        far = buffer.location == "heap" and buffer.bytes > target.first_cache_bytes and not access.indirect
        alone = sum(access.array in {a.array for a in other.op.reads} for other in beside) == 1
        inside = [d for d in range(rows + 1, len(leaf.scopes)) if uses(access, d)]
        piece = math.prod(leaf.scopes[d].size for d in inside) * element
        if far and alone and inside and piece < SHORT and stride(program, access, rows) * element >= APART:
            found.append((rows, access))
    return found


def ask_ahead(sketch: Sketch) -> None:
    """Prefetch later rows where rows are gone over more than once, else further on in the same row; not what
    is asked for already, as by a pipeline."""
    program = sketch.program
    if not from_memory(program, sketch.context.target):
        return
    asked = _asked(program)
    for array in (each for each in program.inputs if each not in asked):
        by_loop = {
            leaf.path[:-1]: (leaf, access)
            for leaf in program.leaves
            for access in leaf.op.reads
            if access.array == array and _row_wise(program, leaf, access)
        }
        uses = list(by_loop.values())  # one for each time that a row is gone over
        if not uses or len({leaf.path[0] for leaf, _ in uses}) > 1:
            continue
        # Of two times the last, of three the second: memory has the time of the others to catch up.
        leaf, access = uses[1] if len(uses) > 2 else uses[-1]
        if any(_reduces(other) for other in program.leaves if other.path[0] == leaf.path[0]):
            buffer = program.buffer_of[array]
            row = buffer.bytes // buffer.dims[0].size
            if len(uses) == 1 and _narrow(program, leaf) and not _stores(program):
                continue
            later = _later_row(access, 1 + FAR // row) if len(uses) > 1 else _further(access)
            sketch.may("prefetch", sketch.place(leaf.path), str(later))


def ask_beside_functions(sketch: Sketch) -> None:
    """Prefetch further on where a loop goes once over arrays and computes functions of many instructions:
    what these leave of the time is too short to wait for memory in, and the processor asks no further than
    the page. Loops that only wait for memory are not faster by it, and machines whose vectors are a line have
    no time to lose here."""
    program = sketch.program
    if not from_memory(program, sketch.context.target):
        return
    asked = _asked(program)
    nests = dict[int, list[Leaf]]()
    for leaf in program.leaves:
        nests.setdefault(leaf.path[0], []).append(leaf)
    for nest in nests.values():
        if any(map(_reduces, nest)) or not any(leaf.op.function in LONG_FUNCTIONS for leaf in nest):
            continue
        for leaf in nest:
            for access in leaf.op.reads:
                new = access.array in program.inputs and access.array not in asked and not access.indirect
                if new and leaf.scopes[-1].mark == "v" and _narrow(program, leaf):
                    if _run(program, leaf, access)[0] > 2 * AHEAD:
                        sketch.may("prefetch", sketch.place(leaf.path), str(_further(access)))
                    asked.add(access.array)


def _narrow(program: Program, leaf: Leaf) -> bool:
    """Are its vectors shorter than a line? Machines of these find a stream that is only read by themselves,
    and read it more slowly where it is asked for as well."""
    return leaf.scopes[-1].size * DTYPE_BYTES[program.buffer_of[leaf.op.reads[0].array].dtype] < LINE


def _stores(program: Program) -> bool:
    """Is anything stored past the caches?"""
    return any(leaf.op.stream for leaf in program.leaves)


def _asked(program: Program) -> set[str]:
    """The arrays of which something is asked for."""
    return {access.array for leaf in program.leaves for access in leaf.op.prefetches}


def _reduces(leaf: Leaf) -> bool:
    return bool(leaf.op.accumulate)


def _row_wise(program: Program, leaf: Leaf, access: Access) -> bool:
    """Does each iteration of the outermost scope read a short row of its own, in vectors?"""
    if not leaf.scopes or leaf.scopes[-1].mark != "v" or not access.index or len(leaf.scopes) < 2:
        return False
    inner = len(leaf.scopes) - 1
    if any(leaf.scopes[d].mark for d in access.index[0].depths):  # several side by side are streams enough
        return False
    rows = [k for k, form in enumerate(access.index) if form.uses(0)]
    row = program.buffer_of[access.array].bytes // leaf.scopes[0].size
    return rows == [0] and access.index[-1].uses(inner) and len(access.index) == 2 and row <= ROW_BYTES


def _later_row(access: Access, rows: int) -> Access:
    return Access(access.array, (access.index[0] + rows, *access.index[1:]))


def _further(access: Access) -> Access:
    return Access(access.array, (*access.index[:-1], access.index[-1] + AHEAD))
