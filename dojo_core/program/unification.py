"""Does a subtree compute what a machine instruction does? Its text and the instruction's are unified.

Scopes by size, the operation by its function, arrays by their dtypes, and each access by its strides: cells
lie as the instruction takes them from memory. An operand may also be the same in all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

from dojo_core.program.codes import Code
from dojo_core.program.instructions import INSTRUCTIONS, Instruction
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Buffer, Leaf, Op, Program, Scope


@dataclass(frozen=True)
class Unified:
    """An instruction as a subtree uses it: each operand's access, and whether all lanes share it."""

    instruction: Instruction
    lanes: int
    operation: Op
    operands: tuple[tuple[Access, bool], ...]


@dataclass(frozen=True)
class Mismatch:
    """Where a subtree and an instruction part: a code and a sentence."""

    code: str
    sentence: str


@lru_cache(maxsize=100)
def meaning(name: str, lanes: int) -> tuple[Program, Leaf]:
    """The program of an instruction and its one operation."""
    from dojo_core.program.text import parse  # which knows the instructions' names

    program = parse(INSTRUCTIONS[name].program_text(lanes))
    return program, program.leaves[0]


def unify(program: Program, scope: Scope, depth: int, name: str) -> Unified | Mismatch:
    """The scope at ``depth`` (how many stand above it) as the instruction of that name, or why it is not."""
    instruction = INSTRUCTIONS[name]
    pattern, leaf = meaning(name, scope.size if scope.size in instruction.needs else max(instruction.needs))
    inside = _nest(scope)
    sentence = f"{name} is {len(leaf.scopes)} scopes around one operation; "
    if isinstance(inside, str):
        return Mismatch(Code.INSTRUCTION_SHAPE, f"{sentence}{inside}.")
    scopes, op = inside
    if len(scopes) != len(leaf.scopes):
        return Mismatch(Code.INSTRUCTION_SHAPE, f"{sentence}here there {_count(len(scopes))}.")
    if scope.size not in instruction.needs:
        known = " or ".join(map(str, instruction.needs))
        return Mismatch(Code.INSTRUCTION_SIZE, f"{name} has {known} lanes, not {scope.size}.")
    for inner, wanted in zip(scopes[1:], leaf.scopes[1:], strict=True):
        if inner.size != wanted.size:
            sentence = f"A lane of {name} takes {wanted.size} at once, not {inner.size}."
            return Mismatch(Code.INSTRUCTION_SIZE, sentence)
    if (op.accumulate, op.function) != (leaf.op.accumulate, leaf.op.function) or op.guard:
        guarded = ", without a guard" if op.guard else ""
        return Mismatch(Code.INSTRUCTION_OPERATION, f"{name} computes {_text(leaf.op)}{guarded}.")
    return _operands(program, op, depth, instruction, scope.size, pattern, leaf)


def _count(number: int) -> str:
    return "is one" if number == 1 else f"are {number}"


def _nest(scope: Scope) -> tuple[tuple[Scope, ...], Op] | str:
    """The scopes of a perfect nest, all but the first unmarked, and the operation in it."""
    scopes = [scope]
    while True:
        if len(scopes[-1].body) != 1:
            return "one of these here holds several nodes"
        child = scopes[-1].body[0]
        if isinstance(child, Op):
            return tuple(scopes), child
        if child.mark:
            return "one here has a mark"
        scopes.append(child)


def _text(op: Op) -> str:
    from dojo_core.program.printing import op_text

    return op_text(op)


def _operands(
    program: Program, op: Op, depth: int, instruction: Instruction, lanes: int, pattern: Program, leaf: Leaf
) -> Unified | Mismatch:
    """The dtypes and strides of target and operands, the operands of a product in either order."""
    if len(op.reads) != len(leaf.op.reads):
        sentence = f"{instruction.name} computes {_text(leaf.op)}: of arrays alone."
        return Mismatch(Code.INSTRUCTION_OPERATION, sentence)
    closest: Mismatch | None = None
    for reads in permutations(op.reads):
        shared = _shared(program, (op.target, *reads), depth, pattern, leaf)
        # implied: only a mismatch refuses
        if not isinstance(shared, Mismatch):
            return Unified(instruction, lanes, op, tuple(zip(reads, shared[1:], strict=True)))
        if closest is None or shared.code == Code.INSTRUCTION_ACCESS:
            closest = shared
    assert closest is not None
    return closest


def _shared(
    program: Program, accesses: Sequence[Access], depth: int, pattern: Program, leaf: Leaf
) -> tuple[bool, ...] | Mismatch:
    """For target and operands in the instruction's order: is it the same in all lanes?"""
    name, wanted = pattern.name, (leaf.op.target, *leaf.op.reads)
    if INSTRUCTIONS[name].rows:
        return _of_rows(program, accesses, depth, pattern, leaf)
    dtypes = [pattern.buffer_of[a.array].dtype for a in wanted]
    given = [program.buffer_of[a.array].dtype for a in accesses]
    if given != dtypes:
        sentence = f"{name} adds products of {' and '.join(dtypes[1:])} to {dtypes[0]}; here they are "
        sentence += f"{' and '.join(given[1:])}, added to {given[0]}."
        return Mismatch(Code.INSTRUCTION_DTYPE, sentence)
    shared: list[bool] = []
    for access, form in zip(accesses, wanted, strict=True):
        if access.indirect:
            return Mismatch(Code.INSTRUCTION_ACCESS, f"{access} is indirect, which {name} is not.")
        asked = _strides(form, pattern.buffer_of[form.array], range(len(leaf.scopes)))
        strides = _strides(access, program.buffer_of[access.array], range(depth, depth + len(leaf.scopes)))
        one = (0, *asked[1:]) if shared else asked  # the target is of each lane its own
        if strides not in (asked, one):
            sentence = f"{_cells(strides)} in {access}; {name} takes {_cells(asked)}"
            sentence += f", or {_cells(one)}" if one != asked else ""
            return Mismatch(Code.INSTRUCTION_ACCESS, f"Neighbours along its scopes are {sentence}.")
        shared.append(strides != asked)
    return tuple(shared)


def _of_rows(
    program: Program, accesses: Sequence[Access], depth: int, pattern: Program, leaf: Leaf
) -> tuple[bool, ...] | Mismatch:
    """Are target and operands rows of different arrays, whatever the distance of these rows?

    They lie in memory: a register's rows would have to be named one by one, and no scope is written out.
    """
    name = pattern.name
    buffers = [program.buffer_of[access.array] for access in accesses]
    dtypes = [pattern.buffer_of[access.array].dtype for access in (leaf.op.target, *leaf.op.reads)]
    if [buffer.dtype for buffer in buffers] != dtypes:
        given = " and ".join(buffer.dtype for buffer in buffers)
        return Mismatch(
            Code.INSTRUCTION_DTYPE, f"{name} takes {' and '.join(dtypes)}; here they are {given}."
        )
    if len({buffer.name for buffer in buffers}) < len(buffers):
        return Mismatch(Code.INSTRUCTION_ACCESS, f"{name} writes into another array than it reads.")
    for access, form, buffer in zip(accesses, (leaf.op.target, *leaf.op.reads), buffers, strict=True):
        if access.indirect:
            return Mismatch(Code.INSTRUCTION_ACCESS, f"{access} is indirect, which {name} is not.")
        asked = _strides(form, pattern.buffer_of[form.array], range(len(leaf.scopes)))
        strides = _strides(access, buffer, range(depth, depth + len(leaf.scopes)))
        if strides[asked.index(1)] != 1:
            sentence = f"Neighbours along its scopes are {_cells(strides)} in {access}; {name} takes rows."
            return Mismatch(Code.INSTRUCTION_ACCESS, sentence)
    return (False,) * len(accesses)


def _strides(access: Access, buffer: Buffer, depths: range) -> tuple[int, ...]:
    """Cells between neighbouring iterations of each scope, in the buffer's layout."""
    strides = [0] * len(depths)
    step = 1
    for form, dim in zip(map(affine, reversed(access.index)), reversed(buffer.dims), strict=True):
        if dim.materialised:
            for k, depth in enumerate(depths):
                strides[k] += form.coefficient(depth) * step
            step *= dim.size
    return tuple(strides)


def _cells(strides: tuple[int, ...]) -> str:
    return f"{' and '.join(map(str, strides))} cells apart"
