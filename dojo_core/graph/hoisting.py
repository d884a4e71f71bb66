"""What a program makes of constants alone in every run is made once, when the model is loaded.

A pass packs what a product reads again and again, panel by panel, into memory that each thread has::

    64:p 768 48 px2[{0},{1},{2}] = x2[{1},{0}*48+{2}]

Where x2 is a weight, all panels may be there beforehand: the copy becomes an input, and the nest that makes
it a program of its own. So do sums of weights, as a bilinear algorithm multiplies by.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dojo_core.primitives.elision import accessing, goes_along
from dojo_core.program.affine import Affine
from dojo_core.program.nodes import leaves
from dojo_core.program.text import parse
from dojo_core.program.tree import (
    Access,
    Buffer,
    Dim,
    Leaf,
    Node,
    Number,
    Op,
    Program,
    Scope,
    summary,
)

GROWTH = 2  # times the elements that it is made of, which an array may have
MOST = 4  # and times those of the constants behind it

Kept = tuple[int, ...]  # the dimensions that stay of an array


@dataclass(frozen=True)
class Hoisted:
    """``once`` takes constants, and gives arrays that ``each_run`` takes under the same names, beside those
    of the program's inputs that it reads still."""

    once: Program
    each_run: Program


def hoisted(program: Program, constants: Collection[str]) -> Hoisted | None:
    """A program in two, by which of its inputs are constants; None where it makes nothing of them alone."""
    made: dict[str, Kept] = {}
    known = {
        name: _Known(tuple(range(len(buffer.dims))), buffer.cells, frozenset({name}))
        for name in constants
        for buffer in [program.buffer_of[name]]
    }
    while True:
        more = {
            buffer.name: kept
            for buffer in program.buffers
            if buffer.name not in made and (kept := _made(program, buffer, known)) is not None
        }
        if not more:
            break
        made |= more
        known |= {name: _known(program, name, kept, known) for name, kept in more.items()}
    others = [leaf.op for leaf in program.leaves if leaf.op.target.array not in made]
    read = {access.array for op in others for access in op.sources}
    wanted = tuple(buffer.name for buffer in program.buffers if buffer.name in made and buffer.name in read)
    return divided(program, made, wanted) if wanted else None


def divided(program: Program, arrays: Mapping[str, Kept], wanted: tuple[str, ...]) -> Hoisted:
    """A program in what writes some temporaries, of which it gives those that are ``wanted``, and the rest.

    ``arrays``: the dimensions that stay of each.
    """
    once = _parts(program.body, arrays, copying=True)
    once = tuple(_single(node, 0) for node in once)
    each_run = _parts(program.body, arrays, copying=False)
    return Hoisted(
        _program(program, once, arrays, program.inputs, wanted),
        _program(program, each_run, arrays, (*program.inputs, *wanted), program.outputs),
    )


@dataclass(frozen=True)
class _Known:
    """An array that is the same in every run: the dimensions that stay, its number of elements then, and the
    constants behind it."""

    kept: Kept
    cells: int
    constants: frozenset[str]


def _known(program: Program, array: str, kept: Kept, known: Mapping[str, _Known]) -> _Known:
    cells = math.prod(program.buffer_of[array].dims[dim].size for dim in kept)
    writers = (leaf.op for leaf in program.leaves if leaf.op.target.array == array)
    behind = (known[access.array].constants for op in writers for access in op.sources)
    return _Known(kept, cells, frozenset().union(*behind))


def _made(program: Program, buffer: Buffer, known: Mapping[str, _Known]) -> Kept | None:
    """The dimensions that stay of a temporary that is made of known arrays and numbers alone; None for any
    other.

    Along other dimensions all its elements are the same. What lies in registers is there so as not to be read
    from memory.
    """
    name = buffer.name
    if buffer.location == "register" or buffer.arrays != (name,):
        return None
    if name in program.interface or name in program.index_arrays:
        return None
    writers = [leaf for leaf in program.leaves if leaf.op.target.array == name]
    readers = [leaf for leaf in program.leaves if name in {a.array for a in leaf.op.sources}]
    sources: set[str] = set()
    same = set(range(len(buffer.dims)))
    for leaf in writers:
        used = _used(program, leaf, known)
        along = [goes_along(form) for form in leaf.op.target.index]
        if used is None or not used <= _told(leaf):
            return None
        sources |= {access.array for access in leaf.op.sources}
        same &= {dim for dim in same if _all_along(leaf, dim, buffer.dims[dim]) and along[dim] not in used}
    if not sources or (len(writers) > 1 and not _before(writers, readers, name)):
        return None
    kept = tuple(dim for dim in range(len(buffer.dims)) if dim not in same)
    its = _known(program, name, kept, known)
    behind = sum(known[constant].cells for constant in its.constants)
    small = its.cells <= min(GROWTH * sum(known[s].cells for s in sources), MOST * behind)
    return kept if small else None


def _before(writers: Sequence[Leaf], readers: Sequence[Leaf], array: str) -> bool:
    """Do several writers, which fill an element one after the other, do so before anybody reads it? In scopes
    that they share they do where each iteration has elements of its own."""
    for reader in readers:
        accesses = [access for access in reader.op.sources if access.array == array]
        for writer in writers:
            if writer.path > reader.path:
                return False
            shared = next(n for n, (a, b) in enumerate(zip(writer.path, reader.path, strict=False)) if a != b)
            for depth in range(shared):
                own = Affine.iterator(depth)
                if _uses(writer.op, depth) and not any(
                    form == own and all(access.index[dim] == own for access in accesses)
                    for dim, form in enumerate(writer.op.target.index)
                ):
                    return False
    return True


def _used(program: Program, leaf: Leaf, known: Mapping[str, _Known]) -> set[int] | None:
    """The iterators on which what an operation writes hangs; None where it hangs on more than known arrays
    and numbers, or computes in another type than theirs: weights are stored narrow so as to be read fast."""
    op = leaf.op
    dtype = program.buffer_of[op.target.array].dtype
    # What is added up hangs on how often.
    used = set(range(len(leaf.scopes))) if op.accumulate else set[int]()
    used |= {depth for comparison in op.guard for depth in comparison.form.depths}
    if op.target.indirect:
        return None
    for operand in op.operands:
        if isinstance(operand, Number):
            continue
        if isinstance(operand, Affine) or operand.array not in known:
            return None
        if op.function and program.buffer_of[operand.array].dtype != dtype:
            return None
        for form in [operand.index[dim] for dim in known[operand.array].kept]:
            if not isinstance(form, Affine):
                return None
            used |= set(form.depths)
    return used


def _uses(op: Op, depth: int) -> bool:
    """Does what an operation does hang on the iterator at a depth?"""
    forms = [form for access in op.elements for form in access.index]
    forms += [operand for operand in op.operands if isinstance(operand, Affine)]
    return any(form.uses(depth) for form in forms) or any(c.form.uses(depth) for c in op.guard)


def _told(leaf: Leaf) -> set[int]:
    """The iterators that are told by which element an operation writes."""
    told: set[int] = set()
    for form in leaf.op.target.index:
        if not isinstance(form, Affine):
            continue
        reach = 0  # of the terms with smaller steps
        for step, depth in sorted((abs(number), depth) for depth, number in form.terms):
            if step <= reach:
                break
            reach += step * (leaf.scopes[depth].size - 1)
        else:
            told |= set(form.depths)
    return told


def _all_along(leaf: Leaf, dim: int, of: Dim) -> bool:
    """Does an operation write all along a dimension, by an iterator of its own?"""
    form = leaf.op.target.index[dim]
    along = goes_along(form)
    return along is not None and form == Affine.iterator(along) and leaf.scopes[along].size == of.size


# ---------------------------------------------------------------------------- the parts


def _parts(body: tuple[Node, ...], copies: Mapping[str, Kept], copying: bool) -> tuple[Node, ...]:
    """What of a body copies, or what does not, with the dimensions that stay."""
    parts = (_part(node, copies, copying) for node in body)
    return tuple(part for part in parts if part is not None)


def _part(node: Node, copies: Mapping[str, Kept], copying: bool) -> Node | None:
    if isinstance(node, Scope):
        body = _parts(node.body, copies, copying)
        return replace(node, body=body) if body else None
    if (node.target.array in copies) != copying:
        return None

    def access(old: Access) -> Access:
        kept = copies.get(old.array)
        return old if kept is None else Access(old.array, tuple(old.index[dim] for dim in kept))

    prefetches = () if copying else tuple(map(access, node.prefetches))
    return replace(accessing(node, access), prefetches=prefetches)


def _single(node: Node, depth: int) -> Node:
    """A scope whose iterations all do the same, once: threads would do it side by side, and lanes cannot."""
    if not isinstance(node, Scope):
        return node
    body = tuple(_single(child, depth + 1) for child in node.body)
    ops = [leaf.op for leaf in leaves(body)]
    if any(op.accumulate or _uses(op, depth) for op in ops):
        return replace(node, body=body)
    return replace(node, size=1, mark="", body=body)


def _program(
    program: Program,
    body: tuple[Node, ...],
    copies: Mapping[str, Kept],
    inputs: Collection[str],
    outputs: tuple[str, ...],
) -> Program:
    """A part as a program of its own, with the inputs that it reads."""
    accessed = set(summary(body).first_accessed)
    buffers = [
        Buffer(b.name, b.dtype, tuple(Dim(b.dims[dim].size) for dim in copies[b.name]), "heap", b.arrays)
        if b.name in copies
        else b
        for b in program.buffers
        if accessed & set(b.arrays) or set(b.arrays) & set(outputs)
    ]
    made = Program.make(
        program.name,
        tuple(name for name in inputs if name in accessed),
        outputs,
        tuple(buffers),
        body,
        domains=tuple(d for d in program.domains if d.array in accessed),
    )
    return parse(made.text)
