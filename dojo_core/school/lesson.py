"""Lessons as data, read from Markdown files (docs/lessons.md tells teachers how to write one).

A file is a lesson of several steps, or a collection of puzzles: the same form, each puzzle a step of its own.
Reading is strict: what is not understood is told with its line and what to do, and nothing in it
is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dojo_core import kernels
from dojo_core.faults import program_fault
from dojo_core.game import Game
from dojo_core.line import read_line
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.dependence import POLICIES
from dojo_core.program.expressions import TextError
from dojo_core.program.text import parse
from dojo_core.recipes import RECIPES, play
from dojo_core.school.goals import Goal, Situation, read_goal
from dojo_core.school.pictures import read_picture
from dojo_core.school.prose import Block, Span, Terms, blocks, slug, spans

TRY = "try "  # before a move of a solution that is refused, and is to be refused
LARGEST = 128 * 1024  # characters of a file
MOST_STEPS = 40

_FENCE = re.compile(r"```([a-z-]*)[ \t]*(.*)\Z")
_ANSWER = re.compile(r"([-+]) (.+?)(?: :: (.+))?\Z")
_LESSON_FACTS = ("kind", "about")
_STEP_FACTS = ("policy", "gain", "measure")
BLOCKS = (
    "program", "line", "moves", "goal", "question", "hint", "solution", "first-idea", "note", "done", "text",
    "tree",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """One choice of a question; ``why`` is told when it was chosen."""

    words: list[Span]
    right: bool
    why: list[Span]


@dataclass(frozen=True)
class Question:
    words: list[Span]
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Note:
    """What is told after a try that does not lead to the goal. ``about``: a move, or the name of its kind."""

    about: str
    words: list[Span]

    def fits(self, move: str) -> bool:
        return move == self.about or move.split(" ")[0] == self.about


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

    @property
    def measured(self) -> bool:
        return self.measure or any(goal.measured for goal in self.goals)

    def game(self) -> Game:
        """A game of one's own at the step's start."""
        program = self.begin.current.program
        return Game.new(
            program, self.begin.kernel, self.begin.shape, self.begin.target, self.begin.policy, self.title
        )

    def situation(
        self, game: Game, tried: frozenset[str] = frozenset(), speed_up: float | None = None
    ) -> Situation:
        """What the goals are asked about, at the cursor of a game that began here."""
        return Situation(
            game.current.program, game.start, len(game.line()) - 1, game.target, game.policy, tried, speed_up
        )


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


@dataclass
class _Raw:
    """A section of the file before it means something."""

    title: str
    line: int
    facts: dict[str, tuple[int, str]] = field(default_factory=dict)
    parts: list[tuple[int, str, str, list[str]]] = field(
        default_factory=list
    )  # line, block, words after it, body


def read_lesson(text: str, path: Path, terms: Terms | None = None) -> Lesson:
    """A lesson from its text; ``path`` gives its id and where its pictures lie.

    Raises TextError with the line and what to do. Solutions are not played here (check.py does).
    """
    if len(text) > LARGEST:
        raise TextError(f"the file is longer than {LARGEST // 1024} KB", "Make two lessons of it.")
    terms = terms or Terms({})
    head, *sections = _sections(text)
    kind = _fact(head, "kind", "lesson")
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
            "text stands before the first step", "Put it below a heading: ## Title.", head.parts[0][0]
        )
    if not sections:
        raise TextError("there is no step", "Each step begins with a heading: ## Title.", head.line)
    if len(sections) > MOST_STEPS:
        raise TextError(f"more than {MOST_STEPS} steps", "Make two lessons of it.", sections[MOST_STEPS].line)
    reader = _Steps(path, terms, kind == "puzzles")
    steps = tuple(reader.step(section) for section in sections)
    about = spans(head.facts["about"][1], Terms({}), set(), head.facts["about"][0])
    return Lesson(path.stem, head.title, about, kind == "puzzles", steps, str(path))


def _fact(raw: _Raw, name: str, otherwise: str = "") -> str:
    return raw.facts.get(name, (0, otherwise))[1]


def _sections(text: str) -> Iterator[_Raw]:
    """The title's section and each step's, cut at headings outside of fences."""
    raw: _Raw | None = None
    prose: list[str] = []
    prose_line = 0
    fence: tuple[int, str, str] | None = None
    body: list[str] = []
    may_have_facts = False
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.strip() == "```":
                assert raw is not None
                raw.parts.append((*fence, body))
                fence = None
            else:
                body.append(line)
            continue
        heading = re.match(r"(#{1,2}) (.+)", line)
        opening = _FENCE.match(line.rstrip())
        if raw is None and line.strip() and (heading is None or heading[1] != "#"):
            raise TextError("the first line is no title", "Begin with: # What it teaches", number, 1, line)
        if (heading or opening) and raw is not None and any(each.strip() for each in prose):
            raw.parts.append((prose_line, "", "", prose))
        if heading or opening:
            prose, prose_line = [], 0
        if heading is not None:
            if heading[1] == "#" and raw is not None:
                raise TextError(
                    "a file has one title", "Begin a step with ## in place of #.", number, 1, line
                )
            if raw is not None:
                yield raw
            raw = _Raw(heading[2].strip(), number)
            may_have_facts = True
        elif opening is not None:
            if opening[1] not in BLOCKS:
                fault = f"there is no block {opening[1]!r}"
                raise TextError(fault, f"The blocks: {', '.join(BLOCKS)}.", number, 1, line)
            fence, body, may_have_facts = (number, opening[1], opening[2]), [], False
        elif raw is not None:
            fact = re.match(r"([a-z-]+): (.+)", line)
            if fact is not None and may_have_facts:
                raw.facts[fact[1]] = (number, fact[2].strip())
            elif line.strip() or prose:
                may_have_facts = False
                prose_line = prose_line or number
                prose.append(line)
    if fence is not None:
        raise TextError("this block has no end", "Close it with a line ``` of its own.", fence[0])
    if raw is None:
        raise TextError("the file is empty", "Begin with: # What it teaches")
    if any(each.strip() for each in prose):
        raw.parts.append((prose_line, "", "", prose))
    yield raw


class _Steps:
    """Reads steps in order: one without a position goes on where the one before it ends."""

    def __init__(self, path: Path, terms: Terms, puzzles: bool) -> None:
        self.path, self.terms, self.puzzles = path, terms, puzzles
        self.end: Game | None = None
        self.ids: set[str] = set()

    def step(self, raw: _Raw) -> Step:
        name = slug(raw.title)
        if not name or name in self.ids:
            raise TextError(
                "two steps have this title, or it has no letter", "Give it another.", raw.line, 1, raw.title
            )
        self.ids.add(name)
        for fact, (number, _) in raw.facts.items():
            if fact not in _STEP_FACTS:
                raise TextError(
                    f"a step has no fact {fact!r}", f"Here can stand: {', '.join(_STEP_FACTS)}.", number
                )
        seen: set[str] = set()
        text: list[Block] = []
        hints: list[list[Span]] = []
        notes: list[Note] = []
        done: list[Block] = []
        single: dict[str, tuple[int, list[str]]] = {}
        goals: list[Goal] = []
        for number, block, words, body in raw.parts:
            numbered = list(enumerate(body, number + 1 if block else number))
            match block:
                case "":
                    text += self._drawn(blocks(numbered, self.terms, seen))
                case "text":
                    text.append({"kind": "code", "text": "\n".join(body)})
                case "tree":
                    text.append({"kind": "tree", "nodes": _tree(body, number)})
                case "hint":
                    hints.append(self._words(body, number, seen))
                case "note":
                    if not words:
                        raise TextError("a note is about a move", "Write ```note join_scopes", number)
                    notes.append(Note(" ".join(words.split()), self._words(body, number, seen)))
                case "done":
                    done += self._drawn(blocks(numbered, self.terms, seen))
                case "goal":
                    goals += [read_goal(line, n) for n, line in numbered if line.strip()]
                case _:
                    if block in single:
                        raise TextError(f"a step has one block {block}", "Make one of the two.", number)
                    single[block] = (number, body)
        begin = self._begin(raw, single)
        question = self._question(single, seen)
        solution = _lines(single, "solution")
        if not goals and question is None:
            raise TextError(
                "the step has no goal", "Add a block ```goal or ```question.", raw.line, 1, raw.title
            )
        step = Step(
            name, raw.title, raw.line, text, begin, tuple(goals), question, tuple(hints), solution,
            _lines(single, "first-idea"), tuple(notes), done, _gain(raw), _measure(raw),
        )  # fmt: skip
        self.end = _after(step)
        return step

    def _words(self, body: list[str], number: int, seen: set[str]) -> list[Span]:
        return spans(" ".join(line.strip() for line in body).strip(), self.terms, seen, number)

    def _drawn(self, drawn: list[Block]) -> list[Block]:
        for block in drawn:
            if block["kind"] == "picture":
                place = (self.path.parent / block["file"]).resolve()
                if not place.is_relative_to(self.path.parent.resolve()) or place.suffix != ".svg":
                    fault = "a picture is an SVG file beside the lesson, or below it"
                    raise TextError(fault, "Move it there.", block["line"])
                block["drawing"] = read_picture(place, block["line"])
        return drawn

    def _begin(self, raw: _Raw, single: dict[str, tuple[int, list[str]]]) -> Game:
        policy = _fact(raw, "policy", self.end.policy if self.end and not self.puzzles else "reassoc")
        if policy not in POLICIES:
            number = raw.facts["policy"][0]
            raise TextError(f"there is no policy {policy!r}", f"The policies: {', '.join(POLICIES)}.", number)
        if "program" in single and "line" in single:
            raise TextError("a step begins at a program or at a line", "Leave one out.", single["line"][0])
        if "program" in single:
            number, body = single["program"]
            program = _at(number, lambda: parse("\n".join(body)))
            fault = program_fault(program, policy=policy, source="\n".join([""] * number + body))
            if fault is not None:
                raise TextError(fault, "Correct the program.", number)
            game = Game.new(program, policy=policy)
        elif "line" in single:
            game = self._from_line(*single["line"], policy if "policy" in raw.facts else None)
        elif self.end is not None and not self.puzzles:
            end = self.end
            game = Game.new(end.current.program, end.kernel, end.shape, end.target, policy)
        else:
            message = "the step has no position"
            raise TextError(
                message, "Add a block ```program, or ```line with kernel and shape.", raw.line, 1, raw.title
            )
        number, moves = single.get("moves", (0, []))
        for offset, move in enumerate(moves, 1):
            if move.strip():
                _played(game, move, number + offset)
        return game

    def _from_line(self, number: int, body: list[str], policy: str | None) -> Game:
        line = _at(number, lambda: read_line("\n".join(body)))
        if line.kernel is None or not line.shape:
            raise TextError(
                "the line names no kernel and shape", "Write: kernel softmax, and: shape 24x64.", number
            )
        try:
            kernel = kernels.get(line.kernel)
            program = kernel.program(kernel.shape(line.shape))
        except ValueError as fault:
            raise TextError(str(fault), "Correct kernel or shape.", number) from fault
        game = Game.new(program, line.kernel, line.shape, line.target, policy or line.policy)
        for entry in line.play(game).entries:
            if not entry.applies:
                raise TextError(f"{entry.move} does not apply: {entry.reason}", "Correct the line.", number)
        return game

    def _question(self, single: dict[str, tuple[int, list[str]]], seen: set[str]) -> Question | None:
        if "question" not in single:
            return None
        number, body = single["question"]
        asked: list[str] = []
        answers: list[Answer] = []
        for offset, line in enumerate(body, 1):
            match = _ANSWER.match(line.strip())
            if match is None:
                if answers and line.strip():
                    fault = "after the first answer stand answers only"
                    raise TextError(
                        fault,
                        "An answer reads: + 512 :: why (- where it is wrong).",
                        number + offset,
                        1,
                        line,
                    )
                asked.append(line.strip())
                continue
            words = spans(match[2], Terms({}), set(), number + offset)
            why = spans(match[3] or "", self.terms, seen, number + offset)
            answers.append(Answer(words, match[1] == "+", why))
        if len(answers) < 2 or sum(answer.right for answer in answers) != 1:
            fault = "a question has two answers or more, one of them right"
            raise TextError(fault, "Mark the right one with +, the others with -.", number)
        return Question(spans(" ".join(asked).strip(), self.terms, seen, number), tuple(answers))


def _lines(single: dict[str, tuple[int, list[str]]], name: str) -> tuple[str, ...]:
    return tuple(" ".join(line.split()) for line in single.get(name, (0, []))[1] if line.strip())


def _gain(raw: _Raw) -> float | None:
    if "gain" not in raw.facts:
        return None
    number, words = raw.facts["gain"]
    if not re.fullmatch(r"\d{1,3}(\.\d{1,2})?", words) or float(words) <= 1:
        raise TextError("a gain is a number above 1", "Write, for twice as fast: gain: 2", number)
    return float(words)


def _measure(raw: _Raw) -> bool:
    number, words = raw.facts.get("measure", (0, "off"))
    if words not in ("on", "off"):
        raise TextError("measure is on or off", "Write: measure: on", number)
    return words == "on"


def _at(number: int, read: Any) -> Any:
    """Errors of a text inside a block, with their line in the file."""
    try:
        return read()
    except TextError as error:
        raise TextError(
            error.message, error.remedy, number + error.line, error.column, error.source
        ) from error


def _played(game: Game, move: str, number: int) -> None:
    try:
        play(game, " ".join(move.split()), RECIPES)
    except (IllegalMove, MoveSyntax) as fault:
        raise TextError(str(fault), "Correct the move.", number, 1, move) from fault


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
    program = _at(number, lambda: parse("\n".join(body)))
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
