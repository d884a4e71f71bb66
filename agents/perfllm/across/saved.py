"""A policy in a folder, and those that come with the Dojo, one for each target that one was trained for.

Weights are rounded to half precision. Of a table of n-grams only the rows are kept that learning has touched:
most n-grams occur nowhere in what a policy was taught.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from agents.perfllm import checkpoint
from agents.perfllm.across.policy import Policy
from agents.perfllm.across.weights import folder_of
from dojo_core.moves.core import Move
from dojo_core.moves.notation import parse_move

PREFIX, ROWS = "policy", ".rows"


def save(policy: Policy, folder: Path) -> None:
    """Weights as safetensors; how it reads, its lines and how much it was taught as JSON."""
    data = {"reader": policy.reads, "lines": policy.lines, "examples": policy.examples}
    checkpoint.write(folder, _packed(checkpoint.module_tensors(PREFIX, policy)), data)


def load(folder: Path) -> Policy | None:
    """A saved policy, None where there is none. Raises ValueError where it is damaged."""
    saved = checkpoint.read(folder)
    if saved is None:
        return None
    tensors, data = saved
    policy = Policy(data["reader"])
    checkpoint.restore_module(PREFIX, policy, _unpacked(tensors, policy.state_dict()))
    policy.lines, policy.examples = tuple(map(tuple, data["lines"])), data["examples"]
    return policy.eval()


@cache
def shipped(target: str) -> Policy | None:
    """The policy that comes with the Dojo for a target, None where there is none."""
    folder = folder_of(target)
    return None if folder is None else load(folder)


def parsed(lines: Iterable[Sequence[str]]) -> list[list[Move]]:
    """Lines of moves as the player takes them."""
    return [list(map(parse_move, line)) for line in lines]


def _packed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    packed = {}
    for name, tensor in tensors.items():
        rows = tensor.flatten(1).any(1).nonzero()[:, 0] if tensor.ndim > 1 else torch.arange(len(tensor))
        if len(rows) < len(tensor):
            packed[name + ROWS] = rows.int()
        packed[name] = tensor[rows].half()
    return packed


def _unpacked(packed: Mapping[str, Tensor], shapes: Mapping[str, Tensor]) -> dict[str, Tensor]:
    tensors = {}
    for name, tensor in packed.items():
        if not name.endswith(ROWS):
            whole = torch.zeros_like(shapes[name.removeprefix(PREFIX + ".")])
            rows = packed.get(name + ROWS)
            whole[slice(None) if rows is None else rows.long()] = tensor.float()
            tensors[name] = whole
    return tensors
