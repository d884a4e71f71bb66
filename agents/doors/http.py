"""The calls as JSON over HTTP: ``POST /v1/calls/NAME``. What is answered, openapi.py describes."""

from __future__ import annotations

import asyncio
from functools import cache

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agents.doors.faults import FAULTS, answered, busy, fault
from agents.doors.gate import Gate
from agents.doors.openapi import CLIENT, described
from agents.doors.seats import Busy, Late, Seats
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.calls import CALLS, CallFault
from dojo_core.calls.registry import call_named
from dojo_core.calls.words import READING

MOST_BYTES = 1 << 20  # of a body
BODY_SECONDS = 20.0
OPEN = ("/", "/openapi.json")

WORDS = """The Dojo, for programs: the calls of the game as JSON.

/openapi.json describes them all. A game begins with open, and every answer names the calls that help most
then. With the token that the Dojo told when it began:

  curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
    --data '{"kernel": "softmax"}' http://%s/v1/calls/open

%s
"""


def api(seats: Seats, token: str) -> Gate:
    """The ASGI application. The caller closes the seats."""
    app = Starlette(
        routes=[
            Route("/", _words),
            Route("/openapi.json", _described),
            Route("/v1/calls/{name}", _Calls(seats).answer, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _by_status, Exception: _fault},
    )
    app.router.redirect_slashes = False
    return Gate(app, token, OPEN)


async def _words(request: Request) -> Response:
    return PlainTextResponse(WORDS % (request.headers["host"], READING))


async def _described(request: Request) -> Response:
    return answered(_document())


@cache
def _document() -> dict[str, object]:
    return described(CALLS.values(), OPEN)


async def _by_status(request: Request, error: Exception) -> Response:
    """What Starlette's router refuses."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        sentence = f"{request.url.path} is not answered to {request.method}."
        return fault("wrong_method", sentence, error.headers)
    return fault("not_found", "There is no such page: /openapi.json describes those that there are.")


async def _fault(request: Request, error: Exception) -> Response:
    return fault("fault", FAULTS["fault"].means)


class _TooLarge(Exception):
    pass


class _Calls:
    def __init__(self, seats: Seats) -> None:
        self._seats = seats

    async def answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            call = call_named(name)
        except CallFault as unknown:
            return fault(unknown.code, str(unknown))
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return fault("not_json", "Send the arguments as application/json.")
        try:
            arguments = read_object(await asyncio.wait_for(_body(request), BODY_SECONDS))
            call.checked(arguments)
        except TimeoutError:
            return fault(
                "slow", f"The body did not come within {BODY_SECONDS:g} seconds.", {"Connection": "close"}
            )
        except _TooLarge:
            return fault(
                "too_large", f"The body has more than {MOST_BYTES >> 10} KiB.", {"Connection": "close"}
            )
        except (NotJson, ClientDisconnect) as wrong:
            return fault("bad_request", f"The body cannot be read: {wrong}.")
        except CallFault as wrong:
            return fault("bad_request", str(wrong))
        try:
            told = await self._seats.call(request.headers.get(CLIENT, ""), name, arguments)
        except Busy as much:
            return busy(str(much), much.seconds)
        except Late as late:
            return fault("late", str(late))
        except CallFault as wrong:
            return fault("unreadable" if wrong.code == "bad_request" else wrong.code, str(wrong))
        return answered({"text": told.text, "data": told.data, "next": list(told.next)})


async def _body(request: Request) -> bytes:
    """The body, of which no more is kept than is read; the rest is taken from the wire, so that the client
    gets to read the answer. Raises _TooLarge."""
    kept = bytearray()
    length = 0
    async for part in request.stream():
        length += len(part)
        if length <= MOST_BYTES:
            kept += part
        else:
            kept.clear()
    if length > MOST_BYTES:
        raise _TooLarge
    return bytes(kept)
