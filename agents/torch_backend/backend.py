"""The backend ``dojo`` of ``torch.compile``: when it compiles a graph, and when it leaves it to PyTorch."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.fx
from torch._dynamo import disable

from agents.torch_backend.kept import keep, kept
from agents.torch_backend.keys import graph_key
from agents.torch_backend.left_out import listen
from agents.torch_backend.settings import Settings

log = logging.getLogger(__name__)

SHAPES = 16  # of one graph that are compiled, each for itself


def dojo(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile what TorchDynamo traced. Raises ValueError, a sentence, for options that there are not."""
    if mode is not None:
        raise ValueError(f"mode={mode!r} is Inductor's: for the Dojo give options={{'budget': 200}}.")
    settings = Settings.of(options)
    listen()
    if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
        log.warning(
            "The model stays in PyTorch: gradients are wanted, and the Dojo computes forward only. "
            "Call it under torch.no_grad() or torch.inference_mode()."
        )
        return module.forward
    if any(isinstance(x, torch.SymInt) for x in inputs):
        return disable(_ByShape(module, settings), reason="the Dojo compiles for shapes itself")
    return _compiled(module, inputs, settings)


def _compiled(module: torch.fx.GraphModule, inputs: Sequence[Any], settings: Settings) -> Callable[..., Any]:
    """For these shapes: kept from another process, or compiled now."""
    frozen = settings.freeze or _frozen()
    key = None if frozen else graph_key(module, inputs)  # constants are a process's own
    part = kept(key, inputs, settings) if key else None
    if part is not None:
        return disable(part, reason="it is compiled by the Dojo")
    # Imported where something is traced: that takes longer than all that a kept graph needs.
    from agents.torch_backend.compiling import compiled
    from agents.torch_backend.splitting import NothingTaken

    try:
        function, part = compiled(module, inputs, settings, _weights(module, inputs) if frozen else {})
    except NothingTaken:
        return module.forward  # as it was traced: broken down it would be slower
    if part is None:
        return disable(function, reason="it is compiled by the Dojo")
    if key:
        keep(key, part)
    return disable(part, reason="it is compiled by the Dojo")  # what AOTAutograd does around it is not needed


def _frozen() -> bool:
    """Does PyTorch's own flag say that weights are constants? (Who sets it has imported it.)"""
    config = sys.modules.get("torch._inductor.config")
    return config is not None and bool(config.freezing)


def _weights(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> dict[int, torch.Tensor]:
    """Which inputs are parameters and buffers of modules."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    return {
        k: tensor
        for k, (node, tensor) in enumerate(zip(placeholders, inputs, strict=True))
        if "_dynamo_static_input_type" in node.meta.get("tensor_dict", {})
        and isinstance(tensor, torch.Tensor)
    }


class _ByShape:
    """A graph whose sizes are symbols: compiled for each shape that it is called with."""

    def __init__(self, module: torch.fx.GraphModule, settings: Settings) -> None:
        self._module, self._settings = module, settings
        self._items = _items(module.graph)
        self._known: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *given: Any) -> Any:
        numbers = set(self._items.values())
        key = tuple(_shape(x, k in numbers) for k, x in enumerate(given))
        if key not in self._known:
            if len(self._known) == SHAPES:
                log.warning("More than %d shapes of one graph: the others stay in PyTorch.", SHAPES)
            if len(self._known) >= SHAPES:
                return self._module(*given)
            module = _specialised(self._module, {item: given[k].item() for item, k in self._items.items()})
            self._known[key] = _compiled(module, given, self._settings)
        return self._known[key](*given)


def _shape(value: Any, is_number: bool) -> Any:
    """What compiled code hangs on of an argument."""
    if not isinstance(value, torch.Tensor):
        return value
    return (tuple(value.shape), value.stride(), value.dtype, value.item() if is_number else None)


def _items(graph: torch.fx.Graph) -> dict[torch.fx.Node, int]:
    """Numbers that come in as tensors, as those of Python do where they may change: the nodes that take them
    out, and which arguments they are."""
    numbers = {node: k for k, node in enumerate(n for n in graph.nodes if n.op == "placeholder")}
    items = graph.find_nodes(op="call_method", target="item")
    return {item: numbers[item.args[0]] for item in items if item.args[0] in numbers}


def _specialised(module: torch.fx.GraphModule, values: Mapping[torch.fx.Node, float]) -> torch.fx.GraphModule:
    """The same with values in the places of nodes."""
    if not values:
        return module
    graph = torch.fx.Graph()
    known: dict[torch.fx.Node, Any] = dict(values)
    for node in module.graph.nodes:
        if node not in known:
            known[node] = graph.node_copy(node, known.__getitem__)
    return torch.fx.GraphModule(module, graph)
