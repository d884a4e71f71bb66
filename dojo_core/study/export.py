"""A study as Markdown, which any viewer of it shows: words, what each group of moves changes, times, charts.

A reader's answers stand folded up below their questions, and what single moves change below the groups.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from dojo_core.game import Position
from dojo_core.program.tree import Program
from dojo_core.school.prose import Block, Span
from dojo_core.study.plot import Band, plot
from dojo_core.study.study import Asked, Chapter, Study
from dojo_core.study.times import Times
from dojo_core.targets.registry import backend

LEAST_CHARTED = 4  # moves of a chapter's line that are worth a chart

Seconds = Sequence[float | None]  # by machine


@dataclass(frozen=True)
class Exported:
    """``text``: the page; ``pictures``: the SVG files that stand beside it, by name."""

    text: str
    pictures: dict[str, str]


def markdown(study: Study, every: Sequence[Times], source: str, stem: str) -> Exported:
    """A study with the times of machines. ``source``: what commands call it; ``stem``: the page's name, with
    which its pictures' names begin."""
    page = _Page(every, stem)
    lines = [
        f"<!-- Made by `dojo study export {source}`: change the study, not this page. -->",
        "",
        f"# {study.title}",
        "",
        _spans(study.about),
        *(["", f"By {', '.join(study.authors)}."] if study.authors else []),
        "",
        *_machines(every),
        f"`dojo study serve {source}` shows it as a page to go through: with code, assembly and legal moves "
        "at each position, and its questions to answer.",
    ]
    for chapter in study.chapters:
        lines += ["", f"## {chapter.title}", *page.chapter(chapter)]
    return Exported("\n".join(lines) + "\n", page.pictures)


def move_table(
    moves: Sequence[tuple[int, str, Seconds]],
    start: Seconds,
    told: Callable[[float | None], str],
) -> list[str]:
    """Moves by their numbers, counted from 1, with the times after each on every machine, as lines of a
    table. ``start``: the start's."""
    machines = [f" {number}" if len(start) > 1 else "" for number in range(1, len(start) + 1)]
    lines = [
        "| | move |" + "".join(f" time{name} | against the start |" for name in machines),
        "|--:|---|" + "--:|--:|" * len(machines),
    ]
    for number, move, seconds in moves:
        row = f"| {number} | `{move}` |"
        for time, first in zip(seconds, start, strict=True):
            row += f" {told(time)} | {f'{first / time:.3g}×' if time and first else ''} |"
        lines.append(row)
    return lines


def _machines(every: Sequence[Times]) -> list[str]:
    if not every:
        return ["No machine has timed it yet.", ""]
    if len(every) == 1:
        where = f"{every[0].machine}; {every[0].date}"
        return [f"Whatever has a time was verified before, element by element ({where}).", ""]
    numbered = (f"{n}. {each.machine}; {each.date}" for n, each in enumerate(every, 1))
    return ["Whatever has a time was verified before, element by element, on:", "", *numbered, ""]


class _Page:
    """Writes chapters one after the other: what was told stands on the page once."""

    def __init__(self, every: Sequence[Times], stem: str) -> None:
        self.every, self.stem = every, stem
        self.pictures: dict[str, str] = {}
        self.shown = ""  # the hash of the program that was shown last
        self.told: set[int] = set()  # blocks of text, by identity

    def chapter(self, chapter: Chapter) -> list[str]:
        """The lines below a chapter's heading."""
        self.number, self.at = 0, chapter.begins
        begun = chapter.game.positions[chapter.begins]
        waiting = list(chapter.passages)
        lines: list[str] = []
        while waiting and waiting[0].part.block not in ("moves", "question"):
            waiting.pop(0)
        lines += self._notes(chapter, chapter.begins)
        if begun.program.hash != self.shown:
            lines += ["", *_program(begun.program)]
            self.shown = begun.program.hash
        while waiting and waiting[0].part.block != "moves":
            lines += self._words(chapter, waiting.pop(0).at)
        lines += self._chart(chapter)
        if chapter.recorded:
            lines += self._stretch(chapter, [p.id for p in chapter.game.line(chapter.ends)][1:])
        for passage in waiting:
            if passage.steps:
                lines += self._stretch(chapter, [position for _, position in passage.steps])
            self.at = passage.at
            if passage.part.block != "moves":
                lines += self._words(chapter, passage.at)
        last = chapter.game.positions[chapter.ends].program
        if last.hash != self.shown:
            lines += ["", "### The program at the end", "", *_program(last)]
            self.shown = last.hash
        return lines

    # ------------------------------------------------------------------ words

    def _words(self, chapter: Chapter, at: int) -> list[str]:
        lines = self._notes(chapter, at)
        asked = chapter.questions.get(at)
        if asked is not None and id(asked) not in self.told:
            self.told.add(id(asked))
            lines += ["", *_question(asked)]
        return lines

    def _notes(self, chapter: Chapter, at: int, reason: bool = False) -> list[str]:
        """What is told at a position, the ``reason`` for the moves from it on or the rest, if it was not
        yet."""
        lines: list[str] = []
        for block in chapter.notes.get(at, []):
            if (block is chapter.reasons.get(at)) == reason and id(block) not in self.told:
                self.told.add(id(block))
                lines += ["", *self._block(block)]
        return lines

    def _block(self, block: Block) -> list[str]:
        if block["kind"] == "list":
            return [f"- {_spans(item)}" for item in block["items"]]
        if block["kind"] == "code":
            return _fenced(block["text"].splitlines())
        if block["kind"] == "picture":
            return [f"*(A picture: {block['alt']})*"]
        return [_spans(block["spans"])]

    # ------------------------------------------------------------------ moves

    def _stretch(self, chapter: Chapter, positions: Sequence[int]) -> list[str]:
        """Moves in a row, group by group."""
        lines: list[str] = []
        for group in _groups(chapter, positions):
            lines += self._group(chapter, [chapter.game.positions[each] for each in group])
            lines += self._words(chapter, group[-1])
        return lines

    def _group(self, chapter: Chapter, group: Sequence[Position]) -> list[str]:
        game, first, last = chapter.game, group[0], group[-1]
        start, told = self._seconds(game.start), partial(_time, game.target)
        lines = []
        if first.id in chapter.titles:
            self.number += 1
            time = self._seconds(last.program)[:1]
            end = f": {told(time[0])}" if time else ""
            lines += ["", f"### {self.number}. {chapter.titles[first.id]}{end}"]
        assert first.parent is not None
        before = game.positions[first.parent]
        if first.parent != self.at:
            ply = len(game.line(first.parent)) - 1
            lines += ["", f"*From the position after move {ply}:*" if ply else "*From the start:*"]
        lines += self._notes(chapter, first.id, reason=True)
        lines += ["", *_change(before.program, last.program)]
        ply = len(game.line(first.id)) - 1
        if self.every:
            rows = [(n, str(p.move), self._seconds(p.program)) for n, p in enumerate(group, ply)]
            lines += ["", *move_table(rows, start, told)]
        else:
            lines += ["", *(f"{n}. `{p.move}`" for n, p in enumerate(group, ply))]
        if len(group) > 1:
            lines += ["", f"<details><summary>What each of these {len(group)} moves changes</summary>"]
            for number, position in enumerate(group, ply):
                lines += ["", f"{number}: `{position.move}`", "", *_change(before.program, position.program)]
                before = position
            lines += ["", "</details>"]
        self.at = last.id
        return lines

    def _seconds(self, program: Program) -> list[float | None]:
        known = (times.seconds.get(program.hash) for times in self.every)
        return [None if each is None else each[0] for each in known]

    def _chart(self, chapter: Chapter) -> list[str]:
        """The chapter's own line as a picture, with the first machine's times."""
        game = chapter.game
        line = game.line(chapter.ends)
        seconds = [self._seconds(position.program)[0] for position in line] if self.every else []
        played = {position for passage in chapter.passages for _, position in passage.steps}
        own = chapter.recorded or all(position.id in played for position in line[1:])
        if not own or len(line) <= LEAST_CHARTED or sum(each is not None for each in seconds) < 2:
            return []
        numbers = {position.id: ply for ply, position in enumerate(line)}
        titled = sorted((numbers[at], title) for at, title in chapter.titles.items() if at in numbers)
        ends = [first - 1 for first, _ in titled[1:]] + [len(line) - 1]
        bands = [Band(title, first, end) for (first, title), end in zip(titled, ends, strict=True)]
        name = f"{self.stem}{f'-{len(self.pictures) + 1}' if self.pictures else ''}.svg"
        moves = [str(position.move) for position in line[1:]]
        told = backend(game.target).clock().text
        self.pictures[name] = plot(chapter.title, moves, seconds, bands, told)
        machine = f" ({self.every[0].machine})" if len(self.every) > 1 else ""
        start, end = seconds[0], seconds[-1]
        gain = (
            f": from {told(start)} to {told(end)}, {start / end:.3g} times as fast" if start and end else ""
        )
        plural = "s" if len(moves) > 1 else ""
        return [
            "", f"![Time after each move]({name})", "",
            f"{game.kernel or game.start.name} {game.shape}".strip()
            + f", floating-point policy {game.policy}, {len(moves)} move{plural}{gain}{machine}.",
        ]  # fmt: skip


def _groups(chapter: Chapter, positions: Iterable[int]) -> Iterator[list[int]]:
    """Positions in a row, parted where something new is told."""
    group: list[int] = []
    for at in positions:
        if group and (
            at in chapter.titles
            or at in chapter.reasons
            or group[-1] in chapter.questions
            or any(block is not chapter.reasons.get(group[-1]) for block in chapter.notes.get(group[-1], []))
        ):
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def _time(target: str, seconds: float | None) -> str:
    return "no time" if seconds is None else backend(target).clock().text(seconds)


def _question(asked: Asked) -> list[str]:
    answers = asked.question.answers
    lines = [f"**{_spans(asked.question.words)}**"]
    if asked.kind == "refused":
        lines[0] += f" (`{asked.move}`)"
    told = [f"`{each.text}`" if asked.kind == "move" else _spans(each.words) for each in answers]
    lines += ["", *(f"- {each}" for each in told)]
    lines += ["", "<details><summary>The answer</summary>", ""]
    for each, words in sorted(zip(answers, told, strict=True), key=lambda answer: not answer[0].right):
        said = f"{'Right' if each.right else 'Not'}: {words}."
        lines.append(f"- {said} {_spans(each.why)}".rstrip())
    if asked.refusal is not None:
        lines += ["", f"The Dojo says: {asked.refusal}"]
    return [*lines, "", "</details>"]


_MARKS = {"code": "`", "strong": "**", "em": "*"}


def _spans(spans: Sequence[Span]) -> str:
    """Spans as Markdown; what would be markup elsewhere is text here as it is in a study."""
    told = ""
    for kind, words, *more in spans:
        if kind == "link":
            told += f"[{_plain(words)}]({more[0]})"
        elif kind in _MARKS:
            told += f"{_MARKS[kind]}{words if kind == 'code' else _plain(words)}{_MARKS[kind]}"
        else:
            told += _plain(words)
    return told


_MARKUP = re.compile(r"[\\`*_\[\]]")


def _plain(words: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", words.replace("&", "&amp;").replace("<", "&lt;"))


def _program(program: Program) -> list[str]:
    return _fenced(program.text.splitlines())


def _fenced(lines: Sequence[str], language: str = "") -> list[str]:
    fence = "```"
    while any(line.lstrip().startswith(fence) for line in lines):
        fence += "`"
    return [fence + language, *lines, fence]


def _change(before: Program, after: Program) -> list[str]:
    """The lines that go and those that come, as a block that is shown in colours."""
    old, new = before.text.splitlines(), after.text.splitlines()
    changed = [
        line
        for line in difflib.unified_diff(old, new, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    return _fenced([f"{line[0]} {line[1:]}" for line in changed], "diff")
