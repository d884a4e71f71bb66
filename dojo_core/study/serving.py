"""A study shown on this machine while it is written: built anew when it was changed."""

from __future__ import annotations

import http.server
import logging
import threading
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

log = logging.getLogger(__name__)

_FAULT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Not built</title>
<body style="font: 16px system-ui; margin: 40px; color-scheme: light dark">
<h1>This study cannot be built yet</h1>
<pre style="white-space: pre-wrap">{}</pre><p>Correct the file, then load this page again.</p>"""


class Unbuilt(Exception):
    """Why there is no page yet; ``str()`` is a sentence."""


class StudyServer(http.server.ThreadingHTTPServer):
    """Answers ``/`` with what ``build`` makes of the files, on the loopback address alone; ``build`` raises
    Unbuilt with a sentence."""

    daemon_threads = True

    def __init__(self, port: int, files: Sequence[Path], build: Callable[[], str]) -> None:
        self._files, self._build = files, build
        self._lock = threading.Lock()
        self._built: tuple[object, bytes] | None = None
        super().__init__(("127.0.0.1", port), _Handler)

    def page(self) -> bytes:
        """The page of the file as it is now."""
        stamp = tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in self._files)
        with self._lock:
            if self._built is None or self._built[0] != stamp:
                self._built = stamp, self._build().encode()
            return self._built[1]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: StudyServer

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):  # a page of elsewhere that names this address
            return self._answer(421, b"This server answers to 127.0.0.1 alone.")
        if self.path.split("?")[0] != "/":
            return self._answer(404, b"There is one page here: /")
        try:
            page, status = self.server.page(), 200
        except Unbuilt as fault:
            page, status = _FAULT.format(escape(str(fault))).encode(), 500
        except Exception:
            log.exception("a study was not built")
            page, status = _FAULT.format("A fault of the Dojo, noted in its log.").encode(), 500
        return self._answer(status, page, "text/html; charset=utf-8")

    def _answer(self, status: int, content: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        log.info(format, *arguments)
