"""Names of nodes: what ``t@0`` stands for in a program, and what a node is called."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from dojo_core.program.nodes import fact
from dojo_core.program.tree import Leaf, Path, Program, Scope, walk


@dataclass(frozen=True, slots=True)
class Place:
    """A node by name: ``t@0`` is the scope at depth 0 above the operation that writes t, ``t`` that
    operation itself, ``t#1`` the second operation that writes t."""

    array: str
    number: int = 0
    depth: int | None = None

    def __str__(self) -> str:
        nth = f"#{self.number}" if self.number else ""
        return f"{self.array}{nth}" if self.depth is None else f"{self.array}{nth}@{self.depth}"


class NoSuchPlace(LookupError):
    """A move names something that the program does not have; the message is a sentence."""


@fact
def writers(program: Program) -> dict[str, list[Leaf]]:
    """The operations that write each array, in tree order."""
    by_array: dict[str, list[Leaf]] = {}
    for leaf in program.leaves:
        by_array.setdefault(leaf.op.target.array, []).append(leaf)
    return by_array


NAMED = 12  # arrays in the sentence to who named another


def leaf_at(program: Program, place: Place) -> Leaf:
    """The operation that a place names. Raises NoSuchPlace."""
    operations = writers(program).get(place.array, [])
    if not operations:
        known = list(writers(program))
        more = ", ..." if len(known) > NAMED else ""
        raise NoSuchPlace(
            f"No operation writes {place.array}. Those written: {', '.join(known[:NAMED])}{more}."
        )
    if place.number >= len(operations):
        count = "one operation writes" if len(operations) == 1 else f"{len(operations)} operations write"
        raise NoSuchPlace(f"Only {count} {place.array}: {place.array}#{place.number} does not exist.")
    return operations[place.number]


def resolve(program: Program, place: Place) -> Path:
    """The path of the node that a place names. Raises NoSuchPlace."""
    leaf = leaf_at(program, place)
    if place.depth is None:
        return leaf.path
    if place.depth >= len(leaf.scopes):
        raise NoSuchPlace(
            f"{Place(place.array, place.number)} stands in {len(leaf.scopes)} scopes: "
            f"there is none at depth {place.depth}."
        )
    return leaf.path[: place.depth + 1]


def place_of(program: Program, path: Path) -> Place:
    """The canonical name of a node: by the first operation in it. Raises IndexError where there is none."""
    node, first = program.node(path), path
    while isinstance(node, Scope):
        node, first = node.body[0], (*first, 0)
    number = bisect_left(writers(program)[node.target.array], first, key=_path)
    return Place(node.target.array, number, None if first == path else len(path) - 1)


def scope_at(program: Program, place: Place) -> tuple[Path, Scope, tuple[Scope, ...]]:
    """(path, scope, scopes above) of a place that names a scope. Raises NoSuchPlace."""
    path = resolve(program, place)
    if place.depth is None:
        raise NoSuchPlace(f"{place} is an operation: name a scope above it, such as {place}@0.")
    leaf = leaf_at(program, place)
    return path, leaf.scopes[place.depth], leaf.scopes[: place.depth]


def reduction_at(program: Program, place: Place) -> tuple[Leaf, int]:
    """The operation of a place that names a scope above it, and that scope's depth. Raises NoSuchPlace."""
    path, _, _ = scope_at(program, place)
    return leaf_at(program, place), len(path) - 1


@fact
def scopes(program: Program) -> tuple[tuple[Path, Scope, tuple[Scope, ...]], ...]:
    """Every scope in tree order with its path and the scopes above."""
    return tuple((p, node, above) for node, p, above in walk(program.body) if isinstance(node, Scope))


def leaves_under(program: Program, path: Path) -> list[Leaf]:
    """The operations at or below a path."""
    leaves = program.leaves
    if not path:
        return list(leaves)
    # Leaves stand in order of their paths.
    begin = bisect_left(leaves, path, key=_path)
    end = bisect_left(leaves, (*path[:-1], path[-1] + 1), begin, key=_path)
    return list(leaves[begin:end])


def _path(leaf: Leaf) -> Path:
    return leaf.path


@fact
def _taken(program: Program) -> set[str]:
    return {*program.buffer_of, *[b.name for b in program.buffers], *program.tables}


def fresh_name(program: Program, wish: str) -> str:
    """``wish``, or with the first number that makes it new in the program."""
    taken = _taken(program)
    if wish not in taken:
        return wish
    number = 1
    while f"{wish}{number}" in taken:
        number += 1
    return f"{wish}{number}"
