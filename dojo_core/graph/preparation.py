"""A graph that has among its constants what its programs would make of them, such as packed weights, for who
loads the model without a compiler at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dojo_core.export.choice import Choice
from dojo_core.graph.emission import unlike
from dojo_core.graph.graph import Call, Graph, Kernel
from dojo_core.graph.nodes import Tensor
from dojo_core.graph.run import EACH_RUN, ONCE, Model, parts_of
from dojo_core.program.tree import Program

Values = np.ndarray[Any, Any]


def prepared(graph: Graph, choices: Mapping[str, Choice]) -> tuple[Graph, dict[str, Choice]]:
    """The graph with what the chosen programs make of constants alone, and the choices without that; both are
    the same where none makes anything.

    Raises GraphError where what makes it does not compile.
    """
    parts = {name: parts_of(graph, name, choice.program) for name, choice in choices.items()}
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    made: dict[tuple[str, ...], dict[str, str]] = {}  # tensors, by kernel and constants

    def tensors_of(kernel: str, once: Program, given: Mapping[str, str]) -> dict[str, str]:
        key = (kernel, *(given[array] for array in once.inputs))
        if key not in made:
            made[key] = {}
            for array, values in _made(graph, once, given, choices[kernel].policy).items():
                name = unlike(f"{kernel}_{array}", tensors)
                dtype = once.buffer_of[array].dtype
                tensors[name], constants[name] = Tensor(name, dtype, values.shape), values
                made[key][array] = name
        return made[key]

    calls: list[Call] = []
    for call in graph.calls:
        both, start = parts[call.kernel], graph.kernels[call.kernel].program
        given = dict(zip(start.inputs, call.inputs, strict=True))
        if ONCE in both:
            given |= tensors_of(call.kernel, both[ONCE], given)
        inputs = tuple(given[array] for array in both[EACH_RUN].inputs)
        calls.append(replace(call, inputs=inputs))
    kernels = {
        name: Kernel(name, parts[name][EACH_RUN]) if ONCE in parts[name] else kernel
        for name, kernel in graph.kernels.items()
        if name in parts
    }
    left = {name for call in calls for name in call.inputs} | set(graph.outputs)
    gone = {name for name in graph.constants if name not in left}
    left_over = {
        name: _left(choices[name], parts[name][EACH_RUN]) if ONCE in parts[name] else choices[name]
        for name in kernels
    }
    return (
        replace(
            graph,
            tensors={name: tensor for name, tensor in tensors.items() if name not in gone},
            kernels=kernels,
            calls=tuple(calls),
            constants={name: values for name, values in constants.items() if name not in gone},
            labels={name: label for name, label in graph.labels.items() if name not in gone},
        ),
        left_over,
    )


def _made(graph: Graph, once: Program, given: Mapping[str, str], policy: str) -> dict[str, Values]:
    """What a program makes of constants alone, by the names of its arrays."""
    arrays = {array: _tensor(once, array) for array in (*once.inputs, *once.outputs)}
    values = {array: graph.constants[given[array]].reshape(arrays[array].shape) for array in once.inputs}
    call = Call("once", once.inputs, once.outputs)
    alone = Graph("once", arrays, (), once.outputs, {"once": Kernel("once", once)}, (call,), values)
    results = Model(alone, policy=policy).run({})
    return {array: results[array] for array in once.outputs}


def _tensor(program: Program, array: str) -> Tensor:
    buffer = program.buffer_of[array]
    return Tensor(array, buffer.dtype, tuple(d.size for d in buffer.dims if d.materialised))


def _left(choice: Choice, each_run: Program) -> Choice:
    """A choice as what is left of it; the moves lead to the whole."""
    return replace(
        choice,
        start=each_run,
        program=each_run,
        source=f"{choice.source}, less what it made of constants alone, which the file of these has",
        moves=None,
        narrower={},
        others={},
        again=None,
    )
