"""Moves that add idle iterations to a scope, take them away, and guards that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
from dojo_core.moves.extent import LARGEST_SCOPE, OnScope, marked_refusal
from dojo_core.moves.nodes import provenances
from dojo_core.moves.places import Place, leaf_at, leaves_under, place_of, scope_at, scopes
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import MemoryAccess, System, Witness, cell_text, may_leave
from dojo_core.program.integers import Constraint, solve
from dojo_core.program.reaching import accesses_of
from dojo_core.program.tables import bounded
from dojo_core.program.tree import Comparison, Leaf, Node, Op, Path, Program, Scope, splice


def _harmless(program: Program, path: Path, scope: Scope, begin: int) -> Refusal | None:
    """Do the iterations of a scope from ``begin`` on write only what they alone access?"""
    depth = len(path) - 1
    inside = leaves_under(program, path)
    for leaf in inside:
        write = MemoryAccess(leaf, leaf.op.target, "w")
        if not _runs(leaf, depth, begin):
            continue
        array = leaf.op.target.array
        if array in program.interface:
            return Refusal(
                Code.PAD_OUTPUT,
                f"The iterations from {begin} on write {array}, which the caller owns.",
                (leaf.path,),
            )
        for other in accesses_of(program, array):
            if other.kind == "w":
                continue
            witness = _reached(write, other, depth, begin, other.leaf.path[: len(path)] == path)
            if witness is not None:
                return Refusal(
                    Code.PAD_TOUCHES,
                    f"The iterations from {begin} on write {witness.cell}, which others read.",
                    tuple(dict.fromkeys((leaf.path, other.leaf.path))),
                    witness,
                )
    return None


def _runs(leaf: Leaf, depth: int, begin: int) -> bool:
    box = [(0, s.size - 1) for s in leaf.scopes]
    later = Constraint.at_least(Affine.iterator(depth) - begin)
    return solve(box, [later, *map(Constraint.of, leaf.op.guard)]).possible


def _reached(
    write: MemoryAccess, other: MemoryAccess, depth: int, begin: int, inside: bool
) -> Witness | None:
    """A cell that an added iteration writes and another instance, none of the added, reads."""
    system = System()
    w = system.instance(write.leaf)
    r = system.instance(other.leaf)
    system.constraints.append(Constraint.at_least(Affine.iterator(w[depth]) - begin))
    if inside:
        system.constraints.append(Constraint.at_least(-Affine.iterator(r[depth]) + (begin - 1)))
    for a, b in zip(write.element.index, other.element.index, strict=True):
        system.equal(a, w, b, r)
    point = system.solve()
    if point is None:
        return None
    values = system.values(point, w)
    instances = ((write.leaf, values), (other.leaf, system.values(point, r)))
    return Witness(instances, cell_text(write.element, values))


def _outside(program: Program, path: Path, size: int) -> Refusal | None:
    """An access below a scope that leaves its buffer once the scope has ``size`` iterations."""
    for leaf in leaves_under(program, path):
        sizes = [s.size for s in leaf.scopes]
        sizes[len(path) - 1] = size
        for access in (leaf.op.target, *leaf.op.reads):
            dims = [d.size for d in program.buffer_of[access.array].dims]
            for k, name, form, limit in bounded(access, access.index, dims):
                if may_leave(form, limit, sizes, leaf.op.guard):
                    last = form.bounds(sizes)[1]
                    sentence = f"Index {k} of {name} would run to {last}, outside 0 to {limit - 1}."
                    return Refusal(Code.PAD_BOUNDS, sentence, (leaf.path,))
    return None


@register
class PadScope(OnScope[tuple[Place, int, str]]):
    """Add iterations to a scope: with a guard that keeps them idle, or free where they do no harm.

    ``pad_scope S M guard`` or ``pad_scope S M free``: M iterations in all.

    Before::

        54 y[{0}] = x[{0}]

    After ``pad_scope y@0 64 guard``::

        64 y[{0}] = x[{0}] if {0} < 54

    Legal iff
      1. M exceeds the size of S and is below 2^31;
      2. S is unmarked;
      3. free: every index stays in bounds;
      4. free: the added iterations write only what no other iteration reads, and no output.

    Candidates: M = the next multiples of the vector widths and of the sizes that occur in the program.
    """

    name = "pad_scope"
    also = ("loop_padding",)
    parameters = (Parameter("scope", "scope"), Parameter("size", "number"), Parameter("mode", "mode"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, int, str]]:
        program = context.program
        units = {scope.size for _, scope, _ in scopes(program)}
        units |= {d.size for b in program.buffers for d in b.dims}
        for path, scope, _ in scopes(program):
            if scope.mark or scope.size < 2:
                continue
            grid = {-(-scope.size // w) * w for w in context.widths}
            grid |= {u for u in units if scope.size < u <= 2 * scope.size}
            for size in sorted(grid - {scope.size}):
                for mode in ("guard", "free"):
                    yield place_of(program, path), size, mode

    def plan(self, context: Context, arguments: tuple[Place, int, str]) -> Program | Edit | Refusal:
        program = context.program
        place, size, mode = arguments
        path, scope, _ = scope_at(program, place)
        if not scope.size < size <= LARGEST_SCOPE:  # 1
            beyond = "adds none" if size <= scope.size else f"is beyond the limit of {LARGEST_SCOPE}"
            return structural(Code.PAD_SIZE, f"{place} has {scope.size} iterations; {size} {beyond}.", path)
        refusal = marked_refusal(scope, place, path)  # 2
        if refusal is not None:
            return refusal
        depth = len(path) - 1

        def edit() -> Program:
            body = scope.body
            if mode == "guard":
                body = tuple(_guarded(c, Comparison(Affine.iterator(depth), "<", scope.size)) for c in body)
            return program.splice(path, 1, (Scope(size, body, "", next(provenances(context))),))

        if mode == "guard":
            return Edit(edit, path[:1])
        refusal = _outside(program, path, size)  # 3
        if refusal is not None:
            return refusal
        padded = edit()
        return _harmless(padded, path, scope, scope.size) or padded  # 4

    def inverse(self, context: Context, arguments: tuple[Place, int, str], result: Program) -> Move | None:
        path, scope, _ = scope_at(context.program, arguments[0])
        if _unguarded(replace(scope, size=1), len(path) - 1, scope.size) != replace(scope, size=1):
            return None  # a guard that says nothing would go with the added iterations
        return Move("unpad_scope", (arguments[0], scope.size))

    def enablers(
        self, context: Context, arguments: tuple[Place, int, str], refusal: Refusal
    ) -> Iterator[Move]:
        program = context.program
        if refusal.code == Code.PAD_BOUNDS:
            for leaf in (leaf for leaf in program.leaves if leaf.path in refusal.nodes):
                path, _, _ = scope_at(program, arguments[0])
                sizes = [s.size for s in leaf.scopes]
                sizes[len(path) - 1] = arguments[1]
                for access in (leaf.op.target, *leaf.op.reads):
                    buffer = program.buffer_of[access.array]
                    for k, (form, dim) in enumerate(zip(access.index, buffer.dims, strict=True)):
                        if form.bounds(sizes)[1] >= dim.size:
                            yield Move("pad_dim", (buffer.name, k, form.bounds(sizes)[1] + 1))

    def alternatives(
        self, context: Context, arguments: tuple[Place, int, str], refusal: Refusal
    ) -> Iterator[Move]:
        """With a guard, where the added iterations would do harm."""
        if arguments[2] == "free" and refusal.code in (Code.PAD_BOUNDS, Code.PAD_OUTPUT, Code.PAD_TOUCHES):
            yield Move("pad_scope", (*arguments[:2], "guard"))


def _guarded(node: Node, condition: Comparison) -> Node:
    if isinstance(node, Op):
        return replace(node, guard=(*node.guard, condition))
    return Scope(node.size, tuple(_guarded(c, condition) for c in node.body), node.mark, node.provenance)


@register
class UnpadScope(OnScope[tuple[Place, int]]):
    """Leave out the last iterations of a scope, where they do nothing that anybody sees.

    ``unpad_scope S N``: N iterations are left; guards that only kept the others idle go too.

    Before::

        64 y[{0}] = x[{0}] if {0} < 54

    After ``unpad_scope y@0 54``::

        54 y[{0}] = x[{0}]

    Legal iff
      1. 0 < N < the size of S;
      2. S is unmarked;
      3. the iterations from N on are idle, or write only what no other iteration reads, and no output.
    """

    name = "unpad_scope"
    parameters = (Parameter("scope", "scope"), Parameter("size", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, int]]:
        program = context.program
        for path, scope, _ in scopes(program):
            if scope.mark:
                continue
            depth = len(path) - 1
            bounds = {
                c.bound
                for leaf in leaves_under(program, path)
                for c in leaf.op.guard
                if c.relation == "<" and c.form == Affine.iterator(depth)
            }
            for bound in sorted(b for b in bounds if 0 < b < scope.size):
                yield place_of(program, path), bound

    def plan(self, context: Context, arguments: tuple[Place, int]) -> Program | Refusal:
        program = context.program
        place, size = arguments
        path, scope, _ = scope_at(program, place)
        if not 0 < size < scope.size:  # 1
            return structural(
                Code.PAD_SIZE,
                f"{place} has {scope.size} iterations: {size} leaves {'out none' if size else 'none'}.",
                path,
            )
        refusal = marked_refusal(scope, place, path) or _harmless(program, path, scope, size)  # 2, 3
        if refusal is not None:
            return refusal
        body = tuple(_unguarded(c, len(path) - 1, size) for c in scope.body)
        return program.splice(path, 1, (Scope(size, body, "", next(provenances(context))),))

    def inverse(self, context: Context, arguments: tuple[Place, int], result: Program) -> Move | None:
        path, scope, _ = scope_at(context.program, arguments[0])
        size = arguments[1]
        depth = len(path) - 1
        condition = Comparison(Affine.iterator(depth), "<", size)
        under = [leaf.op.guard for leaf in leaves_under(context.program, path)]
        for mode, added in (("guard", (condition,)), ("free", ())):
            if all((*_kept(guard, depth, size), *added) == guard for guard in under):
                return Move("pad_scope", (arguments[0], scope.size, mode))
        return None


def _kept(guard: tuple[Comparison, ...], depth: int, size: int) -> tuple[Comparison, ...]:
    """The guard without what holds anyhow once the scope at ``depth`` has ``size`` iterations."""
    iterator = Affine.iterator(depth)
    return tuple(c for c in guard if not (c.form == iterator and c.relation == "<" and c.bound >= size))


def _unguarded(node: Node, depth: int, size: int) -> Node:
    if isinstance(node, Op):
        guard = _kept(node.guard, depth, size)
        return node if guard == node.guard else replace(node, guard=guard)
    return replace(node, body=tuple(_unguarded(c, depth, size) for c in node.body))


@register
class DropGuard(Transformation[tuple[Place]]):
    """Leave out a guard that always holds.

    ``drop_guard OP``

    Before::

        48 y[{0}] = x[{0}] if {0} < 54

    After ``drop_guard y``::

        48 y[{0}] = x[{0}]

    Legal iff
      1. OP has a guard;
      2. it holds in every iteration.
    """

    name = "drop_guard"
    family = "extent"
    parameters = (Parameter("operation", "op"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        for leaf in context.program.leaves:
            if leaf.op.guard:
                yield (place_of(context.program, leaf.path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        program = context.program
        leaf = leaf_at(program, arguments[0])
        if not leaf.op.guard:  # 1
            return structural(Code.NO_GUARD, f"{arguments[0]} has no guard.", leaf.path)
        box = [(0, s.size - 1) for s in leaf.scopes]
        for comparison in leaf.op.guard:  # 2
            for fails in Constraint.against(comparison):
                solution = solve(box, [fails])
                if solution.possible:
                    where = f" at ({', '.join(map(str, solution.point))})" if solution.point else ""
                    return Refusal(
                        Code.GUARD_HOLDS_NOT,
                        f"The guard {comparison} does not always hold{where}.",
                        (leaf.path,),
                    )
        return program.edit(body=splice(program.body, leaf.path, 1, (replace(leaf.op, guard=()),)))

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        if refusal.code != Code.GUARD_HOLDS_NOT:
            return
        program = context.program
        leaf = leaf_at(program, arguments[0])
        for comparison in leaf.op.guard:
            if comparison.relation == "<" and len(comparison.form.terms) == 1:
                (depth, coefficient) = comparison.form.terms[0]
                if coefficient == 1:
                    yield Move("cut_scope", (place_of(program, leaf.path[: depth + 1]), comparison.bound))
