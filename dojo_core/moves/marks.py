"""Marks: unroll, parallelize, vectorize, prefetch, and clearing them. Their conditions are V3 (marks.py
of the program) and V2, so the moves themselves ask little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from dojo_core.moves.core import (
    Context,
    Edit,
    Move,
    Parameter,
    Refusal,
    Transformation,
    register,
    structural,
)
from dojo_core.moves.places import NoSuchPlace, Place, leaf_at, leaves_under, place_of, scope_at, scopes
from dojo_core.moves.places import fresh_name as fresh
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import is_reduction
from dojo_core.program.expressions import TextError, parse_access, reads_back
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.marks import mark_word
from dojo_core.program.tree import Access, Leaf, Path, Program, Scope

# The move that sets each mark: what clear_mark's inverse is.
MARKING: dict[str, str] = {}


class MarkMove(Transformation[tuple[Place]]):
    """A move that marks one scope; the mark's conditions are V2's and V3's."""

    family = "marks"
    parameters = (Parameter("scope", "scope"),)
    mark: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "mark"):
            MARKING[cls.mark] = cls.name

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        if self.mark not in context.target.marks:
            return
        for path, scope, above in scopes(context.program):
            if not scope.mark and self.offered(context, scope, above):
                yield (place_of(context.program, path),)

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return True

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        path, scope, _ = scope_at(context.program, arguments[0])
        if scope.mark:
            return structural(Code.MARKED, f"{arguments[0]} is {mark_word(scope.mark)} already.", path)
        return context.program.splice(path, 1, (Scope(scope.size, scope.body, self.mark, scope.provenance),))

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move("clear_mark", arguments)


@register
class Unroll(MarkMove):
    """Write out the iterations of a scope one after the other.

    ``unroll S``

    Before::

        4 y[{0}] = x[{0}]

    After ``unroll y@0``::

        4:u y[{0}] = x[{0}]

    Legal iff
      1. S is unmarked;
      2. the size of the generated code stays under the target's limit (V3).
    """

    name = "unroll"
    mark = "u"

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        _, scope, _ = scope_at(context.program, arguments[0])
        if refusal.code == Code.UNROLLED_SIZE:  # some iterations at a time
            for factor in (8, 4, 2):
                if scope.size > factor and scope.size % factor == 0:
                    yield Move("split_scope", (arguments[0], factor))
            if scope.size > 8 and scope.size % 2:  # the last ones apart
                yield Move("cut_scope", (arguments[0], scope.size // 8 * 8))

    def alternatives(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """The innermost scopes in it, which are shorter."""
        program = context.program
        path, _, _ = scope_at(program, arguments[0])
        if refusal.code == Code.UNROLLED_SIZE:
            for inside in innermost(program, path):
                yield Move("unroll", (place_of(program, inside),))

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return scope.size <= context.target.unrolled_ops


@register
class Parallelize(MarkMove):
    """Give the iterations of a scope to threads.

    ``parallelize S``

    Before::

        64 16 y[{0},{1}] = x[{0},{1}]

    After ``parallelize y@0``::

        64:p 16 y[{0},{1}] = x[{0},{1}]

    Legal iff
      1. S is unmarked;
      2. no two iterations touch one cell of a buffer that they share, one of them writing (V2 with the
         iterations unordered; a reduction over S is such a race, which split_reduction takes away);
      3. no scope around or in S is parallel, none around it is unrolled (V3).
    """

    name = "parallelize"
    also = ("openmp", "omp", "omp_for", "threads", "multithread", "parallelise")
    mark = "p"

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        path, _, _ = scope_at(context.program, arguments[0])
        depth = len(path) - 1
        fault = refusal.fault
        if fault is None or fault.code != Code.RACE:
            return
        program = context.program
        for leaf in program.leaves:
            if leaf.path in refusal.nodes and is_reduction(leaf, depth):
                place = place_of(program, leaf.path)
                name = fresh(program, f"p{place.array}")
                yield Move("split_reduction", (Place(place.array, place.number, depth), name))
        buffer = next((b for b in program.buffers if b.name == fault.buffer), None)
        if buffer is not None:
            if buffer.location == "heap":  # a copy for each thread is what is meant by private
                yield Move("set_location", (buffer.name, "stack"))
            for k, dim in enumerate(buffer.dims):
                if not dim.materialised:
                    yield Move("materialise_dims", (buffer.name, k))

    def needs(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> str:
        if refusal.code == Code.PARALLEL_NESTED:
            return (
                "The threads have the scope around it, which is more work for each of them: they would have "
                "to be given this one in its place (clear_mark), or both as one scope (merge_scopes)."
            )
        if refusal.code == Code.RACE:
            return "Each iteration would have to write cells of its own: a scope around it, or another array."
        return ""


@register
class Vectorize(MarkMove):
    """Run the iterations of a scope as the lanes of one vector instruction.

    ``vectorize S``

    Before::

        16 y[{0}] = x[{0}]

    After ``vectorize y@0``::

        16:v y[{0}] = x[{0}]

    Legal iff (V3)
      1. S is unmarked and wraps exactly one operation, of whose dtypes the target has vectors;
      2. its size is a vector width of the target for all of them;
      3. lanes are neighbours in memory in every access; where it is read, also one cell, cells of the heap or
         the stack at most four apart, or gathered through an array;
      4. or the lanes are a reduction into one cell that the policy lets regroup;
      5. no lane reads what an earlier one writes;
      6. the guard does not depend on the lane;
      7. the operation has a vector form.
    """

    name = "vectorize"
    also = ("simd", "vectorise")
    mark = "v"

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return any(scope.size in widths for widths in context.target.vector_widths.values())

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        if refusal.code == Code.VECTOR_WIDTH:
            for width in sorted(context.widths, reverse=True):
                if scope.size % width == 0 and scope.size > width:
                    yield Move("split_scope", (place_of(program, path), width))
            if not any(scope.size % width == 0 for width in context.widths):  # the last ones apart
                for width in sorted(context.widths, reverse=True):
                    if scope.size > width:
                        yield Move("cut_scope", (place_of(program, path), scope.size // width * width))
        if refusal.code == Code.VECTOR_BODY:
            for number in range(1, len(scope.body)):
                yield Move("fission_scope", (place_of(program, path), place_of(program, (*path, number))))
            if len(scope.body) == 1:
                yield Move("interchange", (place_of(program, path),))
        if refusal.code == Code.VECTOR_STRIDE:
            yield from layouts(program, path)

    def alternatives(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """The innermost scopes in it, over one operation each; where lanes lie apart, the scope around it."""
        program = context.program
        path, _, _ = scope_at(program, arguments[0])
        if refusal.code == Code.VECTOR_BODY:
            for inside in innermost(program, path):
                if inside != path and len(program.scope(inside).body) == 1:
                    yield Move("vectorize", (place_of(program, inside),))
            # What is innermost may carry a sum from lane to lane: then a scope around it.
            for inside in innermost(program, path):
                if len(inside) - 1 > len(path) and len(program.scope(inside[:-1]).body) == 1:
                    yield Move("vectorize", (place_of(program, inside[:-1]),))
        if refusal.code == Code.VECTOR_STRIDE and len(path) > 1:
            yield Move("vectorize", (place_of(program, path[:-1]),))

    def needs(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> str:
        path, _, _ = scope_at(context.program, arguments[0])
        if refusal.code == Code.VECTOR_BODY and not any(innermost(context.program, path)):
            return "What is innermost in it has a mark already."
        if refusal.code == Code.VECTOR_BODY:
            return (
                "The loop that becomes lanes would have to be the innermost one, around one operation, as "
                "long as a vector, and no lane may need what another one makes."
            )
        if refusal.code == Code.VECTOR_WIDTH:
            return (
                "It has fewer iterations than the shortest vector has lanes: a longer scope around it can "
                "become lanes (interchange), or both as one (merge_scopes)."
            )
        return ""


def innermost(program: Program, path: Path) -> Iterator[Path]:
    """The unmarked scopes at or below a path that hold operations alone, in tree order."""
    scope = program.scope(path)
    deeper = [number for number, node in enumerate(scope.body) if isinstance(node, Scope)]
    if not deeper and not scope.mark:
        yield path
    for number in deeper:
        yield from innermost(program, (*path, number))


def layouts(program: Program, under: Path) -> Iterator[Move]:
    """Other layouts of the temporaries that the operations under a node access."""
    for leaf in leaves_under(program, under):
        for array in dict.fromkeys(a.array for a in (*leaf.op.reads, leaf.op.target)):
            if array not in program.interface:
                buffer = program.buffer_of[array]
                for k in range(len(buffer.dims) - 1):
                    yield Move("swap_dims", (buffer.name, k, k + 1))


@register
class ClearMark(Transformation[tuple[Place]]):
    """Take the mark of a scope away: the inverse of the moves that mark one.

    ``clear_mark S``

    Before::

        4:u y[{0}] = x[{0}]

    After ``clear_mark y@0``::

        4 y[{0}] = x[{0}]

    Legal iff
      1. S is marked;
      2. V2 and V3 hold without the mark (a register's index must stay constant).
    """

    name = "clear_mark"
    family = "marks"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        for path, scope, _ in scopes(context.program):
            if scope.mark:
                yield (place_of(context.program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        path, scope, _ = scope_at(context.program, arguments[0])
        if not scope.mark:  # 1
            return structural(Code.UNMARKED, f"{arguments[0]} has no mark.", path)
        return context.program.splice(path, 1, (replace(scope, mark=""),))

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        _, scope, _ = scope_at(context.program, arguments[0])
        if scope.mark in INSTRUCTIONS:
            return Move("use_instruction", (arguments[0], scope.mark))
        return Move(MARKING[scope.mark], arguments)

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        if refusal.code in (Code.REGISTER_INDEX, Code.LOCAL_INDEX) and refusal.fault is not None:
            for location in ("stack", "heap"):
                yield Move("set_location", (refusal.fault.buffer, location))


def _hint(program: Program, leaf: Leaf, **changes: Any) -> Edit:
    """The operation with another mark of those that change no value, which V2 and V3 never look at."""
    return Edit(lambda: program.splice(leaf.path, 1, (replace(leaf.op, **changes),)), None)


class _PrefetchMove(Transformation[tuple[Place, str]]):
    family = "marks"
    parameters = (Parameter("operation", "op"), Parameter("access", "access"))

    def offers(self, program: Program, leaf: Leaf) -> dict[str, Access]:
        """The candidates for an operation, by their text."""
        raise NotImplementedError

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        for leaf in context.program.leaves:
            place = place_of(context.program, leaf.path)
            for text in self.offers(context.program, leaf):
                yield place, text

    def read(self, context: Context, arguments: tuple[Place, str]) -> tuple[Leaf, Access] | Refusal:
        leaf = leaf_at(context.program, arguments[0])
        text = arguments[1]
        offered = self.offers(context.program, leaf).get(text)
        if offered is not None and reads_back(offered, text):  # implied: only spares the parser
            return leaf, offered
        try:
            return leaf, parse_access(context.program, leaf, text)
        except TextError as error:
            return structural(Code.BAD_ACCESS, f"{text}: {error.message}. {error.remedy}", leaf.path)

    def places(self, context: Context, arguments: tuple[Place, str]) -> tuple[Path, ...]:
        """The operation and the scopes whose iterators the address uses."""
        named = self.read(context, arguments)
        if isinstance(named, Refusal):
            raise NoSuchPlace(named.sentence)
        leaf, access = named
        depths = sorted({d for form in access.index for d in form.depths})
        return (leaf.path, *(leaf.path[: d + 1] for d in depths))


@register
class Prefetch(_PrefetchMove):
    """Ask for the cache line of an address ahead of its use.

    ``prefetch OP ACCESS``

    Before::

        64 16 y[{0},{1}] = x[{0},{1}]

    After ``prefetch y x[{0}+1,{1}]``::

        64 16 y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}+1,{1}])

    Legal iff
      1. the access is affine and has one index per dimension (out of bounds is harmless: the address is
         computed as an integer);
      2. the operation does not prefetch it already.

    Candidates: for each access of the operation to the heap, the next iteration of the outermost scope
    that its index uses, and 16 iterations on in the innermost plain one.
    """

    name = "prefetch"

    def offers(self, program: Program, leaf: Leaf) -> dict[str, Access]:
        cache: dict[Path, dict[str, Access]] = program.facts.setdefault(_ahead, {})
        if leaf.path not in cache:
            ahead = (a for a in _ahead(program, leaf) if a not in leaf.op.prefetches)
            cache[leaf.path] = {str(access): access for access in ahead}
        return cache[leaf.path]

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Edit | Refusal:
        named = self.read(context, arguments)
        if isinstance(named, Refusal):  # 1
            return named
        leaf, access = named
        if access in leaf.op.prefetches:  # 2
            return structural(Code.PREFETCHED, f"{arguments[0]} prefetches {access} already.", leaf.path)
        return _hint(context.program, leaf, prefetches=(*leaf.op.prefetches, access))

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move:
        return Move("clear_prefetch", arguments)


def _ahead(program: Program, leaf: Leaf) -> Iterator[Access]:
    """The accesses of an operation to the heap, some iterations on."""
    for access in dict.fromkeys((*leaf.op.reads, leaf.op.target)):
        if program.buffer_of[access.array].location != "heap":
            continue
        used = sorted({d for form in access.index for d in form.depths})
        plain = [d for d in used if leaf.scopes[d].mark in ("", "p")]
        for depth, distance in zip([*plain[:1], *plain[1:][-1:]], (1, 16), strict=False):
            yield access.substitute({depth: Affine.iterator(depth) + distance})


@register
class ClearPrefetch(_PrefetchMove):
    """Take a prefetch away.

    ``clear_prefetch OP ACCESS``

    Before::

        64 16 y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}+1,{1}])

    After ``clear_prefetch y x[{0}+1,{1}]``::

        64 16 y[{0},{1}] = x[{0},{1}]

    Legal iff
      1. the operation prefetches that address.
    """

    name = "clear_prefetch"

    def offers(self, program: Program, leaf: Leaf) -> dict[str, Access]:
        return {str(access): access for access in leaf.op.prefetches}

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Edit | Refusal:
        named = self.read(context, arguments)
        if isinstance(named, Refusal):
            return named
        leaf, access = named
        if access not in leaf.op.prefetches:  # 1
            return structural(Code.NOT_PREFETCHED, f"{arguments[0]} does not prefetch {access}.", leaf.path)
        others = tuple(a for a in leaf.op.prefetches if a != access)
        return _hint(context.program, leaf, prefetches=others)

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move:
        return Move("prefetch", arguments)


class _StreamMove(Transformation[tuple[Place]]):
    family = "marks"
    parameters = (Parameter("operation", "op"),)
    mark: ClassVar[str]
    on: ClassVar[bool]

    def suits(self, program: Program, leaf: Leaf) -> bool:
        """Would the mark mean something there?"""
        raise NotImplementedError

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        program = context.program
        for leaf in program.leaves:
            if getattr(leaf.op, self.mark) != self.on and (not self.on or self.suits(program, leaf)):
                yield (place_of(program, leaf.path),)


class _StoreMove(_StreamMove):
    mark = "stream"

    def suits(self, program: Program, leaf: Leaf) -> bool:
        return program.buffer_of[leaf.op.target.array].location == "heap" and not leaf.op.accumulate


class _LoadMove(_StreamMove):
    mark = "stream_load"

    def suits(self, program: Program, leaf: Leaf) -> bool:
        return any(program.buffer_of[access.array].location == "heap" for access in leaf.op.sources)


@register
class StreamStore(_StoreMove):
    """Store past the caches: for results that are not read again soon (a non-temporal store).

    ``stream_store OP``

    Before::

        64 16:v y[{0},{1}] = x[{0},{1}]

    After ``stream_store y``::

        64 16:v y[{0},{1}] = x[{0},{1}] !stream

    Legal iff
      1. OP assigns, and is not marked so already;
      2. its target lives on the heap.
    """

    name = "stream_store"
    also = ("non_temporal",)
    on = True

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        program = context.program
        leaf = leaf_at(program, arguments[0])
        if leaf.op.accumulate or leaf.op.stream:  # 1
            fault = "accumulates: it reads what it stores" if leaf.op.accumulate else "streams already"
            return structural(Code.NO_STREAM, f"{arguments[0]} {fault}.", leaf.path)
        if program.buffer_of[leaf.op.target.array].location != "heap":  # 2
            return structural(Code.NO_STREAM, f"{leaf.op.target.array} does not live on the heap.", leaf.path)
        return _hint(program, leaf, stream=True)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move("clear_stream", arguments)


@register
class ClearStream(_StoreMove):
    """Store through the caches again.

    ``clear_stream OP``

    Before::

        64 16:v y[{0},{1}] = x[{0},{1}] !stream

    After ``clear_stream y``::

        64 16:v y[{0},{1}] = x[{0},{1}]

    Legal iff
      1. OP stores past the caches.
    """

    name = "clear_stream"
    on = False

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        leaf = leaf_at(context.program, arguments[0])
        if not leaf.op.stream:  # 1
            return structural(Code.NO_STREAM, f"{arguments[0]} stores through the caches.", leaf.path)
        return _hint(context.program, leaf, stream=False)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move("stream_store", arguments)


@register
class StreamLoad(_LoadMove):
    """Load so that the cache gives the line up first: for data that is not read again (an evict-first load).

    ``stream_load OP``

    Before::

        64 16:v y[{0},{1}] = x[{0},{1}]

    After ``stream_load y``::

        64 16:v y[{0},{1}] = x[{0},{1}] !stream_load

    Legal iff
      1. OP is not marked so already;
      2. one of its operands lives on the heap.
    """

    name = "stream_load"
    also = ("evict_first",)
    on = True

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        program = context.program
        leaf = leaf_at(program, arguments[0])
        if leaf.op.stream_load:  # 1
            return structural(Code.NO_STREAM, f"{arguments[0]} is marked so already.", leaf.path)
        if not self.suits(program, leaf):  # 2
            return structural(Code.NO_STREAM, f"{arguments[0]} reads nothing on the heap.", leaf.path)
        return _hint(program, leaf, stream_load=True)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move("clear_stream_load", arguments)


@register
class ClearStreamLoad(_LoadMove):
    """Load as usual again.

    ``clear_stream_load OP``

    Before::

        64 16:v y[{0},{1}] = x[{0},{1}] !stream_load

    After ``clear_stream_load y``::

        64 16:v y[{0},{1}] = x[{0},{1}]

    Legal iff
      1. OP is marked so.
    """

    name = "clear_stream_load"
    on = False

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        leaf = leaf_at(context.program, arguments[0])
        if not leaf.op.stream_load:  # 1
            return structural(Code.NO_STREAM, f"{arguments[0]} loads as usual.", leaf.path)
        return _hint(context.program, leaf, stream_load=False)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move("stream_load", arguments)
