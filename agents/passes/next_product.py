"""The next product of a batch is asked for while one is summed.

Each product of a batch comes from memory, and its first tiles would wait for all of it. A line or two of it
for each block of terms, over all tiles of the product before, keeps memory at work; many at once, or where
tiles begin and end, would keep the sums waiting. Source: the recorded line of bmm.
"""

from __future__ import annotations

from collections.abc import Iterator

from agents.passes.structure import LINE, depths_of, only, uses
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.affine import Affine
from dojo_core.program.tables import affine
from dojo_core.program.tree import DTYPE_BYTES, Access, Leaf, Program
from dojo_core.recipes import Sketch

MOST_ROWS = 16  # of an operand for each tile
MOST_LINES = 4  # of a row for each panel


def ask_for_next_product(sketch: Sketch) -> None:
    """Ask for the next operands of each product that is one of a batch, tile by tile."""
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        with sketch.attempt():
            leaf = only(each for each in sketch.program.leaves if each.op.provenance == provenance)
            _ask(sketch, leaf)


def _ask(sketch: Sketch, leaf: Leaf) -> None:
    """Raises NoSuchPlace where it is no product of a batch, or a cache has room for all products."""
    program, target = sketch.program, sketch.context.target
    loops = [d for d, scope in enumerate(leaf.scopes) if not scope.mark]
    tiled = program.buffer_of[leaf.op.target.array].location == "register" and len(leaf.op.reads) == 2
    if not tiled or len(loops) < 4 or uses(leaf.op.target, loops[-1]):
        raise NoSuchPlace("It is no product in tiles.")
    outer, panels, tiles, terms = loops[-4:]
    operands = [_source(program, access) for access in leaf.op.reads]
    for access in operands:
        buffer = program.buffer_of[access.array]
        one = buffer.bytes
        for depth in depths_of(access) & set(range(panels)):
            one //= leaf.scopes[depth].size
        if not uses(access, outer) or one <= target.first_cache_bytes or buffer.bytes <= target.cache_bytes:
            raise NoSuchPlace("It is there already, or all products share it.")
    rows = [-(-_shape(program, access)[0] // leaf.scopes[tiles].size) for access in operands]
    blocks = max(rows)
    size = leaf.scopes[terms].size
    if blocks > MOST_ROWS or size % blocks or blocks == size:
        raise NoSuchPlace("Its terms do not go into as many blocks.")
    lines = [list(_lines(program, leaf, access, panels)) for access in operands]
    sketch.play("split_scope", sketch.place(leaf.path[: terms + 1]), size // blocks)
    place = sketch.place((*leaf.path[: terms + 1], 0, *leaf.path[terms + 1 :]))
    for access, each, columns in zip(operands, rows, lines, strict=True):
        around = tuple(affine(form) for form in access.index[:-2])
        row = Affine.iterator(tiles) * each + Affine.iterator(terms)
        for column in columns:
            following = (*around[:-1], around[-1] + 1, row, column)
            sketch.play("prefetch", place, str(Access(access.array, following)))


def _source(program: Program, access: Access) -> Access:
    """What is read, or where it is packed, what the panel is copied from. Raises NoSuchPlace."""
    if access.array in program.inputs:
        return access
    copy = only(leaf for leaf in program.leaves if leaf.op.target.array == access.array)
    if copy.op.function or len(copy.op.reads) != 1 or copy.op.reads[0].array not in program.inputs:
        raise NoSuchPlace("It is made, not read.")
    return copy.op.reads[0]


def _shape(program: Program, access: Access) -> tuple[int, int]:
    """Rows and columns of the matrix that an operand is of a batch of. Raises NoSuchPlace."""
    if len(access.index) < 3 or access.indirect:
        raise NoSuchPlace("It is no batch of matrices.")
    rows, columns = program.buffer_of[access.array].dims[-2:]
    return rows.size, columns.size


def _lines(program: Program, leaf: Leaf, access: Access, panels: int) -> Iterator[Affine]:
    """The columns of a row that each panel asks for, the first of each line."""
    width = LINE // DTYPE_BYTES[program.buffer_of[access.array].dtype]
    share = -(-_shape(program, access)[1] // leaf.scopes[panels].size // width) * width
    if share > MOST_LINES * width:
        raise NoSuchPlace("Panels are too few to ask for all of a row.")
    for first in range(0, share, width):
        yield Affine.iterator(panels) * share + first
