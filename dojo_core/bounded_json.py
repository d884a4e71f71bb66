"""JSON that somebody else wrote: read within limits of size, depth and numbers, or told what is wrong with
it.

``json.loads`` alone ends in a RecursionError for 100,000 brackets, takes a number of any length, NaN, two
values for one key, and half of a surrogate pair, which no file and no database takes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

LARGEST = 16 << 20  # bytes or characters of a text
DEEPEST = 64  # brackets within each other
LONGEST_NUMBER = 64  # characters; of a float 25 are enough, and the state of a random generator has 39
MOST_VALUES = 2_000_000  # commas: an empty list takes 60 bytes of memory and 3 of a text

# A text's strings, whole, so that the brackets in them do not count; an open one goes to the end.
_STRINGS_AND_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """A text is no JSON that is read here; the message says why, as the end of a sentence."""


def read_json(text: str | bytes, largest: int = LARGEST, nonfinite: bool = False) -> Any:
    """The value of a JSON text. Raises NotJson; takes time and memory in proportion to the text.

    ``largest``: bytes or characters that it may have. ``nonfinite``: NaN and infinities are numbers too, as
    Python writes them.
    """
    if len(text) > largest:
        raise NotJson(f"it is longer than {_size_text(largest)}")
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise NotJson(f"its byte {error.start + 1} is not UTF-8") from None
    text = text.removeprefix("\ufeff")
    if text.count(",") > MOST_VALUES:
        raise NotJson(f"it has more than {MOST_VALUES:,} values")
    _check_depth(text)
    try:
        value = _decoder(nonfinite).decode(text)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"it is no JSON ({_cause(error)})") from None
    except (ValueError, RecursionError):
        raise NotJson("it is no JSON") from None
    if _HALF_PAIR.search(text) or not encodes(text):
        _check_strings(value)
    return value


def read_object(text: str | bytes, largest: int = LARGEST, nonfinite: bool = False) -> dict[str, Any]:
    """The same for a text that is an object. Raises NotJson."""
    value = read_json(text, largest, nonfinite)
    if not isinstance(value, dict):
        raise NotJson("it is no JSON object")
    return value


def _cause(error: json.JSONDecodeError) -> str:
    place = f"line {error.lineno}, column {error.colno}"
    return f"{error.msg[0].lower()}{error.msg[1:]}: {place}"


def _size_text(size: int) -> str:
    return (
        f"{size >> 20} MiB"
        if size >= 1 << 20
        else f"{size >> 10} KiB"
        if size >= 1 << 10
        else f"{size} bytes"
    )


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > DEEPEST:
                raise NotJson(f"it is nested deeper than {DEEPEST}")
        elif first in "]}":
            depth -= 1


def encodes(text: str) -> bool:
    """Is it without halves of surrogate pairs, so that it can be written, kept and sent?"""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_strings(value: Any) -> None:
    """Raise NotJson for half of a surrogate pair. The depth is bounded by now."""
    if isinstance(value, str):
        if not encodes(value):
            raise NotJson("a string in it has half of a surrogate pair")
    elif isinstance(value, list):
        for each in value:
            _check_strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_strings(key)
            _check_strings(each)


def _short_enough(digits: str) -> str:
    if len(digits) > LONGEST_NUMBER:
        raise NotJson(f"it has a number of {len(digits):,} characters")
    return digits


def _whole(digits: str) -> int:
    return int(_short_enough(digits))


def _finite(digits: str) -> float:
    number = float(_short_enough(digits))
    if not math.isfinite(number):
        raise NotJson(f"{digits} is larger than any number here")
    return number


def _refused(name: str) -> NoReturn:
    raise NotJson(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise NotJson(f"{ascii(twice)[:40]} stands twice in an object")
    return entries


def _decoder(nonfinite: bool) -> json.JSONDecoder:
    number: Callable[[str], Any] = float if nonfinite else _refused
    return json.JSONDecoder(
        object_pairs_hook=_once, parse_int=_whole, parse_float=_finite, parse_constant=number
    )
