"""What the page Class draws, as plain data (JSON): a teacher's table, a student's own. The table as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from statistics import median
from urllib.parse import quote, urlencode

from dojo_core.classes.store import KEPT_DAYS, LINK, Assignment, Class, StepTaken, Student
from dojo_core.classes.words import spelled
from dojo_core.measure.measurement import seconds_text
from dojo_core.school.school import School
from dojo_core.service.saved_games import when
from dojo_core.service.view import Json

COLUMNS = (
    "student", "what", "lesson", "step", "opened", "reached", "minutes", "with the solution",
    "first refused move", "first move astray", "times as fast", "seconds", "link",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Titles:
    """Lessons and steps as people call them; those that are not here by their ids."""

    def __init__(self, school: School) -> None:
        self._school = school

    def lesson(self, lesson: str) -> str:
        found = self._school.lesson(lesson)
        return lesson if found is None else found.title

    def step(self, lesson: str, step: str) -> str:
        found = self._school.lesson(lesson)
        named = found.step(step) if found is not None else None
        return step if named is None else named.title

    def steps(self, lesson: str) -> list[str]:
        """The ids of a lesson's steps."""
        found = self._school.lesson(lesson)
        return [] if found is None else [each.id for each in found.steps]


def step_link(lesson: str, step: str = "") -> str:
    """Where a step is played, within the app: whoever opens it has a game of their own there."""
    return "learn?" + urlencode({"lesson": lesson} | ({"step": step} if step else {}))


def game_link(game: str) -> str:
    """Where a game is seen, within the app: whoever is not its owner watches it, and cannot change it."""
    return f"?g={quote(game)}"


def taught(of: Class, students: Sequence[Student], titles: Titles) -> Json:
    """All that a teacher sees of a class."""
    return {
        **_head(of),
        "assignments": [_assignment(each, titles) for each in of.assignments],
        "students": [_row(each, of, len(_given(of, titles)), titles) for each in students],
        "steps": _by_step(of, students, titles),
        "games": [
            {
                "student": student.name,
                "title": game.title,
                "speed_up": game.speed_up,
                "when": when(game.shown),
                "href": game_link(game.game),
            }
            for student in students
            for game in student.games
        ],
    }


def joined(of: Class, student: Student, titles: Titles) -> Json:
    """All that a student sees of a class: what is given, and how far they are themselves."""
    return {
        **_head(of),
        "name": student.name,
        "assignments": [_assignment(each, titles, student) for each in of.assignments],
        "games": [
            {"id": game.game, "title": game.title, "speed_up": game.speed_up, "when": when(game.shown)}
            for game in student.games
        ],
    }


def _head(of: Class) -> Json:
    until = datetime.fromtimestamp(of.kept_until, UTC)
    return {
        "code": of.code,
        "spelled": spelled(of.code),
        "title": of.title,
        "kept_days": KEPT_DAYS,
        "kept_until": f"{until.day} {until:%B %Y}",
    }


def _given(of: Class, titles: Titles) -> list[tuple[str, str]]:
    """The (lesson, step) that a class was given, each once, lesson by lesson."""
    lessons = dict.fromkeys(each.place[0] for each in of.assignments)
    return [(lesson, step) for lesson in lessons for step in titles.steps(lesson) if of.gives(lesson, step)]


def _assignment(given: Assignment, titles: Titles, student: Student | None = None) -> Json:
    lesson, step = given.place
    told: Json = {"id": given.id, "kind": given.kind, "title": given.title}
    if given.kind == LINK:
        return told | {"href": given.target}
    told |= {"lesson": lesson, "step": step, "href": step_link(lesson, step)}
    if student is not None:
        reached = {each.step for each in student.steps if each.lesson == lesson and each.reached is not None}
        wanted = [step] if step else titles.steps(lesson)
        told |= {"done": len(reached.intersection(wanted)), "of": len(wanted)}
    return told


def _row(student: Student, of: Class, given: int, titles: Titles) -> Json:
    steps = [each for each in student.steps if of.gives(each.lesson, each.step)]
    here = next((each for each in steps if (each.lesson, each.step) == (student.lesson, student.step)), None)
    return {
        "id": student.id,
        "name": student.name,
        "seen": when(student.seen),
        "where": f"{titles.lesson(here.lesson)}: {titles.step(here.lesson, here.step)}" if here else "",
        "reached": bool(here and here.reached is not None),
        "game": game_link(here.game) if here and here.game else "",
        "done": sum(each.reached is not None for each in steps),
        "of": given,
        "helped": sum(each.helped for each in steps),
        "wrong": [
            {"step": titles.step(each.lesson, each.step), "move": move, "refused": refused}
            for each in steps
            for move, refused in ((each.refused, True), (each.astray, False))
            if move
        ],
        "times": [
            {
                "step": titles.step(each.lesson, each.step),
                "speed_up": each.speed_up,
                "time": seconds_text(each.seconds) if each.seconds is not None else "",
                "href": game_link(each.game),
            }
            for each in steps
            if each.speed_up is not None
        ],
    }


def _by_step(of: Class, students: Sequence[Student], titles: Titles) -> list[Json]:
    """Each step that somebody opened, in the lessons' order: how many reached it, what they tried first."""
    taken: dict[tuple[str, str], list[tuple[str, StepTaken]]] = {}
    for student in students:
        for each in student.steps:
            taken.setdefault((each.lesson, each.step), []).append((student.name, each))
    return [_step(*place, taken[place], titles) for place in _given(of, titles) if place in taken]


def _step(lesson: str, step: str, those: list[tuple[str, StepTaken]], titles: Titles) -> Json:
    wrong: dict[tuple[str, bool], list[str]] = {}
    for name, each in those:
        for move, refused in ((each.refused, True), (each.astray, False)):
            if move:
                wrong.setdefault((move, refused), []).append(name)
    took = [_minutes(each) for _, each in those]
    minutes = [each for each in took if each is not None]
    return {
        "lesson": titles.lesson(lesson),
        "step": titles.step(lesson, step),
        "href": step_link(lesson, step),
        "opened": len(those),
        "reached": sum(each.reached is not None for _, each in those),
        "helped": sum(each.helped for _, each in those),
        "minutes": median(minutes) if minutes else None,
        "wrong": [
            {"move": move, "refused": refused, "names": names}
            for (move, refused), names in sorted(wrong.items(), key=lambda each: -len(each[1]))
        ],
    }


def _minutes(step: StepTaken) -> float | None:
    return None if step.reached is None else (step.reached - step.opened) / 60


# ---------------------------------------------------------------------- as a file


def csv_text(students: Iterable[Student], titles: Titles) -> str:
    """A line for each step and each shown game of each student, UTF-8 with the mark that spreadsheets want.

    What people typed is never a formula: a cell that begins as one has ``'`` before it.
    """
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(COLUMNS)
    for student in students:
        for line in _lines(student, titles):
            rows.writerow([_cell(each) for each in line])
    return "\ufeff" + written.getvalue()


def _lines(student: Student, titles: Titles) -> Iterable[tuple[object, ...]]:
    if not student.steps and not student.games:
        yield (student.name, "joined", "", "", _date(student.joined), *[""] * 8)
    for each in student.steps:
        minutes = _minutes(each)
        yield (
            student.name, "step", titles.lesson(each.lesson), titles.step(each.lesson, each.step),
            _date(each.opened), _date(each.reached), "" if minutes is None else round(minutes, 1),
            "yes" if each.helped else "", each.refused, each.astray,
            "" if each.speed_up is None else round(each.speed_up, 3),
            "" if each.seconds is None else each.seconds, game_link(each.game) if each.game else "",
        )  # fmt: skip
    for game in student.games:
        yield (
            student.name, "game", "", game.title, _date(game.shown), "", "", "", "", "",
            "" if game.speed_up is None else round(game.speed_up, 3), "", game_link(game.game),
        )  # fmt: skip


def _date(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
