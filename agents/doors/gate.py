"""Who may come in by HTTP: this machine's own programs, by the name of this machine and with a token."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.doors.faults import fault
from dojo_core.cli.serving import LOCAL
from dojo_core.files import naming
from dojo_core.measure.places import data_directory

TOKEN = "DOJO_TOKEN"  # in the environment: a token of one's own
FORM = re.compile(r"[\x21-\x7e]{16,200}")
TOKEN_FORM = "16 to 200 letters, digits and signs"


class BadToken(ValueError):
    """No token to ask for; ``str()`` is a sentence that says what to do."""


def the_token() -> tuple[str, str]:
    """The token that programs show, and where they find it, as a sentence that tells a new one itself.

    It is ``$DOJO_TOKEN``, else that of the file ``token`` in the data directory, made at the first time for
    this user's eyes only. Raises BadToken, OSError.
    """
    own = os.environ.get(TOKEN)
    if own:
        if not FORM.fullmatch(own):
            raise BadToken(f"{TOKEN} is no token: {TOKEN_FORM}, without spaces.")
        return own, f"The token is that of {TOKEN}."
    file = data_directory() / "token"
    if not file.exists():
        token = secrets.token_urlsafe(24)
        if _keep(file, token):
            return token, f"The token, told this once and kept in {file}: {token}"
    return _kept(file), f"The token is in {file}."


def _keep(file: Path, token: str) -> bool:
    """Write it where no file is yet, whole and for this user alone; False where another door was faster."""
    draft = file.with_name(f"{file.name}.{os.getpid()}.new")
    with naming(draft):
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "w", encoding="ascii") as writing:
                writing.write(f"{token}\n")
            os.link(draft, file)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
    return True


def _kept(file: Path) -> str:
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise BadToken(f"Others may read the token in {file}: remove the file, and a new one is made.")
    token = file.read_text(encoding="ascii", errors="replace").strip()
    if not FORM.fullmatch(token):
        raise BadToken(f"{file} holds no token ({TOKEN_FORM}): remove it, and a new one is made.")
    return token


def refusal(host: str | None, origin: str | None) -> str | None:
    """Why a request of these headers is not answered, as a sentence; None where it is.

    A page of another site must not reach this machine by a name that it made lead here (DNS rebinding), nor
    one of another program on this machine, which is another origin.
    """
    try:
        name = urlsplit(f"//{host or ''}").hostname
    except ValueError:
        name = None
    if name not in LOCAL:
        shown = (host or "(none)")[:100]
        return f"The Dojo does not answer to the host name {shown}, only to {', '.join(LOCAL)}."
    if origin is not None and origin != f"http://{host}":
        return foreign_page(origin)
    return None


def foreign_page(origin: str) -> str:
    """Why a page of another site gets no answer, as a sentence."""
    return f"The Dojo does not answer to pages of {origin[:100]}."


class Gate:
    """ASGI middleware in front of all that a door serves. ``open_to_all``: paths that need no token."""

    def __init__(self, app: ASGIApp, token: str, open_to_all: tuple[str, ...] = ()) -> None:
        self._app, self._open = app, open_to_all
        self._authorization = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            await receive()
            return await send({"type": "websocket.close", "code": 1008})

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        headers = Headers(scope=scope)
        reason = refusal(headers.get("host"), headers.get("origin"))
        if reason is not None:
            return await fault("forbidden", reason)(scope, receive, guarded)
        if scope["path"] not in self._open and not self._knows(headers.get("authorization", "")):
            sentence = (
                "Send the token that the Dojo told when it began, as the header Authorization: Bearer TOKEN."
            )
            return await fault("no_token", sentence, {"WWW-Authenticate": "Bearer"})(scope, receive, guarded)
        await self._app(scope, receive, guarded)

    def _knows(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        shown = f"{kind.title()} {token.strip()}".encode()
        return secrets.compare_digest(shown, self._authorization)
