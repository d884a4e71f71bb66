"""The generated C and its assembly on the terminal."""

from __future__ import annotations

from rich.syntax import Syntax

from dojo_core.cli.terminal import Failure, out
from dojo_core.codegen.code import NotGeneratable
from dojo_core.game import Game
from dojo_core.targets.listing import assembly_of
from dojo_core.targets.registry import GPUS, SIMULATED


def print_code(game: Game) -> None:
    from dojo_core.targets.cpu.codegen import generate

    program = game.current.program
    if game.target in GPUS:
        from dojo_core.targets.gpu.check import gpu_code

        text, language = gpu_code(program, game.target, game.policy).text, "cuda"
    elif game.target in SIMULATED:
        from dojo_core.targets.snitch.codegen import generate as assembler

        text, language = assembler(program).text, "gas"
    else:
        text, language = generate(program, game.policy).text, "c"
    if out.is_terminal:
        out.print(Syntax(text, language, background_color="default", word_wrap=False))
    else:
        print(text)


def print_assembly(game: Game) -> None:
    try:
        made = assembly_of(game.current.program, game.target, game.policy)
    except (NotGeneratable, ValueError) as error:
        raise Failure(f"There is no assembly to show. {error}") from None
    print("\n".join(made.lines))
