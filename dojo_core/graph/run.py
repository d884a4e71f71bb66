"""Running a graph on this machine's CPU: its kernels compiled, its tensors in one piece of memory."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dojo_core.graph.functions import Function, functions
from dojo_core.graph.graph import Call, Graph, as_stored, counts_on_distinct
from dojo_core.graph.hoisting import hoisted
from dojo_core.graph.nodes import GraphError, Tensor
from dojo_core.graph.plan import ALIGNMENT, plan
from dojo_core.measure.pool import STORED
from dojo_core.program.indices import promised
from dojo_core.program.tree import Program

Values = np.ndarray[Any, Any]
EACH_RUN, ONCE = "each run", "once"  # the parts of a kernel

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

    What programs copy of constants, such as packed weights, they copy once, when the model is made. That took
    ``prepare_seconds``, choosing the programs ``choose_seconds``, and to generate and compile their code
    ``compile_seconds``. ``memory_bytes`` is what lies between calls, which the next run reuses. ``computed``
    are the outputs that are no input or constant, ``checked`` the inputs whose values are looked at before a
    run. Names are the model's own. Runs in several threads go one after the other; the kernels' own threads
    are as their programs say.
    """

    def __init__(self, graph: Graph, choose: Choose | None = None, policy: str = "reassoc") -> None:
        """``choose`` tells for each kernel which program runs: by default its start program. Raises
        GraphError where one cannot be compiled, or has other arrays than its kernel. Compilers wait while the
        machine measures."""
        self.graph = graph
        begin = time.perf_counter()
        self.programs = {name: _chosen(kernel.program, choose) for name, kernel in graph.kernels.items()}
        chosen = time.perf_counter()
        parts = {name: parts_of(graph, name, program) for name, program in self.programs.items()}
        both = {(name, part): program for name, all_of in parts.items() for part, program in all_of.items()}
        compiled = functions(both, policy)
        self.choose_seconds, self.compile_seconds = chosen - begin, time.perf_counter() - chosen
        self.workspace_bytes = max((each.workspace_bytes for each in compiled.values()), default=0)
        self._workspace = aligned(self.workspace_bytes)
        self._workspace_at = self._workspace.ctypes.data
        places = plan(graph)
        self.memory_bytes = places.bytes
        self._memory = aligned(places.bytes)
        self._promises = promises(graph)
        self._distinct = _distinct(graph)
        self._labels = {graph.label(name): name for name in graph.inputs}
        outside = {*graph.inputs, *graph.constants}
        self._computed = [name for name in graph.outputs if name not in outside]
        self.computed = tuple(graph.label(name) for name in self._computed)
        self.checked = tuple(
            graph.label(n) for n in graph.inputs if n in self._promises or n in self._distinct
        )
        self._lock = threading.Lock()

        begin = time.perf_counter()
        self._constants: dict[str, Values] = {}  # those that each run reads
        self._copies: dict[tuple[str, ...], dict[str, Values]] = {}  # of others, by kernel and constants
        own = {graph.label(name): list[tuple[Any, int]]() for name in (*graph.inputs, *graph.outputs)}
        self._slots = own  # of each run's own arrays: pointers, and which of them, by the model's names
        base = self._memory.ctypes.data
        between = {name: base + offset for name, offset in places.offsets.items()}
        # Each step is a function, and what it is called with.
        self._steps = [self._step(call, parts[call.kernel], compiled, between) for call in graph.calls]
        self.prepare_seconds = time.perf_counter() - begin

    def _step(
        self,
        call: Call,
        parts: Mapping[str, Program],
        compiled: Mapping[tuple[str, str], Function],
        between: Mapping[str, int],
    ) -> tuple[Any, Any]:
        """A call's function, and the places of its arrays; those of a run's own are left open."""
        kernel = self.graph.kernels[call.kernel].program
        tensors = dict(zip((*kernel.inputs, *kernel.outputs), (*call.inputs, *call.outputs), strict=True))
        known = {array: between.get(name) for array, name in tensors.items()}
        if ONCE in parts:
            copies = self._copied(compiled[call.kernel, ONCE].call, call.kernel, parts[ONCE], tensors)
            known |= {array: values.ctypes.data for array, values in copies.items()}
        program = parts[EACH_RUN]
        for array in program.inputs:
            if tensors.get(array) in self.graph.constants:
                known[array] = self._constant(tensors[array])
        arrays = (*program.inputs, *program.outputs)
        pointers = (ctypes.c_void_p * len(arrays))(*(known[array] for array in arrays))
        for number, array in enumerate(arrays):
            label = self.graph.label(tensors[array]) if array in tensors else ""
            if label in self._slots:
                self._slots[label].append((pointers, number))
        return compiled[call.kernel, EACH_RUN].call, pointers

    def _constant(self, name: str) -> int:
        """Where a constant lies that each run reads."""
        if name not in self._constants:
            self._constants[name] = _dense(self.graph.constants[name], ALIGNMENT)
        return self._constants[name].ctypes.data

    def _copied(
        self, function: Any, kernel: str, program: Program, tensors: Mapping[str, str]
    ) -> dict[str, Values]:
        """What a kernel's program copies of its constants, by the names of its arrays."""
        names = [tensors[array] for array in program.inputs]
        key = (kernel, *names)
        if key not in self._copies:
            made = {array: aligned(program.buffer_of[array].bytes) for array in program.outputs}
            given = [_dense(self.graph.constants[name]) for name in names]
            pointers = [values.ctypes.data for values in (*given, *made.values())]
            function((ctypes.c_void_p * len(pointers))(*pointers), self._workspace_at)
            self._copies[key] = made
        return self._copies[key]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Values]:
        """The outputs by the model's names, in arrays of their own.

        An input has exactly the tensor's shape, and its dtype as it is stored (``measure.pool.STORED``: bits
        of bf16 in uint16). Raises GraphError with a sentence where it has not, where one is missing or
        unknown, and where one that says places has an element beyond its domain.
        """
        given = self._taken(inputs)
        outputs = self._outputs()
        self.run_at(self._places(given, outputs))
        return self._results(given, outputs)

    def run_at(self, places: Mapping[str, int]) -> None:
        """Run on a caller's memory: the addresses of dense arrays of all inputs, and of the outputs that are
        ``computed``, by the model's names. What the inputs that are ``checked`` hold is the caller's to
        ``check``."""
        with self._lock:
            self._bind(places)
            for function, pointers in self._steps:
                function(pointers, self._workspace_at)

    def profile(self, inputs: Mapping[str, Any], runs: int = 10) -> list[Share]:
        """How long each call takes in whole runs of the model, one after the other: the least of several.

        Whoever reports it holds the measuring lock (``measure.exclusive.measuring``) meanwhile.
        """
        given = self._taken(inputs)
        outputs = self._outputs()
        least = [float("inf")] * len(self._steps)
        with self._lock:
            self._bind(self._places(given, outputs))
            for _ in range(runs):
                for number, (function, pointers) in enumerate(self._steps):
                    begin = time.perf_counter()
                    function(pointers, self._workspace_at)
                    least[number] = min(least[number], time.perf_counter() - begin)
        total = sum(least)
        return [
            Share(call, seconds, seconds / total)
            for call, seconds in zip(self.graph.calls, least, strict=True)
        ]

    # ------------------------------------------------------------------ a run's arrays

    def _taken(self, inputs: Mapping[str, Any]) -> dict[str, Values]:
        """The inputs by the graph's names, checked and dense."""
        graph, labels = self.graph, self._labels
        if inputs.keys() - labels.keys():
            unknown = next(label for label in inputs if label not in labels)
            raise GraphError(
                f"{graph.name} has no input {unknown}: its inputs are {', '.join(labels) or 'none'}."
            )
        given: dict[str, Values] = {}
        for label, name in labels.items():
            tensor = graph.tensors[name]
            if label not in inputs:
                raise GraphError(f"The input {label} is missing: give {tensor.kind}.")
            values = np.asarray(inputs[label])
            if values.shape != tensor.shape or values.dtype != STORED[tensor.dtype]:
                values = as_stored(replace(tensor, name=label), values)
            given[name] = _dense(values)
            self.check(label, given[name])
        return given

    def check(self, label: str, values: Values) -> None:
        """Does an input hold what kernels count on? Raises GraphError with a sentence where it does not."""
        name = self._labels[label]
        if name in self._promises:
            _check_within(label, values, *self._promises[name])
        if name in self._distinct and len(np.unique(values)) < values.size:
            raise GraphError(f"The input {label} has an element twice, and its elements are to be distinct.")

    def _outputs(self) -> dict[str, Values]:
        """An array for each output that a call gives."""
        return {name: _empty(self.graph.tensors[name]) for name in self._computed}

    def _places(self, *arrays: Mapping[str, Values]) -> dict[str, int]:
        """Where arrays lie, by the model's names."""
        return {self.graph.label(name): a.ctypes.data for each in arrays for name, a in each.items()}

    def _bind(self, places: Mapping[str, int]) -> None:
        for label, place in places.items():
            for pointers, number in self._slots[label]:
                pointers[number] = place

    def _results(self, given: Mapping[str, Values], outputs: Mapping[str, Values]) -> dict[str, Values]:
        graph = self.graph
        results: dict[str, Values] = {}
        for name in graph.outputs:
            values = outputs.get(name)
            if values is None:
                values = (given[name] if name in given else graph.constants[name]).copy()
            results[graph.label(name)] = (
                values.view(np.bool_) if graph.tensors[name].dtype == "bool" else values
            )
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


def parts_of(graph: Graph, kernel: str, program: Program) -> dict[str, Program]:
    """What runs in each run, and what runs once, where all calls have constants that the program copies."""
    parts = hoisted(program, constants_of(graph, kernel))
    return {EACH_RUN: program} if parts is None else {EACH_RUN: parts.each_run, ONCE: parts.once}


def constants_of(graph: Graph, kernel: str) -> frozenset[str]:
    """The inputs of a kernel's program that are constants in all its calls; none where it has no call."""
    inputs = graph.kernels[kernel].program.inputs
    calls = [call.inputs for call in graph.calls if call.kernel == kernel]
    given = zip(inputs, *calls, strict=True) if calls else ()
    return frozenset(array for array, *names in given if all(name in graph.constants for name in names))


def promises(graph: Graph) -> dict[str, tuple[float, float]]:
    """Between which values inputs have to lie, for a kernel makes places of them."""
    known: dict[str, tuple[float, float]] = {}
    for call in graph.calls:
        program = graph.kernels[call.kernel].program
        for array, name in zip(program.inputs, call.inputs, strict=True):
            promise = promised(program, array)
            if promise is not None and name in graph.inputs:
                low, high = known.get(name, promise)
                known[name] = max(low, promise[0]), min(high, promise[1])
    return known


def _distinct(graph: Graph) -> frozenset[str]:
    """The inputs no two of whose elements may be the same."""
    return frozenset(
        name
        for call in graph.calls
        for array, name in zip(graph.kernels[call.kernel].program.inputs, call.inputs, strict=True)
        if name in graph.inputs and counts_on_distinct(graph.kernels[call.kernel].program, array)
    )


# ---------------------------------------------------------------------------- memory


def aligned(size: int) -> Values:
    """So many bytes from a place on that is a multiple of ALIGNMENT; what they hold is not told."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size]


def _empty(tensor: Tensor) -> Values:
    return aligned(tensor.bytes).view(STORED[tensor.dtype]).reshape(tensor.shape)


def _dense(values: Values, alignment: int = 1) -> Values:
    """The same in row-major order, at a multiple of the elements' size and of ``alignment`` bytes; copied
    where it is not so."""
    if values.flags.c_contiguous and values.flags.aligned and values.ctypes.data % alignment == 0:
        return values
    copy = aligned(values.nbytes).view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def _check_within(label: str, values: Values, low: float, high: float) -> None:
    if values.size and not (low <= values.min() and values.max() <= high):  # NaN is not within either
        raise GraphError(
            f"The input {label} has elements beyond {low:g} to {high:g}, which places are made of: "
            "they would lead outside of an array."
        )
