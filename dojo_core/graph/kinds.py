"""What a node is to the partition, read off the passes that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dojo_core.graph.nodes import Kind
from dojo_core.program.tree import Access, Node, Op


def kind_of(passes: Sequence[Node]) -> Kind:
    """The kind of what adds these passes to a kernel (``Builder.body``).

    An operation that reads what an earlier iteration of the same pass wrote, or writes where data says, goes
    alone. A sum of products of two arrays is a contraction, any other accumulation a reduction; passes that
    only move elements are a copy, none at all a view.
    """
    if not passes:
        return Kind.VIEW
    if any(map(_alone, passes)):
        return Kind.OTHER
    ops = [op for each in passes for op in _ops(each)]
    if any(_multiplies(op) for op in ops):
        return Kind.CONTRACTION
    if any(op.accumulate for op in ops):
        return Kind.REDUCTION
    return Kind.COPY if all(_moves(op) for op in ops) else Kind.POINTWISE


def _ops(node: Node) -> Iterator[Op]:
    if isinstance(node, Op):
        yield node
    else:
        for child in node.body:
            yield from _ops(child)


def _alone(nest: Node) -> bool:
    ops = list(_ops(nest))
    written = _places(op.target for op in ops)
    read = _places(access for op in ops for access in op.reads)
    return any(op.target.indirect for op in ops) or any(
        places - written[array] for array, places in read.items() if array in written
    )


def _places(accesses: Iterable[Access]) -> dict[str, set[Access]]:
    """Where each array is accessed."""
    places: dict[str, set[Access]] = {}
    for access in accesses:
        places.setdefault(access.array, set()).add(access)
    return places


def _multiplies(op: Op) -> bool:
    return op.accumulate == "+" and op.function == "*" and len({a.array for a in op.sources}) == 2


def _moves(op: Op) -> bool:
    return not op.function and not op.accumulate
