"""A chat model behind an address that answers as OpenAI's ``/chat/completions`` does.

Within limits of time and size, with the key in a header and nowhere else. A redirect is not followed: it
would take the key along.
"""

from __future__ import annotations

import http.client
import json
import math
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from agents.agent import PlayerFailed
from agents.llm.settings import LlmSettings, Unknown, is_here, key_for
from agents.outside import Answer
from dojo_core.bounded_json import NotJson, read_object

LARGEST = 4 << 20  # bytes of an answer
TRIES = 5  # of a request that may succeed later
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds, doubled from one try to the next
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504, 529)
POLL = 0.1  # seconds between two looks at whether anybody is still waiting

Message = Mapping[str, str]


class Unheard(Exception):
    """Nobody waits for the answer any more."""


class TimeUp(Exception):
    """The seconds that an answer may take, with all tries, are over."""


class _Passing(Exception):
    """What a later try may not meet. ``wait``: seconds that the server asks for."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass
class Chat:
    """Asks the model. ``key`` looks it up for each request, so that no object holds it."""

    settings: LlmSettings
    key: Callable[[str], str] = field(default=key_for, repr=False)
    sleep: Callable[[float], None] = time.sleep
    _limit: str = "max_tokens"  # what the server calls the longest answer

    def room(self, most: int) -> int:
        """How many characters a question may have. A server tells its limit by refusing what is longer."""
        return most

    def ask(
        self, messages: Sequence[Message], most: int, seconds: float, stopped: Callable[[], bool]
    ) -> Answer:
        """An answer of at most ``most`` tokens, within ``seconds``, tries and waiting included.

        Raises PlayerFailed, TimeUp and Unheard.
        """
        began = time.monotonic()
        why = ""
        for number in range(TRIES):
            left = seconds - (time.monotonic() - began)
            if stopped():
                raise Unheard
            if left <= 0:
                raise TimeUp
            try:
                answer = self._once(messages, most, min(left, self.settings.timeout), stopped)
            except _Passing as passing:
                why = str(passing)
                wait = FIRST_WAIT * 2**number if passing.wait is None else passing.wait
                if number + 1 < TRIES:
                    self._wait(min(wait, LONGEST_WAIT, left), stopped)
                continue
            return replace(answer, seconds=round(time.monotonic() - began, 3))
        raise PlayerFailed(f"{self._who} {why}, in {TRIES} tries: see whether it works, then run this again.")

    @property
    def _who(self) -> str:
        return f"The language model at {self.settings.address}"

    def _wait(self, seconds: float, stopped: Callable[[], bool]) -> None:
        left = seconds
        while left > 0 and not stopped():
            step = min(left, 10 * POLL)
            self.sleep(step)
            left -= step

    def _once(
        self, messages: Sequence[Message], most: int, seconds: float, stopped: Callable[[], bool]
    ) -> Answer:
        """One request, left alone once nobody waits for it. Raises PlayerFailed, Unheard, _Passing."""
        done: list[Answer | Exception] = []

        def fetch() -> None:
            try:
                done.append(self._fetched(messages, most, seconds))
            except Exception as fault:  # raised again where it is waited for
                done.append(fault)

        thread = threading.Thread(target=fetch, name="asks a language model", daemon=True)
        thread.start()
        end = time.monotonic() + seconds
        while thread.is_alive() and time.monotonic() < end:
            thread.join(POLL)
            if stopped():
                raise Unheard
        if not done:
            raise _Passing(f"did not answer within {seconds:.3g} seconds")
        if isinstance(done[0], Exception):
            raise done[0]
        return done[0]

    def _fetched(self, messages: Sequence[Message], most: int, seconds: float) -> Answer:
        try:
            key = self.key(self.settings.address)
        except Unknown as unfit:
            raise PlayerFailed(str(unfit)) from None
        body: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [dict(message) for message in messages],
            self._limit: most,
        }
        if self.settings.temperature is not None:
            body["temperature"] = self.settings.temperature
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "dojo"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(
            f"{self.settings.address}/chat/completions", json.dumps(body).encode(), headers, method="POST"
        )
        here = is_here(urlsplit(self.settings.address).hostname or "")
        handlers = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if here else [])]
        end = time.monotonic() + seconds
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=seconds) as response:
                data = _read(response, end)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error, key) from None
        except (OSError, http.client.HTTPException) as fault:
            raise _Passing(_cause(fault)) from None
        return self._answer(_without(data, key), key, messages)

    def _refused(self, error: urllib.error.HTTPError, key: str) -> Exception:
        """What a status means."""
        try:
            said = _without(_unescaped(error.read(2000)), key).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            said = ""
        words = " ".join("".join(c if c.isprintable() else " " for c in said).split())[:300]
        told = f"{self._who} answers {error.code}" + (f": {words}" if words else "")
        if error.code == 400 and self._limit == "max_tokens" and "max_completion_tokens" in said:
            self._limit = "max_completion_tokens"
            return _Passing("calls the longest answer by another name", 0.0)
        if error.code in AGAIN:
            return _Passing(f"answers {error.code}", _asked_to_wait(error.headers.get("Retry-After")))
        if error.code in (401, 403):
            return PlayerFailed(f"{told}. It wants a key that it knows: set DOJO_LLM_KEY in the environment.")
        if 300 <= error.code < 400:
            return PlayerFailed(f"{self._who} sends elsewhere ({error.code}): name that address itself.")
        return PlayerFailed(f"{told}. Check the address, which ends before /chat/completions, and the model.")

    def _answer(self, data: bytes, key: str, messages: Sequence[Message]) -> Answer:
        try:
            answer = read_object(data, LARGEST)
            message = answer["choices"][0]["message"]
            words = message.get("content") or ""
            if not isinstance(words, str):
                raise TypeError
        except NotJson as wrong:
            raise _Passing(f"answers what is no answer: {wrong}") from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise _Passing("answers JSON without choices[0].message.content") from None
        words = _without(words.encode("utf-8", "surrogatepass"), key).decode("utf-8", "surrogatepass")
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        counted = read is not None and written is not None
        if read is None:
            read = estimated("".join(message["content"] for message in messages))
        if written is None:
            written = estimated(words)
        return Answer(words, read, written, counted, self.settings.cost(read, written))


def _unescaped(data: bytes) -> bytes:
    """What people read of JSON, cut off somewhere perhaps: a key is found however it was escaped."""
    text = data.decode("utf-8", "replace")
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
    return re.sub(r"\\(.)", r"\1", text).encode("utf-8", "replace")


def _without(data: bytes, key: str) -> bytes:
    """A server that repeats the key does not put it into a log. What is so short is none: "none", "EMPTY"."""
    return data.replace(key.encode(), b"[key]") if len(key) >= 8 else data


def estimated(text: str) -> int:
    """Tokens of a text, where nobody counts them: about one for three characters of programs."""
    return math.ceil(len(text) / 3)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


def _read(response: Any, end: float) -> bytes:
    """The body, within the limits. Raises _Passing."""
    data = b""
    while chunk := response.read1(1 << 16):
        data += chunk
        if len(data) > LARGEST:
            raise _Passing(f"answers more than {LARGEST >> 20} MiB")
        if time.monotonic() > end:
            raise _Passing("did not end its answer in time")
    length = response.headers.get("Content-Length", "")
    if re.fullmatch("[0-9]{1,12}", length) and len(data) < int(length):
        raise _Passing("broke off in the middle of its answer")
    return data


def _cause(fault: Exception) -> str:
    reason = getattr(fault, "reason", fault)
    if isinstance(reason, TimeoutError):
        return "did not answer in time"
    if isinstance(reason, ConnectionRefusedError):
        return "cannot be reached: nothing listens there"
    if isinstance(reason, (http.client.HTTPException, ConnectionError)):
        return "broke off the connection"
    return f"cannot be reached: {getattr(reason, 'strerror', None) or type(reason).__name__}"


def _asked_to_wait(header: str | None) -> float | None:
    """Seconds of a Retry-After, which is a number or a date."""
    if header is None:
        return None
    if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", header.strip(), re.ASCII):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
