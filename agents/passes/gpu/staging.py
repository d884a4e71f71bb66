"""What tiles of any form take: the start joined with its sum, and the loops of copies."""

from __future__ import annotations

from agents.passes.fusion import bring_together
from agents.passes.structure import leaf_of, only, scope_of
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Leaf, Path, Provenance
from dojo_core.recipes import Sketch


def join_with_start(sketch: Sketch, operation: Provenance, columns: Provenance) -> None:
    """Bring the operation that sets the results to zero into the scope of columns, before the sum."""
    leaf = leaf_of(sketch.program, operation)
    assert leaf is not None
    array = leaf.op.target.array
    begins = [x.op for x in sketch.program.leaves if x.op.target.array == array and not x.op.accumulate]
    if len(begins) != 1:
        raise NoSuchPlace("The results are set more than once.")
    depth = len(sketch.path(columns))
    for level in range(1, depth + 1):
        first, second = sketch.path(begins[0].provenance)[:level], sketch.path(operation)[:level]
        if first != second:
            bring_together(sketch, sketch.provenance(first), sketch.provenance(second))
            sketch.play("join_scopes", sketch.place(sketch.path(sketch.provenance(first))))


def writer(sketch: Sketch, name: str) -> Leaf:
    """The operation that fills a buffer."""
    return only(leaf for leaf in sketch.program.leaves if leaf.op.target.array == name)


def scopes_of(sketch: Sketch, name: str, count: int) -> list[Provenance]:
    """The innermost scopes around the copy that fills a buffer."""
    return [
        scope.provenance for scope in writer(sketch, name).scopes[len(writer(sketch, name).scopes) - count :]
    ]


def loops_of(sketch: Sketch, name: str) -> list[Path]:
    """The unmarked scopes that only fill a buffer, innermost first."""
    path = writer(sketch, name).path[:-1]
    paths = []
    while path and len(scope_of(sketch.program, path).body) == 1 and not scope_of(sketch.program, path).mark:
        paths.append(path)
        path = path[:-1]
    return paths
