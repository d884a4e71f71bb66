"""What a command says while it waits for the measuring lock, and ``--anyway``, for which it does not wait."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from rich.markup import escape

from dojo_core.cli.terminal import err
from dojo_core.measure.exclusive import ANYWAY, announcer

_OPTION = inspect.Parameter(
    "anyway",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--anyway", help="Measure beside others, without waiting for the lock; the times are marked."
        ),
    ],
)


def measures(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that measures, with the option ``--anyway``; the processes that it starts follow it."""

    @wraps(command)
    def wrapped(*arguments: Any, anyway: bool = False, **options: Any) -> Any:
        before = os.environ.get(ANYWAY)
        if anyway:
            os.environ[ANYWAY] = "1"
        try:
            return command(*arguments, **options)
        finally:
            if anyway and before is None:
                del os.environ[ANYWAY]

    taken = inspect.signature(command, eval_str=True)
    signature = taken.replace(parameters=[*taken.parameters.values(), _OPTION])
    wrapped.__signature__ = signature  # type: ignore[attr-defined]
    return wrapped


def tell_of_waiting() -> None:
    """Say on standard error whom a command waits for: once, then it goes on waiting."""
    announcer.say = lambda sentence: err.print(escape(sentence), style="yellow", soft_wrap=True)
