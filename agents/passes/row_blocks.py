"""Row blocks: what a product makes for others is made and used block by block of rows, while a cache has it.

In ``softmax(q·kᵀ)·v`` the tiles of the first product go over all rows for one panel of columns, while softmax
and the second product need all columns of a row: all of ``q·kᵀ`` would lie between them. Where blocks of rows
are outermost, in the product and in all that follows it row by row, only a block of it does. The panels,
which each block reads anew, are packed before. Where only the cache that cores share has room for these, a
block has more rows, so that there is something to compute while they come.
"""

from __future__ import annotations

import math

from agents.passes.structure import scope_of
from agents.passes.threads import BALANCED, balance
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.storage import buffer_named, temporaries
from dojo_core.program.affine import Affine
from dojo_core.program.target import lanes_of
from dojo_core.program.tree import Leaf, Provenance
from dojo_core.recipes import Sketch

BLOCK = 16  # of a core's cache, the share that a block of one array is to take
LARGE = 6  # the share that the smallest block may take, where the tiles of a nest divide no other
PANELS = 2  # of it the share that the panels may take
FROM_SHARED = 12  # rows of a block at least where panels come from the cache that cores share, ever again
LARGER = 3  # of a core's cache, the share that such a block may take
FAR = 8  # times a core's cache: what a product makes of no more the shared cache serves as well


def block_rows(sketch: Sketch) -> None:
    """Give every product whose results outgrow a cache, and what uses them row by row, blocks of rows."""
    for name in [buffer.name for buffer in temporaries(sketch.program)]:
        for shared in (False, True):
            before = len(sketch.moves)
            with sketch.attempt():
                _block(sketch, name, shared)
            if len(sketch.moves) > before:
                break


def _block(sketch: Sketch, name: str, shared: bool) -> None:
    """``shared``: with panels that come from the cache that cores share, for blocks of more rows."""
    buffer, target = buffer_named(sketch.program, name), sketch.context.target
    dim = len(buffer.dims) - 2
    if dim < 0 or len(buffer.arrays) != 1 or not _tiled(sketch, name):
        raise NoSuchPlace("No tiles write rows of it.")
    row = buffer.bytes // math.prod(d.size for d in buffer.dims[:-1])
    rows, share = buffer.dims[dim].size, LARGER if shared else LARGE
    wished, most = (target.cache_bytes // n // row for n in (BLOCK, share))
    if rows <= wished:
        raise NoSuchPlace("The cache has room for all of it.")
    if shared and rows * row < FAR * target.cache_bytes:
        raise NoSuchPlace("The shared cache has room for all of it.")
    arrays, scopes = _chain(sketch, name, dim)
    steps = math.lcm(*scopes.values())
    outer = [d.size for d in buffer.dims[:dim]]
    fitting = [
        size
        for size in range(steps, most + 1, steps)
        if size >= (FROM_SHARED if shared else steps)
        and rows % size == 0
        and any(balance(n, target.threads) >= BALANCED for n in (*outer, rows // size))
    ]
    if not fitting:
        raise NoSuchPlace("No block divides the rows, and these among threads.")
    size = max((each for each in fitting if each <= wished), default=fitting[0])
    packed = set[str]()
    for provenance, step in scopes.items():
        path = sketch.path(provenance)
        if size > step:
            sketch.play("split_scope", sketch.place(path), size // step)
        packed |= outwards(sketch, sketch.provenance(path), dim)
    for array, along in arrays.items():
        sketch.play("split_dim", array, along, size)
        _align(sketch, array, along + 1)
    cache = target.shared_cache_bytes // target.threads if shared else target.cache_bytes
    if sum(buffer_named(sketch.program, each).bytes for each in packed) > cache // PANELS:
        raise NoSuchPlace("No cache would keep the panels from block to block.")


def _align(sketch: Sketch, array: str, rows: int) -> None:
    """Let the rows of an array begin where vectors do: a vector in two lines of a cache is two accesses."""
    buffer = buffer_named(sketch.program, array)
    last = len(buffer.dims) - 1
    width, size = max(lanes_of({buffer.dtype}, sketch.context.target), default=1), buffer.dims[last].size
    if last != rows and size > width and size % width:
        sketch.may("pad_dim", array, last, -(-size // width) * width)


def _tiled(sketch: Sketch, name: str) -> bool:
    """Is an array written beside sums in registers, and read elsewhere too?"""
    leaves = sketch.program.leaves
    roots = {leaf.path[0] for leaf in leaves if leaf.op.target.array == name}
    summed = {
        leaf.path[0]
        for leaf in leaves
        if leaf.op.accumulate and sketch.program.buffer_of[leaf.op.target.array].location == "register"
    }
    read = {leaf.path[0] for leaf in leaves if name in {a.array for a in leaf.op.reads}}
    return bool(roots) and roots <= summed and bool(read - roots)


def _chain(sketch: Sketch, name: str, dim: int) -> tuple[dict[str, int], dict[Provenance, int]]:
    """What goes along an array's rows: temporaries, each with the dimension that does, and in each nest the
    outermost scope over rows, with how many of them one iteration has.

    Raises NoSuchPlace where the rows are used otherwise.
    """
    program = sketch.program
    arrays, scopes = {name: dim}, dict[Provenance, int]()
    free = {buffer.name for buffer in temporaries(program) if len(buffer.arrays) == 1}
    for leaf in program.leaves:
        for access in (*leaf.op.reads, leaf.op.target):
            if access.array in arrays:
                depth, step = _rows(leaf, access.index[: arrays[access.array] + 1], dim)
                scopes[leaf.scopes[depth].provenance] = step
                form = access.index[arrays[access.array]]
                target = leaf.op.target
                along = [k for k, other in enumerate(target.index) if other == form]
                if target.array in free and target.array not in arrays and along:
                    arrays[target.array] = along[0]
    return arrays, scopes


def _rows(leaf: Leaf, index: tuple[object, ...], outer: int) -> tuple[int, int]:
    """The depth of the outermost scope over rows, and how many rows one iteration of it has."""
    for depth, form in enumerate(index[:outer]):
        if form != Affine.iterator(depth):
            raise NoSuchPlace("The scopes around its rows are not the outermost.")
    form = index[-1]
    if not isinstance(form, Affine) or not form.terms or form.const:
        raise NoSuchPlace("It is not used row by row.")
    depth, step = max(form.terms, key=lambda term: term[1])
    if sum((leaf.scopes[d].size - 1) * c for d, c in form.terms) + 1 != leaf.scopes[depth].size * step:
        raise NoSuchPlace("Its rows do not follow each other.")
    return depth, step


def outwards(sketch: Sketch, scope: Provenance, depth: int) -> set[str]:
    """Bring a scope out to a depth; gives the panels that are packed before it now."""
    packed = set[str]()
    while len(sketch.path(scope)) - 1 > depth:
        path = sketch.path(scope)
        around = path[:-1]
        if path[-1] > 0:
            for array in _made_before(sketch, path):
                packed.add(array)
                _keep_all(sketch, array, len(around) - 1)
            sketch.play("fission_scope", sketch.place(around), sketch.place(path))
            path = sketch.path(scope)
            around = path[:-1]
        if len(scope_of(sketch.program, around).body) > 1:
            sketch.play("fission_scope", sketch.place(around), sketch.place((*around, 1)))
        sketch.play("interchange", sketch.place(sketch.path(scope)[:-1]))
    return packed


def _made_before(sketch: Sketch, path: tuple[int, ...]) -> set[str]:
    """What is written in the scope around a node before it, and read in it."""
    beside = [leaf for leaf in sketch.program.leaves if leaf.path[: len(path) - 1] == path[:-1]]
    made = {leaf.op.target.array for leaf in beside if leaf.path[len(path) - 1] < path[-1]}
    return made & {a.array for leaf in beside if leaf.path[: len(path)] == path for a in leaf.op.reads}


def _keep_all(sketch: Sketch, array: str, depth: int) -> None:
    """Keep an element of an array for each iteration of the scope at a depth, where there is room for all."""
    buffer = sketch.program.buffer_of[array]
    if buffer.location == "stack":
        sketch.play("set_location", buffer.name, "heap")
    writer = next(leaf for leaf in sketch.program.leaves if leaf.op.target.array == array)
    for k, form in enumerate(writer.op.target.index):
        if form.uses(depth) and not buffer.dims[k].materialised:
            sketch.play("materialise_dims", buffer.name, k)
