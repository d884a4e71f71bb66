"""What selections spare a run of vector operations where no lane takes an arm.

``elu(x) = select(x > 0, x, expm1(x))`` of vectors without a negative number is a copy, and numbers often are
of one sign for long stretches. So the C of some vectors together asks once, and has both: all of it, and what
is left where a mask is the same in all lanes of all of them. A question for each vector would part what the
processor computes of several at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dojo_core.codegen.conversions import vector_type
from dojo_core.program.nodes import LONG_FUNCTIONS, Access, Leaf, Node, Op, Path, Scope
from dojo_core.program.tree import Program

_FEWEST = 4  # vectors: of fewer, the test takes a third of the time of the function that it may spare
_MOST = 256  # operations that are written twice


@dataclass(frozen=True)
class Shortcut:
    """What a run of siblings, vector operations and scopes that are written out, comes to where masks are the
    same in all lanes."""

    nodes: int  # of the run
    kind: str  # of the masks: the C type
    alike: Mapping[Path, bool]  # the operation that writes a mask, and what all lanes of it have to be
    tests: frozenset[Path]  # these operations, and what they are computed of
    taken: Mapping[Path, int]  # selections by these masks: which operand they are
    spared: frozenset[Path]  # operations whose values nothing looks at then
    names: tuple[str, ...]  # of these values, without the masks and what they alone are computed of


def shortcuts(program: Program, masks: Mapping[str, str]) -> dict[Path, Shortcut]:
    """By the path of a run's first node. ``masks``: the registers that hold truth of whole vectors, and the
    dtype of the integers that they are held in."""
    if not masks or not any(leaf.op.function in LONG_FUNCTIONS for leaf in program.leaves):
        return {}
    return dict(_shortcuts(_Uses(program, masks), program.body, (), ()))


def _shortcuts(
    uses: _Uses, body: tuple[Node, ...], path: Path, scopes: tuple[Scope, ...]
) -> Iterator[tuple[Path, Shortcut]]:
    """Of the longest runs that have one: else within their scopes."""
    first = 0
    for number, node in enumerate((*body, None)):
        if node is not None and _written(node):
            continue
        run, begin = body[first:number], (*path, first)
        shortcut = None
        if 0 < sum(map(_written, run)) <= _MOST:
            shortcut = _Run(uses, begin, run, scopes).shortcut()
        if shortcut is not None:
            yield begin, shortcut
        for place, each in enumerate(body[first : number + 1], first):
            if isinstance(each, Scope) and each.mark != "v" and (shortcut is None or place == number):
                yield from _shortcuts(uses, each.body, (*path, place), (*scopes, each))
        first = number + 1


def _written(node: Node) -> int:
    """How many operations are written out for a straight line of vector operations, 0 for other nodes."""
    if isinstance(node, Op) or node.mark not in ("u", "v"):
        return 0
    counts = [1] if node.mark == "v" else [_written(child) for child in node.body]
    return node.size ** (node.mark == "u") * sum(counts) if all(counts) else 0


class _Uses:
    """Who writes and reads each buffer of a program."""

    def __init__(self, program: Program, masks: Mapping[str, str]):
        self.program, self.masks = program, masks
        self.writers: dict[str, list[int]] = {}
        self.readers: dict[str, list[int]] = {}
        for number, leaf in enumerate(program.leaves):
            self.writers.setdefault(self.buffer(leaf.op.target), []).append(number)
            for access in dict.fromkeys(leaf.op.reads):
                if access.array in program.buffer_of:  # not a table
                    self.readers.setdefault(self.buffer(access), []).append(number)

    def buffer(self, access: Access) -> str:
        return self.program.buffer_of[access.array].name

    def beside(self, number: int) -> bool:
        """Is what the operation writes a value in registers: written there alone, and read only by vector
        operations beside it, behind it?"""
        leaves, leaf = self.program.leaves, self.program.leaves[number]
        target = self.program.buffer_of[leaf.op.target.array]
        if target.location != "register" or len(target.arrays) > 1 or self.writers[target.name] != [number]:
            return False
        if leaf.op.accumulate or leaf.op.guard or leaf.op.target.indices:
            return False
        return all(
            reader > number
            and leaves[reader].path[:-2] == leaf.path[:-2]
            and leaves[reader].scopes[-1].size == leaf.scopes[-1].size
            and all(a == leaf.op.target for a in leaves[reader].op.reads if self.buffer_is(a, target.name))
            for reader in self.readers.get(target.name, ())
        )

    def buffer_is(self, access: Access, name: str) -> bool:
        return access.array in self.program.buffer_of and self.buffer(access) == name


class _Run:
    """A straight line of vector operations, by their numbers among the program's."""

    def __init__(self, uses: _Uses, path: Path, nodes: tuple[Node, ...], scopes: tuple[Scope, ...]):
        self.uses, self.nodes, self.depth = uses, len(nodes), len(scopes)
        parent, first = path[:-1], path[-1]
        self.leaves = {
            number: leaf
            for number, leaf in enumerate(uses.program.leaves)
            if leaf.path[: len(parent)] == parent and first <= leaf.path[len(parent)] < first + len(nodes)
        }
        self.values = {
            uses.buffer(leaf.op.target): number for number, leaf in self.leaves.items() if uses.beside(number)
        }

    def shortcut(self) -> Shortcut | None:
        alike: dict[int, bool] = {}
        tests: set[int] = set()
        kinds: set[str] = set()
        for leaf in self.leaves.values():
            mask = self._mask(leaf)
            if mask is None or mask in alike:
                continue
            kind, before = self._kind(mask), self._before(mask)
            if before is None or kinds - {kind}:
                continue
            known = self._spared(alike)
            for value in (True, False):
                more = self._spared({**alike, mask: value}) - known
                if any(self._is_long(spared) for spared in more):
                    alike[mask] = value
                    tests |= before
                    kinds.add(kind)
                    break
        if not alike:
            return None

        spared = self._spared(alike)

        def paths(numbers: set[int]) -> frozenset[Path]:
            return frozenset(self.leaves[number].path for number in numbers)

        return Shortcut(
            nodes=self.nodes,
            kind=kinds.pop(),
            alike={self.leaves[mask].path: value for mask, value in alike.items()},
            tests=paths(tests),
            taken={
                leaf.path: taken
                for leaf in self.leaves.values()
                if (taken := self._taken(leaf, alike)) is not None
            },
            spared=paths(spared),
            names=tuple(self.leaves[number].op.target.array for number in sorted(spared - tests)),
        )

    def _is_long(self, number: int) -> bool:
        """A function of many instructions, of as many vectors as are worth a test?"""
        leaf = self.leaves[number]
        vectors = math.prod(scope.size for scope in leaf.scopes[self.depth : -1])
        return leaf.op.function in LONG_FUNCTIONS and vectors >= _FEWEST

    def _mask(self, leaf: Leaf) -> int | None:
        """The operation that writes the mask by which this one selects, if it is known before the run."""
        op = leaf.op
        chosen = op.operands[0] if op.function == "select" else None
        if not isinstance(chosen, Access) or self.uses.buffer(chosen) not in self.uses.masks:
            return None
        dtypes = {self.uses.program.buffer_of[a.array].dtype for a in (op.target, *op.sources[1:])}
        return self.values.get(self.uses.buffer(chosen)) if len(dtypes) == 1 else None

    def _kind(self, mask: int) -> str:
        leaf = self.leaves[mask]
        return vector_type(self.uses.masks[self.uses.buffer(leaf.op.target)], leaf.scopes[-1].size)

    def _before(self, number: int) -> set[int] | None:
        """An operation and those that it is computed of, if all of them can be computed before the run."""
        needed, waiting = set[int](), [number]
        written = {self.uses.buffer(leaf.op.target) for leaf in self.leaves.values()}
        while waiting:
            number = waiting.pop()
            if self.leaves[number].op.function in LONG_FUNCTIONS:
                return None
            needed.add(number)
            for access in self.leaves[number].op.reads:
                name = self.uses.buffer(access) if access.array in self.uses.program.buffer_of else ""
                if name not in written:
                    continue
                if name not in self.values:
                    return None
                waiting.append(self.values[name])
        return needed

    def _taken(self, leaf: Leaf, alike: Mapping[int, bool]) -> int | None:
        """Which operand a selection is where masks are alike."""
        value = alike.get(mask) if (mask := self._mask(leaf)) is not None else None
        return None if value is None else 1 if value else 2

    def _spared(self, alike: Mapping[int, bool]) -> set[int]:
        """The operations whose values nothing looks at where masks are alike."""
        spared: set[int] = set()
        values = set(self.values.values())

        def looks(reader: int, value: Access) -> bool:
            leaf = self.leaves[reader]
            taken = self._taken(leaf, alike)
            if reader in spared or taken is None:
                return reader not in spared
            left = leaf.op.operands[taken]
            indices = (*leaf.op.target.indices, *(left.indices if isinstance(left, Access) else ()))
            return value in (left, *indices)

        for number in reversed(self.leaves):
            if number in values:
                target = self.leaves[number].op.target
                readers = self.uses.readers.get(self.uses.buffer(target), ())
                if not any(looks(reader, target) for reader in readers):
                    spared.add(number)
        return spared
