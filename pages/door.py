"""The board's own way to the service, beside Streamlit's: a message and its answer, with no script run anew.

A page shows the key that was drawn into it over its session (``Player.key``) in a header of its own, which no
page of another site can send. What the key does not open is answered 410: the page turns to its session,
which draws it a new one.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from streamlit import config

from dojo_core.bounded_json import NotJson, read_object

if TYPE_CHECKING:
    from dojo_core.service import Player

KEY = "dojo-key"
LONGEST = 2 << 20  # bytes of a message


def _answer(key: str, body: bytes) -> tuple[int, bytes]:
    from pages.shared import the_service  # with all that plays: not before the app serves anybody

    service = the_service()
    player = service.holder(key)
    if player is None:
        return 410, b"{}"
    try:
        message = read_object(body, LONGEST)
    except NotJson:
        return 400, b"{}"
    answer: dict[str, Any]
    if "ahead" in message:
        answer = {"ahead": service.ahead(player, message["ahead"])}
    else:
        answer = service.exchange(
            player, message.get("client"), message.get("events"), message.get("version")
        )
        answer["beside"] = _beside(player, message.get("beside"))
    return 200, json.dumps(answer).encode()


def _beside(player: Player, known: object) -> dict[str, Any] | None:
    """What stands beside the board, where the page has another than that of the digest ``known``."""
    if player.companion is None:
        return None
    with player.lock:
        told = player.companion.told()
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
    return None if digest == known else {"digest": digest, "told": {**told, "told": time.time()}}


async def body_of(request: Request, longest: int) -> bytes | None:
    """What a request holds; None where that is longer than ``longest`` bytes."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > longest:
            return None
    return body


async def _exchange(request: Request) -> Response:
    body = await body_of(request, LONGEST)
    if body is None:
        return Response("{}", 413, media_type="application/json")
    status, answer = await run_in_threadpool(_answer, request.headers.get(KEY, ""), body)
    return Response(answer, status, {"Cache-Control": "no-store"}, "application/json")


def base_path() -> str:
    """What all addresses of the app begin with: "", or a path with no slash at its end."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return f"/{base}" if base else ""


def routes() -> list[Route]:
    """Where the app serves it: beside the pages' own addresses, at ``exchange``."""
    return [Route(f"{base_path()}/exchange", _exchange, methods=["POST"])]
