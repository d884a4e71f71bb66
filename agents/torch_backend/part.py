"""A graph of the Dojo's as a function of PyTorch's tensors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from agents.torch_backend.layouts import Order, inverse
from agents.torch_backend.programs import choice
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.settings import Settings
from agents.torch_backend.tensors import Values, from_stored, stored
from dojo_core.graph import Graph, GraphError, Model


@dataclass(frozen=True)
class Port:
    """A tensor of PyTorch's as the model has it: under a name, with its axes in an order."""

    name: str
    order: Order
    dtype: torch.dtype

    def values(self, tensor: torch.Tensor) -> Values:
        return stored(tensor.permute(self.order))

    def tensor(self, values: Values) -> torch.Tensor:
        return from_stored(values, self.dtype).permute(inverse(self.order))


@dataclass(frozen=True)
class Interface:
    """What of a call goes into the model, by the number of the argument; and where each result comes from:
    the model, an argument of that number, or nothing."""

    ports: Mapping[int, Port]
    results: tuple[Port | int | None, ...]


Assemble = Callable[[Mapping[int, torch.Tensor]], Graph]
"""The graph with these tensors as constants, by the number of the argument."""


class Part:
    """A graph compiled: called with its placeholders' tensors in order, gives the list of its results.

    ``fixed`` are placeholders, by their number, whose tensors are constants: weights that are laid out
    once. A call with another tensor in their place, or with one that was written to, compiles anew. Calls in
    several threads go one after the other.
    """

    def __init__(
        self,
        interface: Interface,
        assemble: Assemble,
        settings: Settings,
        fixed: Mapping[int, torch.Tensor],
    ) -> None:
        """Raises Refusal where it cannot be compiled."""
        self.interface = interface
        self._assemble, self._settings, self._fixed = assemble, settings, fixed
        self._lock = threading.Lock()
        self._compile()

    @property
    def model(self) -> Model:
        return self._model

    def _compile(self) -> None:
        try:
            with _disable_current_modes():  # constants are real, whatever PyTorch is tracing
                graph = self._assemble(self._fixed)
            self._model = Model(graph, choice(graph, self._settings), self._settings.policy)
        except GraphError as fault:
            raise Refusal(str(fault).rstrip(".")) from fault
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
            values = self._model.run(
                {port.name: port.values(given[k]) for k, port in self.interface.ports.items()}
            )
        except GraphError as fault:
            raise IndexError(str(fault)) from None
        return [_taken(result, values, given) for result in self.interface.results]


def _taken(result: Port | int | None, values: Mapping[str, Values], given: Sequence[torch.Tensor]) -> Any:
    if isinstance(result, Port):
        return result.tensor(values[result.name])
    return None if result is None else given[result]


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
