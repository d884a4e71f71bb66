"""What passes ask of a program's structure: innermost scopes, contiguous accesses, reductions, bands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.dependence import has_vector_form, is_reduction
from dojo_core.program.marks import lane_stride
from dojo_core.program.tables import Indirect
from dojo_core.program.target import Target, lanes_of
from dojo_core.program.tree import Access, Leaf, Node, Op, Path, Program, Provenance, Scope, walk

T = TypeVar("T")
LINE = 64  # bytes of a cache's line
OWN_CACHES = 3  # times the cores' caches: more data than that streams


def only(candidates: Iterable[T]) -> T:
    """The first of the candidates. Raises NoSuchPlace where there is none."""
    for each in candidates:
        return each
    raise NoSuchPlace("What the pass looks for is not there.")


def scope_of(program: Program, path: Path) -> Scope:
    """The scope at a path."""
    node = program.node(path)
    assert isinstance(node, Scope)
    return node


def body_at(program: Program, path: Path) -> tuple[Node, ...]:
    """The children of the scope at a path, of the program for the empty path."""
    return scope_of(program, path).body if path else program.body


def innermost(program: Program) -> list[Path]:
    """Unmarked scopes that hold operations only, in tree order."""
    return [
        path
        for node, path, _ in walk(program.body)
        if isinstance(node, Scope) and not node.mark and all(isinstance(c, Op) for c in node.body)
    ]


def leaf_of(program: Program, provenance: Provenance) -> Leaf | None:
    """The operation of that provenance, where it is still there."""
    return next((leaf for leaf in program.leaves if leaf.op.provenance == provenance), None)


def below(program: Program, path: Path) -> list[Leaf]:
    """The operations at or below a path."""
    return [leaf for leaf in program.leaves if leaf.path[: len(path)] == path]


def depths_of(access: Access) -> set[int]:
    """The depths of the scopes that an access goes along."""
    return {d for form in access.index for d in form.depths}


def uses(access: Access, depth: int) -> bool:
    """Does an access go along the scope at a depth?"""
    return any(form.uses(depth) for form in access.index)


def stride(program: Program, access: Access, depth: int) -> int:
    """Cells between neighbouring iterations of the scope at a depth."""
    return lane_stride(access, program.buffer_of[access.array], depth)


def contiguous(program: Program, leaf: Leaf, depth: int, apart: int = 1) -> bool:
    """Could the scope at ``depth`` be the lanes of this operation, were it innermost and as long as a vector?

    Neighbours in memory, or a reduction; what is read may be one cell, or cells at most ``apart``, and what
    is looked up is one for all.
    """
    forms = [form for access in leaf.op.elements for form in access.index]
    if any(isinstance(form, Indirect) and form.looks_up(depth) for form in forms):
        return False
    if not has_vector_form(leaf) or any(c.form.uses(depth) for c in leaf.op.guard):
        return False
    target = stride(program, leaf.op.target, depth)
    if target != 1 and not (target == 0 and is_reduction(leaf, depth)):
        return False
    return all(0 <= stride(program, a, depth) <= apart for a in leaf.op.sources)


def widths_for(program: Program, leaves: Iterable[Leaf], target: Target) -> tuple[int, ...]:
    """The lanes that vectors of all these operations may have, widest first."""
    return lanes_of({program.buffer_of[a.array].dtype for leaf in leaves for a in leaf.op.elements}, target)


def instances(program: Program, path: Path) -> int:
    """How often operations run at or below a path, once through the scopes above."""

    def count(node: Node) -> int:
        return 1 if isinstance(node, Op) else node.size * sum(count(c) for c in node.body)

    return count(program.node(path))


def unmarked_at(program: Program, path: Path) -> bool:
    node = program.node(path)
    return isinstance(node, Scope) and not node.mark


def from_memory(program: Program, target: Target) -> bool:
    """Do the inputs and outputs come from memory? Such as outgrow the cores' own caches several times do, or
    may as well: the last cache is slower for results that are written once than memory past it."""
    own = OWN_CACHES * target.threads * target.cache_bytes
    return traffic(program) > min(own, target.shared_cache_bytes)


def traffic(program: Program) -> int:
    """Bytes of the inputs and outputs."""
    return sum(
        b.bytes for b in {program.buffer_of[a].name: program.buffer_of[a] for a in program.interface}.values()
    )
