"""What the ``:s`` and ``:f`` marks of a program come to on a Snitch core: streams, and instructions of a
loop.

A ``:s`` scope is a *region*: each access of an operation in it to memory (whatever is not a register
buffer) is a stream of its own, ft0, ft1 and ft2 in the order of the text, operands before targets. A
stream's data mover walks up to four loops by itself; the core only switches streams on, and off behind the
last use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dojo_core.program.affine import Affine
from dojo_core.program.dependence import MemoryAccess
from dojo_core.program.tree import Access, Leaf, Op, Path, Program, Scope, walk

REPEATABLE = ("", "+", "-", "*", "neg", "abs", "max", "min", "fma")  # one or two FPU instructions each
OLD, TARGET = (
    -2,
    -1,
)  # slots of an operation beside its operands: what an accumulation starts from, what is written


@dataclass(frozen=True)
class Stream:
    """One access of a region. ``slot``: the number of the operand, OLD or TARGET. ``dims``: (elements, cells
    from one to the next), innermost first; a read element is used ``repeat`` times. ``start``: the first
    element's cell in its buffer, in the iterators around the region."""

    leaf: Leaf
    slot: int
    access: Access
    write: bool
    start: Affine
    dims: tuple[tuple[int, int], ...]
    repeat: int


def regions(program: Program) -> list[tuple[Path, Scope]]:
    """The ``:s`` scopes in order."""
    return [(p, n) for n, p, _ in walk(program.body) if isinstance(n, Scope) and n.mark == "s"]


def region_depth(leaf: Leaf) -> int | None:
    """The depth of the ``:s`` scope around an operation, if there is one."""
    return next((d for d, s in enumerate(leaf.scopes) if s.mark == "s"), None)


def memory_slots(program: Program, op: Op) -> Iterator[tuple[int, Access]]:
    """The accesses of an operation to memory, in the order in which streams are numbered."""

    def in_memory(access: Access) -> bool:
        return program.buffer_of[access.array].location != "register"

    for slot, operand in enumerate(op.operands):
        if isinstance(operand, Access) and in_memory(operand):
            yield slot, operand
    if in_memory(op.target):
        if op.accumulate:
            yield OLD, op.target
        yield TARGET, op.target


def cell(program: Program, access: Access) -> Affine:
    """The cell of its buffer that an access without tables reaches."""
    flat, step = Affine(), 1
    buffer = program.buffer_of[access.array]
    for form, dim in zip(reversed(access.index), reversed(buffer.dims), strict=True):
        if dim.materialised:
            assert isinstance(form, Affine)
            flat, step = flat + form * step, step * dim.size
    return flat


def stream(program: Program, leaf: Leaf, slot: int, access: Access, most: int) -> Stream:
    """The stream of an access in a region, its dims merged; ``most`` uses of one element."""
    depth = region_depth(leaf)
    assert depth is not None
    form = cell(program, access)
    write, repeat = slot == TARGET, 1
    loops = [(s.size, form.coefficient(d)) for d, s in enumerate(leaf.scopes) if d >= depth and s.size > 1]
    loops.reverse()
    while loops and not write and loops[0][1] == 0 and repeat * loops[0][0] <= most:
        repeat *= loops.pop(0)[0]
    dims: list[tuple[int, int]] = []
    for size, stride in loops:
        if dims and stride == dims[-1][0] * dims[-1][1]:
            dims[-1] = (dims[-1][0] * size, dims[-1][1])
        else:
            dims.append((size, stride))
    outer = Affine(tuple(t for t in form.terms if t[0] < depth), form.const)
    return Stream(leaf, slot, access, write, outer, tuple(dims) or ((1, 0),), repeat)


def streams_of(program: Program, path: Path, most: int) -> list[Stream]:
    """The streams of the region at a path, ft0 first."""
    return [
        stream(program, leaf, slot, access, most)
        for leaf in program.leaves
        if leaf.path[: len(path)] == path
        for slot, access in memory_slots(program, leaf.op)
    ]


def memory_access(one: Stream) -> MemoryAccess:
    """The access as the dependence analysis takes it."""
    return MemoryAccess(one.leaf, one.access, "w" if one.write else "r")


def instructions_of(program: Program, op: Op, streamed: bool) -> int:
    """How many FPU instructions an operation takes, loads and stores aside."""
    reads = {slot for slot, _ in memory_slots(program, op)} if streamed else set()
    function = "" if op.accumulate == "+" and op.function in ("*", "neg") else op.function
    # A stream gives each element once; |x| names its operand twice.
    moved = op.function == "abs" and 0 in reads
    return int(bool(function) or not op.accumulate) + int(bool(op.accumulate)) + int(moved)


def repeated_instructions(program: Program, node: Scope | Op, streamed: bool) -> int:
    """The FPU instructions of one iteration, unrolled scopes written out."""
    if isinstance(node, Op):
        return instructions_of(program, node, streamed)
    below = sum(repeated_instructions(program, child, streamed) for child in node.body)
    return below * node.size if node.mark == "u" else below
