"""From a graph of ATen operators, all of which the Dojo takes, to a part that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
import torch.fx

from agents.torch_backend.layouts import inverse, ordered, reordering
from agents.torch_backend.nodes import Trials, tensor_name, tensor_of
from agents.torch_backend.part import Interface, Part, Port
from agents.torch_backend.reading import read
from agents.torch_backend.settings import Settings
from agents.torch_backend.tensors import stored
from dojo_core.graph import Graph, Tensor, build


def lowered(
    name: str,
    graph: torch.fx.Graph,
    attributes: torch.nn.Module,
    settings: Settings,
    fixed: Mapping[int, torch.Tensor],
    trials: Trials,
) -> Part:
    """``attributes`` has the tensors that the graph names, ``fixed`` those of placeholders that are
    constants. Raises Refusal where it cannot be compiled."""
    lowering = _Lowering(name, graph, attributes, fixed, trials)
    return Part(lowering.interface, lowering.assembled, settings, lowering.fixed)


class _Lowering:
    def __init__(
        self,
        name: str,
        graph: torch.fx.Graph,
        attributes: torch.nn.Module,
        fixed: Mapping[int, torch.Tensor],
        trials: Trials,
    ) -> None:
        given = read(graph, trials)
        self._name = name
        self._numbers = {node.name: k for k, node in enumerate(given.placeholders)}
        self.fixed = {k: tensor for k, tensor in fixed.items() if given.placeholders[k].users}
        self._constants = {
            node.name: getattr(attributes, node.target) for node in graph.nodes if node.op == "get_attr"
        }
        self._inputs: list[Tensor] = []
        self._nodes = list(given.nodes)
        ports: dict[int, Port] = {}
        for key, tensor in given.inputs.items():
            number = self._numbers[key]
            if number not in self.fixed:
                ports[number] = self._input(tensor, given.placeholders[number].meta["val"])
        self.interface = Interface(ports, tuple(self._result(node) for node in given.results))

    def _input(self, tensor: Tensor, value: torch.Tensor) -> Port:
        port = Port.of(tensor.name, value)
        if port.turned:
            port = replace(port, name=f"{tensor.name}.stored")
            as_stored = ordered(tensor, port.name, port.order)
            self._nodes.append(reordering(as_stored, tensor, inverse(port.order)))
            tensor = as_stored
        self._inputs.append(tensor)
        return port

    def _result(self, node: torch.fx.Node | None) -> Port | int | None:
        if node is None:
            return None
        if node.name in self._numbers:
            return self._numbers[node.name]
        tensor, value = tensor_of(tensor_name(node), node.meta["val"]), node.meta["val"]
        port = Port.of(tensor.name, value)
        if not port.turned:
            return port
        as_stored = ordered(tensor, f"{tensor.name}.stored", port.order)
        if all(each.name != f"{as_stored.name}.order" for each in self._nodes):
            self._nodes.append(reordering(tensor, as_stored, port.order))
        return replace(port, name=as_stored.name)

    def assembled(self, fixed: Mapping[int, torch.Tensor]) -> Graph:
        """The graph, with these tensors in the places of placeholders."""
        weights = {name: fixed[k] for name, k in self._numbers.items() if k in fixed}
        constants = {**self._constants, **weights}
        results = self.interface.results
        return build(
            self._name,
            self._inputs,
            self._nodes,
            list(dict.fromkeys(result.name for result in results if isinstance(result, Port))),
            {name: stored(tensor) for name, tensor in constants.items()},
            [tensor_of(name, tensor) for name, tensor in constants.items()],
        )
