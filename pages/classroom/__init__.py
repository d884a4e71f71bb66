"""Class: a teacher makes one and sees how its students fare; a student joins by its code, sees their own.

The address names the class, ``code``. ``key`` in it, a teacher's secret, makes this browser a teacher's and
is taken out of the address at once. Who somebody is, the server knows by their browser or login
(pages/access.py): nothing that the page sends says it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import streamlit as st

from dojo_core.classes import view, words
from dojo_core.classes.store import KEPT_DAYS, LESSON, LINK, PUZZLES, Class, Student
from dojo_core.measure.database import DatabaseFault
from dojo_core.ownership import LOGIN, VISITOR
from dojo_core.school.school import School
from dojo_core.service import Refused
from dojo_core.service.saved_games import cards
from pages import shell
from pages.classroom.component import class_page
from pages.learn import the_tutor
from pages.shared import the_classes, the_owner, the_service, wrong_codes

log = logging.getLogger("dojo.pages.classroom")

POLL = 4.0  # seconds between two looks at a class that is taught
LISTED = 30  # games that a student may show
NO_COOKIES = (
    "This browser keeps no cookies for the Dojo, so that nobody could know you again. Allow them for this "
    "page, and load it again."
)

Action = dict[str, Any]


def page() -> None:
    teaching = bool(_shown_class()) and _taught(_shown_class()) is not None
    _draw.__qualname__ = "the page Class"  # a timer of another page, still under way, does not draw it
    with shell.content():
        st.fragment(run_every=POLL if teaching else None)(_draw)()


def _draw() -> None:
    state, owner = st.session_state, the_owner()
    told: dict[str, Any] = {"fault": "", "said": ""}
    action = state.pop("class_action", None)
    try:
        if owner.startswith(VISITOR):
            raise Refused(NO_COOKIES)
        key = st.query_params.get("key")
        if key:
            _come_with(key, owner)
        if action is not None:
            told["said"] = _act(action, owner) or ""
    except (Refused, DatabaseFault) as refusal:
        told["fault"] = str(refusal)
    told |= _shown(owner)

    def came() -> None:
        sent = (state.get("classroom") or {}).get("action")
        if isinstance(sent, dict) and sent.get("n") != state.get("class_did"):  # it can come twice
            state.class_did = sent.get("n")
            state.class_action = sent

    class_page(key="classroom", data=told, on_action_change=came)


# ---------------------------------------------------------------------- what is shown


def _shown_class() -> str:
    return words.read_code(st.query_params.get("code", ""))


def _taught(code: str) -> Class | None:
    try:
        return the_classes().taught(code, the_owner())
    except Refused:
        return None


def _shown(owner: str) -> dict[str, Any]:
    """The class of the address as whoever looks may see it; without one, the classes that are theirs."""
    classes, code = the_classes(), _shown_class()
    titles = view.Titles(the_tutor().school)
    joined = classes.memberships(owner)
    of = _taught(code) if code else None
    if of is not None:
        lessons = [_lesson_json(each) for each in the_tutor().school.lessons]
        shown = view.taught(of, classes.roster(code), titles)
        file = st.session_state.pop("class_csv", None)
        return {
            "view": "teacher", "class": shown, "lessons": lessons, "file": file,
            "key": st.session_state.pop("class_key", ""), "login": owner.startswith(LOGIN),
        }  # fmt: skip
    student = next((each for each in joined if each.code == code), None)
    given = classes.of_code(code) if student is not None else None
    if student is not None and given is not None:
        shown = view.joined(given, student, titles)
        games = cards(the_service().recent_games(LISTED, owner))
        return {"view": "student", "class": shown, "mine": games}
    names = [classes.of_code(each.code) for each in joined]
    return {
        "view": "start",
        "code": words.spelled(code) if code else st.query_params.get("code", "")[:20],
        "taught": [{"code": each.code, "title": each.title} for each in classes.taught_by(owner)],
        "joined": [{"code": each.code, "title": each.title} for each in names if each is not None],
        "kept_days": KEPT_DAYS,
    }


def _lesson_json(lesson: Any) -> dict[str, Any]:
    steps = [{"id": step.id, "title": step.title} for step in lesson.steps]
    return {"id": lesson.id, "title": lesson.title, "puzzles": lesson.puzzles, "steps": steps}


# ---------------------------------------------------------------------- what is done


def _come_with(key: str, owner: str) -> None:
    """A teacher's link: this browser teaches the class from now on."""
    found = _guarded(lambda: the_classes().admit(key[:100], owner))
    if found is None:
        st.query_params.pop("key")
        raise Refused(
            "This teacher's link opens no class: it was replaced by a newer one, or the class is over."
        )
    shell.readdress(key=None, code=found.code)


def _guarded(look: Callable[[], Class | None]) -> Class | None:
    """What a code or key opens; whoever is wrong too often is refused for a while."""
    client = st.context.ip_address or "here"
    wrong_codes().check(client)
    found = look()
    if found is None:
        wrong_codes().wrong(client)
    return found


def _act(action: Action, owner: str) -> str | None:
    """A press. What is said of it, or None. Anybody can write to a WebSocket: who acts is checked here."""
    classes = the_classes()

    def text(name: str, longest: int = 200) -> str:
        value = action.get(name, "")
        return value[:longest] if isinstance(value, str) else ""

    match text("kind"):
        case "make":
            made, st.session_state.class_key = classes.make(text("title"), owner)
            shell.readdress(code=made.code)
        case "join":
            code = words.read_code(text("code"))
            if _guarded(lambda: classes.of_code(code) if code else None) is None:
                raise Refused("There is no class of this code: look at it again, letter by letter.")
            classes.join(code, text("name"), owner)
            shell.readdress(code=code)
        case "go":
            shell.readdress(code=text("code") or None)
        case kind:
            code = _shown_class()
            if _taught(code) is not None:
                return _teach(kind, code, text, action, owner)
            student = next((each for each in classes.memberships(owner) if each.code == code), None)
            if student is not None:
                return _study(kind, student, text, owner)
    return None


def _teach(kind: str, code: str, text: Callable[..., str], action: Action, owner: str) -> str | None:
    classes, school = the_classes(), the_tutor().school
    match kind:
        case "lesson":
            _give(school, code, text("lesson"), text("step"))
        case "link":
            address = words.web_address(text("address", words.LONGEST_ADDRESS + 1))
            classes.assign(code, LINK, address, text("title") or address)
        case "unassign":
            number = action.get("id")
            classes.unassign(code, number if isinstance(number, int) else -1)
        case "remove":
            classes.remove_student(code, text("student"))
            return "Deleted, with all that was kept of them here."
        case "key":
            st.session_state.class_key = classes.new_key(code, owner)
        case "csv":
            content = view.csv_text(classes.roster(code), view.Titles(school))
            st.session_state.class_csv = {"n": action.get("n"), "name": f"class-{code}.csv", "text": content}
        case "delete":
            classes.delete(code)
            shell.readdress(code=None)
    return None


def _give(school: School, code: str, lesson: str, step: str) -> None:
    found = school.lesson(lesson)
    if found is None:
        raise Refused("There is no such lesson here.")
    named = found.step(step) if step else None
    target = f"{found.id}/{named.id}" if named else found.id
    title = f"{found.title}: {named.title}" if named else found.title
    the_classes().assign(code, PUZZLES if found.puzzles else LESSON, target, title)


def _study(kind: str, student: Student, text: Callable[..., str], owner: str) -> str | None:
    classes = the_classes()
    match kind:
        case "show":
            own = cards(the_service().recent_games(LISTED, owner))
            game = next((each for each in own if each["id"] == text("game")), None)
            if game is None:
                raise Refused("Only a game of your own can be shown, and it has moves.")
            classes.show(student, game["id"], game["title"], game["best"])
            return "Your teacher sees this game now, as it goes on."
        case "take_back":
            classes.take_back(student, text("game"))
        case "open":
            # The board of Learn, in this session: no page is loaded for it.
            from pages.learn import the_session

            session = the_session()
            the_tutor().open(session, text("lesson"), text("step"))
            shell.go("learn")
        case "leave":
            classes.remove_student(student.code, student.id)
            shell.readdress(code=None)
    return None
