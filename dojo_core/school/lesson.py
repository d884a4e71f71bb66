"""Lessons as data, read from Markdown files (docs/lessons.md tells teachers how to write one).

A file is a lesson of several steps, or a collection of puzzles: the same form, each puzzle a step of its own.
Reading is strict: what is not understood is told with its line and what to do, and nothing in it
is run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dojo_core.game import Game
from dojo_core.line import read_line
from dojo_core.measure.speed import Speed
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.opening import named_game
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.recipes import RECIPES, play
from dojo_core.school.beginnings import at_line, from_line, from_program, play_move, policy_of
from dojo_core.school.gains import Gains, gains_beside, gains_of, puzzle_key
from dojo_core.school.goals import FIRST_MOVE, Goal, Situation, read_goal
from dojo_core.school.pictures import drawn
from dojo_core.school.prose import Block, Span, Terms, blocks, slug, spans
from dojo_core.school.questions import Question, read_question
from dojo_core.school.sections import Part, Section, sections
from dojo_core.study.times import Times
from dojo_core.targets.registry import names as target_names

TRY = "try "  # before a move of a solution that is refused, and is to be refused
LARGEST = 128 * 1024  # characters of a file
MOST_STEPS = 40

_LESSON_FACTS = ("kind", "about")
_STEP_FACTS = ("policy", "target", "gain", "measure", "source")
BLOCKS = (
    "program", "line", "moves", "goal", "question", "hint", "solution", "first-idea", "note", "done", "text",
    "tree", "game",
)  # fmt: skip


@dataclass(frozen=True)
class Note:
    """What is told after a try that does not lead to the goal. ``about``: a move, or the name of its kind."""

    about: str
    words: list[Span]

    def fits(self, move: str) -> bool:
        return move == self.about or move.split(" ")[0] == self.about


@dataclass(frozen=True)
class Origin:
    """The game that a puzzle was found in. ``words`` say whose; ``line`` has its moves as a line file does,
    ``ply`` of which lead to the puzzle's position."""

    words: str
    line: str
    ply: int

    def game(self) -> Game:
        """The whole game, its cursor at the puzzle's position. Raises TextError or ValueError where its
        moves do not lead there."""
        line = read_line(self.line)
        if line.kernel is None:
            raise TextError("the game names no kernel", "Write: kernel softmax, and: shape 1024x512.")
        game = named_game(line.kernel, line.shape, line.target, line.policy)
        line.play(game)
        main = game.main_line(0)
        if len(main) <= self.ply:
            raise ValueError(f"only {len(main) - 1} of its moves apply")
        game.goto(main[self.ply].id)
        return game


@dataclass(frozen=True)
class Step:
    """One step: text, the position it begins at, what is to be reached, and help."""

    id: str
    title: str
    line: int  # in the file
    text: list[Block]
    begin: Game  # at its cursor; a step plays on a copy
    goals: tuple[Goal, ...]
    question: Question | None
    hints: tuple[list[Span], ...]
    solution: tuple[str, ...]
    first_idea: tuple[str, ...]
    notes: tuple[Note, ...]
    done: list[Block]
    gain: float | None  # how many times faster the solution is at least; checked by measuring
    measure: bool  # are times shown?
    origin: Origin | None = None
    gains: Gains | None = None  # of a puzzle of one move: what its moves gain

    @property
    def asked(self) -> float | None:
        """Of a puzzle of one move, what that one gains at least."""
        asked = [float(g.arguments[0]) for g in self.goals if g.form.words == FIRST_MOVE and not g.negated]
        return asked[0] if asked else None

    @property
    def key(self) -> str:
        """Names a puzzle by its position, wherever it stands."""
        begin = self.begin
        return puzzle_key(begin.current.program.hash, begin.target, begin.policy)

    @property
    def measured(self) -> bool:
        return self.measure or any(goal.measured for goal in self.goals)

    def game(self) -> Game:
        """A game of one's own at the step's start."""
        program = self.begin.current.program
        return Game.new(
            program, self.begin.kernel, self.begin.shape, self.begin.target, self.begin.policy, self.title
        )

    def first_gain(self, game: Game) -> Speed | None:
        """What the first move of a game that began here gains, as far as it is recorded."""
        line = game.line()
        if len(line) < 2 or self.gains is None:
            return None
        return self.gains.by_program.get(line[1].program.hash)

    def situation(
        self,
        game: Game,
        tried: frozenset[str] = frozenset(),
        speed_up: float | None = None,
        gain: Speed | None = None,
    ) -> Situation:
        """What the goals are asked about, at the cursor of a game that began here. ``gain``: what is known of
        its first move beside the record."""
        return Situation(
            game.current.program, game.start, len(game.line()) - 1, game.target, game.policy, tried, speed_up,
            gain or self.first_gain(game),
        )  # fmt: skip


@dataclass(frozen=True)
class Lesson:
    """A file: ``puzzles`` where each step stands for itself."""

    id: str
    title: str
    about: list[Span]
    puzzles: bool
    steps: tuple[Step, ...]
    file: str = ""

    def step(self, name: str) -> Step | None:
        return next((step for step in self.steps if step.id == name), None)


def read_lesson(text: str, path: Path, terms: Terms | None = None) -> Lesson:
    """A lesson from its text; ``path`` gives its id and where its pictures and what moves gain lie.

    Raises TextError with the line and what to do. Solutions are not played here (check.py does).
    """
    if len(text) > LARGEST:
        raise TextError(f"the file is longer than {LARGEST // 1024} KB", "Make two lessons of it.")
    terms = terms or Terms({})
    head, *steps = sections(text, BLOCKS)
    kind = head.fact("kind", "lesson")
    if kind not in ("lesson", "puzzles"):
        raise TextError(
            f"a file is a lesson or puzzles, not {kind!r}", "Write kind: lesson.", head.facts["kind"][0]
        )
    if "about" not in head.facts:
        raise TextError(
            "the file does not say what it is about", "Add a line below the title: about: …", head.line
        )
    if head.parts:
        raise TextError(
            "text stands before the first step", "Put it below a heading: ## Title.", head.parts[0].line
        )
    if not steps:
        raise TextError("there is no step", "Each step begins with a heading: ## Title.", head.line)
    if len(steps) > MOST_STEPS:
        raise TextError(f"more than {MOST_STEPS} steps", "Make two lessons of it.", steps[MOST_STEPS].line)
    reader = _Steps(path, terms, kind == "puzzles", gains_beside(path))
    read = tuple(reader.step(section) for section in steps)
    about = spans(head.facts["about"][1], Terms({}), set(), head.facts["about"][0])
    return Lesson(path.stem, head.title, about, kind == "puzzles", read, str(path))


class _Steps:
    """Reads steps in order: one without a position goes on where the one before it ends."""

    def __init__(self, path: Path, terms: Terms, puzzles: bool, times: Sequence[Times]) -> None:
        self.path, self.terms, self.puzzles, self.times = path, terms, puzzles, times
        self.end: Game | None = None
        self.ids: set[str] = set()

    def step(self, raw: Section) -> Step:
        name = slug(raw.title)
        if not name or name in self.ids:
            raise TextError(
                "two steps have this title, or it has no letter", "Give it another.", raw.line, 1, raw.title
            )
        self.ids.add(name)
        raw.only(_STEP_FACTS, "a step has")
        seen: set[str] = set()
        text: list[Block] = []
        hints: list[list[Span]] = []
        notes: list[Note] = []
        done: list[Block] = []
        single: dict[str, Part] = {}
        goals: list[Goal] = []
        for part in raw.parts:
            number, body = part.line, part.body
            match part.block:
                case "":
                    text += drawn(blocks(part.numbered, self.terms, seen), self.path.parent)
                case "text":
                    text.append({"kind": "code", "text": "\n".join(body)})
                case "tree":
                    text.append({"kind": "tree", "nodes": _tree(body, number)})
                case "hint":
                    hints.append(self._words(body, number, seen))
                case "note":
                    if not part.words:
                        raise TextError("a note is about a move", "Write ```note join_scopes", number)
                    notes.append(Note(" ".join(part.words.split()), self._words(body, number, seen)))
                case "done":
                    done += drawn(blocks(part.numbered, self.terms, seen), self.path.parent)
                case "goal":
                    goals += [read_goal(line, n) for n, line in part.numbered if line.strip()]
                case _:
                    if part.block in single:
                        raise TextError(f"a step has one block {part.block}", "Make one of the two.", number)
                    single[part.block] = part
        begin = self._begin(raw, single)
        question = read_question(single["question"], self.terms, seen) if "question" in single else None
        solution = _lines(single, "solution")
        if not goals and question is None:
            raise TextError(
                "the step has no goal", "Add a block ```goal or ```question.", raw.line, 1, raw.title
            )
        step = Step(
            name, raw.title, raw.line, text, begin, tuple(goals), question, tuple(hints), solution,
            _lines(single, "first-idea"), tuple(notes), done, _gain(raw), _measure(raw), _origin(raw, single),
            gains_of(self.times, begin.current.program.hash),
        )  # fmt: skip
        self.end = _after(step)
        return step

    def _words(self, body: list[str], number: int, seen: set[str]) -> list[Span]:
        return spans(" ".join(line.strip() for line in body).strip(), self.terms, seen, number)

    def _begin(self, raw: Section, single: dict[str, Part]) -> Game:
        policy = policy_of(raw, self.end.policy if self.end and not self.puzzles else "reassoc")
        if "program" in single and "line" in single:
            raise TextError("a step begins at a program or at a line", "Leave one out.", single["line"].line)
        on = _target(raw)
        if "program" in single:
            game = from_program(single["program"], policy, on)
        elif "line" in single:
            game = from_line(single["line"], policy if "policy" in raw.facts else None)
        elif self.end is not None and not self.puzzles:
            end = self.end
            game = Game.new(end.current.program, end.kernel, end.shape, end.target, policy)
        else:
            message = "the step has no position"
            raise TextError(
                message, "Add a block ```program, or ```line with kernel and shape.", raw.line, 1, raw.title
            )
        for number, move in single["moves"].numbered if "moves" in single else ():
            if move.strip():
                play_move(game, move, number)
        return game


def _lines(single: dict[str, Part], name: str) -> tuple[str, ...]:
    body = single[name].body if name in single else []
    return tuple(" ".join(line.split()) for line in body if line.strip())


def _target(raw: Section) -> str:
    """The target of a step that begins at a program; a line names its own."""
    number, name = raw.facts.get("target", (0, DEFAULT_TARGET))
    if name not in target_names():
        raise TextError(f"there is no target {name!r}", f"The targets: {', '.join(target_names())}.", number)
    return name


def _origin(raw: Section, single: dict[str, Part]) -> Origin | None:
    if "game" not in single:
        return None
    part = single["game"]
    if not re.fullmatch(r"\d{1,4}", part.words):
        raise TextError("a game says how many of its moves lead here", "Write: ```game 12", part.line)
    return Origin(raw.fact("source", "a game"), "\n".join(part.body), int(part.words))


def _gain(raw: Section) -> float | None:
    if "gain" not in raw.facts:
        return None
    number, words = raw.facts["gain"]
    if not re.fullmatch(r"\d{1,3}(\.\d{1,2})?", words) or float(words) <= 1:
        raise TextError("a gain is a number above 1", "Write, for twice as fast: gain: 2", number)
    return float(words)


def _measure(raw: Section) -> bool:
    number, words = raw.facts.get("measure", (0, "off"))
    if words not in ("on", "off"):
        raise TextError("measure is on or off", "Write: measure: on", number)
    return words == "on"


def _after(step: Step) -> Game:
    """Where a step ends: its solution played, as far as that goes (the checker says if it does not)."""
    game = step.game()
    try:
        for move in step.solution:
            if not move.startswith(TRY):
                play(game, move, RECIPES)
    except (IllegalMove, MoveSyntax):
        pass
    return game


def _tree(body: list[str], number: int) -> list[Any]:
    """A program as nested boxes: ``[size and mark, children]`` for a scope, a string for an operation."""
    program = at_line(number, lambda: parse("\n".join(body)))
    lines = program.text.splitlines()[-len(program.leaves) :]
    words = [line.split(" ", len(leaf.scopes))[-1] for line, leaf in zip(lines, program.leaves, strict=True)]
    labels = iter(words)

    def boxes(nodes: Any) -> list[Any]:
        drawn: list[Any] = []
        for node in nodes:
            if hasattr(node, "body"):
                drawn.append([f"{node.size}{':' + node.mark if node.mark else ''}", boxes(node.body)])
            else:
                drawn.append(next(labels))
        return drawn

    return boxes(program.body)
