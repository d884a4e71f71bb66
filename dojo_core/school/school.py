"""All lessons there are: those of the Dojo and those of a teacher's folder, with their glossary."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dojo_core.measure.places import data_home
from dojo_core.package_data import data_path
from dojo_core.program.expressions import TextError
from dojo_core.school.daily import PUZZLES_FOLDER
from dojo_core.school.lesson import Lesson, read_lesson
from dojo_core.school.prose import Span, Terms, slug, spans
from dojo_core.school.ratings import FILE as RATINGS
from dojo_core.school.ratings import Ratings, ratings_in

log = logging.getLogger(__name__)

LESSONS_FOLDER = data_path("dojo_core", "lessons")
GLOSSARY = "glossary.md"
NO_LESSON = (GLOSSARY, "README.md")


@dataclass(frozen=True)
class Entry:
    """A word and what it means; ``also`` are other words for it."""

    slug: str
    title: str
    also: tuple[str, ...]
    words: list[list[Span]]  # paragraphs


@dataclass(frozen=True)
class Glossary:
    entries: tuple[Entry, ...]

    @property
    def terms(self) -> Terms:
        names = {entry.title: entry.slug for entry in self.entries}
        return Terms(names | {word: entry.slug for entry in self.entries for word in entry.also})


def read_glossary(text: str) -> Glossary:
    """``## Term``, a line ``also: other, words`` where there are any, then paragraphs. Raises TextError."""
    raw: list[tuple[int, str, list[tuple[int, str]]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            raw.append((number, line[3:].strip(), []))
        elif raw:
            raw[-1][2].append((number, line))
    also_of: list[tuple[str, ...]] = []
    bodies: list[list[tuple[int, str]]] = []
    for number, title, lines in raw:
        also: tuple[str, ...] = ()
        first = next((at for at, (_, each) in enumerate(lines) if each.strip()), len(lines))
        body = lines[first:]
        if body and body[0][1].startswith("also:"):
            also = tuple(word.strip() for word in body[0][1][5:].split(",") if word.strip())
            body = body[1:]
        if not any(each.strip() for _, each in body):
            raise TextError(f"{title} is not explained", "Write a sentence below it.", number, 1, title)
        also_of.append(also)
        bodies.append(body)
    taken: dict[str, int] = {}
    for (number, title, _), also in zip(raw, also_of, strict=True):
        for word in (title, *also):
            if word.lower() in taken:
                raise TextError(f"{word!r} stands in the glossary twice", "Leave one out.", number, 1, title)
            taken[word.lower()] = number
    bare = Glossary(tuple(Entry(slug(t), t, a, []) for (_, t, _), a in zip(raw, also_of, strict=True)))
    terms = bare.terms
    entries = []
    for entry, body in zip(bare.entries, bodies, strict=True):
        seen = {entry.slug}
        paragraphs: list[list[Span]] = []
        current: list[tuple[int, str]] = []
        for number, line in [*body, (0, "")]:
            if line.strip():
                current.append((number, line.strip()))
            elif current:
                words = " ".join(each for _, each in current)
                paragraphs.append(spans(words, terms, seen, current[0][0]))
                current = []
        entries.append(Entry(entry.slug, entry.title, entry.also, paragraphs))
    return Glossary(tuple(entries))


@dataclass(frozen=True)
class School:
    """``faults`` are files that could not be read, each with a sentence."""

    lessons: tuple[Lesson, ...]
    glossary: Glossary
    faults: tuple[tuple[str, str], ...] = ()
    ratings: Ratings = field(default_factory=Ratings)

    def lesson(self, name: str) -> Lesson | None:
        return next((lesson for lesson in self.lessons if lesson.id == name), None)


def teachers_folder() -> Path:
    """Where a teacher's own lessons lie: ``$DOJO_LESSONS``, else ``lessons`` in the data directory."""
    named = os.environ.get("DOJO_LESSONS")
    return Path(named).expanduser() if named else data_home() / "lessons"


def glossary_for(folder: Path) -> Glossary:
    """The Dojo's words and those of a folder's own glossary. Raises TextError."""
    entries = list(read_glossary((LESSONS_FOLDER / GLOSSARY).read_text(encoding="utf-8")).entries)
    file = folder / GLOSSARY
    if file.exists() and folder.resolve() != LESSONS_FOLDER:
        added = read_glossary(file.read_text(encoding="utf-8")).entries
        replaced = {entry.slug for entry in added}
        entries = [entry for entry in entries if entry.slug not in replaced] + list(added)
    return Glossary(tuple(sorted(entries, key=lambda entry: entry.title.lower())))


def stamp() -> tuple[tuple[str, float], ...]:
    """Changes whenever a lesson's file does, so that a teacher sees a lesson as it is now."""
    files = (path for folder in _folders() for path in sorted(folder.glob("*.md")))
    return tuple((str(path), path.stat().st_mtime) for path in files if path.exists())


def _folders() -> tuple[Path, ...]:
    return (LESSONS_FOLDER, PUZZLES_FOLDER, teachers_folder())


def open_school(folders: Sequence[Path] | None = None) -> School:
    """Read every lesson. A file with an error is left out and told of in ``faults``."""
    lessons: dict[str, Lesson] = {}
    faults: list[tuple[str, str]] = []
    glossary = glossary_for(LESSONS_FOLDER)
    ratings = Ratings()
    for folder in folders if folders is not None else _folders():
        try:
            found = ratings_in(folder)
            ratings = Ratings({**found.puzzles, **ratings.puzzles}, ratings.agents or found.agents,
                              {**found.tries, **ratings.tries})  # fmt: skip
        except (TextError, OSError, UnicodeDecodeError) as error:
            faults.append((RATINGS, str(error)))
        try:
            glossary = glossary_for(folder)
        except (TextError, OSError, UnicodeDecodeError) as error:
            faults.append((GLOSSARY, str(error)))
        for path in sorted(folder.glob("*.md")):
            if path.name in NO_LESSON:
                continue
            try:
                if path.stem in lessons:
                    raise TextError("another lesson has this file name", "Give the file another name.")
                lessons[path.stem] = read_lesson(path.read_text(encoding="utf-8"), path, glossary.terms)
            except (TextError, OSError, UnicodeDecodeError) as error:
                log.warning("lesson %s cannot be read: %s", path, error)
                faults.append((path.name, str(error)))
    # Lessons before puzzles, each in the order of their files' names.
    ordered = sorted(lessons.values(), key=lambda lesson: lesson.puzzles)
    return School(tuple(ordered), glossary, tuple(faults), ratings)
