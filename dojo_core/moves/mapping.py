"""Moves that give scopes to a GPU: blocks of the grid, threads of a block, lanes of a warp.

Where these marks may stand, and what a buffer of theirs must meet, is V3's matter (targets/gpu): so the
moves ask little themselves. ``clear_mark`` takes each back.
"""

from __future__ import annotations

from collections.abc import Iterator

from dojo_core.moves.core import Context, Move, Refusal, register
from dojo_core.moves.marks import MarkMove
from dojo_core.moves.places import Place, fresh_name, place_of, scope_at
from dojo_core.program.codes import Code
from dojo_core.program.dependence import is_reduction
from dojo_core.program.tree import Scope


class _Map(MarkMove):
    family = "mapping"

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        depth = len(path) - 1
        fault = refusal.fault
        if fault is None:
            return
        if fault.code == Code.RACE:
            for leaf in program.leaves:
                if leaf.path in refusal.nodes and is_reduction(leaf, depth):
                    place = place_of(program, leaf.path)
                    name = fresh_name(program, f"p{place.array}")
                    yield Move("split_reduction", (Place(place.array, place.number, depth), name))
            buffer = next((b for b in program.buffers if b.name == fault.buffer), None)
            if buffer is not None:
                for k, dim in enumerate(buffer.dims):
                    if not dim.materialised:
                        yield Move("materialise_dims", (buffer.name, k))
                if buffer.location == "heap":
                    for location in context.target.locations[1:]:
                        yield Move("set_location", (buffer.name, location))
            if len(scope.body) == 1 and isinstance(scope.body[0], Scope):
                yield Move("interchange", (place_of(program, path),))
        elif fault.code in (Code.KERNEL_BUFFER, Code.THREAD_DIMS, Code.THREAD_NUMBER, Code.THREAD_WRITE):
            for location in ("shared", "heap"):
                yield Move("set_location", (fault.buffer, location))
        elif fault.code == Code.BLOCK_PLACE:
            for d in range(depth):
                yield Move("map_grid", (place_of(program, path[: d + 1]),))
            for factor in (128, 32):
                yield Move("split_scope", (place_of(program, path), factor))
        elif fault.code == Code.WARP_PLACE:
            for d in reversed(range(depth)):
                yield Move("map_block", (place_of(program, path[: d + 1]),))
        elif fault.code in (Code.WARP_SIZE, Code.WARP_SIZES, Code.BLOCK_THREADS):
            for factor in (256, 128, 64) if fault.code == Code.BLOCK_THREADS else (32, 64, 16):
                yield Move("split_scope", (place_of(program, path), factor))


@register
class MapGrid(_Map):
    """Give each iteration of a scope to a block of threads: a launch of so many blocks.

    ``map_grid S``

    Before::

        64 16 y[{0},{1}] = x[{0},{1}]

    After ``map_grid y@0``::

        64:g 16 y[{0},{1}] = x[{0},{1}]

    Legal iff
      1. S is unmarked, and the target has grid scopes;
      2. it stands under unmarked scopes only (loops of launches), or is all that a grid scope holds (V3);
      3. no two iterations touch one cell of a buffer that they share, one of them writing (V2 with the
         iterations unordered);
      4. a buffer that is not on the heap is used by one launch (V3);
      5. the launches, and the blocks of one, stay within the target's limits (V3).
    """

    name = "map_grid"
    also = ("block_idx",)
    mark = "g"

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return all(s.mark in ("", "g") for s in above) and (
            not above or above[-1].mark == "" or len(above[-1].body) == 1
        )


@register
class MapBlock(_Map):
    """Give each iteration of a scope to a thread of the block (to a warp, where warp scopes stand in it).

    ``map_block S``

    Before::

        64:g 128 y[{0},{1}] = x[{0},{1}]

    After ``map_block y@1``::

        64:g 128:b y[{0},{1}] = x[{0},{1}]

    Legal iff
      1. S is unmarked, and the target has block scopes;
      2. it stands under a grid scope and not in a warp scope; block scopes in one another are a perfect
         nest, a phase (V3);
      3. no two iterations touch one cell of a buffer that they share, one of them writing (V2);
      4. the phase has at most the target's threads (V3);
      5. each thread finds in its own ``local`` and ``stack`` buffers what the program says is there: the
         thread rule (V3).
    """

    name = "map_block"
    also = ("thread_idx",)
    mark = "b"

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return any(s.mark == "g" for s in above) and not any(s.mark == "w" for s in above)


@register
class MapWarp(_Map):
    """Give the iterations of a scope to the lanes of a warp, or have the lanes reduce by shuffles.

    ``map_warp S``

    Before::

        64:g 8:b 32 y[{0},{1},{2}] = x[{0},{1},{2}]

    After ``map_warp y@2``::

        64:g 8:b 32:w y[{0},{1},{2}] = x[{0},{1},{2}]

    Legal iff
      1. S is unmarked, and the target has warp scopes;
      2. it stands in a phase and in no other warp scope (V3);
      3. its size is a power of two that divides the target's warp, alike in all warp scopes of the phase,
         whose threads are whole warps (V3);
      4. no two iterations touch one cell of a buffer that they share, one of them writing (V2); or S wraps
         exactly one accumulation whose target ignores S, and the policy lets it regroup (V3);
      5. the thread rule holds (V3).
    """

    name = "map_warp"
    also = ("shuffle",)
    mark = "w"

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return any(s.mark == "b" for s in above)


__all__ = ["MapBlock", "MapGrid", "MapWarp"]
