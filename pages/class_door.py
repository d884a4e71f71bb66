"""Where students' own Dojos speak with a teacher's: ``POST /classes/join``, ``tell`` and ``leave``.

What comes and what is answered, dojo_core/classes/desk.py says. A token comes in a header, which no page of
another site can send.
"""

from __future__ import annotations

import json
import logging

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dojo_core.bounded_json import NotJson, read_object
from dojo_core.measure.database import DatabaseFault
from pages.access import has_login
from pages.door import base_path, body_of

log = logging.getLogger("dojo.pages.class_door")

LONGEST = 1 << 18  # bytes of a message
WHAT = ("join", "tell", "leave")
FAULT = "A fault of that Dojo, noted in its log."


def _answer(what: str, token: str, body: bytes, client: str) -> tuple[int, dict[str, object]]:
    from dojo_core.classes import desk  # with all that plays: not before the app serves anybody
    from dojo_core.classes.view import Titles
    from pages.learn import the_tutor
    from pages.shared import the_classes, wrong_codes

    try:
        message = read_object(body, LONGEST)
        titles = Titles(the_tutor().school)
        return desk.answer(the_classes(), wrong_codes(), titles, what, message, token, client, has_login())
    except NotJson as fault:
        return 400, {"error": f"The message cannot be read: {fault}."}
    except DatabaseFault as fault:
        log.warning("%s", fault)
    except Exception:
        log.exception("a message of another Dojo failed")
    return 500, {"error": FAULT}


async def _class(request: Request) -> Response:
    from dojo_core.classes.elsewhere import TOKEN

    what, client = request.path_params["what"], request.client
    if what not in WHAT:
        return Response("{}", 404, media_type="application/json")
    body = await body_of(request, LONGEST)
    if body is None:
        return Response("{}", 413, media_type="application/json")
    token, host = request.headers.get(TOKEN, ""), client.host if client is not None else "here"
    status, answer = await run_in_threadpool(_answer, what, token, body, host)
    return Response(json.dumps(answer), status, {"Cache-Control": "no-store"}, "application/json")


def routes() -> list[Route]:
    """Where the app serves them."""
    return [Route(f"{base_path()}/classes/{{what}}", _class, methods=["POST"])]
