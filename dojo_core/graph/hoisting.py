"""What a program makes of constants alone in every run is made once, when the model is loaded.

A pass packs what a product reads again and again, panel by panel, into memory that each thread has::

    64:p 768 48 px2[{0},{1},{2}] = x2[{1},{0}*48+{2}]

Where x2 is a weight, all panels may be there beforehand: the copy becomes an input, and the nest that makes
it a program of its own. So do sums of weights, as a bilinear algorithm multiplies by.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from dojo_core.primitives.elision import accessing, goes_along
from dojo_core.program.affine import Affine
from dojo_core.program.text import parse
from dojo_core.program.tree import Access, Buffer, Dim, Leaf, Node, Number, Program, Scope, summary

GROWTH = 2  # times the elements that it is made of, which an array may have

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
    while True:
        known = {name: program.buffer_of[name].cells for name in constants}
        known |= {name: _cells(program, name, kept) for name, kept in made.items()}
        more = {
            buffer.name: kept
            for buffer in program.buffers
            if buffer.name not in made and (kept := _made(program, buffer, known)) is not None
        }
        if not more:
            break
        made |= more
    others = [leaf.op for leaf in program.leaves if leaf.op.target.array not in made]
    read = {access.array for op in others for access in op.sources}
    wanted = tuple(buffer.name for buffer in program.buffers if buffer.name in made and buffer.name in read)
    return divided(program, made, wanted) if wanted else None


def divided(program: Program, arrays: Mapping[str, Kept], wanted: tuple[str, ...]) -> Hoisted:
    """A program in what writes some temporaries, of which it gives those that are ``wanted``, and the rest.

    ``arrays``: the dimensions that stay of each.
    """
    once = _parts(program.body, arrays, copying=True)
    each_run = _parts(program.body, arrays, copying=False)
    return Hoisted(
        _program(program, once, arrays, program.inputs, wanted),
        _program(program, each_run, arrays, (*program.inputs, *wanted), program.outputs),
    )


def _cells(program: Program, array: str, kept: Kept) -> int:
    dims = program.buffer_of[array].dims
    return math.prod(dims[dim].size for dim in kept)


def _made(program: Program, buffer: Buffer, known: Mapping[str, int]) -> Kept | None:
    """The dimensions that stay of a temporary that is made of known arrays and numbers alone; None for any
    other. ``known``: how many elements these arrays have.

    Along other dimensions all its elements are the same. What lies in registers is there so as not to be read
    from memory.
    """
    name = buffer.name
    if buffer.location == "register" or buffer.arrays != (name,):
        return None
    if name in program.interface or name in program.index_arrays:
        return None
    writers = [n for n, leaf in enumerate(program.leaves) if leaf.op.target.array == name]
    readers = [n for n, leaf in enumerate(program.leaves) if name in {a.array for a in leaf.op.sources}]
    sources: set[str] = set()
    same = set(range(len(buffer.dims)))
    for number in writers:
        leaf = program.leaves[number]
        used = _used(program, leaf, known)
        along = [goes_along(form) for form in leaf.op.target.index]
        if used is None or not used <= _told(leaf):
            return None
        sources |= {access.array for access in leaf.op.sources}
        same &= {dim for dim in same if _all_along(leaf, dim, buffer.dims[dim]) and along[dim] not in used}
    # Several writers fill a cell one after the other: all before anybody reads it.
    if not sources or (len(writers) > 1 and max(writers) > min(readers, default=len(program.leaves))):
        return None
    kept = tuple(dim for dim in range(len(buffer.dims)) if dim not in same)
    return kept if _cells(program, name, kept) <= GROWTH * sum(known[s] for s in sources) else None


def _used(program: Program, leaf: Leaf, known: Collection[str]) -> set[int] | None:
    """The iterators on which what an operation writes hangs; None where it hangs on more than known arrays
    and numbers, or computes in another type than theirs: weights are stored narrow so as to be read fast."""
    op = leaf.op
    dtype = program.buffer_of[op.target.array].dtype
    # What is added up hangs on how often.
    used = set(range(len(leaf.scopes))) if op.accumulate else set[int]()
    used |= {depth for comparison in op.guard for depth in comparison.form.depths}
    for operand in op.operands:
        if isinstance(operand, Number):
            continue
        if isinstance(operand, Affine) or operand.array not in known:
            return None
        forms = [form for form in operand.index if isinstance(form, Affine)]
        if len(forms) < len(operand.index) or (
            op.function and program.buffer_of[operand.array].dtype != dtype
        ):
            return None
        used = used.union(*(form.depths for form in forms))
    return used


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
