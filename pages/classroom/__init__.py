"""Class: a teacher makes one and sees how its students fare; a student joins by its code, sees their own.

The address names the class, ``code``, and the Dojo that it is at where that is another one, ``at``. ``key``
in it, a teacher's secret, makes this browser a teacher's and is taken out of the address at once. Who
somebody is, the server knows by their browser or login (pages/access.py), whatever the page sends.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dojo_core.classes import words
from dojo_core.classes.store import KEPT_DAYS, Class
from dojo_core.measure.database import DatabaseFault
from dojo_core.ownership import VISITOR
from dojo_core.service import Refused
from dojo_core.service.view import Json
from pages import shell
from pages.access import is_private
from pages.classroom import studying, teaching
from pages.classroom.component import Press, class_page
from pages.shared import the_classes, the_classes_elsewhere, the_owner, wrong_codes

POLL, ELSEWHERE_POLL = 4.0, 15.0  # seconds between two looks at a class that is taught, and at one elsewhere
NO_COOKIES = (
    "This browser keeps no cookies for the Dojo, so that nobody could know you again. Allow them for this "
    "page, and load it again."
)
JOIN_THERE = "That class is at another Dojo: open the link that you were given, and join there."


def page() -> None:
    _draw.__qualname__ = "the page Class"  # a timer of another page, still under way, does not draw it
    poll = None
    if _code():
        poll = ELSEWHERE_POLL if _at() else POLL if teaching.taught(_code(), the_owner()) else None
    with shell.content():
        st.fragment(run_every=poll)(_draw)()


def _draw() -> None:
    state, owner = st.session_state, the_owner()
    told: Json = {"fault": "", "said": ""}
    sent = state.pop("class_action", None)
    try:
        if owner.startswith(VISITOR):
            raise Refused(NO_COOKIES)
        if st.query_params.get("key"):
            _come_with(st.query_params["key"], owner)
        if sent is not None:
            told["said"] = _act(Press(sent), owner)
    except (Refused, DatabaseFault) as refusal:
        told["fault"] = str(refusal)
    told |= _shown(owner)

    def came() -> None:
        sent = (state.get("classroom") or {}).get("action")
        if isinstance(sent, dict) and sent.get("n") != state.get("class_did"):  # it can come twice
            state.class_did = sent.get("n")
            state.class_action = sent

    class_page(key="classroom", data=told, on_action_change=came)


def _code() -> str:
    return words.read_code(st.query_params.get("code", ""))


def _at() -> str:
    return str(st.query_params.get("at", ""))


def _shown(owner: str) -> Json:
    """The class of the address as whoever looks may see it; without one, the classes that are theirs."""
    classes, code = the_classes(), _code()
    if _at():
        shown = studying.shown_elsewhere(_at(), code, owner)
    else:
        of = teaching.taught(code, owner)
        shown = teaching.shown(of, owner) if of is not None else studying.shown(code, owner)
    if shown is not None:
        return shown
    joined = [classes.of_code(each.code) for each in classes.memberships(owner)]
    here = [{"code": each.code, "title": each.title, "at": ""} for each in joined if each is not None]
    elsewhere = the_classes_elsewhere().of(owner)
    return {
        "view": "start",
        "code": words.spelled(code) if code else st.query_params.get("code", "")[:20],
        "taught": [{"code": each.code, "title": each.title, "at": ""} for each in classes.taught_by(owner)],
        "joined": here
        + [{"code": each.code, "title": each.told["title"], "at": each.address} for each in elsewhere],
        "kept_days": KEPT_DAYS,
    }


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


def _act(press: Press, owner: str) -> str:
    """What is said of a press. Anybody can write to a WebSocket: who acts is checked here."""
    match press.kind:
        case "make":
            made, st.session_state.class_key = the_classes().make(press.text("title"), owner)
            shell.readdress(code=made.code, at=None)
        case "join":
            _join(press, owner)
        case "go":
            shell.readdress(
                code=press.text("code") or None, at=press.text("at", words.LONGEST_ADDRESS) or None
            )
    if _at():
        return studying.act_elsewhere(press, _at(), _code(), owner)
    of = teaching.taught(_code(), owner)
    return teaching.act(press, of, owner) if of is not None else studying.act(press, _code(), owner)


def _join(press: Press, owner: str) -> None:
    code, at = words.read_code(press.text("code")), press.text("at", words.LONGEST_ADDRESS)
    if not at:
        if _guarded(lambda: the_classes().of_code(code) if code else None) is None:
            raise Refused(words.NO_CLASS)
        the_classes().join(code, press.text("name"), owner)
        shell.readdress(code=code)
    if not is_private():  # nobody has a server for others ask at addresses of theirs
        raise Refused(JOIN_THERE)
    joined = the_classes_elsewhere().join(owner, at, code, press.text("name"), press.text("token"))
    shell.readdress(code=joined.code, at=joined.address)
