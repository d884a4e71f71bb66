"""The command line: the same game through another door."""

from __future__ import annotations

from typing import Annotated

import typer

from dojo_core.cli.commands import CommandGroup
from dojo_core.version import version

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dojo {version()}")
        raise typer.Exit()


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """The Dojo: make kernels fast by playing transformations. Try: [bold]dojo show softmax[/bold]"""
    from dojo_core.cli.loading import begin  # where a command follows, which needs it as well

    begin()


def main() -> None:
    """The entry point of ``dojo``."""
    app()
