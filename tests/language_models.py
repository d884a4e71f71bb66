"""A stand-in for a chat model: a server on the loopback that answers as a test says, and keeps what it was
asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


@dataclass(frozen=True)
class Reply:
    """An answer of the server. ``whole``: how much of the body is sent of what the header promises."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    whole: bool = True
    waits: threading.Event | None = None  # before anything is sent


def said(words: str, usage: object = USAGE) -> Reply:
    return Reply(json.dumps({"choices": [{"message": {"content": words}}], "usage": usage}).encode())


@dataclass
class Standing:
    """A server at work. ``asked``: the bodies; ``headers``: those of each."""

    address: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def player(self) -> str:
        return f"llm:stand-in@{self.address}"


@contextmanager
def standing(answers: Callable[[int, list[dict[str, str]]], Reply | str]) -> Iterator[Standing]:
    """``answers`` gets the number of the request, from 0, and its messages."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = len(here.asked)
            here.asked.append(body)
            here.headers.append({**dict(self.headers), "path": self.path})
            reply = answers(number, body["messages"])
            reply = said(reply) if isinstance(reply, str) else reply
            if reply.waits is not None:
                reply.waits.wait(60)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body if reply.whole else reply.body[: len(reply.body) // 2])

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:  # a client that left
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    here = Standing(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
