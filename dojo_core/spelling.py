"""A name that was mistyped, and the nearest one that there is."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def meant(name: str, known: Iterable[str]) -> str:
    """``Did you mean tanh?`` of ``tanhh``; empty where nothing is near. Upper and lower case are alike."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1)
    return f"Did you mean {by_lower[near[0]]}?" if near else ""
