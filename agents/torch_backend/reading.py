"""A graph of ATen operators as what the Dojo builds graphs of: inputs, nodes, results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch.fx

from agents.torch_backend.nodes import Trials, is_item, tensor_of, translated
from dojo_core.graph import Kind, Node, Tensor

# Views with all elements of what they view: what is promised of places holds of the input behind them too.
_WHOLE = {"view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "expand", "permute", "alias", "clone"}


@dataclass(frozen=True)
class Read:
    """``inputs`` are the placeholders that anything reads, by name; ``results`` the nodes whose tensors the
    graph gives, in order, None where it gives nothing."""

    placeholders: tuple[torch.fx.Node, ...]
    inputs: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    results: tuple[torch.fx.Node | None, ...]


def read(graph: torch.fx.Graph, trials: Trials) -> Read:
    """Raises Refusal for the first operation that cannot be taken."""
    placeholders = tuple(node for node in graph.nodes if node.op == "placeholder")
    calls = [node for node in graph.nodes if node.op == "call_function" and not is_item(node)]
    made = [translated(node, trials) for node in calls]
    nodes = tuple(each.node for each in made)
    inputs = {node.name: tensor_of(node.name, node.meta["val"]) for node in placeholders if node.users}
    makers = {tensor.name: node for node in nodes for tensor in node.outputs}
    for each in made:
        for name, (low, high) in each.promises.items():
            source = _behind(name, makers)
            if source in inputs:
                tensor = inputs[source]
                was = tensor.domain or (low, high)
                domain = max(was[0], low), min(was[1], high)
                inputs[source] = Tensor(source, tensor.dtype, tensor.shape, domain)
    return Read(placeholders, inputs, nodes, tuple(_results(graph)))


def _behind(name: str, makers: Mapping[str, Node]) -> str:
    """The tensor that another shows all elements of."""
    while name in makers:
        node = makers[name]
        if node.kind is not Kind.VIEW or node.operator not in _WHOLE:
            break
        name = node.inputs[0]
    return name


def _results(graph: torch.fx.Graph) -> Sequence[torch.fx.Node | None]:
    (output,) = [node for node in graph.nodes if node.op == "output"]
    results: Any = output.args[0]
    return [results] if isinstance(results, torch.fx.Node) else list(results)
