"""The page's address: what a page asks for holds, whatever a timer's late message says of the one before."""

import asyncio
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.lost import LostMiddleware


def shown() -> None:
    import streamlit as st

    from pages import shell

    shell._keep_to_the_address()
    if st.button("Start"):
        shell.readdress(r="7", demo=None)
    st.text(f"watching {st.query_params.get('r', 'nothing')}")


def test_what_is_asked_of_the_address_holds_for_the_next_drawing_alone():
    page = AppTest.from_function(shown, default_timeout=500)
    page.query_params["demo"] = "softmax"
    page.run()
    assert page.text[0].value == "watching nothing"
    page.button[0].click().run()
    assert page.text[0].value == "watching 7" and "demo" not in page.query_params
    page.session_state["address_meant"] = {
        "r": "8"
    }  # asked for, and then a message with the address of before
    page.run()
    assert page.text[0].value == "watching 8"
    page.query_params["r"] = "9"  # somebody goes elsewhere later
    page.run()
    assert page.text[0].value == "watching 9"


@pytest.mark.parametrize(
    "path, status, to",
    [
        ("/", 200, None),
        ("/library", 200, None),
        ("/play", 200, None),
        ("/libary", 303, "/?lost=libary"),
        ("/a/../b<c>", 303, "/?lost=a%2F..%2Fb%3Cc%3E"),
        ("/" + "x" * 200, 303, "/?lost=" + "x" * 60),
    ],
)
def test_an_address_of_no_page_leads_to_the_first_one(path: str, status: int, to: str | None):
    told: list[dict[str, Any]] = []

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        """Answers every address with its page."""
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
        )
        await send({"type": "http.response.body", "body": b"page"})

    async def send(message: Any) -> None:
        told.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
    asyncio.run(LostMiddleware(streamlit)(scope, None, send))
    head, body = told
    assert head["status"] == status and body["body"] == (b"page" if to is None else b"")
    assert dict(head["headers"]).get(b"location", b"").decode() == (to or "")


def test_what_is_no_page_is_answered_as_it_is():
    told: list[dict[str, Any]] = []

    async def streamlit(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
        )

    async def send(message: Any) -> None:
        told.append(message)

    scope = {"type": "http", "method": "GET", "path": "/_stcore/health", "headers": []}
    asyncio.run(LostMiddleware(streamlit)(scope, None, send))
    assert [each["status"] for each in told] == [200]
