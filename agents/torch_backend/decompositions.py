"""What PyTorch breaks down before its operators are looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from agents.torch_backend.call import OPERATORS
from agents.torch_backend.nodes import operator_name
from agents.torch_backend.recurrent import LAYERS

MOST = 64  # tensors that one node puts together: a kernel's text ends somewhere


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's own to core ATen, but for operators that have a translation: theirs are shorter texts; and
    for recurrent layers, which are not broken down into steps."""
    own = {
        target: function
        for target, function in core_aten_decompositions().items()
        if operator_name(target) not in OPERATORS
    }
    joins = {torch.ops.aten.cat.default: torch.cat, torch.ops.aten.stack.default: torch.stack}
    return own | LAYERS | {target: _in_groups(join) for target, join in joins.items()}


def _in_groups(join: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def joined(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
        """Of many first so many, each a kernel of its own; of few it is the operator itself."""
        if len(tensors) <= MOST:
            return NotImplemented
        return torch.cat([join(tensors[k : k + MOST], dim) for k in range(0, len(tensors), MOST)], dim)

    return joined
