"""A graph of ATen operators that the Dojo takes whole, as a function of tensors."""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from agents.torch_backend.layouts import Order, inverse, order_of, ordered, reordering
from agents.torch_backend.nodes import Trials, tensor_name, tensor_of
from agents.torch_backend.programs import choice
from agents.torch_backend.reading import read
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.settings import Settings
from agents.torch_backend.tensors import Values, from_stored, stored
from dojo_core.graph import GraphError, Model, Tensor, build

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Port:
    """A tensor of PyTorch's as the model has it: under a name, with its axes in an order, densely.

    ``strides``: those of such a tensor.
    """

    name: str
    order: Order
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(name: str, value: torch.Tensor) -> _Port:
        order = order_of(value)
        dense = torch.empty([value.shape[axis] for axis in order], device="meta").permute(inverse(order))
        return _Port(name, order, value.dtype, tuple(value.shape), dense.stride())

    @property
    def turned(self) -> bool:
        return list(self.order) != sorted(self.order)

    def values(self, tensor: torch.Tensor) -> Values:
        return stored(tensor.permute(self.order))

    def dense(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, or a copy of it that lies densely."""
        if tensor.stride() == self.strides and not tensor.is_neg():
            return tensor
        return tensor.resolve_neg().permute(self.order).contiguous()

    def empty(self) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype)

    def tensor(self, values: Values) -> torch.Tensor:
        return from_stored(values, self.dtype).permute(inverse(self.order))


class Part:
    """A graph compiled: called with its placeholders' tensors in order, gives the list of its results.

    ``fixed`` are placeholders, by their number, whose tensors are constants: weights that are laid out
    once. A call with another tensor in their place, or with one that was written to, compiles anew. Calls in
    several threads go one after the other.
    """

    def __init__(
        self,
        name: str,
        graph: torch.fx.Graph,
        attributes: torch.nn.Module,
        settings: Settings,
        fixed: Mapping[int, torch.Tensor],
        trials: Trials,
    ) -> None:
        """``attributes`` has the tensors that the graph names. Raises Refusal where it cannot be compiled."""
        self._settings, self._name = settings, name
        given = read(graph, trials)
        self._numbers = {node.name: k for k, node in enumerate(given.placeholders)}
        self._fixed = {k: tensor for k, tensor in fixed.items() if given.placeholders[k].users}
        self._constants = {
            node.name: getattr(attributes, node.target) for node in graph.nodes if node.op == "get_attr"
        }
        self._inputs: list[Tensor] = []
        self._nodes = list(given.nodes)
        self._ports: dict[int, _Port] = {}  # by the number of the argument
        for name, tensor in given.inputs.items():
            number = self._numbers[name]
            if number not in self._fixed:
                self._ports[number] = self._input(tensor, given.placeholders[number].meta["val"])
        self._results = [self._result(node) for node in given.results]
        self._lock = threading.Lock()
        self._compile()

    @property
    def model(self) -> Model:
        return self._model

    def _input(self, tensor: Tensor, value: torch.Tensor) -> _Port:
        port = _Port.of(tensor.name, value)
        if port.turned:
            port = replace(port, name=f"{tensor.name}.stored")
            as_stored = ordered(tensor, port.name, port.order)
            self._nodes.append(reordering(as_stored, tensor, inverse(port.order)))
            tensor = as_stored
        self._inputs.append(tensor)
        return port

    def _result(self, node: torch.fx.Node | None) -> _Port | int | None:
        """Where a result comes from: the model, or an argument of that number."""
        if node is None:
            return None
        if node.name in self._numbers:
            return self._numbers[node.name]
        tensor, value = tensor_of(tensor_name(node), node.meta["val"]), node.meta["val"]
        port = _Port.of(tensor.name, value)
        if not port.turned:
            return port
        as_stored = ordered(tensor, f"{tensor.name}.stored", port.order)
        if all(each.name != f"{as_stored.name}.order" for each in self._nodes):
            self._nodes.append(reordering(tensor, as_stored, port.order))
        return replace(port, name=as_stored.name)

    def _compile(self) -> None:
        weights = {name: self._fixed[k] for name, k in self._numbers.items() if k in self._fixed}
        constants = {**self._constants, **weights}
        begin = time.perf_counter()
        wanted = dict.fromkeys(result.name for result in self._results if isinstance(result, _Port))
        try:
            with _disable_current_modes():  # constants are real, whatever PyTorch is tracing
                graph = build(
                    self._name,
                    self._inputs,
                    self._nodes,
                    list(wanted),
                    {name: stored(tensor) for name, tensor in constants.items()},
                    [tensor_of(name, tensor) for name, tensor in constants.items()],
                )
            built = time.perf_counter()
            self._model = Model(graph, choice(graph, self._settings), self._settings.policy)
        except GraphError as fault:
            raise Refusal(str(fault).rstrip(".")) from fault
        self._direct = {*wanted} == {*self._model.computed}
        self._versions = {k: _version(tensor) for k, tensor in self._fixed.items()}
        log.info(
            "Compiled: %(build).1f s for the graph, %(play).1f s for programs, %(compile).1f s for code, "
            "%(prepare).1f s for weights.",
            {
                "build": built - begin,
                "play": self._model.choose_seconds,
                "compile": self._model.compile_seconds,
                "prepare": self._model.prepare_seconds,
            },
        )

    def __call__(self, *given: torch.Tensor) -> list[Any]:
        """Raises IndexError where a place that is data lies beyond what it leads to."""
        changed = {k: given[k] for k, was in self._versions.items() if _version(given[k]) != was}
        if changed:
            with self._lock:
                self._fixed = {**self._fixed, **changed}
                self._compile()
        _threads(torch.get_num_threads())
        try:
            results = self._run(given) if self._direct else self._run_on_arrays(given)
        except GraphError as fault:
            raise IndexError(str(fault)) from None
        return [
            results[result.name] if isinstance(result, _Port) else None if result is None else given[result]
            for result in self._results
        ]

    def _run(self, given: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Results by name, which kernels write where the tensors lie."""
        inputs = {port.name: port.dense(given[k]) for k, port in self._ports.items()}
        for k, port in self._ports.items():
            if port.name in self._model.checked:
                self._model.check(port.name, port.values(given[k]))
        outputs = {port.name: port.empty() for port in self._results if isinstance(port, _Port)}
        self._model.run_at({name: tensor.data_ptr() for name, tensor in (inputs | outputs).items()})
        return outputs

    def _run_on_arrays(self, given: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The same where a result is an argument or a constant, of which the model makes a copy."""
        values = self._model.run({port.name: port.values(given[k]) for k, port in self._ports.items()})
        return {
            port.name: port.tensor(values[port.name]) for port in self._results if isinstance(port, _Port)
        }


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
