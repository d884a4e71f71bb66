"""What a node is by its primitives, written alone: how much text, which functions, whether only a reshape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo_core.graph.emission import interface, run
from dojo_core.graph.nodes import GraphError, Node, Tensor
from dojo_core.primitives import Array, Builder, BuildError
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, Leaf, leaves

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Traits:
    """``lines`` of text, and the ``functions`` and ``accumulations`` in them. ``reshapes``: does its one
    output hold the elements of its one input in their order, so that both may be the same memory?
    ``convolves``: does it sum over windows that all of its channels share, its results one by one?
    ``pools``: does it reduce parts of its one input that share no element, such as windows? ``drops``: which
    axes of it does it reduce whole then?"""

    lines: int
    functions: frozenset[str]
    accumulations: frozenset[str]
    reshapes: bool
    convolves: bool = False
    pools: bool = False
    drops: tuple[int, ...] = ()


def traits(node: Node, tensors: Mapping[str, Tensor], constants: Mapping[str, Values]) -> Traits:
    """The traits of a node. Raises GraphError where it cannot be written at all."""
    b = Builder("alone")
    try:
        arrays = {
            name: interface(b, tensors[name], constants.get(name), f"i{k}")
            for k, name in enumerate(dict.fromkeys(node.inputs))
        }
        results = run(b, node, arrays)
    except BuildError as fault:
        raise GraphError(f"{node.name} ({node.operator}): {fault}") from fault
    written = leaves(tuple(b.body))
    pooled = _pooled(written, arrays[node.inputs[0]]) if len(node.inputs) == 1 else None
    operations = [leaf.op for leaf in written]
    return Traits(
        len(operations),
        frozenset(op.function for op in operations),
        frozenset(op.accumulate for op in operations),
        len(node.inputs) == len(node.outputs) == 1
        and not operations
        and _in_order(tensors[node.inputs[0]], results[node.outputs[0].name]),
        any(_convolves(leaf) for leaf in written),
        pooled is not None,
        () if pooled is None else _dropped(*pooled),
    )


def _convolves(leaf: Leaf) -> bool:
    """Does an operation sum products of a window and of weights over rows of columns, channel by channel?"""
    target, read = leaf.op.target, leaf.op.reads
    along = [depth for form in target.index for depth in form.depths]
    if not leaf.op.accumulate or len(read) != 2 or not along or not _one_by_one(target):
        return False
    window, weights = sorted(map(_depths, read), key=lambda depths: along[-1] not in depths)
    channels = [place for place, depth in enumerate(along) if depth in weights]
    return len(channels) == 1 and along[channels[0]] not in window and len(along) - channels[0] > 2


def _one_by_one(access: Access) -> bool:
    """Does it go along one scope in each dimension, an element for each iteration?"""
    forms = [form for form in access.index if form.depths]
    return forms == [Affine.iterator(form.depths[0]) for form in forms]


def _pooled(written: Sequence[Leaf], source: Array) -> tuple[Leaf, Access] | None:
    """The one operation that reads an array, and how, if it reduces parts that share no element."""
    if not isinstance(source.operand, Access):
        return None
    read = [(leaf, a) for leaf in written for a in leaf.op.reads if a.array == source.operand.array]
    return read[0] if len(read) == 1 and read[0][0].op.accumulate and _disjoint(*read[0]) else None


def _dropped(leaf: Leaf, access: Access) -> tuple[int, ...]:
    """The dimensions of what is read along which an operation has one result."""
    results = _depths(leaf.op.target)
    along = [set(form.depths) for form in access.index]
    return tuple(axis for axis, depths in enumerate(along) if depths and not depths & results)


def _disjoint(leaf: Leaf, access: Access) -> bool:
    """Is each element read once at most, by windows whose results lie one by one?"""
    if not _one_by_one(leaf.op.target):
        return False
    for form in access.index:
        if not isinstance(form, Affine):
            return False
        reach = form.const
        for depth, step in sorted(form.terms, key=lambda term: term[1]):
            if step <= reach:
                return False
            reach += step * (leaf.scopes[depth].size - 1)
    return True


def _depths(access: Access) -> set[int]:
    return {depth for form in access.index for depth in form.depths}


def _in_order(source: Tensor, result: Array) -> bool:
    """Is the result all of a dense array's elements, in the order in which they lie?"""
    if source.size != np.prod(result.shape, dtype=object) or not source.size:
        return False
    place, step = address(result, source.shape), 1
    if place is None or place.const:
        return False
    factors = result.factors
    for number in reversed(range(len(factors))):
        if place.coefficient(number) != step:
            return False
        step *= factors[number]
    return True


def address(view: Array, shape: tuple[int, ...]) -> Affine | None:
    """The number of a view's element among those of a dense array of this shape; None: it hangs on data."""
    if not isinstance(view.operand, Access):
        return None
    place = Affine()
    for size, form in zip(shape, view.operand.index, strict=True):
        if not isinstance(form, Affine):
            return None
        place = place * size + form
    return place
