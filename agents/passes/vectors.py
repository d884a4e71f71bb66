"""Vectors: innermost scopes become unrolled vector instructions, reductions get partial results in lanes.

A scope of 300 becomes ``6 3:u 16:v`` and, for what no vector of 16 divides, ``8:v`` and ``4:v``.
"""

from __future__ import annotations

from agents.passes.structure import (
    below,
    body_at,
    contiguous,
    innermost,
    leaf_of,
    only,
    scope_of,
    uses,
    widths_for,
)
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.program.marks import APART
from dojo_core.program.tables import affine
from dojo_core.program.tree import LONG_FUNCTIONS, Path, Provenance
from dojo_core.recipes import Sketch

COPIES = (4, 5, 3, 6, 2, 7, 8)  # vectors side by side, the first that fits: they hide the latency of a sum
SMALL = 8  # iterations of a loop over vectors that are written out whole


def vectorise_all(sketch: Sketch) -> None:
    """Vectorise every innermost scope that allows it."""
    waiting = [sketch.provenance(path) for path in innermost(sketch.program)]
    while waiting:
        waiting += vectorise(sketch, waiting.pop(0))


def vectorise(sketch: Sketch, provenance: Provenance) -> list[Provenance]:
    """Vectorise one innermost scope; gives what was cut off, to be vectorised by itself.

    Nothing happens where no operation in it has a vector form there.
    """
    rest: list[Provenance] = []
    with sketch.attempt():
        path = _inner_contiguous(sketch, sketch.path(provenance))
        path = _lengthen(sketch, path)
        _materialise(sketch, path)
        known = _common_widths(sketch, path)
        rest = _with_room(sketch, path, known)
        scope = scope_of(sketch.program, path)
        widths = [w for w in known if w <= scope.size]
        if not widths:
            raise NoSuchPlace("The scope is shorter than a vector.")
        width = widths[0]
        if scope.size % width:
            if sketch.may("cut_scope", sketch.place(path), scope.size // width * width):
                rest.append(sketch.provenance((*path[:-1], path[-1] + 1)))
            else:
                width = next((w for w in widths if scope.size % w == 0), 0)
                if not width:
                    raise NoSuchPlace("No vector divides the scope.")
        _lanes(sketch, path, width)
    return rest


def _with_room(sketch: Sketch, path: Path, widths: tuple[int, ...]) -> list[Provenance]:
    """Run on, with long functions, as far as one vector takes the rest of a scope, in temporaries and copies
    of results with room for it; gives the scopes that store such copies. A single number takes as long.

    What is read has to have that room already, such as the rows of a convolution's result (dense.py).
    """
    stores: list[Provenance] = []
    with sketch.attempt():
        scope, depth = scope_of(sketch.program, path), len(path) - 1
        rest = scope.size % max(widths, default=1)
        leaves = below(sketch.program, path)
        if rest in (0, *widths) or not any(leaf.op.function in LONG_FUNCTIONS for leaf in leaves):
            raise NoSuchPlace("A vector takes it, or it is quick.")
        if any(leaf.op.target.indirect for leaf in leaves):
            raise NoSuchPlace("Its results lie where an array says.")
        longer = scope.size - rest + min(w for w in widths if w > rest)
        for array in dict.fromkeys(leaf.op.target.array for leaf in leaves):
            name = array
            if array in sketch.program.interface:
                name = fresh_name(sketch.program, "t" + array[:20])
                sketch.play("stage_write", array, sketch.place(path[:-1]) if depth else "root", name)
            target = only(
                leaf for leaf in below(sketch.program, path) if leaf.op.target.array == name
            ).op.target
            buffer = sketch.program.buffer_of[name]
            for k, form in enumerate(map(affine, target.index)):
                more = form.coefficient(depth) * (longer - scope.size)
                if more:
                    sketch.play("pad_dim", buffer.name, k, buffer.dims[k].size + more)
            if name != array:
                copy = only(
                    o
                    for o in sketch.program.leaves
                    if name in {a.array for a in o.op.reads} and o.op.target.array == array
                )
                stores.append(copy.scopes[-1].provenance)
        sketch.play("pad_scope", sketch.place(path), longer, "free")
        return stores
    return []


def _common_widths(sketch: Sketch, path: Path) -> tuple[int, ...]:
    """The lanes of vectors for what may have a scope as its lanes: for all of it, else for the first."""
    program, target = sketch.program, sketch.context.target
    fit = [leaf for leaf in below(sketch.program, path) if contiguous(program, leaf, len(path) - 1, APART)]
    fit = [leaf for leaf in fit if widths_for(program, [leaf], target)]
    return widths_for(program, fit, target) or widths_for(program, fit[:1], target) if fit else ()


def _lengthen(sketch: Sketch, path: Path) -> Path:
    """Make one scope of two rows of which no vector divides one, where together they are a longer row."""
    scope, around = scope_of(sketch.program, path), path[:-1]
    if not around or not any(scope.size % w and w <= scope.size for w in _common_widths(sketch, path)):
        return path
    outer = scope_of(sketch.program, around)
    if len(outer.body) > 1 or outer.mark:
        return path
    merged = False
    with sketch.attempt():
        for leaf in below(sketch.program, path):
            for array in dict.fromkeys(a.array for a in (leaf.op.target, *leaf.op.reads)):
                merge_rows(sketch, leaf.op.provenance, array, len(around) - 1)
        sketch.play("merge_scopes", sketch.place(around))
        if len(around) > 1 and not body_at(sketch.program, around[:-1])[1:]:
            around = _lengthen(sketch, around)
        merged = True
    return around if merged else path


def merge_rows(sketch: Sketch, operation: Provenance, array: str, depth: int) -> None:
    """Make one dimension of the two that the scopes at a depth and below go over in an operation."""
    leaf = leaf_of(sketch.program, operation)
    assert leaf is not None
    for access in (leaf.op.target, *leaf.op.reads):
        if access.array == array:
            for k in range(len(access.index) - 1):
                if access.index[k].uses(depth) and access.index[k + 1].uses(depth + 1):
                    sketch.play("merge_dims", sketch.program.buffer_of[array].name, k)
                    return


def _materialise(sketch: Sketch, path: Path) -> None:
    """Temporaries keep an element for each iteration, so that each operation can have a scope of its own."""
    depth = len(path) - 1
    for leaf in below(sketch.program, path):
        for access in (leaf.op.target, *leaf.op.reads):
            buffer = sketch.program.buffer_of[access.array]
            for k, form in enumerate(access.index):
                if form.uses(depth) and not buffer.dims[k].materialised:
                    if buffer.location == "register":
                        sketch.may("set_location", buffer.name, "stack")
                    # What the stack has no room for is on the heap until storage.py shrinks it to a vector.
                    if not sketch.may("materialise_dims", buffer.name, k):
                        sketch.may("set_location", buffer.name, "heap")
                        sketch.may("materialise_dims", buffer.name, k)


def _inner_contiguous(sketch: Sketch, path: Path) -> Path:
    """The innermost scope, after interchanges where another of its band has its iterations side by side."""
    if any(contiguous(sketch.program, leaf, len(path) - 1) for leaf in below(sketch.program, path)):
        return path
    around = path
    while len(around) > 1 and not sketch.program.scopes_above(around)[-1].mark:
        around = around[:-1]
        if len(scope_of(sketch.program, around).body) > 1:
            break
        if all(contiguous(sketch.program, leaf, len(around) - 1) for leaf in below(sketch.program, path)):
            for depth in range(len(around), len(path)):
                sketch.play("interchange", sketch.place(path[:depth]))
            return path
    if any(contiguous(sketch.program, leaf, len(path) - 1, APART) for leaf in below(sketch.program, path)):
        return path
    raise NoSuchPlace("No scope of the nest has its iterations side by side.")


def _lanes(sketch: Sketch, path: Path, width: int) -> None:
    """Make a scope, which the width divides, a loop over unrolled vectors. Raises where nothing is gained."""
    vectors = scope_of(sketch.program, path).size // width
    copies = vectors if vectors <= COPIES[0] else next((c for c in COPIES if vectors % c == 0), 1)
    unrolled: Provenance | None = None
    if 1 < copies < vectors:
        sketch.play("split_scope", sketch.place(path), copies * width)
        path = (*path, 0)
    if vectors > 1:
        sketch.play("split_scope", sketch.place(path), width)
        unrolled = sketch.provenance(path) if copies > 1 else None
        path = (*path, 0)
    lanes = sketch.provenance(path)
    partial: list[str] = []
    for operation in [leaf.op.provenance for leaf in below(sketch.program, path)]:
        partial += _split_reduction(sketch, operation, lanes, unrolled)
    done = separate_lanes(sketch, lanes)
    if not done:
        raise NoSuchPlace("No operation of the scope has a vector form.")
    if unrolled is not None:
        sketch.may("unroll", sketch.place(sketch.path(unrolled)))
    _vectorise_partial(sketch, partial)


def _split_reduction(
    sketch: Sketch, operation: Provenance, lanes: Provenance, unrolled: Provenance | None
) -> list[str]:
    """Partial results for each lane, and for each vector that is unrolled; the names of their arrays."""
    names: list[str] = []
    for scope in (lanes, unrolled):
        leaf = leaf_of(sketch.program, operation)
        if leaf is None or scope is None or not leaf.op.accumulate:
            continue
        depth = len(sketch.path(scope)) - 1
        if uses(leaf.op.target, depth):
            continue
        place = sketch.place(leaf.path)
        name = fresh_name(sketch.program, ("o" if names else "q") + leaf.op.target.array.lstrip("oq")[:20])
        if sketch.may("split_reduction", Place(place.array, place.number, depth), name):
            names.append(name)
    return names


def separate_lanes(sketch: Sketch, lanes: Provenance) -> int:
    """One scope of lanes for each operation, vectorised where possible; how many were."""
    path, done = sketch.path(lanes), 0
    while True:
        more = len(scope_of(sketch.program, path).body) > 1
        if more and not sketch.may("fission_scope", sketch.place(path), sketch.place((*path, 1))):
            return done
        done += sketch.may("vectorize", sketch.place(path))
        if not more:
            return done
        path = (*path[:-1], path[-1] + 1)


def _vectorise_partial(sketch: Sketch, names: list[str]) -> None:
    """Vectorise and unroll the loops that set partial results and combine them."""
    provenances = [
        leaf.scopes[-1].provenance
        for leaf in sketch.program.leaves
        if leaf.scopes and ({leaf.op.target.array, *(a.array for a in leaf.op.reads)} & set(names))
    ]
    for provenance in dict.fromkeys(provenances):
        write_out(sketch, provenance)


def write_out(sketch: Sketch, provenance: Provenance, most: int = SMALL) -> None:
    """Vectorise a scope of one operation where that is legal, and unroll the loops that hold it alone."""
    path = sketch.path(provenance)
    scope = scope_of(sketch.program, path)
    if scope.mark or not sketch.may("vectorize", sketch.place(path)):
        return
    copies = 1
    while len(path) > 1:
        path = path[:-1]
        around = scope_of(sketch.program, path)
        copies *= around.size
        if around.mark or len(around.body) > 1 or copies > most:
            return
        sketch.may("unroll", sketch.place(path))
