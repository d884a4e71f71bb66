"""The running app against those who mean it no good: other sites, other machines, garbage."""

from __future__ import annotations

import base64
import http.client
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dojo_core.sharing import LONGEST_LINK, MARK
from pages import access
from pages.access import is_welcome
from tests.browser.conftest import Server, free_port
from tests.browser.wire import Wire

NAME = "<img src=x onerror=alert(1)>"


def ask(port: int, path: str = "/", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


def begin(wire: Wire, shape: str = "8x16") -> None:
    wire.event("start", kernel="softmax", shape=shape, policy="reassoc")
    assert wire.board["view"] == "play"


def moves(wire: Wire) -> list[str]:
    return [node["move"] for node in wire.board["history"]["nodes"]]


# ---------------------------------------------------------------------- who is let in


def test_it_listens_to_this_machine_alone(server: Server) -> None:
    wanted = f"{server.port:04X}"
    listening = [
        fields[1].split(":")[0]
        for table in ("tcp", "tcp6")
        for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
        if fields[1].endswith(f":{wanted}") and fields[3] == "0A"
    ]
    assert listening == ["0100007F"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example"},  # a name that somebody made lead to this machine
        {"Host": "127.0.0.1.rebound.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:9"},  # another program's page on this machine
        {"Origin": "null"},
    ],
)
def test_a_page_of_another_site_gets_nothing(server: Server, headers: dict[str, str]) -> None:
    assert ask(server.port, "/_stcore/health", **headers)[0] == 403
    assert ask(server.port, "/", **headers)[0] == 403
    with pytest.raises(InvalidStatus, match="403"):
        Wire(server.port, **headers)


def test_its_own_page_is_let_in_under_each_of_its_names(server: Server) -> None:
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", f"[::1]:{server.port}"):
        assert ask(server.port, Host=host, Origin=f"http://{host}")[0] == 200
    with Wire(server.port, Origin=server.url) as wire:
        assert wire.board["view"] == "start"


def test_it_cannot_be_put_into_a_frame(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=200)
    connection.request("GET", "/")
    assert "frame-ancestors 'none'" in str(connection.getresponse().headers["Content-Security-Policy"])


def dojo_app(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dojo_core.cli", "app", "--no-browser", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=500, env={**os.environ, **environment}
    )


def test_another_address_needs_a_login_or_an_explicit_word(monkeypatch: pytest.MonkeyPatch) -> None:
    listens_at = {"server.address": "0.0.0.0"}
    monkeypatch.setattr(access.config, "get_option", listens_at.get)
    monkeypatch.setattr(access, "has_login", lambda: False)
    with pytest.raises(SystemExit, match=r"an \[auth\] section .* --insecure"):
        access.check_address()
    monkeypatch.setenv(access.INSECURE, "1")
    access.check_address()
    monkeypatch.delenv(access.INSECURE)
    for address in ("127.0.0.1", "localhost", "::1"):
        listens_at["server.address"] = address
        access.check_address()


@pytest.mark.thorough  # as the app asks when it starts: above
def test_the_app_does_not_start_at_another_address_without(tmp_path: Path) -> None:
    refused = dojo_app("--address", "0.0.0.0", "--port", str(free_port()), DOJO_HOME=str(tmp_path))
    assert refused.returncode != 0 and "--insecure" in refused.stderr and "[auth]" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.thorough  # with a login it listens there too: test_login.py
def test_with_that_word_it_answers_by_the_names_that_it_was_given(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.start("--address", "0.0.0.0", "--insecure", "--host", "dojo.example")
    try:
        assert ask(server.port, Host="dojo.example")[0] == 200
        assert ask(server.port, Host="rebound.example")[0] == 403
    finally:
        server.stop()


def test_whom_a_login_lets_in() -> None:
    someone = {"email": "ada@Example.org", "email_verified": True}
    assert is_welcome(someone, None)
    assert is_welcome(someone, ["@example.org"]) and is_welcome(someone, ["ada@example.org"])
    assert not is_welcome(someone, []) and not is_welcome(someone, ["@ample.org", "example.org"])
    assert not is_welcome({**someone, "email_verified": False}, ["@example.org"])
    assert not is_welcome({"sub": "1"}, ["@example.org"])


# ---------------------------------------------------------------------- what they may send


GARBAGE: list[Any] = [
    None,
    "play",
    7,
    [],
    {},
    {"client": 1, "events": 2},
    {"client": "x" * 100_000, "events": [{"seq": 1, "kind": "nothing"}]},
    {"client": "a", "events": "play"},
    {"client": "a", "events": [None, 1, "x", [], {}, [[]]]},
    {"client": "a", "events": [{"seq": "1", "kind": "leave"}, {"seq": True, "kind": "leave"}]},
    {"client": "a", "events": [{"seq": -1, "kind": "leave"}, {"seq": 1e300, "kind": "leave"}]},
    {"client": "a", "events": [{"seq": 10**30, "kind": "leave"}]},
    {"client": "b", "events": [{"seq": 1, "kind": ["play"]}, {"seq": 2, "kind": {"kind": "play"}}]},
    {"client": "b", "events": [{"seq": 3, "kind": "no such kind"}, {"seq": 4}]},
    {"client": "b", "events": [{"seq": n, "kind": "open", "game": "../x"} for n in range(5, 500)]},
]


def at_the_board(wire: Wire, **fields: Any) -> dict[str, Any]:
    board = wire.board
    return {"game": board["game"]["id"], "position": board["position"]["id"], **fields}


def test_garbage_leaves_everything_intact(server: Server) -> None:
    log = server.home / "server.log"
    said = len(log.read_bytes())
    with Wire(server.port) as wire:
        begin(wire)
        wire.event("play", move="join_scopes m@0")
        before = wire.board["program"]
        for garbage in GARBAGE:
            wire.send(garbage)
        numbers = iter(range(1, 1000))
        for kind in (
            "play",
            "goto",
            "step",
            "select",
            "look",
            "show",
            "drop",
            "measure",
            "promote",
            "rename",
        ):
            names = ("move", "id", "to", "path", "mode", "on", "assembly", "title")
            values: list[Any] = [
                [], [[]], {}, {"a": 1}, 1.5, -1, 10**15, "x" * 5_000, None, True, "\x00", NAME
            ]  # fmt: skip
            events = [
                at_the_board(wire, kind=kind, seq=next(numbers), **dict.fromkeys(names, value))
                for value in values
            ]
            wire.send({"client": "c", "events": events})
        # nothing was played, nothing was lost, and the page still plays
        assert moves(wire) == [None, "join_scopes m@0"]
        wire.event("goto", id=1)
        assert wire.board["program"] == before
        wire.event("measure", on=False)
        wire.event("play", move=wire.board["moves"][0]["text"])
        assert len(moves(wire)) == 3
    assert b"Traceback" not in log.read_bytes()[said:]


def test_what_was_made_on_another_position_or_in_another_game_is_dropped(server: Server) -> None:
    with Wire(server.port) as wire:
        begin(wire)
        for number, at in enumerate(
            [{"position": 7}, {"position": "0"}, {"position": None}, {"game": "other"}, {"game": None}],
            start=1,
        ):
            event = at_the_board(wire, seq=number, kind="play", move="join_scopes m@0") | at
            wire.send({"client": "late", "events": [event]})
        assert moves(wire) == [None]


def test_text_that_is_no_json_and_json_without_end(server: Server) -> None:
    with Wire(server.port) as wire:
        begin(wire)
        for text in ("", "{", "\x00", "NaN", "1" * 3000, '[{"event": "events", "value": NaN}]', '"' * 9):
            wire.raw(text)
        wire.event("play", move="join_scopes m@0")
        assert len(moves(wire)) == 2


@pytest.mark.parametrize("nested", ["[" * 50_000 + "]" * 50_000, '{"a":' * 20_000 + "1" + "}" * 20_000])
def test_a_deeply_nested_message_ends_nothing(server: Server, nested: str) -> None:
    with Wire(server.port) as wire:
        begin(wire)
        wire.raw(nested)
        wire.event("play", move="join_scopes m@0")
        assert len(moves(wire)) == 2


def test_bytes_that_are_no_message_end_one_session_only(server: Server) -> None:
    with Wire(server.port) as good:
        begin(good)
        for frame in (b"\xff" * 100, b"", bytes(range(256)) * 40, b"\x00" * 3_000_000):
            bad = Wire(server.port)
            bad.frame(frame)
            with suppress(ConnectionClosed, TimeoutError):
                bad.socket.recv(1)
            bad.close()
        good.event("play", move="join_scopes m@0")
        assert len(moves(good)) == 2


PROGRAM = "kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]*2\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# " + "x" * 70_000 + "\n" + PROGRAM, "65536 bytes"),
        (PROGRAM + "8 y[{0}] = x[{0}]*2\n" * 501, "500 nodes"),
        (PROGRAM.replace("8 y", "1 " * 17 + "8 y"), "16 nested"),
        (
            PROGRAM.replace("x f32", "".join(f"t{n} f32 [8] heap\n" for n in range(511)) + "x f32"),
            "512 buffers",
        ),
        (PROGRAM.replace("[8] heap\ny", "[99999999999] heap\ny"), "bytes"),
        (f"dojo game 1\ntitle: {'x' * 600_000}\n", "512 KiB"),
        (f"dojo game 1\ntitle: {NAME}\nkernel: -\n", "names no"),
        (PROGRAM.replace("kernel k", f"kernel {NAME}"), "kernel"),
        (PROGRAM.replace("in x", f"in {NAME}"), NAME),
        (PROGRAM.replace("*2", "*system(1)"), "system"),
        (PROGRAM.replace("*2", '*2; asm("int3")'), ";"),
        ("\x00\x01\x02", ""),
    ],
)
def test_a_text_beyond_a_limit_is_a_sentence_beside_the_box(server: Server, text: str, told: str) -> None:
    with Wire(server.port) as wire:
        wire.event("text", text=text, policy="reassoc")
        assert wire.board["view"] == "start"
        said = wire.board["start"]["errors"]["text"]
        assert told in said and len(said) < 2000 and "Traceback" not in said


def test_a_game_of_too_many_moves_is_refused_before_it_is_replayed(server: Server) -> None:
    facts = "title: t\nkernel: -\nshape: -\ntarget: cpu\npolicy: reassoc\n"
    lines = "".join(f"  {n}: split_scope y@0 2\n" for n in range(1, 502))
    with Wire(server.port) as wire:
        wire.event("text", text=f"dojo game 1\n{facts}start:\n{PROGRAM}moves:\n{lines}", policy="reassoc")
        assert "500 moves" in wire.board["start"]["errors"]["text"]


def test_a_query_is_never_more_than_a_name(server: Server) -> None:
    for query in ("g=../../etc/passwd", f"g={NAME}", "g=" + "x" * 5000, "g=%ff"):
        with Wire(server.port, query) as wire:
            assert wire.board["view"] == "start"


def test_a_link_that_unfolds_without_end_opens_nothing(server: Server) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"a" * 1_400_000) + packer.flush()
    link = MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    assert len(link) <= LONGEST_LINK
    for text in (link, MARK + "x" * 5000, MARK + "AAAA", MARK + "%00%ff"):
        with Wire(server.port, urlencode({"g": text})) as wire:
            assert wire.board["view"] == "start" and wire.feed["notice"]["kind"] == "error"
    with Wire(server.port, urlencode({"g": link})) as wire:
        assert "64 KB" in wire.feed["notice"]["text"]
