"""A line in an agent's hands: the moves with what they named, and every position on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dojo_core.game import MAX_MOVES, Game, Step, followed
from dojo_core.moves.core import Context, Move, Refusal
from dojo_core.moves.legality import context, outcome
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.references import references
from dojo_core.program.tree import Program, walk


@dataclass(frozen=True)
class Trail:
    """Steps from a start position on; ``programs`` has one more, the start being the first."""

    programs: tuple[Program, ...]
    target: str
    policy: str
    steps: tuple[Step, ...] = ()

    @staticmethod
    def at(game: Game) -> Trail:
        """The empty line at a game's cursor."""
        return Trail((game.current.program,), game.target, game.policy)

    @property
    def program(self) -> Program:
        """Where the line ends."""
        return self.programs[-1]

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(step.move for step in self.steps)

    @cached_property
    def born(self) -> int:
        """The number for the provenance of the next new move: no node of the line has it."""
        start = self.programs[0]
        newest = max((node.provenance.move for node, _, _ in walk(start.body)), default=0)
        return max(newest, start.age, *(step.origin for step in self.steps), 0) + 1

    def context(self, at: int | None = None, born: int | None = None) -> Context:
        """What legality is asked in at a position of the line (default: its end)."""
        program = self.program if at is None else self.programs[at]
        return context(program, self.target, self.policy, self.born if born is None else born)

    def upto(self, at: int) -> Trail:
        """The first ``at`` moves."""
        return Trail(self.programs[: at + 1], self.target, self.policy, self.steps[:at])

    def extended(self, step: Step) -> Trail | None:
        """The line with a step more, under the names its places have here; None where it is not legal."""
        if len(self.steps) >= MAX_MOVES:
            return None
        context = self.context(born=step.origin)
        move: Move | None = step.move
        try:
            current = references(context, step.move)
        except NoSuchPlace:
            current = ()
        if step.references and current != step.references:
            move = followed(context, step)
        if move is None:
            return None
        result = outcome(context, move)
        if isinstance(result, Refusal):
            return None
        named = current if current and move is step.move else references(context, move)
        made = Step(move, step.origin, named, self.program)
        return Trail((*self.programs, result), self.target, self.policy, (*self.steps, made))

    def played(self, moves: Iterable[Move]) -> Trail:
        """The line with moves more, each new here; those that are not legal are left out."""
        trail = self
        for move in moves:
            trail = trail.extended(Step(move, trail.born)) or trail
        return trail

    def replayed(self, steps: Sequence[Step]) -> Trail:
        """The line with steps of another one more: what stays legal is kept, the rest left out."""
        trail = self
        for step in steps:
            trail = trail.extended(step) or trail
        return trail
