"""Sums that gcc must not vectorize by itself.

gcc 12 takes two or more additions to one floating-point sum in a loop for one reduction, and adds wrong
elements where they are read in descending order: ``s += x[2*i + 1]; s += x[2*i];``, with -O2 and -O3, f32 and
f64, straight or through other scalars (``tests/test_codegen.py``). Ascending, or in integers, it is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dojo_core.program.affine import Affine

BARRIER = '__asm__ volatile("");  // gcc 12 would vectorize the sums of this loop wrongly'
Read = tuple[str, Affine]  # a buffer and the number of the cell in it


@dataclass(frozen=True)
class Scalar:
    """One statement: the cell written and the cells read, each as C and as (buffer, number); does it add to
    a floating-point sum?"""

    target: str
    cell: Read | None
    adds: bool
    reads: tuple[tuple[str, Read | None], ...]


def misread(statements: Sequence[Scalar], depth: int) -> bool:
    """Would gcc get the sums of a loop over iterator ``depth`` wrong? Too many yes cost a little speed."""
    sums = Counter(each.target for each in statements if each.adds and _stays(each, depth))
    if not any(count > 1 for count in sums.values()):
        return False
    behind: dict[str, tuple[Read, ...]] = {}  # what scalars were made of
    last: dict[tuple[str, int, str, tuple[tuple[int, int], ...]], int] = {}
    for each in statements:
        read: list[Read] = []
        for name, cell in each.reads:
            read += behind.get(name, ()) if name != each.target else ()
            read += [cell] if cell is not None else []
        if not each.adds:
            behind[each.target] = tuple(read)
        if sums[each.target] < 2:
            continue
        for place, (buffer, flat) in enumerate(read):
            if abs(flat.coefficient(depth)) < 2:
                continue  # neighbours are read in different iterations: no group
            key = each.target, place, buffer, tuple(term for term in flat.terms if term[0] <= depth)
            if flat.const < last.get(key, flat.const):
                return True
            last[key] = flat.const
    return False


def _stays(statement: Scalar, depth: int) -> bool:
    return statement.cell is None or not statement.cell[1].coefficient(depth)
