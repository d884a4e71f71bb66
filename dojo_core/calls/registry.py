"""All calls by name."""

from __future__ import annotations

from collections.abc import Callable

from dojo_core.calls.call import Answer, Call, made

CALLS: dict[str, Call] = {}


def call(*, changes: bool = False) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Registers a function as the call of its name. Its first argument is the desk; the others are annotated
    ``Annotated[type, "what it is", {more of its JSON Schema}]``. Its docstring documents the call."""

    def registered(run: Callable[..., Answer]) -> Callable[..., Answer]:
        new = made(run, changes)
        CALLS[new.name] = new
        return run

    return registered
