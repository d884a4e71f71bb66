"""What PyTorch breaks down before its operators are looked up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch._decomp import core_aten_decompositions

from agents.torch_backend.call import OPERATORS
from agents.torch_backend.nodes import operator_name
from agents.torch_backend.recurrent import LAYERS


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's own to core ATen, but for operators that have a translation: theirs are shorter texts; and
    for recurrent layers, which are not broken down into steps."""
    own = {
        target: function
        for target, function in core_aten_decompositions().items()
        if operator_name(target) not in OPERATORS
    }
    return own | LAYERS
