"""Which nodes become one kernel: a contraction with what it feeds.

A contraction takes with it the element-wise nodes behind it, and the reductions that keep its outer axes in
their order: a bias, an activation, a residual, a normalisation by rows. A convolution takes windows that pool
its rows, and share none of these. Nodes that go over the same input of a model, as two distances from one
anchor, are one kernel, which reads it once. Two contractions joined by a softmax, which is attention, are one
kernel. Others begin where nothing like that is near. What only prepares for one reader, such as a padded
copy, goes to that. Views are no passes: each kernel reads through its own.

A kernel has few lines, for listing the moves of a long text takes long, and no two kernels need each other's
results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dojo_core.graph.nodes import Kind, Node, Tensor
from dojo_core.graph.traits import Traits

LINES = 40  # of a kernel's text, unless one node has more
CHANNELS = 8  # that a vector has, at least


@dataclass(eq=False)
class _Group:
    """Nodes that become one kernel; ``volume`` is how many elements its largest pass goes over. ``turned``:
    does one of them read what another gives in another order?"""

    number: int
    nodes: list[Node]
    volume: int
    lines: int
    alone: bool
    turned: bool = False

    def has(self, kind: Kind) -> bool:
        return any(node.kind is kind for node in self.nodes)


def partition(
    nodes: Sequence[Node],
    tensors: Mapping[str, Tensor],
    constants: Collection[str],
    outputs: Collection[str],
    known: Mapping[str, Traits],
    alone: Collection[str] = (),
) -> list[list[Node]]:
    """Groups of the nodes that are no views, in an order in which they can be called.

    Nodes come in an order in which they can be called too; ``known`` has their traits, and ``alone`` names
    those that are to be kernels of their own.
    """
    return _Partition(nodes, tensors, constants, outputs, known, alone).groups()


class _Partition:
    def __init__(
        self,
        nodes: Sequence[Node],
        tensors: Mapping[str, Tensor],
        constants: Collection[str],
        outputs: Collection[str],
        known: Mapping[str, Traits],
        alone: Collection[str],
    ) -> None:
        self.nodes, self.tensors, self.constants, self.known = nodes, tensors, constants, known
        self.alone = alone
        self.position = {node.name: number for number, node in enumerate(nodes)}
        self.maker = {tensor.name: node for node in nodes for tensor in node.outputs}
        self.group: dict[str, _Group] = {}  # by the node's name
        self.behind: dict[str, tuple[str, ...]] = {}  # what views are views of
        for node in nodes:
            if node.kind is Kind.VIEW:
                seen = dict.fromkeys(base for name in node.inputs for base in self.bases(name))
                self.behind |= {tensor.name: tuple(seen) for tensor in node.outputs}
        self.kept = {base for name in outputs for base in self.bases(name)}

    def bases(self, name: str) -> tuple[str, ...]:
        """The tensors that are no views through which one is read."""
        return self.behind.get(name, (name,))

    def groups(self) -> list[list[Node]]:
        for node in self.nodes:
            if node.kind is not Kind.VIEW:
                self._place(node)
        self._join_helpers()
        return self._ordered()

    # ------------------------------------------------------------------ with what feeds it

    def _place(self, node: Node) -> None:
        """Put a node into the group of something that it reads, or into a new one."""
        sources = self._sources(node)
        for group in sorted(sources, key=lambda g: (g.has(Kind.CONTRACTION), self._last(g)), reverse=True):
            if self._fits(node, group) and not any(
                self._needs(other, group) for other in sources if other is not group
            ):
                group.turned |= any(self._turned(n) for n in node.inputs if self._inside(n, group))
                group.nodes.append(node)
                group.lines += self.known[node.name].lines
                if node.kind is Kind.CONTRACTION:
                    group.volume = max(group.volume, *(tensor.size for tensor in node.outputs))
                self.group[node.name] = group
                return
        beside = None if sources else self._beside(node)
        if beside is not None:
            beside.nodes.append(node)
            beside.lines += self.known[node.name].lines
            self.group[node.name] = beside
            return
        sizes = [tensor.size for tensor in node.outputs]
        if node.kind is Kind.REDUCTION:
            sizes += [self.tensors[name].size for name in node.inputs]
        only = node.kind is Kind.OTHER or node.name in self.alone
        self.group[node.name] = _Group(len(self.group), [node], max(sizes), self.known[node.name].lines, only)

    def _beside(self, node: Node) -> _Group | None:
        """The last group without a contraction that goes over an input which a node reads, too, and which
        then comes from memory once."""
        size = max(tensor.size for tensor in node.outputs)
        read = {n for n in node.inputs if n not in self.constants and self.tensors[n].size == size}
        for group in sorted(self._all(), key=self._last, reverse=True):
            alike = group.volume == size and any(read.intersection(each.inputs) for each in group.nodes)
            whole = node.kind is Kind.POINTWISE and not group.has(Kind.CONTRACTION)
            if alike and whole and self._fits(node, group):
                return group
        return None

    def _sources(self, node: Node) -> list[_Group]:
        """The groups that a node reads from."""
        makers = [self.maker.get(base) for name in node.inputs for base in self.bases(name)]
        groups = {self.group[m.name].number: self.group[m.name] for m in makers if m is not None}
        return list(groups.values())

    def _last(self, group: _Group) -> int:
        return self.position[group.nodes[-1].name]

    def _needs(self, reader: _Group, group: _Group) -> bool:
        """Does a group need what another gives, be it by way of others?"""
        first = self.position[group.nodes[0].name]
        seen: set[int] = set()
        stack = [reader]
        while stack:
            each = stack.pop()
            if each is group:
                return True
            if each.number in seen or self._last(each) < first:
                continue
            seen.add(each.number)
            stack += [s for node in each.nodes for s in self._sources(node) if s is not each]
        return False

    def _fits(self, node: Node, group: _Group) -> bool:
        """May a node that reads from a group be part of it?"""
        if node.kind is Kind.OTHER or node.name in self.alone or group.alone:
            return False
        if group.lines + self.known[node.name].lines > LINES:
            return False
        read = [name for name in node.inputs if self._inside(name, group)]
        # The whole of what it reads, not a slice of it.
        whole = all(
            self.tensors[base].size <= self.tensors[name].size
            for name in read
            for base in self.bases(name)
            if base in self.maker and self.group[self.maker[base].name] is group
        )
        size = max(tensor.size for tensor in node.outputs)
        match node.kind:
            case Kind.POINTWISE:
                return size == group.volume or (size < group.volume and whole)
            case Kind.REDUCTION:
                outer = all(self._keeps_outer(node, name, group) for name in read)
                outer = outer or self._goes_along_rows(node, group)
                turned = group.turned or any(self._turned(name) for name in read)
                if group.has(Kind.CONTRACTION) and turned:
                    return False  # its rows are not those of the contraction
                return whole and outer and all(self.tensors[n].size <= group.volume for n in read)
            case Kind.COPY:
                outside = [n for n in node.inputs if n not in read and n not in self.constants]
                return group.has(Kind.CONTRACTION) and not outside and size <= group.volume
            case _:
                return self._is_attention(node, read, group)

    def _inside(self, name: str, group: _Group) -> bool:
        makers = [self.maker[base] for base in self.bases(name) if base in self.maker]
        return any(self.group[maker.name] is group for maker in makers)

    def _turned(self, name: str) -> bool:
        """Is a tensor read through a view that has its elements in another order?"""
        node = self.maker.get(name)
        if node is None or node.kind is not Kind.VIEW:
            return False
        return not self.known[node.name].reshapes or any(self._turned(each) for each in node.inputs)

    def _keeps_outer(self, node: Node, name: str, group: _Group) -> bool:
        """Does a reduction drop inner axes alone, so that it goes on in the group's order of rows? Where the
        group has no contraction the order is free, and it may drop any."""
        before = [size for size in self.tensors[name].shape if size > 1]
        after = [size for size in node.outputs[0].shape if size > 1]
        if group.has(Kind.CONTRACTION):
            return before[: len(after)] == after
        rest = iter(before)
        return all(size in rest for size in after)

    def _goes_along_rows(self, node: Node, group: _Group) -> bool:
        """Does a reduction pool rows of the group's one convolution, or take all channels of a place, and is
        there nothing but such before it?"""
        contractions = [each for each in group.nodes if each.kind is Kind.CONTRACTION]
        if len(contractions) != 1 or not self.known[contractions[0].name].convolves:
            return False
        shape = contractions[0].outputs[0].shape
        reductions = [each for each in group.nodes if each.kind is Kind.REDUCTION]
        pools = [each for each in reductions if self._pools_rows(each, shape)]
        if shape[1] % CHANNELS or any(self._drops(each) != (1,) for each in reductions if each not in pools):
            return False
        before = self.tensors[node.inputs[0]].shape
        if self._pools_rows(node, shape):
            return not pools
        images = [shape, *(each.outputs[0].shape for each in pools)]
        return self._drops(node) == (1,) and before in images

    def _pools_rows(self, node: Node, shape: tuple[int, ...]) -> bool:
        """Does a reduction make several rows of one, of results of a shape, with columns or without?"""
        if (
            not self.known[node.name].pools
            or self._drops(node)
            or self.tensors[node.inputs[0]].shape != shape
        ):
            return False
        pooled = node.outputs[0].shape
        return len(pooled) == len(shape) and pooled[2:-1] != shape[2:-1] and all(n > 1 for n in pooled[2:])

    def _drops(self, node: Node) -> tuple[int, ...]:
        return self.known[node.name].drops

    def _is_attention(self, node: Node, read: Sequence[str], group: _Group) -> bool:
        """Does a contraction read the softmax of the group's one contraction, all of data?"""
        first = [each for each in group.nodes if each.kind is Kind.CONTRACTION]
        functions = set[str]().union(*(self.known[each.name].functions for each in group.nodes))
        accumulations = set[str]().union(*(self.known[each.name].accumulations for each in group.nodes))
        softmax = "exp" in functions and {"max", "+"} <= accumulations
        data = all(
            base not in self.constants
            for each in (*first, node)
            for name in each.inputs
            for base in self.bases(name)
        )
        return len(first) == 1 and softmax and data and len(read) == 1

    # ------------------------------------------------------------------ with what reads it, or feeds it

    def _join_helpers(self) -> None:
        """Put groups without a contraction or a reduction where they make least that lies in memory.

        What only prepares for one reader goes there; but first, what gives less than the one contraction that
        it reads from goes to that: a rotation of its columns, a gated half of them.
        """
        self._sink(into_contractions=False)
        self._lift()
        self._sink(into_contractions=True)

    def _sink(self, into_contractions: bool) -> None:
        readers = self._readers()
        for group in self._helpers():
            reading = {self._now(each).number: self._now(each) for each in readers[group.number]}
            if len(reading) != 1:
                continue
            (reader,) = reading.values()
            given = {tensor.name for node in group.nodes for tensor in node.outputs}
            if reader.has(Kind.CONTRACTION) <= into_contractions and not given & self.kept:
                self._merge(group, reader)

    def _lift(self) -> None:
        for group in self._helpers():
            readers = self._readers()
            sources = {s.number: s for node in group.nodes for s in self._sources(node) if s is not group}
            if len(sources) != 1:
                continue
            (source,) = sources.values()
            alone = self._given([source], readers)
            if source.has(Kind.CONTRACTION) and self._given([source, group], readers) <= alone:
                self._merge(group, source)

    def _helpers(self) -> list[_Group]:
        """The groups that only move elements and map them, the last one first."""
        return [
            group
            for group in sorted(self._all(), key=self._last, reverse=True)
            if not group.alone and all(node.kind in (Kind.POINTWISE, Kind.COPY) for node in group.nodes)
        ]

    def _readers(self) -> dict[int, list[_Group]]:
        """The other groups that read what each gives, by its number."""
        readers: dict[int, list[_Group]] = {group.number: [] for group in self._all()}
        for group in self._all():
            for source in {s.number for node in group.nodes for s in self._sources(node) if s is not group}:
                readers[source].append(group)
        return readers

    def _now(self, group: _Group) -> _Group:
        """The group that holds a group's nodes by now."""
        return self.group[group.nodes[0].name]

    def _given(self, groups: Sequence[_Group], readers: Mapping[int, Sequence[_Group]]) -> int:
        """How many bytes some groups give to others, or as outputs."""
        outside = [r for group in groups for r in readers[group.number] if r not in groups]
        nodes = [node for reader in outside for node in reader.nodes]
        read = {base for node in nodes for name in node.inputs for base in self.bases(name)}
        made = [tensor for group in groups for node in group.nodes for tensor in node.outputs]
        return sum(tensor.bytes for tensor in made if tensor.name in read | self.kept)

    def _merge(self, group: _Group, into: _Group) -> None:
        """Put a group's nodes into another one, if they are not too many."""
        if into.alone or group.lines + into.lines > LINES:
            return
        into.nodes = sorted([*group.nodes, *into.nodes], key=lambda node: self.position[node.name])
        into.lines += group.lines
        into.volume = max(into.volume, group.volume)
        for node in group.nodes:
            self.group[node.name] = into

    def _all(self) -> list[_Group]:
        return list({group.number: group for group in self.group.values()}.values())

    # ------------------------------------------------------------------ in order

    def _ordered(self) -> list[list[Node]]:
        """The groups so that each comes behind those that it reads from."""
        done: dict[int, _Group] = {}
        for last in sorted(self._all(), key=self._last):
            stack = [(last, False)]
            while stack:
                group, finished = stack.pop()
                if finished:
                    done[group.number] = group
                elif group.number not in done:
                    stack.append((group, True))
                    before = [s for node in group.nodes for s in self._sources(node) if s is not group]
                    stack += [(each, False) for each in before if each.number not in done]
        return [group.nodes for group in done.values()]
