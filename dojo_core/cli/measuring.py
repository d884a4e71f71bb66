"""Measuring: a position and its moves timed, our lines side by side with others."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from dojo_core.cli.positions import (
    JsonFlag,
    KernelArgument,
    LineOption,
    PolicyOption,
    ShapeOption,
    played,
)
from dojo_core.cli.terminal import (
    Failure,
    columns,
    counted,
    err,
    out,
    print_table,
    progress,
    seconds_text,
    write_file,
)
from dojo_core.line import recorded_lines
from dojo_core.moves import apply, legal_moves


def time_moves(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    all_moves: Annotated[bool, typer.Option("--moves", help="Time every legal move as well.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Verify and time a position, and if asked every legal move of it.

    Example: [bold]dojo time softmax --moves[/bold]
    """
    from dojo_core.measure.measurer import Effort, Measurement, Measurer, Workload
    from dojo_core.measure.records import Records

    game = played(kernel, shape, policy, line, settings)
    program = game.current.program
    workload = Workload(game.start, game.kernel, game.policy)
    try:
        opened = Records()
    except (ValueError, sqlite3.DatabaseError) as error:  # a newer Dojo's; or no database at all
        raise Failure(f"The records cannot be opened: {error} (DOJO_HOME names another folder.)") from None
    with opened as records, Measurer(records) as measurer:
        own = measurer.measure(workload, [program], Effort.NORMAL)[0]
        rows: list[tuple[str, Measurement]] = [("this position", own)]
        if all_moves:
            found = legal_moves(program, game.target, game.policy)
            programs = [apply(program, m, game.target, game.policy) for m in found]
            with progress("measuring", len({p.hash for p in programs})) as advance:
                results = measurer.measure(workload, programs, Effort.QUICK, lambda _: advance())
            rows += [(str(m), r) for m, r in zip(found, results, strict=True)]
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
            table.add_row(escape(name), seconds_text(m.seconds), ratio, "verified" if m.verified else "")
        else:
            table.add_row(
                escape(name), "–", "", escape(f"{m.status.replace('_', ' ')}: {m.message}"[:160]), style="red"
            )
    print_table(table)
    if own.seconds is None:
        raise typer.Exit(1)


def bench(
    names: Annotated[list[str], typer.Argument(help="Kernels.")],
    against: Annotated[list[str] | None, typer.Option("--against", help="A baseline: torch.")] = None,
    shape: ShapeOption = None,
    line: Annotated[Path | None, typer.Option("--line", help="Our line; default: the recorded one.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Interleaved rounds.")] = 10,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all samples to this file.")] = None,
) -> None:
    """Time our line against baselines, in interleaved rounds and separate processes.

    Example: [bold]dojo bench softmax --against torch --json softmax.json[/bold]
    """
    from dojo_core.bench import BASELINES, BenchFailed, Entry, run_bench

    wanted = against or []
    for baseline in wanted:
        if baseline not in BASELINES:
            raise Failure(f"There is no baseline {baseline!r}. The baselines: {', '.join(BASELINES)}.")
    reports = []
    for name in names:
        recorded = line if line is not None else (Path(name) if name in recorded_lines() else None)
        game = played(name, shape, None, recorded, settings)
        ours = [Entry("start", game.start)] if recorded is None else [Entry("line", game.current.program)]
        with progress(f"{name} {game.shape}", rounds) as advance:
            try:
                report = run_bench(game, ours, wanted, rounds, on_round=advance)
            except BenchFailed as error:
                raise Failure(str(error)) from None
        reports.append(report)
        _bench_table(report)
        if json_file is not None:  # after each kernel: an interrupted bench keeps what it has
            write_file(json_file, json.dumps({"reports": reports}, indent=1) + "\n")
    if json_file is not None:
        err.print(f"Wrote {escape(str(json_file))}.", style="dim", soft_wrap=True)


def _bench_table(report: dict[str, Any]) -> None:
    compared = any(entry.get("ratio") for entry in report["entries"])
    numbers = ("min", "median", *(("ratio", "worst", "best") if compared else ()))
    title = f"{report['kernel']} {report['shape']}"
    table = columns("entry", *numbers, "", right=numbers, title=title, title_justify="left")
    table.columns[0].no_wrap = True  # a long message wraps, not the name beside it
    for entry in report["entries"]:
        ratio = entry.get("ratio")
        told = [""] * (len(numbers) - 2)
        if ratio:
            told = [f"{ratio[which]:.2f}×" for which in ("median", "min", "max")]
        if entry["status"] != "ok":
            table.add_row(entry["name"], "–", "–", *told, escape(entry["message"]), style="red")
            continue
        table.add_row(
            entry["name"], seconds_text(entry["min"]), seconds_text(entry["median"]), *told,
            "verified" if entry["verified"] else "",
        )  # fmt: skip
    print_table(table)
    notes = [f"{entry['name']}: {entry['details']}." for entry in report["entries"] if entry["details"]]
    legend = " Ratio: the baseline's best run of a round over ours; the median, worst and best of the rounds."
    rounds, runs = counted(report["rounds"], "round"), counted(report["samples"], "run")
    notes.append(f"{rounds} of {runs}.{legend if compared else ''}")
    notes.append(f"Machine: {report['machine_summary']}")
    for note in notes:
        out.print(escape(note), style="dim", soft_wrap=True)
