"""A position on the Snitch model: verified, and its cycles; what tables of times say of them."""

from __future__ import annotations

from dataclasses import asdict

import typer
from rich.markup import escape

from dojo_core.cli.terminal import columns, err, out, print_table
from dojo_core.game import Game
from dojo_core.moves import apply, legal_moves
from dojo_core.package_data import document
from dojo_core.targets.registry import SIMULATED
from dojo_core.targets.snitch.simulate import Verdict, judge

LABEL = "cycles on a calibrated model"


def tell_cycles(target: str | None) -> None:
    """Below a table of times: what they are, where they are a model's."""
    if target in SIMULATED:
        err.print(f"These times are {LABEL}: 1 µs stands for 1,000 of them.", style="dim")


def time_simulated(game: Game, all_moves: bool, as_json: bool) -> None:
    """Print a position's cycles, and if asked those of each legal move. Exits with 1 where there is none."""
    program = game.current.program
    rows: list[tuple[str, Verdict]] = [("this position", judge(program, game.start, game.policy))]
    if all_moves:
        for move in legal_moves(program, game.target, game.policy):
            after = apply(program, move, game.target, game.policy)
            rows.append((str(move), judge(after, game.start, game.policy)))
    if as_json:
        out.print_json(
            data=[
                {
                    "move": name,
                    "status": v.status,
                    "verified": v.status == "ok",
                    "message": v.message,
                    "unit": LABEL,
                    "run": asdict(v.run) if v.run else None,
                    "utilisation": v.run.utilisation if v.run else None,
                }
                for name, v in rows
            ]
        )
    elif rows[0][1].status != "ok":
        told = f"{rows[0][1].status.replace('_', ' ')}: {rows[0][1].message}"
        out.print(escape(told), style="red", soft_wrap=True)
    else:
        _table(rows)
    if rows[0][1].status != "ok":
        raise typer.Exit(1)


def _table(rows: list[tuple[str, Verdict]]) -> None:
    own = rows[0][1].run
    numbers = ("cycles", "speed-up", "of FPU peak", "no work", "latency", "streams")
    table = columns("move", *numbers, "", right=numbers)
    for name, v in sorted(
        rows, key=lambda r: r[1].run.cycles if r[1].run and r[1].status == "ok" else 1 << 60
    ):
        if v.status != "ok" or v.run is None:
            told = f"{v.status.replace('_', ' ')}: {v.message}"
            table.add_row(escape(name), *["–"] * len(numbers), escape(told[:160]), style="red")
            continue
        r = v.run
        ratio = f"{own.cycles / r.cycles:.2f}×" if own else ""
        shares = (f"{n / r.cycles:.0%}" for n in (r.idle, r.latency, r.starved))
        table.add_row(escape(name), f"{r.cycles:,}", ratio, f"{r.utilisation:.1%}", *shares, "verified")
    print_table(table)
    told = f"These are {LABEL}: {document('snitch.md')} compares it with the hardware's. The peak is one "
    told += "arithmetic instruction a cycle; the shares are the FPU's cycles without work, waiting for a "
    told += "result, or for a stream."
    out.print(told, style="dim", soft_wrap=True)
