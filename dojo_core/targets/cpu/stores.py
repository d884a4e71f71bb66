"""What a block's stores take, where llvm-mca's model of a core has too many of them at once.

llvm-mca takes each load as if no store before it had written the same place, and its models of these cores
have two stores a cycle of any width. So a tile of more sums than there are registers, whose sums go round by
way of the stack, costs it nothing; on such a core it is what decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StoreUnit:
    """``width``: bytes of stores a cycle. ``forwarding``: cycles from a value that is stored to that value
    loaded; 0: not known."""

    width: int
    forwarding: int


# By llvm-mca's name of the core. Zen 1: one store of 16 bytes a cycle (AMD, Software Optimization Guide for
# family 17h, 2.12). Zen 3 and 4: one of vectors a cycle, two of integers (stackoverflow.com/q/45108395).
# Golden Cove: two a cycle where both are of one line of the cache, as those of a tile seldom are, else one.
# The latencies, and Golden Cove's stores, were measured, by vmovups to a place and back; Zen 3's and 4's
# latency was not, and is left out.
UNITS = {
    "znver1": StoreUnit(16, 8),
    "znver3": StoreUnit(32, 0),
    "znver4": StoreUnit(32, 0),
    "sapphirerapids": StoreUnit(32, 6),
}
OPERATION = 4  # cycles at least from a value that was loaded to one that is stored

_STORE = re.compile(r"v?mov\w+ %(?P<register>\w+), (?P<place>-?[0-9a-fx]*\(.*\))$")
_STACK = re.compile(r"-?[0-9a-fx]*\(%r[sb]p\)")
_REGISTER_BYTES = {"zmm": 64, "ymm": 32, "xmm": 16}


def store_cycles(instructions: Sequence[str], loop: bool, core: str | None) -> float:
    """The least cycles that a block's stores leave it; 0 where nothing is known of the core's.

    A block that is a ``loop`` takes no less than its longest way round either: a place on the stack that it
    loads and then stores is loaded again once that has arrived.
    """
    unit = UNITS.get(core or "")
    if unit is None:
        return 0.0
    size, loaded, way_round = 0, set[str](), 0
    for text in instructions:
        if store := _STORE.match(text):
            size += _REGISTER_BYTES.get(store["register"][:3], 8)
            if loop and store["place"] in loaded:
                way_round = unit.forwarding + OPERATION if unit.forwarding else 0
        elif place := _STACK.search(text):
            loaded.add(place[0])
    return max(size / unit.width, float(way_round))
