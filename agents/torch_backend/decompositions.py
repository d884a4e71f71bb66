"""What PyTorch breaks down before its operators are looked up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch._decomp import core_aten_decompositions

from agents.torch_backend.call import OPERATORS
from agents.torch_backend.nodes import operator_name


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's own to core ATen, but for operators that have a translation: theirs are shorter texts."""
    return {
        target: function
        for target, function in core_aten_decompositions().items()
        if operator_name(target) not in OPERATORS
    }
