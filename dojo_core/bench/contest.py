"""What a target's programs are held against: its baselines, its limit, and how they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from dojo_core.targets.registry import UnknownTarget, backend


@dataclass(frozen=True)
class Contest:
    """``baselines``: by name, what the target makes of each. ``limit`` and ``panels``: what a report says of
    the limit and of its panels. ``limits``: a report's limits in a sentence for the terminal. ``fault``: why
    nothing can be measured now, or an empty text. ``run(game, entries, against, rounds, on_round, on_step,
    cold, ready_within, records)`` gives a report. ``needs_kernel``: is a text of one's own left out?
    ``starts``: may a start program be timed alone? ``apart_counts``: do entries shown apart compute the same,
    so that a faster one lowers the limit?"""

    baselines: Mapping[str, object]
    limit: str
    panels: str
    limits: Callable[[Mapping[str, Any]], str]
    run: Callable[..., dict[str, Any]]
    fault: Callable[[], str] = lambda: ""
    needs_kernel: bool = False
    starts: bool = True
    apart_counts: bool = True


def contest(target: str) -> Contest | None:
    """That of a target; None where its programs are held against nothing, or it is not known here."""
    try:
        place = backend(target).rivals
    except UnknownTarget:  # in a report of another installation
        return None
    found: Contest | None = resolve_name(place) if place else None
    return found
