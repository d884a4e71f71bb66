"""The positions of a recorded line, in the groups that the comments between its moves make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import RecordedLine
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program
from dojo_core.targets.registry import backend


@dataclass(frozen=True)
class Step:
    """A move as it was played, and the program after it. ``number`` counts from 1."""

    number: int
    move: str
    program: Program


@dataclass(frozen=True)
class Group:
    """Moves that belong together. ``title`` and ``note``: the line's comment, before and after its colon."""

    title: str
    note: str
    before: Program
    steps: tuple[Step, ...]

    @property
    def after(self) -> Program:
        return self.steps[-1].program


@dataclass(frozen=True)
class Story:
    """A line, played. ``name`` is the line file's."""

    name: str
    kernel: str
    title: str
    shape: str
    policy: str
    about: str
    start: Program
    groups: tuple[Group, ...]

    @property
    def programs(self) -> tuple[Program, ...]:
        """The start, then the program after each move."""
        return (self.start, *(step.program for group in self.groups for step in group.steps))


def story(line: RecordedLine, settings: Mapping[str, int] | None = None) -> Story:
    """Play a line for the CPU from its start. Raises TextError where it is none or a move does not apply.

    A recipe in the line counts as the moves that it comes to.
    """
    if line.kernel is None:
        raise TextError("the line names no kernel", "Add a line: kernel softmax")
    if not backend(line.target).native:
        raise TextError(f"the line is for {line.target}", "Tell a line for this computer's processor.")
    kernel = kernels.get(line.kernel)
    sizes = kernel.shape(line.shape) if line.shape else kernel.shapes[0]
    shape = "x".join(map(str, sizes))
    game = Game.new(kernel.program(sizes), kernel.name, shape, policy=line.policy)
    begins: list[tuple[int, str]] = []  # how many moves were played before a comment, and the comment
    notes = dict(line.notes)
    report = line.play(game, settings)
    for number, entry in enumerate(report.entries, 1):
        if not entry.applies:
            raise TextError(
                f"move {number}, {entry.move}, does not apply: {entry.reason}", "Correct the line."
            )
    steps = [Step(n, str(p.move), p.program) for n, p in enumerate(game.line()[1:], 1) if p.move is not None]
    if len(steps) == len(line.moves):
        begins = sorted(notes.items())
    elif notes:
        raise TextError(
            "a line with recipes cannot be told in groups",
            "Write its moves in their place (dojo play --save).",
        )
    if not begins or begins[0][0] > 0:
        begins.insert(0, (0, "Moves"))
    groups: list[Group] = []
    for (first, text), end in zip(begins, [*(b for b, _ in begins[1:]), len(steps)], strict=True):
        if first == end:
            continue
        title, _, note = text.partition(":")
        note = note.strip()
        before = steps[first - 1].program if first else game.start
        groups.append(Group(title.strip(), note[:1].upper() + note[1:], before, tuple(steps[first:end])))
    return Story(
        line.title, kernel.name, kernel.title, shape, line.policy, line.about, game.start, tuple(groups)
    )
