"""Moves of a Snitch core: memory accesses as streams (SSR), a loop run by the FPU alone (FREP).

What the marks ask of a program is V3's matter (targets/snitch). ``clear_mark`` takes each back.
"""

from __future__ import annotations

from collections.abc import Iterator

from dojo_core.moves.core import Context, Move, Refusal, register
from dojo_core.moves.marks import MarkMove
from dojo_core.moves.places import Place, fresh_name, leaves_under, place_of, scope_at
from dojo_core.program.codes import Code
from dojo_core.program.tree import Op, Scope


@register
class Ssr(MarkMove):
    """Have the memory accesses of a nest made by data movers, as streams through the registers ft0 to ft2.

    ``ssr S``

    Before::

        x f64 [64] heap
        y f64 [64] heap
        64 y[{0}] = x[{0}]*2

    After ``ssr y@0``::

        64:s y[{0}] = x[{0}]*2

    Each access in S to a buffer that is no register is one stream, in the order of the text; an accumulation
    into memory is two. A data mover runs ahead where it reads and behind where it writes.

    Legal iff
      1. S is unmarked, and the target has stream registers;
      2. no scope around it is streamed or a hardware loop (V3);
      3. the accesses to memory in it are at least one and at most the target's streams, 3 (V3);
      4. their buffers are f64: elements of 8 bytes (V3);
      5. each is affine and walks at most 4 loops, neighbouring ones merged where the strides allow; up to 16
         uses of one element in a row take none (V3);
      6. their operations have no guard (V3);
      7. no stream writes a cell that a later instance reads or writes through another stream (V3).

    Source: Schuiki, Zaruba, Hoefler, Benini, "Stream Semantic Registers", IEEE Transactions on Computers
    70(2), 2021.
    """

    name = "ssr"
    family = "streaming"
    mark = "s"

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, scope, above = scope_at(program, arguments[0])
        if refusal.code == Code.STREAM_NESTED:
            for depth, other in enumerate(above):
                if other.mark in ("s", "f"):
                    yield Move("clear_mark", (place_of(program, path[: depth + 1]),))
        if refusal.code in (Code.STREAM_COUNT, Code.STREAM_ORDER):
            for number in range(1, len(scope.body)):
                yield Move("fission_scope", (place_of(program, path), place_of(program, (*path, number))))
            for leaf in leaves_under(program, path):
                array = leaf.op.target.array
                if leaf.op.accumulate and array not in program.interface:
                    yield Move("set_location", (program.buffer_of[array].name, "register"))
                elif leaf.op.accumulate:
                    copy = fresh_name(program, f"c{array}")
                    for depth in range(len(path) - 1, 0, -1):
                        yield Move("stage_write", (array, place_of(program, path[:depth]), copy))

    def alternatives(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """The scopes in it, which stream less."""
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        if refusal.code in (Code.STREAM_DIMS, Code.STREAM_COUNT, Code.STREAM_ORDER, Code.STREAM_GUARD):
            for number, child in enumerate(scope.body):
                if isinstance(child, Scope):
                    yield Move("ssr", (place_of(program, (*path, number)),))


@register
class Frep(MarkMove):
    """Have the FPU's sequencer repeat a loop body, while the integer core goes on.

    ``frep S``

    Before::

        x f64 [8, 64] heap
        y f64 [8, 64] heap
        8:s 64 y[{0},{1}] = x[{0},{1}]*2

    After ``frep y@1``::

        8:s 64:f y[{0},{1}] = x[{0},{1}]*2

    Unrolled scopes in S are copies in the body; where they are one instruction on neighbouring registers, the
    sequencer staggers the registers instead.

    Legal iff
      1. S is unmarked, and the target has hardware loops;
      2. it holds operations and unrolled scopes only (V3);
      3. its operations are sums, products, maxima, minima, fma, negations, absolute values and copies, in one
         dtype, of cells and numbers, without guards (V3);
      4. its accesses are register buffers, or streams of a scope around it (V3);
      5. its body takes at most 16 instructions (V3);
      6. it has at most 65536 iterations (V3).

    Source: Zaruba, Schuiki, Hoefler, Benini, "Snitch", IEEE Transactions on Computers 70(11), 2021.
    """

    name = "frep"
    family = "streaming"
    mark = "f"

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        if refusal.code == Code.REPEAT_MEMORY:
            for depth in range(len(path) - 1):
                yield Move("ssr", (place_of(program, path[: depth + 1]),))
            yield Move("wrap", (place_of(program, path), 1))
        if refusal.code == Code.REPEAT_NEST:
            for number, child in enumerate(scope.body):
                if isinstance(child, Scope) and not child.mark:
                    yield Move("unroll", (place_of(program, (*path, number)),))
            if len(scope.body) == 1:
                yield Move("interchange", (place_of(program, path),))
        if refusal.code == Code.REPEAT_SIZE:
            for number in range(1, len(scope.body)):
                yield Move("fission_scope", (place_of(program, path), place_of(program, (*path, number))))
            inner = scope.body[0]
            if isinstance(inner, Scope) and not isinstance(inner.body[0], Op):
                yield Move("clear_mark", (place_of(program, (*path, 0)),))


__all__ = ["Frep", "Ssr"]
