"""Where others can reach the app: a login with an OpenID Connect provider, here one of our own."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlparse

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from dojo_core.classes.store import Classes
from dojo_core.measure.records import Records
from tests.browser.conftest import Server, forget
from tests.browser.playing import expect, open_softmax
from tests.browser.wire import Wire

USERS = '[dojo]\nusers = ["@example.org"]\n'


class Provider:
    """Knows one person, and lets them in without asking."""

    def __init__(self) -> None:
        self.email = "ada@example.org"
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.nonce = ""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlparse(self.path)
                if asked.path == "/authorize":
                    query = {name: values[0] for name, values in parse_qs(asked.query).items()}
                    provider.nonce = query["nonce"]
                    back = urlencode({"code": "a-code", "state": query["state"]})
                    self.send_response(302)
                    self.send_header("Location", f"{query['redirect_uri']}?{back}")
                    self.end_headers()
                elif asked.path == "/keys":
                    self.answer({"keys": [provider.key.as_dict(private=False)]})
                else:
                    self.answer(provider.metadata)

            def do_POST(self) -> None:
                self.answer(provider.tokens())

            def answer(self, told: dict[str, Any]) -> None:
                body = json.dumps(told).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def tokens(self) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": "dojo", "sub": "1", "iat": now, "exp": now + 600, "nonce": self.nonce,
            "email": self.email, "email_verified": True,
        }  # fmt: skip
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return {"access_token": "a-token", "token_type": "Bearer", "expires_in": 600, "id_token": token}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Server]:
    """An app that listens to everybody, with the login set up as docs/serving.md says."""
    home = tmp_path_factory.mktemp("home")
    server = Server(home)
    (home / ".streamlit").mkdir()
    (home / ".streamlit" / "secrets.toml").write_text(
        f'[auth]\nredirect_uri = "{server.url}/oauth2callback"\ncookie_secret = "{"long and random " * 3}"\n'
        f'client_id = "dojo"\nclient_secret = "secret"\n'
        f'server_metadata_url = "{provider.url}/metadata"\n{USERS}'
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOME", str(home))
        server.start("--address", "0.0.0.0")
    yield server
    server.stop()


def kept_games(server: Server) -> int | None:
    """None before the first one who may come in: then there are not even records."""
    path = server.home / "records.sqlite"
    if not path.exists():
        return None
    with Records(path) as records:
        return len(records.games())


def test_nobody_sees_a_board_before_the_login(guarded: Server) -> None:
    before = kept_games(guarded)
    with Wire(guarded.port, "g=some-game") as wire:
        assert not wire.data and "Log in" in "".join(wire.words)
        # nor plays, by sending what a board would send
        wire.components["dojo_board"] = "$$ID-0123-board"
        wire.event("start", kernel="softmax", shape="8x16", policy="reassoc")
        assert not wire.data
    assert kept_games(guarded) == before


def test_no_dojo_of_somebodys_own_joins_a_class_past_the_login(guarded: Server) -> None:
    request = urllib.request.Request(f"{guarded.url}/classes/join", b'{"code": "BCDFGHJK", "name": "Eve"}')
    with pytest.raises(urllib.error.HTTPError, match="403") as refused, urllib.request.urlopen(request):
        pass
    assert "has a login" in json.load(refused.value)["error"]


@pytest.mark.thorough  # who logs in plays: below; classes: test_classroom.py
def test_a_student_who_logged_in_works_in_a_dojo_of_their_own(
    tab: Any, guarded: Server, common_server: Server, provider: Provider
) -> None:
    classes = Classes(guarded.home / "classes.sqlite")
    of, _ = classes.make("Compilers", "login:teacher@example.org")
    provider.email = "ben@example.org"
    page = tab
    forget(page, guarded)
    page.goto(guarded.url)
    page.click("button >> text=Log in")
    page.wait_for_selector(".card.kernel")
    page.goto(f"{guarded.url}/class?code={of.code}")
    page.get_by_label("Your name").fill("Ben")
    page.click("button >> text=Join")
    page.click("button >> text=A link for your own Dojo")
    link = page.get_by_label("Link for a Dojo of your own").input_value()
    page.goto(f"{common_server.url}/class")
    page.get_by_label("Code").fill(link)
    page.click("button >> text=Join")
    page.wait_for_selector("text=You are Ben in this class.")
    page.wait_for_selector(f"text=This class is at {guarded.url}")
    assert [each.owner for each in classes.roster(of.code)] == ["login:ben@example.org"]
    page.click("text=Leave the class")
    page.click("text=Leave, and delete what is kept of you?")
    page.wait_for_selector("button >> text=Join")
    assert classes.roster(of.code) == []
    classes.close()


def test_the_secrets_are_not_served(guarded: Server) -> None:

    for path in (
        "/.streamlit/secrets.toml",
        "/app/static/.streamlit/secrets.toml",
        "/../.streamlit/secrets.toml",
    ):
        try:
            with urllib.request.urlopen(guarded.url + path, timeout=200) as answer:
                assert b"cookie_secret" not in answer.read()
        except OSError:
            continue  # refused
    assert "cookie_secret" not in (Path(guarded.home) / "server.log").read_text()


@pytest.fixture
def come(tab: Any, guarded: Server, provider: Provider) -> Callable[[str], None]:
    """Logs an address in, in a browser that has not been here before."""

    def come(email: str) -> None:
        provider.email = email
        forget(tab, guarded)
        tab.goto(guarded.url)
        tab.click("button >> text=Log in")

    return come


def test_who_logs_in_plays_and_who_forges_a_cookie_does_not(guarded: Server, provider: Provider) -> None:
    provider.email = "ada@example.org"
    with Wire(guarded.port) as wire:
        wire.press("Log in")
    kept = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(kept))
    for address in (wire.leads_to, "/_stcore/health"):
        browser.open(f"{guarded.url}{address}")
    with come_back(guarded, kept) as wire:
        assert wire.board["view"] == "start"
    for each in kept:
        if each.name == "_streamlit_user":
            each.value = f'"{"x" * 40}"'
    with come_back(guarded, kept) as wire:
        assert not wire.data and "Log in" in "".join(wire.words)


def come_back(guarded: Server, kept: CookieJar) -> Wire:
    """A page of a browser that kept such cookies."""
    cookies = {each.name: str(each.value) for each in kept}
    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return Wire(guarded.port, token=cookies["_streamlit_xsrf"], Cookie=told, Origin=guarded.url)


@pytest.mark.thorough  # as above, without a browser
def test_who_logs_in_with_a_browser_plays(tab: Any, come: Callable[[str], None]) -> None:
    come("ada@example.org")
    tab.wait_for_selector(".card.kernel")


@pytest.mark.thorough  # whom a login lets in: test_safety.py
def test_who_is_not_listed_does_not(tab: Any, come: Callable[[str], None]) -> None:
    come("eve@evil.example")
    tab.wait_for_selector("text=not among those")
    expect(tab.locator(".card.kernel")).to_have_count(0)


@pytest.mark.thorough  # whose a game is: test_ownership.py, here and above
def test_a_game_is_the_account_s_in_whichever_browser(tab: Any, come: Callable[[str], None]) -> None:
    come("ada@example.org")
    open_softmax(tab, "8x24")
    address = tab.url
    come("ben@example.org")
    tab.wait_for_selector(".card.kernel")
    tab.goto(address)
    tab.wait_for_selector(".watched >> text=This game belongs to ada@example.org")
    come("ada@example.org")
    tab.wait_for_selector(".card.kernel")
    tab.goto(address)
    tab.wait_for_selector(".row[data-move]")
    expect(tab.locator(".watched")).to_be_hidden()
