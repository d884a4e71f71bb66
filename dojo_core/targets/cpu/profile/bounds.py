"""What bounds a part of a program: the least time that each of several limits leaves it, and which explains
what was measured.

Limits of the pipeline are of a scheduling model, the executions of each piece of code counted exactly; those
of caches, memory and stores are of a model of traffic and of what this machine was measured to move.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dojo_core.measure.profile import NOT_EXPLAINED, Limit
from dojo_core.targets.cpu.profile.rates import Rates

EXPLAINS = 0.6  # a limit explains a time of which it is so much
ALIKE = 0.9  # of two limits as near as this, the one that says more is named
# A chain of operations is no limit of its own unless it takes so much longer than all else in the pipeline.
CHAIN = 1.15
# Of limits that are alike, which one says more: the farthest place, then what an instruction waits for.
_TELLING = ("memory", "L3", "L2", "stores", "L1", "latency", "ports", "instructions")

_MEMORY = re.compile(r"(?:%\w+:)?-?[\w.+-]*\(%?[^)]*\)")
_REGISTER = re.compile(r"%([xyz]mm\d+|k\d|[a-z]\w*)")
_NO_ACCESS = re.compile(r"(lea|nop|prefetch|j|call|ret)")
_NO_LOAD = re.compile(r"v?(mov|pextr|extract)")
_COMPARES = ("cmp", "test", "comi", "ucomi", "vcomi", "vucomi")  # what they name last they read
_WIDTHS = {"z": 64, "y": 32, "x": 16}


@dataclass
class Work:
    """What the pieces of a part come to in one run, on all threads together, which ``threads`` share.

    Of the model: its cycles, the least for issuing and for the busiest port, and those but for what stores
    are known to take (``chain``). Loads and stores and their bytes; flips, branches that went the rarer way;
    and the bytes in and out of the first cache, of the second, and of the last.
    """

    cycles: float = 0.0
    issue: float = 0.0
    ports: float = 0.0
    chain: float = 0.0
    loads: float = 0.0
    load_bytes: float = 0.0
    stores: float = 0.0
    store_bytes: float = 0.0
    flips: float = 0.0
    traffic: list[list[float]] = field(default_factory=lambda: [[0.0, 0.0] for _ in range(3)])
    threads: int = 1

    def add(self, other: Work, share: float = 1.0) -> None:
        """Take in a share of other work."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + share * getattr(other, name))


_SUMS = ("cycles", "issue", "ports", "chain", "loads", "load_bytes", "stores", "store_bytes", "flips")


def accesses(instructions: Sequence[str]) -> Work:
    """The loads and stores of instructions in AT&T's syntax: the last operand is what is written."""
    work = Work()
    for text in instructions:
        place = _MEMORY.search(text)
        name, _, operands = text.partition(" ")
        if place is None or _NO_ACCESS.match(name):
            continue
        vectors = [_WIDTHS[r[0]] for r in _REGISTER.findall(_MEMORY.sub("", operands)) if r[1:3] == "mm"]
        scalar = re.search(r"s[sd]$", name)
        size = 8 if scalar or not vectors else max(vectors)
        if re.match(r"(vp?broadcast)", name):
            size = 8
        stores = _MEMORY.sub("@", operands).rstrip().endswith("@") and not name.startswith(_COMPARES)
        if stores:
            work.stores += 1
            work.store_bytes += size
        if not (stores and _NO_LOAD.match(name)):
            work.loads += 1
            work.load_bytes += size
    return work


def expected(work: Work, rates: Rates) -> float:
    """The seconds that a model gives a part: the pipeline's, then the waits for each cache."""
    levels = zip((rates.second, rates.last, rates.memory), work.traffic, strict=True)
    waits = sum(level.seconds(into, out, work.threads > 1) for level, (into, out) in levels)
    return (max(work.cycles, work.issue, work.ports) * rates.cycle + waits) / work.threads


def limits(work: Work, rates: Rates, model: str, faults: float = 0.0) -> tuple[Limit, ...]:
    """The limits of a part, the largest first. ``model``: what says so of the pipeline, empty where nothing
    does. ``faults``: the seconds that go away with subnormal numbers."""
    each = 1.0 / work.threads
    found = []

    def limit(kind: str, seconds: float, source: str) -> None:
        if seconds > 0.0:
            found.append(Limit(kind, seconds, source))

    if model:
        limit("instructions", work.issue * rates.cycle * each, model)
        if work.ports > 1.02 * work.issue:
            limit("ports", work.ports * rates.cycle * each, model)
        if work.chain > CHAIN * max(work.ports, work.issue):
            limit("latency", work.chain * rates.cycle * each, model)
        counted = "accesses counted, the rate measured"
        limit("L1", max(work.loads * rates.word, work.load_bytes * rates.load) * each, counted)
        limit("stores", max(work.stores * rates.word_store, work.store_bytes * rates.store) * each, counted)
        limit("branch", work.flips * rates.branch * each, "branches counted, at most")
    levels = (("L2", rates.second), ("L3", rates.last), ("memory", rates.memory))
    for (kind, level), (into, out) in zip(levels, work.traffic, strict=True):
        seconds = level.seconds(into, out, work.threads > 1)
        limit(kind, seconds * each, "model of traffic, the rate measured")
    limit("fault", faults, "timer: gone with subnormal numbers as zero")
    return tuple(sorted(found, key=lambda one: -one.seconds))


def named(seconds: float, found: Sequence[Limit], together: float = 0.0) -> tuple[str, float]:
    """Which of the limits explains a time, and how much of it: ``NOT_EXPLAINED`` where none does, nothing
    where there is no time. ``together``: what a model expects of all that add up, as ``expected`` says."""
    if not seconds:
        return "", 0.0
    by_kind = {limit.kind: limit.seconds for limit in found}
    sure = {kind: by_kind[kind] for kind in _TELLING if kind in by_kind}
    largest = max(sure.values(), default=0.0)
    kind = next((kind for kind in sure if sure[kind] >= ALIKE * largest), "")
    if max(largest, together) >= EXPLAINS * seconds:
        return kind, sure[kind] / seconds
    # These are added to what the rest takes: they fill no port, they empty the pipeline.
    for kind in ("fault", "branch"):
        if by_kind.get(kind, 0.0) > largest and by_kind[kind] + largest >= EXPLAINS * seconds:
            return kind, min(by_kind[kind] / seconds, 1.0)
    return NOT_EXPLAINED, largest / seconds
