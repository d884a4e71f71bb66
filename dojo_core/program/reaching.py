"""Where a value comes from: the one write that defines a read, and what happens between the two.

Moves that put one expression in another's place (forward, recompute, contract) ask here; the answers rest
on coverage.py and on the integer solver, and are None where a question is not decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dojo_core.program.affine import Affine
from dojo_core.program.dependence import (
    MemoryAccess,
    Order,
    System,
    Witness,
    accesses,
    cell_text,
    excluded,
    meeting,
)
from dojo_core.program.integers import Constraint, solve
from dojo_core.program.must_writes import coverage, digits, shared_depth
from dojo_core.program.nodes import fact
from dojo_core.program.tables import Index, affine
from dojo_core.program.tree import Access, Leaf, Path, Program


@dataclass(frozen=True)
class Definition:
    """``write`` defines every instance of ``read``, in the same iteration of the first ``depth`` scopes.

    ``images`` gives the write's iterators as affine forms of the read's; one without an image may have any
    value: each of these instances is meant.
    """

    read: MemoryAccess
    write: MemoryAccess
    depth: int
    images: dict[int, Affine]

    def here(self, access: Access) -> Access:
        """An access of the writing operation as the reading one would spell the same cell."""
        return access.substitute(self.images)


@dataclass(frozen=True)
class Reduction:
    """What every instance of a read finds was set by ``start``, then changed by ``total``, an accumulation,
    once for each iteration of its scopes ``over``, in their order, and by nothing else."""

    start: Definition
    total: Definition
    over: tuple[int, ...]  # depths; these have no images in ``total``


def accesses_of(program: Program, array: str) -> tuple[MemoryAccess, ...]:
    """All accesses to an array, in tree order."""
    return _accesses(program).get(array, ())


@fact
def _accesses(program: Program) -> dict[str, tuple[MemoryAccess, ...]]:
    by_array: dict[str, list[MemoryAccess]] = {}
    for leaf in program.leaves:
        for access in accesses(leaf):
            by_array.setdefault(access.element.array, []).append(access)
    return {name: tuple(each) for name, each in by_array.items()}


def leaves_of(program: Program, array: str) -> tuple[Leaf, ...]:
    """The operations that access an array, in tree order."""
    return tuple({t.leaf.path: t.leaf for t in accesses_of(program, array)}.values())


def definition(program: Program, read: MemoryAccess) -> Definition | None:
    """The only write whose value every instance of the read finds, where there is one for certain."""
    cache: dict[tuple[Path, Access, str], Definition | None] = program.facts.setdefault(definition, {})
    key = (read.leaf.path, read.element, read.kind)
    if key not in cache:
        cache[key] = _definition(program, read)
    return cache[key]


def _definition(program: Program, read: MemoryAccess, apart: Path | None = None) -> Definition | None:
    """``apart``: an operation that counts as not there."""
    if read.element.indirect:  # which instance of the write it is depends on what is looked up
        return None
    accesses = [t for t in accesses_of(program, read.element.array) if t.leaf.path != apart]
    near = coverage(read, accesses)
    if near is None or len(near[1]) != 1:
        return None
    depth, (write,) = near
    images = _instance(write, read, depth)
    if images is None:
        return None
    result = Definition(read, write, depth, images)
    return None if changed_since(program, result, write.element, apart) else result


def reduction(program: Program, definition: Definition) -> Reduction | None:
    """The nest that makes what a read finds, where its definition accumulates and this is certain."""
    read, write, depth = definition.read, definition.write, definition.depth
    scopes, index = write.leaf.scopes, tuple(map(affine, write.element.index))
    inside = {d for form in index for d in form.depths}
    over = tuple(d for d in range(depth, len(scopes)) if d not in inside)
    # A guard that chooses among the terms is not carried along.
    if any(d in over for c in write.leaf.op.guard for d in c.form.depths):
        return None
    # Without it the read would find where the sums begin: what lies between these two is added up.
    start = _definition(program, read, write.leaf.path)
    if start is None or start.write.kind == "a" or start.depth != depth:
        return None
    # A loop over the terms that held the start would begin anew each time. (None holds the read: the loops
    # that the read shares with the sum are those up to ``depth``.)
    if over and over[0] < shared_depth(write, start.write):
        return None
    # Each cell belongs to one iteration of the other scopes.
    if any(digits([(abs(c), scopes[d].size) for d, c in form.terms if d >= depth]) is None for form in index):
        return None
    images = {d: form for d, form in definition.images.items() if d not in over}
    return Reduction(start, replace(definition, images=images), over)


def _instance(write: MemoryAccess, read: MemoryAccess, depth: int) -> dict[int, Affine] | None:
    """The write's iterators, from ``depth`` on, in those of the read, solved from the equal cells."""
    images: dict[int, Affine] = {}
    theirs = [s.size for s in read.leaf.scopes]
    for form, wanted in zip(map(affine, write.element.index), map(affine, read.element.index), strict=True):
        local = [(d, c) for d, c in form.terms if d >= depth]
        rest = wanted - Affine(tuple((d, c) for d, c in form.terms if d < depth), form.const)
        for d, c in sorted(local, key=lambda term: -abs(term[1])):
            # implied: high < c below asks for c > 0, and coverage is certain of no diagonal
            if c <= 0 or d in images:
                return None
            whole = Affine(tuple((k, n // c) for k, n in rest.terms if n % c == 0), rest.const // c)
            rest = rest - whole * c
            low, high = rest.bounds(theirs)
            # implied: the images have to lie in their scopes (see _runs), and nothing may be left over
            if low < 0 or high >= c:
                return None
            images[d] = whole
        # implied: coverage has shown that the cells are equal for some instance, so nothing is left over
        if rest.terms or rest.const:
            return None
    for d in range(depth, len(write.leaf.scopes)):
        # The cell does not depend on this iterator: its last iteration is the one that stays.
        images.setdefault(d, Affine(const=write.leaf.scopes[d].size - 1))
    return images if _runs(write.leaf, images, read.leaf) else None


def _runs(origin: Leaf, images: dict[int, Affine], read: Leaf) -> bool:
    """Is there such an instance for each instance of the read: within its scopes, its guard held? Where the
    digits of an index overlap, the cell may come from another one."""
    sizes = [s.size for s in read.scopes]
    box, held = [(0, n - 1) for n in sizes], [Constraint.of(c) for c in read.op.guard]
    failing = [side for c in origin.op.guard for side in Constraint.against(c.substitute(images))]
    for d, image in images.items():
        low, high = image.bounds(sizes)
        if low < 0 or high >= origin.scopes[d].size:
            failing += [Constraint.at_least(-image - 1), Constraint.at_least(image - origin.scopes[d].size)]
    return not any(solve(box, [*held, side]).possible for side in failing)


def changed_since(
    program: Program, definition: Definition, source: Access, apart: Path | None = None
) -> Witness | None:
    """A write to a cell of ``source`` (an access of the defining operation), or to one that an index of it is
    read from, between definition and read.

    The defining write itself counts where a later instance of it hits the cell again. ``apart``: an operation
    that counts as not there.
    """
    for read in (source, *source.indices):
        for write in accesses_of(program, read.array):
            if write.kind != "r" and write.leaf.path != apart:
                witness = _between(definition, write, read)
                if witness is not None:
                    return witness
    return None


def overwritten(program: Program, definition: Definition, source: Access) -> Witness | None:
    """The same, where the defining operation is to be repeated at the read: its own write counts too."""
    leaf = definition.write.leaf
    if source.array == leaf.op.target.array:
        witness = meeting(definition.write, MemoryAccess(leaf, source, "r"), len(leaf.scopes), ())
        if witness is not None:
            return witness
    return changed_since(program, definition, source)


def _between(definition: Definition, write: MemoryAccess, source: Access) -> Witness | None:
    read, origin, depth = definition.read, definition.write, definition.depth
    if not (precedes(origin, write, depth) and precedes(write, read, depth)):
        return None
    # implied: the defining instance is the last that writes its cell; this only spares the solver
    if write == origin and source == origin.element and once(origin, depth):
        return None
    cells = list(zip(source.index, write.element.index, strict=True))
    before_write = list(orders(origin, write, depth, cells))
    if not before_write:  # implied: none of them would be possible
        return None
    common = System()
    r = common.instance(read.leaf)
    share = r[:depth]
    d = common.instance(origin.leaf, share)
    for k, image in definition.images.items():
        common.equal(Affine.iterator(k), d, image, r)
    w = common.instance(write.leaf, share)
    for wanted, ours in cells:
        common.equal(ours, w, wanted, d)
    for before in before_write:
        for after in orders(write, read, depth):
            system = common.copy()
            for order in before:
                system.order(d, w, order)
            for order in after:
                system.order(w, r, order)
            point = system.solve()
            if point is not None:
                values = system.values(point, w)
                instances = ((write.leaf, values), (read.leaf, system.values(point, r)))
                return Witness(instances, cell_text(write.element, values))
    return None


def once(access: MemoryAccess, depth: int) -> bool:
    """Does an access surely reach no cell twice in one iteration of ``depth`` scopes? Quick, for the usual
    case: each iterator further in is an index by itself."""
    forms = access.element.index
    alone = {form.terms[0][0] for form in forms if isinstance(form, Affine) and len(form.terms) == 1}
    # implied: where it says no, whoever asks looks closer and finds the same
    return all(d in alone for d in range(depth, len(access.leaf.scopes)))


def precedes(a: MemoryAccess, b: MemoryAccess, depth: int) -> bool:
    """May an instance of ``a``, no exit, come before one of ``b`` in one iteration of ``depth`` scopes that
    hold both? Just where there are ``orders`` of the two."""
    one, other = a.leaf.path, b.leaf.path
    if not other:  # at exit, after all
        return depth == 0
    if one[:depth] != other[:depth]:
        return False
    return one < other or (len(one) > depth + 1 and one[: depth + 1] == other[: depth + 1])


def orders(
    a: MemoryAccess, b: MemoryAccess, depth: int, cells: Sequence[tuple[Index, Index]] = ()
) -> Iterator[list[Order]]:
    """How an instance of ``a`` can come before one of ``b`` in one iteration of ``depth`` scopes. Ways that
    are impossible at a glance, where the indices of each pair of ``cells`` are the same, are left out."""
    common = shared_depth(a, b)
    for level in range(depth, common):
        order = [*(Order(d, "=") for d in range(depth, level)), Order(level, "<")]
        if not excluded(cells, depth, order):  # implied: only spares the solver
            yield order
    if not b.leaf.path or (a.leaf.path and a.leaf.path < b.leaf.path):
        yield [Order(d, "=") for d in range(depth, common)]


def seen_by(
    program: Program, write: MemoryAccess, readers: Sequence[MemoryAccess]
) -> tuple[MemoryAccess, Witness | None] | None:
    """The first of ``readers`` that may see a value of ``write``, and an instance where it does, if that is
    known; None where surely none does.

    A reader is safe where it never reads a cell of ``write``, and where another write surely defines what it
    reads, and ``write`` comes before that one in every iteration that they share.
    """
    others = tuple(t for t in accesses_of(program, write.element.array) if t.leaf.path != write.leaf.path)
    for read in readers:
        near = coverage(read, others)
        if near is not None:
            depth, definitions = near
            before = shared_depth(write, read) < depth or all(
                shared_depth(write, one) <= depth and write.leaf.path <= one.leaf.path for one in definitions
            )
            if before:
                continue
        met = (meeting(write, read, 0, order) for order in orders(write, read, 0))
        witness = next((w for w in met if w is not None), None)
        if witness is not None:
            return read, witness if near is None else None
    return None
