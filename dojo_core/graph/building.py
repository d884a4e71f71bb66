"""From nodes to a graph: checked, ordered, partitioned, its kernels made, equal ones once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dojo_core.graph.emission import Emitted, emitted, shaped, unlike
from dojo_core.graph.folding import folded
from dojo_core.graph.graph import Call, Graph, Kernel, as_stored, check_tensor, repeated
from dojo_core.graph.known import worked_out
from dojo_core.graph.nodes import GraphError, Kind, Node, Tensor
from dojo_core.graph.packing import liked_order, reordered
from dojo_core.graph.partition import partition
from dojo_core.graph.quotients import divided_late
from dojo_core.graph.traits import Traits, traits
from dojo_core.graph.wiring import Unit, wired
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

    A constant's dtype is NumPy's, or that of its tensor among ``constant_tensors``, where NumPy has no such
    dtype and it is given as it is stored (bits of bf16 in uint16). Nodes may come in any order. Raises
    GraphError with a sentence.
    """
    values, tensors = _constants(constants or {}, constant_tensors)
    tensors |= {tensor.name: tensor for tensor in inputs}
    tensors |= _made(inputs, nodes, values)
    for output in outputs:
        if output not in tensors:
            raise GraphError(f"Nothing gives the output {output}: name a tensor of the model.")
    ordered = _needed(in_order(nodes, {*values, *(t.name for t in inputs)}), outputs)
    known = {node.name: traits(node, tensors, values) for node in ordered}
    left, values = folded(ordered, tensors, values, known)
    made, stored = _kernels(_needed(left, outputs), tensors, values, outputs, known)
    lean = [(unit, worked_out(each, tensors, values, unit.nodes[0].name)) for unit, each in made]
    return _assembled(name, tensors, inputs, outputs, values, *_packed(lean, values), stored)


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


def _kernels(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    outputs: Sequence[str],
    known: Mapping[str, Traits],
) -> tuple[list[tuple[Unit, Emitted]], Mapping[str, str]]:
    """The kernels, and which tensors share another's memory. A group that can be no kernel is taken apart."""
    alone: set[str] = set()
    while True:
        groups = partition(nodes, tensors, constants, outputs, known, alone)
        wires = wired(nodes, groups, tensors, constants, outputs, known)
        made: list[tuple[Unit, Emitted]] = []
        for unit in wires.units:
            try:
                each = emitted(unit.nodes, tensors, constants, unit.outputs)
                made.append((unit, replace(each, program=divided_late(each.program))))
            except BuildError as fault:
                members = {node.name for node in unit.nodes if node.kind is not Kind.VIEW}
                if len(members) < 2 or members <= alone:
                    names = ", ".join(f"{node.name} ({node.operator})" for node in unit.nodes)
                    raise GraphError(f"{names}: {fault}") from fault
                alone |= members
                break
        else:
            return made, wires.stored


def _packed(
    made: Sequence[tuple[Unit, Emitted]], constants: Mapping[str, Values]
) -> tuple[list[tuple[Unit, Emitted]], dict[str, tuple[Tensor, Values]]]:
    """The kernels with each constant in the order that its readers like, and the constants that came by that,
    or are the nodes' own."""
    packed: list[tuple[Unit, Emitted]] = []
    new: dict[str, tuple[Tensor, Values]] = {}
    orders: dict[tuple[str, tuple[int, ...]], str] = {}
    for unit, each in made:
        new |= each.constants
        program, names = each.program, list(each.inputs)
        for number, (array, name) in enumerate(zip(program.inputs, each.inputs, strict=True)):
            values = constants.get(name)
            order = liked_order(program, array) if values is not None else None
            if values is None or order is None:
                continue
            program = reordered(program, array, order)
            if (name, order) not in orders:
                orders[name, order] = key = unlike(f"{name}.packed", {*constants, *new})
                dtype = program.buffer_of[array].dtype
                laid = np.ascontiguousarray(shaped(each.program, array, values).transpose(order))
                new[key] = Tensor(key, dtype, laid.shape), laid
            names[number] = orders[name, order]
        packed.append((unit, replace(each, program=program, inputs=tuple(names))))
    return packed, new


def _assembled(
    name: str,
    tensors: Mapping[str, Tensor],
    inputs: Sequence[Tensor],
    outputs: Sequence[str],
    constants: Mapping[str, Values],
    made: Sequence[tuple[Unit, Emitted]],
    new: Mapping[str, tuple[Tensor, Values]],
    stored: Mapping[str, str],
) -> Graph:
    tensors = {**tensors, **{key: tensor for key, (tensor, _) in new.items()}}
    constants = {**constants, **{key: values for key, (_, values) in new.items()}}
    kernels: dict[str, Kernel] = {}
    known: dict[str, str] = {}  # kernels' names by their text without its name
    calls: list[Call] = []
    for unit, each in made:
        text = each.program.text.partition("\n")[2]
        if text not in known:
            known[text] = unlike(each.program.name, kernels)
            kernels[known[text]] = Kernel(known[text], each.program)
        taken = tuple(stored.get(n, n) for n in each.inputs)
        given = tuple(n if n in outputs else stored.get(n, n) for n in each.outputs)
        nodes = tuple(node.name for node in unit.nodes if node.kind is not Kind.VIEW)
        calls.append(Call(known[text], taken, given, nodes))
    used = dict.fromkeys(
        [*(t.name for t in inputs), *(n for c in calls for n in (*c.inputs, *c.outputs)), *outputs]
    )
    names = _identifiers(list(used))
    return Graph(
        identifier(name),
        {names[key]: replace(tensors[key], name=names[key]) for key in used},
        tuple(names[tensor.name] for tensor in inputs),
        tuple(names[key] for key in outputs),
        kernels,
        tuple(
            replace(c, inputs=tuple(names[n] for n in c.inputs), outputs=tuple(names[n] for n in c.outputs))
            for c in calls
        ),
        {names[key]: values for key, values in constants.items() if key in used},
        {names[key]: key for key in used if names[key] != key},
    )


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
