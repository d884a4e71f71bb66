"""Moves against a fault, whatever the move was that met it: marks that are in the way, storage that is too
narrow. What is a move's own to propose are its ``enablers``; ``ways.py`` tries both out."""

from __future__ import annotations

from collections.abc import Iterator

from dojo_core.moves.core import Context, Move, Refusal
from dojo_core.moves.places import Place, place_of, resolve
from dojo_core.program.codes import Code
from dojo_core.program.tree import Buffer, Scope

# Two values in one cell at once; a buffer where its indices or its size have no place; a mark's conditions.
_SHARED = frozenset({Code.CLOBBER, Code.LIFETIME, Code.RACE})
_PLACED = frozenset(
    {Code.REGISTER_INDEX, Code.REGISTER_SIZE, Code.LOCAL_INDEX, Code.LOCAL_SIZE, Code.STACK_SIZE}
)
_MARKED = frozenset(
    {
        Code.MARKED,
        Code.VECTOR_BODY,
        Code.VECTOR_FLOW,
        Code.VECTOR_FORM,
        Code.VECTOR_STRIDE,
        Code.VECTOR_GUARD,
        Code.INSTRUCTION_SHAPE,
        Code.INSTRUCTION_SIZE,
        Code.INSTRUCTION_ACCESS,
        Code.INSTRUCTION_OPERATION,
        Code.INSTRUCTION_DTYPE,
        Code.PARALLEL_NESTED,
        Code.PARALLEL_UNROLLED,
        Code.RACE,
    }
)
FEW_THREADS = 16  # iterations of a parallel scope that leave processors of today idle, if fewer
LARGE = 3  # buffers that are tried elsewhere, where all together are too large


def remedies(context: Context, move: Move, refusal: Refusal) -> Iterator[Move]:
    """Moves that may take away what a refusal is about, legal or not, nearest first."""
    harmed = refusal.fault.buffer if refusal.fault is not None else ""
    buffers = [b for b in context.program.buffers if b.name == harmed]
    if refusal.code in _SHARED:
        for buffer in buffers:
            yield from _apart(context, buffer)
    if refusal.code in _PLACED:
        # A limit of all buffers of a kind names none: the move's own goes first, then the largest.
        large = sorted(context.program.buffers, key=lambda b: (b.name not in move.arguments, -b.bytes))
        for buffer in buffers or large[:LARGE]:
            yield from _wider(context, buffer)
    if refusal.code in _MARKED:
        for path in refusal.nodes:
            for depth in range(len(path), 0, -1):
                node = context.program.find(path[:depth])
                if isinstance(node, Scope) and node.mark:
                    if not _better_there(context, move, refusal, node, depth):
                        yield Move("clear_mark", (place_of(context.program, path[:depth]),))
                    break


def _better_there(context: Context, move: Move, refusal: Refusal, marked: Scope, depth: int) -> bool:
    """Does the mark do more where it is? Threads are not given up for less storage; of two scopes, one in the
    other, the outer one has them, as long as its iterations are enough for them."""
    scope = move.arguments[0]
    inside = isinstance(scope, Place) and len(resolve(context.program, scope)) > depth
    threads = refusal.code == Code.RACE or (refusal.code == Code.PARALLEL_NESTED and inside)
    return threads and marked.size >= FEW_THREADS


def _apart(context: Context, buffer: Buffer) -> Iterator[Move]:
    """Each value in a cell of its own: dimensions with addresses again, in memory that has room for them."""
    hidden = [k for k, dim in enumerate(buffer.dims) if not dim.materialised]
    for k in hidden:
        yield Move("materialise_dims", (buffer.name, k))
    if len(hidden) > 1:
        yield Move("materialise_dims", (buffer.name, *hidden))
    yield from _wider(context, buffer)


def _wider(context: Context, buffer: Buffer) -> Iterator[Move]:
    locations = context.target.locations
    if buffer.location in locations:
        for location in reversed(locations[: locations.index(buffer.location)]):
            yield Move("set_location", (buffer.name, location))
