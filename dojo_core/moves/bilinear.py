"""A small bilinear program by an algorithm with fewer products: Winograd's filters, Strassen's product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from dojo_core.moves.algorithms import (
    MOST_GROWTH,
    Algorithm,
    AlgorithmError,
    Cell,
    Matrix,
    Tensor,
    algorithm,
    difference,
    names,
)
from dojo_core.moves.core import (
    Context,
    Parameter,
    Refusal,
    Transformation,
    name_fault,
    register,
    structural,
)
from dojo_core.moves.nodes import nest, provenances
from dojo_core.moves.places import Place, fresh_name, leaves_under, place_of, reduction_at
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Buffer, Dim, Leaf, Node, Number, Op, Path, Program, Scope, splice

MOST_ITERATIONS = 2048  # of the scopes of a small program
SUFFIXES = {"left": "a", "right": "b", "result": "m"}  # of the arrays that it makes


@register
class Bilinear(Transformation[tuple[Place, str, str]]):
    """Compute a small bilinear program by an algorithm with fewer products, given by three constant matrices.

    ``bilinear OP@S ALGORITHM NAME``: S is the outermost scope of the small program, a sum of products such
    as a convolution or a product of matrices. It becomes sums of its left operand's elements, sums of its
    right one's, their products, and sums of these. An algorithm for one dimension is nested where there are
    more.

    Before::

        16 y[{0}] = 0
        8 2 3 y[{0}*2+{1}] += x[{0}*2+{1}+{2}]*w[{2}]

    After ``bilinear y#1@1 winograd_2_3 u``::

        ub f32 [4] heap
        ua f32 [4, 8] heap
        um f32 [4, 8] heap
        16 y[{0}] = 0
        ub[0] = w[0]
        ub[1] = w[0]*0.5
        ub[1] += w[1]*0.5
        ub[1] += w[2]*0.5
        ub[2] = w[0]*0.5
        ub[2] += w[1]*(-0.5)
        ub[2] += w[2]*0.5
        ub[3] = w[2]
        8 ua[0,{0}] = x[{0}*2]
        | ua[0,{0}] += x[{0}*2+2]*(-1)
        | ua[1,{0}] = x[{0}*2+1]
        | ua[1,{0}] += x[{0}*2+2]
        | ua[2,{0}] = x[{0}*2+2]
        | ua[2,{0}] += x[{0}*2+1]*(-1)
        | ua[3,{0}] = x[{0}*2+3]
        | ua[3,{0}] += x[{0}*2+1]*(-1)
        4 8 um[{0},{1}] = 0
        4 8 um[{0},{1}] += ua[{0},{1}]*ub[{0}]
        8 y[{0}*2] += um[0,{0}]
        | y[{0}*2] += um[1,{0}]
        | y[{0}*2] += um[2,{0}]
        | y[{0}*2+1] += um[1,{0}]
        | y[{0}*2+1] += um[2,{0}]*(-1)
        | y[{0}*2+1] += um[3,{0}]

    What is made of an operand stands in no more of the scopes around than the operand goes along, so that
    constant weights are worked out once.

    Promises each result as exact as the sum of products would be if each element of the operands were off by
    a few roundings of the largest one: ALGORITHM's growth, at most 32. So a small result beside large
    elements may lose all its digits. Promises nothing beside an infinity or NaN.

    Legal iff
      1. the policy is algebraic;
      2. OP adds up products of elements of two arrays, in f32 or f64, unguarded, with affine indices;
      3. the scopes from S inwards hold OP alone, unmarked, and not more than 2048 iterations;
      4. each index of the result goes along one of them at most;
      5. ALGORITHM is there, and its matrices have the small program's shapes, once or nested;
      6. it computes the same: the tensors are equal, in fractions;
      7. its growth is at most 32;
      8. no operation in the scopes that an operand's sums are taken out of writes that operand;
      9. NAME with each of its endings is new.
    """

    name = "bilinear"
    also = ("winograd", "strassen")
    family = "algebra"
    rewrites = "sum of products"
    worst_inputs = (
        "outlier first",
        "outlier last",
        "outlier in the middle",
        "large mean",
        "rising",
        "constant",
        "zeros",
    )
    parameters = (
        Parameter("sum", "reduction"),
        Parameter("algorithm", "algorithm"),
        Parameter("name", "name"),
    )

    def candidates(self, context: Context) -> Iterator[tuple[Place, str, str]]:
        if context.policy != "algebraic":
            return
        program = context.program
        for leaf in program.leaves:
            if not is_product_sum(program, leaf):
                continue
            place = place_of(program, leaf.path)
            for depth in range(_alone_from(leaf), len(leaf.scopes)):
                sides = _sides(program, leaf, depth)
                if isinstance(sides, Refusal):
                    continue
                for name in names():
                    if _fitting(sides, name) is not None:
                        yield Place(place.array, place.number, depth), name, fresh_name(program, "u")

    def plan(self, context: Context, arguments: tuple[Place, str, str]) -> Program | Refusal:
        program = context.program
        place, chosen, name = arguments
        leaf, depth = reduction_at(program, place)
        path = leaf.path[: depth + 1]
        if context.policy != "algebraic":  # 1
            return Refusal(Code.POLICY, "Only the policy algebraic lets a sum be rewritten.", (leaf.path,))
        if not is_product_sum(program, leaf):  # 2
            return structural(
                Code.OTHER_FORM,
                f"{Place(place.array, place.number)} is no sum of products of two arrays in f32 or f64.",
                leaf.path,
            )
        if depth < _alone_from(leaf):  # 3
            return structural(
                Code.NOT_ALONE,
                f"The scopes from depth {depth} on must hold this sum alone, unmarked.",
                path,
            )
        sides = _sides(program, leaf, depth)
        if isinstance(sides, Refusal):  # 3, 4
            return sides
        try:
            found = _fitting(sides, chosen)  # 5
        except AlgorithmError as fault:
            return structural(Code.NO_ALGORITHM, str(fault), path)
        if found is None:
            shapes = ", ".join(
                f"{n} {'x'.join(map(str, s.shape))}" for n, s in zip(SUFFIXES, sides, strict=True)
            )
            return structural(
                Code.OTHER_SHAPE, f"{chosen} is not of the small program's shapes, which are {shapes}.", path
            )
        wrong = difference(found.algorithm, found.times, _tensor(leaf, depth, found.sides))  # 6
        if wrong:
            return Refusal(Code.NOT_THE_SAME, wrong, (path,))
        growth = found.algorithm.growth(found.times)
        if growth > MOST_GROWTH:  # 7
            return Refusal(
                Code.UNSTABLE,
                f"{chosen} loses too much: its roundings are {growth:.0f} times those of the sum, and judges "
                f"allow {MOST_GROWTH}. Take points nearer to 0 and to each other, or a smaller algorithm.",
                (path,),
            )
        return _Rewrite(context, leaf, depth, found, name).program()

    def places(self, context: Context, arguments: tuple[Place, str, str]) -> tuple[Path, ...]:
        leaf, depth = reduction_at(context.program, arguments[0])
        return leaf.path, leaf.path[: depth + 1]


def is_product_sum(program: Program, leaf: Leaf) -> bool:
    """Does an operation add up products of elements of two arrays, in f32 or f64, all of one dtype?"""
    op = leaf.op
    return (
        op.accumulate == "+"
        and op.function == "*"
        and not op.guard
        and not op.indirect
        and len({access.array for access in op.elements}) == 3
        and {program.buffer_of[access.array].dtype for access in op.elements} in ({"f32"}, {"f64"})
    )


def _alone_from(leaf: Leaf) -> int:
    """The depth from which on each scope holds one thing alone, unmarked."""
    depth = len(leaf.scopes)
    while depth and len(leaf.scopes[depth - 1].body) == 1 and not leaf.scopes[depth - 1].mark:
        depth -= 1
    return depth


@dataclass(frozen=True)
class _Side:
    """An operand or the result as the small program sees it: the cells that its iterators reach.

    ``dims`` are the dimensions that it moves along, ``lows`` their first cells beside what the scopes around
    say, ``inner`` the iterators' part of each."""

    access: Access
    depth: int
    dims: tuple[int, ...]
    lows: tuple[int, ...]
    shape: Cell
    inner: tuple[Affine, ...]

    def cell(self, iterators: Sequence[int]) -> Cell:
        """Where an iteration of the small program is, ``iterators`` those of all scopes."""
        return tuple(form.value(iterators) - low for form, low in zip(self.inner, self.lows, strict=True))

    def at(self, cells: Sequence[Affine], around: dict[int, Affine]) -> Access:
        """The element of some cells, where the iterators of the scopes around are called so."""
        index = []
        for number, form in enumerate(map(affine, self.access.index)):
            outer = _part(form, self.depth, False).substitute(around)
            if number in self.dims:
                k = self.dims.index(number)
                outer = outer + cells[k] + self.lows[k]
            index.append(outer)
        return Access(self.access.array, tuple(index))

    def outer(self) -> set[int]:
        """The scopes around the small program that it goes along."""
        return {d for form in map(affine, self.access.index) for d in form.depths if d < self.depth}


def _part(form: Affine, depth: int, inner: bool) -> Affine:
    """A form's part in iterators from a depth on, without the constant, or the rest of it."""
    terms = tuple((d, c) for d, c in form.terms if (d >= depth) == inner)
    return Affine(terms, 0 if inner else form.const)


def _side(leaf: Leaf, depth: int, access: Access) -> _Side:
    sizes = [scope.size for scope in leaf.scopes]
    forms = [_part(form, depth, True) for form in map(affine, access.index)]
    dims = tuple(k for k, form in enumerate(forms) if form.terms)
    inner = tuple(forms[k] for k in dims)
    bounds = [form.bounds(sizes) for form in inner]
    return _Side(
        access,
        depth,
        dims,
        tuple(low for low, _ in bounds),
        tuple(high - low + 1 for low, high in bounds),
        inner,
    )


Sides = tuple[_Side, _Side, _Side]


def _sides(program: Program, leaf: Leaf, depth: int) -> Sides | Refusal:
    """The operands and the result of the small program; conditions 3 and 4."""
    iterations = 1
    for scope in leaf.scopes[depth:]:
        iterations *= scope.size
    path = leaf.path[: depth + 1]
    if iterations > MOST_ITERATIONS:  # 3
        return structural(
            Code.TOO_LARGE,
            f"A small program has at most {MOST_ITERATIONS} iterations, and this has {iterations}: "
            "split its scopes.",
            path,
        )
    left, right = leaf.op.sources
    target = _side(leaf, depth, leaf.op.target)
    used = Counter(d for form in target.inner for d in form.depths)
    single = all(len(form.terms) == 1 and form.terms[0][1] == 1 for form in target.inner)
    if not single or any(count > 1 for count in used.values()):  # 4
        return structural(
            Code.OTHER_FORM,
            f"An index of {leaf.op.target} is more than one iterator of the small program.",
            path,
        )
    return _side(leaf, depth, left), _side(leaf, depth, right), target


@dataclass(frozen=True)
class _Found:
    """An algorithm nested so often, whose shapes are those of the sides."""

    algorithm: Algorithm
    times: int
    sides: Sides


def _fitting(sides: Sides, name: str) -> _Found | None:
    """The algorithm, where its shapes are the small program's, whose operands may be written in either order.
    Raises AlgorithmError."""
    chosen = algorithm(name)
    left, right, target = sides
    for each in ((left, right, target), (right, left, target)):
        times = chosen.nested(*(side.shape for side in each))
        if times:
            return _Found(chosen, times, each)
    return None


def _tensor(leaf: Leaf, depth: int, sides: Sides) -> Tensor:
    """What the small program computes."""
    left, right, target = sides
    total: Tensor = {}
    around = [0] * depth
    for inside in product(*(range(scope.size) for scope in leaf.scopes[depth:])):
        iterators = [*around, *inside]
        key = target.cell(iterators), left.cell(iterators), right.cell(iterators)
        total[key] = total.get(key, Fraction(0)) + 1
    return total


class _Rewrite:
    """Makes the nests and arrays of the rewrite.

    ``first`` is the depth from which on scopes hold the sum alone: those before it, which it shares, stay.
    """

    def __init__(self, context: Context, leaf: Leaf, depth: int, found: _Found, name: str) -> None:
        self.context, self.leaf, self.depth, self.name = context, leaf, depth, name
        self.algorithm, self.times = found.algorithm, found.times
        self.left, self.right, self.target = found.sides
        self.first = min(_alone_from(leaf), depth)
        self.dtype = context.program.buffer_of[leaf.op.target.array].dtype
        self.fresh = provenances(context)
        self.buffers: list[Buffer] = []

    def program(self) -> Program | Refusal:
        """The program after, or the refusal of conditions 8 and 9."""
        program, path = self.context.program, self.leaf.path
        used = [self.target.outer(), self.left.outer(), self.right.outer()]
        places = [1 + max((d for d in each if d < self.first), default=-1) for each in used[1:]]
        for side, place in zip((self.left, self.right), places, strict=True):  # 8
            moved = place < self.first
            inside = leaves_under(program, path[: place + 1]) if moved else []
            if any(other.op.target.array == side.access.array for other in inside):
                return Refusal(
                    Code.WRITTEN_INSIDE,
                    f"The scope at depth {place} writes {side.access.array}.",
                    (path[: place + 1],),
                )
        for suffix in SUFFIXES.values():  # 9
            for array in (f"{self.name}{suffix}", *(f"{self.name}{suffix}{n}" for n in range(1, self.times))):
                taken = name_fault(program, array)
                if taken is not None:
                    return taken
        nodes: dict[int, list[Node]] = {}  # by how many of the shared scopes they stand in
        for side, matrix, key, place in zip(
            (self.right, self.left),
            (self.algorithm.right, self.algorithm.left),
            ("right", "left"),
            places[::-1],
            strict=True,
        ):
            nodes.setdefault(place, []).extend(self._sums(side, matrix, SUFFIXES[key], place))
        here = [*nodes.pop(self.first, []), *self._products(places), *self._results()]
        body = splice(program.body, path[: self.first + 1], 1, tuple(here))
        for place in sorted(nodes, reverse=True):
            body = splice(body, path[: place + 1], 0, tuple(nodes[place]))
        return program.edit(body, (*program.buffers, *self.buffers))

    def _locals(self, used: set[int], place: int) -> list[int]:
        """The scopes that a nest has of those around the small program, where it stands in ``place``
        others."""
        return [d for d in range(place, self.depth) if d in used]

    def _array(self, suffix: str, place: int, sizes: Sequence[int]) -> str:
        """A new array, with a dimension that is not materialised for each scope around it."""
        above = self.leaf.scopes[:place]
        dims = [
            *(Dim(scope.size, False, next(self.fresh)) for scope in above),
            *(Dim(size, True, next(self.fresh)) for size in sizes),
        ]
        location = self.context.target.temporary(above) if place else "heap"
        name = f"{self.name}{suffix}"
        self.buffers.append(Buffer(name, self.dtype, tuple(dims), location, (name,), next(self.fresh)))
        return name

    def _combination(self, target: Access, terms: list[tuple[Fraction, Access]], onto: bool) -> Iterator[Op]:
        """Operations that set an element to a sum of multiples, or add it ``onto`` the element."""
        if not onto:
            terms = sorted(terms, key=lambda term: term[0] != 1)  # what is only copied first
            if not terms:
                yield Op(target, "", "", (Number(0),), provenance=next(self.fresh))
        for number, (factor, source) in enumerate(terms):
            sign = "+" if onto or number else ""
            if factor == 1:
                yield Op(target, sign, "", (source,), provenance=next(self.fresh))
            else:
                value = int(factor) if factor.denominator == 1 else float(factor)
                yield Op(target, sign, "*", (source, Number(value)), provenance=next(self.fresh))

    def _nest(self, sizes: Sequence[int], ops: Sequence[Op]) -> tuple[Node, ...]:
        """Scopes around operations; without scopes, these alone."""
        if not sizes:
            return tuple(ops)
        inner = Scope(sizes[-1], tuple(ops), "", next(self.fresh))
        return (nest(sizes[:-1], inner, self.fresh),)

    def _sums(self, side: _Side, matrix: Matrix, suffix: str, place: int) -> Iterator[Node]:
        """The sums of an operand's cells, one dimension of the algorithm after the other."""
        scopes = self.leaf.scopes
        local = self._locals(side.outer(), place)
        around = {d: Affine.iterator(d if d < place else place + local.index(d)) for d in side.outer()}
        outside = [Affine.iterator(d) for d in range(place)]
        mine = [Affine.iterator(place + n) for n in range(len(local))]
        at, rank, products = place + len(local), len(matrix.shape), self.algorithm.products
        before = ""
        for step in range(self.times):
            left = side.shape[(step + 1) * rank :]  # cells of later steps
            summed = [Affine.iterator(at + n) for n in range(step)]
            later = [Affine.iterator(at + step + n) for n in range(len(left))]
            last = step == self.times - 1
            array = self._array(
                suffix if last else f"{suffix}{step + 1}",
                place,
                [*[products] * (step + 1), *left, *(scopes[d].size for d in local)],
            )
            ops: list[Op] = []
            for row, factors in enumerate(matrix.rows):
                terms = []
                for factor, cell in zip(factors, matrix.cells, strict=True):
                    fixed = [Affine((), c) for c in cell]
                    if factor and step == 0:
                        terms.append((factor, side.at([*fixed, *later], around)))
                    elif factor:
                        terms.append((factor, Access(before, (*outside, *summed, *fixed, *later, *mine))))
                target = Access(array, (*outside, *summed, Affine((), row), *later, *mine))
                ops += self._combination(target, terms, False)
            yield from self._nest([*(scopes[d].size for d in local), *[products] * step, *left], ops)
            before = array

    def _products(self, places: Sequence[int]) -> Iterator[Node]:
        """The products of the two operands' sums, added up over what the result does not go along."""
        scopes, products, times = self.leaf.scopes, self.algorithm.products, self.times
        kept = self._locals(self.target.outer(), self.first)
        array = self._array(
            SUFFIXES["result"], self.first, [*[products] * times, *(scopes[d].size for d in kept)]
        )
        shared = [Affine.iterator(d) for d in range(self.first)]
        rows = [Affine.iterator(self.first + n) for n in range(times)]
        first = self.first + times

        def element(name: str, place: int, local: list[int], names: list[int]) -> Access:
            outside = shared[:place]
            inside = [Affine.iterator(d if d < self.first else first + names.index(d)) for d in local]
            return Access(name, (*outside, *rows, *inside))

        start = Op(element(array, self.first, kept, kept), "", "", (Number(0),), provenance=next(self.fresh))
        yield from self._nest([*[products] * times, *(scopes[d].size for d in kept)], [start])
        every = list(range(self.first, self.depth))
        operands = [
            element(f"{self.name}{SUFFIXES[key]}", place, self._locals(side.outer(), place), every)
            for key, side, place in zip(("left", "right"), (self.left, self.right), places, strict=True)
        ]
        add = Op(
            element(array, self.first, kept, every), "+", "*", tuple(operands), provenance=next(self.fresh)
        )
        yield from self._nest([*[products] * times, *(scopes[d].size for d in every)], [add])

    def _results(self) -> Iterator[Node]:
        """The results, added up from the products, one dimension of the algorithm after the other."""
        scopes, side, matrix = self.leaf.scopes, self.target, self.algorithm.result
        local = self._locals(side.outer(), self.first)
        around = {
            d: Affine.iterator(d if d < self.first else self.first + local.index(d)) for d in side.outer()
        }
        outside = [Affine.iterator(d) for d in range(self.first)]
        mine = [Affine.iterator(self.first + n) for n in range(len(local))]
        at, rank, products = self.first + len(local), len(matrix.shape), self.algorithm.products
        before, suffix = f"{self.name}{SUFFIXES['result']}", SUFFIXES["result"]
        for step in range(self.times):
            made = side.shape[: step * rank]  # cells of steps before
            left = self.times - 1 - step
            done = [Affine.iterator(at + n) for n in range(len(made))]
            later = [Affine.iterator(at + len(made) + n) for n in range(left)]
            array = ""
            if left:
                sizes = [*made, *matrix.shape, *[products] * left, *(scopes[d].size for d in local)]
                array = self._array(f"{suffix}{step + 1}", self.first, sizes)
            ops: list[Op] = []
            for k, cell in enumerate(matrix.cells):
                fixed = [Affine((), c) for c in cell]
                terms = [
                    (factors[k], Access(before, (*outside, *done, Affine((), row), *later, *mine)))
                    for row, factors in enumerate(matrix.rows)
                    if factors[k]
                ]
                if left:
                    target = Access(array, (*outside, *done, *fixed, *later, *mine))
                else:
                    target = side.at([*done, *fixed], around)
                ops += self._combination(target, terms, not left)
            yield from self._nest([*(scopes[d].size for d in local), *made, *[products] * left], ops)
            before = array
