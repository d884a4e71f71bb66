"""Edits of subtrees that several moves share: renumbered iterators, fresh provenances, nests of loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from dojo_core.moves.core import Context
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Node, Op, Path, Program, Provenance, Scope, splice, substitute


def provenances(context: Context) -> Iterator[Provenance]:
    """One after the other, the provenance of the nodes, buffers and dimensions that a move makes."""
    return (context.provenance(n) for n in count())


def height(node: Node) -> int:
    """How many scopes the deepest operation below stands in, this one included."""
    return 0 if isinstance(node, Op) else 1 + max((height(c) for c in node.body), default=0)


def shifted(node: Node, start: int, by: int) -> Node:
    """The subtree with every iterator from depth ``start`` on renumbered by ``by``."""
    reach = range(start, start + height(node) + abs(by) + 1)
    return substitute(node, {d: Affine.iterator(d + by) for d in reach})


def renewed(node: Node, fresh: Iterator[Provenance]) -> Node:
    """The same subtree as new nodes."""
    if isinstance(node, Op):
        return replace(node, provenance=next(fresh))
    provenance = next(fresh)
    return Scope(node.size, tuple(renewed(c, fresh) for c in node.body), node.mark, provenance)


def nest(sizes: Sequence[int], inner: Node, fresh: Iterator[Provenance]) -> Node:
    """A perfect nest of unmarked scopes around a node, the first size outermost."""
    node = inner
    for size in reversed(sizes):
        node = Scope(size, (node,), "", next(fresh))
    return node


def without(body: tuple[Node, ...], path: Path) -> tuple[Node, ...]:
    """The body without a node, and without the scopes around it that held nothing else."""
    program = Program("", (), (), (), body)
    while len(path) > 1 and len(program.siblings(path)) == 1:
        path = path[:-1]
    return splice(body, path, 1, ())
