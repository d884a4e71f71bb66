"""Classes at other Dojos: a student works here, and this Dojo tells the teacher's how they fare.

What is to be told waits in a database until the other Dojo has heard it: of each step only its last state, so
that a lesson without a network is told later. One thread tells it. Only what the class was given goes out.
"""

from __future__ import annotations

import http.client
import json
import logging
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.classes import words
from dojo_core.classes.desk import MOST_TOLD, told
from dojo_core.classes.store import KEPT_DAYS, LESSON, LINK, MOST_ASSIGNMENTS, MOST_GAMES, PUZZLES
from dojo_core.measure.database import Database, DatabaseFault, twice
from dojo_core.measure.places import data_directory
from dojo_core.school.attempts import Attempt
from dojo_core.service.refused import Refused
from dojo_core.service.view import Json

log = logging.getLogger(__name__)

TOKEN = "dojo-student"  # the header that says who tells
SECONDS = 10.0  # for an answer
LARGEST = 1 << 20  # bytes of it
SOON, LATER = 2.0, 60.0  # seconds between two tries: the first ones, and where nobody answers

_SCHEMA = """
CREATE TABLE IF NOT EXISTS joined (
    owner TEXT NOT NULL, address TEXT NOT NULL, code TEXT NOT NULL, token TEXT NOT NULL, told TEXT NOT NULL,
    fault TEXT NOT NULL, PRIMARY KEY (owner, address, code)
);
CREATE TABLE IF NOT EXISTS waiting (
    owner TEXT NOT NULL, address TEXT NOT NULL, code TEXT NOT NULL, lesson TEXT NOT NULL, step TEXT NOT NULL,
    attempt TEXT NOT NULL, since REAL NOT NULL, PRIMARY KEY (owner, address, code, lesson, step)
);
"""

Place = tuple[str, str, str]  # owner, address, code


@dataclass(frozen=True)
class Membership:
    """A class elsewhere as it was told last; ``fault``: why it could not be told of since."""

    address: str
    code: str
    told: Json
    fault: str


class Gone(Refused):
    """The other Dojo knows this student no more."""


class Elsewhere(Database):
    """Safe to share between threads. Close it when done.

    ``as_link`` gives the text of a link that holds a game, by its id here, or "" where that is too long.
    """

    what = "classes at other Dojos"

    def __init__(self, as_link: Callable[[str], str], path: Path | None = None, mends: bool = True) -> None:
        super().__init__(path if path is not None else data_directory() / "joined.sqlite", mends)
        self._as_link = as_link
        self._wake, self._closed = threading.Event(), False
        self._thread: threading.Thread | None = None
        if self._ask("SELECT 1 FROM waiting LIMIT 1"):
            self._begin()

    def _make(self, connection: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)

    def _tables(self) -> dict[str, tuple[str, ...]]:
        return {
            "joined": ("owner", "address", "code", "token", "told", "fault"),
            "waiting": ("owner", "address", "code", "lesson", "step", "attempt", "since"),
        }

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(1)
        super().close()

    # ------------------------------------------------------------------ what students do

    def join(self, owner: str, address: str, code: str, name: str, token: str = "") -> Membership:
        """Become a student of a class at another Dojo; with ``token``, the one who was given it there. Raises
        Refused."""
        base = words.web_address(address).split("?")[0].split("#")[0].rstrip("/")
        answer = ask(base, "join", {"code": code, "name": name}, token)
        given, of = answer.get("token"), shown(answer)
        if not isinstance(given, str) or not 16 <= len(given) <= 64 or not of["code"]:
            raise Refused(f"What answers at {base} is no Dojo with classes.")
        place = (owner, base, of["code"])
        self._ask("INSERT OR REPLACE INTO joined VALUES (?, ?, ?, ?, ?, '')", (*place, given, json.dumps(of)))
        return next(each for each in self.of(owner) if (each.address, each.code) == place[1:])

    def of(self, owner: str) -> list[Membership]:
        """The classes elsewhere that an owner joined."""
        rows = self._ask("SELECT address, code, told, fault FROM joined WHERE owner = ?", (owner,))
        return [Membership(row[0], row[1], json.loads(row[2]), row[3]) for row in rows]

    def show(self, owner: str, of: Membership, game: str, title: str, speed_up: float | None) -> None:
        """Have the teacher look at a game, as it is now. Raises Refused."""
        link = self._as_link(game)
        if not link:
            raise Refused("This game is too long for a link: send its .dojo file to your teacher.")
        self._say((owner, of.address, of.code), {"show": link, "title": title, "speed_up": speed_up})

    def take_back(self, owner: str, of: Membership, link: str) -> None:
        """Show a game no more. Raises Refused."""
        self._say((owner, of.address, of.code), {"take_back": link})

    def leave(self, owner: str, of: Membership) -> None:
        """Leave a class, which then keeps nothing of the student. Raises Refused where nobody answers."""
        place = (owner, of.address, of.code)
        with suppress(Gone):
            ask(of.address, "leave", {}, self._token(place))
        self._forget(place)

    def look_again(self) -> None:
        """Somebody looks at their class: what is given may have changed."""
        self._begin()

    @twice
    def saw(self, owner: str, attempt: Attempt) -> None:
        """The witness of the tutor (reports.py): what a class elsewhere was given is told there soon."""
        for each in self.of(owner):
            given = [(one.get("lesson"), one.get("step")) for one in each.told["assignments"]]
            if (attempt.lesson, "") in given or (attempt.lesson, attempt.step) in given:
                place = (owner, each.address, each.code, attempt.lesson, attempt.step)
                values = (*place, json.dumps(asdict(attempt)), time.time())
                self._ask("INSERT OR REPLACE INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?)", values)
                self._begin()

    # ------------------------------------------------------------------ telling it

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="telling classes", daemon=True)
                self._thread.start()
            self._wake.set()

    def _run(self) -> None:
        wait: float | None = None
        while not self._closed:
            self._wake.wait(wait)
            self._wake.clear()
            if self._closed:
                return
            try:
                heard = self.tell()
            except DatabaseFault as fault:
                log.warning("%s", fault)
                heard = False
            wait = None if heard else min(LATER, 2 * wait if wait else SOON)
            time.sleep(0 if self._closed else SOON / 4)  # what comes in a row goes out together

    def tell(self) -> bool:
        """Tell what waits, and hear what is given now; has every Dojo answered?"""
        heard = True
        for row in self._ask("SELECT owner, address, code FROM joined"):
            place = (row[0], row[1], row[2])
            try:
                while self._tell(place):
                    pass
            except Gone:
                self._forget(place)
            except Refused as refusal:
                heard = False
                where = "owner = ? AND address = ? AND code = ?"
                self._ask(f"UPDATE joined SET fault = ? WHERE {where}", (str(refusal), *place))
        return heard

    def _tell(self, place: Place) -> bool:
        """One message. Is there more?"""
        rows = self._ask(
            "SELECT lesson, step, attempt, since FROM waiting WHERE owner = ? AND address = ? AND code = ? "
            "ORDER BY since LIMIT ?",
            (*place, MOST_TOLD),
        )
        attempts = [Attempt(**json.loads(row["attempt"])) for row in rows]
        self._say(place, {"attempts": [told(each, self._as_link(each.game)) for each in attempts]})
        for row in rows:  # what changed meanwhile waits on
            self._ask(
                "DELETE FROM waiting WHERE owner = ? AND address = ? AND code = ? AND lesson = ? "
                "AND step = ? AND since = ?",
                (*place, row["lesson"], row["step"], row["since"]),
            )
        return len(rows) == MOST_TOLD

    def _say(self, place: Place, message: Mapping[str, object]) -> None:
        answer = ask(place[1], "tell", message, self._token(place))
        self._ask(
            "UPDATE joined SET told = ?, fault = '' WHERE owner = ? AND address = ? AND code = ?",
            (json.dumps(shown(answer)), *place),
        )

    def _token(self, place: Place) -> str:
        rows = self._ask("SELECT token FROM joined WHERE owner = ? AND address = ? AND code = ?", place)
        if not rows:
            raise Gone("You left this class.")
        return str(rows[0][0])

    @twice
    def _forget(self, place: Place) -> None:
        with self._transaction() as database:
            for table in ("waiting", "joined"):
                database.execute(f"DELETE FROM {table} WHERE owner = ? AND address = ? AND code = ?", place)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token along."""

    def redirect_request(self, *_: Any) -> None:
        return None


def ask(base: str, what: str, message: Mapping[str, object], token: str = "") -> Json:
    """What another Dojo answers to a message (desk.py). Raises Refused with its words, or why there are none;
    Gone where it knows the student no more."""
    request = urllib.request.Request(
        f"{base}/classes/{what}",
        json.dumps(message).encode(),
        {"Content-Type": "application/json", **({TOKEN: token} if token else {})},
    )
    host = urlsplit(base).hostname or ""
    here = host == "localhost" or host.startswith("127.")
    handlers = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if here else [])]
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=SECONDS) as response:
            return read_object(response.read(LARGEST + 1), LARGEST)
    except urllib.error.HTTPError as error:
        with error:
            try:
                words_of_it = str(read_object(error.read(LARGEST + 1), LARGEST).get("error", ""))[:300]
            except (NotJson, OSError, http.client.HTTPException):
                words_of_it = ""
        fault = Gone if error.code == 410 else Refused
        raise fault(
            words_of_it or f"What answers at {base} is no Dojo with classes ({error.code})."
        ) from None
    except NotJson:
        raise Refused(f"What answers at {base} is no Dojo with classes.") from None
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise Refused(f"The Dojo at {base} does not answer ({why}).") from None


def shown(answer: Json) -> Json:
    """What another Dojo says of a class, as the student's page draws it: each part looked at, and bounded."""

    def text(value: object, longest: int = words.LONGEST_TITLE) -> str:
        return words.plain(value, longest) if isinstance(value, str) else ""

    def count(value: object) -> int:
        return value if isinstance(value, int) and 0 <= value < 10_000 else 0

    def entries(name: str, most: int) -> list[Json]:
        value = answer.get(name)
        return [each for each in value[:most] if isinstance(each, dict)] if isinstance(value, list) else []

    assignments: list[Json] = []
    for number, each in enumerate(entries("assignments", MOST_ASSIGNMENTS)):
        one: Json = {"id": number, "kind": each.get("kind"), "title": text(each.get("title"))}
        try:
            if one["kind"] == LINK:
                assignments.append(one | {"href": words.web_address(str(each.get("href", "")))})
            elif one["kind"] in (LESSON, PUZZLES):
                place = {"lesson": text(each.get("lesson")), "step": text(each.get("step"))}
                done = {"done": count(each.get("done")), "of": count(each.get("of"))}
                assignments.append(one | place | done)
        except Refused:
            continue
    games: list[Json] = [
        {
            "id": text(each.get("id"), 2_048),
            "title": text(each.get("title")),
            "speed_up": each["speed_up"] if isinstance(each.get("speed_up"), float) else None,
        }
        for each in entries("games", MOST_GAMES)
    ]
    return {
        "code": words.read_code(str(answer.get("code", ""))),
        "title": text(answer.get("title")) or "A class",
        "name": text(answer.get("name")),
        "kept_days": count(answer.get("kept_days")) or KEPT_DAYS,
        "kept_until": text(answer.get("kept_until")),
        "assignments": assignments,
        "games": games,
    }
