"""Where the tensors between calls lie: in one piece of memory, the same places again for those that are never
needed together.

The largest tensor is placed first, each at the lowest place that no tensor of the same time has: the greedy
offset assignment by size of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference"
(2020), which comes within a few percent of the most that is live at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dojo_core.graph.graph import Graph

ALIGNMENT = 64  # bytes, of a cache line and the widest vectors


@dataclass(frozen=True)
class Lifetime:
    """From the call that gives a tensor to the last one that reads it, both included."""

    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Plan:
    """``offsets`` by the tensor's name, multiples of ALIGNMENT; ``bytes`` is the size of the memory."""

    offsets: Mapping[str, int]
    bytes: int


def lifetimes(graph: Graph) -> dict[str, Lifetime]:
    """Of each tensor between calls."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, call in enumerate(graph.calls):
        for name in call.outputs:
            first[name] = last[name] = number
        for name in call.inputs:
            last[name] = number
    return {
        name: Lifetime(graph.tensors[name].bytes, first[name], last[name]) for name in graph.intermediates
    }


def plan(graph: Graph) -> Plan:
    """Places for what is between calls."""
    return places(lifetimes(graph))


def places(lives: Mapping[str, Lifetime]) -> Plan:
    """Places at which no two tensors that are needed together overlap."""
    offsets: dict[str, int] = {}
    placed: dict[int, list[str]] = {}  # what has its place by now, by each call in whose time it is needed
    total = 0
    for name in sorted(lives, key=lambda name: (-lives[name].bytes, lives[name].first)):
        life = lives[name]
        calls = range(life.first, life.last + 1)
        others = {other for call in calls for other in placed.get(call, ())}
        busy = sorted((offsets[other], offsets[other] + _rounded(lives[other].bytes)) for other in others)
        place, size = 0, _rounded(life.bytes)
        for begin, end in busy:
            if place + size <= begin:
                break
            place = max(place, end)
        offsets[name] = place
        for call in calls:
            placed.setdefault(call, []).append(name)
        total = max(total, place + size)
    return Plan(offsets, total)


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
