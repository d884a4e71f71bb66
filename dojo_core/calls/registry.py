"""All calls by name."""

from __future__ import annotations

from collections.abc import Callable

from dojo_core.calls.call import LONGEST_NAME, Answer, Call, CallFault, made
from dojo_core.spelling import meant

CALLS: dict[str, Call] = {}


def call_named(name: str) -> Call:
    """Raises CallFault, which names those that there are."""
    known = CALLS.get(name)
    if known is None:
        asked = str(name)[:LONGEST_NAME]
        words = f"There is no call {asked!r}. {meant(asked, CALLS)} The calls: {', '.join(CALLS)}."
        raise CallFault(" ".join(words.split()), "not_found")
    return known


def call(data: type, *, changes: bool = False) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Registers a function as the call of its name; ``data`` is a TypedDict of what its answer holds. Its
    first argument is the desk; the others are annotated ``Annotated[type, "what it is", {more of its JSON
    Schema}]``. Its docstring documents the call."""

    def registered(run: Callable[..., Answer]) -> Callable[..., Answer]:
        new = made(run, data, changes)
        CALLS[new.name] = new
        return run

    return registered
