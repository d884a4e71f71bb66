"""Moves for tensor cores: factors rounded to what they multiply, and a nest given to a warp as one product.

The rounding is in the program's text, so that what it computes is the same on every target; the mark changes
nothing of that. Where the mark may stand is V3's matter (targets/gpu/tensor_cores.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dojo_core.moves.core import (
    Context,
    Move,
    Parameter,
    Refusal,
    Transformation,
    register,
    structural,
)
from dojo_core.moves.marks import MarkMove
from dojo_core.moves.places import Place, fresh_name, leaf_at, leaves_under, place_of, scope_at
from dojo_core.program.codes import Code
from dojo_core.program.dependence import rounds_factors
from dojo_core.program.tree import Leaf, Program, Scope


@register
class RoundTf32(Transformation[tuple[Place]]):
    """Round what a copy stores to TF32, for the products that are all it is used in.

    ``round_tf32 OP``

    Before::

        z f32 [16, 16] heap
        16 16 z[{0},{1}] = x[{0},{1}]
        16 8 16 y[{0},{1}] += z[{0},{2}]*w[{2},{1}]

    After ``round_tf32 z``::

        z f32 [16, 16] heap
        16 16 z[{0},{1}] = tf32(x[{0},{1}])
        16 8 16 y[{0},{1}] += z[{0},{2}]*w[{2},{1}]

    A factor keeps 10 bits behind its leading one, rounded to nearest, so that it is off by at most 2**-11 of
    itself, and a product of two such by some 2**-10. Products are added up in f32 as before.

    Legal iff
      1. the policy is tf32;
      2. OP copies an element of f32 into an array of f32 that is no output;
      3. what reads that array adds up its products with elements of another, in f32.

    Source: NVIDIA A100 Tensor Core GPU Architecture (2020), on TF32; PTX ISA 8.7, cvt.rna.tf32.f32.
    """

    name = "round_tf32"
    family = "tensor cores"
    policy = "tf32"
    parameters = (Parameter("op", "op"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        if context.policy != self.policy:
            return
        for leaf in context.program.leaves:
            if _copies(context.program, leaf):
                yield (place_of(context.program, leaf.path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        program = context.program
        leaf = leaf_at(program, arguments[0])
        array = leaf.op.target.array
        if context.policy != self.policy:  # 1
            return Refusal(
                Code.POLICY, "Only the policy tf32 lets the factors of sums be rounded.", (leaf.path,)
            )
        if not _copies(program, leaf):  # 2
            return structural(
                Code.NOT_A_COPY,
                f"{arguments[0]} is no copy of f32 into an array of the program's own.",
                leaf.path,
            )
        for other in program.leaves:
            if array in [read.array for read in other.op.sources] and not rounds_factors(
                program, other.op
            ):  # 3
                return Refusal(
                    Code.NOT_A_PRODUCT,
                    f"{array} is used in something else than a sum of products with another array.",
                    (leaf.path, other.path),
                )
        return program.splice(leaf.path, 1, (replace(leaf.op, function="tf32"),))

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """A copy for the products alone."""
        program = context.program
        if refusal.code == Code.NOT_A_PRODUCT:
            array = leaf_at(program, arguments[0]).op.target.array
            for other in program.leaves:
                if rounds_factors(program, other.op) and array in [read.array for read in other.op.reads]:
                    for depth in range(len(other.path) - 1, 0, -1):
                        copy = fresh_name(program, f"t{array}")
                        yield Move("stage_read", (array, place_of(program, other.path[:depth]), copy))


def _copies(program: Program, leaf: Leaf) -> bool:
    op = leaf.op
    return (
        not op.function
        and not op.accumulate
        and op.target.array not in program.interface
        and len(op.reads) == 1
        and all(program.buffer_of[access.array].dtype == "f32" for access in op.elements)
    )


@register
class MapTensorCore(MarkMove):
    """Have a warp compute a tile of a product as one instruction (tensorize).

    ``map_tensor_core S``

    Before::

        a f32 [16, 8] heap
        b f32 [8, 8] heap
        p f32 [16, 8] shared
        q f32 [8, 8] shared
        1:g 16:b 8 p[{1},{2}] = tf32(a[{1},{2}])
        | 8:b 8 q[{1},{2}] = tf32(b[{1},{2}])
        | 8:b 4:b 2 2 8 y[{1}+{3}*8,{2}*2+{4}] += p[{1}+{3}*8,{5}]*q[{5},{2}*2+{4}]

    After ``map_tensor_core y@3``::

        a f32 [16, 8] heap
        b f32 [8, 8] heap
        p f32 [16, 8] shared
        q f32 [8, 8] shared
        1:g 16:b 8 p[{1},{2}] = tf32(a[{1},{2}])
        | 8:b 8 q[{1},{2}] = tf32(b[{1},{2}])
        | 8:b 4:b 2:m 2 8 y[{1}+{3}*8,{2}*2+{4}] += p[{1}+{3}*8,{5}]*q[{5},{2}*2+{4}]

    S is the share of one thread: the instruction gives it 2 rows, 8 apart, by 2 columns, side by side, of 16
    by 8 results, each a sum over 8 terms. The factors are those of the whole warp.

    Legal iff
      1. S is unmarked, and the target has tensor cores;
      2. the innermost block scopes around it are one of 8, which the rows go by, and in it one of 4, which
         the columns go by: a warp. It stands in no warp scope (V3);
      3. S is a nest of 2 rows, 2 columns and 8 terms, unmarked within, around one operation (V3);
      4. which adds up unguarded products of two arrays of f32, where tf32 alone writes (V3);
      5. the policy lets the terms be regrouped (V3);
      6. the factors lie in memory; one goes by rows and terms, the other by terms and the columns' numbers,
         and the result is one for all terms (V3).

    Source: PTX ISA 8.7, mma.sync.aligned.m16n8k8; Raihan, Goli, Aamodt, "Modeling Deep Learning Accelerator
    Enabled GPUs", ISPASS 2019.
    """

    name = "map_tensor_core"
    also = ("mma", "wmma")
    family = "tensor cores"
    policy = "tf32"
    mark = "m"

    def offered(self, context: Context, scope: Scope, above: tuple[Scope, ...]) -> bool:
        return scope.size == 2 and any(s.mark == "b" for s in above) and isinstance(scope.body[0], Scope)

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, _, _ = scope_at(program, arguments[0])
        for leaf in leaves_under(program, path):
            for read in dict.fromkeys(access.array for access in leaf.op.reads):
                if refusal.code == Code.NOT_ROUNDED:
                    for write in program.leaves:
                        if write.op.target.array == read and not write.op.function:
                            yield Move("round_tf32", (place_of(program, write.path),))
                if refusal.code == Code.INSTRUCTION_ACCESS:
                    yield Move("set_location", (program.buffer_of[read].name, "shared"))
