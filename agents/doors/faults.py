"""What goes wrong at the door of HTTP: each fault's code, its status, and what it means."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response


@dataclass(frozen=True)
class Fault:
    status: int
    means: str


# By the code in the answer. Those down to `fault` come from calls (dojo_core/calls/call.py), `unreadable`
# for their `bad_request`; the others from the door.
FAULTS = {
    "bad_request": Fault(400, "The body is no JSON object, or not what the call's schema allows."),
    "unreadable": Fault(
        422,
        "The arguments have their form, but a text or a move among them does not read, or they name what "
        "cannot be played: a kernel at a shape that it has not, that is too large, or not for that target.",
    ),
    "not_found": Fault(404, "There is no such game, kernel, position, page or call."),
    "refused": Fault(409, "An illegal move, or a game that is not this client's."),
    "too_much": Fault(409, "The game, or this client, has as much as it may have."),
    "missing": Fault(501, "Something is not installed, or not to be had on this machine."),
    "fault": Fault(500, "A fault of the Dojo, noted in its log. Games are safe."),
    "no_token": Fault(401, "The token is missing, or another one."),
    "forbidden": Fault(403, "The request's Host or Origin is not this machine's."),
    "wrong_method": Fault(405, "The header Allow names the methods."),
    "slow": Fault(408, "The body did not come in time."),
    "too_large": Fault(413, "The body is longer than what is read."),
    "not_json": Fault(415, "The body's Content-Type is not application/json."),
    "busy": Fault(429, "More calls than a client may make: Retry-After says when to ask again, in seconds."),
    "late": Fault(504, "The call is not done yet. It goes on, and what it changes is kept."),
}


def fault(code: str, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer for a fault: ``{"error": {"code": …, "message": …}}``."""
    return answered({"error": {"code": code, "message": sentence}}, FAULTS[code].status, headers)


def busy(sentence: str, seconds: float) -> Response:
    return fault("busy", sentence, {"Retry-After": str(max(1, math.ceil(seconds)))})


def answered(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in ASCII: half of a surrogate pair, which a name may hold, is written as an escape."""
    return Response(
        json.dumps(value, allow_nan=False),
        status,
        {"Cache-Control": "no-store", **(headers or {})},
        "application/json",
    )
