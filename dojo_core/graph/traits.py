"""What a node is by its primitives, written alone: how much text, which functions, whether only a reshape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo_core.graph.emission import interface, run
from dojo_core.graph.nodes import GraphError, Node, Tensor
from dojo_core.primitives import Array, Builder, BuildError
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Access, leaves

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Traits:
    """``lines`` of text, and the ``functions`` and ``accumulations`` in them. ``reshapes``: does its one
    output hold the elements of its one input in their order, so that both may be the same memory?"""

    lines: int
    functions: frozenset[str]
    accumulations: frozenset[str]
    reshapes: bool


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
    operations = [leaf.op for leaf in leaves(tuple(b.body))]
    return Traits(
        len(operations),
        frozenset(op.function for op in operations),
        frozenset(op.accumulate for op in operations),
        len(node.inputs) == len(node.outputs) == 1
        and not operations
        and _in_order(tensors[node.inputs[0]], results[node.outputs[0].name]),
    )


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
