"""A graph: kernels, and the calls that wire them from a model's inputs to its outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dojo_core.graph.nodes import GraphError, Tensor
from dojo_core.measure.pool import STORED
from dojo_core.program.dtypes import NUMPY_TYPES
from dojo_core.program.indices import promised
from dojo_core.program.tree import NUMBER_DTYPES, Program

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kernel:
    """A start program under the name by which calls know it."""

    name: str
    program: Program


@dataclass(frozen=True)
class Call:
    """A kernel on tensors: ``inputs`` and ``outputs`` are names, in the order of its program's.

    A tensor may have another shape than the program's array, but as many elements: in row-major order they
    are the same memory.

    ``nodes`` are the model's nodes that it computes.
    """

    kernel: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Graph:
    """A model as kernels and calls, in an order in which each call's inputs are there.

    ``inputs`` and ``outputs`` are names of tensors; an output may be an input or a constant. ``constants``
    hold their tensors' elements as they are stored (``measure.pool.STORED``) and are not written to.
    ``labels`` has the model's own names of those tensors whose names are no identifiers.

    Raises GraphError, a sentence, for what does not fit together.
    """

    name: str
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: Mapping[str, Kernel]
    calls: tuple[Call, ...]
    constants: Mapping[str, Values] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    def label(self, tensor: str) -> str:
        """The model's own name of a tensor."""
        return self.labels.get(tensor, tensor)

    @property
    def intermediates(self) -> tuple[str, ...]:
        """What calls give and no caller sees, in the order in which it is computed."""
        return tuple(name for call in self.calls for name in call.outputs if name not in self.outputs)


def _check(graph: Graph) -> None:
    known = _given(graph)
    for call in graph.calls:
        if call.kernel not in graph.kernels:
            raise GraphError(f"A call names the kernel {call.kernel}, which the graph has not.")
        program = graph.kernels[call.kernel].program
        for what, names, arrays in (
            ("inputs", call.inputs, program.inputs),
            ("outputs", call.outputs, program.outputs),
        ):
            if len(names) != len(arrays):
                raise GraphError(
                    f"{call.kernel} has {len(arrays)} {what} and is called with {len(names)}: "
                    f"{', '.join(names)}."
                )
            for name, array in zip(names, arrays, strict=True):
                _check_fit(graph, program, name, array)
        for name in call.inputs:
            if name not in known:
                raise GraphError(f"{call.kernel} reads {name} before any call gives it: mend their order.")
        for name in call.outputs:
            if name in known:
                raise GraphError(f"{call.kernel} gives {name}, which there is already: give it another name.")
            known.add(name)
    for name in graph.outputs:
        if name not in known:
            raise GraphError(f"Nothing gives the output {name}.")


def _given(graph: Graph) -> set[str]:
    """What is there before the first call."""
    for what, names in (("input", graph.inputs), ("output", graph.outputs)):
        twice = repeated(names)
        if twice is not None:
            raise GraphError(f"The {what} {twice} stands twice: name it once.")
    for name, tensor in graph.tensors.items():
        check_tensor(tensor)
        if tensor.name != name:
            raise GraphError(f"The tensor {tensor.name} goes by another name, {name}.")
    for name in (*graph.inputs, *graph.constants):
        if name not in graph.tensors:
            raise GraphError(f"There is no tensor {name}.")
    for name in graph.constants:
        if name in graph.inputs:
            raise GraphError(f"{name} is an input and a constant: give one another name.")
        check_values(graph.tensors[name], graph.constants[name])
    for name, kernel in graph.kernels.items():
        if kernel.name != name:
            raise GraphError(f"The kernel {kernel.name} goes by another name, {name}.")
    return {*graph.inputs, *graph.constants}


def _check_fit(graph: Graph, program: Program, name: str, array: str) -> None:
    tensor = graph.tensors.get(name)
    if tensor is None:
        raise GraphError(f"A call of {program.name} names the tensor {name}, which the graph has not.")
    buffer = program.buffer_of[array]
    wanted = Tensor(array, buffer.dtype, tuple(d.size for d in buffer.dims))
    if (tensor.dtype, tensor.size) != (wanted.dtype, wanted.size):
        raise GraphError(f"{program.name} wants {wanted.kind} for its {array}, and {name} is {tensor.kind}.")
    promise = promised(program, array) if array in program.inputs else None
    if promise is not None:
        low, high = _known(graph, tensor)
        if low < promise[0] or high > promise[1]:
            within = f"{low:g} to {high:g}" if low > -math.inf else "nothing"
            raise GraphError(
                f"{program.name} makes places from {promise[0]:g} to {promise[1]:g} of {name}, "
                f"and {name} is promised to lie within {within}."
            )
        values = graph.constants.get(name)
        if counts_on_distinct(program, array) and values is not None and len(np.unique(values)) < values.size:
            raise GraphError(f"{program.name} counts on distinct elements of {name}, and some are the same.")


def counts_on_distinct(program: Program, array: str) -> bool:
    """Does a program write at places that are read from an input, no two of which may be the same?"""
    domain = program.domain_of(array)
    return domain is not None and domain.distinct


def _known(graph: Graph, tensor: Tensor) -> tuple[float, float]:
    """Between which values a tensor's elements surely lie."""
    values = graph.constants.get(tensor.name)
    if values is not None and values.size:
        return float(values.min()), float(values.max())
    return (
        tensor.domain if tensor.domain is not None and tensor.name in graph.inputs else (-math.inf, math.inf)
    )


def check_tensor(tensor: Tensor) -> None:
    """Raises GraphError for a dtype or sizes that there are not."""
    if tensor.dtype not in NUMBER_DTYPES:
        raise GraphError(
            f"{tensor.name} has the dtype {tensor.dtype!r}: the dtypes are {', '.join(NUMBER_DTYPES)}."
        )
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in tensor.shape):
        raise GraphError(f"{tensor.name} has the shape {list(tensor.shape)}: sizes are whole numbers.")


def as_stored(tensor: Tensor, values: Values) -> Values:
    """Elements as they are stored: a bool is a byte, bf16 and narrower ones their bits.

    Raises GraphError for another shape or dtype.
    """
    if values.dtype.name == NUMPY_TYPES[tensor.dtype]:
        values = np.asarray(values, order="C").view(STORED[tensor.dtype])
    check_values(tensor, values)
    return values


def check_values(tensor: Tensor, values: Values) -> None:
    """Raises GraphError where elements are not those that a tensor says."""
    if values.shape != tensor.shape or values.dtype != STORED[tensor.dtype]:
        raise GraphError(
            f"{tensor} has a value of {values.dtype} {list(values.shape)}: it is to be "
            f"{np.dtype(STORED[tensor.dtype])} {list(tensor.shape)}."
        )


def repeated(names: Iterable[str]) -> str | None:
    """The first name that stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
