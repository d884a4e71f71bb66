"""Which nodes of a program to time next, and from times of some the times of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dojo_core.program.tree import Op, Path, Program, Scope

LEAST_SECONDS = 1e-6  # that a timed node takes each time: a timer's own cost is some hundredth of it
MOST_NODES = 64  # with timers at once


def due(program: Program, times: Mapping[Path, float], threads: int) -> list[Path]:
    """The nodes that are to be timed next, given times of whole runs (``()``: of the program). One that is
    alone in a scope takes the scope's time; one whose executions are short gets no timer."""
    found: list[Path] = []

    def look(path: Path, runs: float) -> None:
        """``runs``: how often a thread executes the node."""
        node = program.node(path) if path else None
        children = program.children(path)
        runs *= node.size / (threads if node.mark == "p" else 1) if isinstance(node, Scope) else 1
        own = [(*path, number) for number in range(len(children))]
        if not all(each in times for each in own) and len(own) > 1:
            if times[path] / max(runs, 1.0) / len(own) >= LEAST_SECONDS:
                found.extend(own)
            return
        for each in own:
            if _divisible(program.node(each)):
                look(each, runs)

    look((), 1.0)
    return found[:MOST_NODES]


def inherited(program: Program, times: Mapping[Path, float]) -> dict[Path, float]:
    """The times with those of nodes that are alone in a timed scope."""
    known = dict(times)
    for path in sorted([*times], key=len):
        while _divisible(program.node(path) if path else None) and len(program.children(path)) == 1:
            path, seconds = (*path, 0), known[path]
            known.setdefault(path, seconds)
    return known


def timed_last(times: Mapping[Path, float]) -> Iterator[Path]:
    """The nodes with a timer that hold no others with one."""
    for path in times:
        if path and not any(other != path and other[: len(path)] == path for other in times):
            yield path


def parted(program: Program, times: Mapping[Path, float], weights: Mapping[Path, float]) -> dict[Path, float]:
    """The time of every node: what no timer tells is parted by the weights of the operations below."""
    parts: dict[Path, float] = dict(times)
    # Of a program shorter than the clock's ticks nothing but the whole is known.
    for path in [*timed_last(times)] or [()]:
        below = {leaf.path: weights.get(leaf.path, 0.0) for leaf in program.leaves
                 if leaf.path[: len(path)] == path}  # fmt: skip
        whole = sum(below.values())
        for leaf, weight in below.items():
            share = weight / whole if whole else 1.0 / len(below)
            for depth in range(len(path) + 1, len(leaf) + 1):
                parts[leaf[:depth]] = parts.get(leaf[:depth], 0.0) + share * times[path]
    return parts


def _divisible(node: Scope | Op | None) -> bool:
    """May what is in it have timers? Not what is written out, vectors and machine instructions."""
    return node is None or (isinstance(node, Scope) and node.mark in ("", "p"))
