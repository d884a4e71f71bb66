"""Who may come in: hosts, origins, how many at once, and a login wherever others can reach the app.

The app computes for whoever talks to it, so it listens to this machine alone. A page of another site that
the same browser has open must not reach it either: not by a name that leads to this machine (DNS
rebinding: the Host is refused), not as itself (another port of localhost is another origin as well).
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlparse

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from agents.doors.gate import foreign_page
from dojo_core.package_data import document

INSECURE = "DOJO_INSECURE"  # set by ``dojo app --insecure``
MOST_TABS = 100  # connections at once

# A page that shows the app in a frame could have its visitor click what they do not see; and an address
# here names a game, which is nobody else's business.
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def refusal(headers: Mapping[str, str]) -> str | None:
    """Why a request is not answered, as a sentence; None where it is."""
    host, origin = headers.get("host"), headers.get("origin")
    if not is_host_allowed(host):
        return (
            f"The Dojo does not answer to the host name {host or '(none)'}. "
            "Start it with dojo app --host NAME to add one."
        )
    allowed = {each.strip() for each in config.get_option("server.corsAllowedOrigins")}
    if origin is not None and origin not in allowed and urlparse(origin).netloc != host:
        return foreign_page(origin)
    return None


# ---------------------------------------------------------------------- which browser it is

# A game belongs to the browser that began it. Its secret is set with the first page that it gets, and no
# script and no address ever holds it; the mark beside it, which a script may read, tells a page whether its
# session knows the browser by the same secret (bar.js).
SECRET, BROWSER_MARK = "dojo_browser", "dojo_browser_mark"
SECRET_KEPT = 400 * 86_400  # seconds; as long as browsers keep a cookie at most, begun anew with each page


def secret_in(cookies: Mapping[str, str]) -> str | None:
    """The secret of a browser, where it sent one that the Dojo could have set."""
    secret = str(cookies.get(SECRET, ""))
    return secret if re.fullmatch("[0-9a-f]{32}", secret) else None


def browser_mark(secret: str | None) -> str:
    """What a page may know of the secret."""
    return "" if secret is None else hashlib.sha256(b"mark " + secret.encode()).hexdigest()[:12]


def _cookies(scope: Any) -> list[str]:
    """What to set with a page: the browser's secret, a new one where it has none, and its mark."""
    secret = secret_in(Request(scope).cookies) or secrets.token_hex(16)
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    attributes = f"; Path=/; Max-Age={SECRET_KEPT}; SameSite=Lax{secure}"
    return [f"{SECRET}={secret}{attributes}; HttpOnly", f"{BROWSER_MARK}={browser_mark(secret)}{attributes}"]


class AccessMiddleware:
    """ASGI middleware in front of all that the app serves."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._tabs = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        kind = scope["type"]
        if kind not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        reason = refusal(Headers(scope=scope))
        if kind == "http":
            answer = self._app if reason is None else PlainTextResponse(f"{reason}\n", 403)
            return await answer(scope, receive, _with_headers(send, scope))
        if reason is None and self._tabs >= MOST_TABS:
            reason = f"{MOST_TABS} tabs are open, as many as the Dojo serves at once."
        if reason is not None:
            await receive()
            return await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        self._tabs += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._tabs -= 1


def _with_headers(send: Any, scope: Any) -> Any:
    asks_for_a_page = scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")

    async def sends(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            if asks_for_a_page:
                for cookie in _cookies(scope):
                    headers.append("Set-Cookie", cookie)
        await send(message)

    return sends


# ---------------------------------------------------------------------- from elsewhere than this machine


def check_address() -> None:
    """Ends the process, with a sentence, where others could reach the app and nothing tells who they are."""
    address = config.get_option("server.address") or "0.0.0.0"
    if _is_of_this_machine(address) or os.environ.get(INSECURE) == "1" or has_login():
        return
    raise SystemExit(
        f"The Dojo runs programs for whoever reaches it, and others can reach {address}. Set up a login "
        f"(an [auth] section in ~/.streamlit/secrets.toml: {document('serving.md')}), or let everybody in "
        "with dojo app --insecure."
    )


def _is_of_this_machine(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_private() -> bool:
    """Can only people of this machine reach the app, and is there nothing that tells them apart?"""
    places = [config.get_option("server.address") or "0.0.0.0", *config.get_option("server.allowedHosts")]
    return all(_is_of_this_machine(str(place)) for place in places) and not has_login()


def has_login() -> bool:
    """Is a login set up (OpenID Connect, Streamlit's ``[auth]``)?"""
    return "auth" in _secrets()


def _secrets() -> Mapping[str, Any]:
    return st.secrets if st.secrets.load_if_toml_exists() else {}


def account() -> str | None:
    """Who looks at this page, where a login is set up; else None. Draws the way in for who is not known."""
    if not has_login():
        return None
    user = st.user
    if not user.is_logged_in:
        st.title("The Dojo")
        st.write("Log in to play.")
        st.button("Log in", type="primary", on_click=st.login)
        st.stop()
    claims = {name: user.get(name) for name in ("email", "email_verified", "sub")}
    if not is_welcome(claims, _secrets().get("dojo", {}).get("users")):
        st.title("The Dojo")
        st.write("You are logged in, but not among those who may play here: ask whoever runs this app.")
        st.button("Log out", on_click=st.logout)
        st.stop()
    return str(claims["email"] or claims["sub"])


def is_welcome(user: Mapping[str, Any], users: list[str] | None) -> bool:
    """``users``: addresses and domains (``@example.org``); without any, all whom the provider lets in."""
    if users is None:
        return True
    email = str(user.get("email") or "").lower()
    if not email or user.get("email_verified") is False:
        return False
    listed = {str(each).lower() for each in users}
    return email in listed or "@" + email.rpartition("@")[2] in listed
