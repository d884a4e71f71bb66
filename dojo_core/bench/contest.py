"""What a target's programs are held against: its baselines, its limit, and how they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any

from dojo_core.targets.guarded import TROUBLE, TargetFailed, guarded
from dojo_core.targets.registry import UnknownTarget, backend

# What a report has at least, of which the form of what dojo bench --json writes tells more.
_REPORT = {"kernel", "shape", "reference", "rounds", "samples", "limits", "remarks", "entries"}


class BenchFailed(RuntimeError):
    """Our own entry could not be measured; the message says why."""


@dataclass(frozen=True)
class Contest:
    """``baselines``: by name, what the target makes of each. ``limit`` and ``panels``: what a report says of
    the limit and of its panels. ``limits``: a report's limits in a sentence for the terminal. ``fault``: why
    nothing can be measured now, or an empty text. ``run(game, entries, against, rounds, on_round, on_step,
    cold, ready_within, records)`` gives a report, and raises BenchFailed. ``needs_kernel``: is a text of
    one's own left out? ``starts``: may a start program be timed alone?
    ``policies``: may entries have a policy and constants of their own? ``apart_counts``: do entries shown
    apart compute the same, so that a faster one lowers the limit?"""

    baselines: Mapping[str, object]
    limit: str
    panels: str
    limits: Callable[[Mapping[str, Any]], str]
    run: Callable[..., dict[str, Any]]
    fault: Callable[[], str] = lambda: ""
    needs_kernel: bool = False
    starts: bool = True
    policies: bool = False
    apart_counts: bool = True


def contest(target: str) -> Contest | None:
    """That of a target; None where its programs are held against nothing, or it is not known here.

    It is guarded as the target is: what it raises and should not becomes a sentence. Raises TargetFailed
    where it is no contest, as its ``run`` does where that fails.
    """
    try:
        held = backend(target)
    except UnknownTarget:  # in a report of another installation
        return None
    if not held.rivals:
        return None
    with guarded(held.name):
        named = resolve_name(held.rivals)
        if not isinstance(named, Contest):
            raise TypeError(f"its rivals are of the type {type(named).__name__}")

    def run(*arguments: Any) -> dict[str, Any]:
        with guarded(held.name, BenchFailed, *TROUBLE):
            report = named.run(*arguments)
            if not isinstance(report, dict) or not report.keys() >= _REPORT:
                raise TypeError("what its rivals came to is no report")
            return report

    limits, fault = (_sentence(held.name, sentence) for sentence in (named.limits, named.fault))
    return replace(named, limits=limits, run=run, fault=fault)


def _sentence(target: str, sentence: Callable[..., str]) -> Callable[..., str]:
    """As a target tells it; where it fails, that it did."""

    def tell(*arguments: Any) -> str:
        try:
            with guarded(target):
                return sentence(*arguments)
        except TargetFailed as failure:
            return str(failure)

    return tell
