"""Moves on the shape of a temporary: its dimensions' order, their sizes, and which there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dojo_core.moves.core import (
    Arguments,
    Context,
    Edit,
    Move,
    Parameter,
    Refusal,
    register,
    structural,
)
from dojo_core.moves.nodes import nest, provenances
from dojo_core.moves.places import Place, place_of, resolve, scope_at, scopes
from dojo_core.moves.storage import (
    BufferMove,
    buffer_named,
    interface_refusal,
    map_accesses,
    roots_of,
    temporaries,
    with_buffer,
)
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import System
from dojo_core.program.integers import Constraint
from dojo_core.program.must_writes import carried, coverage, unset
from dojo_core.program.reaching import accesses_of
from dojo_core.program.tree import Access, Buffer, Dim, Leaf, Number, Op, Path, Program
from dojo_core.program.validity import owner_path


def _no_dim(buffer: Buffer, *dims: int) -> Refusal | None:
    for k in dims:
        if k >= len(buffer.dims):
            return structural(
                Code.NO_SUCH_DIM, f"{buffer.name} has {len(buffer.dims)} dimensions, counted from 0."
            )
    return None


class _LayoutMove(BufferMove[Arguments]):
    family = "layout"


@register
class SwapDims(_LayoutMove[tuple[str, int, int]]):
    """Exchange two dimensions of a temporary: another layout in memory.

    ``swap_dims B K L``

    Before::

        t f32 [8, 16] heap
        8 16 t[{0},{1}] = x[{0},{1}]
        8 16 y[{0},{1}] = t[{0},{1}]

    After ``swap_dims t 0 1``::

        t f32 [16, 8] heap
        8 16 t[{1},{0}] = x[{0},{1}]
        8 16 y[{0},{1}] = t[{1},{0}]

    Legal iff
      1. B holds no input or output;
      2. K and L are two dimensions of B;
      3. vectorised scopes still find neighbours, registers constant indices (V3).

    Candidates: neighbours.
    """

    name = "swap_dims"
    parameters = (Parameter("buffer", "buffer"), Parameter("dim", "number"), Parameter("with", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[str, int, int]]:
        for buffer in temporaries(context.program):
            for k in range(len(buffer.dims) - 1):
                yield buffer.name, k, k + 1

    def plan(self, context: Context, arguments: tuple[str, int, int]) -> Edit | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        k, other = arguments[1:]
        refusal = interface_refusal(program, buffer) or _no_dim(buffer, k, other)  # 1, 2
        if refusal is not None:
            return refusal
        if k == other:
            return structural(Code.SAME_DIM, "These are one dimension, not two.")
        order = list(range(len(buffer.dims)))
        order[k], order[other] = order[other], order[k]

        def permuted(access: Access) -> Access:
            return Access(access.array, tuple(access.index[n] for n in order))

        def edit() -> Program:
            changed = replace(buffer, dims=tuple(buffer.dims[n] for n in order))
            body = map_accesses(program.body, permuted, buffer.arrays)
            return with_buffer(program, buffer, changed).edit(body=body)

        return Edit(edit, roots_of(program, buffer))

    def inverse(self, context: Context, arguments: tuple[str, int, int], result: Program) -> Move:
        return Move("swap_dims", arguments)

    def alternatives(
        self, context: Context, arguments: tuple[str, int, int], refusal: Refusal
    ) -> Iterator[Move]:
        """The last two dimensions, where fewer are there than were named."""
        if refusal.code == Code.NO_SUCH_DIM:
            last = len(buffer_named(context.program, arguments[0]).dims) - 1
            if last > 0:
                yield Move("swap_dims", (arguments[0], last - 1, last))


@register
class PadDim(_LayoutMove[tuple[str, int, int]]):
    """Make a dimension of a temporary longer: room for padded iterations, or another stride.

    ``pad_dim B K M``

    Before::

        t f32 [54] heap
        54 t[{0}] = x[{0}]
        54 y[{0}] = t[{0}]

    After ``pad_dim t 0 56``::

        t f32 [56] heap
        54 t[{0}] = x[{0}]
        54 y[{0}] = t[{0}]

    Legal iff
      1. B holds no input or output;
      2. K is a dimension of B, and M larger than its size;
      3. the buffer stays under the target's limits (V3).

    Candidates: M = the next multiples of the vector widths, and the sizes and strides that occur in the
    program, up to twice the size.
    """

    name = "pad_dim"
    parameters = (Parameter("buffer", "buffer"), Parameter("dim", "number"), Parameter("size", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[str, int, int]]:
        program = context.program
        units = {d.size for b in program.buffers for d in b.dims}
        units |= {s.size for _, s, _ in scopes(program)}
        for buffer in temporaries(program):
            for k, dim in enumerate(buffer.dims):
                if dim.size < 2:
                    continue
                grid = {-(-dim.size // w) * w for w in context.widths}
                grid |= {u for u in units if dim.size < u <= 2 * dim.size}
                for size in sorted(grid - {dim.size}):
                    yield buffer.name, k, size

    def plan(self, context: Context, arguments: tuple[str, int, int]) -> Edit | Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        k, size = arguments[1:]
        refusal = interface_refusal(program, buffer) or _no_dim(buffer, k)  # 1, 2
        if refusal is not None:
            return refusal
        if size <= buffer.dims[k].size or size >= 2**31:
            beyond = "adds none" if size < 2**31 else f"is beyond the limit of {2**31 - 1}"
            return structural(
                Code.PAD_SIZE,
                f"Dimension {k} of {buffer.name} has {buffer.dims[k].size} cells; {size} {beyond}.",
            )
        edit = Edit(lambda: _resized(program, buffer, k, size), roots_of(program, buffer))
        return edit if size <= 2 * buffer.dims[k].size else edit.make()

    def inverse(self, context: Context, arguments: tuple[str, int, int], result: Program) -> Move:
        name, k, _ = arguments
        size = buffer_named(context.program, name).dims[k].size
        return Move("unpad_dim", (name, k, size))


@register
class ZeroFill(_LayoutMove[tuple[str]]):
    """Set all of a temporary to 0 before anything else is written there, as padding with zeros does.

    ``zero_fill B``

    Before::

        t f32 [58] heap
        54 t[{0}] = x[{0}]
        54 y[{0}] = t[{0}]

    After ``zero_fill t``::

        t f32 [58] heap
        58 t[{0}] = 0
        54 t[{0}] = x[{0}]
        54 y[{0}] = t[{0}]

    Legal iff
      1. B holds no input or output, and one array alone;
      2. it is on the heap, and all of its dimensions are materialised.
    """

    name = "zero_fill"
    parameters = (Parameter("buffer", "buffer"),)

    def candidates(self, context: Context) -> Iterator[tuple[str]]:
        for buffer in temporaries(context.program):
            yield (buffer.name,)

    def plan(self, context: Context, arguments: tuple[str]) -> Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        refusal = interface_refusal(program, buffer)  # 1
        if refusal is not None:
            return refusal
        if len(buffer.arrays) > 1:
            return structural(Code.NOT_SHARED, f"{buffer.name} holds several arrays: unshare it first.")
        if buffer.location != "heap" or not all(dim.materialised for dim in buffer.dims):  # 2
            return structural(
                Code.NOT_MATERIALISED, f"{buffer.name} is not one array on the heap for all iterations."
            )
        fresh = provenances(context)
        (array,) = buffer.arrays
        element = Access(array, tuple(Affine.iterator(k) for k in range(len(buffer.dims))))
        fill = nest(
            [d.size for d in buffer.dims], Op(element, "", "", (Number(0),), provenance=next(fresh)), fresh
        )
        first = min(leaf.path[0] for leaf in program.leaves if array in {a.array for a in leaf.op.elements})
        return program.splice((first,), 0, (fill,))

    def inverse(self, context: Context, arguments: tuple[str], result: Program) -> Move:
        (array,) = buffer_named(context.program, arguments[0]).arrays
        return Move("drop_dead", (Place(array, 0),))

    def enablers(self, context: Context, arguments: tuple[str], refusal: Refusal) -> Iterator[Move]:
        buffer = buffer_named(context.program, arguments[0])
        if refusal.code == Code.NOT_SHARED:
            yield from (Move("unshare_buffer", (array,)) for array in buffer.arrays)
        if refusal.code == Code.NOT_MATERIALISED:
            if buffer.location != "heap":
                yield Move("set_location", (buffer.name, "heap"))
            hidden = [k for k, dim in enumerate(buffer.dims) if not dim.materialised]
            if hidden:
                yield Move("materialise_dims", (buffer.name, *hidden))


@register
class UnpadDim(_LayoutMove[tuple[str, int, int]]):
    """Cut off the end of a dimension that nothing uses: the inverse of pad_dim.

    ``unpad_dim B K N``

    Before::

        t f32 [56] heap
        54 t[{0}] = x[{0}]
        54 y[{0}] = t[{0}]

    After ``unpad_dim t 0 54``::

        t f32 [54] heap
        54 t[{0}] = x[{0}]
        54 y[{0}] = t[{0}]

    Legal iff
      1. B holds no input or output;
      2. K is a dimension of B, and 0 < N < its size;
      3. every index K stays below N.

    Candidates: N = the end of what is used.
    """

    name = "unpad_dim"
    parameters = (Parameter("buffer", "buffer"), Parameter("dim", "number"), Parameter("size", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[str, int, int]]:
        for buffer in temporaries(context.program):
            for k, dim in enumerate(buffer.dims):
                end = _end(context.program, buffer, k)
                if end < dim.size:
                    yield buffer.name, k, end

    def plan(self, context: Context, arguments: tuple[str, int, int]) -> Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        k, size = arguments[1:]
        refusal = interface_refusal(program, buffer) or _no_dim(buffer, k)  # 1, 2
        if refusal is not None:
            return refusal
        if not 0 < size < buffer.dims[k].size:
            return structural(Code.PAD_SIZE, f"{size} is not shorter than dimension {k} of {buffer.name}.")
        user = _beyond(program, buffer, k, size)
        if user is not None:  # 3
            return structural(Code.DIM_USED, f"An index {k} of {buffer.name} may reach {size}.", user.path)
        return _resized(program, buffer, k, size)

    def inverse(self, context: Context, arguments: tuple[str, int, int], result: Program) -> Move:
        name, k, _ = arguments
        size = buffer_named(context.program, name).dims[k].size
        return Move("pad_dim", (name, k, size))


def _beyond(program: Program, buffer: Buffer, k: int, size: int) -> Leaf | None:
    """An operation that uses an index ``k`` of ``size`` or more."""
    for leaf, access in _accesses(program, buffer):
        system = System()
        form = system.form(access.index[k], system.instance(leaf))
        system.constraints.append(Constraint.at_least(form - size))
        if system.solve() is not None:
            return leaf
    return None


def _accesses(program: Program, buffer: Buffer) -> Iterator[tuple[Leaf, Access]]:
    return ((t.leaf, t.element) for array in buffer.arrays for t in accesses_of(program, array))


def _end(program: Program, buffer: Buffer, k: int) -> int:
    """One more than the largest index ``k`` in use (guards, which could only lower it, aside)."""
    end = 1
    for leaf, access in _accesses(program, buffer):
        end = max(end, access.index[k].bounds([s.size for s in leaf.scopes])[1] + 1)
    return end


def _resized(program: Program, buffer: Buffer, k: int, size: int) -> Program:
    dims = tuple(replace(d, size=size) if n == k else d for n, d in enumerate(buffer.dims))
    return with_buffer(program, buffer, replace(buffer, dims=dims))


@register
class ExpandDim(_LayoutMove[tuple[str, Place]]):
    """Give a temporary a dimension of its own for each iteration of a scope (scalar or array expansion).

    ``expand_dim B S``: the new dimension is the first, indexed by S. It removes false dependences.

    Before::

        t f32 [] heap
        8 t[] = x[{0}]
        | y[{0}] = t[]

    After ``expand_dim t t@0``::

        t f32 [8] heap
        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    Legal iff
      1. B holds no input or output;
      2. every access to it stands in S;
      3. every read is defined in the same iteration of S.
    """

    name = "expand_dim"
    parameters = (Parameter("buffer", "buffer"), Parameter("scope", "scope"))

    def candidates(self, context: Context) -> Iterator[tuple[str, Place]]:
        program = context.program
        for buffer in temporaries(program):
            owner = owner_path(program, buffer)
            for depth in range(len(owner)):
                path = owner[: depth + 1]
                scope = program.scope(path)
                if scope.size > 1 and not _indexed(program, buffer, path):
                    yield buffer.name, place_of(program, path)

    def places(self, context: Context, arguments: tuple[str, Place]) -> tuple[Path, ...]:
        return (resolve(context.program, arguments[1]),)

    def plan(self, context: Context, arguments: tuple[str, Place]) -> Program | Refusal:
        program = context.program
        name, place = arguments
        buffer = buffer_named(program, name)
        refusal = interface_refusal(program, buffer)  # 1
        if refusal is not None:
            return refusal
        path, scope, _ = scope_at(program, place)
        if not _all_within(program, buffer, path):  # 2
            return structural(Code.USED_OUTSIDE, f"{buffer.name} is used outside {place} too.", path)
        for array in buffer.arrays:  # 3
            accesses = accesses_of(program, array)
            for access in accesses:
                if access.kind == "w":
                    continue
                near = coverage(access, accesses)
                # implied: all accesses stand in S, so coverage looks no further out
                if near is None or near[0] < len(path):
                    return Refusal(
                        Code.CARRIED,
                        f"{access.element} is not surely set in the iteration of {place} that reads it.",
                        (access.leaf.path,),
                        carried(accesses, access, len(path)) or unset(access, accesses),
                    )
        depth = len(path) - 1

        def longer(access: Access, *_: object) -> Access:
            return Access(access.array, (Affine.iterator(depth), *access.index))

        fresh = provenances(context)
        changed = replace(buffer, dims=(Dim(scope.size, True, next(fresh)), *buffer.dims))
        body = map_accesses(program.body, longer, buffer.arrays)
        return with_buffer(program, buffer, changed).edit(body=body)


def _all_within(program: Program, buffer: Buffer, path: Path) -> bool:
    accesses = (t for array in buffer.arrays for t in accesses_of(program, array))
    return all(t.leaf.path[: len(path)] == path for t in accesses)


def _indexed(program: Program, buffer: Buffer, path: Path) -> bool:
    depth = len(path) - 1
    return any(
        all(
            t.element.index[k] == Affine.iterator(depth)
            for a in buffer.arrays
            for t in accesses_of(program, a)
        )
        for k in range(len(buffer.dims))
    )


@register
class DropDim(_LayoutMove[tuple[str, int]]):
    """Leave out a dimension whose indices all share one address, or that has only one index.

    ``drop_dim B K``

    Before::

        t f32 [8:N] heap
        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    After ``drop_dim t 0``::

        t f32 [] heap
        8 t[] = x[{0}]
        | y[{0}] = t[]

    Legal iff
      1. B holds no input or output;
      2. K is a dimension of B that is :N, or of size 1 (the physical cells are the same then, and in a
         valid program each read finds its value there).
    """

    name = "drop_dim"
    parameters = (Parameter("buffer", "buffer"), Parameter("dim", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[str, int]]:
        for buffer in temporaries(context.program):
            for k, dim in enumerate(buffer.dims):
                if not dim.materialised or dim.size == 1:
                    yield buffer.name, k

    def plan(self, context: Context, arguments: tuple[str, int]) -> Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        k = arguments[1]
        refusal = interface_refusal(program, buffer) or _no_dim(buffer, k)  # 1, 2
        if refusal is not None:
            return refusal
        if buffer.dims[k].materialised and buffer.dims[k].size > 1:
            return structural(
                Code.DIM_MATERIALISED, f"Dimension {k} of {buffer.name} has an address for each index."
            )

        def shorter(access: Access, *_: object) -> Access:
            return Access(access.array, (*access.index[:k], *access.index[k + 1 :]))

        changed = replace(buffer, dims=(*buffer.dims[:k], *buffer.dims[k + 1 :]))
        body = map_accesses(program.body, shorter, buffer.arrays)
        return with_buffer(program, buffer, changed).edit(body=body)

    def enablers(self, context: Context, arguments: tuple[str, int], refusal: Refusal) -> Iterator[Move]:
        if refusal.code == Code.DIM_MATERIALISED:
            yield Move("reuse_dims", arguments)
