"""Whose a game is: a browser's, known by a secret that it keeps, a login's, or a program's that plays.

An owner is a text that is kept beside the game. That of a browser holds a digest of its secret: neither the
database nor a page shows what would let anybody else in. Games of a Dojo that knew no owners, and those that
agents made at the command line, have another text there: they are nobody's.
"""

from __future__ import annotations

import hashlib

BROWSER, LOGIN, VISITOR, CLIENT = "browser:", "login:", "visitor:", "client:"
OWNED = (BROWSER, LOGIN, VISITOR, CLIENT)


def of_browser(secret: str) -> str:
    """The owner that a browser with this secret is."""
    return BROWSER + hashlib.sha256(secret.encode()).hexdigest()[:32]


def of_login(account: str) -> str:
    """The owner that an account is, in whichever browser."""
    return LOGIN + account


def of_visitor(session: str) -> str:
    """The owner that a session is whose browser keeps no secret: only as long as it lasts."""
    return VISITOR + session


def of_client(name: str) -> str:
    """The owner that a program is that plays by calls (dojo_core/calls), by the name that it gave."""
    return CLIENT + name


def is_client(owner: str) -> bool:
    return owner.startswith(CLIENT)


def is_nobodys(owner: str) -> bool:
    return not owner.startswith(OWNED)


def may_claim(owner: str, before: str, local: bool) -> bool:
    """May ``owner`` have a game of ``before``, because it is nobody's?

    Where the app serves one machine alone (``local``), the first browser that opens it; elsewhere the account
    whose it was before owners were told apart.
    """
    if not is_nobodys(before):
        return False
    return owner == LOGIN + before or (local and owner.startswith((BROWSER, LOGIN)))


def may_take_over(owner: str, before: str, local: bool) -> bool:
    """May ``owner`` have a game of ``before`` when they ask for it: a program's, where all who come in are at
    the machine that it plays on (``local``)?"""
    return is_client(before) and local and owner.startswith((BROWSER, LOGIN))


def name(owner: str) -> str:
    """An owner as a list shows it to others."""
    for named in (LOGIN, CLIENT):
        if owner.startswith(named):
            return owner.removeprefix(named)
    return (owner or "–") if is_nobodys(owner) else "another browser"


def watching(owner: str) -> str:
    """What is said to whoever opens a game of this owner without being it."""
    if is_client(owner):
        whose = f"is played by {name(owner)}"
    else:
        whose = "has no owner" if is_nobodys(owner) else f"belongs to {name(owner)}"
    return f"This game {whose}: you can watch it, not change it. Play on in a copy of your own (Fork)."
