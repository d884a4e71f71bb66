"""Moments: sums of squares about a mean, taken while memory is read for the mean itself.

``v += (x-u)²`` needs u first, so that x is read twice. About each block's own mean the squares need nothing
but the block, which is in a core's cache while its sum is taken; what the blocks' means are off by is made up
for once u is known. Then x is read once for both, and once more where it is used. Source: T. F. Chan,
G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance", The American Statistician 1983.
"""

from __future__ import annotations

from agents.passes.nests import leaf_at
from agents.passes.structure import depths_of, only, widths_for
from agents.passes.vectors import merge_rows
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import buffer_named
from dojo_core.program.tree import DTYPE_BYTES, Leaf, Program, Provenance
from dojo_core.recipes import RECIPES, Sketch

BLOCK = 6  # of a core's first cache, the share that a block may take: it is there for all its sums
SHORTEST = 8  # vectors of a block


def sum_squares_by_blocks(sketch: Sketch) -> None:
    """Take sums of squares about means block by block, where the policy allows it and a core's cache would
    not keep what is summed from the mean to the squares."""
    if sketch.context.policy != "algebraic":
        return
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        with sketch.attempt():
            _by_blocks(sketch, provenance)


def _by_blocks(sketch: Sketch, operation: Provenance) -> None:
    difference = _difference(sketch.program, leaf_at(sketch, operation))
    x, mean = (sketch.program.buffer_of[access.array] for access in difference.op.reads)
    if x.bytes * DTYPE_BYTES[mean.dtype] // mean.bytes <= sketch.context.target.cache_bytes:
        raise NoSuchPlace("The cache keeps it from the mean to the squares.")
    sums = [leaf.op.provenance for leaf in sketch.program.leaves if _sums(leaf, x.name)]
    row = leaf_at(sketch, operation).scopes[-1]
    width = max(widths_for(sketch.program, [leaf_at(sketch, operation)], sketch.context.target))
    most = sketch.context.target.first_cache_bytes // BLOCK // DTYPE_BYTES[x.dtype]
    whole = row.size % width or row.size > most
    if whole:
        for each in (*sums, operation):
            _one_sum(sketch, each)
        while leaf_at(sketch, operation).scopes[-1].size % width:
            _one_row(sketch)
        _blocks(sketch, leaf_at(sketch, operation).scopes[-1].size, width, most)
    squares = leaf_at(sketch, operation).op.target.array
    means = _expand(sketch, operation)
    if whole:
        totals = {leaf.op.target.array for leaf in sketch.program.leaves if _sums(leaf, x.name)}
        totals.add(squares)
        for op in [leaf.op for leaf in sketch.program.leaves if leaf.op.accumulate]:
            if op.target.array in totals:
                _partial_sums(sketch, op.provenance)
    _join(sketch, sums[0], means)


def _difference(program: Program, leaf: Leaf) -> Leaf:
    """What computes ``d = x - u`` for ``v += d*d``. Raises NoSuchPlace where that is not what a leaf is."""
    operands = leaf.op.reads
    if leaf.op.function != "*" or len(operands) != 2 or operands[0] != operands[1] or not leaf.scopes:
        raise NoSuchPlace("It is no sum of squares.")
    writers = [each for each in program.leaves if each.op.target.array == operands[0].array]
    if len(writers) != 1 or writers[0].op.function != "-" or len(writers[0].op.reads) != 2:
        raise NoSuchPlace("What is squared is no difference.")
    if writers[0].op.reads[0].array not in program.inputs:
        raise NoSuchPlace("It is the difference of no input.")
    return writers[0]


def _sums(leaf: Leaf, array: str) -> bool:
    return leaf.op.accumulate == "+" and not leaf.op.function and leaf.op.reads[0].array == array


def _one_sum(sketch: Sketch, operation: Provenance) -> None:
    """Add at once what is summed by rows first, and then over these: no vector divides a row."""
    partial = leaf_at(sketch, operation).op.target.array
    total = next((leaf for leaf in sketch.program.leaves if _sums(leaf, partial)), None)
    if total is None:
        return
    _join(sketch, operation, total.op.provenance)
    sketch.play("merge_reduction", partial)


def _one_row(sketch: Sketch) -> None:
    """Make one row of two dimensions in every operation that goes over the last two of its arrays."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves]:
        leaf = leaf_at(sketch, provenance)
        depth = len(leaf.scopes) - 2
        if depth >= 0:
            for array in dict.fromkeys(access.array for access in (leaf.op.target, *leaf.op.reads)):
                merge_rows(sketch, provenance, array, depth)
            last = [a.index[-1] for a in leaf_at(sketch, provenance).op.reads if a.index]
            if any(form.uses(depth) and form.uses(depth + 1) for form in last):
                sketch.play("merge_scopes", sketch.place(leaf.path[: depth + 1]))


def _blocks(sketch: Sketch, row: int, width: int, most: int) -> None:
    """Split all scopes over a row, so that every pass over it goes block by block."""
    block = only(n for n in range(most // width * width, SHORTEST * width - 1, -width) if row % n == 0)
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves]:
        leaf = leaf_at(sketch, provenance)
        if leaf.scopes and leaf.scopes[-1].size == row:
            sketch.play("split_scope", sketch.place(leaf.path[:-1]), block)


def _join(sketch: Sketch, operation: Provenance, other: Provenance) -> None:
    """Join the scopes around two operations, all that the second has."""
    for depth in range(len(leaf_at(sketch, other).scopes)):
        first, second = (leaf_at(sketch, each).path[: depth + 1] for each in (operation, other))
        RECIPES["fuse_with"].run(sketch, sketch.place(first), sketch.place(second))


def _partial_sums(sketch: Sketch, operation: Provenance) -> None:
    """Sums of blocks, and of these by the scopes around: no sum gets so long that it loses digits."""
    leaf = leaf_at(sketch, operation)
    for depth in [d for d in range(len(leaf.scopes) - 1) if d not in depths_of(leaf.op.target)]:
        place = sketch.place(leaf_at(sketch, operation).path)
        name = fresh_name(sketch.program, "b" + place.array[:20])
        sketch.play("split_reduction", Place(place.array, place.number, depth), name)


def _expand(sketch: Sketch, operation: Provenance) -> Provenance:
    """The squares about the means of blocks; what these are off by gets a nest of its own behind, so that the
    sums are taken before the mean of all is known. Gives what sums up these means."""
    leaf = leaf_at(sketch, operation)
    place = sketch.place(leaf.path)
    name = fresh_name(sketch.program, "o")
    sketch.play("expand_moment", Place(place.array, place.number, len(leaf.scopes) - 1), name)
    shift = only(leaf for leaf in sketch.program.leaves if leaf.op.target.array == name + "w")
    for array in (name, name + "t"):
        sketch.play("set_location", array, "heap")
        for dim in range(len(buffer_named(sketch.program, array).dims)):
            sketch.play("materialise_dims", array, dim)
    for depth in reversed(range(len(shift.scopes))):
        path = leaf_at(sketch, shift.op.provenance).path[: depth + 2]
        if path[-1] > 0:
            sketch.play("fission_scope", sketch.place(path[:-1]), sketch.place(path))
    return only(
        o for o in sketch.program.leaves if o.op.target.array == name and o.op.accumulate
    ).op.provenance
