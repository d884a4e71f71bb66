"""From nodes to one kernel: their primitives as a program, under names that say nothing of the model.

Two groups of nodes that compute the same differ in the names of their tensors alone, so that with canonical
names they are one kernel, which is tuned once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from dojo_core.faults import text_fault
from dojo_core.graph.nodes import GraphError, Kind, Node, Tensor
from dojo_core.measure.pool import from_double, numbers
from dojo_core.primitives import Array, Builder, BuildError, constant, convert, identifier
from dojo_core.primitives.elision import accessing
from dojo_core.program.dtypes import HALVES, INTEGERS
from dojo_core.program.expressions import TextError
from dojo_core.program.indices import feeding
from dojo_core.program.text import parse
from dojo_core.program.tree import Access, Buffer, Program, Scope, summary
from dojo_core.program.tree import Node as TreeNode

Values = np.ndarray[Any, Any]

T = TypeVar("T")

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
    b, names, own = _written(nodes, tensors, constants, outputs)
    draft, renamed = canonical(b.draft())
    program = parsed(draft.text)
    originals = {new: old for old, new in renamed.items()}
    taken = tuple(names[originals[array]] for array in program.inputs)
    given = tuple(outputs[int(originals[array][1:])] for array in program.outputs)
    return Emitted(program, taken, given, {name: own[name] for name in taken if name in own})


def line_count(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    outputs: Sequence[str],
) -> int:
    """How many lines of text the program of ``emitted`` has. Raises BuildError where there is none."""
    return len(_written(nodes, tensors, constants, outputs)[0].draft().leaves)


def _written(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    outputs: Sequence[str],
) -> tuple[Builder, dict[str, str], dict[str, tuple[Tensor, Values]]]:
    """Nodes in a builder, with the tensor behind each of its inputs, and those that are the nodes' own."""
    b = Builder(kernel_name(nodes))
    arrays: dict[str, Array] = {}
    names: dict[str, str] = {}
    own: dict[str, tuple[Tensor, Values]] = {}
    for node in nodes:
        for name in node.inputs:
            if name not in arrays:
                key = f"i{len(names)}"
                arrays[name] = interface(b, tensors[name], constants.get(name), key)
                names[key] = name
        before = set(b.constants)
        arrays |= run(b, node, arrays)
        for key in b.constants:
            if key not in before:  # called alike in every kernel that writes the node
                name = unlike(f"{node.name}.{key.rstrip('_')}", {*tensors, *own})
                dtype = b.inputs[key].dtype
                own[name] = Tensor(name, dtype, b.inputs[key].shape), from_double(b.constants[key], dtype)
                names[key] = name
    for number, name in enumerate(outputs):
        array = arrays[name]
        rounded = array if array.is_free else convert(b, array, tensors[name].dtype)
        b.output(f"o{number}", rounded)
    return b, names, own


def interface(b: Builder, tensor: Tensor, values: Values | None, name: str) -> Array:
    """A tensor as an input of this name; ``values`` are those of a constant, of one element a number."""
    domain = tensor.domain
    if values is not None:
        if values.size == 1:
            return constant(b, numbers(values, tensor.dtype), tensor.dtype)
        if tensor.dtype in INTEGERS and values.size:
            domain = float(values.min()), float(values.max())
    return b.input(name, tensor.dtype, tensor.shape, domain)


def run(b: Builder, node: Node, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """What a node gives, by the names of tensors. Raises GraphError where it is not what the node says."""
    results = node.emit(b, [arrays[name] for name in node.inputs])
    if len(results) != len(node.outputs):
        raise GraphError(
            f"{node.name} ({node.operator}) gives {len(results)} arrays and says {len(node.outputs)}."
        )
    for tensor, array in zip(node.outputs, results, strict=True):
        unrounded = array.dtype == "f32" and tensor.dtype in HALVES
        fits = array.dtype == tensor.dtype or array.is_free or unrounded
        if array.shape != tensor.shape or not fits:
            raise GraphError(
                f"{node.name} ({node.operator}) gives {array.dtype} {list(array.shape)} for {tensor}."
            )
    return {tensor.name: array for tensor, array in zip(node.outputs, results, strict=True)}


def shaped(program: Program, array: str, values: Values) -> Values:
    """A tensor's elements in the shape that a program gives the array: the same, in row-major order."""
    return values.reshape([dim.size for dim in program.buffer_of[array].dims])


def kernel_name(nodes: Sequence[Node]) -> str:
    """A kernel's name by its nodes' operators, views aside: ``matmul_add_gelu``.

    Of ``aten.add.Tensor``, an operator with its library and its variant, ``add`` stands in the name. A long
    name begins with the first contraction, and ends early.
    """
    passes = [node for node in nodes if node.kind is not Kind.VIEW] or list(nodes)
    name = _joined_words(passes)
    if len(name) > NAME:
        first = next((n for n, node in enumerate(passes) if node.kind is Kind.CONTRACTION), 0)
        name = _joined_words(passes[first:])
    if len(name) > NAME:
        name = name[:NAME].rpartition("_")[0] or name[:NAME]
    return identifier(name)


def _joined_words(nodes: Iterable[Node]) -> str:
    words: list[str] = []
    for node in nodes:
        parts = node.operator.lower().split(".")
        word = identifier(parts[-2] if len(parts) > 2 else parts[-1])
        if not words or words[-1] != word:
            words.append(word)
    return "_".join(words)


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

    It is not checked yet. Inputs that nothing reads leave, and so do dimensions of size 1 of inputs and
    outputs, which are the same memory without. Domains stay where indices are made of the input: elsewhere
    they tell the values of one model from those of another.
    """
    order = summary(program.body).first_accessed
    temporaries = [a for a in order if a not in program.interface]
    names: dict[str, str] = {}
    for letter, arrays in (("x", program.inputs), ("y", program.outputs), ("t", temporaries)):
        used = [array for array in order if array in set(arrays)]
        names |= {array: f"{letter}{number}" for number, array in enumerate(used, 1)}
    indices = feeding(program)
    renamed = Program.make(
        program.name,
        tuple(names[a] for a in order if a in program.inputs),
        tuple(names[a] for a in order if a in program.outputs),
        tuple(
            Buffer(names[b.name], b.dtype, _squeezed(program, b.name, b.dims), b.location, (names[b.name],))
            for b in program.buffers
            if b.name in names
        ),
        tuple(_renamed(node, program, names) for node in program.body),
        domains=tuple(
            replace(d, array=names[d.array])
            for d in program.domains
            if d.array in indices and d.array in names
        ),
    )
    return renamed, names


@lru_cache(maxsize=256)
def parsed(text: str) -> Program:
    """The program of a text: many groups of a model have the same."""
    try:
        return parse(text)
    except TextError as error:
        raise BuildError(f"It makes no program. {text_fault(error)}") from error


def _renamed(node: TreeNode, program: Program, names: Mapping[str, str]) -> TreeNode:
    if isinstance(node, Scope):
        return replace(node, body=tuple(_renamed(child, program, names) for child in node.body))

    def access(old: Access) -> Access:
        return Access(names[old.array], _squeezed(program, old.array, old.index))

    return accessing(node, access)


def _squeezed(program: Program, array: str, along: tuple[T, ...]) -> tuple[T, ...]:
    """What there is along each dimension of an array, without those of size 1 in one of the interface."""
    if array not in program.interface:
        return along
    dims = program.buffer_of[array].dims
    return tuple(each for each, dim in zip(along, dims, strict=True) if dim.size > 1)
