"""A graph in two: parts that the Dojo takes, and what stays in PyTorch, with the reasons."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from agents.torch_backend.call import OPERATORS
from agents.torch_backend.lowering import lowered
from agents.torch_backend.nodes import Trials, is_item, operator_name, translated
from agents.torch_backend.part import Part
from agents.torch_backend.refusal import Refusal
from agents.torch_backend.settings import Settings
from agents.torch_backend.simplifying import simplify
from dojo_core.graph import Kind

log = logging.getLogger(__name__)

TOLD = 6  # reasons in one line of the log


class NothingTaken(Exception):
    """Of a graph nothing runs in the Dojo."""


def refusals(graph: torch.fx.Graph, trials: Trials) -> dict[torch.fx.Node, Refusal]:
    """The operations of a graph that the Dojo does not take, and why."""
    found: dict[torch.fx.Node, Refusal] = {}
    for node in _operations(graph):
        try:
            translated(node, trials)
        except Refusal as refusal:
            found[node] = refusal
    return found


def split(
    module: torch.fx.GraphModule, settings: Settings, fixed: Mapping[int, torch.Tensor]
) -> Callable[..., Any]:
    """A graph of ATen operators as a function of the same arguments and results, as much of it as can be
    compiled by the Dojo. ``fixed``: placeholders whose tensors are constants. A line of the log says what
    stays in PyTorch, and why. Raises NothingTaken where all does.
    """
    simplify(module)
    trials: Trials = {}
    operations = _operations(module.graph)
    refused = refusals(module.graph, trials)
    if refused:
        _tell(len(operations), refused)
    if not _computes(set(operations) - set(refused)):
        raise NothingTaken
    if refused:
        return _in_parts(module, refused, settings, fixed, trials)
    try:
        return lowered("model", module.graph, module, settings, fixed, trials)
    except Refusal as refusal:
        _tell_part(refusal)
        raise NothingTaken from refusal


def _operations(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    return [n for n in graph.nodes if n.op not in ("placeholder", "output", "get_attr") and not is_item(n)]


class _Taken(OperatorSupportBase):
    def __init__(self, refused: Mapping[torch.fx.Node, Refusal]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node) -> bool:
        maker = node.args[0] if is_item(node) else node
        return node.op == "call_function" and maker not in self._refused


def _in_parts(
    module: torch.fx.GraphModule,
    refused: Mapping[torch.fx.Node, Refusal],
    settings: Settings,
    fixed: Mapping[int, torch.Tensor],
    trials: Trials,
) -> Callable[..., Any]:
    numbers = {node: k for k, node in enumerate(n for n in module.graph.nodes if n.op == "placeholder")}
    partitioner = CapabilityBasedPartitioner(module, _Taken(refused), allows_single_node_partition=True)
    partitions = [p for p in partitioner.propose_partitions() if _computes(p.nodes)]
    whole = partitioner.fuse_partitions(partitions)
    for node in whole.graph.nodes:
        if node.op != "call_module":
            continue
        inner = getattr(whole, node.target)
        known = {k: fixed[numbers[a]] for k, a in enumerate(node.args) if numbers.get(a) in fixed}
        try:
            part = lowered(node.target, inner.graph, inner, settings, known, trials)
        except Refusal as refusal:
            _tell_part(refusal)
        else:
            single = isinstance(_output(inner.graph), torch.fx.Node)
            inner.forward = _one(part) if single else part
    return whole.forward


def _computes(nodes: Any) -> bool:
    """Is there more to do than to look at arrays otherwise?"""
    return any(
        OPERATORS[operator_name(node.target)].kind is not Kind.VIEW for node in nodes if not is_item(node)
    )


def _output(graph: torch.fx.Graph) -> Any:
    (output,) = [node for node in graph.nodes if node.op == "output"]
    return output.args[0]


def _one(part: Part) -> Callable[..., Any]:
    return lambda *given: part(*given)[0]


def _tell(count: int, refused: Mapping[torch.fx.Node, Refusal]) -> None:
    by_reason: dict[tuple[str, str], int] = defaultdict(int)
    for node, refusal in refused.items():
        by_reason[operator_name(node.target), str(refusal)] += 1
    told = [
        f"{name}{f' ({number} times)' if number > 1 else ''}: {reason}"
        for (name, reason), number in by_reason.items()
    ]
    more = f"; and {len(told) - TOLD} more" if len(told) > TOLD else ""
    log.warning(
        "%d of %d operations stay in PyTorch. %s%s.", len(refused), count, "; ".join(told[:TOLD]), more
    )


def _tell_part(refusal: Refusal) -> None:
    log.warning("A part of the model stays in PyTorch: %s.", refusal)
