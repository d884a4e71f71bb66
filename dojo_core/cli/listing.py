"""The generated C and its assembly on the terminal."""

from __future__ import annotations

from rich.syntax import Syntax

from dojo_core.cli.terminal import Failure, out
from dojo_core.game import Game


def print_code(game: Game) -> None:
    from dojo_core.targets.cpu.codegen import generate

    text = generate(game.current.program, game.policy).text
    if out.is_terminal:
        out.print(Syntax(text, "c", background_color="default", word_wrap=False))
    else:
        print(text)


def print_assembly(game: Game) -> None:
    from dojo_core.targets.cpu.build import assembly
    from dojo_core.targets.cpu.codegen import generate

    try:
        made = assembly(generate(game.current.program, game.policy))
    except ValueError as error:
        raise Failure(f"The generated C does not compile: {error}") from None
    print("\n".join(made.lines))
