"""The times that came with a game from its author, as of a study that was forked: told beside one's own.

They are the author's words, not measurements of this machine: nothing counts with them. They are kept as a
note at the end of the game's text, by program, and come in a link as a list along its line.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dojo_core.bounded_json import NotJson, read_json
from dojo_core.game import MAX_MOVES, Game
from dojo_core.service.view import Json

LONGEST = 8192  # characters in a link
_NOTE = re.compile(r"^# author's times: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Authored:
    """``seconds`` of programs by their hashes, on a machine that is named in words, at a date."""

    machine: str
    date: str
    seconds: Mapping[str, float]

    def told(self, game: Game) -> Json | None:
        """Of the position at a game's cursor: the author's time, and that of the start; None without one."""
        here = self.seconds.get(game.current.program.hash)
        if here is None:
            return None
        start = self.seconds.get(game.start.hash)
        return {"seconds": here, "start": start, "machine": self.machine, "date": self.date}


def note(authored: Authored) -> str:
    """As a line beside a game's text."""
    times = {program: float(f"{seconds:.4g}") for program, seconds in authored.seconds.items()}
    words = json.dumps([authored.machine, authored.date, times], separators=(",", ":"), ensure_ascii=True)
    return f"# author's times: {words}"


def of_text(text: str) -> Authored | None:
    """From a game's text; None where it has none that can be read."""
    found = _NOTE.search(text)
    if found is None:
        return None
    try:
        machine, date, times = read_json(found[1])
        return _authored(machine, date, [(program, seconds) for program, seconds in times.items()])
    except (NotJson, ValueError, TypeError, AttributeError):
        return None


def of_link(packed: str, line: Sequence[str]) -> Authored | None:
    """From what a link has beside its line, whose programs' hashes are ``line``; None where it is none."""
    if len(packed) > LONGEST:
        return None
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        machine, date, times = read_json(data, LONGEST)
        if not isinstance(times, list) or len(times) > len(line):
            return None
        known = zip(line, times, strict=False)
        return _authored(machine, date, [(program, each) for program, each in known if each is not None])
    except (NotJson, ValueError, TypeError, binascii.Error):
        return None


def _authored(machine: object, date: object, times: Sequence[tuple[str, object]]) -> Authored:
    """Raises ValueError for what is none."""
    if not isinstance(machine, str) or not isinstance(date, str) or len(times) > MAX_MOVES + 1:
        raise ValueError("no times of an author")
    seconds: dict[str, float] = {}
    for program, each in times:
        if isinstance(each, bool) or not isinstance(each, (int, float)) or not 0 < each < math.inf:
            raise ValueError("no time")
        seconds[program[:64]] = float(each)
    return Authored(" ".join(machine.split())[:200], " ".join(date.split())[:20], seconds)
