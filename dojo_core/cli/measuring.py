"""Measuring: a position and its moves timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

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
from dojo_core.cli.terminal import (
    Failure,
    columns,
    out,
    print_table,
    progress,
    seconds_text,
)
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Measurement
from dojo_core.measure.speed import LOOKS, in_turns
from dojo_core.moves import apply, legal_moves
from dojo_core.program.tree import Program
from dojo_core.targets.origins import steadiness
from dojo_core.targets.target import GPUS, SIMULATED

if TYPE_CHECKING:
    from dojo_core.measure.measurer import Measurer, Workload


def time_moves(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    all_moves: Annotated[bool, typer.Option("--moves", help="Time every legal move as well.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Verify and time a position, and if asked every legal move of it, in turns with the position.

    ▲ and ▼ stand only where the interval of the rounds leaves out 1.

    For a GPU target without the device the position is verified in an emulator and compiled, without seconds.
    For snitch the number is cycles on a calibrated model.

    Example: [bold]dojo time softmax --moves[/bold]
    """
    from dojo_core.measure.measurer import Measurer, Workload
    from dojo_core.targets.cuda.measurer import gpu_fault

    game = played(kernel, shape, policy, line, settings, target)
    program = game.current.program
    if game.target == "cuda" and not gpu_fault():
        _show(_on_gpu(game, all_moves), as_json, steadiness(game.target))
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
        own = measurer.measure(workload, [program], Effort.NORMAL)[0]
        rows: list[tuple[str, Measurement]] = [("this position", own)]
        if all_moves:
            found = legal_moves(program, game.target, game.policy)
            programs = [apply(program, m, game.target, game.policy) for m in found]
            results = _in_turns(measurer, workload, program, programs)
            rows += [(str(m), results[p.hash]) for m, p in zip(found, programs, strict=True)]
    _show(rows, as_json)


def _in_turns(
    measurer: Measurer, workload: Workload, position: Program, programs: list[Program]
) -> dict[str, Measurement]:
    """What moves lead to, timed in turns with the position; what that leaves open a few times more."""
    results: dict[str, Measurement] = {}
    due = list(dict.fromkeys(programs))
    for look in range(LOOKS):
        ratios = {h: m.ratios for h, m in results.items()}
        own = {p.hash for p in due}
        with progress("again, not sure yet" if look else "measuring", len(own)) as advance:

            def heard(m: Measurement, own: set[str] = own, advance: Callable[[], None] = advance) -> None:
                if m.program_hash in own:
                    advance()

            for m in measurer.measure(workload, due, Effort.QUICK, heard, fresh=look > 0, against=position):
                results[m.program_hash] = replace(m, ratios=(*ratios.get(m.program_hash, ()), *m.ratios))
        due = [p for p in due if len(r := results[p.hash].ratios) > 1 and not in_turns(r).decided]
        if not due:
            break
    return results


def _on_gpu(game: Game, all_moves: bool) -> list[tuple[str, Measurement]]:
    """The position and its moves, timed on the GPU with a cold second-level cache."""
    from dojo_core.measure.measurement import Workload
    from dojo_core.targets.cuda.measurer import gpu_measurer

    workload = Workload(game.start, game.kernel, game.policy, game.target)
    program = game.current.program
    with opened() as records:
        own = gpu_measurer().measure(workload, [program], Effort.NORMAL, records=records)[0]
        rows = [("this position", own)]
        if all_moves:
            found = legal_moves(program, game.target, game.policy)
            programs = [apply(program, m, game.target, game.policy) for m in found]
            results = gpu_measurer().measure(workload, programs, Effort.QUICK, records=records)
            rows += [(str(m), r) for m, r in zip(found, results, strict=True)]
    return rows


def _show(rows: list[tuple[str, Measurement]], as_json: bool, steady: float | None = None) -> None:
    """The position's row first; exits with 1 where it has no time. ``steady``: as in Measurement.speed."""
    own = rows[0][1]
    found = [m.speed(own, steady) for _, m in rows[1:]]
    speeds = [speed and replace(speed, final=True) for speed in found]
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
                    "message": m.message,
                    "speed": None if speed is None else {**asdict(speed), "verdict": speed.verdict},
                }
                for (name, m), speed in zip(rows, [None, *speeds], strict=True)
            ]
        )
        return
    table = columns("move", "time", "speed against the position", "", right=("time",))
    told = [(rows[0], None), *zip(rows[1:], speeds, strict=True)]
    told.sort(key=lambda each: (each[0][1].seconds is None, -(each[1].value if each[1] else 1.0)))
    for (name, m), speed in told:
        if m.seconds is not None:
            words = "" if speed is None else str(speed)
            table.add_row(escape(name), seconds_text(m.seconds), words, "verified" if m.verified else "")
        else:
            table.add_row(
                escape(name), "–", "", escape(f"{m.status.replace('_', ' ')}: {m.message}"[:160]), style="red"
            )
    print_table(table)
    if own.seconds is None:
        raise typer.Exit(1)
