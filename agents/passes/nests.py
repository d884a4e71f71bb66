"""Nests of scopes, as passes shape them: an operation set apart, its scopes in an order, nests joined."""

from __future__ import annotations

from agents.passes.structure import leaf_of, scope_of
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Leaf, Provenance
from dojo_core.recipes import RECIPES, Sketch


def leaf_at(sketch: Sketch, provenance: Provenance) -> Leaf:
    leaf = leaf_of(sketch.program, provenance)
    if leaf is None:
        raise NoSuchPlace("An operation that the tiling works on is gone.")
    return leaf


def isolate(sketch: Sketch, operation: Provenance, within: int = 0) -> None:
    """Give an operation a nest of its own, by fission from the inside out, as far as that is legal; the
    ``within`` outermost scopes stay as they are."""
    for depth in reversed(range(within, len(leaf_at(sketch, operation).scopes))):
        path = leaf_at(sketch, operation).path
        around, child = path[: depth + 1], path[depth + 1]
        if child > 0 and sketch.may("fission_scope", sketch.place(around), sketch.place((*around, child))):
            around = leaf_at(sketch, operation).path[: depth + 1]
        if len(scope_of(sketch.program, around).body) > 1:
            sketch.may("fission_scope", sketch.place(around), sketch.place((*around, 1)))


def band_depth(leaf: Leaf) -> int:
    """The depth from which on each scope around an operation holds one thing alone."""
    depth = len(leaf.scopes)
    while depth and len(leaf.scopes[depth - 1].body) == 1:
        depth -= 1
    return depth


def shared_scopes(sketch: Sketch, one: Provenance, other: Provenance) -> int:
    """How many scopes stand around both of two operations."""
    paths = leaf_at(sketch, one).path, leaf_at(sketch, other).path
    return next(n for n, (mine, its) in enumerate(zip(*paths, strict=False)) if mine != its)


def order(sketch: Sketch, operation: Provenance, provenances: list[Provenance]) -> None:
    """Bring scopes around an operation into an order. Raises IllegalMove."""
    depths = {s.provenance: d for d, s in enumerate(leaf_at(sketch, operation).scopes)}
    place = sketch.place(leaf_at(sketch, operation).path)
    if any(b not in depths for b in provenances):
        raise NoSuchPlace("The nests are not apart.")
    if not provenances:
        return
    RECIPES["permute"].run(sketch, place, *(depths[b] for b in provenances))


def wrapped(sketch: Sketch, operation: Provenance) -> Provenance:
    """Put a scope of one iteration around an operation's nest; gives it."""
    leaf = leaf_at(sketch, operation)
    path = leaf.path[: band_depth(leaf) + 1]
    sketch.play("wrap", sketch.place(path), 1)
    return sketch.provenance(path)


def join_shared(sketch: Sketch, nests: list[list[Provenance]]) -> Provenance | None:
    """Join nests in the scopes that they share, or take one as it is; the innermost of these scopes."""
    shared = nests[0]
    if any(len(nest) != len(shared) for nest in nests):
        raise NoSuchPlace("The nests have not as many scopes to share.")
    for nest in nests[1:]:
        for one, other in zip(shared, nest, strict=True):
            while sketch.path(other)[-1] - sketch.path(one)[-1] > 1:  # bring the first ones to the last
                sketch.play("reorder", sketch.place(sketch.path(one)))
            sketch.play("join_scopes", sketch.place(sketch.path(one)))
    return shared[-1] if shared else None
