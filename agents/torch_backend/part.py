"""A graph of the Dojo's as a function of PyTorch's tensors."""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from agents.torch_backend.layouts import Order, inverse, order_of
from agents.torch_backend.programs import choice
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.settings import Settings
from agents.torch_backend.tensors import Values, from_stored, stored
from dojo_core.graph import Graph, GraphError, Model

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Port:
    """A tensor of PyTorch's as the model has it: under a name, with its axes in an order, densely.

    ``strides``: those of such a tensor.
    """

    name: str
    order: Order
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(name: str, value: torch.Tensor) -> Port:
        return Port.dense_of(name, order_of(value), value.dtype, tuple(value.shape))

    @staticmethod
    def dense_of(name: str, order: Order, dtype: torch.dtype, shape: tuple[int, ...]) -> Port:
        dense = torch.empty([shape[axis] for axis in order], device="meta").permute(inverse(order))
        return Port(name, order, dtype, shape, dense.stride())

    @property
    def turned(self) -> bool:
        return list(self.order) != sorted(self.order)

    def values(self, tensor: torch.Tensor) -> Values:
        return stored(tensor.permute(self.order))

    def tensor(self, values: Values) -> torch.Tensor:
        return from_stored(values, self.dtype).permute(inverse(self.order))

    def dense(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, or a copy of it that lies densely."""
        if tensor.stride() == self.strides and not tensor.is_neg():
            return tensor
        return tensor.resolve_neg().permute(self.order).contiguous()

    def empty(self) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype)


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
        begin = time.perf_counter()
        try:
            with _disable_current_modes():  # constants are real, whatever PyTorch is tracing
                graph = self._assemble(self._fixed)
            built = time.perf_counter()
            self._model = Model(graph, choice(graph, self._settings), self._settings.policy)
        except GraphError as fault:
            raise Refusal(str(fault).rstrip(".")) from fault
        # What a call looks up is worked out here: where data has pushed Python out of the caches, each object
        # that a call touches costs as much as a hundred operations.
        interface, checked = self.interface, self._model.checked
        self._outputs = tuple(result for result in interface.results if isinstance(result, Port))
        self._direct = {port.name for port in self._outputs} == {*self._model.computed}
        self._inputs = tuple(interface.ports.items())
        self._checked = tuple((k, port) for k, port in self._inputs if port.name in checked)
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
        self._undecided = bool(self._settings.budget) and not _is_decided(graph, self._settings)
        self._fixed_at = tuple(self._fixed)
        self._versions = [_version(tensor) for tensor in self._fixed.values()]

    def __call__(self, *given: torch.Tensor) -> list[Any]:
        """Raises IndexError where a place that is data lies beyond what it leads to."""
        if [_version(given[k]) for k in self._fixed_at] != self._versions:
            with self._lock:
                self._fixed = {k: given[k] for k in self._fixed_at}
                self._compile()
        _threads(torch.get_num_threads())
        try:
            if self._undecided:
                self._decide(given)
            results = self._run(given) if self._direct else self._run_on_arrays(given)
        except GraphError as fault:
            raise IndexError(str(fault)) from None
        return [
            results[result.name] if isinstance(result, Port) else None if result is None else given[result]
            for result in self.interface.results
        ]

    def _decide(self, given: Sequence[torch.Tensor]) -> None:
        """With the first arguments: which of the programs that a search found stay."""
        from agents.torch_backend.deciding import decide

        with self._lock:
            if self._undecided and decide(self._model, self._settings, self._values(given)):
                self._compile()
            self._undecided = False

    def _values(self, given: Sequence[torch.Tensor]) -> dict[str, Values]:
        return {port.name: port.values(given[k]) for k, port in self._inputs}

    def _run(self, given: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """Results by name, which kernels write where the tensors lie."""
        for k, port in self._checked:
            self._model.check(port.name, port.values(given[k]))
        inputs = [port.dense(given[k]) for k, port in self._inputs]  # copies live until the run is over
        places = {
            port.name: tensor.data_ptr() for (_, port), tensor in zip(self._inputs, inputs, strict=True)
        }
        outputs: dict[str, torch.Tensor] = {}
        for port in self._outputs:
            outputs[port.name] = tensor = port.empty()
            places[port.name] = tensor.data_ptr()
        self._model.run_at(places)
        return outputs

    def _run_on_arrays(self, given: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The same where a result is an argument or a constant, of which the model makes a copy."""
        values = self._model.run(self._values(given))
        return {port.name: port.tensor(values[port.name]) for port in self._outputs}


def _is_decided(graph: Graph, settings: Settings) -> bool:
    from agents.torch_backend.searching import lost  # imported where something is searched

    return lost(graph, settings) is not None


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
