"""What is the same in every run is worked out once, when the graph is made.

A view of a constant becomes an array of its own: a transposed weight lies in memory as its product reads it.
What takes more room than it is made of, an expansion above all, stays a view.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dojo_core.graph.emission import Emitted, emitted, run, shaped
from dojo_core.graph.graph import Call, Graph, Kernel, as_stored
from dojo_core.graph.nodes import GraphError, Kind, Node, Tensor
from dojo_core.graph.run import Model
from dojo_core.graph.traits import Traits, address
from dojo_core.measure.pool import STORED, from_double, numbers
from dojo_core.primitives import Array, Builder, BuildError
from dojo_core.program.interpret import interpret
from dojo_core.program.tree import Access

Values = np.ndarray[Any, Any]

SMALL = 1 << 16  # bytes that an expansion may take
STEPS = 1 << 26  # operations of one node that the interpreter takes; what takes more is compiled


def folded(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    known: Mapping[str, Traits],
) -> tuple[list[Node], dict[str, Values]]:
    """The nodes that are left, in their order, and all constants; ``known`` are the nodes' traits."""
    left: list[Node] = []
    values = dict(constants)
    views: dict[str, Node] = {}  # what makes the tensors that stay views of constants
    for node in nodes:
        values |= {t.name: np.zeros(t.shape, STORED[t.dtype]) for t in node.outputs if not t.size}
        if all(t.name in values for t in node.outputs):
            continue
        if not all(name in values or name in views for name in node.inputs):
            left.append(node)
            continue
        if known[node.name].lines == 0 and _grows(node, tensors):
            node = replace(node, kind=Kind.VIEW)
            views |= {t.name: node for t in node.outputs}
            left.append(node)
            continue
        values |= _evaluated(_with_views(node, views), tensors, values)
    return left, values


def _grows(node: Node, tensors: Mapping[str, Tensor]) -> bool:
    size = sum(tensor.bytes for tensor in node.outputs)
    return size > max(SMALL, sum(tensors[name].bytes for name in node.inputs))


def _with_views(node: Node, views: Mapping[str, Node]) -> list[Node]:
    before: dict[str, Node] = {}
    for name in node.inputs:
        if name in views:
            before |= {each.name: each for each in _with_views(views[name], views)}
    return [*before.values(), node]


def _evaluated(
    nodes: Sequence[Node], tensors: Mapping[str, Tensor], constants: Mapping[str, Values]
) -> dict[str, Values]:
    """What the last of some nodes gives."""
    wanted = [tensor for tensor in nodes[-1].outputs if tensor.size]
    result = _viewed(nodes, tensors, constants)
    if result is not None:
        return {tensor.name: result[tensor.name] for tensor in wanted}
    try:
        made = emitted(nodes, tensors, constants, [tensor.name for tensor in wanted])
    except BuildError as fault:
        raise GraphError(f"{nodes[-1].name} ({nodes[-1].operator}): {fault}") from fault
    return evaluated(
        made, {**constants, **{name: values for name, (_, values) in made.constants.items()}}, tensors
    )


def evaluated(made: Emitted, given: Mapping[str, Values], tensors: Mapping[str, Tensor]) -> dict[str, Values]:
    """What a kernel gives for constants, by the names of its outputs."""
    steps = sum(math.prod(scope.size for scope in leaf.scopes) for leaf in made.program.leaves)
    results = _interpreted(made, given) if steps <= STEPS else _compiled(made, given, tensors)
    return {
        name: from_double(values, tensors[name].dtype).reshape(tensors[name].shape)
        for name, values in results.items()
    }


def _interpreted(made: Emitted, given: Mapping[str, Values]) -> dict[str, Values]:
    program = made.program
    inputs = {
        array: numbers(shaped(program, array, given[name]), program.buffer_of[array].dtype)
        for array, name in zip(program.inputs, made.inputs, strict=True)
    }
    with np.errstate(all="ignore"):
        outputs = interpret(program, inputs)
    return {name: outputs[array] for array, name in zip(program.outputs, made.outputs, strict=True)}


def _compiled(made: Emitted, given: Mapping[str, Values], tensors: Mapping[str, Tensor]) -> dict[str, Values]:
    known = {**tensors, **{name: tensor for name, (tensor, _) in made.constants.items()}}
    graph = Graph(
        "once",
        {name: known[name] for name in (*made.inputs, *made.outputs)},
        (),
        made.outputs,
        {"once": Kernel("once", made.program)},
        (Call("once", made.inputs, made.outputs),),
        {name: given[name] for name in made.inputs},
    )
    return {
        name: numbers(as_stored(known[name], values), known[name].dtype)
        for name, values in Model(graph).run({}).items()
    }


def _viewed(
    nodes: Sequence[Node], tensors: Mapping[str, Tensor], constants: Mapping[str, Values]
) -> dict[str, Values] | None:
    """The same for what is only an index: the elements are moved as they are."""
    b = Builder("views")
    arrays: dict[str, Array] = {}
    behind: dict[str, Values] = {}
    for node in nodes:
        for name in node.inputs:
            if name not in arrays:
                key = f"i{len(arrays)}"
                behind[key] = constants[name]
                arrays[name] = b.input(key, tensors[name].dtype, tensors[name].shape)
        arrays |= run(b, node, arrays)
        if b.body:
            return None
    result: dict[str, Values] = {}
    for tensor in nodes[-1].outputs:
        view = arrays[tensor.name]
        if not tensor.size:
            continue
        if not isinstance(view.operand, Access) or view.operand.array not in behind:
            return None
        source = behind[view.operand.array]
        place = address(view, source.shape)
        if place is None:
            return None
        strides = [place.coefficient(n) * source.itemsize for n in range(len(view.factors))]
        flat = np.ascontiguousarray(source).reshape(-1)
        taken = as_strided(flat[place.const :], view.factors, strides, writeable=False)
        result[tensor.name] = np.ascontiguousarray(taken).reshape(tensor.shape)
    return result
