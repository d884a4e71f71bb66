"""What lies in memory between kernels, and what of it each kernel reads and gives.

Views are written where they are read, but for two: a reshape of what lies in memory is the same memory, and
a view that is all that readers want of a kernel's result is written by that kernel, where this takes no pass
more: attention gives its heads side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dojo_core.graph.emission import line_count
from dojo_core.graph.nodes import Kind, Node, Tensor
from dojo_core.graph.traits import Traits
from dojo_core.primitives import BuildError

Values = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Unit:
    """What one kernel is made of: all nodes that it writes, in their order, and the tensors that it gives."""

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Wired:
    """The kernels in their order. ``stored`` has, for what is read from another's memory, that tensor."""

    units: tuple[Unit, ...]
    stored: Mapping[str, str]


def wired(
    nodes: Sequence[Node],
    groups: Sequence[Sequence[Node]],
    tensors: Mapping[str, Tensor],
    constants: Mapping[str, Values],
    outputs: Sequence[str],
    known: Mapping[str, Traits],
) -> Wired:
    """Kernels from groups of nodes that are no views (``partition``), with the views between them."""
    return _Wiring(nodes, groups, tensors, constants, outputs, known).wired()


class _Wiring:
    def __init__(
        self,
        nodes: Sequence[Node],
        groups: Sequence[Sequence[Node]],
        tensors: Mapping[str, Tensor],
        constants: Mapping[str, Values],
        outputs: Sequence[str],
        known: Mapping[str, Traits],
    ) -> None:
        self.nodes, self.tensors, self.constants, self.known = nodes, tensors, constants, known
        self.outputs = [name for name in outputs if name not in constants]
        self.position = {node.name: number for number, node in enumerate(nodes)}
        self.maker = {tensor.name: node for node in nodes for tensor in node.outputs}
        self.members = [list(group) for group in groups]
        self.home = {node.name: number for number, group in enumerate(groups) for node in group}
        self.users: dict[str, list[Node]] = {}
        for node in nodes:
            for name in node.inputs:
                self.users.setdefault(name, []).append(node)
        self.root: dict[str, str] = {}

    def wired(self) -> Wired:
        self._find_roots()
        for name in self.outputs:
            number = self._source(name)
            if name not in self.root and number is not None:
                self._hoist([self.maker[name]], number)
        for number, group in enumerate(self.members):
            for tensor in [tensor for node in group for tensor in node.outputs]:
                self._hoist_views(tensor.name, number)
        self._find_roots()
        copies: list[Unit] = []  # outputs that are views of what lies in memory for others
        claims: dict[str, str] = {}
        for name in self.outputs:
            root = self.root.get(name)
            if root == name:
                continue
            if root is not None and root in self.maker and root not in self.outputs and root not in claims:
                claims[root] = name
            else:
                copies.append(Unit(self._written([self.maker[name]], None), (name,)))
        written = [self._written(group, number) for number, group in enumerate(self.members)]
        wanted = {self.root[name] for nodes in written for name in _read(nodes)}
        wanted |= {self.root[name] for unit in copies for name in _read(unit.nodes)}
        wanted |= {self.root[name] for name in self.outputs if name in self.root}
        units = [
            Unit(nodes, tuple(t.name for node in group for t in node.outputs if t.name in wanted))
            for nodes, group in zip(written, self.members, strict=True)
        ]
        stored = {name: claims.get(root, root) for name, root in self.root.items()}
        return Wired((*units, *copies), {n: s for n, s in stored.items() if n != s})

    # ------------------------------------------------------------------ memory

    def _find_roots(self) -> None:
        """For each tensor that lies in memory, the one that is written there."""
        made = {tensor.name for node in self.nodes for tensor in node.outputs}
        given = [name for name in (*self.tensors, *self.constants) if name not in made]
        self.root = {name: name for name in (*given, *self.constants)}
        for node in self.nodes:
            if node.name in self.home:
                self.root |= {tensor.name: tensor.name for tensor in node.outputs}
            elif self.known[node.name].reshapes and node.inputs[0] in self.root:
                self.root[node.outputs[0].name] = self.root[node.inputs[0]]

    def _source(self, name: str) -> int | None:
        """The one group whose results a view is a view of; None where it is not one."""
        found: set[int | None] = set()
        stack = [name]
        while stack:
            node = self.maker.get(stack.pop())
            if node is None or node.name in self.home:
                found.add(None if node is None else self.home[node.name])
            else:
                stack += node.inputs
        return found.pop() if len(found) == 1 else None

    # ------------------------------------------------------------------ views that a result's kernel writes

    def _hoist(self, views: Sequence[Node], number: int) -> None:
        for node in views:
            if node.name not in self.home:
                self.home[node.name] = number
                self.members[number].append(node)

    def _hoist_views(self, name: str, number: int) -> None:
        """Have the group write the last of the views through which alone its result is read."""
        views: list[Node] = []
        end = name
        while end not in self.outputs and len(self.users.get(end, ())) == 1:
            (user,) = self.users[end]
            if user.kind is not Kind.VIEW or user.name in self.home or len(user.outputs) != 1:
                break
            views.append(user)
            end = user.outputs[0].name
        while views and self.known[views[-1].name].reshapes:
            views.pop()
        if not views or self.tensors[name].size != views[-1].outputs[0].size:
            return
        before, after = self._lines(number, name), self._lines(number, views[-1].outputs[0].name, views)
        if after <= before and self.tensors[name].shape[-1] == views[-1].outputs[0].shape[-1]:
            self._hoist(views[-1:], number)

    def _lines(self, number: int, output: str, views: Sequence[Node] = ()) -> float:
        """How long a group's text is with one of its results alone."""
        nodes = self._written([*self.members[number], *views], number)
        try:
            return line_count(nodes, self.tensors, self.constants, [output])
        except BuildError:
            return float("inf")

    # ------------------------------------------------------------------ kernels

    def _written(self, group: Sequence[Node], number: int | None) -> tuple[Node, ...]:
        """All nodes that a kernel writes: its group's, and before each the views through which it reads."""
        written: dict[str, Node] = {}

        def add(node: Node) -> None:
            if node.name in written:
                return
            for name in node.inputs:
                view = self.maker.get(name)
                if view is not None and view.name not in self.home and not self._lies(name, number):
                    add(view)
            written[node.name] = node

        for node in sorted(group, key=lambda node: self.position[node.name]):
            add(node)
        return tuple(written.values())

    def _lies(self, name: str, number: int | None) -> bool:
        """Does a tensor lie in memory before a group's kernel runs?"""
        root = self.root.get(name)
        maker = self.maker.get(root) if root is not None else None
        return root is not None and (maker is None or self.home[maker.name] != number)


def _read(nodes: Sequence[Node]) -> set[str]:
    """What nodes read that none of them gives."""
    given = {tensor.name for node in nodes for tensor in node.outputs}
    return {name for node in nodes for name in node.inputs if name not in given}
