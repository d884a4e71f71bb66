"""The generated C and its assembly on the terminal."""

from __future__ import annotations

from rich.syntax import Syntax

from dojo_core.cli.terminal import Failure, out
from dojo_core.codegen.code import NotGeneratable
from dojo_core.game import Game
from dojo_core.targets.registry import backend


def print_code(game: Game) -> None:
    target = backend(game.target)
    text = target.generate(game.current.program, game.policy).text
    if out.is_terminal:
        out.print(Syntax(text, target.words.language, background_color="default", word_wrap=False))
    else:
        print(text)


def print_assembly(game: Game) -> None:
    try:
        made = backend(game.target).assembly(game.current.program, game.policy)
    except (NotGeneratable, ValueError) as error:
        raise Failure(f"There is no assembly to show. {error}") from None
    print("\n".join(made.lines))
