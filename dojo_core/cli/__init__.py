"""The command line: the same game through another door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from dojo_core.cli.benching import bench
from dojo_core.cli.counting import count_lines
from dojo_core.cli.exporting import export
from dojo_core.cli.keeping import best, export_records, import_records, restore_records
from dojo_core.cli.looking import check, explain, moves, show, show_kernels
from dojo_core.cli.measuring import time_moves
from dojo_core.cli.playing import play, show_recipes
from dojo_core.cli.reproducing import reproduce
from dojo_core.cli.schooling import lesson
from dojo_core.cli.serving import demo, run_app
from dojo_core.cli.telling import tell
from dojo_core.cli.terminal import out, plain_errors, write_what_can_be_written
from dojo_core.cli.waiting import measures, tell_of_waiting
from dojo_core.version import version

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "kernels": show_kernels,
    "show": show,
    "moves": moves,
    "why": explain,
    "perft": count_lines,
    "play": play,
    "recipes": show_recipes,
    "check": check,
    "time": measures(time_moves),
    "bench": measures(bench),
    "export": measures(export),
    "story": measures(tell),
    "best": best,
    "records-export": export_records,
    "records-import": import_records,
    "records-restore": restore_records,
    "reproduce": measures(reproduce),
    "app": run_app,
    "demo": demo,
}


def _version(asked: bool) -> None:
    if asked:
        out.print(f"dojo {version()}")
        raise typer.Exit()


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """The Dojo: make kernels fast by playing transformations. Try: [bold]dojo show softmax[/bold]"""
    write_what_can_be_written()
    tell_of_waiting()


for _name, _command in _COMMANDS.items():
    app.command(_name)(plain_errors(_command))
app.add_typer(lesson, name="lesson")


def main() -> None:
    """The entry point of ``dojo``."""
    app()
