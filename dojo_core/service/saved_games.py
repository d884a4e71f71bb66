"""Saved games as a list shows them, read from their texts without replaying them.

Beside a game's own text the store keeps notes as comments at its end, which a reader of games passes over:
the best speed-up known when it was saved, the start's time that it stands on, that it is not to be
measured, which program plays it, and the times that it came with.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service.authored import Authored, note
from dojo_core.service.queue import Outcome
from dojo_core.service.sources import SavedText
from dojo_core.service.view import Json
from dojo_core.service.yardstick import noted

LISTED = 500  # games that a page is told of

_BEST = re.compile(r"^# best speed-up (\d+(?:\.\d+)?)$", re.MULTILINE)
_UNMEASURED = "# measuring is off"
_CLIENT = re.compile(r"^# played by (.+)$", re.MULTILINE)


def notes(
    best: float | None,
    measuring: bool,
    yardstick: Outcome | None = None,
    client: str = "",
    authored: Authored | None = None,
) -> str:
    """What is kept beside a game's text; ``yardstick``: the start's time that speed-ups stand on;
    ``client``: the program that plays it, on a line; ``authored``: the times that came with the game."""
    lines = [] if best is None else [f"# best speed-up {best:.4f}"]
    lines += [] if yardstick is None else [noted(yardstick)]
    lines += [f"# played by {client}"] if client else []
    lines += [] if authored is None else [note(authored)]
    return "".join(line + "\n" for line in lines + ([] if measuring else [_UNMEASURED]))


def notes_in(text: str) -> str:
    """The notes of a stored text."""
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("# "))


def client_in(text: str) -> str:
    """The program that a stored text says to be played by; empty where a person plays."""
    found = _CLIENT.search(text)
    return found[1] if found else ""


def measured(text: str) -> bool:
    """Is the game to be measured when it is opened?"""
    return _UNMEASURED not in text.splitlines()


def cards(games: Iterable[SavedText]) -> list[Json]:
    """The games that have moves, in the order given."""
    outlined = ((game, outline(game.text)) for game in games)
    return [
        {
            "id": game.id,
            "title": game.title,
            "kernel": " ".join(filter(None, (what.kernel, what.shape))),
            "moves": len(what.line),
            "last": what.line[-1],
            "best": what.best,
            "when": when(game.updated),
            "client": client_in(game.text),
        }
        for game, what in outlined
        if what.line
    ]


@dataclass(frozen=True)
class Outline:
    """What a saved game's text says at a glance; ``line`` is its main line."""

    kernel: str
    shape: str
    line: tuple[str, ...]
    best: float | None
    target: str


@lru_cache(maxsize=2 * LISTED)
def outline(text: str) -> Outline:
    head, _, rest = text.partition("\nmoves:\n")
    facts = dict(line.split(": ", 1) for line in head.partition("\nstart:")[0].splitlines() if ": " in line)
    first: dict[int, tuple[int, str]] = {}  # the main move at each position
    previous = 0
    for line in rest.splitlines():
        place, colon, move = line.partition(":")
        words = place.split()
        if not colon or not words or not words[0].isdigit():
            continue
        parent = int(words[words.index("after") + 1]) if "after" in words else previous
        previous = int(words[0])
        first.setdefault(parent, (previous, move.partition(";")[0].strip()))
    played: list[str] = []
    at = 0
    while at in first and len(played) < len(first):
        at, move = first[at]
        played.append(move)
    best = _BEST.search(rest)
    shown = {name: "" if facts.get(name) in (None, "-") else facts[name] for name in ("kernel", "shape")}
    gain, target = float(best[1]) if best else None, facts.get("target", DEFAULT_TARGET)
    return Outline(shown["kernel"], shown["shape"], tuple(played), gain, target)


def when(seconds: float) -> str:
    """A time as people say it."""
    ago = time.time() - seconds
    if ago < 90:
        return "just now"
    if ago < 5400:
        return f"{round(ago / 60)} minutes ago"
    if ago < 129600:
        return f"{round(ago / 3600)} hours ago"
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d")
