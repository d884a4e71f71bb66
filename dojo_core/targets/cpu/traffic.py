"""Bytes that a cache exchanges with what lies behind it, by a program's structure: a capacity model.

A scope of which one iteration fits a cache brings each line that it touches once: what the next iteration
touches again is still there (the "layer condition" of the ECM model: Stengel, Treibig, Hager and Wellein,
Quantifying performance bottlenecks of stencil computations, ICS 2015). A scope of which none does brings with
each iteration anew what that brings. Lines have 64 bytes; a line that is written comes, and goes back. Runs
follow one another: what fits a cache altogether is there already. What is streamed goes past all caches, to
memory, and leaves none of its lines in them. Sets, prefetches and guards are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from dojo_core.program.tables import Indirect
from dojo_core.program.tree import DTYPE_BYTES, Access, Buffer, Leaf, Node, Op, Path, Program, Scope, leaves

LINE = 64  # bytes


def traffic(program: Program, capacity: int) -> int:
    """Bytes into and out of a cache of ``capacity`` bytes, in one run of many."""
    if _touched(program, program.leaves, 0)[0] <= capacity:
        return 0
    return sum(_traffic(program, node, (), capacity) for node in program.body)


def traffic_by_operation(program: Program, capacity: int, sets: int = 1) -> dict[Path, tuple[int, int]]:
    """Bytes into a cache, and out of it, by the path of the operation that touches a line first, or writes
    it first: they add up to ``traffic``. Where runs rotate among ``sets`` of arrays, all have to fit."""
    found: dict[Path, tuple[int, int]] = {}

    def charge(node: Node, path: Path, scopes: tuple[Scope, ...], runs: int) -> None:
        below: tuple[Leaf, ...]
        if isinstance(node, Op):
            below = (Leaf(node, path, scopes),)
        else:
            below = leaves(node.body, path, (*scopes, node))
            if _touched(program, below, len(scopes) + 1)[0] > capacity:
                for number, child in enumerate(node.body):
                    charge(child, (*path, number), (*scopes, node), runs * node.size)
                return
        lines, back = _lines(program, below, len(scopes))
        going = {name: lines[name] for name in back}
        for leaf in below:
            accesses = [] if leaf.op.stream else [leaf.op.target]
            names = {program.buffer_of[each.array].name for each in (*accesses, *leaf.op.reads)}
            written = program.buffer_of[leaf.op.target.array].name
            out = 0 if leaf.op.stream else going.pop(written, 0)
            into = sum(lines.pop(name, 0) for name in names)
            before = found.get(leaf.path, (0, 0))
            found[leaf.path] = before[0] + runs * into, before[1] + runs * out

    if _touched(program, program.leaves, 0)[0] * sets > capacity:
        for number, node in enumerate(program.body):
            charge(node, (number,), (), 1)
    return found


def streamed(program: Program) -> int:
    """Bytes that one run stores past the caches."""
    return sum(streamed_by(program, leaf) for leaf in program.leaves if leaf.op.stream)


def streamed_by(program: Program, leaf: Leaf) -> int:
    """Bytes of the lines that one operation writes in one run."""
    return _bytes_of_lines(program.buffer_of[leaf.op.target.array], leaf.op.target, leaf.scopes, 0)


def _traffic(program: Program, node: Node, scopes: tuple[Scope, ...], capacity: int) -> int:
    """Of one run of a node."""
    depth = len(scopes)
    below = (Leaf(node, (), scopes),) if isinstance(node, Op) else leaves(node.body, (), (*scopes, node))
    if isinstance(node, Op) or _touched(program, below, depth + 1)[0] <= capacity:
        return _touched(program, below, depth)[1]
    return node.size * sum(_traffic(program, child, (*scopes, node), capacity) for child in node.body)


def _touched(program: Program, below: Sequence[Leaf], depth: int) -> tuple[int, int]:
    """Bytes of the lines that operations touch while their scopes from ``depth`` on go round, and the same
    with those that are written twice: they go back."""
    lines, back = _lines(program, below, depth)
    touched = sum(lines.values())
    return touched, touched + sum(lines[name] for name in back)


def _lines(program: Program, below: Sequence[Leaf], depth: int) -> tuple[dict[str, int], set[str]]:
    """The same by buffer, and the names of those that are written."""
    lines: dict[str, int] = {}
    back: set[str] = set()
    for leaf in below:
        cached = () if leaf.op.stream else (leaf.op.target,)
        for access in (*cached, *leaf.op.reads):
            buffer = program.buffer_of[access.array]
            if buffer.location != "register":
                own = _bytes_of_lines(buffer, access, leaf.scopes, depth)
                lines[buffer.name] = max(own, lines.get(buffer.name, 0))
        if not leaf.op.stream:
            back.add(program.buffer_of[leaf.op.target.array].name)
    return lines, back & lines.keys()


def _bytes_of_lines(buffer: Buffer, access: Access, scopes: Sequence[Scope], depth: int) -> int:
    """Of the lines that an access touches while the scopes from ``depth`` on go round.

    From the smallest stride on, a scope lengthens the stretch that those within it touch, as long as it
    leaves no whole line out; else it repeats it elsewhere. Through a table, each iteration is elsewhere.
    """
    size = DTYPE_BYTES[buffer.dtype]
    strides = [0] * len(scopes)
    step, apart = size, set[int]()
    for form, dim in zip(reversed(access.index), reversed(buffer.dims), strict=True):
        if dim.materialised:
            rest = form.rest if isinstance(form, Indirect) else form
            for scope, coefficient in rest.terms:
                strides[scope] += step * coefficient
            if isinstance(form, Indirect):
                apart |= {scope for scope in range(len(scopes)) if form.looks_up(scope)}
            step *= dim.size
    stretch, places = size, 1
    for stride, scope in sorted((abs(strides[d]), d) for d in range(depth, len(scopes))):
        count = scopes[scope].size
        if scope in apart:
            places *= count
        elif stride <= max(stretch, LINE):
            stretch += stride * (count - 1)
        else:
            places *= count
    return min(places * _whole_lines(stretch), _whole_lines(step))


def _whole_lines(size: int) -> int:
    return -(-size // LINE) * LINE
