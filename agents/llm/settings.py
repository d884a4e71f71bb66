"""Which language model plays, where it answers, and what it may take. No torch: the command line reads it."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

NAME = "llm"
FORM = "llm:NAME@ADDRESS, or llm:FOLDER"
OFFERED = "DOJO_LLM"  # players that the app offers, as texts with spaces between
HINT = f"Language models play too, where {OFFERED} names them as the app is started: docs/llm.md."
KEY = "DOJO_LLM_KEY"
KEYS_OF_HOSTS = {"api.openai.com": "OPENAI_API_KEY"}  # sent to these alone
LONGEST = 500  # characters of a player's text

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_SETTING = re.compile(
    rf"\+(?:tokens=(?P<tokens>\d{{1,10}})|answer=(?P<answer>\d{{1,6}})"
    rf"|price=(?P<read>{_NUMBER})/(?P<written>{_NUMBER})"
    rf"|temperature=(?P<temperature>{_NUMBER})|timeout=(?P<timeout>{_NUMBER}))\Z",
    re.ASCII,
)


class Unknown(ValueError):
    """No language model is named so; ``str()`` is a sentence."""


@dataclass(frozen=True)
class LlmSettings:
    """``model`` is a name at ``address`` (the part before ``/chat/completions``), or a folder without one.

    ``tokens``: of a run, questions and answers together; ``answer``: of one answer; ``price``: of a million
    tokens read and written, in any currency; ``temperature``: None leaves it to the model; ``timeout``:
    seconds of one request.
    """

    model: str
    address: str = ""
    tokens: int = 500_000
    answer: int = 2_000
    price: tuple[float, float] | None = None
    temperature: float | None = None
    timeout: float = 120.0

    @property
    def name(self) -> str:
        """For tables: without the address, and of a folder its last part."""
        return f"{NAME}:{self.model if self.address else Path(self.model).name}"

    @property
    def text(self) -> str:
        """What ``read`` makes these settings of."""
        usual = {each.name: each.default for each in fields(self)}
        settings = {
            "tokens": self.tokens,
            "answer": self.answer,
            "price": self.price,
            "temperature": self.temperature,
            "timeout": self.timeout,
        }
        place = f"@{self.address}" if self.address else ""
        changed = (f"+{name}={_shown(value)}" for name, value in settings.items() if value != usual[name])
        return f"{NAME}:{self.model}{place}{''.join(changed)}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    def cost(self, read: int, written: int) -> float | None:
        """Of so many tokens, None without a price."""
        if self.price is None:
            return None
        return (read * self.price[0] + written * self.price[1]) / 1e6


def _shown(value: object) -> str:
    return "/".join(f"{each:g}" for each in value) if isinstance(value, tuple) else f"{value:.10g}"


def read(text: str) -> LlmSettings:
    """The settings of a player's text: ``llm:NAME@ADDRESS`` or ``llm:FOLDER``, with ``+tokens=100000``,
    ``+answer=2000``, ``+price=0.15/0.60``, ``+temperature=0.2``, ``+timeout=120`` behind it. Raises Unknown.
    """
    if len(text) > LONGEST or not text.isprintable():
        raise Unknown(f"A language model is named in one line of {LONGEST} characters at most.")
    named, behind = split(text)
    settings = {
        name: value for match in behind for name, value in match.groupdict().items() if value is not None
    }
    model, address = _model_and_address(named.removeprefix(f"{NAME}:"))
    if not model:
        raise Unknown(f"Name the language model: {FORM} (docs/llm.md).")
    made = LlmSettings(
        model,
        address,
        int(settings.get("tokens", LlmSettings.tokens)),
        int(settings.get("answer", LlmSettings.answer)),
        (float(settings["read"]), float(settings["written"])) if "read" in settings else None,
        float(settings["temperature"]) if "temperature" in settings else None,
        float(settings.get("timeout", LlmSettings.timeout)),
    )
    if min(made.tokens, made.answer) < 1 or made.timeout <= 0:
        raise Unknown("A language model needs at least a token to answer with, and some time.")
    return made


def split(text: str) -> tuple[str, list[re.Match[str]]]:
    """A player's text without the settings behind it, and these. A model's name may have a + too."""
    settings: list[re.Match[str]] = []
    while "+" in text and (match := _SETTING.match(text, text.rfind("+"))):
        settings.insert(0, match)
        text = text[: match.start()]
    return text, settings


def _model_and_address(text: str) -> tuple[str, str]:
    at = max(text.rfind("@http://"), text.rfind("@https://"))
    if at < 0:
        if "/" not in text and not Path(text).is_dir():
            raise Unknown(
                f"Where does {text!r} answer? Name the address too (--address http://127.0.0.1:11434/v1, or "
                f"{NAME}:{text or 'NAME'}@ADDRESS), or a folder with a model that transformers loads."
            )
        return text, ""
    model, address = text[:at], text[at + 1 :].rstrip("/")
    if "+" in address:
        raise Unknown(
            f"{address[address.index('+') :]} is no setting of a language model. There are +tokens=100000, "
            "+answer=2000, +price=0.15/0.60, +temperature=0.2 and +timeout=120."
        )
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port  # which raises where it is no port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise Unknown(
            "An address is http:// or https://, a host and a path, as http://127.0.0.1:11434/v1. A key does "
            f"not belong into it: set {KEY} in the environment."
        )
    return model, address


def offered(environment: Mapping[str, str] = os.environ) -> list[LlmSettings]:
    """The models that whoever started this process offers to its players; what is none is left out."""
    made = []
    for text in environment.get(OFFERED, "").split():
        try:
            made.append(read(text))
        except Unknown:
            continue
    return made


def key_for(address: str, environment: Mapping[str, str] = os.environ) -> str:
    """The key for an address, from the environment; empty where there is none.

    Raises Unknown where it could not be sent in a header, or would be sent where others can read it.
    """
    parts = urlsplit(address)
    own = KEYS_OF_HOSTS.get(parts.hostname or "", "")
    name = KEY if environment.get(KEY) or not own else own
    key = environment.get(name, "").strip()
    if not key:
        return ""
    if not re.fullmatch("[!-~]{1,4096}", key):
        raise Unknown(f"{name} is no key: it has spaces or signs that no header carries.")
    if parts.scheme != "https" and not is_here(parts.hostname or ""):
        raise Unknown(
            f"{name} is not sent to {parts.hostname} over http, where others can read it: name an https "
            f"address, or unset {name}."
        )
    return key


def fault_of(settings: LlmSettings) -> str:
    """Why such a model cannot be asked from here, as far as that is known before; empty where nothing is."""
    if settings.address:
        try:
            key_for(settings.address)
        except Unknown as unfit:
            return str(unfit)
    elif not (Path(settings.model) / "config.json").is_file():
        return (
            f"{settings.model} has no model that transformers loads (a config.json and weights): name its "
            "folder, or NAME@ADDRESS of one that answers elsewhere."
        )
    return ""


def is_here(host: str) -> bool:
    """Is it this machine by its loopback?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
