"""A command of the table, imported and made so that errors which a person can cause end in a sentence."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer

from dojo_core.cli.terminal import plain_errors, write_what_can_be_written
from dojo_core.cli.waiting import measures, tell_of_waiting
from dojo_core.garbage import look_seldom

if TYPE_CHECKING:
    from dojo_core.cli.commands import Command


@cache
def loaded(command: Command) -> Any:
    """What Typer runs for it."""
    module, name = command.place.split(":")
    loaded_object = getattr(import_module(module), name)
    if not isinstance(loaded_object, typer.Typer):
        run = measures(loaded_object) if command.measures else loaded_object
        loaded_object = typer.Typer(add_completion=False, rich_markup_mode="rich")
        loaded_object.command()(plain_errors(run))
    return typer.main.get_command(loaded_object)


def begin() -> None:
    """Before any command runs."""
    look_seldom()
    write_what_can_be_written()
    tell_of_waiting()
