"""What algebraic rewrites have in common that fetch the data once where the program does so twice.

They are right for any value that the first pass leaves (a mean, a maximum), so they recognise no kernel: what
they add corrects for the difference. They change rounding; the policy ``algebraic`` alone allows them. Their
inverses sum again what an earlier pass keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dojo_core.moves.core import (
    Context,
    Move,
    Parameter,
    Refusal,
    Transformation,
    name_fault,
    structural,
)
from dojo_core.moves.nodes import nest, provenances
from dojo_core.moves.places import Place, fresh_name, leaf_at, place_of, reduction_at, writers
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import MemoryAccess
from dojo_core.program.reaching import Definition, definition, overwritten
from dojo_core.program.tables import Index, Indirect
from dojo_core.program.tree import (
    Access,
    Buffer,
    Dim,
    Leaf,
    Node,
    Number,
    Op,
    Operand,
    Path,
    Program,
    Scope,
    leaves,
    splice,
)

# Finite: of an infinity, a difference or a sum may be no number.
LOWEST = {"f32": Number(-(2 - 2.0**-23) * 2.0**127), "f64": Number(-(2 - 2.0**-52) * 2.0**1023)}


@dataclass(frozen=True)
class _Sum:
    """An accumulation alone in its nest, and where its terms come from."""

    leaf: Leaf
    path: Path  # of the nest
    depth: int  # of its outermost scope
    x: Access  # what varies, as the accumulation would read it
    shift: Access  # what is taken off it, the same throughout the nest
    count: int  # terms


def _alone(program: Program, leaf: Leaf, depth: int) -> bool:
    """Do the scopes from ``depth`` inwards hold this operation only, and no mark?"""
    return all(len(s.body) == 1 and not s.mark for s in leaf.scopes[depth:])


def source(program: Program, leaf: Leaf, access: Access, function: str) -> Definition | Refusal:
    """The instruction ``access = function(...)`` that surely defines a read."""
    reaching = definition(program, MemoryAccess(leaf, access, "r"))
    if reaching is None:
        return Refusal(Code.NOT_ONE_DEFINITION, f"No single write surely defines {access}.", (leaf.path,))
    origin = reaching.write.leaf
    if origin.op.function != function or origin.op.accumulate or origin.op.guard:
        wanted = (
            f"a difference {access.array} = x - u" if function == "-" else f"{access.array} = {function}(…)"
        )
        return structural(Code.OTHER_FORM, f"{access} is not made as {wanted}.", leaf.path, origin.path)
    return reaching


def unchanged(program: Program, definition: Definition, operands: Iterable[Access]) -> Refusal | None:
    """None where what the defining instruction reads is still there at the read, to be read again."""
    for operand in operands:
        witness = overwritten(program, definition, operand)
        if witness is not None:
            return Refusal(
                Code.CHANGED_BETWEEN,
                f"{witness.cell} is written again before it would be read.",
                tuple(dict.fromkeys(leaf.path for leaf, _ in witness.instances)),
                witness,
            )
    return None


class OnePass(Transformation[tuple[Place, str]]):
    family = "algebra"
    parameters = (Parameter("sum", "reduction"), Parameter("name", "name"))
    suffixes: tuple[str, ...]  # of the arrays that it makes: NAME and one of these
    back: str  # its inverse

    def candidates(self, context: Context) -> Iterator[tuple[Place, str]]:
        if context.policy != "algebraic":
            return
        program = context.program
        for leaf in program.leaves:
            if not self.fits(leaf.op):
                continue
            used = [d for form in leaf.op.target.index for d in form.depths]
            first = max(used, default=-1) + 1
            place = place_of(program, leaf.path)
            for depth in range(first, len(leaf.scopes)):
                if _alone(program, leaf, depth):
                    yield Place(place.array, place.number, depth), fresh_name(program, "o")

    def fits(self, op: Op) -> bool:
        raise NotImplementedError

    def places(self, context: Context, arguments: tuple[Place, str]) -> tuple[Path, ...]:
        leaf, depth = reduction_at(context.program, arguments[0])
        return leaf.path, leaf.path[: depth + 1]

    def inverse(self, context: Context, arguments: tuple[Place, str], result: Program) -> Move:
        (term, *_) = leaf_at(context.program, arguments[0]).op.reads
        return Move(self.back, (arguments[1], term.array))

    def sum_at(self, context: Context, arguments: tuple[Place, str]) -> _Sum | Refusal:
        """The conditions that both rewrites share."""
        program = context.program
        place, name = arguments
        leaf, depth = reduction_at(program, place)
        path = leaf.path[: depth + 1]
        if context.policy != "algebraic":  # 1
            return Refusal(Code.POLICY, "Only the policy algebraic lets a sum be rewritten.", (leaf.path,))
        dtypes = {program.buffer_of[a.array].dtype for a in (leaf.op.target, *leaf.op.sources)}
        if not self.fits(leaf.op) or leaf.op.guard or not dtypes <= {"f32", "f64"}:  # 2
            return structural(
                Code.OTHER_FORM, f"{Place(place.array, place.number)} is no such sum.", leaf.path
            )
        outside = all(d < depth for form in leaf.op.target.index for d in form.depths)
        if not outside or not _alone(program, leaf, depth):  # 3
            return structural(
                Code.NOT_ALONE,
                f"The scope at depth {depth} must hold this sum alone, unmarked, into one element.",
                path,
            )
        chain = self.difference(program, leaf)  # 4
        if isinstance(chain, Refusal):
            return chain
        x, shift = chain
        if any(d >= depth for form in shift.index for d in form.depths):  # 5
            return structural(Code.NOT_INVARIANT, f"{shift} changes within the scope at depth {depth}.", path)
        if {program.buffer_of[a.array].dtype for a in (x, shift)} != dtypes:
            return structural(Code.OTHER_FORM, "The arrays have different dtypes.", leaf.path)
        for suffix in self.suffixes:  # 6
            taken = name_fault(program, f"{name}{suffix}")
            if taken is not None:
                return taken
        return _Sum(leaf, path, depth, x, shift, math.prod(s.size for s in leaf.scopes[depth:]))

    def difference(self, program: Program, leaf: Leaf) -> tuple[Access, Access] | Refusal:
        """(x, shift) of the difference behind the sum's terms, as the sum would read them."""
        raise NotImplementedError


def difference_of(program: Program, leaf: Leaf, access: Access) -> tuple[Access, Access] | Refusal:
    """(x, shift) of the difference that an operation reads, to be read there in its place."""
    definition = source(program, leaf, access, "-")
    if isinstance(definition, Refusal):
        return definition
    x, shift = definition.write.leaf.op.operands
    if not isinstance(x, Access) or not isinstance(shift, Access):
        return structural(Code.OTHER_FORM, "The difference is not one of two array elements.", leaf.path)
    return unchanged(program, definition, (x, shift)) or (definition.here(x), definition.here(shift))


class Writer:
    """Makes the arrays and instructions of a rewrite."""

    def __init__(self, context: Context, total: _Sum, name: str) -> None:
        self.fresh = provenances(context)
        self.total, self.name = total, name
        self.dtype = context.program.buffer_of[total.x.array].dtype
        self.buffers: list[Buffer] = []
        scopes = total.leaf.scopes
        self.inside = context.target.temporary(scopes)
        self.outside = context.target.temporary(scopes[: total.depth]) if total.depth else "heap"

    def array(self, suffix: str, inner: bool = False) -> Access:
        """A scalar for each iteration of the scopes around the nest, or around the operation."""
        scopes = self.total.leaf.scopes if inner else self.total.leaf.scopes[: self.total.depth]
        dims = tuple(Dim(s.size, False, next(self.fresh)) for s in scopes)
        name = f"{self.name}{suffix}"
        location = self.inside if inner else self.outside
        self.buffers.append(Buffer(name, self.dtype, dims, location, (name,), next(self.fresh)))
        return Access(name, tuple(Affine.iterator(d) for d in range(len(scopes))))

    def op(self, target: Access, function: str, *operands: Operand, accumulate: str = "") -> Op:
        return Op(target, accumulate, function, operands, provenance=next(self.fresh))

    def nest(self, *body: Node) -> Node:
        """The scopes of the old nest around a new body."""
        nodes = body
        for scope in reversed(self.total.leaf.scopes[self.total.depth :]):
            nodes = (Scope(scope.size, nodes, "", next(self.fresh)),)
        return nodes[0]

    def program(self, program: Program, nodes: tuple[Node, ...]) -> Program:
        widened = replace(program, buffers=(*program.buffers, *self.buffers))
        return widened.splice(self.total.path, 1, nodes)


@dataclass(frozen=True)
class _Expansion:
    """What a one-pass rewrite has put in the place of a sum."""

    path: Path  # of its first node
    scopes: tuple[Scope, ...]  # of the nest in it
    x: Access  # what that goes over
    shift: Access
    target: Access  # of the sum


def _reached(access: Access, pairs: Iterable[tuple[Index, Index]]) -> Access | None:
    """An access in other iterators, where pairs of equal forms, theirs and ours, settle each of its indices.

    Loops may have been split or dimensions merged since, so an index counts as settled where it is a sum of
    multiples of their forms (Gaussian elimination), not of single iterators alone.
    """
    settled: list[tuple[int, Affine, Affine]] = []  # an iterator with what is left of a pair: it leads there

    def reduced(theirs: Affine, ours: Affine) -> tuple[Affine, Affine]:
        for depth, form, image in settled:
            times = theirs.coefficient(depth) // form.coefficient(depth)
            theirs, ours = theirs - form * times, ours - image * times
        return theirs, ours

    for theirs, ours in pairs:
        if isinstance(theirs, Affine) and isinstance(ours, Affine):
            form, image = reduced(theirs, ours)
            if form.terms:
                depth, _ = min(form.terms, key=lambda term: abs(term[1]))
                settled.append((depth, form, image))
    index = []
    for wanted in access.index:
        # implied: what is summed was surely written by that operation, so not through an array
        if isinstance(wanted, Indirect):
            return None
        rest, image = reduced(wanted, Affine())
        if not rest.is_constant:
            return None
        index.append(rest - image)
    return Access(access.array, tuple(index))


Parts = tuple[tuple[Scope, ...], Access, Access, Access]


class TwoPasses(Transformation[tuple[str, str]]):
    """Takes a one-pass rewrite back."""

    family = "algebra"
    parameters = (Parameter("name", "name"), Parameter("array", "buffer"))
    forward: OnePass
    nodes: int  # that the rewrite makes

    def parts(self, made: tuple[Leaf, ...]) -> Parts | None:
        """(scopes, x, shift, target), where these operations look like those that the rewrite makes."""
        raise NotImplementedError

    def kept(self, program: Program, leaf: Leaf) -> tuple[Access, Access] | None:
        """(x, shift) of the difference behind what an operation keeps, as that one would read them."""
        raise NotImplementedError

    def total(self, target: Access, term: Access) -> Op:
        """The sum before the rewrite."""
        raise NotImplementedError

    def expansion(self, program: Program, name: str) -> _Expansion | None:
        """The rewrite whose arrays bear this name; its first operation sets the one with no suffix."""
        operations = writers(program).get(name)
        if operations is None:
            return None
        path = operations[0].path
        parts = self.parts(leaves(program.siblings(path)[path[-1] : path[-1] + self.nodes]))
        return None if parts is None else _Expansion(path, *parts)

    def terms(self, program: Program, expansion: _Expansion, array: str) -> Iterator[Access]:
        """Elements of an array made as what was summed, as the sum would read them."""
        ours = (*expansion.x.index, *expansion.shift.index)
        for leaf in writers(program).get(array, []):
            parts = self.kept(program, leaf)
            if parts is not None and [a.array for a in parts] == [expansion.x.array, expansion.shift.array]:
                theirs = (index for access in parts for index in access.index)
                term = _reached(leaf.op.target, zip(theirs, ours, strict=True))
                if term is not None:
                    yield term

    def candidates(self, context: Context) -> Iterator[tuple[str, str]]:
        if context.policy != "algebraic":
            return
        program = context.program
        for name in writers(program):
            expansion = self.expansion(program, name)
            if expansion is not None:
                for array in writers(program):
                    if any(self.terms(program, expansion, array)):
                        yield name, array

    def plan(self, context: Context, arguments: tuple[str, str]) -> Program | Refusal:
        program = context.program
        name, array = arguments
        expansion = self.expansion(program, name)
        if expansion is None:  # 2
            return structural(Code.OTHER_FORM, f"{name} is not set as {self.forward.name} sets it.")
        if context.policy != "algebraic":  # 1
            return Refusal(
                Code.POLICY, "Only the policy algebraic lets a sum be rewritten.", (expansion.path,)
            )
        terms = list(self.terms(program, expansion, array))
        if not terms:  # 3
            return structural(
                Code.NOT_THE_SAME, f"No write of {array} makes what was summed there.", expansion.path
            )
        made = {f"{name}{suffix}" for suffix in self.forward.suffixes}
        buffers = tuple(b for b in program.buffers if not made.issuperset(b.arrays))
        for term in terms:
            loops = nest(
                [s.size for s in expansion.scopes], self.total(expansion.target, term), provenances(context)
            )
            result = program.edit(splice(program.body, expansion.path, self.nodes, (loops,)), buffers)
            if made & {*result.summary.first_accessed, *result.interface}:  # 2
                return structural(
                    Code.USED_ELSEWHERE, f"An array of {name} is used elsewhere too.", expansion.path
                )
            place = place_of(result, expansion.path)
            if self.forward.plan(replace(context, program=result), (place, name)) == program:  # 4
                return result
        return structural(
            Code.CHANGED_SINCE, f"{name} is no longer as {self.forward.name} makes it.", expansion.path
        )

    def places(self, context: Context, arguments: tuple[str, str]) -> tuple[Path, ...]:
        expansion = self.expansion(context.program, arguments[0])
        if expansion is None:
            return ()
        *above, first = expansion.path
        operations = writers(context.program).get(arguments[1], [])
        return (*((*above, first + n) for n in range(self.nodes)), *(leaf.path for leaf in operations))

    def inverse(self, context: Context, arguments: tuple[str, str], result: Program) -> Move:
        expansion = self.expansion(context.program, arguments[0])
        assert expansion is not None
        return Move(self.forward.name, (place_of(result, expansion.path), arguments[0]))
