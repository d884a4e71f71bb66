"""A graph of ATen operators that the Dojo takes whole, as a function of tensors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from agents.graphs.programs import heuristic, recorded
from agents.graphs.searching import search
from agents.torch_backend.nodes import is_item, tensor_name, tensor_of, translated
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.settings import Settings
from agents.torch_backend.tensors import Values, from_stored, stored
from dojo_core.graph import Graph, GraphError, Kind, Model, Node, Tensor, build
from dojo_core.measure.records import Records
from dojo_core.program.tree import Program

# Views with all elements of what they view: what is promised of places holds of the input behind them too.
_WHOLE = {"view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "expand", "permute", "alias", "clone"}


@dataclass(frozen=True)
class _Result:
    """One of a part's results: a tensor by name, of this dtype and these strides."""

    name: str
    dtype: torch.dtype
    strides: tuple[int, ...]
    dense: bool  # do the strides say row-major order?

    def tensor(self, values: Values) -> torch.Tensor:
        tensor = from_stored(values, self.dtype)
        if self.dense:
            return tensor
        strided = torch.empty_strided(tensor.shape, self.strides, dtype=self.dtype)
        return strided.copy_(tensor)


class Part:
    """A graph compiled: called with its placeholders' tensors in order, gives the list of its results.

    ``fixed`` are placeholders, by their number, whose tensors are constants: weights that are laid out once.
    A call with another tensor in their place, or with one that was written to, compiles anew. Calls in several
    threads go one after the other.
    """

    def __init__(
        self,
        name: str,
        graph: torch.fx.Graph,
        attributes: torch.nn.Module,
        settings: Settings,
        fixed: Mapping[int, torch.Tensor],
    ) -> None:
        """``attributes`` has the tensors that the graph names. Raises Refusal where it cannot be compiled."""
        self._settings, self._name = settings, name
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._fixed = {k: tensor for k, tensor in fixed.items() if placeholders[k].users}
        self._inputs, self._nodes, self._results = _read(graph, placeholders)
        self._constants = {
            node.name: getattr(attributes, node.target) for node in graph.nodes if node.op == "get_attr"
        }
        self._names = [node.name for node in placeholders]
        self._lock = threading.Lock()
        self._compile()

    @property
    def model(self) -> Model:
        return self._model

    def _compile(self) -> None:
        constants = {**self._constants, **{self._names[k]: t for k, t in self._fixed.items()}}
        taken = {name for result in self._results if isinstance(result, _Result) for name in [result.name]}
        inputs = [t for t in self._inputs.values() if t.name not in constants]
        try:
            with _disable_current_modes():  # constants are real, whatever PyTorch is tracing
                graph = build(
                    self._name,
                    inputs,
                    self._nodes,
                    sorted(taken),
                    {name: stored(tensor) for name, tensor in constants.items()},
                    [tensor_of(name, tensor) for name, tensor in constants.items()],
                )
            self._model = Model(graph, _choice(graph, self._settings), self._settings.policy)
        except GraphError as fault:
            raise Refusal(str(fault).rstrip(".")) from fault
        self._wanted = [
            (k, name)
            for k, name in enumerate(self._names)
            if name in {graph.label(each) for each in graph.inputs}
        ]
        self._versions = {k: _version(tensor) for k, tensor in self._fixed.items()}

    def __call__(self, *given: torch.Tensor) -> list[Any]:
        """Raises IndexError where a place that is data lies beyond what it leads to."""
        changed = {k: given[k] for k, was in self._versions.items() if _version(given[k]) != was}
        if changed:
            with self._lock:
                self._fixed = {**self._fixed, **changed}
                self._compile()
        _threads(torch.get_num_threads())
        try:
            values = self._model.run({name: stored(given[k]) for k, name in self._wanted})
        except GraphError as fault:
            raise IndexError(str(fault)) from None
        return [
            result.tensor(values[result.name])
            if isinstance(result, _Result)
            else given[result]
            for result in self._results
        ]


def _read(
    graph: torch.fx.Graph, placeholders: Sequence[torch.fx.Node]
) -> tuple[dict[str, Tensor], list[Node], list[_Result | int]]:
    """Inputs, nodes and results of a graph; a result that is a placeholder is its number."""
    made = [translated(node) for node in graph.nodes if node.op == "call_function" and not is_item(node)]
    nodes = [each.node for each in made]
    inputs = {node.name: tensor_of(node.name, node.meta["val"]) for node in placeholders if node.users}
    makers = {tensor.name: node for node in nodes for tensor in node.outputs}
    for each in made:
        for name, (low, high) in each.promises.items():
            name = _behind(name, makers)
            if name in inputs:
                tensor = inputs[name]
                was = tensor.domain or (low, high)
                domain = max(was[0], low), min(was[1], high)
                inputs[name] = Tensor(name, tensor.dtype, tensor.shape, domain)
    numbers = {node: k for k, node in enumerate(placeholders)}
    (output,) = [node for node in graph.nodes if node.op == "output"]
    results = [numbers[node] if node in numbers else _result(node) for node in _listed(output.args[0])]
    return inputs, nodes, results


def _behind(name: str, makers: Mapping[str, Node]) -> str:
    """The tensor that another shows all elements of."""
    while name in makers:
        node = makers[name]
        if node.kind is not Kind.VIEW or node.operator.partition(".")[0] not in _WHOLE:
            break
        name = node.inputs[0]
    return name


def _listed(results: Any) -> list[torch.fx.Node]:
    return [results] if isinstance(results, torch.fx.Node) else list(results)


def _result(node: torch.fx.Node) -> _Result:
    value = node.meta["val"]
    return _Result(tensor_name(node), value.dtype, tuple(value.stride()), value.is_contiguous())


def _choice(graph: Graph, settings: Settings) -> Callable[[Program], Program]:
    """Which program runs for a kernel."""
    if not (settings.budget or settings.records):
        return lambda start: heuristic(start, settings.policy)
    with Records() as records:
        if settings.budget:
            search(graph, settings.budget, records, settings.policy)
        choose = recorded(records, settings.policy)
        programs = {kernel.program.hash: choose(kernel.program) for kernel in graph.kernels.values()}
    return lambda start: programs[start.hash]


def _version(tensor: torch.Tensor) -> tuple[int, int]:
    """Changes where a tensor is another one or was written to."""
    return tensor.data_ptr(), -1 if tensor.is_inference() else tensor._version


@cache
def _openmp() -> ctypes.CDLL | None:
    """The library that threads of kernels come from."""
    try:
        return ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None


def _threads(count: int) -> None:
    """Kernels of this thread's calls run on so many."""
    openmp = _openmp()
    if openmp is not None:
        openmp.omp_set_num_threads(count)
