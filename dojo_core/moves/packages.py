"""Moves that packages bring (docs/packages.md): in the registry behind the Dojo's own, guarded.

What one raises and should not is a refusal with a sentence; the log has its traceback. What it makes is
always looked at by V2 and V3, an ``Edit`` too: that nothing could be wrong there only our own moves promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dojo_core import plugins
from dojo_core.measure.patterns import PATTERNS
from dojo_core.moves.core import REGISTRY, Context, Edit, Move, Refusal, Transformation, structural
from dojo_core.moves.notation import usage
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.codes import Code
from dojo_core.program.tree import Path, Program

GROUP = "dojo.moves"


class Guarded(Transformation[Any]):
    """A move by another. Raises whatever comes where that has not what a move has."""

    def __init__(self, move: Transformation[Any]) -> None:
        self._move = move
        self.name, self.family, self.parameters = move.name, move.family, move.parameters  # type: ignore[misc]
        self.rewrites, self.worst_inputs = move.rewrites, move.worst_inputs  # type: ignore[misc]
        self.__doc__ = move.__doc__
        if not self.__doc__ or not self.family.isidentifier():
            raise TypeError("it has no docstring, or no family")
        if not PATTERNS.keys() >= set(self.worst_inputs):
            raise ValueError(f"it names worst inputs that there are not: {', '.join(self.worst_inputs)}")
        usage(self)  # which asks for all of its parameters

    def _failed(self, fault: Exception) -> str:
        return plugins.failed(GROUP, self.name, fault)

    def candidates(self, context: Context) -> Iterator[Any]:
        try:
            yield from self._move.candidates(context)
        except Exception as fault:
            self._failed(fault)

    def plan(self, context: Context, arguments: Any) -> Program | Refusal:
        try:
            planned = self._move.plan(context, arguments)
            planned = planned.make() if isinstance(planned, Edit) else planned
            if isinstance(planned, Program | Refusal):
                return planned
            raise TypeError(f"its plan is of the type {type(planned).__name__}")
        except NoSuchPlace:
            raise
        except Exception as fault:
            return structural(Code.MOVE_FAILED, self._failed(fault))

    def places(self, context: Context, arguments: Any) -> tuple[Path, ...]:
        try:
            return self._move.places(context, arguments)
        except NoSuchPlace:
            raise
        except Exception as fault:
            self._failed(fault)
            return super().places(context, arguments)

    def inverse(self, context: Context, arguments: Any, result: Program) -> Move | None:
        try:
            return self._move.inverse(context, arguments, result)
        except Exception as fault:
            self._failed(fault)
            return None

    def enablers(self, context: Context, arguments: Any, refusal: Refusal) -> Iterator[Move]:
        try:
            yield from self._move.enablers(context, arguments, refusal)
        except Exception as fault:
            self._failed(fault)


def brought(ours: Mapping[str, Transformation[Any]]) -> dict[str, Transformation[Any]]:
    """All that can be used, by name."""
    guarded: dict[str, Transformation[Any]] = {}
    for name, move in plugins.added(GROUP, Transformation, ours).items():
        try:
            guarded[name] = Guarded(move)
        except Exception as fault:
            plugins.failed(GROUP, name, fault)
    return guarded


REGISTRY.more = brought
