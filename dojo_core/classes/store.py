"""Classes and all that is kept of them, in one SQLite database of the data directory.

A class is named by its code, which students type. Who teaches it, and who a student is, are owners
(dojo_core/ownership.py): a browser, a login, or a Dojo elsewhere that shows a token. The database holds
digests of keys and tokens alone. Nothing of a class is backed up, so that what is deleted is gone.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dojo_core.classes import words
from dojo_core.measure.database import Database, twice
from dojo_core.measure.places import data_directory
from dojo_core.ownership import LOGIN
from dojo_core.school.attempts import Attempt
from dojo_core.service.refused import Refused

KEPT_DAYS = 90  # after a class was used last
MOST_CLASSES, MOST_TAUGHT = 200, 20  # on a server, and of one teacher
MOST_STUDENTS, MOST_ASSIGNMENTS = 200, 50  # of a class
MOST_JOINED, MOST_STEPS, MOST_GAMES = 20, 400, 20  # classes, steps and games of a student
LONGEST_MOVE = 200
LONGEST_GAME = 2_048  # a link that holds a game; an id is shorter
TOUCHED = 3_600.0  # seconds: so exactly is it known when a class was used last
DAY = 86_400.0

LESSON, PUZZLES, LINK = "lesson", "puzzles", "link"
REMOTE = "remote:"  # the owner that a student is who works in a Dojo of their own

_SCHEMA = """
CREATE TABLE IF NOT EXISTS classes (
    code TEXT PRIMARY KEY, title TEXT NOT NULL, key TEXT NOT NULL, made REAL NOT NULL, used REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS teachers (code TEXT NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (code, owner));
CREATE TABLE IF NOT EXISTS students (
    id TEXT PRIMARY KEY, code TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL,
    joined REAL NOT NULL, seen REAL NOT NULL, lesson TEXT NOT NULL, step TEXT NOT NULL, UNIQUE (code, owner)
);
CREATE INDEX IF NOT EXISTS students_of ON students (owner);
CREATE TABLE IF NOT EXISTS assignments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, code TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
    title TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS steps (
    student TEXT NOT NULL, lesson TEXT NOT NULL, step TEXT NOT NULL, opened REAL NOT NULL, reached REAL,
    helped INTEGER NOT NULL, refused TEXT NOT NULL, astray TEXT NOT NULL, speed_up REAL, seconds REAL,
    game TEXT NOT NULL, PRIMARY KEY (student, lesson, step)
);
CREATE TABLE IF NOT EXISTS games (
    student TEXT NOT NULL, game TEXT NOT NULL, title TEXT NOT NULL, speed_up REAL, shown REAL NOT NULL,
    PRIMARY KEY (student, game)
);
CREATE TABLE IF NOT EXISTS tokens (student TEXT PRIMARY KEY, token TEXT NOT NULL);
"""


@dataclass(frozen=True)
class Assignment:
    """``target``: a lesson's id, with ``/`` and a step's where only that is given; of a link, its address."""

    id: int
    kind: str
    target: str
    title: str

    @property
    def place(self) -> tuple[str, str]:
        """The lesson that is given and the step, "" for the whole of it; of a link both are empty."""
        lesson, _, step = ("", "", "") if self.kind == LINK else self.target.partition("/")
        return lesson, step


@dataclass(frozen=True)
class Class:
    """``title`` is the teacher's, ``used`` in seconds since 1970."""

    code: str
    title: str
    used: float
    assignments: tuple[Assignment, ...] = ()

    def gives(self, lesson: str, step: str) -> bool:
        """Is a step among what is given? How students fare there is kept, and nothing else of them."""
        return any(each.place in ((lesson, step), (lesson, "")) for each in self.assignments)

    @property
    def kept_until(self) -> float:
        return self.used + KEPT_DAYS * DAY


@dataclass(frozen=True)
class StepTaken:
    """How a student fared at a step; times are seconds since 1970, of ``reached`` None while it is not."""

    lesson: str
    step: str
    opened: float
    reached: float | None
    helped: bool
    refused: str
    astray: str
    speed_up: float | None
    seconds: float | None
    game: str


@dataclass(frozen=True)
class ShownGame:
    """A game that a student wants looked at: its id here, or a link's text that holds it."""

    game: str
    title: str
    speed_up: float | None
    shown: float


@dataclass(frozen=True)
class Student:
    """``lesson`` and ``step`` say where they were last."""

    id: str
    code: str
    name: str
    owner: str
    joined: float
    seen: float
    lesson: str
    step: str
    steps: tuple[StepTaken, ...] = field(default=())
    games: tuple[ShownGame, ...] = field(default=())


def of_token(token: str) -> str:
    """The owner that a student is who shows this token."""
    return REMOTE + _digest(token)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:32]


class Classes(Database):
    """Safe to share between threads, and processes. Close it when done. Raises DatabaseFault.

    What a person asked for and cannot have is Refused, with a sentence.
    """

    what = "classes"

    def __init__(self, path: Path | None = None, mends: bool = True) -> None:
        super().__init__(path if path is not None else data_directory() / "classes.sqlite", mends)
        self._purged = 0.0
        self.purge()

    def _make(self, connection: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted leaves nothing in the file

    def _tables(self) -> dict[str, tuple[str, ...]]:
        return {
            "classes": ("code", "title", "key", "made", "used"),
            "teachers": ("code", "owner"),
            "students": ("id", "code", "name", "owner", "joined", "seen", "lesson", "step"),
            "assignments": ("id", "code", "kind", "target", "title"),
            "steps": (
                "student", "lesson", "step", "opened", "reached", "helped", "refused", "astray", "speed_up",
                "seconds", "game",
            ),
            "games": ("student", "game", "title", "speed_up", "shown"),
            "tokens": ("student", "token"),
        }  # fmt: skip

    # ------------------------------------------------------------------ what teachers do

    @twice
    def make(self, title: str, owner: str) -> tuple[Class, str]:
        """A new class of a teacher's, and its key; where a login tells who teaches, there is none ("").

        The key is told once. Whoever opens its link teaches the class too.
        """
        key = "" if owner.startswith(LOGIN) else secrets.token_urlsafe(24)
        code, now = words.new_code(), time.time()
        title = words.plain(title, words.LONGEST_TITLE) or "A class"
        with self._transaction() as database:
            if _count(database, "SELECT count(*) FROM classes") >= MOST_CLASSES:
                raise Refused(f"There are {MOST_CLASSES} classes here, as many as this Dojo keeps.")
            if _count(database, "SELECT count(*) FROM teachers WHERE owner = ?", owner) >= MOST_TAUGHT:
                raise Refused(f"You have {MOST_TAUGHT} classes: delete one that is over first.")
            values = (code, title, _digest(key) if key else "", now, now)
            database.execute("INSERT INTO classes VALUES (?, ?, ?, ?, ?)", values)
            database.execute("INSERT INTO teachers VALUES (?, ?)", (code, owner))
        return Class(code, title, now), key

    @twice
    def new_key(self, code: str, owner: str) -> str:
        """Another key for a class; the one before opens it no more. "" where a login tells who teaches."""
        self.taught(code, owner)
        if owner.startswith(LOGIN):
            return ""
        key = secrets.token_urlsafe(24)
        self._ask("UPDATE classes SET key = ? WHERE code = ?", (_digest(key), code))
        return key

    def admit(self, key: str, owner: str) -> Class | None:
        """The class that a key is of, which the owner teaches from now on; None where it is of none."""
        found = self._ask("SELECT code FROM classes WHERE key = ?", (_digest(key),)) if key else []
        if not found or owner.startswith(LOGIN):
            return None
        self._ask("INSERT OR IGNORE INTO teachers VALUES (?, ?)", (found[0][0], owner))
        return self.of_code(found[0][0])

    def taught_by(self, owner: str) -> list[Class]:
        """A teacher's classes, the one that was used last before the others."""
        self.purge()
        rows = self._ask(
            "SELECT code, title, used FROM classes JOIN teachers USING (code) WHERE owner = ? "
            "ORDER BY used DESC",
            (owner,),
        )
        return [self._with_assignments(row) for row in rows]

    def taught(self, code: str, owner: str) -> Class:
        """A class of a teacher's. Raises Refused where it is not theirs, with the words of one that is not
        there: what classes there are is nobody's business."""
        found = self.of_code(code)
        if found is None or not self._ask(
            "SELECT 1 FROM teachers WHERE code = ? AND owner = ?", (code, owner)
        ):
            raise Refused("You teach no such class.")
        return found

    @twice
    def assign(self, code: str, kind: str, target: str, title: str) -> None:
        """Give a class a lesson, puzzles or a link; once is enough."""
        with self._transaction() as database:
            given = "SELECT count(*) FROM assignments WHERE code = ?"
            if _count(database, f"{given} AND target = ?", code, target):
                return
            if _count(database, given, code) >= MOST_ASSIGNMENTS:
                raise Refused(f"A class has at most {MOST_ASSIGNMENTS} assignments: take one away first.")
            values = (code, kind, target, words.plain(title, words.LONGEST_TITLE) or target[:80])
            database.execute(
                "INSERT INTO assignments (code, kind, target, title) VALUES (?, ?, ?, ?)", values
            )
            _touch(database, code)

    def unassign(self, code: str, assignment: int) -> None:
        self._ask("DELETE FROM assignments WHERE code = ? AND id = ?", (code, assignment))

    @twice
    def remove_student(self, code: str, student: str) -> None:
        """Delete a student of a class and all that is kept of them there."""
        with self._transaction() as database:
            found = database.execute("SELECT id FROM students WHERE code = ? AND id = ?", (code, student))
            self._forget(database, [row[0] for row in found.fetchall()])
        self._shred()

    @twice
    def delete(self, code: str) -> None:
        """Delete a class with all that is kept of its students."""
        with self._transaction() as database:
            found = database.execute("SELECT id FROM students WHERE code = ?", (code,)).fetchall()
            self._forget(database, [row[0] for row in found])
            for table in ("assignments", "teachers", "classes"):
                database.execute(f"DELETE FROM {table} WHERE code = ?", (code,))
        self._shred()

    @staticmethod
    def _forget(database: sqlite3.Connection, students: Sequence[str]) -> None:
        for student in students:
            for table in ("steps", "games", "tokens"):
                database.execute(f"DELETE FROM {table} WHERE student = ?", (student,))
            database.execute("DELETE FROM students WHERE id = ?", (student,))

    def _shred(self) -> None:
        """What was deleted is not in the log of changes either."""
        self._ask("PRAGMA wal_checkpoint(TRUNCATE)")

    def purge(self) -> None:
        """Delete classes that were not used for ``KEPT_DAYS``, once a day; and damaged files of that age."""
        now = time.time()
        if now - self._purged < DAY:
            return
        self._purged = now
        for (code,) in self._ask("SELECT code FROM classes WHERE used < ?", (now - KEPT_DAYS * DAY,)):
            self.delete(code)
        for aside in self.path.parent.glob(f"{self.path.stem}.damaged-*"):
            with suppress(OSError):  # another process was quicker
                if now - aside.stat().st_mtime > KEPT_DAYS * DAY:
                    aside.unlink()

    def roster(self, code: str) -> list[Student]:
        """All students of a class with what is kept of them, by name."""
        students = self._ask("SELECT * FROM students WHERE code = ?", (code,))
        return sorted(map(self._whole_student, students), key=lambda each: each.name.casefold())

    # ------------------------------------------------------------------ what students do

    def of_code(self, code: str) -> Class | None:
        rows = self._ask("SELECT code, title, used FROM classes WHERE code = ?", (code,))
        return self._with_assignments(rows[0]) if rows else None

    @twice
    def join(self, code: str, typed: str, owner: str) -> Student:
        """Become a student of a class; who is one stays the one they are. Raises Refused."""
        name, now = words.name(typed), time.time()
        with self._transaction() as database:
            rows = database.execute("SELECT owner, name FROM students WHERE code = ?", (code,)).fetchall()
            if owner not in {row[0] for row in rows}:
                if not _count(database, "SELECT count(*) FROM classes WHERE code = ?", code):
                    raise Refused("There is no class of this code any more.")
                if len(rows) >= MOST_STUDENTS:
                    raise Refused(f"This class has {MOST_STUDENTS} students, as many as one can have.")
                if _count(database, "SELECT count(*) FROM students WHERE owner = ?", owner) >= MOST_JOINED:
                    raise Refused(f"You are in {MOST_JOINED} classes: leave one first.")
                name = words.told_apart(name, {row[1] for row in rows})
                values = (secrets.token_hex(8), code, name, owner, now, now, "", "")
                database.execute("INSERT INTO students VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
                _touch(database, code)
        return next(each for each in self.memberships(owner) if each.code == code)

    def memberships(self, owner: str) -> list[Student]:
        """Who an owner is, in all classes that they joined; newest first."""
        rows = self._ask("SELECT * FROM students WHERE owner = ? ORDER BY joined DESC", (owner,))
        return [self._whole_student(row) for row in rows]

    @twice
    def new_token(self, student: Student) -> str:
        """What a Dojo of the student's own shows to tell of them; the one before is worth nothing then.

        "" where the student was deleted meanwhile.
        """
        token = secrets.token_urlsafe(24)
        with self._transaction() as database:
            if not _count(database, "SELECT count(*) FROM students WHERE id = ?", student.id):
                return ""
            database.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (student.id, _digest(token)))
        return token

    def student_of(self, token: str) -> Student | None:
        """The student whom a token speaks for: who joined with it, or who had it made; None for any other."""
        rows = self._ask(
            "SELECT * FROM students WHERE owner = ? OR id IN (SELECT student FROM tokens WHERE token = ?)",
            (of_token(token), _digest(token)),
        )
        return self._whole_student(rows[0]) if rows and token else None

    @twice
    def report(self, student: Student, attempt: Attempt) -> None:
        """Keep how a student fares at a step that their class was given; of others nothing is kept.

        The first refused move stays; what led astray is known for good once the step is reached.
        """
        given = self.of_code(student.code)
        if given is None or not given.gives(attempt.lesson, attempt.step):
            return
        now = time.time()
        place = (student.id, attempt.lesson[:80], attempt.step[:80])
        with self._transaction() as database:
            rows = database.execute(
                "SELECT reached FROM steps WHERE student = ? AND lesson = ? AND step = ?", place
            ).fetchall()
            if not rows:
                if _count(database, "SELECT count(*) FROM steps WHERE student = ?", student.id) >= MOST_STEPS:
                    return
                if not _count(database, "SELECT count(*) FROM students WHERE id = ?", student.id):
                    return  # deleted meanwhile
                database.execute(
                    "INSERT INTO steps VALUES (?, ?, ?, ?, NULL, 0, '', '', NULL, NULL, '')", (*place, now)
                )
            before = rows[0]["reached"] if rows else None
            database.execute(
                "UPDATE steps SET reached = coalesce(reached, :reached), game = :game, "
                "helped = CASE WHEN reached IS NULL THEN :helped ELSE helped END, "
                "refused = CASE WHEN refused = '' THEN :refused ELSE refused END, "
                "astray = CASE WHEN reached IS NULL THEN :astray ELSE astray END, "
                "seconds = CASE WHEN :seconds < coalesce(seconds, 1e300) THEN :seconds ELSE seconds END, "
                "speed_up = CASE WHEN :speed_up > coalesce(speed_up, 0) THEN :speed_up ELSE speed_up END "
                "WHERE student = :student AND lesson = :lesson AND step = :step",
                {
                    "student": place[0], "lesson": place[1], "step": place[2],
                    "reached": now if attempt.reached and before is None else None,
                    "helped": int(attempt.helped), "game": attempt.game[:LONGEST_GAME],
                    "refused": "" if before is not None else attempt.refused[:LONGEST_MOVE],
                    "astray": attempt.astray[:LONGEST_MOVE],
                    "seconds": attempt.seconds, "speed_up": attempt.speed_up,
                },
            )  # fmt: skip
            database.execute(
                "UPDATE students SET seen = ?, lesson = ?, step = ? WHERE id = ?", (now, *place[1:], place[0])
            )
            _touch(database, student.code)

    @twice
    def show(self, student: Student, game: str, title: str, speed_up: float | None) -> None:
        """Have the teacher look at a game. Raises Refused."""
        values = (student.id, game[:LONGEST_GAME], words.plain(title, words.LONGEST_TITLE), speed_up)
        with self._transaction() as database:
            others = "SELECT count(*) FROM games WHERE student = ? AND game != ?"
            if _count(database, others, *values[:2]) >= MOST_GAMES:
                raise Refused(f"You show {MOST_GAMES} games: take one back first.")
            if _count(database, "SELECT count(*) FROM students WHERE id = ?", student.id):
                database.execute(
                    "INSERT OR REPLACE INTO games VALUES (?, ?, ?, ?, ?)", (*values, time.time())
                )
                _touch(database, student.code)

    def take_back(self, student: Student, game: str) -> None:
        """Show a game no more."""
        self._ask("DELETE FROM games WHERE student = ? AND game = ?", (student.id, game))

    # ------------------------------------------------------------------ rows as values

    def _with_assignments(self, row: sqlite3.Row) -> Class:
        given = self._ask(
            "SELECT id, kind, target, title FROM assignments WHERE code = ? ORDER BY id", (row["code"],)
        )
        return Class(row["code"], row["title"], row["used"], tuple(Assignment(*each) for each in given))

    def _whole_student(self, row: sqlite3.Row) -> Student:
        steps = self._ask(
            "SELECT lesson, step, opened, reached, helped, refused, astray, speed_up, seconds, game "
            "FROM steps WHERE student = ? ORDER BY opened",
            (row["id"],),
        )
        games = self._ask(
            "SELECT game, title, speed_up, shown FROM games WHERE student = ? ORDER BY shown DESC",
            (row["id"],),
        )
        taken = tuple(StepTaken(**{**dict(each), "helped": bool(each["helped"])}) for each in steps)
        return Student(**dict(row), steps=taken, games=tuple(ShownGame(**dict(each)) for each in games))


def _count(database: sqlite3.Connection, query: str, *values: object) -> int:
    return int(database.execute(query, values).fetchone()[0])


def _touch(database: sqlite3.Connection, code: str) -> None:
    now = time.time()
    database.execute("UPDATE classes SET used = ? WHERE code = ? AND used < ?", (now, code, now - TOUCHED))
