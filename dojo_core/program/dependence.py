"""The one dependence analysis: when do two instances of operations access the same cell?

An *instance* is an operation with the values of its iterators. Every legality question of every move
comes down to: can two instances in a given relative order access one cell? Indices are affine over
boxes, so the question is an integer system that ``integers.solve`` decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dojo_core.program.affine import Affine
from dojo_core.program.dtypes import COMPARISONS, FLOATS, STORAGE_FLOATS, dtype_fault, extremes
from dojo_core.program.functions import FUNCTIONS, LARGEST
from dojo_core.program.integers import Constraint, solve
from dojo_core.program.tables import Index, IndexArray, Indirect
from dojo_core.program.tree import DTYPE_BYTES, Access, Comparison, Leaf, Op, Program

POLICIES = ("strict", "reassoc", "algebraic", "tf32")
"""``strict``: the order as written; ``reassoc``: sums may be regrouped; and beside that ``algebraic``:
formulas may be rewritten, or ``tf32``: the factors of sums of products may be rounded to TF32."""


class MemoryAccess(NamedTuple):
    """An operation's access to an element of an array; kind is ``r`` read, ``w`` write, ``a`` accumulation
    (both)."""

    leaf: Leaf
    element: Access
    kind: str


class Order(NamedTuple):
    """A relation between the iterators of two instances at one depth: ``<``, ``>`` or ``=``."""

    depth: int
    relation: str


@dataclass(frozen=True)
class Witness:
    """Two (or three) instances and the cell on which they conflict; one: what it reads is not surely set."""

    instances: tuple[tuple[Leaf, tuple[int, ...]], ...]
    cell: str

    def __str__(self) -> str:
        from dojo_core.program.printing import op_text

        shown = []
        for leaf, values in self.instances:
            known = values and min(values) >= 0  # the solver may know that there is a point, and not which
            at = f" at ({', '.join(map(str, values))})" if known else ""
            shown.append(f"'{op_text(leaf.op)}'{at}")
        if len(shown) == 1:
            return f"{shown[0]} reads {self.cell}"
        return (
            f"{' and then '.join(shown)}: all touch {self.cell}"
            if len(shown) > 2
            else f"{' and '.join(shown)} both touch {self.cell}"
        )


def accesses(leaf: Leaf) -> list[MemoryAccess]:
    """The accesses of an operation: all that it reads first, the target last (the order of execution)."""
    reads = [MemoryAccess(leaf, o, "r") for o in leaf.op.reads]
    return [*reads, MemoryAccess(leaf, leaf.op.target, "a" if leaf.op.accumulate else "w")]


def common_depth(a: Leaf, b: Leaf) -> int:
    """How many scopes two operations share."""
    depth = 0
    limit = min(len(a.scopes), len(b.scopes))
    while depth < limit and a.path[depth] == b.path[depth]:
        depth += 1
    return depth


def may_regroup(program: Program, leaf: Leaf, policy: str) -> bool:
    """May the terms of this accumulation be regrouped? (docs/promises.md: no order changes an extreme)"""
    if policy != "strict" or leaf.op.accumulate in ("max", "min"):
        return True
    return not program.buffer_of[leaf.op.target.array].dtype.startswith(("f", "bf"))


def stricter(policy: str) -> tuple[str, ...]:
    """The policies that allow no more than this one, itself among them."""
    return tuple(p for p in POLICIES[: POLICIES.index(policy) + 1] if (policy, p) != ("tf32", "algebraic"))


def rounds_factors(program: Program, op: Op) -> bool:
    """Is an operation a sum of products of elements of two arrays in f32, whose factors the policy ``tf32``
    lets be rounded?"""
    return (
        (op.accumulate, op.function) == ("+", "*")
        and len({read.array for read in op.sources}) == 2
        and {program.buffer_of[access.array].dtype for access in op.elements} == {"f32"}
    )


def conflict_between(
    program: Program,
    first: Sequence[Leaf],
    second: Sequence[Leaf],
    equal: int,
    orders: Sequence[Order],
    policy: str,
) -> Witness | None:
    """A pair of conflicting instances (i of ``first``, j of ``second``) in the given relative order.

    The iterators of the first ``equal`` depths are the same in both; ``orders`` relates deeper ones.
    A conflict is two accesses to the same logical cell, not both reads; two accumulations by the same
    operator commute where the policy lets them regroup.
    """
    for a in first:
        for b in second:
            for one in accesses(a):
                for other in accesses(b):
                    if one.element.array != other.element.array or one.kind == other.kind == "r":
                        continue
                    if (
                        one.kind == other.kind == "a"
                        and a.op.accumulate == b.op.accumulate
                        and may_regroup(program, a, policy)
                    ):
                        continue
                    witness = meeting(one, other, equal, orders)
                    if witness is not None:
                        return witness
    return None


def meeting(
    a: MemoryAccess,
    b: MemoryAccess,
    equal: int,
    orders: Sequence[Order],
    dims: Sequence[int] | None = None,
) -> Witness | None:
    """Instances of two accesses in the given order whose indices agree (in ``dims``, default all)."""
    pairs = list(zip(a.element.index, b.element.index, strict=True))
    if dims is not None:
        pairs = [pairs[k] for k in dims]
    if excluded(pairs, equal, orders):
        return None
    system = System()
    va = system.instance(a.leaf)
    vb = system.instance(b.leaf, share=va[:equal])
    for order in orders:
        system.order(va, vb, order)
    for ia, ib in pairs:
        system.equal(ia, va, ib, vb)
    point = system.solve()
    if point is None:
        return None
    values = (system.values(point, va), system.values(point, vb))
    return Witness(((a.leaf, values[0]), (b.leaf, values[1])), cell_text(a.element, values[0]))


def excluded(pairs: Sequence[tuple[Index, Index]], equal: int, orders: Sequence[Order]) -> bool:
    """May no instances whose iterators of the first ``equal`` depths are the same, and the indices of each
    pair, stand in this order? Quick answer for the usual case: an index that is the ordered iterator itself,
    alike in both."""
    for order in orders:
        if order.relation == "=":
            continue
        for ia, ib in pairs:
            if (
                isinstance(ia, Affine)  # two places of a table or an array may hold one value
                and ia.uses(order.depth)
                and ia == ib
                and all(d < equal or d == order.depth or Order(d, "=") in orders for d, _ in ia.terms)
            ):
                return True
    return False


def cell_text(access: Access, values: Sequence[int]) -> str:
    if any(v < 0 for v in values):
        return access.array
    if access.indirect:  # which place of the table or the array it was is not known
        return str(access)
    return f"{access.array}[{','.join(str(i.value(values)) for i in access.index)}]"


class System:
    """An integer system under construction: instances of operations and relations between them."""

    def __init__(self) -> None:
        self.box: list[tuple[int, int]] = []
        self.constraints: list[Constraint] = []

    def copy(self) -> System:
        """What several systems have in common is built once."""
        result = System()
        result.box, result.constraints = [*self.box], [*self.constraints]
        return result

    def instance(self, leaf: Leaf, share: Sequence[int] = (), pin: Sequence[int] = ()) -> list[int]:
        """Variables for an operation's iterators: outer ones shared, those in ``pin`` at their last value."""
        variables = list(share)
        for depth in range(len(share), len(leaf.scopes)):
            last = leaf.scopes[depth].size - 1
            self.box.append((last if depth in pin else 0, last))
            variables.append(len(self.box) - 1)
        self._hold(leaf.op.guard, variables)
        return variables

    def iterators(self, sizes: Sequence[int], guard: Sequence[Comparison]) -> list[int]:
        """Variables for all iterators of scopes of these sizes, where the guard holds."""
        variables = self.free(sizes)
        self._hold(guard, variables)
        return variables

    def _hold(self, guard: Sequence[Comparison], variables: Sequence[int]) -> None:
        for comparison in guard:
            constraint = Constraint.of(comparison)
            self.constraints.append(Constraint(renamed(constraint.form, variables), constraint.equality))

    def free(self, sizes: Sequence[int]) -> list[int]:
        first = len(self.box)
        self.box.extend((0, size - 1) for size in sizes)
        return list(range(first, len(self.box)))

    def order(self, a: Sequence[int], b: Sequence[int], order: Order) -> None:
        earlier, later = a[order.depth], b[order.depth]
        if order.relation == ">":
            earlier, later = later, earlier
        equality = order.relation == "="
        form = Affine.make([(earlier, -1), (later, 1)], 0 if equality else -1)
        self.constraints.append(Constraint(form, equality))

    def form(self, index: Index, variables: Sequence[int]) -> Affine:
        """An index in the system's variables; what a table gives is any value between its extremes."""
        if isinstance(index, Affine):
            return renamed(index, variables)
        first = len(variables)
        relaxed, sizes = index.relaxed(first)
        return renamed(relaxed, [*variables, *self.free(sizes)])

    def equal(self, ia: Index, a: Sequence[int], ib: Index, b: Sequence[int]) -> None:
        if isinstance(ia, Indirect) and isinstance(ib, Indirect) and self._told_apart(ia, a, ib, b):
            for one, other in zip(ia.lookups[0][0].at, ib.lookups[0][0].at, strict=True):
                self.equal(one, a, other, b)
            self.equal(ia.rest, a, ib.rest, b)
            return
        form = self._gap(ib, b, ia, a, 0)
        if form.terms or form.const:
            self.constraints.append(Constraint(form, True))

    def _told_apart(self, ia: Indirect, a: Sequence[int], ib: Indirect, b: Sequence[int]) -> bool:
        """Are two indices equal only where both read one element of an array of distinct ones? The rests must
        lie nearer to each other than two values make the indices lie apart."""
        (lookup, coefficient), (other, factor) = ia.lookups[0], ib.lookups[0]
        source = lookup.source
        if len(ia.lookups) > 1 or len(ib.lookups) > 1 or source != other.source or coefficient != factor:
            return False
        # implied: one of the two is written, and no write goes through a table
        if not isinstance(source, IndexArray):
            return False
        if not source.distinct:
            return False
        gap = self._gap(ia.rest, a, ib.rest, b, 0)
        low = gap.const + sum(min(c * end for end in self.box[v]) for v, c in gap.terms)
        high = gap.const + sum(max(c * end for end in self.box[v]) for v, c in gap.terms)
        return -abs(coefficient) < low and high < abs(coefficient)

    def less(self, ia: Index, a: Sequence[int], ib: Index, b: Sequence[int]) -> None:
        self.constraints.append(Constraint(self._gap(ia, a, ib, b, 1)))

    def _gap(self, ia: Index, a: Sequence[int], ib: Index, b: Sequence[int], less: int) -> Affine:
        """``ib - ia - less``."""
        if isinstance(ia, Affine) and isinstance(ib, Affine):
            terms = [(b[d], c) for d, c in ib.terms] + [(a[d], -c) for d, c in ia.terms]
            return Affine.make(terms, ib.const - ia.const - less)
        return self.form(ib, b) - self.form(ia, a) - less

    def solve(self) -> tuple[int, ...] | None:
        """A point, or None if there is none. Undecided counts as a point with all values -1."""
        solution = solve(self.box, self.constraints)
        if not solution.possible:
            return None
        return solution.point if solution.point is not None else (-1,) * max(1, len(self.box))

    @staticmethod
    def values(point: Sequence[int], variables: Sequence[int]) -> tuple[int, ...]:
        return tuple(point[v] for v in variables)


def may_leave(form: Index, size: int, sizes: Sequence[int], guard: Sequence[Comparison]) -> bool:
    """May an index under scopes of these sizes, where the guard holds, lie outside 0 to size-1?"""
    low, high = form.bounds(sizes)
    # implied: an affine form takes both, where no guard is in the way; this only spares the solver
    if not guard and isinstance(form, Affine):
        return low < 0 or high >= size
    system = System()
    variables = system.free(sizes)
    value = system.form(form, variables)
    held = [*system.constraints, *map(Constraint.of, guard)]
    outside = (Constraint.at_least(-value - 1), Constraint.at_least(value - size))
    return any(solve(system.box, [*held, side]).possible for side in outside)


def iterator_fault(op: Op, sizes: Sequence[int], dtypes: Mapping[str, str]) -> tuple[str, str] | None:
    """An iterator expression of an operand or a guard with a value that the integers it is computed in do not
    hold, and what to do. As the number that it becomes where its iterators are known it would be refused."""
    operands = [o for o in op.operands if isinstance(o, Affine)]
    for form in (*operands, *[c.form for c in op.guard]):
        if form.reach(sizes) >= LARGEST:
            return f"{form} goes beyond 64 bits", "Use smaller numbers."
    dtype = op.function if op.function in DTYPE_BYTES else dtypes[op.target.array]
    if op.function in COMPARISONS:
        return dtype_fault(op, dtypes)  # what holds both sides hangs on the signs of iterators
    if dtype in (*FLOATS, *STORAGE_FLOATS, "i64", "bool"):
        return None
    least, most = extremes(dtype)
    for operand in op.operands[1:] if op.function == "select" else op.operands:
        if isinstance(operand, Affine) and may_leave(operand + -least, most - least + 1, sizes, op.guard):
            message = f"{operand} goes beyond {dtype}, whose values are {least} to {most}"
            return message, "Compute in a wider dtype, and convert the result in a line of its own."
    return None


def renamed(form: Affine, variables: Sequence[int]) -> Affine:
    """The form with iterator k replaced by variable ``variables[k]``."""
    return Affine.make([(variables[d], c) for d, c in form.terms], form.const)


def is_reduction(leaf: Leaf, depth: int) -> bool:
    """Does the operation accumulate over the scope at ``depth`` (its target ignores that iterator)?"""
    # implied: lanes that add to cells of their own at one address would clobber what they start from (V2)
    return bool(leaf.op.accumulate) and not any(i.uses(depth) for i in leaf.op.target.index)


def has_vector_form(leaf: Leaf) -> bool:
    function = leaf.op.function
    return not function or FUNCTIONS[function].vector


def check_policy(name: str) -> None:
    """Raises ValueError with a sentence, which names those that there are."""
    if name not in POLICIES:
        raise ValueError(f"There is no policy {name!r}. The policies are: {', '.join(POLICIES)}.")
