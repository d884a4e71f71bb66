"""Running a graph on this machine's CPU: its kernels compiled, its tensors in one piece of memory."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo_core.codegen.built import CompileError
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.graph.graph import Call, Graph, as_stored
from dojo_core.graph.nodes import GraphError, Tensor
from dojo_core.graph.plan import ALIGNMENT, plan
from dojo_core.measure.pool import STORED
from dojo_core.program.indices import promised
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cpu.codegen import generate

Values = np.ndarray[Any, Any]
Choose = Callable[[Program], Program]
"""From a kernel's start program to the one that runs in its place: the same arrays, another order."""


@dataclass(frozen=True)
class Share:
    """What one call took of a run: ``seconds``, and its ``share`` of all calls' (0 to 1)."""

    call: Call
    seconds: float
    share: float


class Model:
    """A graph, compiled: ``Model(graph).run({"x": x})`` gives the outputs by name.

    Names are the model's own. Runs in several threads go one after the other, for they share the memory of
    what is between calls; the kernels' own threads are as their programs say.
    """

    def __init__(self, graph: Graph, choose: Choose | None = None, policy: str = "reassoc") -> None:
        """``choose`` tells for each kernel which program runs: by default its start program. Raises GraphError
        where one cannot be compiled, or has other arrays than its kernel."""
        self.graph = graph
        self.programs = {name: _chosen(kernel.program, choose) for name, kernel in graph.kernels.items()}
        codes = {name: _code(program, policy) for name, program in self.programs.items()}
        functions = _loaded(codes)
        self.workspace_bytes = max((code.workspace_bytes for code in codes.values()), default=0)
        self._workspace = aligned(self.workspace_bytes)
        places = plan(graph)
        self.memory_bytes = places.bytes
        self._memory = aligned(places.bytes)
        self._constants = {name: _dense(values) for name, values in graph.constants.items()}
        base = self._memory.ctypes.data
        fixed = {name: base + offset for name, offset in places.offsets.items()}
        fixed |= {name: values.ctypes.data for name, values in self._constants.items()}
        self._steps: list[tuple[Any, Any]] = []  # a function, and what it is called with
        self._slots: dict[str, list[tuple[Any, int]]] = {n: [] for n in (*graph.inputs, *graph.outputs)}
        for call in graph.calls:
            names = _order(self.programs[call.kernel], graph.kernels[call.kernel].program, call)
            pointers = (ctypes.c_void_p * len(names))(*(fixed.get(name) for name in names))
            self._steps.append((functions[call.kernel], pointers))
            for number, name in enumerate(names):
                if name in self._slots:
                    self._slots[name].append((pointers, number))
        self._promises = _promises(graph)
        self._lock = threading.Lock()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Values]:
        """The outputs by the model's names, in arrays of their own.

        An input has exactly the tensor's shape, and its dtype as it is stored (``measure.pool.STORED``: bits
        of bf16 in uint16). Raises GraphError with a sentence where it has not, where one is missing or
        unknown, and where one that says places has an element beyond its domain.
        """
        given = self._taken(inputs)
        outputs = self._outputs()
        with self._lock:
            self._bind({**given, **outputs})
            workspace = self._workspace.ctypes.data
            for function, pointers in self._steps:
                function(pointers, workspace)
        return self._results(given, outputs)

    def profile(self, inputs: Mapping[str, Any], runs: int = 10) -> list[Share]:
        """How long each call takes in whole runs of the model, one after the other: the least of several."""
        given = self._taken(inputs)
        outputs = self._outputs()
        least = [float("inf")] * len(self._steps)
        with self._lock:
            self._bind({**given, **outputs})
            workspace = self._workspace.ctypes.data
            for _ in range(runs):
                for number, (function, pointers) in enumerate(self._steps):
                    begin = time.perf_counter()
                    function(pointers, workspace)
                    least[number] = min(least[number], time.perf_counter() - begin)
        total = sum(least)
        return [
            Share(call, seconds, seconds / total)
            for call, seconds in zip(self.graph.calls, least, strict=True)
        ]

    # ------------------------------------------------------------------ a run's arrays

    def _taken(self, inputs: Mapping[str, Any]) -> dict[str, Values]:
        """The inputs by the graph's names, checked, dense and aligned."""
        graph = self.graph
        labels = {graph.label(name): name for name in graph.inputs}
        for label in inputs:
            if label not in labels:
                raise GraphError(
                    f"{graph.name} has no input {label}: its inputs are {', '.join(labels) or 'none'}."
                )
        given: dict[str, Values] = {}
        for label, name in labels.items():
            tensor = graph.tensors[name]
            if label not in inputs:
                raise GraphError(f"The input {label} is missing: give {tensor.kind}.")
            values = np.asarray(inputs[label])
            given[name] = _dense(as_stored(_labelled(tensor, label), values))
            if name in self._promises:
                low, high = self._promises[name]
                _check_within(label, given[name], low, high)
        return given

    def _outputs(self) -> dict[str, Values]:
        """An array for each output that a call gives."""
        graph = self.graph
        given = {*graph.inputs, *graph.constants}
        return {name: _empty(graph.tensors[name]) for name in graph.outputs if name not in given}

    def _bind(self, arrays: Mapping[str, Values]) -> None:
        for name, array in arrays.items():
            for pointers, number in self._slots[name]:
                pointers[number] = array.ctypes.data

    def _results(self, given: Mapping[str, Values], outputs: Mapping[str, Values]) -> dict[str, Values]:
        results: dict[str, Values] = {}
        for name in self.graph.outputs:
            known = given.get(name, self._constants.get(name))
            values = outputs[name] if known is None else known.copy()
            boolean = self.graph.tensors[name].dtype == "bool"
            results[self.graph.label(name)] = values.view(np.bool_) if boolean else values
        return results


# ---------------------------------------------------------------------------- kernels


def _chosen(start: Program, choose: Choose | None) -> Program:
    """The program that runs for a kernel. Raises GraphError where its arrays are others."""
    program = start if choose is None else choose(start)
    arrays = (*start.inputs, *start.outputs)
    fits = (
        (program.inputs, program.outputs) == (start.inputs, start.outputs)
        and len({program.buffer_of[name].name for name in arrays}) == len(arrays)
        and all(_memory(program, name) == _memory(start, name) for name in arrays)
    )
    if not fits:
        raise GraphError(
            f"The program chosen for {start.name} has other arrays than its start: a caller's array stays "
            "as it is, so choose another position."
        )
    return program


def _memory(program: Program, array: str) -> tuple[str, int]:
    buffer = program.buffer_of[array]
    return buffer.dtype, buffer.bytes


def _code(program: Program, policy: str) -> Code:
    try:
        return generate(program, policy)
    except NotGeneratable as fault:
        raise GraphError(f"{program.name} has no C: {fault}") from fault


def _loaded(codes: Mapping[str, Code]) -> dict[str, Any]:
    """Each kernel as a function of this process."""
    functions: dict[str, Any] = {}
    for name, built in zip(codes, build(list(codes.values()), beside=True), strict=True):
        if isinstance(built, CompileError):
            raise GraphError(f"{name} does not compile: {built.message}")
        function = getattr(ctypes.CDLL(built.library), built.symbol)
        function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
        functions[name] = function
    return functions


def _order(program: Program, start: Program, call: Call) -> list[str]:
    """The tensors in the order of the function's parameters: the program's buffers, inputs first."""
    tensors = dict(zip((*start.inputs, *start.outputs), (*call.inputs, *call.outputs), strict=True))
    return [tensors[array] for array in (*program.inputs, *program.outputs)]


def _promises(graph: Graph) -> dict[str, tuple[float, float]]:
    """Between which values inputs have to lie, for a kernel makes places of them."""
    promises: dict[str, tuple[float, float]] = {}
    for call in graph.calls:
        program = graph.kernels[call.kernel].program
        for array, name in zip(program.inputs, call.inputs, strict=True):
            promise = promised(program, array)
            if promise is not None and name in graph.inputs:
                low, high = promises.get(name, promise)
                promises[name] = max(low, promise[0]), min(high, promise[1])
    return promises


# ---------------------------------------------------------------------------- memory


def aligned(size: int) -> Values:
    """So many bytes from a place on that is a multiple of ALIGNMENT; what they hold is not told."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size]


def _empty(tensor: Tensor) -> Values:
    return aligned(tensor.bytes).view(STORED[tensor.dtype]).reshape(tensor.shape)


def _dense(values: Values) -> Values:
    """The same in row-major order at a multiple of the elements' size; copied where it is not so."""
    return np.require(values, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _labelled(tensor: Tensor, label: str) -> Tensor:
    return Tensor(label, tensor.dtype, tensor.shape)


def _check_within(label: str, values: Values, low: float, high: float) -> None:
    if values.size and not (low <= values.min() and values.max() <= high):  # NaN is not within either
        raise GraphError(
            f"The input {label} has elements beyond {low:g} to {high:g}, which places are made of: "
            "they would lead outside of an array."
        )
