"""Blocks of rows for products whose rows outgrow a core's cache, so that not each panel reads all of them.

``c[i,j] += a[i,k]*b[k,j]`` is tiled with panels of columns outermost, in each all tiles of rows. Where blocks
of rows are outermost, a block stays in the cache while all panels go by, and comes from memory once. The
panels, which each block reads anew, are packed before.
"""

from __future__ import annotations

import math

from agents.passes.nests import leaf_at
from agents.passes.row_blocks import outwards
from agents.passes.structure import depths_of, uses
from agents.passes.threads import BALANCED, balance
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Program, Provenance
from dojo_core.recipes import Sketch

SHARE = 4  # of a core's cache, the share that a block of rows, or all panels, may take
FEWEST = 16  # tiles in a block that make up for fetching a panel from further away
FEW = 8  # tiles in a block where the cache keeps all panels: lines of as many rows are written at a time


def block_operands(sketch: Sketch) -> None:
    """Give every tiled product whose rows outgrow a core's cache blocks of them."""
    for leaf in sketch.program.leaves:
        if leaf.op.accumulate and sketch.program.buffer_of[leaf.op.target.array].location == "register":
            with sketch.attempt():
                _block(sketch, leaf.op.provenance)


def _block(sketch: Sketch, operation: Provenance) -> None:
    program, leaf, target = sketch.program, leaf_at(sketch, operation), sketch.context.target
    tiles = _tiles(program, leaf)
    size = leaf.scopes[tiles].size
    rows, panels, results = (
        _bytes(program, leaf, tiles, access) for access in _operands(program, leaf, tiles)
    )
    if rows + results <= 2 * target.cache_bytes:
        raise NoSuchPlace("The cache has room for all rows.")
    fewest, most = FEWEST, target.cache_bytes // SHARE * size // rows
    if panels <= target.cache_bytes // SHARE:  # they stay there, while each row is read and written once
        fewest, most = 1, FEW
    fitting = [
        n for n in range(fewest, most + 1) if size % n == 0 and balance(size // n, target.threads) >= BALANCED
    ]
    if not fitting:
        raise NoSuchPlace("No block divides the rows, and these among threads.")
    path = leaf.path[: tiles + 1]
    if fitting[-1] > 1:
        sketch.play("split_scope", sketch.place(path), fitting[-1])
    outwards(sketch, sketch.provenance(path), tiles - 1)


def _tiles(program: Program, leaf: Leaf) -> int:
    """The depth of the scope over tiles of rows, which stands in one over panels."""
    target, reads = leaf.op.target, leaf.op.reads
    summed = [d for d in range(len(leaf.scopes)) if not uses(target, d) and any(uses(a, d) for a in reads)]
    tiles = min(summed, default=0) - 1
    if tiles < 1 or leaf.scopes[tiles - 1].mark or leaf.scopes[tiles].mark:
        raise NoSuchPlace("It is no product in panels.")
    return tiles


def _operands(program: Program, leaf: Leaf, tiles: int) -> tuple[Access, Access, Access]:
    """What is read along the tiles of rows and not along panels, the other way round, and what is written."""
    rows = [a for a in leaf.op.reads if uses(a, tiles) and not uses(a, tiles - 1)]
    panels = [a for a in leaf.op.reads if uses(a, tiles - 1) and not uses(a, tiles)]
    if len(rows) != 1 or len(panels) != 1 or panels[0].array in program.interface:
        raise NoSuchPlace("Its panels are not packed, or do not read the same rows.")
    return rows[0], panels[0], leaf.op.target


def _bytes(program: Program, leaf: Leaf, tiles: int, access: Access) -> int:
    """What is accessed of an array in one iteration of the scopes around panels."""
    inside = [d for d in depths_of(access) if d >= tiles - 1]
    cells = math.prod(leaf.scopes[d].size for d in inside)
    return cells * DTYPE_BYTES[program.buffer_of[access.array].dtype]
