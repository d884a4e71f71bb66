"""Looking: some of a position's legal moves, why a move is legal or not, its code and its assembly."""

from __future__ import annotations

from collections.abc import Sequence

from dojo_core.actions.playing import usable_recipes
from dojo_core.codegen.assembly import Assembly
from dojo_core.codegen.code import Generated, NotGeneratable
from dojo_core.moves import api
from dojo_core.moves.core import REGISTRY, Move, Verdict
from dojo_core.moves.notation import MoveSyntax, called
from dojo_core.program.target import Target
from dojo_core.program.tree import Program
from dojo_core.spelling import meant
from dojo_core.targets.registry import backend


class NoSuchKind(ValueError):
    """A name that no kind of move has; ``str()`` is a sentence."""


class NotShown(ValueError):
    """A position has no code or no assembly on its target; ``str()`` is a sentence."""


def chosen(moves: Sequence[Move], kind: str = "", place: str = "", text: str = "") -> tuple[Move, ...]:
    """Those of a kind (``vectorize``), that name a place or a buffer (``y@1``, ``t``), or with these signs in
    their text. Raises NoSuchKind."""
    if kind and kind not in REGISTRY:
        recipe = "It is a recipe, which plays several." if kind in usable_recipes() else ""
        raise NoSuchKind(
            " ".join(f"There is no kind of move {kind!r}. {recipe} {meant(str(kind), REGISTRY)}".split())
        )
    return tuple(
        move
        for move in moves
        if kind in ("", move.name)
        and (not place or place in map(str, move.arguments))
        and (not text or text in str(move))
    )


def explained(program: Program, move: Move | str, target: str | Target, policy: str) -> Verdict:
    """Why a move is legal or not, with ways around a refusal that were tried out. Raises MoveSyntax of a text
    that is no move."""
    if isinstance(move, Move):
        return api.why(program, move, target, policy)
    text = " ".join(str(move).split())
    name = text.partition(" ")[0]
    if name not in REGISTRY and called(name) is None and name in usable_recipes():
        raise MoveSyntax(
            f"{name} is a recipe, which plays several moves: play it, to hear which is in the way."
        )
    return api.why(program, text, target, policy)


def code(program: Program, target: str, policy: str) -> Generated:
    """What is generated from a program for a target, with the node of each line. Raises NotShown."""
    try:
        return backend(target).generate(program, policy)
    except NotGeneratable as fault:
        raise NotShown(str(fault)) from fault


def assembly(program: Program, target: str, policy: str) -> Assembly:
    """What that is compiled to. Raises NotShown."""
    try:
        return backend(target).assembly(program, policy)
    except (NotGeneratable, ValueError) as fault:
        raise NotShown(f"There is no assembly to show. {fault}") from fault
