"""Tiles for tensor cores: a ``:m`` scope is the share of one thread in what its warp multiplies at once.

The warp's 32 threads are the two innermost block scopes of a phase, 8 for rows and 4 for columns. Each adds
up 2 x 2 results of a tile of 16 x 8 over 8 terms: its rows lie 8 apart, its columns side by side. So the
instruction spreads a tile over its lanes, and the program's own text says which thread holds which result.
Source: PTX ISA 8.7, mma.sync.aligned.m16n8k8 of .tf32.
"""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import may_regroup
from dojo_core.program.gpu import PRIVATE, lanes
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Leaf, Op, Path, Program, Scope
from dojo_core.program.validity import Fault

THREADS = (8, 4)  # of a warp: rows, and pairs of columns
SHARE = (2, 2, 8)  # of a thread: rows, columns, terms


@dataclass(frozen=True)
class Tile:
    """The operation, its operand that has the rows and that of the columns; the depths of the block scope
    over rows (the one over columns is in it) and of the ``:m`` scope."""

    op: Op
    left: Access
    right: Access
    block: int
    depth: int

    def result(self, row: int, column: int) -> Access:
        """One of a thread's own results."""
        return self.op.target.substitute({self.depth: Affine((), row), self.depth + 1: Affine((), column)})

    def left_term(self, row: int, term: int) -> Access:
        """What a thread brings to its warp of the left operand: 2 of the 8 terms, for each of its rows."""
        return self.left.substitute({self.depth: Affine((), row), self.depth + 2: self._term(term)})

    def right_term(self, term: int) -> Access:
        """Of the right operand: the same terms, for the column that has the number of the thread's row."""
        column = {self.block + 1: Affine(), self.depth + 1: Affine.iterator(self.block)}
        return self.right.substitute({**column, self.depth + 2: self._term(term)})

    def _term(self, term: int) -> Affine:
        return Affine.iterator(self.block + 1) + 4 * term


def tile(program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], policy: str) -> Tile | Fault:
    """A ``:m`` scope as a tile, or the first of ``map_tensor_core``'s conditions that it does not meet."""

    def fault(code: str, sentence: str) -> Fault:
        return Fault(code, "", "", sentence, (path,))

    phase = [depth for depth, s in enumerate(above) if s.mark == "b"]
    threads = tuple(above[depth].size for depth in phase[-2:])
    if threads != THREADS or lanes(above[phase[0]]) > 1:  # 2
        return fault(
            Code.TILE_PLACE,
            "A tile of tensor cores stands in a phase whose two innermost block scopes are of 8 and 4, "
            "a warp, and in no warp scope.",
        )
    nest, node = [scope], scope.body[0]
    while isinstance(node, Scope) and len(nest[-1].body) == 1 and not node.mark:
        nest, node = [*nest, node], node.body[0]
    if not isinstance(node, Op) or len(nest[-1].body) > 1 or tuple(s.size for s in nest) != SHARE:  # 3
        return fault(
            Code.INSTRUCTION_SHAPE,
            "A thread's share of a tile is a nest of 2 rows, 2 columns and 8 terms, unmarked within, around "
            "one operation.",
        )
    dtypes = {program.buffer_of[access.array].dtype for access in node.elements}
    if (node.accumulate, node.function) != ("+", "*") or len(node.sources) != 2 or node.guard:  # 4
        return fault(Code.INSTRUCTION_OPERATION, "Tensor cores add up products of two arrays, unguarded.")
    if dtypes != {"f32"}:
        return fault(Code.INSTRUCTION_DTYPE, "Tensor cores add up products of f32, rounded to TF32, in f32.")
    if not all(_is_tf32(program, access.array) for access in node.sources):
        return fault(
            Code.NOT_ROUNDED,
            "Tensor cores multiply numbers of TF32: each factor comes from an array that tf32(...) alone "
            "writes (stage_read, then round_tf32).",
        )
    leaf = Leaf(node, (*path, *(0,) * len(SHARE)), (*above, *nest))
    if not may_regroup(program, leaf, policy):  # 5
        return fault(Code.WARP_REGROUP, "The policy strict keeps the order of this sum: tensor cores do not.")
    depth, block = len(above), phase[-2]
    one, two = node.sources
    sides = (one, two) if _takes(one, block, depth) else (two, one)
    found = Tile(node, *sides, block, depth)
    private = [a.array for a in sides if program.buffer_of[a.array].location in PRIVATE]
    if private:  # 6
        return fault(
            Code.INSTRUCTION_ACCESS,
            f"{private[0]} is a thread's own, and its warp takes it from memory: put it into shared memory.",
        )
    if node.indirect or not _takes(found.left, block, depth) or not _takes_columns(found.right, block, depth):
        return fault(
            Code.INSTRUCTION_ACCESS,
            f"One factor goes by rows and terms alone ({{{block}}}, {{{depth}}}, {{{depth + 2}}}), the other "
            f"by terms and columns, numbered {{{block + 1}}}*2+{{{depth + 1}}}.",
        )
    if any(form.uses(depth + 2) for form in node.target.index):
        return fault(Code.INSTRUCTION_ACCESS, f"{node.target} must be one result for all 8 terms.")
    return found


def _is_tf32(program: Program, array: str) -> bool:
    """Is all that an array holds rounded to TF32?"""
    writes = [leaf.op for leaf in program.leaves if leaf.op.target.array == array]
    return bool(writes) and all(op.function == "tf32" and not op.accumulate for op in writes)


def _takes(access: Access, block: int, depth: int) -> bool:
    """Does it hang on no column, apart from those that all of a warp share?"""
    return not any(form.uses(block + 1) or form.uses(depth + 1) for form in access.index)


def _takes_columns(access: Access, block: int, depth: int) -> bool:
    """Does it hang on no row, and on columns by their number?"""
    return all(
        not form.uses(block)
        and not form.uses(depth)
        and form.coefficient(block + 1) == 2 * form.coefficient(depth + 1)
        for form in map(affine, access.index)
    )
