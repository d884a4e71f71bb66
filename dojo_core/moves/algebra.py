"""Algebraic moves: rewrites that change rounding, legal under the policy ``algebraic`` alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dojo_core.moves.core import (
    Context,
    Move,
    Parameter,
    Refusal,
    Transformation,
    name_fault,
    register,
    structural,
)
from dojo_core.moves.places import Place, fresh_name, leaves_under, place_of, reduction_at
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.tree import Access, Buffer, Dim, Leaf, Number, Op, Path, Program, splice


@register
class UseReciprocal(Transformation[tuple[Place, str]]):
    """Divide once and multiply: ``x / c`` with c the same throughout a scope.

    ``use_reciprocal OP@S NAME``

    Before::

        8 16 y[{0},{1}] = e[{0},{1}] / s[{0}]

    After ``use_reciprocal y@1 r``::

        r f32 [8:N] stack
        8 r[{0}] = 1 / s[{0}]
        | 16 y[{0},{1}] = e[{0},{1}]*r[{0}]

    Promises the quotient with one rounding more, for a zero or an infinite c too. Promises nothing where 1/c
    overflows or is denormal, in f32 for c of 2^-128 or less or above 2^126.

    Legal iff
      1. the policy is algebraic;
      2. OP is a division by an array element, in floating point, without a guard;
      3. the divisor does not depend on the iterators of S or of scopes within it;
      4. nothing in S writes the divisor's array;
      5. NAME is new.
    """

    name = "use_reciprocal"
    also = ("strength_reduction",)
    family = "algebra"
    rewrites = "/"
    worst_inputs = ("small", "large", "zeros")
    parameters = (Parameter("operation", "reduction"), Parameter("name", "name"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        if context.policy != "algebraic":
            return
        program = context.program
        for leaf in program.leaves:
            divisor = _divisor(leaf)
            if divisor is None:
                continue
            place = place_of(program, leaf.path)
            deepest = max((d for form in divisor.index for d in form.depths), default=-1)
            for depth in range(deepest + 1, len(leaf.scopes)):
                yield Place(place.array, place.number, depth), fresh_name(program, "r")

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        program = context.program
        place, name = arguments
        leaf, at = reduction_at(program, place)
        path, above = leaf.path[: at + 1], leaf.scopes[:at]
        if context.policy != "algebraic":  # 1
            return Refusal(
                Code.POLICY,
                "Only the policy algebraic lets a division become a multiplication.",
                (leaf.path,),
            )
        divisor = _divisor(leaf)
        dtype = program.buffer_of[leaf.op.target.array].dtype
        if divisor is None or not dtype.startswith(("f", "bf")):  # 2
            return structural(
                Code.NO_DIVISION,
                f"{Place(place.array, place.number)} is no unguarded division by an array element.",
                leaf.path,
            )
        if any(d >= at for form in divisor.index for d in form.depths):  # 3
            return structural(
                Code.NOT_INVARIANT, f"{divisor} changes within the scope at depth {at}.", leaf.path
            )
        if any(other.op.target.array == divisor.array for other in leaves_under(program, path)):  # 4
            return Refusal(Code.WRITTEN_INSIDE, f"The scope at depth {at} writes {divisor.array}.", (path,))
        taken = name_fault(program, name)
        if taken is not None:  # 5
            return taken
        outer = tuple(Affine.iterator(d) for d in range(at))
        quotient = Access(name, outer)
        dims = tuple(Dim(s.size, False, context.provenance(97 + d)) for d, s in enumerate(above))
        invert = Op(quotient, "", "/", (Number(1), divisor), provenance=context.provenance(0))
        multiply = replace(leaf.op, function="*", operands=(leaf.op.operands[0], quotient))
        changed = program.edit(
            body=splice(program.body, leaf.path, 1, (multiply,)),
            buffers=(
                *program.buffers,
                Buffer(
                    name,
                    dtype,
                    dims,
                    context.target.temporary(above),
                    (name,),
                    context.provenance(96),
                ),
            ),
        )
        return changed.splice(path, 1, (invert, changed.node(path)))

    def places(self, context: Context, arguments: tuple[Place, str]) -> tuple[Path, ...]:
        leaf, depth = reduction_at(context.program, arguments[0])
        return leaf.path, leaf.path[: depth + 1]

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move:
        return Move("divide_again", (arguments[1],))


def _divisor(leaf: Leaf) -> Access | None:
    op = leaf.op
    if op.function != "/" or op.accumulate or op.guard or not isinstance(op.operands[1], Access):
        return None
    return op.operands[1]


@register
class DivideAgain(Transformation[tuple[str]]):
    """Divide in place again: takes use_reciprocal back.

    ``divide_again NAME``: the reciprocal's array.

    Before::

        8 r[{0}] = 1 / s[{0}]
        | 16 y[{0},{1}] = e[{0},{1}]*r[{0}]

    After ``divide_again r``::

        8 16 y[{0},{1}] = e[{0},{1}] / s[{0}]

    Promises the quotient with one rounding, for every divisor.

    Legal iff
      1. NAME is a temporary alone in its buffer, written by one operation ``NAME = 1 / c``, and read once
         more, as the last factor of a product into another array;
      2. use_reciprocal of the result gives this program back.
    """

    name = "divide_again"
    family = "algebra"
    rewrites = "/"
    worst_inputs = ("small", "large", "zeros")
    parameters = (Parameter("name", "name"),)

    def candidates(self, context: Context) -> Iterator[tuple[str]]:
        if context.policy == "algebraic":
            for buffer in context.program.buffers:
                if _pair(context.program, buffer.name) is not None:
                    yield (buffer.name,)

    def plan(self, context: Context, arguments: tuple[str]) -> Program | Refusal:
        program = context.program
        (name,) = arguments
        pair = _pair(program, name)
        if pair is None:  # 1
            return structural(
                Code.NO_RECIPROCAL, f"{name} is no temporary that holds a reciprocal for one product."
            )
        invert, product = pair
        divided = replace(product.op, function="/", operands=(product.op.operands[0], invert.op.operands[1]))
        body = splice(program.body, product.path, 1, (divided,))
        body = splice(body, invert.path, 1, ())
        result = program.edit(body=body)
        for again in (leaf for leaf in result.leaves if leaf.op == divided):  # 2
            place = place_of(result, again.path)
            for depth in range(len(again.scopes)):
                redone = UseReciprocal().plan(
                    replace(context, program=result), (Place(place.array, place.number, depth), name)
                )
                if isinstance(redone, Program) and redone.body == program.body:
                    return result
        return structural(
            Code.CHANGED_SINCE, f"{name} is no longer as use_reciprocal makes it.", product.path
        )

    def places(self, context: Context, arguments: tuple[str]) -> tuple[Path, ...]:
        pair = _pair(context.program, arguments[0])
        return () if pair is None else tuple(leaf.path for leaf in pair)


def _pair(program: Program, name: str) -> tuple[Leaf, Leaf] | None:
    leaves = [
        leaf
        for leaf in program.leaves
        if leaf.op.target.array == name or any(a.array == name for a in leaf.op.reads)
    ]
    if len(leaves) != 2 or program.buffer_of[name].arrays != (name,) or name in program.interface:
        return None
    invert, product = leaves
    one = (
        # implied: nothing else writes it, and what is no input is written before it is read
        invert.op.target.array == name
        and product.op.target.array != name
        and invert.op.function == "/"
        and invert.op.operands[0] == Number(1)
        and product.op.function == "*"
        and isinstance(product.op.operands[1], Access)
        and [read.array for read in (*invert.op.reads, *product.op.reads)].count(name) == 1
        and product.op.operands[1].array == name
    )
    return (invert, product) if one else None
