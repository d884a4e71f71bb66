"""The core of the Dojo: representation, moves, game, code generation, kernels.

In a notebook::

    from dojo_core import parse, legal_moves, apply, why

    program = parse(text)                # str(program) is the canonical text
    moves = legal_moves(program)         # str(move) is a move's text form
    program = apply(program, moves[0])   # or apply(program, "split_scope y@0 16")
    expand(program, "tile y@1 32 16")    # the moves that a recipe comes to
    print(why(program, "parallelize s@1"))
    run("model.onnx", {"x": x})          # a whole model, its outputs by name
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dojo_core.lazy import attributes

if TYPE_CHECKING:
    from dojo_core.model import open_model, run
    from dojo_core.moves import (
        IllegalMove,
        Move,
        MoveSyntax,
        Refusal,
        apply,
        blocked_moves,
        legal_moves,
        why,
    )
    from dojo_core.own.axes import KernelError
    from dojo_core.own.kernel import OwnKernel, kernel
    from dojo_core.program.expressions import TextError
    from dojo_core.program.text import parse
    from dojo_core.program.tree import Program
    from dojo_core.recipes import expand

__all__ = [
    "IllegalMove",
    "KernelError",
    "Move",
    "MoveSyntax",
    "OwnKernel",
    "Program",
    "Refusal",
    "TextError",
    "apply",
    "blocked_moves",
    "expand",
    "kernel",
    "legal_moves",
    "open_model",
    "parse",
    "run",
    "why",
]

# Where each is; imported when it is asked for: the measuring process needs none of them, and starts sooner.
_MODULES = {
    "dojo_core.model": ("open_model", "run"),
    "dojo_core.moves": (
        "IllegalMove", "Move", "MoveSyntax", "Refusal", "apply", "blocked_moves", "legal_moves", "why",
    ),
    "dojo_core.own": ("KernelError", "OwnKernel", "kernel"),
    "dojo_core.program.expressions": ("TextError",),
    "dojo_core.program.text": ("parse",),
    "dojo_core.program.tree": ("Program",),
    "dojo_core.recipes": ("expand",),
}  # fmt: skip
__getattr__ = attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
