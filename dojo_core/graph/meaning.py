"""What a graph computes, in float64: the meaning that a compiled model is held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dojo_core.graph.emission import shaped
from dojo_core.graph.graph import Graph
from dojo_core.measure.pool import numbers
from dojo_core.program.interpret import interpret

Values = np.ndarray[Any, Any]


def reference(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Values]:
    """The outputs by the model's names, as ``interpret`` gives them: float64, and whole numbers.

    ``inputs`` are numbers, by the model's names. Raises ValueError where one is missing or has another shape.
    """
    arrays = {name: np.asarray(inputs[graph.label(name)]) for name in graph.inputs}
    arrays |= {name: numbers(values, graph.tensors[name].dtype) for name, values in graph.constants.items()}
    for call in graph.calls:
        program = graph.kernels[call.kernel].program
        given = {
            array: shaped(program, array, arrays[name])
            for array, name in zip(program.inputs, call.inputs, strict=True)
        }
        results = interpret(program, given)
        for array, name in zip(program.outputs, call.outputs, strict=True):
            arrays[name] = results[array].reshape(graph.tensors[name].shape)
    return {graph.label(name): arrays[name] for name in graph.outputs}
