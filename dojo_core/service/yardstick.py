"""The start's time that a game's speed-ups stand on.

It is the first one taken, and is kept with the game. A better one that comes later, taken in quiet or shorter
by more than noise, is told; the player decides whether speed-ups stand on it from then on. Only while nothing
has been played is there nothing to rewrite.
"""

from __future__ import annotations

import re

from dojo_core.measure.conditions import Conditions
from dojo_core.measure.speed import ALIKE
from dojo_core.service.queue import Outcome
from dojo_core.service.view import Json

_NOTE = re.compile(
    r"^# start timed (?P<seconds>\d\S*) s, taken (?P<taken>\d+), load (?P<load>\d\S*|unknown)"
    r"(?P<beside>, beside another)?$",
    re.MULTILINE,
)


def noted(yardstick: Outcome) -> str:
    """As a line beside a game's text."""
    load = yardstick.conditions.load
    shown = "unknown" if load is None else f"{load:.3f}"
    beside = "" if yardstick.conditions.exclusive else ", beside another"
    return f"# start timed {yardstick.seconds:.6g} s, taken {yardstick.taken or 0:.0f}, load {shown}{beside}"


def read(text: str) -> Outcome | None:
    """From a stored game's text; None where it has none that can be read."""
    note = _NOTE.search(text)
    if note is None:
        return None
    try:
        seconds, taken = float(note["seconds"]), float(note["taken"])
        load = None if note["load"] == "unknown" else float(note["load"])
    except ValueError:
        return None
    if not 0 < seconds < float("inf"):
        return None
    conditions = Conditions(load, note["beside"] is None)
    return Outcome("ok", seconds, seconds, 1, conditions=conditions, taken=taken or None)


def better(yardstick: Outcome | None, again: Outcome | None) -> Outcome | None:
    """The start's time as it is known now, where a player should hear of it."""
    if yardstick is None or again is None or not again.ok:
        return None
    alike = 1 / ALIKE <= again.seconds / yardstick.seconds <= ALIKE
    worse = yardstick.conditions.quiet and not again.conditions.quiet
    return None if alike or worse else again


def as_json(outcome: Outcome | None) -> Json | None:
    """A time, when it was taken (seconds since the epoch) and what else the machine did."""
    if outcome is None or not outcome.ok:
        return None
    return {"seconds": outcome.seconds, **provenance(outcome)}


def provenance(outcome: Outcome) -> Json:
    """When a time was taken, and what else the machine did."""
    return {"taken": outcome.taken, "busy": outcome.conditions.busy, "machine": outcome.conditions.words}
