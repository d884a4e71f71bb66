"""Playing: a line of moves replayed, each checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.listing import print_assembly, print_code
from dojo_core.cli.positions import KernelArgument, PolicyOption, ShapeOption, line_text, played
from dojo_core.cli.terminal import Failure, err, out, write_file
from dojo_core.line import with_births


def play(
    kernel: KernelArgument,
    line: Annotated[
        Path, typer.Option("--line", help="A line file, a game, or the name of a recorded line.")
    ],
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the line, such as block=48.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the final program (default).")] = False,
    code: Annotated[bool, typer.Option("--code", help="Print the generated C.")] = False,
    asm: Annotated[bool, typer.Option("--asm", help="Print the assembly.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the game as text.")] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Write the line with the births of what its moves name.")
    ] = None,
) -> None:
    """Replay a line of moves, each checked.

    Example: [bold]dojo play softmax --line softmax --code[/bold]
    """
    game = played(kernel, shape, policy, line, settings)
    if save is not None:
        write_file(save, game.to_text())
        err.print(f"Saved {save}.", style="dim")
    if record is not None:
        written = line_text(line)
        if written.startswith("dojo game"):
            raise Failure(f"{line} is a game, which has the births in its text already: use --save.")
        write_file(record, with_births(written, game))
        err.print(f"Recorded {record}.", style="dim")
    program = game.current.program
    if text or not (code or asm):
        out.print(escape(program.text), end="", soft_wrap=True)
    if code:
        print_code(program, game.policy)
    if asm:
        print_assembly(program, game.policy)
    err.print(f"{len(game.line()) - 1} moves.", style="dim")
