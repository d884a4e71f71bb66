"""What students say who work in Dojos of their own, and what they are answered: messages in, messages out.

``join`` takes a code and a name and gives a token, which is that student's from then on; or it takes a token
that a student was given on the page Class, the only way past a login. ``tell`` takes what changed and gives
what the student's page shows; ``leave`` deletes the student. A message is somebody else's: each part is
looked at, and what makes no sense is left out.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping

from dojo_core.classes import view, words
from dojo_core.classes.store import LONGEST_GAME, Classes, of_token
from dojo_core.classes.throttle import Throttle
from dojo_core.school.attempts import Attempt
from dojo_core.service.refused import Refused
from dojo_core.service.view import Json
from dojo_core.sharing import is_link

MOST_TOLD = 50  # attempts in a message
NO_STUDENT = "You are no student of this class any more: it is over, or your teacher deleted you."
LOGIN = (
    "This Dojo has a login: join the class in a browser there, and paste the link that its page Class gives "
    "you under “In a Dojo of your own”."
)
NO_TOKEN = "This link was replaced by a newer one, or its student was deleted: get another on the page Class."


def answer(
    classes: Classes,
    wrong: Throttle,
    titles: view.Titles,
    what: str,
    message: Mapping[str, object],
    token: str,
    client: str,
    login: bool = False,
) -> tuple[int, Json]:
    """The status of HTTP and the answer to one message; ``client`` is where it comes from.

    ``wrong`` counts codes that are none; a token is too long to be guessed. ``login``: nobody joins by a code
    alone.
    """
    try:
        if what == "join" and not token:
            if login:
                return 403, {"error": LOGIN}
            return _join(classes, wrong, titles, message, client)
        student = classes.student_of(token)
        of = classes.of_code(student.code) if student is not None else None
        if student is None or of is None:
            return 410, {"error": NO_TOKEN if what == "join" else NO_STUDENT}
        if what == "join":
            return 200, {"token": token, **view.joined(of, student, titles)}
        if what == "leave":
            classes.remove_student(student.code, student.id)
            return 200, {}
        attempts = message.get("attempts")
        for each in attempts[:MOST_TOLD] if isinstance(attempts, list) else []:
            attempt = attempt_in(each)
            if attempt is not None:
                classes.report(student, attempt)
        game, title, faster = message.get("show"), message.get("title"), _number(message.get("speed_up"))
        if _is_game(game):
            classes.show(student, str(game), str(title)[:200], faster)
        withdrawn = message.get("take_back")
        if isinstance(withdrawn, str):
            classes.take_back(student, withdrawn)
        student = classes.student_of(token) or student
        return 200, view.joined(of, student, titles)
    except Refused as refusal:
        return 400, {"error": str(refusal)}


def _join(
    classes: Classes, wrong: Throttle, titles: view.Titles, message: Mapping[str, object], client: str
) -> tuple[int, Json]:
    try:
        wrong.check(client)
    except Refused as refusal:
        return 429, {"error": str(refusal)}
    code = words.read_code(str(message.get("code", "")))
    of = classes.of_code(code) if code else None
    if of is None:
        wrong.wrong(client)
        return 404, {"error": words.NO_CLASS}
    token = secrets.token_urlsafe(24)
    student = classes.join(code, str(message.get("name", "")), of_token(token))
    return 200, {"token": token, **view.joined(of, student, titles)}


def told(attempt: Attempt, game: str) -> Json:
    """An attempt as it travels; ``game``: a link's text that holds its game, or ""."""
    return {
        "lesson": attempt.lesson, "step": attempt.step, "reached": attempt.reached, "helped": attempt.helped,
        "refused": attempt.refused, "astray": attempt.astray, "speed_up": attempt.speed_up,
        "seconds": attempt.seconds, "game": game,
    }  # fmt: skip


def attempt_in(value: object) -> Attempt | None:
    """The attempt that somebody told of; None where that is none."""
    if not isinstance(value, dict):
        return None
    place = [value.get("lesson"), value.get("step")]
    if not all(isinstance(each, str) and re.fullmatch(r"[\w-]{1,80}", each) for each in place):
        return None
    refused, astray = (words.plain(str(value.get(name, ""))[:400], 200) for name in ("refused", "astray"))
    game = value.get("game")
    return Attempt(
        str(place[0]), str(place[1]), value.get("reached") is True, value.get("helped") is True, refused,
        astray, _number(value.get("speed_up")), _number(value.get("seconds")),
        str(game) if _is_game(game) else "",
    )  # fmt: skip


def _is_game(value: object) -> bool:
    """A link's text that holds a game: an id of another Dojo names none here."""
    return (
        isinstance(value, str)
        and is_link(value)
        and bool(re.fullmatch(rf"[\w.-]{{2,{LONGEST_GAME}}}", value))
    )


def _number(value: object) -> float | None:
    sound = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    )
    return float(value) if sound and isinstance(value, int | float) else None
