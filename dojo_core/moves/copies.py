"""Moves that copy what a scope reads or writes into a buffer of its own, and that take the copy away."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from dojo_core.moves.core import (
    Context,
    Edit,
    Move,
    Parameter,
    Refusal,
    Transformation,
    name_fault,
    register,
    structural,
)
from dojo_core.moves.nodes import nest, provenances, without
from dojo_core.moves.places import (
    NoSuchPlace,
    Place,
    fresh_name,
    leaves_under,
    place_of,
    resolve,
    scope_at,
    scopes,
)
from dojo_core.moves.storage import map_accesses
from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import MemoryAccess, System, Witness, accesses, cell_text
from dojo_core.program.must_writes import coverage, is_dense
from dojo_core.program.reaching import accesses_of, once, orders
from dojo_core.program.tables import Index, Indirect, affine, composed, plus
from dojo_core.program.tree import (
    Access,
    Buffer,
    Dim,
    Leaf,
    Node,
    Op,
    Operand,
    Path,
    Program,
    Provenance,
    Scope,
    splice,
)

ROOT = "root"


@dataclass(frozen=True)
class _Box:
    """What one iteration of a region accesses of an array, as a box: ``base`` in the region's iterators,
    then ``size`` cells, per dimension."""

    base: tuple[Affine, ...]
    sizes: tuple[int, ...]

    @property
    def kept(self) -> list[int]:
        """Dimensions that the copy has: those of size 1 are dropped."""
        return [k for k, n in enumerate(self.sizes) if n > 1]

    def inside(self, access: Access, name: str, outer: Sequence[Affine]) -> Access:
        """The access to the copy that stands for an access to the array."""
        return Access(name, (*outer, *(plus(access.index[k], -self.base[k]) for k in self.kept)))

    def cell(self, array: str, first: int) -> Access:
        """The array's cell for the copy loops' iterators, which begin at depth ``first``."""
        index = list(self.base)
        for n, k in enumerate(self.kept):
            index[k] = index[k] + Affine.iterator(first + n)
        return Access(array, tuple(index))


def _region(program: Program, place: Place | str) -> tuple[Path, tuple[Scope, ...]]:
    """(path, scopes from the root down to it) of ``root`` or a scope."""
    if isinstance(place, str):
        return (), ()
    path, scope, above = scope_at(program, place)
    return path, (*above, scope)


def _accesses(program: Program, path: Path) -> dict[str, list[MemoryAccess]]:
    """What the operations of a region access, by array, each in order of execution."""
    cache: dict[Path, dict[str, list[MemoryAccess]]] = program.facts.setdefault(_accesses, {})
    if path not in cache:
        by_array: dict[str, list[MemoryAccess]] = {}
        for leaf in leaves_under(program, path):
            for access in accesses(leaf):
                by_array.setdefault(access.element.array, []).append(access)
        cache[path] = by_array
    return cache[path]


def _accesses_of(program: Program, path: Path, array: str, reads: bool) -> list[MemoryAccess]:
    """The accesses of a region to an array, or the reads among them."""
    inside = _accesses(program, path).get(array, [])
    return [t for t in inside if t.kind == "r"] if reads else inside


def _hull(program: Program, path: Path, array: str, reads: bool) -> _Box | None:
    """The smallest box around the accesses of a region to an array, or around the reads among them, which
    must move alike with the region's iterators; None: they do not."""
    cache: dict[tuple[Path, str, bool], _Box | None] = program.facts.setdefault(_hull, {})
    key = (path, array, reads)
    if key not in cache:
        cache[key] = _box(_accesses_of(program, path, array, reads), len(path))
    return cache[key]


def _box(accesses: Sequence[MemoryAccess], depth: int) -> _Box | None:
    base: list[Affine] = []
    sizes: list[int] = []
    for k, first in enumerate(accesses[0].element.index):
        outer = tuple([t for t in _direct(first).terms if t[0] < depth])
        ends: list[int] = []
        for access in accesses:
            reach = _reach(access, k, outer, depth)
            if reach is None:
                return None
            ends += reach
        low, high = min(ends), max(ends)
        base.append(Affine(outer, low))
        sizes.append(high - low + 1)
    return _Box(tuple(base), tuple(sizes))


def _reach(
    access: MemoryAccess, k: int, outer: tuple[tuple[int, int], ...], depth: int
) -> tuple[int, int] | None:
    """The smallest and the largest that an index adds to its ``outer`` terms; None: it has others."""
    index = access.element.index[k]
    form = _direct(index)
    # Terms stand in order of depth.
    if form.terms[: len(outer)] != outer:
        return None
    if len(form.terms) > len(outer) and form.terms[len(outer)][0] < depth:
        return None
    # The outer scopes at their first iteration add nothing.
    return index.bounds([1] * depth + [s.size for s in access.leaf.scopes[depth:]])


def _direct(index: Index) -> Affine:
    """What of an index is not looked up."""
    return index.rest if isinstance(index, Indirect) else index


def _reused(program: Program, path: Path, array: str, reads: bool) -> bool:
    """Does one iteration of a region access some cell of the box more than once?"""
    inside = _accesses_of(program, path, array, reads)
    depth = len(path)
    # implied: no box is smaller than the cells in it; this only spares the box
    if not inside or (len(inside) == 1 and once(inside[0], depth)):
        return False
    box = _hull(program, path, array, reads)
    if box is None:
        return False
    instances = sum(math.prod([s.size for s in t.leaf.scopes[depth:]]) for t in inside)
    return instances > math.prod(box.sizes)


def _out_of_bounds(box: _Box, dims: Sequence[Dim], above: Sequence[Scope]) -> bool:
    outer = [s.size for s in above]
    for base, size, dim in zip(box.base, box.sizes, dims, strict=True):
        low, high = base.bounds(outer)
        if low < 0 or high + size > dim.size:
            return True
    return False


def _copy_buffer(
    context: Context, name: str, box: _Box, dtype: str, above: Sequence[Scope], fresh: Iterator[Provenance]
) -> Buffer:
    """Where the target has temporaries, or ``heap`` at the root and where the stack is too small."""
    dims = [Dim(s.size, False, next(fresh)) for s in above]
    dims += [Dim(box.sizes[k], True, next(fresh)) for k in box.kept]
    location = context.target.temporary(tuple(above)) if above else "heap"
    buffer = Buffer(name, dtype, tuple(dims), location, (name,), next(fresh))
    taken = sum(b.bytes for b in context.program.buffers if b.location == "stack")
    if location == "stack" and taken + buffer.bytes > context.target.stack_bytes:
        return replace(buffer, location="heap")
    return buffer


def _redirect(node: Node, array: str, change: Callable[[Access], Access], reads_only: bool) -> Node:
    """A subtree with the accesses to an array changed (prefetches stay: they mean the memory itself)."""
    if isinstance(node, Scope):
        if array not in node.arrays:
            return node
        body = tuple([_redirect(c, array, change, reads_only) for c in node.body])
        return Scope(node.size, body, node.mark, node.provenance)

    def one(access: Access) -> Access:
        return change(access) if access.array == array else access

    def operand(value: Operand) -> Operand:
        return one(value).reindexed(one) if isinstance(value, Access) else value

    target = node.target if reads_only else one(node.target)
    return replace(node, target=target.reindexed(one), operands=tuple(map(operand, node.operands)))


class _Stage(Transformation[tuple[str, Place | str, str]]):
    family = "copies"
    parameters = (Parameter("array", "buffer"), Parameter("scope", "region"), Parameter("name", "name"))
    suffix: ClassVar[str]
    at_root: ClassVar[bool]  # is a copy around everything worth offering?
    reads: ClassVar[bool]  # are reads alone redirected?

    def candidates(self, context: Context) -> Iterator[tuple[str, Place | str, str]]:
        program = context.program
        regions: list[tuple[Path, Place | str]] = [((), ROOT)] if self.at_root else []
        regions += [(path, place_of(program, path)) for path, _, _ in scopes(program)]
        for path, place in regions:
            for array, inside in _accesses(program, path).items():
                if self.concerns(program, array, inside) and _reused(program, path, array, self.reads):
                    yield array, place, fresh_name(program, f"{array}{self.suffix}")

    def concerns(self, program: Program, array: str, inside: Sequence[MemoryAccess]) -> bool:
        """Are the accesses ``inside`` a region a reason to stage the array?"""
        return True

    def places(self, context: Context, arguments: tuple[str, Place | str, str]) -> tuple[Path, ...]:
        region = arguments[1]
        return (resolve(context.program, region),) if isinstance(region, Place) else ()

    def inverse(self, context: Context, arguments: tuple[str, Place | str, str], result: Program) -> Move:
        return Move("elide_copy", (arguments[2],))

    def start(
        self, context: Context, arguments: tuple[str, Place | str, str]
    ) -> tuple[str, str, Path, tuple[Scope, ...]] | Refusal:
        program = context.program
        array, region, name = arguments
        if array not in program.buffer_of:
            raise NoSuchPlace(f"There is no array {array}.")
        taken = name_fault(program, name)
        if taken is not None:
            return taken
        return array, name, *_region(program, region)


@register
class StageRead(_Stage):
    """Copy what a scope reads of an array into a buffer of its own, at the head of its body (packing).

    ``stage_read A S NAME``: S a scope, or ``root``.

    Before::

        4 8 16 y[{0},{1},{2}] = x[{0},{2}]*w[{1}]

    After ``stage_read x y@0 p``::

        p f32 [4:N, 16] stack
        4 16 p[{0},{1}] = x[{0},{1}]
        | 8 16 y[{0},{1},{2}] = p[{0},{2}]*w[{1}]

    The copy holds the hull of what one iteration of S reads; its buffer has a :N dimension for each
    scope from the root to S, then the hull (dimensions of size 1 dropped).

    Legal iff
      1. NAME is new;
      2. an operation in S reads A;
      3. all reads of A in S move alike with the iterators of S and of the scopes around it;
      4. the hull is in bounds;
      5. no write to A in S comes before a read that it defines.

    Candidates: where a cell is read more than once in an iteration of S.
    """

    name = "stage_read"
    also = ("cache_read", "pack")
    suffix = "p"
    at_root = True
    reads = True

    def plan(self, context: Context, arguments: tuple[str, Place | str, str]) -> Edit | Refusal:
        program = context.program
        begun = self.start(context, arguments)  # 1, 2
        if isinstance(begun, Refusal):
            return begun
        array, name, path, above = begun
        reads = _accesses_of(program, path, array, True)
        if not reads:  # 2
            return structural(Code.NOT_READ, f"Nothing in {arguments[1]} reads {array}.", path)
        depth = len(path)
        box = _hull(program, path, array, True)
        if box is None:  # 3
            return structural(
                Code.UNLIKE_ACCESSES,
                f"The reads of {array} move differently with the scopes around: they have no common box.",
                *dict.fromkeys(t.leaf.path for t in reads),
            )
        if _out_of_bounds(box, program.buffer_of[array].dims, above):  # 4
            return structural(
                Code.HULL_BOUNDS,
                f"The box around the reads of {array} leaves its buffer.",
                reads[0].leaf.path,
            )
        for read in reads:  # 5
            for write in accesses_of(program, array):
                if write.kind == "r" or write.leaf.path[:depth] != path:
                    continue
                witness = _written_before(write, read, depth)
                if witness is not None:
                    return Refusal(
                        Code.STALE,
                        f"{witness.cell} is written in {arguments[1]} before it is read: "
                        "the copy would be old.",
                        tuple(dict.fromkeys((write.leaf.path, read.leaf.path))),
                        witness,
                    )
        return Edit(lambda: self._edit(context, name, array, path, above, box), _roots(program, path))

    def alternatives(
        self, context: Context, arguments: tuple[str, Place | str, str], refusal: Refusal
    ) -> Iterator[Move]:
        """A copy that is written too; copies for smaller regions, around the reads alone; of a box that
        leaves its buffer, copies for scopes inside, whose boxes are smaller."""
        if refusal.code == Code.HULL_BOUNDS:
            array, region, name = arguments
            path = resolve(context.program, region) if isinstance(region, Place) else ()
            for depth in range(len(path) + 1, len(refusal.nodes[0])):
                yield Move("stage_read", (array, place_of(context.program, refusal.nodes[0][:depth]), name))
        if refusal.code == Code.STALE:
            array, region, name = arguments
            program = context.program
            yield Move("stage_write", arguments)
            above = len(resolve(program, region)) if isinstance(region, Place) else 0
            for path in refusal.nodes[1:]:
                for depth in range(above + 1, len(path)):
                    yield Move("stage_read", (array, place_of(program, path[:depth]), name))

    def _edit(
        self, context: Context, name: str, array: str, path: Path, above: tuple[Scope, ...], box: _Box
    ) -> Program:
        program, depth = context.program, len(path)
        fresh = provenances(context)
        outer = tuple(Affine.iterator(d) for d in range(depth))
        loops = [box.sizes[k] for k in box.kept]
        target = Access(name, (*outer, *(Affine.iterator(depth + n) for n in range(len(loops)))))
        copy = Op(target, "", "", (box.cell(array, depth),), provenance=next(fresh))
        head = nest(loops, copy, fresh)
        buffer = _copy_buffer(context, name, box, program.buffer_of[array].dtype, above, fresh)

        def change(access: Access) -> Access:
            return box.inside(access, name, outer)

        body = tuple(_redirect(n, array, change, True) for n in program.children(path))
        return _with_body(program, path, (head, *body), (*program.buffers, buffer))


def _roots(program: Program, path: Path) -> Sequence[int]:
    """The root's children that a region is: one of them or inside it, or all."""
    return path[:1] or range(len(program.body))


def _with_body(program: Program, path: Path, body: tuple[Node, ...], buffers: tuple[Buffer, ...]) -> Program:
    if not path:
        return program.edit(body=body, buffers=buffers)
    changed = replace(program.scope(path), body=body)
    return program.edit(body=splice(program.body, path, 1, (changed,)), buffers=buffers)


def _written_before(write: MemoryAccess, read: MemoryAccess, depth: int) -> Witness | None:
    """A write in the same iteration of the first ``depth`` scopes that comes before a read of its cell."""
    cells = list(zip(write.element.index, read.element.index, strict=True))
    for order in orders(write, read, depth, cells):
        system = System()
        w = system.instance(write.leaf)
        r = system.instance(read.leaf, share=w[:depth])
        for a, b in cells:
            system.equal(a, w, b, r)
        for one in order:
            system.order(w, r, one)
        point = system.solve()
        if point is not None:
            values = system.values(point, w)
            instances = ((write.leaf, values), (read.leaf, system.values(point, r)))
            return Witness(instances, cell_text(write.element, values))
    return None


@register
class StageWrite(_Stage):
    """Work on a copy of what a scope writes of an array, and store it at the end of its body.

    ``stage_write A S NAME``: S a scope, or ``root``. Every access to A in S goes to the copy; it is loaded
    first where an element may be read or accumulated before it is assigned.

    Before::

        8 y[{0}] = 0
        | 64 y[{0}] += x[{0},{1}]

    After ``stage_write y y@0 t``::

        t f32 [8:N] stack
        8 t[{0}] = 0
        | 64 t[{0}] += x[{0},{1}]
        | y[{0}] = t[{0}]

    Legal iff
      1. NAME is new, and A is no input;
      2. an operation in S writes A;
      3. all accesses to A in S move alike with the iterators of S and of the scopes around it;
      4. what one iteration of S writes is exactly a dense box, and it reads nothing else of A.

    Candidates: where a cell is touched more than once in an iteration of S.
    """

    name = "stage_write"
    also = ("cache_write",)
    suffix = "t"
    at_root = False
    reads = False

    def concerns(self, program: Program, array: str, inside: Sequence[MemoryAccess]) -> bool:
        if array in program.inputs or all(t.kind == "r" for t in inside):
            return False
        return array in program.outputs or len(accesses_of(program, array)) > len(inside)

    def plan(self, context: Context, arguments: tuple[str, Place | str, str]) -> Edit | Refusal:
        program = context.program
        begun = self.start(context, arguments)  # 1, 2
        if isinstance(begun, Refusal):
            return begun
        array, name, path, above = begun
        if array in program.inputs:
            return structural(Code.INTERFACE, f"{array} is an input: nothing writes it.")
        depth = len(path)
        inside = _accesses_of(program, path, array, False)
        if all(t.kind == "r" for t in inside):
            return structural(Code.NOT_WRITTEN, f"Nothing in {arguments[1]} writes {array}.", path)
        box = _hull(program, path, array, False)
        if box is None:  # 3
            return structural(
                Code.UNLIKE_ACCESSES,
                f"The accesses to {array} move differently with the scopes around: they have no common box.",
                *dict.fromkeys(t.leaf.path for t in inside),
            )
        if not any(t.kind != "r" and _fills(t, box, depth) for t in inside):  # 4
            return Refusal(
                Code.NOT_DENSE,
                f"One iteration of {arguments[1]} does not surely write every cell of a box of {array}: "
                "storing the copy would overwrite cells of others.",
                tuple(dict.fromkeys(t.leaf.path for t in inside)),
            )
        loaded = any(_needs_load(t, inside, depth) for t in inside if t.kind != "w")
        return Edit(lambda: self._edit(context, name, array, path, above, box, loaded), _roots(program, path))

    def alternatives(
        self, context: Context, arguments: tuple[str, Place | str, str], refusal: Refusal
    ) -> Iterator[Move]:
        """A copy for the scopes around, which write what one iteration leaves; for those inside."""
        array, region, name = arguments
        if refusal.code != Code.NOT_DENSE or not isinstance(region, Place):
            return
        program, path = context.program, resolve(context.program, region)
        for depth in range(len(path) - 1, 0, -1):
            yield Move("stage_write", (array, place_of(program, path[:depth]), name))
        yield Move("stage_write", (array, "root", name))
        for depth in range(len(path) + 1, len(refusal.nodes[0])):
            yield Move("stage_write", (array, place_of(program, refusal.nodes[0][:depth]), name))

    def _edit(
        self,
        context: Context,
        name: str,
        array: str,
        path: Path,
        above: tuple[Scope, ...],
        box: _Box,
        loaded: bool,
    ) -> Program:
        program, depth = context.program, len(path)
        fresh = provenances(context)
        outer = tuple(Affine.iterator(d) for d in range(depth))
        loops = [box.sizes[k] for k in box.kept]
        mine = Access(name, (*outer, *(Affine.iterator(depth + n) for n in range(len(loops)))))
        theirs = box.cell(array, depth)
        store = nest(loops, Op(theirs, "", "", (mine,), provenance=next(fresh)), fresh)
        load: tuple[Node, ...] = ()
        if loaded:
            load = (nest(loops, Op(mine, "", "", (theirs,), provenance=next(fresh)), fresh),)
        buffer = _copy_buffer(context, name, box, program.buffer_of[array].dtype, above, fresh)

        def change(access: Access) -> Access:
            return box.inside(access, name, outer)

        body = tuple(_redirect(n, array, change, False) for n in program.children(path))
        return _with_body(program, path, (*load, *body, store), (*program.buffers, buffer))


def _fills(write: MemoryAccess, box: _Box, depth: int) -> bool:
    """Do the instances of a write in one iteration of the region write every cell of the box?"""
    if write.leaf.op.guard or write.element.indirect:
        return False
    sizes = [s.size for s in write.leaf.scopes]
    seen: set[int] = set()
    for form, base, size in zip(map(affine, write.element.index), box.base, box.sizes, strict=True):
        local = [(d, c) for d, c in form.terms if d >= depth]
        if seen & {d for d, _ in local}:
            return False
        seen |= {d for d, _ in local}
        inner = Affine(tuple(local), form.const - base.const)
        if inner.bounds(sizes) != (0, size - 1) or not is_dense([(abs(c), sizes[d]) for d, c in local]):
            return False
    return True


def _needs_load(access: MemoryAccess, inside: Sequence[MemoryAccess], depth: int) -> bool:
    near = coverage(access, [t for t in inside if t.kind == "w" or t.leaf.path == access.leaf.path])
    # implied: all of them share the region's scopes, so coverage looks no further out
    return near is None or near[0] < depth


@register
class ElideCopy(Transformation[tuple[str]]):
    """Take a staged copy away: the inverse of stage_read and stage_write.

    ``elide_copy NAME``: the copy's array.

    Before::

        p f32 [4:N, 16] stack
        4 16 p[{0},{1}] = x[{0},{1}]
        | 8 16 y[{0},{1},{2}] = p[{0},{2}]*w[{1}]

    After ``elide_copy p``::

        4 8 16 y[{0},{1},{2}] = x[{0},{2}]*w[{1}]

    Legal iff
      1. NAME is a temporary alone in its buffer, filled or stored by plain copies of one array;
      2. staging the result again gives this program back (so nothing else changed since), whatever the
         copy's location.
    """

    name = "elide_copy"
    family = "copies"
    parameters = (Parameter("name", "name"),)

    def candidates(self, context: Context) -> Iterator[tuple[str]]:
        for buffer in context.program.buffers:
            alone = buffer.arrays == (buffer.name,) and buffer.name not in context.program.interface
            if alone and _copies(context.program, buffer.name):
                yield (buffer.name,)

    def plan(self, context: Context, arguments: tuple[str]) -> Program | Refusal:
        program = context.program
        (name,) = arguments
        if name not in program.buffer_of:
            raise NoSuchPlace(f"There is no array {name}.")
        copies = _copies(program, name)
        if name in program.interface or program.buffer_of[name].arrays != (name,) or not copies:  # 1
            return structural(Code.NO_COPY, f"{name} is no copy of another array.")
        for chosen in _choices(copies, name):
            result = _elided(context, name, chosen)
            if result is not None:
                return result
        return structural(
            Code.CHANGED_SINCE, f"{name} is no longer as staging makes it.", copies[0].path
        )  # 2

    def places(self, context: Context, arguments: tuple[str]) -> tuple[Path, ...]:
        return ()


def _copies(program: Program, name: str) -> list[Leaf]:
    """Plain copies between an array and another."""
    copies = []
    for leaf in program.leaves:
        op = leaf.op
        if op.accumulate or op.function or op.guard or op.target.indirect or len(op.reads) != 1:
            continue
        if (op.target.array == name) != (op.reads[0].array == name):
            copies.append(leaf)
    return copies


def _choices(copies: Sequence[Leaf], name: str) -> Iterator[tuple[Leaf, ...]]:
    """Those that one staging may have made: a copy in and a copy out, or one of the two."""
    loads = [c for c in copies if c.op.target.array == name]
    stores = [c for c in copies if c.op.reads[0].array == name]
    for store in stores:
        array = store.op.target.array
        for load in loads:
            if load.op.reads[0].array == array:
                yield load, store
        yield (store,)
    for load in loads:
        yield (load,)


def _elided(context: Context, name: str, chosen: tuple[Leaf, ...]) -> Program | None:
    """The program without the copy, if staging it again gives the program back."""
    program = context.program
    first, last = chosen[0].op, chosen[-1].op
    mine, theirs = (
        (first.target, first.reads[0]) if first.target.array == name else (first.reads[0], first.target)
    )
    if theirs.indirect:  # staging looks nothing up
        return None
    images: dict[int, int] = {}  # which dimension of the copy an iterator of the copy loops selects
    for k, form in enumerate(mine.index):
        # implied: staging again would index the copy by the loops alone
        if isinstance(form, Indirect) or len(form.terms) != 1 or form.terms[0][1] != 1 or form.const:
            return None
        images[form.terms[0][0]] = k

    def change(access: Access, *_: object) -> Access:
        selected = {d: access.index[k] for d, k in images.items()}
        return Access(theirs.array, tuple(composed(affine(form), selected) for form in theirs.index))

    depth = sum(1 for d in program.buffer_of[name].dims if not d.materialised)
    if any(d >= depth and d not in images for form in theirs.index for d in form.depths):
        return None
    body = program.body
    for leaf in sorted(chosen, key=lambda leaf: leaf.path, reverse=True):
        body = without(body, leaf.path)
    result = program.edit(body=map_accesses(body, change, (name,)))
    again: _Stage = StageRead() if last.target.array == name else StageWrite()
    region = chosen[0].path[:depth]
    place: Place | str = ROOT
    if region:
        if not isinstance(result.find(region), Scope):
            return None
        place = place_of(result, region)
    redone = again.plan(replace(context, program=result), (theirs.array, place, name))
    redone = redone.make() if isinstance(redone, Edit) else redone
    if not isinstance(redone, Program) or redone.body != program.body:
        return None
    kept_buffer, made = program.buffer_of[name], redone.buffer_of[name]
    if replace(made, location=kept_buffer.location) != kept_buffer:
        return None
    return result
