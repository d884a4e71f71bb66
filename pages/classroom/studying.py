"""The page as a student has it, of a class here or at another Dojo: what is given, and what they show."""

from __future__ import annotations

import streamlit as st

from dojo_core.classes import view
from dojo_core.classes.elsewhere import Membership
from dojo_core.service import Refused
from dojo_core.service.saved_games import cards
from dojo_core.service.view import Json
from pages import shell
from pages.classroom.component import Press
from pages.learn import the_session, the_tutor
from pages.shared import the_classes, the_classes_elsewhere, the_service

LISTED = 30  # games that may be shown
LEFT = "You are in no such class any more."


def shown(code: str, owner: str) -> Json | None:
    """What a student sees of a class here; None where they are in none of that code."""
    classes = the_classes()
    student = next((each for each in classes.memberships(owner) if each.code == code), None)
    of = classes.of_code(code) if student is not None else None
    if student is None or of is None:
        return None
    told = view.joined(of, student, view.Titles(the_tutor().school))
    token = st.session_state.pop("class_token", "")
    return {
        "view": "student", "class": told, "mine": _games(owner), "at": "", "trouble": "", "token": token
    }  # fmt: skip


def shown_elsewhere(at: str, code: str, owner: str) -> Json | None:
    """The same of a class at another Dojo, as that told it last."""
    of = _elsewhere(at, code, owner)
    if of is None:
        return None
    the_classes_elsewhere().look_again()
    given = [
        each if "href" in each else {**each, "href": view.step_link(each["lesson"], each["step"])}
        for each in of.told["assignments"]
    ]
    told = {**of.told, "assignments": given}
    return {
        "view": "student", "class": told, "mine": _games(owner), "at": at, "trouble": of.fault, "token": ""
    }  # fmt: skip


def _elsewhere(at: str, code: str, owner: str) -> Membership | None:
    joined = the_classes_elsewhere().of(owner)
    return next((each for each in joined if (each.address, each.code) == (at, code)), None)


def _games(owner: str) -> list[Json]:
    return cards(the_service().recent_games(LISTED, owner))


def act(press: Press, code: str, owner: str) -> str:
    """What is said of a press at a class here. Raises Refused."""
    classes = the_classes()
    student = next((each for each in classes.memberships(owner) if each.code == code), None)
    if student is None:
        raise Refused(LEFT)
    match press.kind:
        case "show":
            game = _chosen(press, owner)
            classes.show(student, game["id"], game["title"], game["best"])
            return "Your teacher sees this game now, as it goes on."
        case "take_back":
            classes.take_back(student, press.text("game"))
        case "open":
            _open(press)
        case "token":
            st.session_state.class_token = classes.new_token(student)
        case "leave":
            classes.remove_student(student.code, student.id)
            shell.readdress(code=None)
    return ""


def act_elsewhere(press: Press, at: str, code: str, owner: str) -> str:
    """The same at a class at another Dojo."""
    of, elsewhere = _elsewhere(at, code, owner), the_classes_elsewhere()
    if of is None:
        raise Refused(LEFT)
    match press.kind:
        case "show":
            game = _chosen(press, owner)
            elsewhere.show(owner, of, game["id"], game["title"], game["best"])
            return "Your teacher sees this game now, as it is at this moment."
        case "take_back":
            elsewhere.take_back(owner, of, press.text("game", 2_048))
        case "open":
            _open(press)
        case "leave":
            elsewhere.leave(owner, of)
            shell.readdress(code=None, at=None)
    return ""


def _chosen(press: Press, owner: str) -> Json:
    game = next((each for each in _games(owner) if each["id"] == press.text("game")), None)
    if game is None:
        raise Refused("Only a game of your own can be shown, and it has moves.")
    return game


def _open(press: Press) -> None:
    """A step on the board of Learn, in this session: no page is loaded for it."""
    session = the_session()
    the_tutor().open(session, press.text("lesson"), press.text("step"))
    shell.go("learn")
