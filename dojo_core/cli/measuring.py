"""Measuring: a position and its moves timed."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.emulated import check_gpu
from dojo_core.cli.positions import (
    JsonFlag,
    KernelArgument,
    LineOption,
    PolicyOption,
    ShapeOption,
    TargetOption,
    played,
)
from dojo_core.cli.records import opened
from dojo_core.cli.simulated import tell_cycles
from dojo_core.cli.terminal import (
    Failure,
    columns,
    out,
    print_table,
    progress,
    seconds_text,
    tell_provenance,
)
from dojo_core.game import Game
from dojo_core.measure.conditions import age_text
from dojo_core.measure.measurement import Measurement
from dojo_core.moves import apply, legal_moves
from dojo_core.targets.origins import origin
from dojo_core.targets.target import GPUS, SIMULATED


def time_moves(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    all_moves: Annotated[bool, typer.Option("--moves", help="Time every legal move as well.")] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Measure nothing: tell what the records know.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Verify and time a position, and if asked every legal move of it; what else the machine did is told.

    For a GPU target without the device the position is verified in an emulator and compiled, without seconds.
    For snitch the number is cycles on a calibrated model.

    Example: [bold]dojo time softmax --moves[/bold]
    """
    from dojo_core.measure.measurer import Effort, Measurer, Workload
    from dojo_core.targets.cuda.measurer import gpu_fault

    game = played(kernel, shape, policy, line, settings, target)
    program = game.current.program
    if recorded:
        _show(_from_records(game, all_moves), as_json)
        tell_cycles(game.target)
        return
    if game.target == "cuda" and not gpu_fault():
        _show(_on_gpu(game, all_moves), as_json)
        return
    if game.target in GPUS:
        if all_moves:
            raise Failure("Without a GPU there are no times to compare moves by: leave --moves out.")
        check_gpu(game, as_json)
        return
    if game.target in SIMULATED:
        from dojo_core.cli.simulated import time_simulated

        time_simulated(game, all_moves, as_json)
        return
    workload = Workload(game.start, game.kernel, game.policy)
    with opened() as records, Measurer(records) as measurer:
        own = measurer.measure(workload, [program], Effort.NORMAL, fresh=True)[0]
        rows: list[tuple[str, Measurement]] = [("this position", own)]
        if all_moves:
            found = legal_moves(program, game.target, game.policy)
            programs = [apply(program, m, game.target, game.policy) for m in found]
            with progress("measuring", len({p.hash for p in programs})) as advance:
                results = measurer.measure(workload, programs, Effort.QUICK, lambda _: advance(), fresh=True)
            rows += [(str(m), r) for m, r in zip(found, results, strict=True)]
    _show(rows, as_json)


def _on_gpu(game: Game, all_moves: bool) -> list[tuple[str, Measurement]]:
    """The position and its moves, timed on the GPU with a cold second-level cache."""
    from dojo_core.measure.measurement import Effort, Workload
    from dojo_core.targets.cuda.measurer import gpu_measurer

    workload = Workload(game.start, game.kernel, game.policy, game.target)
    program = game.current.program
    with opened() as records:
        own = gpu_measurer().measure(workload, [program], Effort.NORMAL, fresh=True, records=records)[0]
        rows = [("this position", own)]
        if all_moves:
            found = legal_moves(program, game.target, game.policy)
            programs = [apply(program, m, game.target, game.policy) for m in found]
            results = gpu_measurer().measure(workload, programs, Effort.QUICK, fresh=True, records=records)
            rows += [(str(m), r) for m, r in zip(found, results, strict=True)]
    return rows


def _from_records(game: Game, all_moves: bool) -> list[tuple[str, Measurement]]:
    """What this machine's records know of the position, and of its moves. Raises Failure."""
    here = origin(game.target)
    if here is None:
        raise Failure(f"Nothing here times programs for {game.target}: there are no records of it.")
    program = game.current.program
    found = legal_moves(program, game.target, game.policy) if all_moves else []
    programs = [apply(program, m, game.target, game.policy) for m in found]
    with opened() as records:
        known = records.known_all(
            [p.hash for p in (program, *programs)],
            here.target, here.fingerprint, game.policy, game.start.hash,
        )  # fmt: skip
    if program.hash not in known:
        raise Failure("The records know no time of this position on this machine: leave --recorded out.")
    rows = [("this position", Measurement.recorded(known[program.hash]))]
    return rows + [
        (str(m), Measurement.recorded(known[p.hash]))
        for m, p in zip(found, programs, strict=True)
        if p.hash in known
    ]


def _show(rows: list[tuple[str, Measurement]], as_json: bool) -> None:
    """The position's row first; exits with 1 where it has no time."""
    own = rows[0][1]
    if as_json:
        out.print_json(
            data=[
                {
                    "move": name,
                    "status": m.status,
                    "seconds": m.seconds,
                    "median": m.median,
                    "samples_ns": list(m.samples),
                    "verified": m.verified,
                    "load": m.conditions.load,
                    "exclusive": m.conditions.exclusive,
                    "recorded": m.taken,
                    "message": m.message,
                }
                for name, m in rows
            ]
        )
        return
    table = columns("move", "time", "speed-up", "", right=("time", "speed-up"))
    base = own.seconds
    for name, m in sorted(rows, key=lambda r: r[1].seconds if r[1].seconds is not None else 1e9):
        if m.seconds is not None:
            ratio = f"{base / m.seconds:.2f}×" if base else ""
            told = ["verified"] if m.verified else []
            if m.taken is not None and m is not own:
                told.append(age_text(time.time() - m.taken))
            told += ["machine busy"] if m.conditions.busy else []
            table.add_row(escape(name), seconds_text(m.seconds), ratio, ", ".join(told))
        else:
            table.add_row(
                escape(name), "–", "", escape(f"{m.status.replace('_', ' ')}: {m.message}"[:160]), style="red"
            )
    print_table(table)
    if own.seconds is None:
        raise typer.Exit(1)
    tell_provenance(own)
