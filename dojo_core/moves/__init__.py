"""The moves: one file per family; importing this package registers them all, in the order shown to people,
with those of packages last."""

from dojo_core.moves import scopes, extent, padding, storage, dimensions, layout, copies, values  # noqa: F401, I001  (order of families)
from dojo_core.moves import reductions, algebra, moments, online, bilinear  # noqa: F401
from dojo_core.moves import marks, mapping, tensor_cores, streaming, instructions  # noqa: F401
from dojo_core.moves import packages  # noqa: F401
from dojo_core.moves.core import IllegalMove, Move, REGISTRY, Refusal, Transformation, Verdict
from dojo_core.moves.api import apply, blocked_moves, each_blocked, inverse, legal_moves, places, why
from dojo_core.moves.notation import MoveSyntax, parse_move
from dojo_core.moves.places import NoSuchPlace, Place, place_of, resolve

__all__ = [
    "REGISTRY",
    "IllegalMove",
    "Move",
    "MoveSyntax",
    "NoSuchPlace",
    "Place",
    "Refusal",
    "Transformation",
    "Verdict",
    "apply",
    "blocked_moves",
    "each_blocked",
    "inverse",
    "legal_moves",
    "parse_move",
    "place_of",
    "places",
    "resolve",
    "why",
]
