"""Addresses of no page. Streamlit answers every address with its first page, and a window of its own words
over it: here that page is gone to, and tells itself what was asked for (``shell.LOST``)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse

from pages.door import base_path

LONGEST = 60  # characters that are told of what was asked for


class LostMiddleware:
    """ASGI middleware: what is answered with a page, and names none, leads to the first page."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        asked = scope["path"].removeprefix(base_path()).strip("/") if scope["type"] == "http" else ""
        if not asked or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        led = False

        async def sends(message: Any) -> None:
            nonlocal led
            if message["type"] == "http.response.start" and _is_page(message):
                query = scope.get("query_string", b"").decode("latin-1")
                to = await run_in_threadpool(_leads_to, asked, query)
                if to is not None:
                    led = True
                    await RedirectResponse(to, 303)(scope, receive, send)
            if not led:
                await send(message)

        await self._app(scope, receive, sends)


def _is_page(start: Any) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] == 200 and kind.startswith("text/html")


def _leads_to(asked: str, query: str) -> str | None:
    """Where an address leads that names no page; None where it names one."""
    from pages.shell import LOST, existing  # with all that plays: not before the app serves anybody

    if asked in {"home", *(entry.name for entry in existing())}:  # home is Streamlit's name of the first one
        return None
    rest = f"&{query}" if query else ""
    return f"{base_path()}/?{LOST}={quote(asked[:LONGEST], safe='')}{rest}"
