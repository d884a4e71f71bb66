"""A program for narrower vectors: what a processor with smaller registers runs in place of the exported one.

A compiler cuts a vector that is too wide for the registers in its own way, and gcc then keeps it in memory: a
matrix product becomes thirty times slower. So each vector loop of 16 lanes becomes an unrolled loop of 2
around one of 8, and so on, in the program; the cells of a register buffer are told apart as before.
"""

from __future__ import annotations

from dojo_core.program.affine import Affine
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.tree import DTYPE_BYTES, Node, Op, Program, Scope


def widest_vector(program: Program) -> int:
    """Bytes of the widest vector in a program; 0 where it has none."""
    return max(
        (_bytes(program, leaf.op) * leaf.scopes[-1].size for leaf in program.leaves if _vector(leaf.scopes)),
        default=0,
    )


def narrowed(program: Program, vector_bytes: int) -> Program:
    """The program with no vector of more than ``vector_bytes``; sums over lanes add in another order."""
    if widest_vector(program) <= vector_bytes:
        return program
    body = tuple(_narrowed(program, node, 0, vector_bytes) for node in program.body)
    return program.edit(body=body)


def _narrowed(program: Program, node: Node, depth: int, vector_bytes: int) -> Node:
    if isinstance(node, Op):
        return node
    child = node.body[0]
    if node.mark == "v" and isinstance(child, Op):
        lanes = max(1, vector_bytes // _bytes(program, child))
        if node.size <= lanes:
            return node
        lane = Affine.iterator(depth) * lanes + Affine.iterator(depth + 1)
        inner = Scope(lanes, (child.substitute({depth: lane}),), "v")
        return Scope(node.size // lanes, (inner,), "u")
    body = tuple(_narrowed(program, n, depth + 1, vector_bytes) for n in node.body)
    return Scope(node.size, body, "" if _wide_rows(node, vector_bytes) else node.mark)


def _wide_rows(scope: Scope, vector_bytes: int) -> bool:
    """Is a scope an instruction on rows of more bytes? Its loops do the same."""
    instruction = INSTRUCTIONS.get(scope.mark)
    if instruction is None or not instruction.rows:
        return False
    return scope.size * DTYPE_BYTES[instruction.word] > vector_bytes


def _vector(scopes: tuple[Scope, ...]) -> bool:
    return bool(scopes) and scopes[-1].mark == "v"


def _bytes(program: Program, op: Op) -> int:
    """Of one lane, in the widest vector of an operation; those of i128 are two, of 8 bytes a lane."""
    return max(min(8, DTYPE_BYTES[program.buffer_of[a.array].dtype]) for a in (op.target, *op.sources))
