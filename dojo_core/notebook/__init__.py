"""The game in a notebook: a few functions, and drawings of what they give (docs/notebooks.md).

from dojo_core.notebook import start, show, moves, play, why, measure, compare

game = start("softmax:64x128")
moves(game)
play(game, "join_scopes m@0")
measure(game)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dojo_core.lazy import attributes

if TYPE_CHECKING:
    from dojo_core.notebook.measuring import compare, measure
    from dojo_core.notebook.playing import moves, play, show, start, why

__all__ = ["compare", "measure", "moves", "play", "show", "start", "why"]

_MODULES = {
    "dojo_core.notebook.measuring": ("compare", "measure"),
    "dojo_core.notebook.playing": ("moves", "play", "show", "start", "why"),
}
__getattr__ = attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
