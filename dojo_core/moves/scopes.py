"""Moves on scopes: split, merge, join, fission, interchange, reorder."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

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
from dojo_core.moves.nodes import height
from dojo_core.moves.places import Place, leaf_at, leaves_under, place_of, resolve, scope_at, scopes
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import Order, conflict_between
from dojo_core.program.gpu import UNORDERED
from dojo_core.program.tree import Node, Op, Path, Program, Scope, substitute

SPLIT_FACTORS = (2, 4, 8, 16, 32, 64)


def _after(path: Path) -> Path:
    return (*path[:-1], path[-1] + 1)


def _roots(path: Path) -> Path:
    """The root's children that hold a node and its next sibling."""
    return path[:1] if len(path) > 1 else (*path, *_after(path))


@register
class SplitScope(Transformation[tuple[Place, int]]):
    """Cut the iterations of a scope into equal runs: a scope of N becomes N/T around T (strip-mining).

    ``split_scope S T``

    Before::

        64 y[{0}] = x[{0}]

    After ``split_scope y@0 16``::

        4 16 y[{0}*16+{1}] = x[{0}*16+{1}]

    Legal iff
      1. T divides the size N of S, and 1 < T < N;
      2. S is unmarked.

    Candidates: T from 2 4 8 16 32 64, the vector widths of the target, the sizes that occur in the
    program, and N/threads. Both scopes are new nodes: a provenance names an iteration space.

    Source: PerfDojo, SC '25, section 2.3 (split_scopes).
    """

    name = "split_scope"
    also = ("strip_mine", "split")
    family = "scopes"
    parameters = (Parameter("scope", "scope"), Parameter("factor", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, int]]:
        sizes = {scope.size for _, scope, _ in scopes(context.program)}
        grid = sizes.union(SPLIT_FACTORS, context.widths)
        for path, scope, _ in scopes(context.program):
            if scope.mark:
                continue
            place = place_of(context.program, path)
            for factor in sorted(grid | {scope.size // max(2, context.target.threads)}):
                if 1 < factor < scope.size and scope.size % factor == 0:
                    yield place, factor

    def plan(self, context: Context, arguments: tuple[Place, int]) -> Edit | Refusal:
        place, factor = arguments
        path, scope, _ = scope_at(context.program, place)
        if not 1 < factor < scope.size or scope.size % factor:  # 1
            return structural(
                Code.SPLIT_FACTOR,
                f"{factor} does not cut {scope.size} iterations into equal runs: it must divide {scope.size} "
                f"and be more than 1 and less than {scope.size}.",
                path,
            )
        if scope.mark:  # 2
            return structural(Code.MARKED, f"{place} is marked: clear its mark before splitting it.", path)
        depth = len(path) - 1

        def edit() -> Program:
            images = {depth: Affine.make([(depth, factor), (depth + 1, 1)])}
            images.update(_shift(scope, depth + 1, 1))
            inner = Scope(factor, tuple(substitute(c, images) for c in scope.body), "", context.provenance(1))
            outer = Scope(scope.size // factor, (inner,), "", context.provenance(0))
            return context.program.splice(path, 1, (outer,))

        return Edit(edit, path[:1])

    def inverse(self, context: Context, arguments: tuple[Place, int], result: Program) -> Move:
        return Move("merge_scopes", (arguments[0],))

    def enablers(self, context: Context, arguments: tuple[Place, int], refusal: Refusal) -> Iterator[Move]:
        place, factor = arguments
        _, scope, _ = scope_at(context.program, place)
        if refusal.code == Code.SPLIT_FACTOR and 1 < factor < scope.size:
            more = -(-scope.size // factor) * factor
            yield Move("pad_scope", (place, more, "guard"))
            yield Move("cut_scope", (place, more - factor))

    def alternatives(
        self, context: Context, arguments: tuple[Place, int], refusal: Refusal
    ) -> Iterator[Move]:
        """Another scope around the same operation that the factor divides; another factor."""
        if refusal.code != Code.SPLIT_FACTOR:
            return
        place, factor = arguments
        path, scope, _ = scope_at(context.program, place)
        around = leaf_at(context.program, place).scopes
        if factor > 1:
            for depth in sorted(range(len(around)), key=lambda d: (abs(d - len(path) + 1), -d)):
                if around[depth].size > factor and around[depth].size % factor == 0:
                    yield Move("split_scope", (Place(place.array, place.number, depth), factor))
        divisors = [d for d in range(2, min(scope.size, 65)) if scope.size % d == 0]
        for divisor in sorted(divisors, key=lambda d: abs(d - factor)):
            yield Move("split_scope", (place, divisor))


def _shift(scope: Scope, start: int, by: int) -> dict[int, Affine]:
    """Images that renumber the iterators from depth ``start`` on."""
    return {d: Affine.iterator(d + by) for d in range(start, start + height(scope) + 1)}


@register
class MergeScopes(Transformation[tuple[Place]]):
    """Make one scope of two that are nested perfectly.

    ``merge_scopes S``

    Before::

        4 16 y[{0}*16+{1}] = x[{0}*16+{1}]

    After ``merge_scopes y@0``::

        64 y[{0}] = x[{0}]

    Legal iff
      1. a scope is the only child of S;
      2. both are unmarked;
      3. every index, guard, prefetch and iterator used as a value uses the two only as T*outer + inner,
         T being the inner size.
    """

    name = "merge_scopes"
    also = ("fuse", "coalesce", "collapse")
    family = "scopes"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        for path, scope, _ in scopes(context.program):
            if len(scope.body) == 1 and isinstance(scope.body[0], Scope):
                yield (place_of(context.program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        path, scope, _ = scope_at(context.program, arguments[0])
        inner = scope.body[0]
        if len(scope.body) != 1 or not isinstance(inner, Scope):  # 1
            return structural(Code.NOT_PERFECT, f"{arguments[0]} does not hold exactly one scope.", path)
        if scope.mark or inner.mark:  # 2
            return structural(Code.MARKED, "Both scopes must be unmarked to become one.", path, (*path, 0))
        depth = len(path) - 1
        for leaf in leaves_under(context.program, path):  # 3
            for form in _forms(leaf.op):
                if form.coefficient(depth) != inner.size * form.coefficient(depth + 1):
                    return structural(
                        Code.NOT_FLAT,
                        f"{form} does not use the two iterators as {inner.size}*{{{depth}}}+{{{depth + 1}}}.",
                        leaf.path,
                    )

        def edit() -> Program:
            # By condition 3 the outer iterator only occurs with the inner one: dropping it keeps every form.
            images = {depth: Affine(), depth + 1: Affine.iterator(depth)}
            images.update(_shift(inner, depth + 2, -1))
            body = tuple(substitute(c, images) for c in inner.body)
            merged = Scope(scope.size * inner.size, body, "", context.provenance(0))
            return context.program.splice(path, 1, (merged,))

        return Edit(edit, path[:1])

    def places(self, context: Context, arguments: tuple[Place]) -> tuple[Path, ...]:
        path, _, _ = scope_at(context.program, arguments[0])
        return path, (*path, 0)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        path, _, _ = scope_at(context.program, arguments[0])
        inner = context.program.scope((*path, 0))
        return Move("split_scope", (arguments[0], inner.size))

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        if refusal.code == Code.NOT_PERFECT:
            for number in range(1, len(scope.body)):
                yield Move("fission_scope", (arguments[0], place_of(program, (*path, number))))
        inner = scope.body[0]
        if refusal.code == Code.NOT_FLAT and isinstance(inner, Scope):
            depth = len(path) - 1

            def flat(form: Affine) -> bool:
                return form.coefficient(depth) == inner.size * form.coefficient(depth + 1)

            for leaf in (leaf for leaf in program.leaves if leaf.path in refusal.nodes):
                if any(
                    f.coefficient(depth) and f.coefficient(depth) * scope.size == f.coefficient(depth + 1)
                    for f in _forms(leaf.op)
                ):
                    yield Move("interchange", (arguments[0],))
                for access in (leaf.op.target, *leaf.op.reads):
                    buffer = program.buffer_of[access.array]
                    for k, (one, other) in enumerate(pairwise(access.index)):
                        if isinstance(one, Affine) and isinstance(other, Affine):
                            merged = one * buffer.dims[k + 1].size + other
                            if not flat(one) and flat(merged):
                                yield Move("merge_dims", (buffer.name, k))


def _forms(op: Op) -> Iterator[Affine]:
    """All affine forms of an operation; of an index through a table each of its parts."""
    for access in (op.target, *op.reads, *op.prefetches):
        for index in access.index:
            if isinstance(index, Affine):
                yield index
            else:
                yield index.rest
                yield from (form for lookup, _ in index.lookups for form in lookup.at)
    yield from (o for o in op.operands if isinstance(o, Affine))
    yield from (c.form for c in op.guard)


@register
class JoinScopes(Transformation[tuple[Place]]):
    """Fuse a scope with the next sibling: one loop does the work of both (loop fusion).

    ``join_scopes S``

    Before::

        8 t[{0}] = x[{0}]
        8 y[{0}] = t[{0}]

    After ``join_scopes t@0``::

        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    Legal iff
      1. the next sibling of S is a scope;
      2. it has the same size and the same mark;
      3. no conflict between an iteration i of S and an earlier iteration j < i of the sibling (V1;
         where they are parallel: none between different iterations).

    Source: PerfDojo, SC '25, section 2.3 (join_scopes).
    """

    name = "join_scopes"
    also = ("fusion", "loop_fusion")
    family = "scopes"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        for path, scope, _ in scopes(context.program):
            siblings = context.program.siblings(path)
            if path[-1] + 1 < len(siblings):
                partner = siblings[path[-1] + 1]
                if isinstance(partner, Scope) and (partner.size, partner.mark) == (scope.size, scope.mark):
                    yield (place_of(context.program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        siblings = program.siblings(path)
        partner = siblings[path[-1] + 1] if path[-1] + 1 < len(siblings) else None
        if not isinstance(partner, Scope):  # 1
            return structural(Code.NO_PARTNER, f"No scope follows {arguments[0]}.", path)
        if (partner.size, partner.mark) != (scope.size, scope.mark):  # 2
            return structural(
                Code.UNLIKE_PARTNER,
                f"The next scope has {_slot(partner)} iterations, {arguments[0]} has {_slot(scope)}: "
                "they must be alike.",
                path,
                _after(path),
            )
        depth = len(path) - 1
        first, second = leaves_under(program, path), leaves_under(program, _after(path))
        for relation in ("<", ">") if scope.mark in UNORDERED else (">",):  # 3
            witness = conflict_between(
                program, first, second, depth, [Order(depth, relation)], context.policy
            )
            if witness is not None:
                return Refusal(
                    Code.ORDER,
                    f"Joined, an iteration of the second scope would come before one of the first that it "
                    f"conflicts with on {witness.cell}.",
                    tuple(leaf.path for leaf, _ in witness.instances),
                    witness,
                )
        joined = Scope(scope.size, scope.body + partner.body, scope.mark, scope.provenance)
        return Edit(lambda: program.splice(path, 2, (joined,)), _roots(path))

    def places(self, context: Context, arguments: tuple[Place]) -> tuple[Path, ...]:
        path, _, _ = scope_at(context.program, arguments[0])
        return path, _after(path)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        path, scope, _ = scope_at(context.program, arguments[0])
        begin = (*path, len(scope.body))
        return Move("fission_scope", (place_of(result, path), place_of(result, begin)))

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        if refusal.code == Code.UNLIKE_PARTNER:
            partner = program.scope(_after(path))
            if partner.mark != scope.mark:
                for (other, node), marked in (((path, scope), partner), ((_after(path), partner), scope)):
                    if marked.mark == "p" and not node.mark:
                        yield Move("parallelize", (place_of(program, other),))
                for other, node in ((path, scope), (_after(path), partner)):
                    if node.mark:
                        yield Move("clear_mark", (place_of(program, other),))
            larger, smaller = max(scope.size, partner.size), min(scope.size, partner.size)
            if larger > smaller:
                which = place_of(program, path if scope.size == larger else _after(path))
                if larger % smaller == 0:
                    yield Move("split_scope", (which, larger // smaller))
                yield Move("cut_scope", (which, smaller))
        if refusal.code == Code.VECTOR_BODY:  # two operations are no vector, but may be one loop
            for other in (path, _after(path)):
                yield Move("clear_mark", (place_of(program, other),))
        if refusal.code == Code.NO_PARTNER:
            if path[-1] + 1 < len(program.siblings(path)):  # an operation: done as often, or out of the way
                yield Move("wrap", (place_of(program, _after(path)), scope.size))
                yield Move("reorder", (place_of(program, _after(path)),))
            for depth in range(len(path) - 2, -1, -1):  # it is the last of its block: join the blocks
                yield Move("join_scopes", (Place(arguments[0].array, arguments[0].number, depth),))


def _slot(scope: Scope) -> str:
    return f"{scope.size}:{scope.mark}" if scope.mark else str(scope.size)


@register
class FissionScope(Transformation[tuple[Place, Place]]):
    """Distribute a scope over two halves of its body (loop distribution).

    ``fission_scope S X``: the second part begins at X, a child of S.

    Before::

        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    After ``fission_scope t@0 y``::

        8 t[{0}] = x[{0}]
        8 y[{0}] = t[{0}]

    Legal iff
      1. X is a child of S, not its first;
      2. no conflict between an iteration i of the first part and an earlier iteration j < i of the
         second (V1).
    """

    name = "fission_scope"
    also = ("distribute", "loop_distribution", "fission")
    family = "scopes"
    parameters = (Parameter("scope", "scope"), Parameter("child", "node"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, Place]]:
        for path, scope, _ in scopes(context.program):
            for number in range(1, len(scope.body)):
                yield place_of(context.program, path), place_of(context.program, (*path, number))

    def plan(self, context: Context, arguments: tuple[Place, Place]) -> Edit | Refusal:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        begin = resolve(program, arguments[1])
        if begin[:-1] != path or begin[-1] == 0:  # 1
            return structural(
                Code.NOT_A_LATER_CHILD,
                f"{arguments[1]} is not a second or later child of {arguments[0]}.",
                path,
                begin,
            )
        depth = len(path) - 1
        inside = leaves_under(program, path)
        first = [leaf for leaf in inside if leaf.path[depth + 1] < begin[-1]]
        second = [leaf for leaf in inside if leaf.path[depth + 1] >= begin[-1]]
        witness = conflict_between(program, first, second, depth, [Order(depth, ">")], context.policy)
        if witness is not None:  # 2
            return Refusal(
                Code.ORDER,
                f"Apart, an iteration of the first part would come before an earlier one of the second that "
                f"it conflicts with on {witness.cell}.",
                tuple(leaf.path for leaf, _ in witness.instances),
                witness,
            )
        parts = (
            Scope(scope.size, scope.body[: begin[-1]], scope.mark, scope.provenance),
            Scope(scope.size, scope.body[begin[-1] :], scope.mark, context.provenance(0)),
        )
        return Edit(lambda: program.splice(path, 1, parts), path[:1])

    def inverse(self, context: Context, arguments: tuple[Place, Place], result: Program) -> Move:
        path, _, _ = scope_at(context.program, arguments[0])
        return Move("join_scopes", (place_of(result, path),))

    def enablers(self, context: Context, arguments: tuple[Place, Place], refusal: Refusal) -> Iterator[Move]:
        fault = refusal.fault
        if fault is not None and fault.buffer:
            buffer = next(b for b in context.program.buffers if b.name == fault.buffer)
            hidden = [k for k, d in enumerate(buffer.dims) if not d.materialised]
            for k in hidden:
                yield Move("materialise_dims", (buffer.name, k))
            if buffer.location != "heap":
                yield Move("set_location", (buffer.name, "heap"))

    def alternatives(
        self, context: Context, arguments: tuple[Place, Place], refusal: Refusal
    ) -> Iterator[Move]:
        """At another child."""
        path, scope, _ = scope_at(context.program, arguments[0])
        if refusal.code == Code.NOT_A_LATER_CHILD:
            for number in range(1, len(scope.body)):
                yield Move("fission_scope", (arguments[0], place_of(context.program, (*path, number))))

    def needs(self, context: Context, arguments: tuple[Place, Place], refusal: Refusal) -> str:
        _, scope, _ = scope_at(context.program, arguments[0])
        one = refusal.code == Code.NOT_A_LATER_CHILD and len(scope.body) == 1
        return f"{arguments[0]} holds one node: there is nothing to part." if one else ""


@register
class Interchange(Transformation[tuple[Place]]):
    """Swap a scope with the one scope it holds.

    ``interchange S``

    Before::

        8 16 y[{0},{1}] = x[{0},{1}]

    After ``interchange y@0``::

        16 8 y[{1},{0}] = x[{1},{0}]

    Legal iff
      1. a scope is the only child of S;
      2. no conflict between instances i, j with i_S < j_S and i_C > j_C, C being the child (V1);
      3. the order of marks stays valid (V3).
    """

    name = "interchange"
    also = ("permute", "loop_interchange")
    family = "scopes"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        for path, scope, _ in scopes(context.program):
            if len(scope.body) == 1 and isinstance(scope.body[0], Scope):
                yield (place_of(context.program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        inner = scope.body[0]
        if len(scope.body) != 1 or not isinstance(inner, Scope):  # 1
            return structural(Code.NOT_PERFECT, f"{arguments[0]} does not hold exactly one scope.", path)
        depth = len(path) - 1
        inside = leaves_under(program, path)
        orders = [Order(depth, "<"), Order(depth + 1, ">")]
        witness = conflict_between(program, inside, inside, depth, orders, context.policy)
        if witness is not None:  # 2
            return Refusal(
                Code.ORDER,
                f"Interchanged, two instances that conflict on {witness.cell} would change their order.",
                tuple(dict.fromkeys(leaf.path for leaf, _ in witness.instances)),
                witness,
            )

        def edit() -> Program:
            swap = {depth: Affine.iterator(depth + 1), depth + 1: Affine.iterator(depth)}
            body = tuple(substitute(c, swap) for c in inner.body)
            lowered = Scope(scope.size, body, scope.mark, scope.provenance)
            return program.splice(path, 1, (Scope(inner.size, (lowered,), inner.mark, inner.provenance),))

        return Edit(edit, path[:1])

    def places(self, context: Context, arguments: tuple[Place]) -> tuple[Path, ...]:
        path, _, _ = scope_at(context.program, arguments[0])
        return path, (*path, 0)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move("interchange", arguments)

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        if refusal.code == Code.NOT_PERFECT:
            path, scope, _ = scope_at(context.program, arguments[0])
            for number in range(1, len(scope.body)):
                yield Move(
                    "fission_scope",
                    (place_of(context.program, path), place_of(context.program, (*path, number))),
                )

    def alternatives(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """Of a scope that holds no other: its swap with the one around it."""
        path, scope, _ = scope_at(context.program, arguments[0])
        if refusal.code == Code.NOT_PERFECT and isinstance(scope.body[0], Op) and len(path) > 1:
            yield Move("interchange", (place_of(context.program, path[:-1]),))


@register
class Reorder(Transformation[tuple[Place]]):
    """Swap an operation or scope with its next sibling.

    ``reorder X``

    Before::

        8 t[{0}] = x[{0}]
        8 u[{0}] = x[{0}]

    After ``reorder t@0``::

        8 u[{0}] = x[{0}]
        8 t[{0}] = x[{0}]

    Legal iff
      1. X has a next sibling;
      2. no conflict between the two subtrees (V1).
    """

    name = "reorder"
    also = ("code_motion",)
    family = "scopes"
    parameters = (Parameter("node", "node"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        program = context.program

        def below(body: tuple[Node, ...], path: Path) -> Iterator[tuple[Place]]:
            for number, node in enumerate(body):
                if number + 1 < len(body):
                    yield (place_of(program, (*path, number)),)
                if isinstance(node, Scope):
                    yield from below(node.body, (*path, number))

        yield from below(program.body, ())

    def plan(self, context: Context, arguments: tuple[Place]) -> Edit | Refusal:
        program = context.program
        path = resolve(program, arguments[0])
        siblings = program.siblings(path)
        if path[-1] + 1 >= len(siblings):  # 1
            return structural(Code.NO_NEXT, f"Nothing follows {arguments[0]} in its scope.", path)
        first, second = leaves_under(program, path), leaves_under(program, _after(path))
        witness = conflict_between(program, first, second, len(path) - 1, (), context.policy)
        if witness is not None:  # 2
            return Refusal(
                Code.ORDER,
                f"The two must stay in this order: they conflict on {witness.cell}.",
                tuple(leaf.path for leaf, _ in witness.instances),
                witness,
            )
        swapped = (siblings[path[-1] + 1], siblings[path[-1]])
        return Edit(lambda: program.splice(path, 2, swapped), _roots(path))

    def places(self, context: Context, arguments: tuple[Place]) -> tuple[Path, ...]:
        path = resolve(context.program, arguments[0])
        return path, _after(path)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        path = resolve(context.program, arguments[0])
        return Move("reorder", (place_of(result, path),))

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """What the second copies of the first it may have from where the first has it."""
        if refusal.code == Code.ORDER:
            program = context.program
            path = resolve(program, arguments[0])
            written = {leaf.op.target.array for leaf in leaves_under(program, path)}
            for leaf in leaves_under(program, _after(path)):
                for array in written.intersection(a.array for a in leaf.op.reads):
                    yield Move("forward", (place_of(program, leaf.path), array))

    def alternatives(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        """Of the last of its block: the block itself."""
        path = resolve(context.program, arguments[0])
        if refusal.code == Code.NO_NEXT:
            for depth in range(len(path) - 1, 0, -1):
                yield Move("reorder", (place_of(context.program, path[:depth]),))
