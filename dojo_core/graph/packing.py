"""Constants laid out as the products that read them like it: along what they are vectors of.

In ``y[m,n] += x[m,k] * w[n,k]`` neighbours along n lie far apart in w. A constant w is stored as ``w[k,n]``
once, when the graph is made, in place of being rearranged in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dojo_core.graph.emission import parsed
from dojo_core.primitives.elision import accessing, goes_along
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Leaf, Node, Program, Scope


def liked_order(program: Program, array: str) -> tuple[int, ...] | None:
    """The order of an input's dimensions that its readers like; None: that which it has."""
    readers = [leaf for leaf in program.leaves if array in {a.array for a in leaf.op.reads}]
    orders = {_liked(leaf, array) for leaf in readers}
    return orders.pop() if len(orders) == 1 else None


def _liked(leaf: Leaf, array: str) -> tuple[int, ...] | None:
    """What one operation likes: the last dimension goes along the target's last."""
    op = leaf.op
    reads = [access for access in op.sources if access.array == array]
    if op.accumulate != "+" or len(reads) != 1 or not op.target.index:
        return None
    along = goes_along(op.target.index[-1])
    index = reads[0].index
    summed = set(range(len(leaf.scopes))) - _depths(op.target.index)
    if along is None or len(index) < 2 or not all(isinstance(form, Affine) for form in index):
        return None
    places = [dim for dim, form in enumerate(index) if goes_along(form) == along]
    if len(places) != 1 or places[0] == len(index) - 1 or not _depths(index[-1:]) <= summed:
        return None
    return (*(dim for dim in range(len(index)) if dim != places[0]), places[0])


def _depths(index: Sequence[object]) -> set[int]:
    return {depth for form in index if isinstance(form, Affine) for depth in form.depths}


def reordered(program: Program, array: str, order: Sequence[int]) -> Program:
    """A start program that takes an input with its dimensions in another order."""

    def changed(node: Node) -> Node:
        if isinstance(node, Scope):
            return replace(node, body=tuple(changed(child) for child in node.body))
        return accessing(node, access)

    def access(old: Access) -> Access:
        return old if old.array != array else Access(array, tuple(old.index[dim] for dim in order))

    buffers = tuple(
        replace(b, dims=tuple(b.dims[dim] for dim in order)) if b.name == array else b
        for b in program.buffers
    )
    body = tuple(changed(node) for node in program.body)
    made = Program.make(program.name, program.inputs, program.outputs, buffers, body, domains=program.domains)
    return parsed(made.text)
