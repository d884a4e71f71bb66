"""A study as data, read from a Markdown file: the lessons' form, with a game that its text walks through.

A study has chapters. Each goes through a game: text stands at the position that the moves above it led to,
and a block of moves goes on from there, or from a position that was given a name, which makes a variation.
Reading is strict: what is not understood is told with its line and what to do, and nothing in a file is run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import RecordedLine, recorded_lines
from dojo_core.moves import MoveSyntax, Refusal, Verdict, why
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.school.beginnings import from_line, from_program, play_move, policy_of
from dojo_core.school.pictures import drawn
from dojo_core.school.prose import Block, Span, Terms, blocks, slug, spans
from dojo_core.school.questions import Question, read_question
from dojo_core.school.sections import Part, Section, sections
from dojo_core.targets.registry import names as target_names
from dojo_core.targets.registry import target

LARGEST = 256 * 1024  # characters of a file
MOST_CHAPTERS = 40
BLOCKS = ("program", "line", "moves", "question", "text", "tree")
START = "start"  # the name of the position that a chapter begins at

_FACTS = ("kind", "about", "authors", "licence")
_CHAPTER_FACTS = ("policy", "target", "line", "shape")
_MOVES = re.compile(r"(?:after ([\w-]+))?\s*(?:as ([\w-]+))?\Z", re.ASCII)
_ASKED = re.compile(r"(move|refused \S.*)?\Z")
_COMMENT = re.compile(r"#\s*(?:([^:]+):)?\s*(.*)\Z")


@dataclass(frozen=True)
class Asked:
    """A question at a position, which a reader answers, or gives up, before going on.

    ``kind``: ``words``, ``move`` (the answers are moves, of which several may be right), or ``refused`` (why
    is ``move`` refused here?), whose ``refusal`` is told with the answer.
    """

    kind: str
    question: Question
    move: str = ""
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Passage:
    """A text or a block of a chapter, and the position that it stands at, or leads to. ``steps``: of moves,
    the positions that each line of the file led to, in their order, as (line, position)."""

    part: Part
    at: int
    steps: tuple[tuple[int, int], ...] = ()


@dataclass
class Chapter:
    """A part of a study: a stretch of a game, which it may share with the chapters before it.

    ``begins``: the position that it begins at; ``ends``: the one that its last moves led to. ``titles``: what
    the moves from a position's on are about, by the first position; ``notes``: what is told at a position,
    among it ``reasons``: what a comment says of the moves from a position's on.
    ``head``: the last line of its heading and facts; ``recorded``: does it go through a recorded line?
    ``names``: of positions, at its end.
    """

    id: str
    title: str
    line: int  # in the file
    game: Game
    begins: int
    ends: int = 0
    notes: dict[int, list[Block]] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    reasons: dict[int, Block] = field(default_factory=dict)
    questions: dict[int, Asked] = field(default_factory=dict)
    passages: list[Passage] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    head: int = 0
    recorded: bool = False

    @property
    def positions(self) -> list[int]:
        """Where the chapter says, asks or plays something, in its order."""
        return sorted({self.begins, self.ends, *self.notes, *self.titles, *self.questions})

    @property
    def reached(self) -> set[int]:
        """The positions that its own text stands at, or leads through; of a recorded line only those."""
        steps = {position for passage in self.passages for _, position in passage.steps}
        return {self.begins, *steps, *(passage.at for passage in self.passages)}


@dataclass(frozen=True)
class Study:
    """A file. ``authors``: as they name themselves."""

    id: str
    title: str
    about: list[Span]
    authors: tuple[str, ...]
    licence: str
    chapters: tuple[Chapter, ...]
    file: str = ""

    @property
    def games(self) -> list[Game]:
        """The games that its chapters go through, each once, in their order."""
        return list({id(chapter.game): chapter.game for chapter in self.chapters}.values())


def is_study(text: str) -> bool:
    """Does a file say that it is a study?"""
    head = text[:4000].split("\n## ", 1)[0]
    return re.search(r"^kind:\s*study\s*$", head, re.MULTILINE) is not None


def read_study(text: str, path: Path, terms: Terms | None = None) -> Study:
    """A study from its text; ``path`` gives its id, and where its pictures lie. Raises TextError."""
    if len(text) > LARGEST:
        raise TextError(f"the file is longer than {LARGEST // 1024} KB", "Make two studies of it.")
    head, *parts = sections(text, BLOCKS)
    head.only(_FACTS, "a study has")
    if head.fact("kind") != "study":
        line = head.facts["kind"][0] if "kind" in head.facts else head.line
        raise TextError(
            "the file does not say that it is a study", "Write below its title: kind: study", line
        )
    if "about" not in head.facts:
        raise TextError(
            "the file does not say what it is about", "Add a line below the title: about: …", head.line
        )
    if head.parts:
        raise TextError(
            "text stands before the first chapter", "Put it below a heading: ## Title.", head.parts[0].line
        )
    if not parts:
        raise TextError("there is no chapter", "Each chapter begins with a heading: ## Title.", head.line)
    if len(parts) > MOST_CHAPTERS:
        fault = f"more than {MOST_CHAPTERS} chapters"
        raise TextError(fault, "Make two studies of it.", parts[MOST_CHAPTERS].line)
    reader = _Chapters(path, terms or Terms({}))
    chapters = tuple(reader.chapter(each) for each in parts)
    number, about = head.facts["about"]
    authors = tuple(name.strip() for name in head.fact("authors").split(",") if name.strip())
    return Study(
        path.stem, head.title, spans(about, Terms({}), set(), number), authors, head.fact("licence"),
        chapters, str(path),
    )  # fmt: skip


class _Chapters:
    """Reads chapters in order: one without a position goes on where the one before it ends."""

    def __init__(self, path: Path, terms: Terms) -> None:
        self.path, self.terms = path, terms
        self.ids: set[str] = set()
        self.names: dict[str, int] = {}  # positions of the game that the chapters go through now
        self.last: Chapter | None = None

    def chapter(self, section: Section) -> Chapter:
        name = slug(section.title)
        if not name or name in self.ids:
            raise TextError(
                "two chapters have this title, or it has no letter", "Give it another.",
                section.line, 1, section.title,
            )  # fmt: skip
        self.ids.add(name)
        section.only(_CHAPTER_FACTS, "a chapter has")
        chapter = self._begun(name, section)
        chapter.head = max([section.line, *(number for number, _ in section.facts.values())])
        chapter.recorded = "line" in section.facts
        self.names[START] = chapter.begins
        seen: set[str] = set()
        for part in section.parts:
            steps = self._part(chapter, part, seen)
            chapter.passages.append(Passage(part, chapter.game.cursor, tuple(steps)))
        if not chapter.recorded:
            chapter.ends = chapter.game.cursor
        chapter.names = dict(self.names)
        chapter.game.goto(chapter.ends)
        self.last = chapter
        return chapter

    def _begun(self, name: str, section: Section) -> Chapter:
        """The chapter at its first position."""
        starts = [part for part in section.parts if part.block in ("program", "line")]
        policy, on = policy_of(section, "reassoc"), _target(section)
        recorded = _recorded(section, on)
        if len(starts) + (recorded is not None) > 1:
            raise TextError(
                "a chapter begins at one program, or at one line", "Leave the other out.",
                starts[-1].line if starts else section.line,
            )  # fmt: skip
        if recorded is None and not starts:
            if self.last is None:
                raise TextError(
                    "the first chapter has no position",
                    "Add a block ```program, or ```line with kernel and shape, or a fact line: softmax",
                    section.line, 1, section.title,
                )  # fmt: skip
            game = self.last.game
            for fact in _CHAPTER_FACTS:
                if fact in section.facts:
                    raise TextError(
                        f"a chapter that goes on has the {fact} of the one before it",
                        "Leave it out, or begin at a program or a line.", section.facts[fact][0],
                    )  # fmt: skip
            return Chapter(name, section.title, section.line, game, game.cursor)
        self.names.clear()
        if recorded is None and starts[0].block == "program":
            game = from_program(starts[0], policy, on)
        elif recorded is None:
            game = from_line(starts[0], policy if "policy" in section.facts else None)
        else:
            return self._through(name, section, recorded)
        return Chapter(name, section.title, section.line, game, game.cursor)

    def _through(self, name: str, section: Section, line: RecordedLine) -> Chapter:
        """A chapter that goes through a recorded line, whose comments are its notes: it tells of the start,
        and its positions are named by how many moves lead there."""
        number = section.facts["line"][0]
        kernel = kernels.get(line.kernel or "")
        shape = section.fact("shape", line.shape)
        try:
            program = target(line.target).start(kernel.program(kernel.shape(shape)))
        except ValueError as fault:
            raise TextError(str(fault), "Correct the shape.", number) from fault
        policy = section.fact("policy", line.policy)
        game = Game.new(program, kernel.name, shape, line.target, policy)
        report = line.play(game)
        for entry in report.entries:
            if not entry.applies:
                raise TextError(
                    f"{entry.move} of the line does not apply at {shape}: {entry.reason}",
                    "Correct the shape.", number,
                )  # fmt: skip
        played = [position.id for position in game.line()]
        chapter = Chapter(name, section.title, section.line, game, 0, played[-1])
        self.names |= {str(number): position for number, position in enumerate(played)}
        game.goto(0)
        for before, comment in line.notes:
            if before < len(line.moves) and report.begins[before] + 1 < len(played):
                self._comment(chapter, played[report.begins[before] + 1], comment, number)
        return chapter

    def _part(self, chapter: Chapter, part: Part, seen: set[str]) -> list[tuple[int, int]]:
        """Take a part in; of moves, what each line led to."""
        at = chapter.game.cursor
        match part.block:
            case "":
                told = blocks(part.numbered, self.terms, seen)
                chapter.notes.setdefault(at, []).extend(drawn(told, self.path.parent))
            case "text":
                chapter.notes.setdefault(at, []).append({"kind": "code", "text": "\n".join(part.body)})
            case "tree":
                raise TextError("a study draws its own programs", "Leave the block out.", part.line)
            case "moves":
                return self._moves(chapter, part)
            case "question":
                if at in chapter.questions:
                    raise TextError("this position has a question", "Ask one at each.", part.line)
                chapter.questions[at] = self._asked(chapter.game, part, seen)
        return []

    def _moves(self, chapter: Chapter, part: Part) -> list[tuple[int, int]]:
        game, words = chapter.game, _MOVES.match(part.words.strip())
        if words is None:
            raise TextError(
                f"moves {part.words[:40]!r} is not understood",
                "Write: ```moves, ```moves as NAME or ```moves after NAME.", part.line,
            )  # fmt: skip
        after, name = words.groups()
        if after is not None:
            if after not in self.names:
                raise TextError(
                    f"no position is called {after!r}",
                    f"There are: {', '.join(self.names)}. A name is given by ```moves as NAME.", part.line,
                )  # fmt: skip
            game.goto(self.names[after])
        steps: list[tuple[int, int]] = []
        comment = ""
        for number, line in part.numbered:
            if line.lstrip().startswith("#"):
                comment = f"{comment} {line.strip()[1:].strip()}".strip()
            elif line.strip():
                before = game.cursor
                play_move(game, line, number)
                way = [position.id for position in game.line()]
                led = way[way.index(before) + 1 :]
                steps += [(number, each) for each in led]
                if comment and led:
                    self._comment(chapter, led[0], comment, number)
                    comment = ""
        if not steps and after is None:
            raise TextError("no move stands here", "Write moves, one a line.", part.line)
        if comment:
            raise TextError("a comment stands after the last move", "Put it before a move.", part.line)
        if name is not None:
            if name == START or name in self.names:
                raise TextError(f"a position is called {name!r} already", "Give it another name.", part.line)
            self.names[name] = game.cursor
        return steps

    def _comment(self, chapter: Chapter, at: int, comment: str, number: int) -> None:
        """Words before a move: a title up to a colon, then what is told from there on."""
        match = _COMMENT.match(f"# {comment}")
        title, words = match.groups() if match else (None, comment)
        if title is None and len(words) <= 60:
            title, words = words, ""
        if title:
            chapter.titles[at] = title.strip()
        if words:
            words = words[:1].upper() + words[1:]
            told: Block = {"kind": "paragraph", "spans": spans(words, self.terms, set(), number)}
            chapter.reasons[at] = told
            chapter.notes.setdefault(at, []).append(told)

    def _asked(self, game: Game, part: Part, seen: set[str]) -> Asked:
        words = part.words.strip()
        if _ASKED.match(words) is None:
            raise TextError(
                f"question {words[:40]!r} is not understood",
                "Write: ```question, ```question move or ```question refused MOVE.", part.line,
            )  # fmt: skip
        kind, _, move = words.partition(" ")
        question = read_question(part, self.terms, seen, several=kind == "move")
        if kind == "move":
            for answer in question.answers:
                verdict = _verdict(game, answer.text, part)
                if answer.right and not verdict.legal:
                    told = verdict.refusal.sentence if verdict.refusal else verdict.sentence
                    raise TextError(
                        f"the answer {answer.text} is to be right, and is refused: {told}",
                        "Correct the answer.", part.line,
                    )  # fmt: skip
            return Asked("move", question)
        if kind == "refused":
            move = " ".join(move.split())
            verdict = _verdict(game, move, part)
            if verdict.legal or verdict.refusal is None:
                raise TextError(
                    f"the move {move} is legal here", "Ask about a move that is refused.", part.line
                )
            return Asked("refused", question, move, verdict.refusal)
        return Asked("words", question)


def _verdict(game: Game, move: str, part: Part) -> Verdict:
    """Of a move at the cursor. Raises TextError for what is no move."""
    try:
        return why(game.current.program, move, game.target, game.policy)
    except MoveSyntax as fault:
        raise TextError(str(fault), "Correct the move.", part.line) from fault


def _target(section: Section) -> str:
    name = section.fact("target", DEFAULT_TARGET)
    if name not in target_names():
        raise TextError(
            f"there is no target {name!r}", f"The targets: {', '.join(target_names())}.",
            section.facts["target"][0],
        )  # fmt: skip
    return name


def _recorded(section: Section, on: str) -> RecordedLine | None:
    """The recorded line that a chapter goes through."""
    if "line" not in section.facts:
        if "shape" in section.facts:
            number = section.facts["shape"][0]
            raise TextError("a shape is that of a recorded line", "Add a fact: line: softmax", number)
        return None
    number, name = section.facts["line"]
    lines = recorded_lines(on)
    if name not in lines:
        near = ", ".join(sorted(lines))
        raise TextError(f"there is no recorded line {name!r}", f"The lines for {on}: {near}.", number)
    return lines[name]
