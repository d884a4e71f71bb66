"""Which nodes become one kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dojo_core.graph.nodes import Kind, Node

Group = tuple[Node, ...]


def partition(nodes: Sequence[Node], outputs: Collection[str]) -> list[Group]:
    """Groups of nodes in an order in which they can be called; nodes are in such an order too.

    A view is part of every group that reads through it.
    """
    maker = {tensor.name: node for node in nodes for tensor in node.outputs}
    groups: list[Group] = []
    for node in nodes:
        if node.kind is not Kind.VIEW or any(tensor.name in outputs for tensor in node.outputs):
            groups.append(with_views([node], maker))
    return groups


def with_views(group: Sequence[Node], maker: Mapping[str, Node]) -> Group:
    """A group with the views that it reads through, each before what reads it."""
    members: dict[str, Node] = {}

    def add(node: Node) -> None:
        if node.name in members:
            return
        for name in node.inputs:
            before = maker.get(name)
            if before is not None and before.kind is Kind.VIEW:
                add(before)
        members[node.name] = node

    for node in group:
        add(node)
    return tuple(members.values())
