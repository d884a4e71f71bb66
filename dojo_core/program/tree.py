"""The program: a tree of nodes with its interface and buffers.

Source: PerfDojo (SC '25), sections 2.1 and 2.2. An edit makes new nodes along one path and shares the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dojo_core.drawn import Drawn
from dojo_core.program.nodes import (
    DTYPE_BYTES,
    LONG_FUNCTIONS,
    NOTHING,
    NUMBER_DTYPES,
    Access,
    Buffer,
    Comparison,
    Dim,
    Domain,
    Facts,
    Leaf,
    Node,
    Number,
    Op,
    Operand,
    Path,
    Provenance,
    Scope,
    Summary,
    derived,
    differing,
    leaves,
    number_text,
    splice,
    substitute,
    substituted,
    summary,
    text_hash,
    walk,
)
from dojo_core.program.printing import print_program
from dojo_core.program.tables import Indirect, Table

__all__ = [
    "DTYPE_BYTES",
    "LONG_FUNCTIONS",
    "NOTHING",
    "NUMBER_DTYPES",
    "Access",
    "Buffer",
    "Comparison",
    "Dim",
    "Domain",
    "Facts",
    "Leaf",
    "Node",
    "Number",
    "Op",
    "Operand",
    "Path",
    "Program",
    "Provenance",
    "Scope",
    "Summary",
    "derived",
    "differing",
    "leaves",
    "number_text",
    "splice",
    "substitute",
    "substituted",
    "summary",
    "text_hash",
    "walk",
]


@dataclass(frozen=True)
class Program(Drawn):
    """A kernel. Build one with ``parse`` or ``Program.make``, which put the buffers in canonical order."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Node, ...]
    age: int = field(default=0, compare=False)  # moves played since the start text
    domains: tuple[Domain, ...] = ()

    @staticmethod
    def make(
        name: str,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        buffers: tuple[Buffer, ...],
        body: tuple[Node, ...],
        age: int = 0,
        domains: tuple[Domain, ...] = (),
    ) -> Program:
        """A program with buffers in canonical order: inputs, outputs, temporaries by first access.

        A buffer that no operation accesses and that is no input or output leaves, and prefetches of its
        arrays with it.
        """
        whole = summary(body)
        ordered = _ordered(buffers, inputs + outputs, whole.first_accessed)
        gone = whole.prefetched.difference(*[b.arrays for b in ordered])
        if gone:
            body = tuple(_without_prefetches(n, gone) for n in body)
        return Program(name, inputs, outputs, ordered, body, age, domains)

    def edit(
        self, body: tuple[Node, ...] | None = None, buffers: tuple[Buffer, ...] | None = None
    ) -> Program:
        """The same kernel with another body or other buffers, canonically ordered as by ``make``.

        Only what differs is looked at, where that settles the order.
        """
        body = self.body if body is None else body
        first, old, new = differing(self.body, body)
        removed, added = summary(old), summary(new)
        same = removed.first_accessed == added.first_accessed and added.prefetched <= removed.prefetched
        if same and buffers is None:
            return Program(self.name, self.inputs, self.outputs, self.buffers, body, self.age, self.domains)
        # Between names that come before what differs and names that come after it.
        begin, end = self._names_before[first], self._names_before[first + len(old)]
        names = self.summary.first_accessed
        settled = same or (
            set(names[begin:end]) <= set(added.first_accessed) and added.prefetched <= removed.prefetched
        )
        buffers = self.buffers if buffers is None else buffers
        if settled:
            order = names[:begin] + added.first_accessed + names[end:]
            ordered = _ordered(buffers, self.inputs + self.outputs, order)
            if not self.summary.prefetched.difference(*[b.arrays for b in ordered]):
                return Program(self.name, self.inputs, self.outputs, ordered, body, self.age, self.domains)
        return Program.make(self.name, self.inputs, self.outputs, buffers, body, self.age, self.domains)

    @derived
    def facts(self) -> Facts:
        """What has been found out of it: see ``nodes.fact``."""
        return {}

    @derived
    def _names_before(self) -> list[int]:
        """How many arrays have been accessed before each child of the root, and before the end."""
        seen: set[str] = set()
        counts = []
        for child in self.body:
            counts.append(len(seen))
            seen.update(summary((child,)).first_accessed)
        return [*counts, len(seen)]

    def domain_of(self, array: str) -> Domain | None:
        """Where the values of an input lie; None: anywhere."""
        return next((d for d in self.domains if d.array == array), None)

    @derived
    def buffer_of(self) -> dict[str, Buffer]:
        """The buffer that holds each array."""
        return {a: b for b in self.buffers for a in b.arrays}

    @derived
    def buffer_ids(self) -> frozenset[int]:
        """By which another program's buffers are known to be shared with this one."""
        return frozenset(map(id, self.buffers))

    @derived
    def buffer_number(self) -> dict[str, int]:
        """The number, in ``buffers``, of the buffer that holds each array."""
        return {a: n for n, b in enumerate(self.buffers) for a in b.arrays}

    @derived
    def tables(self) -> dict[str, Table]:
        """The constant tables by name, in the order in which operations look them up first."""
        indices = (i for leaf in self._indirect for a in leaf.op.elements for i in a.index)
        looked_up = (k.source for i in indices if isinstance(i, Indirect) for k, _ in i.lookups)
        return {source.name: source for source in looked_up if isinstance(source, Table)}

    @derived
    def index_arrays(self) -> frozenset[str]:
        """The arrays that indices are read from."""
        return frozenset(i.array for leaf in self._indirect for a in leaf.op.elements for i in a.indices)

    @derived
    def _indirect(self) -> list[Leaf]:
        """The operations with an index that goes through a table or an array."""
        if not self.summary.indirect:
            return []
        return [leaf for leaf in self.leaves if leaf.op.indirect]

    @derived
    def interface(self) -> frozenset[str]:
        """Arrays that the caller owns: inputs and outputs."""
        return frozenset(self.inputs + self.outputs)

    @derived
    def summary(self) -> Summary:
        """What of the whole tree is asked most."""
        return summary(self.body)

    @derived
    def leaves(self) -> tuple[Leaf, ...]:
        """Every operation in tree order."""
        return leaves(self.body)

    @derived
    def buffer_bytes(self) -> int:
        """Of all buffers together."""
        return sum(buffer.bytes for buffer in self.buffers)

    @derived
    def text(self) -> str:
        """The canonical text."""
        return print_program(self)

    @derived
    def hash(self) -> str:
        """Stable content hash of the canonical text: the key of every cache and record."""
        return text_hash(self.text)

    def lean(self) -> Program:
        """This program with nothing derived but its hash: for those kept by the hundred."""
        program = replace(self)
        program.__dict__["hash"] = self.hash
        return program

    def __str__(self) -> str:
        return self.text

    @derived
    def paths(self) -> dict[Provenance, Path]:
        """Where the nodes of each provenance stand, the first of those that share one."""
        found: dict[Provenance, Path] = {}

        def gather(body: tuple[Node, ...], above: Path) -> None:
            for number, node in enumerate(body):
                path = (*above, number)
                found.setdefault(node.provenance, path)
                if isinstance(node, Scope):
                    gather(node.body, path)

        gather(self.body, ())
        return found

    def find(self, path: Path) -> Node | None:
        """The node at a path, None where there is none."""
        body: tuple[Node, ...] = self.body
        node: Node | None = None
        for number in path:
            if number >= len(body):
                return None
            node = body[number]
            body = node.body if isinstance(node, Scope) else ()
        return node

    def node(self, path: Path) -> Node:
        """The node at a path. Raises IndexError where there is none."""
        node: Node = self.body[path[0]]
        for child in path[1:]:
            if isinstance(node, Op):
                raise IndexError(path)
            node = node.body[child]
        return node

    def scope(self, path: Path) -> Scope:
        """The scope at a path. Raises IndexError where there is none."""
        node = self.node(path)
        if isinstance(node, Op):
            raise IndexError(path)
        return node

    def children(self, path: Path) -> tuple[Node, ...]:
        """What the scope at a path holds, or the program where the path is empty. Raises IndexError."""
        return self.scope(path).body if path else self.body

    def scopes_above(self, path: Path) -> tuple[Scope, ...]:
        """The scopes strictly above a path, outermost first."""
        return tuple([self.scope(path[:depth]) for depth in range(1, len(path))])

    def siblings(self, path: Path) -> tuple[Node, ...]:
        """The children of the node above a path (the root's for a path of length 1)."""
        return self.children(path[:-1])

    def splice(self, path: Path, count: int, nodes: tuple[Node, ...]) -> Program:
        """Replace ``count`` siblings from ``path`` on by ``nodes``."""
        return self.edit(body=splice(self.body, path, count, nodes))


def _ordered(
    buffers: tuple[Buffer, ...], interface: tuple[str, ...], names: tuple[str, ...]
) -> tuple[Buffer, ...]:
    """The buffers in canonical order; those of no named array left out."""
    home = {a: b for b in buffers for a in b.arrays}
    ordered: dict[str, Buffer] = {}
    for array in interface + names:
        if array in home:
            ordered[home[array].name] = home[array]
    return tuple(ordered.values())


def _without_prefetches(node: Node, arrays: frozenset[str]) -> Node:
    if isinstance(node, Scope):
        return replace(node, body=tuple(_without_prefetches(c, arrays) for c in node.body))
    return replace(node, prefetches=tuple(a for a in node.prefetches if a.array not in arrays))
