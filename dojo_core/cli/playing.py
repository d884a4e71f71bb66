"""Playing: a line, moves and recipes, each move checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.actions import playing
from dojo_core.cli.listing import print_assembly, print_code
from dojo_core.cli.positions import (
    KernelArgument,
    MachineOption,
    PolicyOption,
    ShapeOption,
    TargetOption,
    line_text,
    played,
)
from dojo_core.cli.terminal import Failure, columns, err, out, print_table, read_file, write_file
from dojo_core.line import with_provenance
from dojo_core.moves.notation import form
from dojo_core.program.expressions import TextError
from dojo_core.recipes import known_recipes, read_recipe
from dojo_core.wording import counted


def play(
    kernel: KernelArgument,
    line: Annotated[
        Path | None, typer.Option("--line", help="A line file, a game, or the name of a recorded line.")
    ] = None,
    calls: Annotated[
        list[str] | None, typer.Option("--do", help="A move or a recipe to play then; may be repeated.")
    ] = None,
    own: Annotated[
        list[Path] | None, typer.Option("--recipe", help="A file with a recipe of your own; may be repeated.")
    ] = None,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    target: TargetOption = None,
    machine: MachineOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the line, such as block=48.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the final program (default).")] = False,
    code: Annotated[bool, typer.Option("--code", help="Print the generated code.")] = False,
    asm: Annotated[bool, typer.Option("--asm", help="Print the assembly.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the game as text.")] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            help="Write the line with the places it names, so that replay notices a change.",
        ),
    ] = None,
) -> None:
    """Play a line, moves or recipes, each move checked.

    Example: [bold]dojo play softmax --line softmax --code[/bold]
    or [bold]dojo play softmax --do 'fuse m@0' --do 'tile d@1 32 16'[/bold]
    """
    game = played(kernel, shape, policy, line, settings, target, machine)
    if line is None and not calls and len(game.line()) == 1:
        raise Failure("Nothing to play: give --line, or --do with a move or a recipe (see: dojo recipes).")
    recipes = {
        **known_recipes(_tell_unread),
        **{r.name: r for r in (read_recipe(read_file(p)) for p in own or [])},
    }
    line_played = playing.play(game, calls or [], recipes)
    for each in line_played.played:
        if len(each.moves) > 1:
            err.print(f"{escape(each.text)}: {counted(len(each.moves), 'move')}.", style="dim")
    if line_played.refused is not None:
        raise line_played.refused
    if save is not None:
        write_file(save, game.to_text())
        err.print(f"Saved {save}.", style="dim")
    if record is not None:
        if line is None or calls:
            raise Failure("--record writes the line of --line again: use --save for what you played.")
        written = line_text(line, game.target)
        if written.startswith("dojo game"):
            raise Failure(f"{line} is a game, which needs no --record: use --save.")
        write_file(record, with_provenance(written, game))
        err.print(f"Recorded {record}.", style="dim")
    program = game.current.program
    if text or not (code or asm):
        out.print(escape(program.text), end="", soft_wrap=True)
    if code:
        print_code(game)
    if asm:
        print_assembly(game)
    err.print(f"{counted(len(game.line()) - 1, 'move')}.", style="dim")


def _tell_unread(file: Path, fault: TextError) -> None:
    """Of a file in the data directory that is no recipe; the others are there."""
    err.print(escape(f"{file} is left out. {fault}"), style="yellow", soft_wrap=True)


def show_recipes() -> None:
    """List the recipes: named ways of making several moves.

    Example: [bold]dojo recipes[/bold]
    """
    table = columns("recipe", "what it does")
    for each in known_recipes(_tell_unread).values():
        about = re.sub(r"``(.+?)``", r"[bold]\1[/bold]", escape(each.about))
        table.add_row(f"[bold]{escape(form(each))}[/bold]", about)
    print_table(table)
