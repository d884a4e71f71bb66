"""Exporting: kernels as a small library that needs nothing of the Dojo."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core import kernels
from dojo_core.cli.models import HOW_TO_BUILD, export_model, free_place, write_library
from dojo_core.cli.positions import (
    ModelOption,
    PolicyOption,
    ShapeOption,
    kernels_and_shapes,
    parameters,
    played,
    tell_doubt,
    told_translation,
)
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, columns, err, out, print_table, read_file
from dojo_core.export import (
    DEFAULT_NAME,
    Choice,
    NotExported,
    best,
    library,
    of_game,
    of_heuristic,
    of_line,
    sets_for,
    start_game,
    verified,
)
from dojo_core.export.choice import Measure, line_end
from dojo_core.faults import program_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.game import Game
from dojo_core.line import line_for, read_line
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Records
from dojo_core.program.text import parse
from dojo_core.targets.cpu.measurer import Effort, Measurer, Workload
from dojo_core.wording import counted

SOURCES = ("best", "line", "heuristic", "start")


def export(
    to: Annotated[
        Path,
        typer.Option("--to", help="The folder to write, or a file that ends in .zip.", show_default=False),
    ],
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KERNEL...",
            help="Kernels (NAME or NAME:SHAPE), layers, networks; or files: a game, a line, a text.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    shape: ShapeOption = None,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="best (this machine's record, the line, or the heuristic), line, heuristic, or start.",
        ),
    ] = "best",
    policy: PolicyOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the lines, such as block=48.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The library's name in C and Python.")] = DEFAULT_NAME,
    others: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Instruction sets that get kernels of their own, of x86,arm,riscv; x86 always has.",
            show_default=False,
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Verify and time first what this machine has not measured yet."
        ),
    ] = True,
) -> None:
    """Write kernels as a library to take away: C, a CMake file, Python and PyTorch.

    Example: [bold]dojo export softmax matmul:768x1024x1024 --to fast[/bold]
    or [bold]dojo export my.game --to fast.zip --name my_kernels[/bold]
    or [bold]dojo export softmax --for x86,arm,riscv --to fast[/bold]
    or [bold]dojo export --model model.dojo --to fast --name my_model[/bold]
    """
    if bool(wanted) == (model is not None):
        raise Failure("Name the kernels to export, or give --model and a file.")
    if model is not None:
        if shape or settings:
            raise Failure("A model has its sizes in its file: leave --shape and --set out.")
        export_model(model, to, source, policy, name, others, measure)
        return
    if source not in SOURCES:
        raise Failure(f"--from takes {', '.join(SOURCES)}, not {source!r}.")
    free_place(to)
    with opened() as records, Measurer(records) as measurer:
        measured = _measuring(measurer) if measure else None
        try:
            sets = sets_for(others) if others else ()
            named = kernels_and_shapes(wanted or [], shape)
            chosen = [_choice(name, at, source, policy, settings, records, measured) for name, at in named]
            made = library(chosen, name, sets)
            write_library(made, to)
        except (NotExported, ValueError) as refusal:
            raise Failure(str(refusal)) from None
    table = columns("kernel", "from", "moves", "time here", "machine", right=("moves", "time here"))
    for each in made.instances:
        choice = each.choice
        seconds = choice.record.seconds if choice.record is not None else None
        table.add_row(
            each.name,
            choice.source,
            "?" if choice.moves is None else str(len(choice.moves)),
            "not measured" if seconds is None else seconds_text(seconds),
            choice.record.conditions.mark if choice.record is not None else "",
        )
    print_table(table)
    out.print(
        f"Wrote {counted(len(made.files), 'file')} to {escape(str(to))}. {HOW_TO_BUILD}",
        soft_wrap=True,
    )


def _measuring(measurer: Measurer) -> Measure:
    """Verifies and times a choice and leaves that in the records."""

    def measure(choice: Choice) -> None:
        err.print(f"Measuring {escape(choice.title)}, {escape(choice.source)} …", style="dim")
        lines = {choice.program.hash: "\n".join(choice.moves or ())}
        workload = Workload(choice.start, choice.kernel, choice.policy)
        (measurement,) = measurer.measure(workload, [choice.program], Effort.FINAL, lines=lines)
        if measurement.status != "ok":
            raise NotExported(
                f"{choice.title} ({choice.source}) was not exported: on this machine it is "
                f"{measurement.status.replace('_', ' ')}: {measurement.message}"
            )

    return measure


def _choice(
    kernel: str,
    at: str | None,
    source: str,
    policy: str | None,
    settings: list[str] | None,
    records: Records,
    measure: Measure | None,
) -> Choice:
    """A kernel at a shape, or a file, as what it stands for."""
    if kernel not in kernels.names():
        return verified(_from_file(kernel, at, policy, settings), records, measure)
    if source in ("heuristic", "start"):
        if settings:
            raise Failure(f"--set is of a line: leave it out with --from {source}.")
        game = start_game(kernel, at, policy or "reassoc")
        chosen = of_game(game, "the start program") if source == "start" else of_heuristic(game)
        return verified(chosen, records, measure)
    if source == "best" and not settings:
        return best(kernel, at, records, policy, measure)
    line = line_for(kernel, at)
    if line is None:
        raise Failure(f"There is no recorded line of {kernel}: leave --set out, or give --from heuristic.")
    return verified(of_line(line, kernel, at, policy, parameters(settings or [])), records, measure)


def _from_file(wanted: str, shape: str | None, policy: str | None, settings: list[str] | None) -> Choice:
    """A game at its cursor, the end of a line, or a program text as it is."""
    path = Path(wanted)
    if not (path.suffix or "/" in wanted or path.exists()):
        raise Failure(f"{kernels.unknown(wanted)} Or give the path of a file.")
    text = read_file(path)
    kind = kind_of(text)
    if kind == "graph":
        raise Failure(f"{path} is a whole model: give it as --model.")
    if kind not in ("game", "line"):
        if settings or (shape and kind == "program"):
            raise Failure(f"{path} has its sizes in its text: leave --shape and --set out.")
        own = kind == "program"
        program = parse(text) if own else told_translation(text, shape.split(",") if shape else []).program
        fault = program_fault(program, source=text if own else None)
        if fault is not None:
            raise Failure(fault)
        tell_doubt(program)
        return of_game(Game.new(program, policy=policy or "reassoc"), f"the text {path.name}")
    if kind == "game":
        if settings or shape or policy:
            raise Failure(
                "A game has its shape and policy in its text: leave --set, --shape and --policy out."
            )
        game = Game.from_text(text)
        tell_doubt(game.start)
        return of_game(game, f"the game {path.name}")
    line = read_line(text, path.stem)
    if line.kernel is None:
        raise Failure(f"{path} names no kernel: add a line such as: kernel softmax")
    game = played(line.kernel, shape, policy, path, settings)
    again = partial(line_end, line, game, settings=parameters(settings or []))
    return replace(of_game(game, f"the line {path.name}"), again=again)
