"""What a GPU program is: kernels, phases, thread numbers (docs/gpu.md).

A *kernel* is a perfect nest of ``:g`` scopes under unmarked ones (a loop of launches on the host), or a
root item without ``:g``, which one thread runs. Its body is the uniform region: operations, loops, and
*phases*, perfect nests of ``:b`` scopes. T is the row-major number of a phase's ``:b`` iterators, W the
size of the ``:w`` scopes in it (1 without any); a thread's number is T*W plus the ``:w`` iterator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dojo_core.program.affine import Affine
from dojo_core.program.nodes import fact
from dojo_core.program.tree import Buffer, Leaf, Node, Path, Program, Scope, walk

# Scopes whose iterations have no order among each other.
UNORDERED = frozenset("pgbw")
PRIVATE = ("local", "stack")  # locations of which each thread has its own


@dataclass(frozen=True)
class Kernel:
    """One launch: ``path`` of its outermost scope (or operation), the loops of launches around it, the
    sizes of its ``:g`` scopes (none: one thread runs it), the threads of its largest phase."""

    path: Path
    host: tuple[int, ...]
    grid: tuple[int, ...]
    threads: int

    @property
    def mapped(self) -> bool:
        return bool(self.grid)

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def body(self) -> Path:
        """The path of the scope whose children are the uniform region."""
        return self.path + (0,) * (len(self.grid) - 1)


def holds(node: Node, mark: str) -> bool:
    """Does a subtree hold a scope with that mark, itself included?"""
    return isinstance(node, Scope) and mark in node.summary.marks


@fact
def kernels(program: Program) -> tuple[Kernel, ...]:
    """The launches of a program in order. Its marks must be where they may stand."""
    return tuple(_kernels(program.body, (), ()))


def _kernels(body: tuple[Node, ...], path: Path, host: tuple[int, ...]) -> Iterator[Kernel]:
    for number, node in enumerate(body):
        node_path = (*path, number)
        if isinstance(node, Scope) and node.mark == "g":
            grid, inner = [node.size], node
            while isinstance(inner.body[0], Scope) and inner.body[0].mark == "g":
                inner = inner.body[0]
                grid.append(inner.size)
            yield Kernel(node_path, host, tuple(grid), block_threads(inner))
        elif isinstance(node, Scope) and holds(node, "g"):
            yield from _kernels(node.body, node_path, (*host, node.size))
        else:
            yield Kernel(node_path, host, (), 1)


def block_threads(scope: Scope) -> int:
    """The threads of the largest phase below a scope; 1 if it has none."""
    largest = 1
    for node, _, above in walk(scope.body):
        if isinstance(node, Scope) and node.mark == "b" and not any(s.mark == "b" for s in above):
            largest = max(largest, phase_threads(node))
    return largest


def phase_threads(phase: Scope) -> int:
    """Threads of the phase whose outermost ``:b`` scope is given, lanes included."""
    count, inner = phase.size, phase
    while isinstance(inner.body[0], Scope) and inner.body[0].mark == "b":
        inner = inner.body[0]
        count *= inner.size
    return count * lanes(phase)


@fact
def lanes(phase: Scope) -> int:
    """W: the size of the ``:w`` scopes in a phase, 1 without any."""
    sizes = [n.size for n, _, _ in walk((phase,)) if isinstance(n, Scope) and n.mark == "w"]
    return max(sizes, default=1)


@dataclass(frozen=True)
class Standing:
    """Where an operation stands among the threads: depths of its ``:g``, ``:b`` and ``:w`` scopes (``warp``
    None: outside any), and W of its phase."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    warp: int | None
    lanes: int

    @property
    def thread_depths(self) -> tuple[int, ...]:
        return self.block if self.warp is None else (*self.block, self.warp)


def standing(leaf: Leaf) -> Standing:
    """Where an operation stands."""
    grid = tuple(d for d, s in enumerate(leaf.scopes) if s.mark == "g")
    block = tuple(d for d, s in enumerate(leaf.scopes) if s.mark == "b")
    warp = next((d for d, s in enumerate(leaf.scopes) if s.mark == "w"), None)
    return Standing(grid, block, warp, lanes(leaf.scopes[block[0]]) if block else 1)


def block_number(leaf: Leaf) -> Affine:
    """T: the row-major number of the ``:b`` iterators above an operation."""
    number = Affine()
    for depth in standing(leaf).block:
        number = number * leaf.scopes[depth].size + Affine.iterator(depth)
    return number


def thread_number(leaf: Leaf) -> Affine:
    """T*W plus the ``:w`` iterator, where there is one."""
    place = standing(leaf)
    number = block_number(leaf) * place.lanes
    return number if place.warp is None else number + Affine.iterator(place.warp)


def is_warp_reduction(leaf: Leaf) -> bool:
    """Is this the one operation of a ``:w`` scope, an accumulation whose target ignores its lanes?"""
    if not leaf.scopes or leaf.scopes[-1].mark != "w" or len(leaf.scopes[-1].body) != 1:
        return False
    lane = len(leaf.scopes) - 1
    return bool(leaf.op.accumulate) and not any(form.uses(lane) for form in leaf.op.target.index)


def thread_dims(buffer: Buffer, leaf: Leaf, index: tuple[Affine, ...]) -> tuple[int, ...]:
    """The materialised dimensions whose index uses a ``:b`` or ``:w`` iterator: they select the thread."""
    depths = standing(leaf).thread_depths
    return tuple(
        k
        for k, (dim, form) in enumerate(zip(buffer.dims, index, strict=True))
        if dim.materialised and any(form.uses(d) for d in depths)
    )


def outside_phases(scopes: Sequence[Scope]) -> int:
    """How many of these scopes, outermost first, are in no phase: what a shared buffer lives in."""
    inside = (depth for depth, scope in enumerate(scopes) if scope.mark in ("b", "w", "W"))
    return next(inside, len(scopes))
