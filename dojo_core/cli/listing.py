"""The generated C and its assembly on the terminal."""

from __future__ import annotations

from rich.syntax import Syntax

from dojo_core.actions import looking
from dojo_core.cli.terminal import out
from dojo_core.game import Game
from dojo_core.targets.registry import backend


def print_code(game: Game) -> None:
    target = backend(game.target)
    text = looking.code(game.current.program, game.target, game.policy).text
    if out.is_terminal:
        out.print(Syntax(text, target.words.language, background_color="default", word_wrap=False))
    else:
        print(text)


def print_assembly(game: Game) -> None:
    print("\n".join(looking.assembly(game.current.program, game.target, game.policy).lines))
