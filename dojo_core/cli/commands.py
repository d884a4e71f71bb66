"""The table of commands: where each is, and what ``dojo --help`` says of it. A command's module is imported
when the command is given: most need little of the Dojo, and none needs all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typer.core import TyperCommand, TyperGroup

from dojo_core.package_data import document


@dataclass(frozen=True)
class Command:
    """``place``: a module and its function, or its Typer of several. ``summary``: how its help begins."""

    place: str
    summary: str
    measures: bool = False  # waits for the measuring lock, and has the option --anyway


COMMANDS = {
    "kernels": Command(
        "dojo_core.cli.looking:show_kernels",
        "List the kernels, or the layers of a network as shapes of them.",
    ),
    "show": Command(
        "dojo_core.cli.looking:show", "Show a kernel's start program, or the one that a line leads to."
    ),
    "moves": Command("dojo_core.cli.looking:moves", "List the legal moves of a position."),
    "why": Command(
        "dojo_core.cli.looking:explain",
        "Explain why a move is legal or not, with the places it is about.",
    ),
    "perft": Command(
        "dojo_core.cli.counting:count_lines",
        "Count the lines of legal moves to a depth, by their last move, as chess programmers do.",
    ),
    "play": Command("dojo_core.cli.playing:play", "Play a line, moves or recipes, each move checked."),
    "recipes": Command(
        "dojo_core.cli.playing:show_recipes",
        "List the recipes: named ways of making several moves.",
    ),
    "check": Command(
        "dojo_core.cli.looking:check",
        "Check a program text: its form, its storage, its marks; of a game or a line, each move.",
    ),
    "translate": Command(
        "dojo_core.cli.translating:translate_text",
        "Make NumPy, PyTorch, an einsum, loops in C or ONNX a program's text, checked on random inputs.",
    ),
    "import": Command(
        "dojo_core.cli.importing:import_onnx",
        "Make a model's operators (ONNX) one kernel's text or a graph of kernels, or tell what cannot be "
        "taken.",
    ),
    "time": Command(
        "dojo_core.cli.measuring:time_moves",
        "Verify and time a position, and if asked every legal move of it, in turns with the position; "
        "what else the machine did is told.",
        measures=True,
    ),
    "profile": Command(
        "dojo_core.cli.profiling:profile",
        "Tell where the time of a position goes: each loop's and operation's share, and what bounds it.",
        measures=True,
    ),
    "bench": Command(
        "dojo_core.cli.benching:bench",
        "Time our lines against baselines and the machine's limits, in interleaved rounds, "
        "separate processes.",
        measures=True,
    ),
    "export": Command(
        "dojo_core.cli.exporting:export",
        "Write kernels as a library to take away: C, a CMake file, Python and PyTorch.",
        measures=True,
    ),
    "best": Command(
        "dojo_core.cli.keeping:best", "Tell the fastest verified programs measured on this machine."
    ),
    "records-export": Command(
        "dojo_core.cli.keeping:export_records",
        "Write measurements to a file, to take along or to give away.",
    ),
    "records-import": Command(
        "dojo_core.cli.keeping:import_records",
        "Take in measurements from files or other databases; the same twice changes nothing.",
    ),
    "records-restore": Command(
        "dojo_core.cli.keeping:restore_records",
        "Go back to a back-up of measurements and games; what there is now is kept under another name.",
    ),
    "reproduce": Command(
        "dojo_core.cli.reproducing:reproduce",
        "Try a wrong result again: the same program on the same inputs. Ends with 1 where it is wrong still.",
        measures=True,
    ),
    "packages": Command(
        "dojo_core.cli.packages:show_packages",
        "List what installed packages bring, or print the page of one.",
    ),
    "app": Command("dojo_core.cli.serving:run_app", "Open the app in a browser."),
    "demo": Command(
        "dojo_core.cli.serving:demo",
        "Open the app on a tour: softmax from the naive program to an operator in a model.",
    ),
    "study": Command(
        "dojo_core.cli.studying:study",
        f"Studies: games with words, built into pages that open anywhere ({document('studies.md')}).",
    ),
    "lesson": Command(
        "dojo_core.cli.schooling:lesson",
        f"Lessons and puzzles: see what there is, check your own ({document('lessons.md')}).",
    ),
}


class CommandGroup(TyperGroup):
    """Lists ``COMMANDS`` by their summaries, and loads the one that is given."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=each.summary) for name, each in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        # What every command is made with imports the core as well.
        from dojo_core.cli.loading import loaded

        name, command, rest = super().resolve_command(ctx, args)
        return name, loaded(COMMANDS[name]) if name in COMMANDS else command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # while a command was being imported
            from dojo_core.cli.terminal import stopped

            raise stopped() from None
