"""Moves on reductions: partial results, so that lanes, threads or unrolled copies can sum apart."""

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
from dojo_core.moves.nodes import without
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name, place_of, reduction_at
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import may_regroup
from dojo_core.program.dtypes import FLOATS, extremes
from dojo_core.program.functions import IDENTITY
from dojo_core.program.reaching import leaves_of
from dojo_core.program.tables import affine
from dojo_core.program.tree import (
    Access,
    Buffer,
    Dim,
    Leaf,
    Node,
    Number,
    Op,
    Path,
    Program,
    Scope,
    leaves,
    splice,
)


def identity_of(accumulate: str, dtype: str) -> Number:
    """The value that an accumulation leaves unchanged, in that dtype."""
    value = IDENTITY[accumulate]
    if dtype in (*FLOATS, "i128") or value in (0, 1):
        return Number(value)
    least, most = extremes(dtype)
    return Number(least if accumulate == "max" else most)


@register
class SplitReduction(Transformation[tuple[Place, str]]):
    """Accumulate into partial results along a scope, and combine them afterwards.

    ``split_reduction OP@S NAME``: the operation, the depth of the scope, the new array's name.

    Before::

        s f32 [8] heap
        8 s[{0}] = 0
        8 4 16 s[{0}] += x[{0},{1}*16+{2}]

    After ``split_reduction s#1@2 p``::

        p f32 [8:N, 16] stack
        8 s[{0}] = 0
        8 16 p[{0},{1}] = 0
        | 4 16 p[{0},{2}] += x[{0},{1}*16+{2}]
        | 16 s[{0}] += p[{0},{1}]

    Partials have a :N dimension per scope around R, then one per scope that the target uses, or S, from
    R inwards. R is the outermost scope that holds S, is not used by the target, and in whose subtree
    nothing else touches the target's array or writes what an index of the target is read from.

    Legal iff
      1. OP accumulates, and the policy lets its terms be regrouped (integers, max and min: always);
      2. its target does not use the iterator of S;
      3. such a scope R exists;
      4. the guard uses only iterators of the target and of S;
      5. NAME is new.
    """

    name = "split_reduction"
    also = ("rfactor",)
    family = "reductions"
    parameters = (Parameter("reduction", "reduction"), Parameter("name", "name"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        program = context.program
        for leaf in program.leaves:
            if not leaf.op.accumulate:
                continue
            used = {d for form in leaf.op.target.index for d in form.depths}
            name = fresh_name(program, f"p{leaf.op.target.array}")
            place = place_of(program, leaf.path)
            for depth, scope in enumerate(leaf.scopes):
                if depth not in used and scope.size > 1:
                    yield Place(place.array, place.number, depth), name

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        program = context.program
        place, name = arguments
        leaf, s = reduction_at(program, place)
        op, path = leaf.op, leaf.path[: s + 1]
        array = op.target.array
        buffer = program.buffer_of[array]
        if not op.accumulate:  # 1
            return structural(
                Code.NO_REDUCTION, f"{Place(place.array, place.number)} does not accumulate.", leaf.path
            )
        if not may_regroup(program, leaf, context.policy):
            return Refusal(
                Code.POLICY,
                "The policy strict keeps the order of this sum: its terms may not be regrouped.",
                (leaf.path,),
            )
        used = {d for form in op.target.index for d in form.depths}
        if s in used:  # 2
            return structural(
                Code.TARGET_USES,
                f"{op.target} moves with the scope at depth {s}: nothing is reduced over it.",
                path,
            )
        outermost = _region(program, leaf, s, used)
        if outermost is None:  # 3
            return Refusal(
                Code.TOUCHED, f"Another operation inside the scope at depth {s} touches {array}.", (path,)
            )
        chosen = [d for d in range(outermost, len(leaf.scopes)) if d in used or d == s]
        for comparison in op.guard:  # 4
            if any(d >= outermost and d not in chosen for d in comparison.form.depths):
                return Refusal(
                    Code.GUARD,
                    "The guard uses an iterator that the partial results do not have.",
                    (leaf.path,),
                )
        taken = name_fault(program, name)
        if taken is not None:  # 5
            return taken

        outer = tuple(Affine.iterator(d) for d in range(outermost))
        dims = tuple(
            Dim(leaf.scopes[d].size, d >= outermost, context.provenance(97 + n))
            for n, d in enumerate((*range(outermost), *chosen))
        )
        location = context.target.temporary(leaf.scopes[:outermost])
        partial = Buffer(name, buffer.dtype, dims, location, (name,), context.provenance(96))
        lowered = {d: Affine.iterator(outermost + n) for n, d in enumerate(chosen)}
        element = Access(name, outer + tuple(Affine.iterator(d) for d in chosen))
        lowered_element = Access(
            name, outer + tuple(Affine.iterator(outermost + n) for n in range(len(chosen)))
        )
        guard = tuple(c.substitute(lowered) for c in op.guard)
        start = Op(
            lowered_element,
            "",
            "",
            (identity_of(op.accumulate, buffer.dtype),),
            guard,
            provenance=context.provenance(32),
        )
        combine = Op(
            op.target.substitute(lowered),
            op.accumulate,
            "",
            (lowered_element,),
            guard,
            provenance=context.provenance(64),
        )

        def nest(inner: Op, ordinal: int) -> Node:
            node: Node = inner
            for n, d in reversed(list(enumerate(chosen))):
                around = leaf.scopes[d]
                node = Scope(around.size, (node,), around.mark, context.provenance(ordinal + n))
            return node

        region = leaf.path[: outermost + 1]
        changed = program.edit(
            body=splice(program.body, leaf.path, 1, (replace(op, target=element),)),
            buffers=(*program.buffers, partial),
        )
        return changed.splice(region, 1, (nest(start, 0), changed.node(region), nest(combine, 33)))

    def places(self, context: Context, arguments: tuple[Place, str]) -> tuple[Path, ...]:
        leaf, depth = reduction_at(context.program, arguments[0])
        return leaf.path, leaf.path[: depth + 1]

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move:
        return Move("merge_reduction", (arguments[1],))

    def enablers(self, context: Context, arguments: tuple[Place, str], refusal: Refusal) -> Iterator[Move]:
        if refusal.code == Code.TOUCHED:
            program = context.program
            path = refusal.nodes[0]
            scope = program.node(path)
            if isinstance(scope, Scope):
                for number in range(1, len(scope.body)):
                    yield Move("fission_scope", (place_of(program, path), place_of(program, (*path, number))))


def _region(program: Program, leaf: Leaf, s: int, used: set[int]) -> int | None:
    """Depth of the outermost scope that holds S, that the target does not use, and in whose subtree
    only this accumulation accesses its array, and nothing writes what an index of its target is read from."""
    array, looked_up = leaf.op.target.array, {index.array for index in leaf.op.target.indices}
    for depth in range(s + 1):
        if depth in used:
            continue
        inside = leaf.scopes[depth]
        accesses = 0
        for other in leaves(inside.body):
            accesses += other.op.target.array == array
            accesses += other.op.target.array in looked_up  # what is combined goes where it said before
            accesses += sum(a.array == array for a in other.op.reads)
        if accesses == 1:
            return depth
    return None


@register
class MergeReduction(Transformation[tuple[str]]):
    """Accumulate directly, without partial results: the inverse of split_reduction, and for any sum of sums.

    ``merge_reduction NAME``: the partial results' array.

    Before::

        p f32 [8:N, 16] stack
        8 16 p[{0},{1}] = 0
        | 4 16 p[{0},{2}] += x[{0},{1}*16+{2}]
        | 16 s[{0}] += p[{0},{1}]

    After ``merge_reduction p``::

        8 4 16 s[{0}] += x[{0},{1}*16+{2}]

    Legal iff
      1. NAME is a temporary alone in its buffer, touched by exactly three operations: set to the identity,
         accumulated by terms that do not read it, combined; no array says which element is accumulated, nor
         does NAME where it is combined;
      2. split_reduction of the result gives this program back (so nothing else changed since), or the three
         follow each other in one body, unguarded, and name the same element of NAME, by the scopes around;
      3. in the second case the policy lets the terms be regrouped, both arrays have one dtype, and nothing
         else touches the target's array between the accumulation and the combination.
    """

    name = "merge_reduction"
    family = "reductions"
    parameters = (Parameter("name", "name"),)

    def candidates(self, context: Context) -> Iterator[tuple[str]]:
        for buffer in context.program.buffers:
            if _three(context.program, buffer.name) is not None:
                yield (buffer.name,)

    def plan(self, context: Context, arguments: tuple[str]) -> Program | Refusal:
        program = context.program
        (name,) = arguments
        if name not in program.buffer_of:
            raise NoSuchPlace(f"There is no array {name}.")
        operations = _three(program, name)
        if operations is None:  # 1
            return structural(
                Code.NO_PARTIALS,
                f"{name} is no temporary that three operations set to an identity, accumulate and combine.",
            )
        start, main, combine = operations
        partial = next(a for a in combine.op.reads if a.array == name)
        # Where the combine's loops stand for the main operation's scopes: index by index.
        images: dict[int, Affine] = {}
        for theirs, ours in zip(partial.index, map(affine, main.op.target.index), strict=True):
            if (
                isinstance(theirs, Affine)
                and len(theirs.terms) == 1
                and theirs.terms[0][1] == 1
                and theirs.const == 0
            ):
                images[theirs.terms[0][0]] = ours
        target = combine.op.target.substitute(images)
        direct = replace(main.op, target=target)
        body = splice(program.body, main.path, 1, (direct,))
        for gone in (combine, start):
            body = without(body, gone.path)
        result = program.edit(body=body)
        if _in_one_body(program, start, main, combine):  # 2
            return _combined_at_once(context, start, main, combine) or result
        forward = SplitReduction()
        for again in (leaf for leaf in result.leaves if leaf.op == direct):  # 2
            place = place_of(result, again.path)
            for depth in range(len(again.scopes)):
                redone = forward.plan(
                    replace(context, program=result), (Place(place.array, place.number, depth), name)
                )
                if isinstance(redone, Program) and _same_but_location(redone, program, name):
                    return result
        return structural(
            Code.CHANGED_SINCE,
            f"{name} is neither as split_reduction makes it, nor set, accumulated and combined in one body.",
            main.path,
        )

    def inverse(self, context: Context, arguments: tuple[str], result: Program) -> Move | None:
        return None  # which scope was split is not kept; split_reduction offers it anew

    def enablers(self, context: Context, arguments: tuple[str], refusal: Refusal) -> Iterator[Move]:
        if refusal.code == Code.CHANGED_SINCE:  # loops around the three may wait to be joined
            start = leaves_of(context.program, arguments[0])[0]
            place = place_of(context.program, start.path)
            for depth in range(len(start.scopes)):
                yield Move("join_scopes", (Place(place.array, place.number, depth),))


def _in_one_body(program: Program, start: Leaf, main: Leaf, combine: Leaf) -> bool:
    """Does each iteration of one body set an element, accumulate it, and combine it, unguarded?"""
    element = start.op.target
    return (
        combine.path[:-1] == start.path[:-1]  # the accumulation stands between them
        and combine.op.operands == (element,)
        and main.op.target == element
        and not any(leaf.op.guard for leaf in (start, main, combine))
    )


def _combined_at_once(context: Context, start: Leaf, main: Leaf, combine: Leaf) -> Refusal | None:
    """Why what such a body accumulates may not go into the target at once."""
    program, target = context.program, combine.op.target.array
    if not may_regroup(program, combine, context.policy):  # 3
        return Refusal(
            Code.POLICY,
            "The policy strict keeps the order of this sum: its terms may not be regrouped.",
            (combine.path,),
        )
    partial = start.op.target.array
    if program.buffer_of[partial].dtype != program.buffer_of[target].dtype:
        return structural(Code.DTYPE, f"{partial} and {target} have different dtypes.", combine.path)
    depth = len(start.path) - 1
    for other in leaves_of(program, target):
        between = other.path[:depth] == start.path[:-1] and main.path[depth] <= other.path[depth]
        if between and other.path < combine.path:
            return Refusal(
                Code.TOUCHED,
                f"{target} is touched between the accumulation of {partial} and its combination.",
                (other.path, combine.path),
            )
    return None


def _same_but_location(a: Program, b: Program, name: str) -> bool:
    made = a.buffer_of[name]
    expected = b.buffer_of[name]
    return a.body == b.body and replace(made, location=expected.location) == expected


def _three(program: Program, name: str) -> tuple[Leaf, Leaf, Leaf] | None:
    """(start, main, combine) of partial results, or None where the pattern is another."""
    operations = leaves_of(program, name)
    if len(operations) != 3 or program.buffer_of[name].arrays != (name,) or name in program.interface:
        return None
    start, main, combine = operations
    accumulate = main.op.accumulate
    right = (
        accumulate
        and all(read.array != name for read in main.op.reads)
        and combine.op.accumulate == accumulate
        and combine.op.target.array != name
        # implied: it touches NAME, and reads none of it
        and main.op.target.array == name
        and not main.op.target.indirect
        and name not in {index.array for index in combine.op.target.indices}
        # implied: it touches NAME, and its one operand is a number
        and start.op.target.array == name
        and not start.op.function
        and start.op.operands == (identity_of(accumulate, program.buffer_of[name].dtype),)
        and not combine.op.function
    )
    return (start, main, combine) if right else None
