"""A target's own report on the terminal, and what a table says of numbers that are no seconds."""

from __future__ import annotations

import typer
from rich.markup import escape

from dojo_core.cli.terminal import columns, err, out, print_table
from dojo_core.targets.backend import Report
from dojo_core.targets.registry import backend


def tell_unit(target: str | None) -> None:
    """Below a table of times: what they are, where they are a model's."""
    clock = backend(target).clock() if target else None
    if clock is not None and clock.unit != "seconds":
        err.print(f"These times are {clock.label}: 1 µs stands for 1,000 of them.", style="dim")


def print_report(report: Report, as_json: bool) -> None:
    """Print it. Exits with 1 where the position is not right."""
    if as_json:
        out.print_json(data=report.data)
    else:
        if report.fault:
            out.print(escape(report.fault), style="red", soft_wrap=True)
        elif report.verified:
            out.print(report.verified, style="green")
        if report.columns and not (report.fault and report.failed):
            table = columns(
                *report.columns,
                right=report.columns[1:-1] if report.columns[-1] == "" else report.columns[1:],
            )
            for number, cells in enumerate(report.rows):
                table.add_row(*map(escape, cells), style="red" if number in report.failed else None)
            print_table(table)
        for remark in report.remarks if report.verified or not report.fault else ():
            out.print(escape(remark), style="dim", soft_wrap=True)
    if report.fault:
        raise typer.Exit(1)
