"""What a page may send: checked before anything looks at it. Anybody can write to a WebSocket."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dojo_core.bounded_json import encodes
from dojo_core.service.view import Json

MOST_EVENTS = 200  # in one message
MOST_FIELDS = 24
LONGEST = 1_000_000  # characters of a text: more than any text may have, so that its reader tells its limit
MOST_ITEMS = 64  # of a list
LARGEST = 2**53  # of an integer, as JavaScript has them


def client_name(name: object) -> str:
    """The name that a page gives itself, cut to something small."""
    return name[:40] if isinstance(name, str) and encodes(name) else ""


def sound(events: object) -> Iterator[Json]:
    """The events of a message that have the form of one; what else is among them is passed over."""
    if not isinstance(events, list):
        return
    for event in events[:MOST_EVENTS]:
        if isinstance(event, dict) and _is_sound(event):
            yield event


def _is_sound(event: Json) -> bool:
    return (
        len(event) <= MOST_FIELDS
        and _whole(event.get("seq"))
        and all(isinstance(name, str) and encodes(name) and _plain(value) for name, value in event.items())
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= MOST_ITEMS and all(_scalar(item) for item in value)
    return _scalar(value)


def _scalar(value: object) -> bool:
    match value:
        case None | bool():
            return True
        case int():
            return abs(value) <= LARGEST
        case float():
            return math.isfinite(value)
        case str():
            return len(value) <= LONGEST and encodes(value)
        case _:
            return False
