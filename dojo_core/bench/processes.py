"""Processes that answer in lines of JSON, in time, or are ended."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from dojo_core.system import end_group

LOOK_SECONDS = 0.1  # between two looks whether an answer is still wanted
UNWANTED = "unwanted"  # the status of an answer that nobody waited for any more


class Silent(Exception):
    """No answer: the status and the sentence that the row shows."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Dialogue(ABC):
    """Somebody who answers in lines of JSON, with time limits. Close it."""

    def ask(self, count: int, seconds: float) -> dict[str, Any]:
        """Ask for that many samples. Raises Silent; it is gone then."""
        return self.request(count, seconds)

    def request(self, what: object, seconds: float) -> dict[str, Any]:
        """Ask something. Raises Silent; it is gone then."""
        self.say(what)
        return self.read(seconds)

    @abstractmethod
    def say(self, what: object) -> None:
        """Send a line; where nobody hears it, ``read`` tells how it ended."""

    @abstractmethod
    def read(self, seconds: float) -> dict[str, Any]:
        """The next answer. Raises Silent; it is gone then."""

    @abstractmethod
    def close(self) -> None:
        """End it and whatever it started."""


class Process(Dialogue):
    """A process that speaks through its standard input and output, and ends where that is ``unwanted``."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        unwanted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._unwanted = unwanted
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=dict(environment),
            start_new_session=True,
            bufsize=0,
        )
        self._pending = b""

    @property
    def closed(self) -> bool:
        return self._log.closed

    def say(self, what: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{json.dumps(what)}\n".encode())

    def read(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = deadline - time.monotonic()
                if left <= 0:
                    self.close()
                    raise Silent("timeout", f"No answer within {seconds:g} s; it was stopped.")
                if self._unwanted():
                    self.close()
                    raise Silent(UNWANTED, "Nobody waits for its answer any more.")
                if not selector.select(min(left, LOOK_SECONDS)):
                    continue
                data = self._process.stdout.read(1 << 16)
                if not data:
                    raise Silent("failed", self._ending())
                self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.close()
            raise Silent("failed", f"It said something that is no answer: {line[:80]!r}.")
        return answer

    def _ending(self) -> str:
        """How the process ended, with the last that it said."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        sentence = self.ending(self._process.poll())
        self.close()
        return sentence

    @property
    def said(self) -> int:
        """How much it has said beside its answers, in bytes."""
        return os.fstat(self._log.fileno()).st_size

    def ending(self, code: int | None, since: int = 0) -> str:
        """How it, or a fork of it, ended, with the last that was said after so many bytes."""
        said = os.pread(self._log.fileno(), self.said - since, since)  # the place is the process's own too
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        how = f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"exit status {code}"
        # Of a stack the innermost C++ frame that has a name, of the rest the last line.
        frame = next((m[1] for m in (re.search(r"\bin (\w+::[\w:~]+)", line) for line in lines) if m), "")
        plain = [line for line in lines if not line.lstrip().startswith("File ")]
        last = f" {plain[-1].strip()[:300]}" if plain else ""
        return f"Its process ended ({how}).{last}{f' In {frame}.' if frame else ''}"

    def close(self) -> None:
        end_group(self._process.pid)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()
