"""A student in a Dojo of their own, whose teacher's is another one: over a socket, and what comes of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dojo_core.classes import elsewhere as elsewhere_module
from dojo_core.classes.desk import MOST_TOLD, answer, attempt_in
from dojo_core.classes.elsewhere import TOKEN, Elsewhere, ask, shown
from dojo_core.classes.store import LESSON, LINK, Classes
from dojo_core.classes.throttle import ONE, Throttle
from dojo_core.classes.view import Titles
from dojo_core.school.attempts import Attempt
from dojo_core.school.school import Glossary, School
from dojo_core.service.refused import Refused

ADA, LINKED = "browser:ada", "1.AAAA-bb_c"
STEP = Attempt("02-fusion", "one-loop-for-both", game="learn-1")


class Teachers:
    """A teacher's Dojo behind a socket, whose class was given a lesson and a page."""

    def __init__(self, folder: Path) -> None:
        self.classes, self.wrong = Classes(folder / "classes.sqlite"), Throttle()
        of, _ = self.classes.make("Compilers", "browser:teacher")
        self.code = of.code
        self.classes.assign(of.code, LESSON, "02-fusion", "Fusion")
        self.classes.assign(of.code, LINK, "https://example.org/", "A page")
        self.answers, self.login = True, False
        teachers, titles = self, Titles(School((), Glossary(()), ()))

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                what, token = self.path.rpartition("/")[2], self.headers.get(TOKEN, "")
                status, told = 503, dict[str, Any]()
                if teachers.answers:
                    about = teachers.classes, teachers.wrong, titles
                    status, told = answer(*about, what, message, token, "there", teachers.login)
                body = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def steps(self) -> dict[str, bool]:
        return {
            each.step: each.reached is not None
            for one in self.classes.roster(self.code)
            for each in one.steps
        }


@pytest.fixture
def teachers(tmp_path: Path) -> Iterator[Teachers]:
    made = Teachers(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()
    made.classes.close()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    """What the student's Dojo keeps; its thread tells nothing: tests do (``tell``)."""
    monkeypatch.setattr(Elsewhere, "_begin", lambda self: None)
    made = Elsewhere(lambda game: LINKED, tmp_path / "joined.sqlite")
    yield made
    made.close()


def test_what_is_given_is_told_and_nothing_else(teachers: Teachers, own: Elsewhere) -> None:
    joined = own.join(ADA, f"{teachers.address}/?x=1", f"{teachers.code[:4]}-{teachers.code[4:]}", "Ada")
    assert (joined.address, joined.told["name"]) == (teachers.address, "Ada")
    assert [each["title"] for each in joined.told["assignments"]] == ["Fusion", "A page"]
    own.saw(ADA, Attempt("01-scopes", "one-line-one-loop"))
    own.saw("browser:somebody else here", STEP)
    own.saw(ADA, STEP)
    assert own.tell() and own.tell()
    (student,) = teachers.classes.roster(teachers.code)
    assert [(each.step, each.game) for each in student.steps] == [(STEP.step, LINKED)]
    own.show(ADA, joined, "a-game", "My game", 2.5)
    (student,) = teachers.classes.roster(teachers.code)
    assert [(each.game, each.title, each.speed_up) for each in student.games] == [(LINKED, "My game", 2.5)]
    (joined,) = own.of(ADA)
    assert [each["id"] for each in joined.told["games"]] == [LINKED]
    own.take_back(ADA, joined, LINKED)
    own.leave(ADA, joined)
    assert teachers.classes.roster(teachers.code) == [] and own.of(ADA) == []


def test_what_was_reached_without_a_network_is_told_later(
    teachers: Teachers, own: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.join(ADA, teachers.address, teachers.code, "Ada")
    teachers.answers = False
    for number in range(MOST_TOLD + 3):
        own.saw(ADA, Attempt("02-fusion", f"step-{number}"))
    own.saw(ADA, Attempt("02-fusion", "step-7", reached=True))  # of each step the last state
    assert not own.tell() and "503" in own.of(ADA)[0].fault
    own.close()
    teachers.answers = True
    again = Elsewhere(lambda game: "", own.path)  # another day
    assert again.tell() and again.of(ADA)[0].fault == ""
    again.close()
    steps = teachers.steps()
    assert len(steps) == MOST_TOLD + 3 and [name for name, reached in steps.items() if reached] == ["step-7"]
    own._open()


def test_the_thread_tells_it_by_itself(
    teachers: Teachers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere_module, "SOON", 0.01)
    own = Elsewhere(lambda game: "", tmp_path / "joined.sqlite")
    own.join(ADA, teachers.address, teachers.code, "Ada")
    own.saw(ADA, STEP)
    end = time.monotonic() + 300
    while not teachers.steps():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
    own.close()


def test_who_was_deleted_is_told_so_and_forgotten_here(teachers: Teachers, own: Elsewhere) -> None:
    own.join(ADA, teachers.address, teachers.code, "Ada")
    (student,) = teachers.classes.roster(teachers.code)
    teachers.classes.remove_student(teachers.code, student.id)
    own.saw(ADA, STEP)
    assert own.tell() and own.of(ADA) == []


def test_past_a_login_a_student_who_joined_there_comes_with_a_token(
    teachers: Teachers, own: Elsewhere
) -> None:
    teachers.login = True
    with pytest.raises(Refused, match="join the class in a browser there"):
        own.join(ADA, teachers.address, teachers.code, "Ada")
    classes = teachers.classes
    account = classes.join(teachers.code, "Ada", "login:ada@example.org")
    older, token = classes.new_token(account), classes.new_token(account)
    for worthless in (older, "guessed"):
        with pytest.raises(Refused, match="replaced by a newer one"):
            own.join(ADA, teachers.address, teachers.code, "", worthless)
    joined = own.join(ADA, teachers.address, teachers.code, "", token)
    assert joined.told["name"] == "Ada"
    own.saw(ADA, STEP)
    assert own.tell()
    (student,) = classes.roster(teachers.code)  # one student, in the browser and here
    assert (student.id, [each.step for each in student.steps]) == (account.id, [STEP.step])
    classes.remove_student(teachers.code, student.id)
    assert classes.new_token(student) == "" and classes.student_of(token) is None
    assert own.tell() and own.of(ADA) == []


def test_refusals_are_the_other_dojos_words_and_codes_cannot_be_guessed(
    teachers: Teachers, own: Elsewhere
) -> None:
    for _ in range(ONE):
        with pytest.raises(Refused, match="letter by letter"):
            ask(teachers.address, "join", {"code": "BCDFGHJK", "name": "Eve"})
    with pytest.raises(Refused, match="wait a minute"):
        own.join(ADA, teachers.address, teachers.code, "Eve")
    teachers.server.shutdown()
    teachers.server.server_close()
    with pytest.raises(Refused, match="does not answer"):
        own.join(ADA, teachers.address, teachers.code, "Ada")
    for address in ("file:///etc/passwd", "ftp://example.org", "nonsense"):
        with pytest.raises(Refused, match="address of the web"):
            own.join(ADA, address, teachers.code, "Ada")


@pytest.mark.parametrize(
    "told",
    [
        None, [], "x", {}, {"lesson": "a"}, {"lesson": "../a", "step": "b"},
        {"lesson": "a", "step": "b" * 90}, {"lesson": ["a"], "step": "b"},
    ],
)  # fmt: skip
def test_an_attempt_that_makes_no_sense_is_none(told: Any) -> None:
    assert attempt_in(told) is None


def test_parts_that_make_no_sense_are_left_out() -> None:
    told = {
        "lesson": "a", "step": "b", "reached": "yes", "helped": 1, "refused": "<b>\x00\u202e", "astray": 5,
        "speed_up": "2", "seconds": float("inf"), "game": "javascript:x",
    }  # fmt: skip
    assert attempt_in(told) == Attempt("a", "b", refused="<b>", astray="5")
    assert attempt_in({"lesson": "a", "step": "b", "game": LINKED, "seconds": 2}) == Attempt(
        "a", "b", seconds=2.0, game=LINKED
    )


def test_what_another_dojo_says_is_bounded_and_its_links_lead_to_the_web() -> None:
    entries = [
        {"kind": "link", "title": "x" * 500, "href": "javascript:alert(1)"},
        {"kind": "link", "title": "x" * 500, "href": "https://example.org/"},
        {"kind": "script", "title": "x"}, {"kind": "lesson", "lesson": 5, "done": -3, "of": "many"}, "x",
    ]  # fmt: skip
    told = shown(
        {"title": 7, "assignments": entries * 100, "games": [{"id": "g", "speed_up": "fast"}], "name": "A\n"}
    )
    assert len(told["assignments"]) <= 50 and told["title"] == "A class" and told["name"] == "A"
    assert {each.get("href") for each in told["assignments"]} == {"https://example.org/", None}
    assert told["games"] == [{"id": "g", "title": "", "speed_up": None}]
    assert shown({"assignments": 5, "games": "x"})["assignments"] == []
