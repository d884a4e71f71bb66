"""Moves that cut one dimension of a buffer in two and make one of two: no byte moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dojo_core.moves.core import (
    Context,
    Edit,
    Move,
    Parameter,
    Refusal,
    register,
    structural,
)
from dojo_core.moves.places import place_of
from dojo_core.moves.storage import (
    BufferMove,
    buffer_named,
    map_accesses,
    map_accesses_at,
    roots_of,
    with_buffer,
)
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.integers import divided
from dojo_core.program.reaching import accesses_of
from dojo_core.program.tables import Indirect, affine, plus
from dojo_core.program.tree import (
    Access,
    Dim,
    Op,
    Program,
    Scope,
)


@register
class SplitDim(BufferMove[tuple[str, int, int]]):
    """Cut one dimension of a buffer in two. No byte moves; inputs and outputs may be split too.

    ``split_dim B K T``

    Before::

        d f32 [64] heap
        4 16 d[{0}*16+{1}] = x[{0}*16+{1}]

    After ``split_dim d 0 16``::

        d f32 [4, 16] heap
        4 16 d[{0},{1}] = x[{0}*16+{1}]

    Legal iff
      1. T divides the size of dimension K, and lies between 1 and it;
      2. every index K decomposes as T*u + v with 0 <= v < T.
    """

    name = "split_dim"
    parameters = (Parameter("buffer", "buffer"), Parameter("dim", "number"), Parameter("factor", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[str, int, int]]:
        for buffer in context.program.buffers:
            for k, dim in enumerate(buffer.dims):
                accesses = (t for array in buffer.arrays for t in accesses_of(context.program, array))
                forms = (access.element.index[k] for access in accesses)
                strides = {abs(c) for form in forms if isinstance(form, Affine) for _, c in form.terms}
                for factor in sorted(strides):
                    if 1 < factor < dim.size and dim.size % factor == 0:
                        yield buffer.name, k, factor

    def plan(self, context: Context, arguments: tuple[str, int, int]) -> Edit | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        k, factor = arguments[1:]
        if k >= len(buffer.dims):
            return structural(
                Code.NO_SUCH_DIM, f"{buffer.name} has {len(buffer.dims)} dimensions, counted from 0."
            )
        dim = buffer.dims[k]
        if not 1 < factor < dim.size or dim.size % factor:  # 1
            return structural(
                Code.SPLIT_FACTOR,
                f"{factor} does not cut dimension {k} of {buffer.name}, {dim}, into equal runs: "
                f"it must divide {dim.size} and be more than 1 and less than {dim.size}.",
            )
        for leaf in program.leaves:  # 2
            sizes = tuple(scope.size for scope in leaf.scopes)
            for access in (leaf.op.target, *leaf.op.reads):
                if access.array not in buffer.arrays:
                    continue
                form = access.index[k]
                if isinstance(form, Indirect) or not divided(form, factor, sizes, leaf.op.guard):
                    return structural(
                        Code.NOT_DECOMPOSED,
                        f"The index {access.index[k]} of {access} is not {factor}*u + v "
                        f"with 0 <= v < {factor}.",
                        leaf.path,
                    )

        def cut(access: Access, above: tuple[Scope, ...], op: Op) -> Access:
            form = affine(access.index[k])  # by condition 2
            sizes = tuple(scope.size for scope in above)
            # A prefetch may leave the array: then any two parts do.
            parts = divided(form, factor, sizes, op.guard) or (Affine((), 0), form)
            return Access(access.array, (*access.index[:k], *parts, *access.index[k + 1 :]))

        def edit() -> Program:
            pieces = (
                Dim(dim.size // factor, dim.materialised, context.provenance(0)),
                Dim(factor, dim.materialised, context.provenance(1)),
            )
            changed = replace(buffer, dims=(*buffer.dims[:k], *pieces, *buffer.dims[k + 1 :]))
            body = map_accesses_at(program.body, cut, buffer.arrays)
            return with_buffer(program, buffer, changed).edit(body=body)

        return Edit(edit, roots_of(program, buffer))

    def inverse(self, context: Context, arguments: tuple[str, int, int], result: Program) -> Move:
        return Move("merge_dims", arguments[:2])

    def enablers(self, context: Context, arguments: tuple[str, int, int], refusal: Refusal) -> Iterator[Move]:
        """The scopes whose iterators run through the dimension, cut in the same way."""
        program = context.program
        name, k, factor = arguments
        if refusal.code != Code.NOT_DECOMPOSED:
            return
        arrays = buffer_named(program, name).arrays
        for leaf in (leaf for leaf in program.leaves if leaf.path in refusal.nodes):
            for access in (leaf.op.target, *leaf.op.reads):
                if access.array in arrays:
                    for depth in access.index[k].depths:
                        scope = program.scope(leaf.path[: depth + 1])
                        place = place_of(program, leaf.path[: depth + 1])
                        if scope.size > factor and scope.size % factor == 0:
                            yield Move("split_scope", (place, factor))

    def needs(self, context: Context, arguments: tuple[str, int, int], refusal: Refusal) -> str:
        if refusal.code != Code.NOT_DECOMPOSED:
            return ""
        return (
            f"Each index of the dimension would have to run through {arguments[2]} neighbours in a scope of "
            f"its own, from a multiple of {arguments[2]} on: its loops are longer, or begin elsewhere."
        )

    def alternatives(
        self, context: Context, arguments: tuple[str, int, int], refusal: Refusal
    ) -> Iterator[Move]:
        """Another dimension that the factor cuts, the last one first."""
        if refusal.code in (Code.NO_SUCH_DIM, Code.SPLIT_FACTOR):
            name, _, factor = arguments
            dims = buffer_named(context.program, name).dims
            for k in reversed(range(len(dims))):
                if 1 < factor < dims[k].size and dims[k].size % factor == 0:
                    yield Move("split_dim", (name, k, factor))


@register
class MergeDims(BufferMove[tuple[str, int]]):
    """Make one dimension of two neighbours: the inverse of split_dim. No byte moves.

    ``merge_dims B K``: dimensions K and K+1.

    Before::

        d f32 [4, 16] heap
        4 16 d[{0},{1}] = x[{0}*16+{1}]

    After ``merge_dims d 0``::

        d f32 [64] heap
        4 16 d[{0}*16+{1}] = x[{0}*16+{1}]

    Legal iff
      1. K and K+1 are dimensions of B;
      2. both are materialised, or both are :N.
    """

    name = "merge_dims"
    parameters = (Parameter("buffer", "buffer"), Parameter("dim", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[str, int]]:
        for buffer in context.program.buffers:
            for k in range(len(buffer.dims) - 1):
                if buffer.dims[k].materialised == buffer.dims[k + 1].materialised:
                    yield buffer.name, k

    def plan(self, context: Context, arguments: tuple[str, int]) -> Edit | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        k = arguments[1]
        if k + 1 >= len(buffer.dims):  # 1
            return structural(Code.NO_SUCH_DIM, f"{buffer.name} has no dimensions {k} and {k + 1}.")
        outer, inner = buffer.dims[k], buffer.dims[k + 1]
        if outer.materialised != inner.materialised:  # 2
            return structural(Code.UNLIKE_DIMS, "One of the two dimensions is :N, the other is materialised.")

        def glue(access: Access) -> Access:
            merged = plus(access.index[k] * inner.size, access.index[k + 1])
            return Access(access.array, (*access.index[:k], merged, *access.index[k + 2 :]))

        def edit() -> Program:
            dim = Dim(outer.size * inner.size, outer.materialised, context.provenance(0))
            changed = replace(buffer, dims=(*buffer.dims[:k], dim, *buffer.dims[k + 2 :]))
            body = map_accesses(program.body, glue, buffer.arrays)
            return with_buffer(program, buffer, changed).edit(body=body)

        return Edit(edit, roots_of(program, buffer))

    def inverse(self, context: Context, arguments: tuple[str, int], result: Program) -> Move:
        k = arguments[1]
        inner = buffer_named(context.program, arguments[0]).dims[k + 1].size
        return Move("split_dim", (arguments[0], k, inner))
