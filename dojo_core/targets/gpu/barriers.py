"""Where a kernel needs barriers: what one thread wrote and another accesses has one in between.

The items of the uniform region (operations, phases, loops entered) are walked in order, keeping the accesses
to shared memory and the heap since the last barrier. Before an item that conflicts with one of them on a
physical cell from another thread stands ``__syncthreads()``; what is not decided counts as a conflict. A loop
is walked twice, the second time with what the first left pending (the back-edge); where only what precedes it
needs a barrier, that stands in front of it and not in each iteration. Inside a phase the same
rule over lanes gives ``__syncwarp()``. Threads of different ``:b`` iterations of one phase never conflict
(V2), nor do blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dojo_core.program.affine import Affine
from dojo_core.program.dependence import MemoryAccess, System, accesses, renamed
from dojo_core.program.gpu import PRIVATE, Kernel, block_number, is_warp_reduction, lanes, standing
from dojo_core.program.integers import Constraint
from dojo_core.program.tree import Leaf, Node, Op, Path, Program, Scope, leaves

LOOPS = ("", "u")  # marks of scopes whose iterations a thread runs one after the other


@dataclass(frozen=True)
class Barriers:
    """Nodes before which a barrier of the block, or of each warp, stands."""

    block: frozenset[Path]
    warp: frozenset[Path]


@dataclass(frozen=True)
class _Pending:
    """An access since the last barrier. ``carried``: it happened in an earlier iteration of the loop at
    that depth (None: in this one)."""

    access: MemoryAccess
    carried: int | None = None


def barriers(program: Program, kernel: Kernel) -> Barriers:
    """The barriers of one kernel."""
    walk = _Walk(program, kernel)
    if kernel.threads > 1:
        body = program.node(kernel.body)
        assert isinstance(body, Scope)
        scopes = (*program.scopes_above(kernel.body), body)
        walk.items(body.body, kernel.body, scopes, [], False)
    return Barriers(frozenset(walk.block), frozenset(walk.warp))


class _Walk:
    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.program, self.kernel = program, kernel
        self.block: set[Path] = set()
        self.warp: set[Path] = set()

    def items(
        self,
        body: Sequence[Node],
        path: Path,
        scopes: tuple[Scope, ...],
        pending: list[_Pending],
        in_phase: bool,
    ) -> list[_Pending]:
        """Walk a body; returns what is pending after it. ``in_phase``: over lanes, not over threads."""
        for number, node in enumerate(body):
            item_path = (*path, number)
            if isinstance(node, Scope) and node.mark in LOOPS:
                pending = self.loop(node, item_path, (*scopes, node), pending, in_phase)
                continue
            if isinstance(node, Scope) and node.mark == "b" and lanes(node) > 1:
                inner_path, phase, inside = item_path, node, (*scopes, node)
                while isinstance(phase.body[0], Scope) and phase.body[0].mark == "b":
                    inner_path, phase = (*inner_path, 0), phase.body[0]
                    inside = (*inside, phase)
                self.items(phase.body, inner_path, inside, [], True)
            accessed = self.accesses(node, item_path, scopes)
            if any(self.conflict(p, t, in_phase) for p in pending for t in accessed):
                (self.warp if in_phase else self.block).add(item_path)
                pending = []
            elif item_path in (self.warp if in_phase else self.block):
                pending = []
            pending = [*pending, *(_Pending(t) for t in accessed)]
        return pending

    def loop(
        self, node: Scope, path: Path, inner: tuple[Scope, ...], pending: list[_Pending], in_phase: bool
    ) -> list[_Pending]:
        """Walk a loop; what came before it is waited for in front of it, where that is less often."""
        placed = self.warp if in_phase else self.block
        if path in placed:
            pending = []
        before = set(placed)
        after = self.iterations(node, path, inner, pending, in_phase)
        within = placed - before
        if not (pending and within):
            return after
        placed &= before
        alone = self.iterations(node, path, inner, [], in_phase)
        if 1 + self.executed(placed - before, path) < self.executed(within, path):
            placed.add(path)
            return alone
        placed &= before
        placed |= within
        return after

    def iterations(
        self, node: Scope, path: Path, inner: tuple[Scope, ...], pending: list[_Pending], in_phase: bool
    ) -> list[_Pending]:
        pending = self.items(node.body, path, inner, pending, in_phase)
        if node.size == 1:
            return pending
        depth = len(inner) - 1
        mine = [p.carried is None and p.access.leaf.path[: len(path)] == path for p in pending]
        carried = [replace(p, carried=depth) if m else p for p, m in zip(pending, mine, strict=True)]
        pending = self.items(node.body, path, inner, carried, in_phase)
        # To what follows, every iteration of the loop is before it: the fresh entries say so.
        return [p for p in pending if p.carried != depth]

    def executed(self, placed: set[Path], loop: Path) -> int:
        """How often barriers within a loop are met when it is entered once."""
        return sum(
            math.prod(
                scope.size
                for depth in range(len(loop), len(path))
                if isinstance(scope := self.program.node(path[:depth]), Scope) and scope.mark in LOOPS
            )
            for path in placed
        )

    def accesses(self, node: Node, path: Path, scopes: tuple[Scope, ...]) -> list[MemoryAccess]:
        """What an item accesses of memory that threads share."""
        inside = [Leaf(node, path, scopes)] if isinstance(node, Op) else leaves((node,), path[:-1], scopes)
        accessed = []
        for leaf in inside:
            real = Leaf(
                leaf.op, path if isinstance(node, Op) else (*path, *leaf.path[len(path) :]), leaf.scopes
            )
            for access in accesses(real):
                if self.program.buffer_of[access.element.array].location not in PRIVATE:
                    accessed.append(access)
        return accessed

    def conflict(self, before: _Pending, after: MemoryAccess, in_phase: bool) -> bool:
        """May two accesses meet on one cell from different threads (of a warp, where ``in_phase``)?"""
        first = before.access
        if first.kind == after.kind == "r":
            return False
        buffer = self.program.buffer_of[first.element.array]
        if buffer is not self.program.buffer_of[after.element.array]:
            return False
        common = self.shared(first, after, in_phase)
        if before.carried is not None:
            common = min(common, before.carried)
        for relation in ("<", ">"):
            system = System()
            a = system.instance(first.leaf)
            b = system.instance(after.leaf, share=a[:common])
            if before.carried is not None and before.carried < min(len(a), len(b)):
                earlier = Affine.iterator(b[before.carried]) - Affine.iterator(a[before.carried])
                system.constraints.append(Constraint.at_least(earlier - 1))
            for k, dim in enumerate(buffer.dims):
                if dim.materialised:
                    system.equal(first.element.index[k], a, after.element.index[k], b)
            one, other = self.thread(system, first, a, in_phase), self.thread(system, after, b, in_phase)
            apart = other - one if relation == "<" else one - other
            system.constraints.append(Constraint.at_least(apart - 1))
            if system.solve() is not None:
                return True
        return False

    def shared(self, a: MemoryAccess, b: MemoryAccess, in_phase: bool) -> int:
        """How many scopes are the same iteration for both: of the block, or within a phase of its thread."""
        depth = 0
        for scope, other, step, stride in zip(
            a.leaf.scopes, b.leaf.scopes, a.leaf.path, b.leaf.path, strict=False
        ):
            if scope is not other or step != stride:
                break
            if scope.mark in ("w", "v") or (scope.mark == "b" and not in_phase):
                break
            depth += 1
        return depth

    def thread(
        self, system: System, access: MemoryAccess, variables: Sequence[int], in_phase: bool
    ) -> Affine:
        """The number of a thread that makes the access; which one of several is a free variable."""
        leaf = access.leaf
        place = standing(leaf)
        copies = self.program.buffer_of[leaf.op.target.array].location in PRIVATE
        reduction = is_warp_reduction(leaf)

        def any_of(count: int) -> Affine:
            return Affine.iterator(system.free([count])[0])

        if not place.block:
            return any_of(self.kernel.threads) if copies else Affine()
        if place.lanes == 1:
            lane = Affine()
        elif reduction and access.kind == "a":
            lane = any_of(place.lanes) if copies else Affine()
        elif place.warp is not None:
            lane = Affine.iterator(variables[place.warp])
        else:
            lane = any_of(place.lanes) if copies else Affine()
        return lane if in_phase else renamed(block_number(leaf), variables) * place.lanes + lane
