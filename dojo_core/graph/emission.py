"""From nodes to one kernel: their primitives as a program, under names that say nothing of the model.

Two groups of nodes that compute the same differ in the names of their tensors alone, so that with canonical
names they are one kernel, which is tuned once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dojo_core.graph.nodes import GraphError, Node, Tensor
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.primitives import Array, Builder, constant, identifier
from dojo_core.primitives.elision import accessing
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.indices import feeding
from dojo_core.program.tree import Access, Buffer, Program, Scope, summary
from dojo_core.program.tree import Node as TreeNode

Values = np.ndarray[Any, Any]

NAME = 40  # characters of a kernel's name


@dataclass(frozen=True)
class Emitted:
    """A kernel's program, and the tensors that stand for its inputs and outputs, in their order.

    ``constants`` are values that the nodes have beside their inputs, by the name of the tensor; their arrays
    are among the inputs.
    """

    program: Program
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, tuple[Tensor, Values]]


def emitted(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    outputs: Sequence[str],
) -> Emitted:
    """Nodes in their order as one program that gives ``outputs``.

    Constants of one element are numbers in the text, others inputs. Raises BuildError where no program can be
    made, GraphError for a node that gives what it does not say.
    """
    b = Builder(kernel_name(nodes))
    arrays: dict[str, Array] = {}
    names: dict[str, str] = {}  # the tensor behind each input of the builder
    own: dict[str, tuple[Tensor, Values]] = {}
    for node in nodes:
        for name in node.inputs:
            if name not in arrays:
                arrays[name] = _array(b, tensors[name], constants.get(name), f"i{len(names)}")
                names[f"i{len(names)}"] = name
        before = set(b.constants)
        arrays |= run(b, node, arrays)
        for key in b.constants:
            if key not in before:
                name = unlike(f"{node.name}.{key}", {*tensors, *own})
                dtype, values = b.inputs[key].dtype, b.constants[key]
                own[name] = Tensor(name, dtype, b.inputs[key].shape), _stored(values, dtype)
                names[key] = name
    for number, name in enumerate(outputs):
        b.output(f"o{number}", arrays[name])
    program, renamed = canonical(b.program())
    originals = {new: old for old, new in renamed.items()}
    taken = tuple(names[originals[array]] for array in program.inputs)
    given = tuple(outputs[int(originals[array][1:])] for array in program.outputs)
    return Emitted(program, taken, given, {name: own[name] for name in taken if name in own})


def run(b: Builder, node: Node, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """What a node gives, by the names of tensors. Raises GraphError where it is not what the node says."""
    results = node.emit(b, [arrays[name] for name in node.inputs])
    if len(results) != len(node.outputs):
        raise GraphError(
            f"{node.name} ({node.operator}) gives {len(results)} arrays and says {len(node.outputs)}."
        )
    for tensor, array in zip(node.outputs, results, strict=True):
        if array.shape != tensor.shape or (array.dtype != tensor.dtype and not array.is_free):
            raise GraphError(
                f"{node.name} ({node.operator}) gives {array.dtype} {list(array.shape)} for {tensor}."
            )
    return {tensor.name: array for tensor, array in zip(node.outputs, results, strict=True)}


def _array(b: Builder, tensor: Tensor, values: Values | None, name: str) -> Array:
    """A tensor as an input of the kernel; one element that is known as a number."""
    domain = tensor.domain
    if values is not None:
        if values.size == 1:
            return constant(b, to_double(values, tensor.dtype), tensor.dtype)
        if tensor.dtype in INTEGERS and values.size:
            domain = float(values.min()), float(values.max())
    return b.input(name, tensor.dtype, tensor.shape, domain)


def _stored(values: Values, dtype: str) -> Values:
    if dtype in INTEGERS or dtype == "bool":
        return values.astype(STORED[dtype])
    return from_double(values.astype(np.float64), dtype)


def kernel_name(nodes: Iterable[Node]) -> str:
    """A kernel's name by its nodes' operators: ``matmul_add_gelu``."""
    words: list[str] = []
    for node in nodes:
        word = identifier(node.operator.rpartition(".")[2].lower())
        if not words or words[-1] != word:
            words.append(word)
    name = "_".join(words)
    if len(name) > NAME:
        name = name[:NAME].rpartition("_")[0] or name[:NAME]
    return identifier(name)


def unlike(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where it is taken."""
    number = 2
    wished = name
    while name in taken:
        name, number = f"{wished}_{number}", number + 1
    return name


# ---------------------------------------------------------------------------- canonical names


def canonical(program: Program) -> tuple[Program, dict[str, str]]:
    """A start program with arrays named x1, … (inputs), y1, … (outputs), t1, …, each in the order of their
    first access, and the new name of each array.

    Inputs that nothing reads leave. Domains stay where indices are made of the input: elsewhere they tell the
    values of one model from those of another.
    """
    order = summary(program.body).first_accessed
    names: dict[str, str] = {}
    for letter, arrays in (
        ("x", program.inputs),
        ("y", program.outputs),
        ("t", [a for a in order if a not in program.interface]),
    ):
        used = [array for array in order if array in set(arrays)]
        names |= {array: f"{letter}{number}" for number, array in enumerate(used, 1)}
    clash = names.keys() & program.tables.keys()
    assert not clash
    indices = feeding(program)
    buffers = [
        Buffer(names[b.name], b.dtype, b.dims, b.location, (names[b.name],))
        for b in program.buffers
        if b.name in names
    ]
    renamed = Program.make(
        program.name,
        tuple(names[a] for a in order if a in program.inputs),
        tuple(names[a] for a in order if a in program.outputs),
        tuple(buffers),
        tuple(_renamed(node, names) for node in program.body),
        domains=tuple(
            replace(d, array=names[d.array])
            for d in program.domains
            if d.array in indices and d.array in names
        ),
    )
    return renamed, names


def _renamed(node: TreeNode, names: Mapping[str, str]) -> TreeNode:
    if isinstance(node, Scope):
        return replace(node, body=tuple(_renamed(child, names) for child in node.body))
    return accessing(node, lambda access: Access(names[access.array], access.index))
