"""Bands: the independent scopes around a nest, whose iterations a GPU may compute in any order."""

from __future__ import annotations

import math
from dataclasses import replace

from agents.passes.fusion import bring_together
from agents.passes.structure import body_at, scope_of
from dojo_core.moves.core import Move, Refusal
from dojo_core.moves.legality import outcome
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.target import Target
from dojo_core.program.tree import Path, Provenance, Scope
from dojo_core.recipes import Sketch

ENOUGH = 1024  # blocks that keep all of a device's processors busy

# Whether iterations depend on each other is a question that no machine's limits bear on.
_UNORDERED = Target(
    name="unordered",
    title="iterations in any order",
    vector_widths={},
    marks=frozenset("p"),
    locations=("heap", "shared", "local", "stack"),
    stack_bytes=1 << 30,
    register_cells=1 << 20,
    unrolled_ops=1 << 20,
    threads=1,
)


def unordered(sketch: Sketch, path: Path) -> bool:
    """May the scope's iterations run in any order, or at once?"""
    asked = replace(sketch.context, target=_UNORDERED)
    return not isinstance(outcome(asked, Move("parallelize", (sketch.place(path),))), Refusal)


def band(sketch: Sketch, provenance: Provenance) -> list[Provenance]:
    """The scopes from a nest's outermost one inwards, each the whole of the one around, while unordered."""
    scopes: list[Provenance] = []
    path = sketch.path(provenance)
    while True:
        node = sketch.program.node(path)
        if not isinstance(node, Scope) or node.mark or not unordered(sketch, path):
            return scopes
        scopes.append(node.provenance)
        if len(node.body) > 1:
            return scopes
        path = (*path, 0)


def width(sketch: Sketch, provenance: Provenance) -> int:
    """How many iterations of a nest's band may run at once."""
    return math.prod(scope_of(sketch.program, sketch.path(each)).size for each in band(sketch, provenance))


def fuse_independent(sketch: Sketch, path: Path = ()) -> None:
    """Join scopes with later siblings of their size, from the outside in, while the nest keeps its width.

    What stands between is moved out of the way. A chain of nests becomes one launch, and what one writes the
    next finds in registers.
    """
    number = 0
    while number < len(body_at(sketch.program, path)):
        while _join_next(sketch, (*path, number)):
            pass
        number += 1
    for provenance in [
        n.provenance for n in body_at(sketch.program, path) if isinstance(n, Scope) and not n.mark
    ]:
        inner = sketch.path(provenance)
        if unordered(sketch, inner):
            fuse_independent(sketch, inner)


def _join_next(sketch: Sketch, path: Path) -> bool:
    """Join a scope with the nearest later sibling that it can be joined with."""
    first = sketch.program.node(path)
    if not isinstance(first, Scope) or first.mark:
        return False
    siblings = body_at(sketch.program, path[:-1])
    for other in siblings[path[-1] + 1 :]:
        if isinstance(other, Scope) and other.size == first.size and not other.mark:
            count = len(sketch.moves)
            with sketch.attempt():
                _join(sketch, first.provenance, other.provenance)
            if len(sketch.moves) > count:
                return True
    return False


def _join(sketch: Sketch, first: Provenance, second: Provenance) -> None:
    """Bring two sibling scopes together and join them. Raises IllegalMove, or NoSuchPlace where unwise."""
    before = max(width(sketch, first), width(sketch, second))
    bring_together(sketch, first, second)
    sketch.play("join_scopes", sketch.place(sketch.path(first)))
    fuse_independent(sketch, sketch.path(first))
    if width(sketch, first) < min(before, ENOUGH):
        raise NoSuchPlace("Too little of the joined nest could run at once.")
