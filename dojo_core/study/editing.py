"""Edits of a study's text: a note at a position, a heading, a question, a chapter, moves that were played.

The text is all there is: an edit finds the lines that an entry is to stand in, makes its position one of the
study where it was none, and gives the text anew. What people wrote elsewhere stays as they wrote it. What
would not be a study afterwards is refused with the sentence that reading it gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dojo_core.game import Game
from dojo_core.program.expressions import TextError
from dojo_core.study.study import START, Chapter, Passage, Study, read_study
from dojo_core.study.writing import TOLD, chapter_of

Moves = Sequence[str]  # to a position, from the start of its chapter's game

FACTS = ("about", "authors", "licence")
_MARKUP = re.compile(r"\s{0,3}(#{1,2} |```)")
_OPENING = re.compile(r"```moves(?:\s+after ([\w-]+))?(?:\s+as ([\w-]+))?\s*\Z", re.ASCII)


def position_at(game: Game, moves: Moves) -> int | None:
    """The position of a game that moves lead to from its start; None where they were not played in it."""
    at = 0
    for move in moves:
        child = next((each.id for each in game.children(at) if str(each.move) == move), None)
        if child is None:
            return None
        at = child
    return at


def moves_to(game: Game, at: int) -> list[str]:
    """The moves from a game's start to a position."""
    return [str(position.move) for position in game.line(at)[1:]]


class Draft:
    """A study's text under edit. Each edit raises TextError, and leaves the text as it was then."""

    def __init__(self, text: str, path: Path) -> None:
        """``path``: as ``read_study`` takes it. Raises TextError for what is no study."""
        self._path = path
        self._read(text)

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _read(self, text: str) -> None:
        study = read_study(text, self._path)
        self._lines = text.splitlines()
        self.study: Study = study

    def _replace(self, begin: int, end: int, lines: Sequence[str]) -> None:
        """Put lines in place of those from ``begin`` up to before ``end`` (numbers from 0), one empty line
        around them."""
        before, after = self._lines[:begin], self._lines[end:]
        while before and not before[-1].strip():
            before.pop()
        while after and not after[0].strip():
            after.pop(0)
        middle = ["", *lines] if lines else []
        self._read("\n".join([*before, *middle, *([""] if after else []), *after]) + "\n")

    def _chapter(self, number: int) -> Chapter:
        if not 0 <= number < len(self.study.chapters):
            raise TextError("there is no such chapter any more", "Choose another one.")
        return self.study.chapters[number]

    def has(self, number: int, moves: Moves) -> bool:
        """Does a chapter say, ask or play something at a position?"""
        chapter = self._chapter(number)
        return position_at(chapter.game, moves) in chapter.reached

    # ------------------------------------------------------------------ what is edited

    def fact(self, name: str) -> str:
        """A fact of the study as it is written."""
        head = self._lines[1 : self.study.chapters[0].line - 1]
        return next((line.partition(":")[2].strip() for line in head if line.startswith(f"{name}:")), "")

    def note(self, number: int, moves: Moves) -> str:
        """What the file tells at a position, as it is written there."""
        passage = self._note(number, moves)
        return "" if passage is None else "\n".join(passage.part.body).strip("\n")

    def _note(self, number: int, moves: Moves) -> Passage | None:
        return self._passage(number, moves, "")

    def _passage(self, number: int, moves: Moves, block: str) -> Passage | None:
        chapter = self._chapter(number)
        at = position_at(chapter.game, moves)
        return next((each for each in chapter.passages if each.at == at and each.part.block == block), None)

    def write_note(self, number: int, moves: Moves, words: str) -> None:
        """Tell something at a position; no words take out what is told there."""
        lines = [line.rstrip() for line in words.strip("\n").splitlines()]
        if any(_MARKUP.match(line) for line in lines):
            raise TextError(
                "a note has no headings and no blocks", "Write them into the text, or leave out # and ```."
            )
        empty = not any(lines)
        self._write(number, moves, "", [] if empty else lines)

    def question(self, number: int, moves: Moves) -> list[str]:
        """The question at a position, as the lines of its block; empty where there is none."""
        passage = self._passage(number, moves, "question")
        if passage is None:
            return []
        return self._lines[passage.part.line - 1 : passage.part.last]

    def write_question(
        self, number: int, moves: Moves, kind: str, words: str, answers: Sequence[tuple[str, bool, str]]
    ) -> None:
        """Ask something at a position. ``kind`` stands behind the block's name (``move``, ``refused MOVE``),
        an answer is its words, whether it is right, and why; no answers take out what is asked there."""
        asked = [
            f"{'+' if right else '-'} {_one_line(text)}" + (f" :: {_one_line(why)}" if why.strip() else "")
            for text, right, why in answers
        ]
        if any(" :: " in _one_line(text) for text, _, _ in answers):
            raise TextError("an answer has no :: in it", "It stands before why.")
        block = [f"```question {_one_line(kind)}".rstrip(), _one_line(words), *asked, "```"]
        self._write(number, moves, "question", block if answers else [])

    def _write(self, number: int, moves: Moves, block: str, lines: list[str]) -> None:
        """Put lines at a position in place of its passage of this kind."""
        passage = self._passage(number, moves, block)
        if passage is not None:
            self._replace(passage.part.line - 1, passage.part.last, lines)
        elif lines:
            with _Undoing(self):
                line = self._standing(number, moves, behind=block == "question")
                self._replace(line, line, lines)

    def write_title(self, number: int, moves: Moves, title: str) -> None:
        """Say what the move to a position and those after it are about: a line before it."""
        with _Undoing(self):
            if not moves:
                raise TextError("no move leads to the start", "Give the chapter another title.")
            self._standing(number, moves)
            chapter = self._chapter(number)
            at = position_at(chapter.game, moves)
            assert at is not None
            passage = next((p for p in chapter.passages if at in [each for _, each in p.steps]), None)
            if passage is None:
                raise TextError(
                    "this move is told of elsewhere", "It is a recorded line's, or another chapter's."
                )
            line = _line_to(passage, at)
            if _led_to(passage, line)[0] != at:
                line = self._written_out(line, passage, at)
            begin = line - 1
            while self._lines[begin - 1].lstrip().startswith("#"):
                begin -= 1
            told = " ".join(each.strip()[1:].strip() for each in self._lines[begin : line - 1])
            words = told.partition(":")[2].strip() or ("" if len(told) <= 60 else told)
            head = _one_line(title).replace(":", ",")[:60]
            comment = [f"# {': '.join(filter(None, (head, words)))}"] if head or words else []
            lines = [*self._lines[:begin], *comment, *self._lines[line - 1 :]]
            self._read("\n".join(lines) + "\n")

    def write_facts(self, title: str, facts: Mapping[str, str]) -> None:
        """The title and the facts of ``FACTS``; empty ones are left out."""
        end = self.study.chapters[0].line - 1
        kept = [
            line
            for line in self._lines[1:end]
            if line.strip() and not any(line.startswith(f"{name}:") for name in FACTS)
        ]
        told = [f"{name}: {words}" for name in FACTS if (words := _one_line(facts.get(name, "")))]
        head = [f"# {_one_line(title)}", *kept, *told, ""]
        self._read("\n".join([*head, *self._lines[end:]]) + "\n")

    def write_chapter_title(self, number: int, title: str) -> None:
        line = self._chapter(number).line - 1
        lines = [*self._lines[:line], f"## {_one_line(title)}", *self._lines[line + 1 :]]
        self._read("\n".join(lines) + "\n")

    def add_chapter(self, title: str, moves: Moves) -> None:
        """A chapter at the end, which goes on at a position of the last one's game."""
        with _Undoing(self):
            last = len(self.study.chapters) - 1
            chapter = self._chapter(last)
            if position_at(chapter.game, moves) is None:
                self._play(last, moves)
                chapter = self._chapter(last)
            goes_on = position_at(chapter.game, moves) == chapter.ends
            begins = [] if goes_on else self._gone_to(last, moves, beyond=True)
            self._append([f"## {_one_line(title)}", *begins, "", TOLD])

    def add_game(self, title: str, game: Game) -> None:
        """A chapter at the end that goes through a game."""
        self._append(chapter_of(game, _one_line(title)))

    def put_in(self, number: int, moves: Moves) -> None:
        """Make a position one of a chapter's, by the moves that lead there."""
        with _Undoing(self):
            self._standing(number, moves)

    # ------------------------------------------------------------------ where it stands

    def _append(self, lines: Sequence[str]) -> None:
        self._replace(len(self._lines), len(self._lines), lines)

    def _standing(self, number: int, moves: Moves, behind: bool = False) -> int:
        """The line (from 0) at which what is put in stands at a position, which is made one of the chapter's
        where it is none; ``behind`` all that is told there."""
        chapter = self._chapter(number)
        at = position_at(chapter.game, moves)
        if at is None:
            self._play(number, moves)
        elif at not in chapter.reached:
            begins = self._gone_to(number, moves)
            end = self._end(number)
            self._continue(number, end, begins[1:])
        else:
            inside = next((p for p in chapter.passages if at in [each for _, each in p.steps[:-1]]), None)
            if inside is not None and not any(p.at == at for p in chapter.passages):
                self._split(inside, at)
        chapter = self._chapter(number)
        at = position_at(chapter.game, moves)
        passages = chapter.passages
        first = next((n for n, each in enumerate(passages) if each.at == at), None)
        if first is None:
            return chapter.head  # where it begins, and nothing is told there yet
        last = first
        while behind and last + 1 < len(passages) and passages[last + 1].at == at:
            last += 1
        brings = passages[first].part.block in ("moves", "program", "line")
        return passages[last].part.last if brings or behind else chapter.head

    def _end(self, number: int) -> int:
        """The line (from 0) behind a chapter."""
        following = number + 1
        chapters = self.study.chapters
        return chapters[following].line - 1 if following < len(chapters) else len(self._lines)

    def _play(self, number: int, moves: Moves) -> None:
        """Play moves that a chapter does not have, behind it, from the last position that it has."""
        chapter = self._chapter(number)
        game = chapter.game
        known = next(n for n in range(len(moves), -1, -1) if position_at(game, moves[:n]) is not None)
        at = position_at(game, moves[:known])
        begins = "```moves"
        if at != _cursor(chapter):
            begins = f"```moves after {self._named(number, moves[:known])}"
        self._continue(number, self._end(number), [begins, *moves[known:], "```"])

    def _continue(self, number: int, end: int, block: Sequence[str]) -> None:
        """Put a block of moves behind a chapter; one that goes on where it ended goes on there still."""
        chapter = self._chapter(number)
        following = self.study.chapters[number + 1] if number + 1 < len(self.study.chapters) else None
        lines = list(block)
        if following is not None and following.game is chapter.game and not chapter.recorded:
            back = self._named(number, moves_to(chapter.game, chapter.ends))
            end = self._end(number)
            lines += ["", f"```moves after {back}", "```"]
        self._replace(end, end, lines)

    def _gone_to(self, number: int, moves: Moves, beyond: bool = False) -> list[str]:
        """Lines that go to a position that the game of a chapter has by then."""
        return ["", f"```moves after {self._named(number, moves, beyond)}", "```"]

    def _named(self, number: int, moves: Moves, beyond: bool = False) -> str:
        """The name of a position in a chapter, or ``beyond`` it, where another start is called so; one that
        has none gets one."""
        chapter = self._chapter(number)
        at = position_at(chapter.game, moves)
        for name, position in chapter.names.items():
            if position == at and not (beyond and name == START):
                return name
        name = f"move-{len(moves)}"
        while any(name in each.names for each in self.study.chapters):
            name += "x"
        for earlier in self.study.chapters[: number + 1]:
            if earlier.game is not chapter.game:
                continue
            if earlier.begins == at:  # a start: the chapter's own name for it is not known in later ones
                line = next((p.part.last for p in earlier.passages if p.part.block), earlier.head)
                self._replace(line, line, [f"```moves after {START} as {name}", "```"])
                return name
            passage = next((p for p in earlier.passages if at in [each for _, each in p.steps]), None)
            if passage is not None and at is not None:
                if passage.at != at:
                    self._split(passage, at, name)
                else:
                    opening = self._lines[passage.part.line - 1].rstrip()
                    self._lines[passage.part.line - 1] = f"{opening} as {name}"
                    self._read(self.text)
                return name
        raise TextError("a later chapter tells of this position", "Choose that chapter.")

    def _split(self, passage: Passage, at: int, name: str = "") -> None:
        """Cut a block of moves in two behind the move to a position, which may get a name."""
        line = _line_to(passage, at)
        if _led_to(passage, line)[-1] != at:
            self._written_out(line, passage, at)
            chapters = self.study.chapters
            passage = next(p for c in chapters for p in c.passages if p.part.line == passage.part.line)
            line = _line_to(passage, at)
        opening = _OPENING.match(self._lines[passage.part.line - 1].rstrip())
        assert opening is not None, "it was read as one"
        after, named = opening.groups()
        first = "```moves" + (f" after {after}" if after else "") + (f" as {name}" if name else "")
        second = "```moves" + (f" as {named}" if named else "")
        self._lines[passage.part.line - 1] = first
        self._lines[line:line] = ["```", "", second]
        self._read(self.text)

    def _written_out(self, line: int, passage: Passage, at: int) -> int:
        """Put its moves in place of a recipe; the line of the one to a position."""
        game = next(c.game for c in self.study.chapters if passage in c.passages)
        led = _led_to(passage, line)
        self._lines[line - 1 : line] = [str(game.positions[each].move) for each in led]
        self._read(self.text)
        return line + led.index(at)


class _Undoing:
    """Leaves a draft as it was where an edit of several steps fails."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._text = draft, draft.text

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, fault: object, trace: object) -> None:
        if fault is not None:
            self._draft._read(self._text)


def _cursor(chapter: Chapter) -> int:
    """Where moves go on that are put behind a chapter."""
    return chapter.passages[-1].at if chapter.passages else chapter.begins


def _line_to(passage: Passage, at: int) -> int:
    """The line of moves that led to a position."""
    return next(line for line, position in passage.steps if position == at)


def _led_to(passage: Passage, line: int) -> list[int]:
    """The positions that a line of moves led to."""
    return [each for number, each in passage.steps if number == line]


def _one_line(words: str) -> str:
    return " ".join(words.split())
