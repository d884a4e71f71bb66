"""What people type or click: codes, names, links, as they are kept; or a sentence why they are not."""

from __future__ import annotations

import re
import secrets
import unicodedata
from urllib.parse import urlsplit

from dojo_core.service.refused import Refused

# Without vowels no code is a word; without L, Q and Y each letter is told from all others in whatever type.
LETTERS = "BCDFGHJKMNPRSTVWXZ"
LENGTH = 8  # 1.1e10 codes: at the rate of wrong ones that is let through, none of 200 is found in a century
LONGEST_NAME = 40
LONGEST_TITLE = 80
LONGEST_ADDRESS = 2_000

NO_CLASS = "There is no class of this code: look at it again, letter by letter."


def new_code() -> str:
    """Eight letters, written in two groups (``spelled``)."""
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def spelled(code: str) -> str:
    """A code as people read it: BCDF-GHJK."""
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


def read_code(text: str) -> str:
    """A code as it was typed: in small letters, with spaces or a line between; "" where it is none."""
    code = re.sub(r"[\s-]", "", text[:40]).upper()
    return code if len(code) == LENGTH and set(code) <= set(LETTERS) else ""


def plain(text: str, longest: int) -> str:
    """What was typed in a line: without control and direction characters, single spaces, cut off."""
    kept = (" " if sign.isspace() else sign for sign in unicodedata.normalize("NFC", text[: 4 * longest]))
    words = "".join(sign for sign in kept if not unicodedata.category(sign).startswith("C"))
    return " ".join(words.split())[:longest].strip()


def name(text: str) -> str:
    """A student's name. Raises Refused for one with nothing to read in it."""
    typed = plain(text, LONGEST_NAME)
    if not any(sign.isalnum() for sign in typed):
        raise Refused("Write a name that your teacher will know you by: letters or digits.")
    return typed


def told_apart(typed: str, taken: set[str]) -> str:
    """A name that is not among ``taken``: Ada, else Ada (2)."""
    others = {each.casefold() for each in taken}
    chosen, number = typed, 1
    while chosen.casefold() in others:
        number += 1
        ending = f" ({number})"
        chosen = typed[: LONGEST_NAME - len(ending)].rstrip() + ending
    return chosen


def web_address(text: str) -> str:
    """An address of the web as it was pasted. Raises Refused for any other."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or len(address) > LONGEST_ADDRESS or re.search(r"[\s\x00-\x1f\x7f]", address):
        raise Refused("Paste a whole address of the web, such as https://example.org/softmax.html.")
    return address
