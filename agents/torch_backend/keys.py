"""By what a traced graph is found again in another process: all that its translation hangs on."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.fx

from dojo_core.source_digest import source_digest

# Who writes a text of a graph: PyTorch by its version, the Dojo by its sources.
_WRITERS = ("agents.torch_backend", "dojo_core.graph", "dojo_core.primitives", "dojo_core.program")

# Where functions come from that are PyTorch's or Python's own: those of others may change under a name.
_MODULES = ("torch", "_operator", "builtins", "math")
_NAMESPACES = ("aten", "prims")  # of operators
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator)

_ATOMS = (
    bool, int, float, complex, str, type(None), type(Ellipsis),
    torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
_STATES = (
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.get_default_dtype,
    torch.get_default_device,
    torch.are_deterministic_algorithms_enabled,
    torch.is_autocast_cache_enabled,
    partial(torch.is_autocast_enabled, "cpu"),
    partial(torch.get_autocast_dtype, "cpu"),
    torch._C._get_flash_sdp_enabled,  # which form attention takes, on every device
    torch._C._get_mem_efficient_sdp_enabled,
    torch._C._get_math_sdp_enabled,
)


class _Unkeyed(Exception):
    """A graph has a part whose meaning its text does not tell."""


def graph_key(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> str | None:
    """The key of what TorchDynamo traced, called with inputs like these: not their values count, but their
    shapes, strides and dtypes. None for a graph that hangs on more, such as a function of somebody's own."""
    try:
        graph = _graph(module)
        given = [_input(each) for each in inputs]
    except _Unkeyed:
        return None
    states = [repr(state()) for state in _STATES]
    content = repr((graph, given, states, torch.__version__, source_digest(*_WRITERS)))
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _graph(module: torch.fx.GraphModule) -> list[Any]:
    numbers: dict[torch.fx.Node, int] = {}
    lines: list[Any] = []
    for node in module.graph.nodes:
        arguments = (_value(node.args, numbers), _value(node.kwargs, numbers))
        lines.append((node.op, _target(module, node), *(arguments if node.op != "placeholder" else ())))
        numbers[node] = len(numbers)
    return lines


def _target(module: torch.fx.GraphModule, node: torch.fx.Node) -> Any:
    target = node.target
    if node.op in ("placeholder", "output"):
        return None
    if node.op == "call_method":
        return target
    if node.op == "get_attr" and isinstance(target, str):
        return _constant(getattr(module, target, None))
    if isinstance(target, torch._ops.OpOverload) and target.namespace in _NAMESPACES:
        return str(target)
    place, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if node.op != "call_function" or isinstance(target, _OPERATORS):
        raise _Unkeyed
    if not isinstance(place, str) or place.partition(".")[0] not in _MODULES:
        raise _Unkeyed
    if "<locals>" in str(name):  # such as max_pool2d, which a function made
        name = next((each for each, value in vars(sys.modules[place]).items() if value is target), None)
    if name is None:
        raise _Unkeyed
    return place, name


def _value(value: Any, numbers: Mapping[torch.fx.Node, int]) -> Any:
    if isinstance(value, torch.fx.Node):
        return "node", numbers[value]
    if isinstance(value, (tuple, list)):
        return [_value(each, numbers) for each in value]
    if isinstance(value, dict):
        return "dict", [(_value(k, numbers), _value(v, numbers)) for k, v in value.items()]
    if isinstance(value, slice):
        return "slice", [_value(each, numbers) for each in (value.start, value.stop, value.step)]
    if type(value) in _ATOMS:
        return type(value).__name__, repr(value)
    raise _Unkeyed


def _input(value: Any) -> Any:
    if type(value) in (int, float, bool):
        return type(value).__name__, repr(value)
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise _Unkeyed
    return _metadata(value)


def _constant(value: Any) -> Any:
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or not value.is_cpu:
        raise _Unkeyed
    dense = value.detach().resolve_neg().resolve_conj().contiguous()
    content = dense.reshape(-1).view(torch.uint8).numpy().tobytes()
    return _metadata(value), hashlib.sha256(content).hexdigest()


def _metadata(tensor: torch.Tensor) -> Any:
    if tensor.layout != torch.strided:
        raise _Unkeyed
    return (
        tuple(tensor.shape), tensor.stride(), str(tensor.dtype), str(tensor.device), tensor.requires_grad,
        tensor.is_conj(), tensor.is_neg(),
    )  # fmt: skip
