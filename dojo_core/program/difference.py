"""What one program has that another, which it was made from, has not.

An edit shares the nodes and buffers that it leaves alone, so what they have in common is found by identity.
The judges of legality look only at the rest: that is what keeps the cost of a move from growing with the
program.
"""

from __future__ import annotations

from collections.abc import Iterable

from dojo_core.program.nodes import fact
from dojo_core.program.tree import Buffer, Node, Program, Scope, Summary, derived, differing, summary


class Difference:
    """From ``before`` to ``after``; without ``before``, all of ``after``.

    ``old`` and ``new`` are the root's children that differ, ``first`` the number of the first of them;
    ``fresh`` the buffers that ``before`` does not have.
    """

    def __init__(self, after: Program, before: Program | None = None) -> None:
        self.after = after
        self.before = Program("", (), (), (), ()) if before is None else before
        self.first, self.old, self.new = differing(self.before.body, after.body)
        self.fresh: tuple[Buffer, ...] = ()
        if after.buffers is not self.before.buffers:
            shared = self.before.buffer_ids
            self.fresh = tuple([b for b in after.buffers if id(b) not in shared])

    @derived
    def gone(self) -> Summary:
        """Of the nodes that ``after`` no longer has."""
        return summary(self.old)

    @derived
    def made(self) -> Summary:
        """Of the nodes that only ``after`` has."""
        return summary(self.new)

    @derived
    def concerned(self) -> tuple[Buffer, ...]:
        """Buffers that are fresh or accessed by a node that differs, in the order of the program."""
        arrays = {*self.gone.first_accessed, *self.made.first_accessed}
        if self.after.buffers is self.before.buffers:
            number = self.before.buffer_number
            return tuple([self.after.buffers[n] for n in sorted({number[a] for a in arrays})])
        fresh = set(map(id, self.fresh))
        return tuple([b for b in self.after.buffers if id(b) in fresh or not arrays.isdisjoint(b.arrays)])

    def accessing(self, arrays: frozenset[str]) -> list[Node]:
        """The root's children that access some of these arrays, in order."""
        roots = _roots(self.before)
        near = sorted({n for a in arrays for n in roots.get(a, ())})
        last = self.first + len(self.old)
        return [
            *[self.before.body[n] for n in near if n < self.first],
            *self.new,
            *[self.before.body[n] for n in near if n >= last],
        ]

    def marked(self) -> list[tuple[int, Scope]]:
        """The root's children that hold a mark with conditions (all but unrolled), and differ or access a
        fresh buffer, each with its number."""
        children = enumerate(self.after.body) if self.fresh else enumerate(self.new, self.first)
        return [(n, c) for n, c in children if isinstance(c, Scope) and not c.summary.marks <= UNROLLED]


UNROLLED = frozenset("u")


@fact
def _roots(program: Program) -> dict[str, list[int]]:
    """The numbers of the root's children that access each array."""
    numbers: dict[str, list[int]] = {}
    for number, child in enumerate(program.body):
        for array in summary((child,)).first_accessed:
            numbers.setdefault(array, []).append(number)
    return numbers


def plain(program: Program, roots: Iterable[int]) -> bool:
    """Have these children of the root no marks, and only buffers on the heap, one array and an address for
    each index? V2 and V3 have nothing to look at in them then."""
    return _rough(program).isdisjoint(roots)


@fact
def _rough(program: Program) -> frozenset[int]:
    rough = []
    for number, child in enumerate(program.body):
        below = summary((child,))
        buffers = (program.buffer_of[a] for a in below.first_accessed)
        if below.marks or not all(map(on_heap, buffers)):
            rough.append(number)
    return frozenset(rough)


def on_heap(buffer: Buffer) -> bool:
    """One array, on the heap, with an address for each index."""
    return buffer.location == "heap" and len(buffer.arrays) == 1 and all(d.materialised for d in buffer.dims)
