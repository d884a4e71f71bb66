"""Moves on the extent of scopes: cut and wrap, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dojo_core.moves.core import (
    Arguments,
    Context,
    Edit,
    Move,
    Parameter,
    Refusal,
    Transformation,
    register,
    structural,
)
from dojo_core.moves.nodes import provenances, renewed, shifted
from dojo_core.moves.places import Place, leaves_under, place_of, resolve, scope_at, scopes
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import accesses
from dojo_core.program.must_writes import coverage, unset
from dojo_core.program.tree import Leaf, Node, Path, Program, Scope, substitute

LARGEST_SCOPE = 2**31 - 1


def marked_refusal(scope: Scope, place: Place, path: Path) -> Refusal | None:
    if scope.mark:
        return structural(Code.MARKED, f"{place} is marked: clear its mark first.", path)
    return None


class OnScope(Transformation[Arguments]):
    family = "extent"


@register
class CutScope(OnScope[tuple[Place, int]]):
    """Cut the iterations of a scope in two: [0,N) becomes [0,M), then [M,N) (index-set splitting).

    ``cut_scope S M``

    Before::

        54 y[{0}] = x[{0}]

    After ``cut_scope y@0 48``::

        48 y[{0}] = x[{0}]
        6 y[{0}+48] = x[{0}+48]

    Legal iff
      1. 0 < M < N, the size of S;
      2. S is unmarked;
      3. a buffer that lived in one iteration of S still reaches all who use it (V2).

    Candidates: M = 1, N-1, and the largest multiples of the vector widths, and of the sizes that occur in
    the program, where those do not divide N.
    """

    name = "cut_scope"
    also = ("index_set_splitting", "peel")
    parameters = (Parameter("scope", "scope"), Parameter("at", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, int]]:
        units = {scope.size for _, scope, _ in scopes(context.program)}
        units |= context.widths
        for path, scope, _ in scopes(context.program):
            if scope.mark or scope.size < 2:
                continue
            place = place_of(context.program, path)
            grid = {1, scope.size - 1}
            grid |= {scope.size // u * u for u in units if 1 < u < scope.size and scope.size % u}
            for at in sorted(grid):
                yield place, at

    def plan(self, context: Context, arguments: tuple[Place, int]) -> Edit | Refusal:
        place, at = arguments
        path, scope, _ = scope_at(context.program, place)
        if not 0 < at < scope.size:  # 1
            return structural(
                Code.CUT_POINT, f"{at} does not lie inside the {scope.size} iterations of {place}.", path
            )
        refusal = marked_refusal(scope, place, path)  # 2
        if refusal is not None:
            return refusal
        depth = len(path) - 1

        def edit() -> Program:
            fresh = provenances(context)
            first = Scope(at, scope.body, "", next(fresh))
            later = {depth: Affine.iterator(depth) + at}
            provenance = next(fresh)
            body = tuple(renewed(substitute(c, later), fresh) for c in scope.body)
            return context.program.splice(path, 1, (first, Scope(scope.size - at, body, "", provenance)))

        return Edit(edit, path[:1])

    def inverse(self, context: Context, arguments: tuple[Place, int], result: Program) -> Move:
        path, _, _ = scope_at(context.program, arguments[0])
        return Move("uncut_scope", (place_of(result, path),))


@register
class UncutScope(OnScope[tuple[Place]]):
    """Make one scope of two that follow each other and do the same, each for its share of the iterations.

    ``uncut_scope S``: S and its next sibling.

    Before::

        48 y[{0}] = x[{0}]
        6 y[{0}+48] = x[{0}+48]

    After ``uncut_scope y@0``::

        54 y[{0}] = x[{0}]

    Legal iff
      1. the next sibling of S is a scope, and both are unmarked;
      2. its body is that of S with the size of S added to the iterator.
    """

    name = "uncut_scope"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        program = context.program
        for path, scope, _ in scopes(program):
            siblings = program.siblings(path)
            after = siblings[path[-1] + 1] if path[-1] + 1 < len(siblings) else None
            if isinstance(after, Scope) and _continues(scope, after, len(path) - 1):
                yield (place_of(program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        siblings = program.siblings(path)
        after = siblings[path[-1] + 1] if path[-1] + 1 < len(siblings) else None
        if not isinstance(after, Scope):  # 1
            return structural(Code.NO_PARTNER, f"No scope follows {arguments[0]}.", path)
        partner = (*path[:-1], path[-1] + 1)
        if scope.mark or after.mark:
            marked = tuple(p for p, s in ((path, scope), (partner, after)) if s.mark)
            return structural(Code.MARKED, "Both scopes must be unmarked to become one.", *marked)
        if not _continues(scope, after, len(path) - 1):  # 2
            return structural(
                Code.NOT_CONTINUED,
                f"The next scope does not go on where {arguments[0]} ends: it must do the same, "
                f"with {scope.size} added to the iterator.",
                path,
                partner,
            )
        whole = Scope(scope.size + after.size, scope.body, "", next(provenances(context)))
        return program.splice(path, 2, (whole,))

    def places(self, context: Context, arguments: tuple[Place]) -> tuple[Path, ...]:
        path, _, _ = scope_at(context.program, arguments[0])
        return path, (*path[:-1], path[-1] + 1)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        _, scope, _ = scope_at(context.program, arguments[0])
        return Move("cut_scope", (arguments[0], scope.size))


def _continues(first: Scope, second: Scope, depth: int) -> bool:
    # implied: the move itself asks for marks first; this is for the list
    if first.mark or second.mark:
        return False
    later = {depth: Affine.iterator(depth) + first.size}
    return tuple(substitute(c, later) for c in first.body) == second.body


# ---------------------------------------------------------------------------- wrap and unwrap


def _not_repeatable(program: Program, inside: Sequence[Leaf]) -> Refusal | None:
    """Would doing a block again change anything? It must first assign what it both reads and writes."""
    accessed = [t for leaf in inside for t in accesses(leaf)]
    written = {t.element.array for t in accessed if t.kind != "r"}
    for access in accessed:
        if access.kind == "w" or access.element.array not in written:
            continue
        if coverage(access, accessed) is None:
            return Refusal(
                Code.NOT_REPEATABLE,
                f"{access.element} holds a value from before: doing this again would use the new one.",
                (access.leaf.path,),
                unset(access, accessed),
            )
    return None


@register
class Wrap(Transformation[tuple[Place, int]]):
    """Do an operation or scope several times over, where that changes nothing.

    ``wrap X N``: a step towards joining it with a scope of N iterations that needs its values.

    Before::

        r[] = 1 / w[]
        8 y[{0}] = x[{0}]*r[]

    After ``wrap r 8``::

        8 r[] = 1 / w[]
        8 y[{0}] = x[{0}]*r[]

    Legal iff
      1. N is positive and below 2^31;
      2. what X both reads and writes it first assigns (where N > 1).

    Candidates: operations, with N = the sizes of the scopes beside them.
    """

    name = "wrap"
    family = "extent"
    parameters = (Parameter("node", "node"), Parameter("size", "number"))

    def candidates(self, context: Context) -> Iterator[tuple[Place, int]]:
        program = context.program

        def below(body: tuple[Node, ...], path: Path) -> Iterator[tuple[Place, int]]:
            for number, node in enumerate(body):
                if isinstance(node, Scope):
                    yield from below(node.body, (*path, number))
                    continue
                beside = [body[k] for k in (number - 1, number + 1) if 0 <= k < len(body)]
                for size in sorted({n.size for n in beside if isinstance(n, Scope)}):
                    yield place_of(program, (*path, number)), size

        yield from below(program.body, ())

    def plan(self, context: Context, arguments: tuple[Place, int]) -> Program | Refusal:
        program = context.program
        place, size = arguments
        path = resolve(program, place)
        if not 0 < size <= LARGEST_SCOPE:  # 1
            return structural(Code.WRAP_SIZE, f"{size} is no number of iterations.", path)
        if size > 1:  # 2
            refusal = _not_repeatable(program, leaves_under(program, path))
            if refusal is not None:
                return refusal
        lowered = shifted(program.node(path), len(path) - 1, 1)
        return program.splice(path, 1, (Scope(size, (lowered,), "", next(provenances(context))),))

    def inverse(self, context: Context, arguments: tuple[Place, int], result: Program) -> Move:
        return Move("unwrap", (place_of(result, resolve(context.program, arguments[0])),))


@register
class Unwrap(OnScope[tuple[Place]]):
    """Take a scope away whose iterations all do the same, or that has only one.

    ``unwrap S``

    Before::

        1 8 y[{0},{1}] = x[{0},{1}]

    After ``unwrap y@0``::

        8 y[0,{0}] = x[0,{0}]

    Legal iff
      1. S is unmarked;
      2. it has one iteration; or nothing in it uses its iterator, and what it both reads and writes it
         first assigns.
    """

    name = "unwrap"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        program = context.program
        for path, scope, _ in scopes(program):
            if not scope.mark and (scope.size == 1 or not _uses(program, path)):
                yield (place_of(program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        refusal = marked_refusal(scope, arguments[0], path)  # 1
        if refusal is not None:
            return refusal
        if scope.size > 1:  # 2
            user = _uses(program, path)
            if user is not None:
                return structural(Code.ITERATOR_USED, f"The iterations of {arguments[0]} differ.", user.path)
            refusal = _not_repeatable(program, leaves_under(program, path))
            if refusal is not None:
                return refusal
        depth = len(path) - 1
        raised = tuple(shifted(substitute(c, {depth: Affine()}), depth + 1, -1) for c in scope.body)
        return program.splice(path, 1, raised)

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move | None:
        path, scope, _ = scope_at(context.program, arguments[0])
        if len(scope.body) > 1 or _uses(context.program, path, prefetches=True) is not None:
            return None  # several nodes, or an iterator whose only value now stands in the text
        return Move("wrap", (place_of(result, path), scope.size))


def _uses(program: Program, path: Path, prefetches: bool = False) -> Leaf | None:
    """An operation below that uses the iterator of the scope; prefetches change nothing."""
    depth = len(path) - 1
    for leaf in leaves_under(program, path):
        forms = [f for access in (leaf.op.target, *leaf.op.reads) for f in access.index]
        if prefetches:
            forms += [f for access in leaf.op.prefetches for f in access.index]
        forms += [o for o in leaf.op.operands if isinstance(o, Affine)]
        forms += [c.form for c in leaf.op.guard]
        if any(f.uses(depth) for f in forms):
            return leaf
    return None
