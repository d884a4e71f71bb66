"""V2: is the physical execution of a program the same as the logical one?

A logical cell is (array, full index); a physical cell is what it maps to after ``:N``, shared buffers
and per-iteration storage. For each read, the write that defines it must land on the same physical
cell, with no other write to that cell in between or unordered with either (docs/legality.md). The check
goes buffer by buffer and looks only at the operations that access it, so its answer is kept by that
*projection* of the tree: a move that leaves a buffer's projection alone costs nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.definedness import TooMany, first_unset
from dojo_core.program.dependence import (
    MemoryAccess,
    Order,
    System,
    Witness,
    accesses,
    cell_text,
    common_depth,
    is_reduction,
    meeting,
)
from dojo_core.program.difference import Difference, on_heap
from dojo_core.program.gpu import UNORDERED, outside_phases
from dojo_core.program.indices import feeding
from dojo_core.program.must_writes import carried, coverage, shared_depth, unset
from dojo_core.program.nodes import fact
from dojo_core.program.reaching import accesses_of, once, orders, precedes
from dojo_core.program.tree import Access, Buffer, Dim, Leaf, Node, Op, Path, Program, Provenance, Scope
from dojo_core.program.unset import any_origin, unset_origin


@dataclass(frozen=True)
class Fault:
    """Why a program is not valid. ``code`` is one of race, clobber, lifetime, undefined, unwritten; or it is
    ``undecided``: not known to be."""

    code: str
    buffer: str
    array: str
    sentence: str
    nodes: tuple[Path, ...]
    witness: Witness | None = None


def storage_fault(program: Program, since: Difference | None = None) -> Fault | None:
    """The first violation of V2, or None. Reads that no write defines are ``definition_fault``'s matter.

    ``since``, if given, is the difference from a valid program; only the buffers that it concerns are looked
    at: of all others the projections are the same.
    """
    judged = _verdicts(program, Difference(program) if since is None else since)
    harmed = (buffer for buffer, sound in judged if not sound)
    first = next((_fault(program, buffer) for buffer in harmed), None)
    if first is None:
        return None
    others = [fault.buffer for buffer in harmed if (fault := _fault(program, buffer)).code == first.code]
    if not others:
        return first
    named = " and ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    return replace(first, sentence=f"{first.sentence} The same holds of {named}.")


def keeps_storage(program: Program, since: Difference) -> bool:
    """Is there no ``storage_fault``?"""
    return all(sound for _, sound in _verdicts(program, since))


def _verdicts(program: Program, since: Difference) -> Iterator[tuple[Buffer, bool]]:
    """Each buffer that may have come to harm, and that it has not."""
    parallel = not UNORDERED.isdisjoint(since.before.summary.marks | since.made.marks)
    for buffer in since.concerned:
        if not on_heap(buffer):
            yield buffer, _is_sound(program, buffer, since.accessing(frozenset(buffer.arrays)))
        elif parallel:
            # Only a race can be wrong with it, and that is between iterations of one child of the root.
            fresh = any(buffer is b for b in since.fresh)
            nodes = since.accessing(frozenset(buffer.arrays)) if fresh else since.new
            yield buffer, _is_sound(program, buffer, [n for n in nodes if _unordered(n)])


def _unordered(node: Node) -> bool:
    """Does a subtree hold scopes whose iterations may run in any order?"""
    # implied: without such a mark no race is found; this only spares the search
    return isinstance(node, Scope) and not UNORDERED.isdisjoint(node.summary.marks)


def definition_fault(program: Program) -> Fault | None:
    """A read before any write, or an output with an element never written.

    Where that could not be shown, nor that it is not so, a fault with the code ``undecided``; such a program
    may well be sound, and is told apart from those that are not. Measuring decides it (``settled``).
    """
    return _definition_fault(program)


def settled(program: Program) -> str | None:
    """What ``definition_fault`` left undecided, decided by whoever measures, however long it takes: what is
    wrong, as a sentence, or None."""
    doubt = definition_fault(program)
    if doubt is None or doubt.code != Code.UNDECIDED:
        return None
    origin = any_origin(program)
    return None if origin is None else origin.sentence


@fact
def unset_index(program: Program) -> Fault | None:
    """A read that an index may come from, where it is not shown that a write has set what it reads. What
    happens to be there could lead outside of any array, so that it is harmful even where nobody sees
    the value."""
    feeds = feeding(program)
    for leaf in program.leaves if feeds else ():
        wanted = set(leaf.op.reads) if leaf.op.target.array in feeds else set()
        wanted |= {index for access in leaf.op.elements for index in access.indices}
        if leaf.op.accumulate and leaf.op.target.array in feeds:
            wanted.add(leaf.op.target)
        for read in accesses(leaf):
            array = read.element.array
            if read.kind == "w" or array in program.inputs or read.element not in wanted:
                continue
            buffer = program.buffer_of[array]
            others = accesses_of(program, array)
            if coverage(read, others, earlier=True) is not None:
                continue
            with suppress(TooMany):
                if first_unset(read, others, [dim.size for dim in buffer.dims]) is None:
                    continue
            sentence = (
                f"{read.element}, of which an index is made, is not surely set before it is read. "
                f"Set all of {array} before, in a nest of its own."
            )
            return Fault(Code.UNDEFINED, buffer.name, array, sentence, (leaf.path,))
    return None


@fact
def _definition_fault(program: Program) -> Fault | None:
    fault = unset_index(program)
    if fault is not None:
        return fault
    doubt: Fault | None = None
    for buffer in program.buffers:
        accesses = _buffer_accesses(program, buffer)
        reads = [t for t in accesses if t.kind != "w" and t.element.array not in program.inputs]
        for read in (
            *reads,
            *[_exit_read(array, buffer) for array in buffer.arrays if array in program.outputs],
        ):
            fault = _unset_fault(program, read, accesses, buffer)
            if fault is not None and fault.code != Code.UNDECIDED:
                return fault
            doubt = doubt or fault
    return doubt


def _unset_fault(
    program: Program, read: MemoryAccess, accesses: Sequence[MemoryAccess], buffer: Buffer
) -> Fault | None:
    """What is wrong with a read, that at exit of an output too, that no write comes before; None: nothing, or
    nothing that an output depends on, as in padding or where a copy is written over."""
    leaf, array = read.leaf, read.element.array
    if coverage(read, accesses, earlier=bool(leaf.path)) is not None:
        return None
    written = [t for t in accesses if t.element.array == array and t.kind != "r"]
    writes = tuple(t.leaf.path for t in written)
    fault = partial(Fault, buffer=buffer.name, array=array, nodes=(leaf.path,) if leaf.path else writes)
    sizes = [dim.size for dim in buffer.dims]
    values: tuple[int, ...] | None = None  # of an instance whose cell is not set, where that is decided
    with suppress(TooMany):
        values = first_unset(read, accesses, sizes)
        if values is None:
            return None
    if values is None or leaf.path:
        try:
            origin = unset_origin(program, array)
        except TooMany:
            if values is None or not _stays(program, leaf):
                claim = (
                    f"each read of {read.element} finds a write"
                    if leaf.path
                    else f"all of {array} is written"
                )
                sentence = f"It could not be shown that {claim}: there is too much of it to go through."
                return fault(Code.UNDECIDED, sentence=sentence)
        else:
            if origin is None:
                return None
            try:
                values = first_unset(read, accesses, sizes, origin.cell)
            except TooMany:
                return fault("undefined" if leaf.path else "unwritten", sentence=origin.sentence)
            if values is None:  # another read of the array does the harm
                return None
    cell, surely, ever = cell_text(read.element, values), "", "never"
    remedy = f"Set it before, or name {array} as an input."
    if not leaf.path:
        remedy = "Let the scopes around its writes run over all of it."
    scattered = next((t.element for t in written if t.element.indirect), None)
    if scattered is not None:
        surely, ever = "surely ", "not surely"
        remedy = f"Which elements {scattered} writes hangs on an array: set all of {array} before, in a nest."
    if not leaf.path:
        return fault(Code.UNWRITTEN, sentence=f"{cell} of the output {array} is {ever} written. {remedy}")
    sentence = f"{read.element} is read where no earlier write has {surely}set it. {remedy}"
    return fault(Code.UNDEFINED, sentence=sentence, witness=Witness(((leaf, values),), cell))


def _stays(program: Program, leaf: Leaf) -> bool:
    """Does all that an operation computes surely stay in an output, with nothing written over it?"""
    target = leaf.op.target.array
    others = (t for t in accesses_of(program, target) if t.leaf.path != leaf.path)
    if target not in program.outputs or any(other.kind == "w" for other in others):
        return False
    return bool(leaf.op.accumulate) or once(accesses(leaf)[-1], 0)


def owner_path(program: Program, buffer: Buffer) -> Path:
    """The innermost scope that holds all accesses of a buffer (``shared``: outside phases); () the root."""
    accesses = [t for array in buffer.arrays for t in accesses_of(program, array)]
    return accesses[0].leaf.path[: _owner(accesses, buffer.location)] if accesses else ()


def _owner(accesses: Sequence[MemoryAccess], location: str) -> int:
    """How many scopes hold all these accesses, and a buffer at that location with them."""
    if not accesses:
        return 0
    first = accesses[0].leaf
    depth = len(first.scopes)
    for access in accesses:
        depth = min(depth, common_depth(first, access.leaf))
    return outside_phases(first.scopes[:depth]) if location == "shared" else depth


# ---------------------------------------------------------------------------- projections


class _View:
    """All accesses to a buffer, and what covers each of them: asked of one projection for many a buffer."""

    def __init__(self, accesses: tuple[MemoryAccess, ...]) -> None:
        self.accesses = accesses  # in tree order
        self._covered: dict[int, tuple[int, tuple[MemoryAccess, ...]] | None] = {}

    def reads(
        self, exits: Iterable[MemoryAccess]
    ) -> Iterator[tuple[MemoryAccess, tuple[int, tuple[MemoryAccess, ...]] | None]]:
        """Each read, those at exit last, with its ``coverage``."""
        for number, access in enumerate(self.accesses):
            if access.kind != "w":
                if number not in self._covered:
                    self._covered[number] = coverage(access, self.accesses, any_value=True, earlier=True)
                yield access, self._covered[number]
        for access in exits:
            yield access, coverage(access, self.accesses)


_ELSEWHERE = Access("", ())  # the target of an operation that writes another buffer


class _Projection:
    """What of a subtree concerns some arrays: its size and mark and what is inside, or an operation. Its hash
    is made once, since most of the tree of an edited program is that of the program before."""

    __slots__ = ("hash", "inside", "op")

    def __init__(self, inside: tuple[object, ...]) -> None:
        self.inside, self.hash = inside, hash(inside)
        self.op: Op | None = None  # of an operation, once it was asked for (``_small_leaves``)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        # implied: what is taken for different is judged anew
        return self is other or (
            isinstance(other, _Projection) and self.hash == other.hash and self.inside == other.inside
        )


@lru_cache(maxsize=8_000)  # equal ones made twice are the same, so that comparing those above is quick
def _projection(inside: tuple[object, ...]) -> _Projection:
    return _Projection(inside)


def _project(node: Node, arrays: tuple[str, ...]) -> _Projection | None:
    """What of a subtree concerns the arrays of a buffer; None if nothing does. Kept with the scope. An array
    goes by its number in the buffer, so that like accesses to another share a verdict."""
    if isinstance(node, Op):
        reads = [read.opaque for read in node.reads if read.array in arrays]
        written = node.target.array in arrays
        if not reads and not written:
            return None
        mine = tuple([_numbered(o, arrays) for o in reads])
        if not written:
            return _projection(("op", None, "", mine, node.guard))
        target = _numbered(node.target.opaque, arrays)
        return _projection(("op", target, node.accumulate, mine, node.guard))
    if node.arrays.isdisjoint(arrays):
        return None
    cache: dict[tuple[str, ...], _Projection] = node.facts.setdefault(_project, {})
    if arrays not in cache:
        children = tuple([p for c in node.body if (p := _project(c, arrays)) is not None])
        cache[arrays] = _projection((node.size, _order_mark(node), children))
    return cache[arrays]


def _numbered(access: Access, arrays: tuple[str, ...]) -> Access:
    return Access(str(arrays.index(access.array)), access.index)


def _order_mark(scope: Scope) -> str:
    """The mark where it says something about order; a ``:w`` scope of one operation, which may be a warp's
    reduction, is told apart: the projection may have lost the others."""
    if scope.mark == "w" and len(scope.body) == 1 and isinstance(scope.body[0], Op):
        return "W"
    return scope.mark if scope.mark in _UNORDERED_WORDS else ""


def _is_sound(program: Program, buffer: Buffer, nodes: Iterable[Node]) -> bool:
    """Is nothing wrong with a buffer, as far as these children of the root access it?"""
    names = buffer.arrays
    outputs = tuple([k for k, array in enumerate(names) if array in program.outputs])
    projection = tuple([p for n in nodes if (p := _project(n, names)) is not None])
    return _judge(projection, len(names), buffer.dims, buffer.location, outputs)


@lru_cache(maxsize=4_000)  # some kilobytes each, also of a program that nobody has any more
def _judge(
    projection: tuple[_Projection, ...],
    arrays: int,
    dims: tuple[Dim, ...],
    location: str,
    outputs: tuple[int, ...],
) -> bool:
    buffer = Buffer("", "", dims, location, tuple(map(str, range(arrays))))
    return _check(_viewed(projection), buffer, tuple(map(str, outputs))) is None


@lru_cache(maxsize=1_000)  # moves on a buffer's line ask about the same accesses over and over
def _viewed(projection: tuple[_Projection, ...]) -> _View:
    accessed = [t for leaf in _small_leaves(projection) for t in accesses(leaf) if t.element.array]
    return _View(tuple(accessed))


@lru_cache(maxsize=1_000)
def _frame(size: int, mark: str) -> Scope:
    return Scope(size, (), mark)


def _small_leaves(projection: Sequence[_Projection]) -> list[Leaf]:
    """The operations of a small tree with the same accesses: operands of other buffers are left out."""
    operations: list[Leaf] = []

    def gather(children: Sequence[_Projection], path: Path, scopes: tuple[Scope, ...]) -> None:
        for number, child in enumerate(children):
            inside: Any = child.inside
            if inside[0] == "op":
                if child.op is None:
                    _, target, accumulate, reads, guard = inside
                    child.op = Op(target or _ELSEWHERE, accumulate, "", reads, guard)
                operations.append(Leaf(child.op, (*path, number), scopes))
            else:
                size, mark, below = inside
                gather(below, (*path, number), (*scopes, _frame(size, mark)))

    gather(projection, (), ())
    return operations


def _fault(program: Program, buffer: Buffer) -> Fault:
    """What is wrong with a buffer that is not sound, in the program's own names and places."""
    outputs = [a for a in buffer.arrays if a in program.outputs]
    fault = _check(_View(_buffer_accesses(program, buffer)), buffer, outputs)
    assert fault is not None
    return fault()


def _buffer_accesses(program: Program, buffer: Buffer) -> tuple[MemoryAccess, ...]:
    """All accesses to a buffer, in tree order."""
    return tuple(t for leaf in program.leaves for t in accesses(leaf) if t.element.array in buffer.arrays)


# ---------------------------------------------------------------------------- the check


def _check(view: _View, buffer: Buffer, outputs: Sequence[str]) -> Callable[[], Fault] | None:
    """What is wrong, to be told: sentences, and most witnesses, cost as much as to find it, and few ask."""
    private = buffer.location != "heap"
    owner = _owner(view.accesses, buffer.location) if private else 0
    materialised = [k for k, d in enumerate(buffer.dims) if d.materialised]
    collapsed = [k for k, d in enumerate(buffer.dims) if not d.materialised]
    race = _race(view, buffer, owner, materialised)
    if race is not None:
        return race
    shared = len(buffer.arrays) > 1
    if not private and not shared and not collapsed:
        return None
    writes = [t for t in view.accesses if t.kind != "r"]
    places = [(w.element.array, *[w.element.index[k] for k in collapsed]) for w in writes]
    first = dict(zip(reversed(places), reversed(writes), strict=True))  # many write in the same place
    for read, covered in view.reads([_exit_read(a, buffer) for a in outputs]):
        if covered is None:
            return partial(_undefined, view, read, buffer, owner)
        depth, definitions = covered
        # implied: all accesses share the scopes of the owner, so coverage looks no further out
        if depth < owner:
            return partial(_outlived, definitions, read, buffer, owner)
        aparts = {place: _apart(write, read, depth, collapsed) for place, write in first.items()}
        if not any(aparts.values()):
            continue
        for write, place in zip(writes, places, strict=True):
            apart = aparts[place]
            for definition in definitions if apart else ():
                witness = _clobber(definition, write, read, depth, materialised, apart)
                if witness is not None:
                    return partial(_clobbered, definition, write, read, buffer, witness)
    return None


def _outlived(definitions: Sequence[MemoryAccess], read: MemoryAccess, buffer: Buffer, owner: int) -> Fault:
    return Fault(
        Code.LIFETIME,
        buffer.name,
        read.element.array,
        f"{buffer.name} would live in one iteration of the scope at depth {owner - 1}, "
        f"but {read.element} is read in another iteration than it is written.",
        (read.leaf.path, *(d.leaf.path for d in definitions)),
        carried(definitions, read, owner),
    )


def _clobbered(
    definition: MemoryAccess, write: MemoryAccess, read: MemoryAccess, buffer: Buffer, witness: Witness
) -> Fault:
    overwriting = cell_text(write.element, witness.instances[1][1])
    return Fault(
        Code.CLOBBER,
        buffer.name,
        read.element.array,
        f"The write of {overwriting} clobbers {witness.cell} before its read.",
        tuple(dict.fromkeys(t.leaf.path for t in (definition, write, read) if t.leaf.path)),
        witness,
    )


def _undefined(view: _View, read: MemoryAccess, buffer: Buffer, owner: int) -> Fault:
    if owner:
        return Fault(
            Code.LIFETIME,
            buffer.name,
            read.element.array,
            f"{buffer.name} would live in one iteration of the scope at depth {owner - 1}, "
            f"and no write in that iteration surely sets {read.element} before it is read.",
            (read.leaf.path,),
            carried(view.accesses, read, owner) or unset(read, view.accesses),
        )
    return Fault(
        Code.UNDEFINED,
        buffer.name,
        read.element.array,
        f"No write before {read.element} surely sets what it reads, "
        f"so {buffer.name} cannot be shared or private here.",
        (read.leaf.path,) if read.leaf.path else (),
        unset(read, view.accesses),
    )


def _exit_read(array: str, buffer: Buffer) -> MemoryAccess:
    """Outputs are read at exit, every cell: an operation after all others, under scopes of its own."""
    scopes = tuple(Scope(d.size, ()) for d in buffer.dims)
    access = Access(array, tuple(Affine.iterator(k) for k in range(len(scopes))))
    return MemoryAccess(Leaf(Op(access, "", "", (), provenance=Provenance()), (), scopes), access, "r")


_UNORDERED_WORDS = {"p": "parallel", "g": "grid", "b": "block", "w": "warp", "W": "warp"}


def _race(view: _View, buffer: Buffer, owner: int, dims: Sequence[int]) -> Callable[[], Fault] | None:
    """Two unordered iterations of a parallel scope that access one cell, one of them writing."""
    # implied: without a mark all iterations are in order, which the loops below find one pair at a time
    if not any(_order_mark(scope) for access in view.accesses for scope in access.leaf.scopes[owner:]):
        return None
    for n, a in enumerate(view.accesses):
        for b in view.accesses[n:]:
            if a.kind == "r" and b.kind == "r":
                continue
            for depth in range(owner, shared_depth(a, b)):
                mark = _order_mark(a.leaf.scopes[depth])
                if not mark or (mark == "W" and a.kind == "a" and is_reduction(a.leaf, depth)):
                    continue  # a warp's reduction counts as one operation (its target comes last: b is a)
                for relation in ("<",) if a is b else ("<", ">"):
                    witness = meeting(a, b, depth, [Order(depth, relation)], dims)
                    if witness is not None:
                        return partial(_raced, a, b, depth, buffer, witness)
    return None


def _raced(a: MemoryAccess, b: MemoryAccess, depth: int, buffer: Buffer, witness: Witness) -> Fault:
    word = _UNORDERED_WORDS[_order_mark(a.leaf.scopes[depth])]
    return Fault(
        Code.RACE,
        buffer.name,
        a.element.array,
        f"Iterations of the {word} scope at depth {depth} would touch {witness.cell} at the same time.",
        tuple(dict.fromkeys((a.leaf.path, b.leaf.path))),
        witness,
    )


_Apart = tuple[int, str] | None


def _apart(write: MemoryAccess, read: MemoryAccess, depth: int, collapsed: Sequence[int]) -> Sequence[_Apart]:
    """How a write in the same iteration of the first ``depth`` scopes may be to another logical cell than a
    read: in a dimension that is not materialised, on which side; None: it is, of another array."""
    if write.element.array != read.element.array:
        return [None]
    return [
        (k, relation)
        for k in collapsed
        for relation in ("<", ">")
        if not (
            # implied: what surely sets each element of a range that is looked up clobbers others of it
            isinstance(write.element.index[k], Affine)
            and write.element.index[k] == read.element.index[k]
            and all(d < depth for d in read.element.index[k].depths)
        )
    ]


def _clobber(
    definition: MemoryAccess,
    write: MemoryAccess,
    read: MemoryAccess,
    depth: int,
    materialised: Sequence[int],
    apart: Sequence[_Apart],
) -> Witness | None:
    """A write to the read's physical cell, another logical one, between definition and read.

    Writes outside the iteration of the first ``depth`` scopes come before the definition or after the
    read, so only instances inside it matter.
    """
    if not (precedes(definition, write, depth) and precedes(write, read, depth)):
        return None
    # The definition's instance is the last that writes the cell: iterators that the cell does not
    # depend on stand at their end.
    used = {d for form in definition.element.index for d in form.depths}
    guarded = {d for c in definition.leaf.op.guard for d in c.form.depths}
    pinned = [d for d in range(depth, len(definition.leaf.scopes)) if d not in used | guarded]
    # All three have the same index in each materialised dimension.
    defined, written, wanted = (
        [access.element.index[k] for k in materialised] for access in (definition, write, read)
    )
    before_write = list(orders(definition, write, depth, list(zip(defined, written, strict=True))))
    after_write = list(orders(write, read, depth, list(zip(written, wanted, strict=True))))
    if not (before_write and after_write):  # implied: none of them would be possible
        return None
    common = System()
    r = common.instance(read.leaf)
    share = r[:depth]
    d = common.instance(definition.leaf, share, pinned)
    w = common.instance(write.leaf, share)
    for ia, ib in zip(definition.element.index, read.element.index, strict=True):
        common.equal(ia, d, ib, r)
    for ours, index in zip(written, wanted, strict=True):
        common.equal(ours, w, index, r)
    for before in before_write:
        for after in after_write:
            for gap in apart:
                system = common.copy()
                for order in before:
                    system.order(d, w, order)
                for order in after:
                    system.order(w, r, order)
                if gap is not None:
                    k, relation = gap
                    at_write, at_read = (write.element.index[k], w), (read.element.index[k], r)
                    if relation == "<":
                        system.less(*at_write, *at_read)
                    else:
                        system.less(*at_read, *at_write)
                point = system.solve()
                if point is not None:
                    values = tuple(system.values(point, v) for v in (d, w, r))
                    instances = [(definition.leaf, values[0]), (write.leaf, values[1])]
                    if read.leaf.path:
                        instances.append((read.leaf, values[2]))
                    return Witness(tuple(instances), cell_text(read.element, values[2]))
    return None
