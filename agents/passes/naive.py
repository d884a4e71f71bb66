"""The naive pass: join scopes and reuse dimensions until nothing more applies.

Source: PerfDojo, SC '25, section 4.1.
"""

from __future__ import annotations

from dojo_core.moves.core import REGISTRY
from dojo_core.recipes import Sketch

SHRINKING = ("join_scopes", "reuse_dims")  # each leaves fewer scopes or less storage, so the pass ends


def naive(sketch: Sketch) -> None:
    """Play ``join_scopes`` and ``reuse_dims`` while one is legal."""
    while any(_first(sketch, name) for name in SHRINKING):
        pass


def _first(sketch: Sketch, name: str) -> bool:
    """Play the first legal move of a transformation."""
    return any(sketch.may(name, *arguments) for arguments in REGISTRY[name].candidates(sketch.context))
