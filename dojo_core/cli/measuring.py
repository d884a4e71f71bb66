"""Measuring: a position and its moves timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dojo_core.actions.timing import nothing_times, timed_in_turns, workload_of
from dojo_core.cli.positions import (
    JsonFlag,
    LineOption,
    ModelOption,
    OptionalKernel,
    PolicyOption,
    ShapeOption,
    SourceOption,
    TargetOption,
    played,
)
from dojo_core.cli.records import opened
from dojo_core.cli.reporting import print_report
from dojo_core.cli.terminal import (
    Failure,
    columns,
    out,
    print_table,
    progress,
    tell_provenance,
)
from dojo_core.game import Game
from dojo_core.measure.conditions import age_text
from dojo_core.measure.measurement import Effort, Measurement, seconds_text
from dojo_core.moves import apply, legal_moves
from dojo_core.targets.registry import backend

if TYPE_CHECKING:
    from dojo_core.measure.clock import Clock


def time_moves(
    kernel: OptionalKernel = None,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    all_moves: Annotated[bool, typer.Option("--moves", help="Time every legal move as well.")] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Measure nothing: tell what the records know.")
    ] = False,
    model: ModelOption = None,
    source: SourceOption = "best",
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="ONNX",
            help="With --model: the ONNX model that it was made of, for ONNX Runtime beside it.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Verify and time a position, and if asked every legal move of it, in turns with the position; what else
    the machine did is told.

    ▲ and ▼ stand only where the interval of the rounds leaves out 1.

    A target without a clock here tells what it has instead: on a GPU target without the device the position
    is verified in an emulator and compiled; on a model the number is its cycles.

    With --model a whole model is timed, and each of its kernels' share.

    Example: [bold]dojo time softmax --moves[/bold] or [bold]dojo time --model model.dojo[/bold]
    """
    if model is not None:
        from dojo_core.cli.models import time_model  # which needs more than a kernel does

        if kernel or shape or line or target or settings or all_moves or recorded:
            raise Failure(
                "--model is timed as it is: leave out all but --from, --against, --policy and --json."
            )
        time_model(model, source, policy, against, as_json)
        return
    if against is not None:
        raise Failure("--against is for a whole model: give --model too.")
    if kernel is None:
        raise Failure("Name a kernel (see: dojo kernels), or give --model and a file.")
    game = played(kernel, shape, policy, line, settings, target)
    program = game.current.program
    on = backend(game.target)
    clock = on.clock()
    if recorded:
        _show(_from_records(game, all_moves), as_json, clock)
        return
    try:
        report = on.report(game, all_moves)
    except ValueError as fault:
        raise Failure(str(fault)) from None
    if report is not None:
        print_report(report, as_json)
        return
    if not clock.counts:
        raise nothing_times(game.target)
    workload = workload_of(game)
    with opened() as records, on.measurer(records) as measurer:
        position = measurer.measure(workload, [program], Effort.NORMAL, fresh=True)[0]
        rows: list[tuple[str, Measurement]] = [("this position", position)]
        if all_moves:
            legal = legal_moves(program, game.target, game.policy)
            programs = [apply(program, m, game.target, game.policy) for m in legal]
            results = timed_in_turns(measurer, workload, program, programs, _bar)
            rows += [(str(m), results[p.hash]) for m, p in zip(legal, programs, strict=True)]
    _show(rows, as_json, clock)


def _bar(look: int, programs: int) -> AbstractContextManager[Callable[[], None]]:
    return progress("again, not sure yet" if look else "measuring", programs)


def _from_records(game: Game, all_moves: bool) -> list[tuple[str, Measurement]]:
    """What this machine's records know of the position, and of its moves. Raises Failure."""
    origin = backend(game.target).clock().origin
    if origin is None:
        raise nothing_times(game.target, "There are no records of it.")
    program = game.current.program
    legal = legal_moves(program, game.target, game.policy) if all_moves else []
    programs = [apply(program, m, game.target, game.policy) for m in legal]
    with opened() as records:
        known = records.known_all(
            [p.hash for p in (program, *programs)],
            origin.target, origin.fingerprint, game.policy, game.start.hash,
        )  # fmt: skip
    if program.hash not in known:
        raise Failure("The records know no time of this position on this machine: leave --recorded out.")
    rows = [("this position", Measurement.recorded(known[program.hash]))]
    return rows + [
        (str(m), Measurement.recorded(known[p.hash]))
        for m, p in zip(legal, programs, strict=True)
        if p.hash in known
    ]


def _show(rows: list[tuple[str, Measurement]], as_json: bool, clock: Clock) -> None:
    """The position's row first; exits with 1 where it has no number of this clock's."""
    position = rows[0][1]

    def number(m: Measurement) -> float | None:
        """In the clock's unit."""
        return m.seconds if m.seconds is None or clock.unit == "seconds" else 1e9 * m.seconds

    def text(seconds: float) -> str:
        return seconds_text(seconds) if clock.unit == "seconds" else f"{1e9 * seconds:,.0f}"

    first_speeds = [m.speed(position, clock.steady) for _, m in rows[1:]]
    speeds = [speed and replace(speed, final=True) for speed in first_speeds]
    if as_json:
        out.print_json(
            data=[
                {
                    "move": name,
                    "status": m.status,
                    "seconds": m.seconds if clock.unit == "seconds" else None,
                    "unit": clock.label or clock.unit,
                    "number": number(m),
                    "median": m.median if clock.unit == "seconds" else None,
                    "samples_ns": list(m.samples) if clock.unit == "seconds" else [],
                    "verified": m.verified,
                    "load": m.conditions.load,
                    "exclusive": m.conditions.exclusive,
                    "recorded": m.taken,
                    "message": m.message,
                    "speed": None if speed is None else {**asdict(speed), "verdict": speed.verdict},
                }
                for (name, m), speed in zip(rows, [None, *speeds], strict=True)
            ]
        )
        return
    told_as = "time" if clock.unit == "seconds" else clock.unit
    table = columns("move", told_as, "speed against the position", "", right=(told_as,))
    lines = [(rows[0], None), *zip(rows[1:], speeds, strict=True)]
    lines.sort(key=lambda each: (each[0][1].seconds is None, -(each[1].value if each[1] else 1.0)))
    for (name, m), speed in lines:
        if m.seconds is not None:
            words = "" if speed is None else str(speed)
            about = ["verified"] if m.verified else []
            if m.taken is not None and m is not position:
                about.append(age_text(time.time() - m.taken))
            about += ["machine busy"] if m.conditions.busy else []
            table.add_row(escape(name), text(m.seconds), words, ", ".join(about))
        else:
            table.add_row(
                escape(name), "–", "", escape(f"{m.status.replace('_', ' ')}: {m.message}"[:160]), style="red"
            )
    print_table(table)
    if position.seconds is None:
        raise typer.Exit(1)
    if clock.label:
        out.print(f"These are {clock.label}.", style="dim", soft_wrap=True)
    else:
        tell_provenance(position)
