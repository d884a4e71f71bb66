"""What is done to a product, done to its tile: bias, activation, residual, scaling, conversion.

``y[i,j] = max(c[i,j] + b[j], 0)`` behind a tiled product ``c`` would write all of ``c`` and read it back. So
the nests that use a tile's results element by element get the tile's own scopes and are joined with it.
Simple functions take the sums from the registers, others from a copy of the tile in the first-level cache.
What makes an operand that is packed is made while it is packed, in the same way.
"""

from __future__ import annotations

from agents.passes.fusion import bring_together
from agents.passes.nests import isolate, leaf_at, order, shared_scopes
from agents.passes.structure import only, scope_of
from agents.passes.vectors import merge_rows, separate_lanes
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.program.affine import Affine
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Leaf, Provenance
from dojo_core.recipes import Sketch

# A few instructions each: their code may be written out for each vector of a tile.
SIMPLE = frozenset(
    ("", "+", "-", "*", "/", "max", "min", "abs", "neg", "fma", "select", "sqrt", "floor", "ceil", "trunc",
     "round", "<", "<=", ">", ">=", "==", "!=", "f32", "f64", "i32", "f16", "bf16")
)  # fmt: skip
MOST = 8  # operations that are written out
COPIES = 4  # vectors at most that are worked on side by side where they are not


def attach_epilogues(sketch: Sketch) -> None:
    """Join what uses the results of tiles, element by element, with the tiles."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if _stores_tile(sketch, leaf)]:
        _attach_users(sketch, provenance)


def attach_prologues(sketch: Sketch) -> None:
    """Join what makes an operand, element by element, with the copy that packs it."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if _packs(sketch, leaf)]:
        users = [provenance]
        while users:
            user = users.pop()
            for array in dict.fromkeys(access.array for access in leaf_at(sketch, user).op.reads):
                maker = _maker(sketch, array)
                maker = None if maker is None else _attach(sketch, maker, user, array)
                if maker is not None:
                    _mark_alike(sketch, maker, user)
                    users.append(maker)


def _mark_alike(sketch: Sketch, maker: Provenance, user: Provenance) -> None:
    """Write the rest of a nest out as that of its user is, and join them but for their lanes."""
    with sketch.attempt():
        for depth, scope in enumerate(leaf_at(sketch, user).scopes):
            path = leaf_at(sketch, maker).path[: depth + 1]
            if scope.mark == "u" and leaf_at(sketch, user).path[: depth + 1] != path:
                sketch.play("unroll", sketch.place(path))
                sketch.play("join_scopes", sketch.place(path))
        if leaf_at(sketch, user).scopes[-1].mark == "v":
            sketch.play("vectorize", sketch.place(leaf_at(sketch, maker).path[:-1]))


def _copied(leaf: Leaf) -> Access | None:
    """What an operation copies, if that is all it does."""
    operand = leaf.op.operands[0]
    plain = not leaf.op.function and not leaf.op.accumulate and not leaf.op.guard
    return operand if plain and isinstance(operand, Access) else None


def _beside(sketch: Sketch, leaf: Leaf) -> list[Leaf]:
    return [other for other in sketch.program.leaves if other.path[:1] == leaf.path[:1]]


def _stores_tile(sketch: Sketch, leaf: Leaf) -> bool:
    """Does an operation copy a result out of what its nest sums in, or out of a copy of that?"""
    source = _copied(leaf)
    if source is None or source.array in sketch.program.interface or len(leaf.path) < 2:
        return False
    if any(scope.mark in INSTRUCTIONS for scope in leaf.scopes):  # it takes nothing else
        return False
    writers = [other for other in _beside(sketch, leaf) if other.op.target.array == source.array]
    return any(other.op.accumulate or _copied(other) is not None for other in writers)


def _packs(sketch: Sketch, leaf: Leaf) -> bool:
    """Does an operation copy a panel of a temporary for the sum behind it?"""
    source = _copied(leaf)
    if source is None or source.array in sketch.program.interface or len(leaf.path) < 2:
        return False
    readers = [o for o in _beside(sketch, leaf) if leaf.op.target.array in {a.array for a in o.op.reads}]
    return bool(readers) and all(other.op.accumulate for other in readers)


def _attach_users(sketch: Sketch, store: Provenance) -> None:
    """Join all that follows from a tile's results with its store, and write it out as vectors."""
    attached, refused = list[Provenance](), set[Provenance]()
    while True:
        makers = [*reversed(attached), store]
        user = _user(sketch, makers, refused | {*attached})
        if user is None:
            break
        mover = None
        for maker in makers:
            array = leaf_at(sketch, maker).op.target.array
            if mover is None and array in {a.array for a in leaf_at(sketch, user).op.reads}:
                mover = _attach(sketch, user, maker, array)
        if mover is None:
            refused.add(user)
            continue
        if attached:
            with sketch.attempt():
                _join(sketch, mover, attached[-1])
        attached.append(mover)
    if attached:
        _finish(sketch, store, attached)


def _user(sketch: Sketch, makers: list[Provenance], but: set[Provenance]) -> Provenance | None:
    """The next operation behind those, and no sum, that reads what one of them writes."""
    leaves = [leaf_at(sketch, maker) for maker in makers]
    written, last = {leaf.op.target.array for leaf in leaves}, min(leaf.path for leaf in leaves)
    for leaf in sketch.program.leaves:
        behind = leaf.path > last and leaf.op.provenance not in but and not leaf.op.accumulate
        if behind and leaf.op.target.array not in written and written & {a.array for a in leaf.op.reads}:
            return leaf.op.provenance
    return None


def _maker(sketch: Sketch, array: str) -> Provenance | None:
    """The only operation that writes a temporary, where one alone reads it."""
    leaves = sketch.program.leaves
    writers = [leaf for leaf in leaves if leaf.op.target.array == array]
    readers = [leaf for leaf in leaves if array in {a.array for a in leaf.op.reads}]
    if len(writers) != 1 or len(readers) != 1 or array in sketch.program.interface:
        return None
    return None if writers[0].op.accumulate else writers[0].op.provenance


def _attach(sketch: Sketch, mover: Provenance, anchor: Provenance, array: str) -> Provenance | None:
    """Join an operation's nest with another's, between which the elements of an array go one by one.

    Where the other goes over a part of them, that part is cut off and joined. Gives the operation that was
    joined, None where that is not possible.
    """
    joined: Provenance | None = None
    with sketch.attempt():
        shared = shared_scopes(sketch, mover, anchor)
        isolate(sketch, mover, shared)
        moved = _aligned(sketch, mover, anchor, array, shared)
        _join(sketch, moved, anchor)
        joined = moved
    return joined


def _index(leaf: Leaf, array: str) -> tuple[Affine, ...]:
    """The one place at which an operation accesses an array. Raises NoSuchPlace where there are others."""
    indices = {a.index for a in (leaf.op.target, *leaf.op.reads) if a.array == array}
    if len(indices) != 1:
        raise NoSuchPlace("It takes more than one element of it.")
    forms = indices.pop()
    if not all(isinstance(form, Affine) for form in forms):
        raise NoSuchPlace("Which element it takes is looked up.")
    return tuple(map(affine, forms))


def _aligned(sketch: Sketch, mover: Provenance, anchor: Provenance, array: str, shared: int) -> Provenance:
    """Split, cut and order the scopes of an operation, from a depth on, as those of another are."""
    _one_scope_each(sketch, mover, array, shared)
    forms = _index(leaf_at(sketch, anchor), array)
    scopes = leaf_at(sketch, anchor).scopes
    same: dict[int, Provenance] = {}  # of a depth of the anchor: the mover's scope
    for dim, form in enumerate(forms):
        mine = _index(leaf_at(sketch, mover), array)[dim]
        terms = sorted((t for t in form.terms if t[0] >= shared), key=lambda t: -t[1])
        alone = [t for t in mine.terms if t[0] >= shared]
        if [t for t in form.terms if t[0] < shared] != [t for t in mine.terms if t[0] < shared]:
            raise NoSuchPlace("They differ in scopes around both.")
        if not terms and not alone and form.const == mine.const:
            continue
        if len(alone) != 1 or alone[0][1] != 1 or not terms:
            raise NoSuchPlace("Its elements do not go along one scope.")
        step = 1
        for depth, coefficient in reversed(terms):
            if coefficient != step:
                raise NoSuchPlace("Its elements are not side by side.")
            step *= scopes[depth].size
        along = leaf_at(sketch, mover).scopes[alone[0][0]].provenance
        mover, along = _cut(sketch, mover, along, form.const - mine.const, step, shared)
        path = sketch.path(along)
        for depth, coefficient in terms[:-1]:
            sketch.play("split_scope", sketch.place(path), coefficient)
            same[depth] = sketch.provenance(path)
            path = (*path, 0)
        same[terms[-1][0]] = sketch.provenance(path)
    for depth in range(shared, len(scopes)):
        if depth not in same:
            if scopes[depth].size > 1:
                raise NoSuchPlace("It would be done more than once.")
            path = leaf_at(sketch, mover).path[: shared + 1]
            sketch.play("wrap", sketch.place(path), 1)
            same[depth] = sketch.provenance(path)
    if len(leaf_at(sketch, mover).scopes) != len(scopes):
        raise NoSuchPlace("It goes over more than the elements.")
    order(sketch, mover, [same[depth] for depth in range(shared, len(scopes))])
    return mover


def _one_scope_each(sketch: Sketch, mover: Provenance, array: str, shared: int) -> None:
    """Merge scopes that go along one dimension of an array together."""
    for dim in range(len(_index(leaf_at(sketch, mover), array))):
        while True:
            leaf = leaf_at(sketch, mover)
            terms = [t for t in _index(leaf, array)[dim].terms if t[0] >= shared]
            if len(terms) < 2:
                break
            depth = max(d for d, _ in terms) - 1
            for other in dict.fromkeys(a.array for a in (leaf.op.target, *leaf.op.reads)):
                if other != array:
                    merge_rows(sketch, mover, other, depth)
            sketch.play("merge_scopes", sketch.place(leaf.path[: depth + 1]))


def _cut(
    sketch: Sketch, mover: Provenance, along: Provenance, low: int, size: int, shared: int
) -> tuple[Provenance, Provenance]:
    """Cut off the iterations of a scope from ``low`` on, so many: the operation and the scope of these."""
    whole = scope_of(sketch.program, sketch.path(along)).size
    if low < 0 or low + size > whole:
        raise NoSuchPlace("It goes over fewer elements.")
    if size == whole:
        return mover, along
    leaf = leaf_at(sketch, mover)
    others = [s.provenance for s in leaf.scopes[shared:] if s.provenance != along]
    order(sketch, mover, [along, *others])
    path = sketch.path(along)
    if low:
        sketch.play("cut_scope", sketch.place(path), low)
        path = (*path[:-1], path[-1] + 1)
    if low + size < whole:
        sketch.play("cut_scope", sketch.place(path), size)
    leaf = only(leaf for leaf in sketch.program.leaves if leaf.path[: len(path)] == path)
    cut = leaf.op.provenance, sketch.provenance(path)
    for number in (path[-1] - 1, path[-1] + 1)[not low :]:  # the rest goes along its rows as before
        beside = (*path[:-1], number)
        rest = next((leaf for leaf in sketch.program.leaves if leaf.path[: len(path)] == beside), None)
        if rest is not None:
            columns, *around = [scope.provenance for scope in rest.scopes[shared:]]
            order(sketch, rest.op.provenance, [*around, columns])
    return cut


def _join(sketch: Sketch, mover: Provenance, anchor: Provenance) -> None:
    """Join two nests of scopes alike, as far as these are unmarked: at least one."""
    shared = depth = shared_scopes(sketch, mover, anchor)
    while depth < len(leaf_at(sketch, anchor).scopes) and not leaf_at(sketch, anchor).scopes[depth].mark:
        first, second = sorted(
            (leaf_at(sketch, each) for each in (mover, anchor)), key=lambda leaf: leaf.path
        )
        bring_together(sketch, first.scopes[depth].provenance, second.scopes[depth].provenance)
        first = leaf_at(sketch, first.op.provenance)
        sketch.play("join_scopes", sketch.place(first.path[: depth + 1]))
        depth += 1
    if depth == shared:
        raise NoSuchPlace("It is written out already.")


def _finish(sketch: Sketch, store: Provenance, attached: list[Provenance]) -> None:
    """Vectors of what was joined with a tile; simple functions take the sums from the registers."""
    leaf = leaf_at(sketch, store)
    result = leaf.op.target.array
    if not leaf.scopes[-1].mark:  # it is no tile, but a copy of one
        for operation in attached:
            with sketch.attempt():
                _take(sketch, store, operation)
        return
    depth = next(d for d, scope in enumerate(leaf.scopes) if scope.mark)
    nests: dict[Provenance, list[Provenance]] = {}
    for operation in attached:
        nests.setdefault(leaf_at(sketch, operation).scopes[-1].provenance, []).append(operation)
    for lanes, operations in nests.items():
        separate_lanes(sketch, lanes)
        with sketch.attempt():
            _from_registers(sketch, store, operations, depth)
    for operations in nests.values():
        scopes = leaf_at(sketch, operations[0]).scopes[depth:-1]
        if scopes and not scopes[-1].mark and scopes[-1].size <= COPIES:
            path = leaf_at(sketch, operations[0]).path
            sketch.may("unroll", sketch.place(path[: depth + len(scopes)]))
    region = leaf_at(sketch, attached[0]).path[:depth]
    for array in dict.fromkeys([result, *(leaf_at(sketch, each).op.target.array for each in attached)]):
        written = [leaf for leaf in sketch.program.leaves if leaf.op.target.array == array]
        if len(written) > 1 or array == result:
            with sketch.attempt():
                _keep_apart(sketch, array, sketch.place(region))


def _from_registers(sketch: Sketch, store: Provenance, operations: list[Provenance], depth: int) -> None:
    """Write out the loops over a tile, and use its sums where they are."""
    leaves = [leaf_at(sketch, operation) for operation in operations]
    if len(leaves) > MOST or not {leaf.op.function for leaf in leaves} <= SIMPLE:
        raise NoSuchPlace("Its code would be long.")
    leaf = leaf_at(sketch, store)
    result, lanes = leaf.op.target.array, leaf.scopes[-1]
    for scope in leaves[0].scopes[depth:-1]:
        sketch.play("unroll", sketch.place(sketch.path(scope.provenance)))
    for operation in operations:
        if lanes.mark == "u":  # single numbers, side by side
            sketch.play("unroll", sketch.place(leaf_at(sketch, operation).path[:-1]))
        if result in {a.array for a in leaf_at(sketch, operation).op.reads}:
            _take(sketch, store, operation)


def _take(sketch: Sketch, store: Provenance, operation: Provenance) -> None:
    """Take the result from where the tile has it; it is stored no more where nobody else reads it."""
    array = leaf_at(sketch, store).op.target.array
    sketch.play("forward", sketch.place(leaf_at(sketch, operation).path), array)
    sketch.may("drop_dead", sketch.place(leaf_at(sketch, store).path))


def _keep_apart(sketch: Sketch, array: str, region: Place) -> None:
    """Keep of an array a tile alone. Raises where more of it is used elsewhere."""
    name = fresh_name(sketch.program, "t" + array[:20])
    sketch.play("stage_write", array, region, name)
    copy = only(leaf for leaf in reversed(sketch.program.leaves) if (c := _copied(leaf)) and c.array == name)
    sketch.play("drop_dead", sketch.place(copy.path))
