"""What llvm-mca's models of cores lack.

*Stores*: llvm-mca takes each load as if no store before it had written the same place, and its models of
these cores have two stores a cycle of any width. So a tile of more sums than there are registers, whose sums
go round by way of the stack, costs it nothing; on such a core it is what decides.

*Loads that are part of an operation*: its model of Golden Cove has a sum that such an operation adds to wait
for the load as well, six cycles a round and more where the core takes four; not so those of cores before it.

*Branches*: a comparison of registers or constants and the conditional jump behind it are one operation on
every x86 since Core 2 and Bulldozer (Intel, Optimization reference manual, macro-fusion; AMD, Software
optimization guides, branch fusion). llvm-mca has them as two, so it is asked about the jump alone.

*Caches*: it has none. Cores whose bandwidths were measured have theirs here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Bytes a cycle that one core gets from a second cache, a last one, and memory, where nothing is known of it.
# The first was measured on a Neoverse N1, which has 19
# (chipsandcheese.com/2021/10/22/deep-diving-neoverse-n1); the others are assumed, half of it and 12 GB/s at
# 3 GHz.
ASSUMED = (20.0, 10.0, 4.0)


@dataclass(frozen=True)
class Core:
    """``width``: bytes of stores a cycle. ``forwarding``: cycles from a value that is stored to that value
    loaded; 0: not known. ``rounds``: what a loop takes whose sums go round by way of the stack, so many
    cycles and so many for each ``width`` bytes that it stores; None: what its stores take.
    ``waits_for_loads``: whether the model has sums wait for loads. ``bandwidths``: bytes a cycle from a
    second cache, a last one and memory."""

    width: int
    forwarding: int = 0
    rounds: tuple[float, float] | None = None
    waits_for_loads: bool = False
    bandwidths: tuple[float, float, float] = ASSUMED


# By llvm-mca's name of the core. Zen 1: one store of 16 bytes a cycle (AMD, Software Optimization Guide for
# family 17h, 2.12). Zen 3 and 4: one of vectors a cycle, two of integers (stackoverflow.com/q/45108395).
# Golden Cove: two a cycle where both are of one line of the cache, as those of a tile seldom are, else one.
# The latencies, and Golden Cove's stores, were measured, by vmovups to a place and back; Zen 3's and 4's
# latency was not, and is left out. Golden Cove's rounds are those of 1 to 96 sums in memory beside 0 to 12 in
# registers (benchmarks/round_trips.py): 10 or 11 cycles up to 8 sums, 13 to 15 of 11, 21 to 35 of 32, 62 to
# 99 of 96. Golden Cove's bandwidths were measured on an Emerald Rapids by vmovaps: a line of 64 bytes takes
# 0.98 cycles more from the second cache than from the first, where arrays are read as where they are copied
# (1.98 against 1.00), and 5.5 more from the last one; what is streamed is 6.8 to 8.3 bytes a cycle.
CORES = {
    "znver1": Core(16, forwarding=8),
    "znver3": Core(32),
    "znver4": Core(32),
    "sapphirerapids": Core(
        32, forwarding=6, rounds=(5.5, 0.75), waits_for_loads=True, bandwidths=(64.0, 12.0, 7.0)
    ),
}
OPERATION = 4  # cycles at least from a value that was loaded to one that is stored

_STORE = re.compile(r"v?mov\w+ %(?P<register>\w+), (?P<place>-?[0-9a-fx]*\(.*\))$")
_STACK = re.compile(r"-?[0-9a-fx]*\(%r[sb]p\)")
_FOLDED = re.compile(
    r"(?P<name>v\w+(?P<kind>[sp][sd])) (?P<place>-?[0-9a-fx]*\([^)]*\)), (?P<rest>.*%(?P<bank>[xyz]mm)\d+)$"
)
_MOVES = ("vmov", "vmask", "vbroadcast", "vgather", "vcvt", "vinsert")
_COMPARISON = re.compile(r"(cmp|test)[bwlq] [^()]*$")
_CONDITIONAL = re.compile(r"j(?!mp)\w+ ")
_VECTOR = re.compile(r"%[xyz]mm(\d+)")
_REGISTER_BYTES = {"zmm": 64, "ymm": 32, "xmm": 16}


def store_cycles(instructions: Sequence[str], loop: bool, core: str | None) -> float:
    """The least cycles that a block's stores leave it; 0 where nothing is known of the core's.

    A block that is a ``loop`` takes no less than its longest way round either: a place on the stack that it
    loads and then stores is loaded again once that has arrived.
    """
    known = CORES.get(core or "")
    if known is None:
        return 0.0
    size, loaded, way_round = 0, set[str](), 0
    for text in instructions:
        if store := _STORE.match(text):
            size += _REGISTER_BYTES.get(store["register"][:3], 8)
            if loop and store["place"] in loaded:
                way_round = known.forwarding + OPERATION if known.forwarding else 0
        elif place := _STACK.search(text):
            loaded.add(place[0])
    stores = size / known.width
    if way_round and known.rounds is not None:
        fixed, each = known.rounds
        stores = fixed + each * stores
    return max(stores, float(way_round))


def bandwidths(core: str | None) -> tuple[float, float, float]:
    """Bytes a cycle that it gets from its second cache, its last one, and memory."""
    known = CORES.get(core or "")
    return known.bandwidths if known is not None else ASSUMED


def with_branches_fused(instructions: Sequence[str]) -> list[str]:
    """The instructions without comparisons that a conditional jump follows."""
    following = (*instructions[1:], "")
    return [
        text
        for text, after in zip(instructions, following, strict=True)
        if not (_COMPARISON.match(text) and _CONDITIONAL.match(after))
    ]


def with_loads_apart(instructions: Sequence[str], core: str | None) -> list[str]:
    """The instructions as llvm-mca is to be asked about them: loads that are part of an operation of floats
    stand before it, where its model of the core has sums wait for them. They are two micro-operations
    either way."""
    known = CORES.get(core or "")
    if known is None or not known.waits_for_loads:
        return list(instructions)
    used = {int(number) for text in instructions for number in _VECTOR.findall(text)}
    free = max(set(range(32)) - used, default=None)
    apart: list[str] = []
    for text in instructions:
        folded = _FOLDED.match(text)
        if folded is None or free is None or folded["name"].startswith(_MOVES):
            apart.append(text)
            continue
        packed, precision = folded["kind"][0] == "p", folded["kind"][1]
        register = f"%{folded['bank'] if packed else 'xmm'}{free}"
        move = ("vmovup" if packed else "vmovs") + precision
        apart += [f"{move} {folded['place']}, {register}", f"{folded['name']} {register}, {folded['rest']}"]
    return apart
