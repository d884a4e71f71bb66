"""From nodes to a graph: checked, ordered, partitioned, its kernels made, equal ones once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dojo_core.graph.emission import Emitted, emitted, unlike
from dojo_core.graph.graph import Call, Graph, Kernel, as_stored, check_tensor, repeated
from dojo_core.graph.nodes import GraphError, Node, Tensor
from dojo_core.graph.partition import Group, partition
from dojo_core.primitives import BuildError, identifier
from dojo_core.primitives.constants import DTYPES

Values = np.ndarray[Any, Any]

NAME = 60  # characters of a tensor's name


def build(
    name: str,
    inputs: Sequence[Tensor],
    nodes: Sequence[Node],
    outputs: Sequence[str],
    constants: Mapping[str, Values] | None = None,
    constant_tensors: Sequence[Tensor] = (),
) -> Graph:
    """A model's graph. ``outputs`` are names of tensors, ``constants`` the values of tensors.

    A constant's dtype is NumPy's, or that of its tensor among ``constant_tensors``, where it is given as it is
    stored and NumPy has no such dtype (bits of bf16 in uint16). Nodes may come in any order. Raises GraphError
    with a sentence.
    """
    values, tensors = _constants(constants or {}, constant_tensors)
    tensors |= {tensor.name: tensor for tensor in inputs}
    tensors |= _made(inputs, nodes, values)
    ordered = _needed(in_order(nodes, {*values, *(t.name for t in inputs)}), outputs)
    for output in outputs:
        if output not in tensors:
            raise GraphError(f"Nothing gives the output {output}: name a tensor of the model.")
    groups = partition(ordered, outputs)
    return _assembled(name, tensors, inputs, outputs, values, groups)


def _constants(
    constants: Mapping[str, Values], said: Sequence[Tensor]
) -> tuple[dict[str, Values], dict[str, Tensor]]:
    tensors = {tensor.name: tensor for tensor in said}
    values: dict[str, Values] = {}
    for name, each in constants.items():
        if name not in tensors:
            if each.dtype.name not in DTYPES:
                raise GraphError(
                    f"The constant {name} is of NumPy's {each.dtype}: say which dtype by its tensor."
                )
            tensors[name] = Tensor(name, DTYPES[each.dtype.name], each.shape)
        check_tensor(tensors[name])
        values[name] = as_stored(tensors[name], each)
    return values, tensors


def _made(
    inputs: Sequence[Tensor], nodes: Sequence[Node], constants: Mapping[str, Values]
) -> dict[str, Tensor]:
    """What nodes give, by name. Raises GraphError for names that stand twice and tensors that cannot be."""
    twice = repeated(node.name for node in nodes)
    if twice is not None:
        raise GraphError(f"Two nodes have the name {twice}: give each its own.")
    made = [tensor for node in nodes for tensor in node.outputs]
    twice = repeated([*(t.name for t in inputs), *constants, *(t.name for t in made)])
    if twice is not None:
        raise GraphError(f"Two tensors have the name {twice}: give each its own.")
    for tensor in (*inputs, *made):
        check_tensor(tensor)
    for tensor in made:
        if tensor.domain is not None:
            raise GraphError(f"{tensor.name} is computed: only inputs have a domain.")
    return {tensor.name: tensor for tensor in made}


def in_order(nodes: Sequence[Node], given: Collection[str]) -> list[Node]:
    """Nodes so that each comes behind what it reads. Raises GraphError where none can be the next."""
    makers = {tensor.name: node for node in nodes for tensor in node.outputs}
    for node in nodes:
        for name in node.inputs:
            if name not in makers and name not in given:
                raise GraphError(f"{node.name} ({node.operator}) reads {name}, which nothing gives.")
    done: dict[str, Node] = {}
    open_: set[str] = set()
    for last in nodes:
        stack = [(last, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                open_.discard(node.name)
                done[node.name] = node
            elif node.name in open_:
                raise GraphError(f"{node.name} ({node.operator}) reads what is made of its own output.")
            elif node.name not in done:
                open_.add(node.name)
                stack.append((node, True))
                before = [makers[name] for name in node.inputs if name in makers]
                stack += [(each, False) for each in reversed(before) if each.name not in done]
    return list(done.values())


def _needed(nodes: Sequence[Node], outputs: Collection[str]) -> list[Node]:
    """Without the nodes that no output needs."""
    needed = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(tensor.name in needed for tensor in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return kept[::-1]


# ---------------------------------------------------------------------------- kernels


def _assembled(
    name: str,
    tensors: Mapping[str, Tensor],
    inputs: Sequence[Tensor],
    outputs: Sequence[str],
    constants: Mapping[str, Values],
    groups: Sequence[Group],
) -> Graph:
    made = _emitted(groups, tensors, constants, outputs)
    tensors, constants = dict(tensors), dict(constants)
    for each, _ in made:
        for key, (tensor, values) in each.constants.items():
            tensors[key], constants[key] = tensor, values
    kernels: dict[str, Kernel] = {}
    known: dict[str, str] = {}  # kernels' names by their text without its name
    calls: list[Call] = []
    for each, group in made:
        text = each.program.text.partition("\n")[2]
        if text not in known:
            known[text] = unlike(each.program.name, kernels)
            kernels[known[text]] = Kernel(known[text], each.program)
        calls.append(Call(known[text], each.inputs, each.outputs, tuple(node.name for node in group)))
    used = dict.fromkeys(
        [*(t.name for t in inputs), *(n for c in calls for n in (*c.inputs, *c.outputs)), *outputs]
    )
    names = _identifiers(list(used))
    return Graph(
        identifier(name),
        {names[key]: _renamed(tensors[key], names[key]) for key in used},
        tuple(names[tensor.name] for tensor in inputs),
        tuple(names[key] for key in outputs),
        kernels,
        tuple(
            Call(c.kernel, tuple(names[n] for n in c.inputs), tuple(names[n] for n in c.outputs), c.nodes)
            for c in calls
        ),
        {names[key]: values for key, values in constants.items() if key in used},
        {names[key]: key for key in used if names[key] != key},
    )


def _emitted(
    groups: Sequence[Group],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    outputs: Sequence[str],
) -> list[tuple[Emitted, Group]]:
    """The kernel of each group; one that can be no kernel in its parts."""
    made: list[tuple[Emitted, Group]] = []
    wanted = _read_outside(groups, outputs)
    for group, given in zip(groups, wanted, strict=True):
        try:
            made.append((emitted(group, tensors, constants, given), group))
        except BuildError as fault:
            names = ", ".join(f"{node.name} ({node.operator})" for node in group)
            raise GraphError(f"{names}: {fault}") from fault
    return made


def _read_outside(groups: Sequence[Group], outputs: Collection[str]) -> list[list[str]]:
    """Of each group, the tensors that others read, or that are outputs; each is given by one group."""
    left = set(outputs)
    for group in groups:
        inside = {tensor.name for node in group for tensor in node.outputs}
        left.update(name for node in group for name in node.inputs if name not in inside)
    given: list[list[str]] = []
    for group in groups:
        names = [t.name for node in group for t in node.outputs if t.name in left]
        left.difference_update(names)
        given.append(names)
    return given


def _renamed(tensor: Tensor, name: str) -> Tensor:
    return Tensor(name, tensor.dtype, tensor.shape, tensor.domain)


def _identifiers(names: Sequence[str]) -> dict[str, str]:
    """A legal and unique name for each: its own wherever that is one."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names, key=lambda name: identifier(name) != name):
        legal = identifier(name)
        if len(legal) > NAME:
            legal = f"{legal[: NAME // 2]}__{legal[-NAME // 2 + 2 :]}"
        found[name] = unlike(legal, taken)
        taken.add(found[name])
    return found
