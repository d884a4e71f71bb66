"""The page as a teacher has it: what is shown of a class, and what its buttons do."""

from __future__ import annotations

import streamlit as st

from dojo_core.classes import view, words
from dojo_core.classes.store import LESSON, LINK, PUZZLES, Class
from dojo_core.ownership import LOGIN
from dojo_core.school.lesson import Lesson
from dojo_core.service import Refused
from dojo_core.service.view import Json
from pages import shell
from pages.classroom.component import Press
from pages.learn import the_tutor
from pages.shared import the_classes


def taught(code: str, owner: str) -> Class | None:
    """The class of that code, where it is the owner's to teach."""
    try:
        return the_classes().taught(code, owner)
    except Refused:
        return None


def shown(of: Class, owner: str) -> Json:
    state, school = st.session_state, the_tutor().school
    return {
        "view": "teacher",
        "class": view.taught(of, the_classes().roster(of.code), view.Titles(school)),
        "lessons": [_lesson(each) for each in school.lessons],
        "file": state.pop("class_csv", None),
        "key": state.pop("class_key", ""),
        "login": owner.startswith(LOGIN),
    }


def _lesson(lesson: Lesson) -> Json:
    steps = [{"id": step.id, "title": step.title} for step in lesson.steps]
    return {"id": lesson.id, "title": lesson.title, "puzzles": lesson.puzzles, "steps": steps}


def act(press: Press, of: Class, owner: str) -> str:
    """What is said of a press. Raises Refused."""
    classes, state = the_classes(), st.session_state
    match press.kind:
        case "lesson":
            _give(of, press.text("lesson"), press.text("step"))
        case "link":
            address = words.web_address(press.text("address", words.LONGEST_ADDRESS + 1))
            classes.assign(of.code, LINK, address, press.text("title") or address)
        case "unassign":
            classes.unassign(of.code, press.number("id"))
        case "remove":
            classes.remove_student(of.code, press.text("student"))
            return "Deleted, with all that was kept of them here."
        case "key":
            state.class_key = classes.new_key(of.code, owner)
        case "csv":
            content = view.csv_text(classes.roster(of.code), view.Titles(the_tutor().school))
            state.class_csv = {"n": press.name, "name": f"class-{of.code}.csv", "text": content}
        case "delete":
            classes.delete(of.code)
            shell.readdress(code=None)
    return ""


def _give(of: Class, lesson: str, step: str) -> None:
    found = the_tutor().school.lesson(lesson)
    if found is None:
        raise Refused("There is no such lesson here.")
    named = found.step(step) if step else None
    target = f"{found.id}/{named.id}" if named else found.id
    title = f"{found.title}: {named.title}" if named else found.title
    the_classes().assign(of.code, PUZZLES if found.puzzles else LESSON, target, title)
