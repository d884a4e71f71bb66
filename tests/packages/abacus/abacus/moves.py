"""A move of the package's own; it is legal on every target."""

from __future__ import annotations

from collections.abc import Iterator

from dojo_core.moves.core import Context, Move, Parameter, Refusal, Transformation, structural
from dojo_core.moves.places import Place, leaves_under, place_of, scope_at, scopes
from dojo_core.program.affine import Affine
from dojo_core.program.dependence import Order, conflict_between
from dojo_core.program.tree import Program, Scope, substitute


class ReverseScope(Transformation[tuple[Place]]):
    """Do the iterations of a scope in reverse order.

    ``reverse_scope S``

    Before::

        8 y[{0}] = x[{0}]

    After ``reverse_scope y@0``::

        8 y[-{0}+7] = x[-{0}+7]

    Legal iff
      1. S is unmarked;
      2. no two of its iterations conflict (V1).

    Candidates: every unmarked scope of more than one iteration.
    """

    name = "reverse_scope"
    family = "counting"
    parameters = (Parameter("scope", "scope"),)

    def candidates(self, context: Context) -> Iterator[tuple[Place]]:
        for path, scope, _ in scopes(context.program):
            if not scope.mark and scope.size > 1:
                yield (place_of(context.program, path),)

    def plan(self, context: Context, arguments: tuple[Place]) -> Program | Refusal:
        program = context.program
        path, scope, _ = scope_at(program, arguments[0])
        if scope.mark:  # 1
            return structural("marked", f"{arguments[0]} is marked: clear its mark before.", path)
        depth, inside = len(path) - 1, leaves_under(program, path)
        found = conflict_between(program, inside, inside, depth, [Order(depth, "<")], context.policy)
        if found is not None:  # 2
            return Refusal(
                "order",
                f"Reversed, two iterations that conflict on {found.cell} would change their order.",
                tuple(dict.fromkeys(leaf.path for leaf, _ in found.instances)),
                found,
            )
        back = {depth: Affine.make([(depth, -1)], scope.size - 1)}
        body = tuple(substitute(child, back) for child in scope.body)
        return program.splice(path, 1, (Scope(scope.size, body, "", scope.provenance),))

    def inverse(self, context: Context, arguments: tuple[Place], result: Program) -> Move:
        return Move(self.name, arguments)

    def enablers(self, context: Context, arguments: tuple[Place], refusal: Refusal) -> Iterator[Move]:
        if refusal.code == "marked":
            yield Move("clear_mark", arguments)
