"""Counting: how many lines of legal moves a position has."""

from __future__ import annotations

from typing import Annotated

import typer

from dojo_core.cli.positions import (
    JsonFlag,
    KernelArgument,
    LineOption,
    PolicyOption,
    ShapeOption,
    TargetOption,
    played,
)
from dojo_core.cli.terminal import columns, err, out, print_table
from dojo_core.moves.core import REGISTRY
from dojo_core.perft import perft
from dojo_core.wording import counted


def count_lines(
    kernel: KernelArgument,
    depth: Annotated[
        int,
        typer.Option("--depth", min=1, help="Moves of a line. Each more takes some hundred times as long."),
    ] = 1,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Count the lines of legal moves to a depth, by their last move, as chess programmers do.

    Example: [bold]dojo perft softmax --depth 2[/bold]
    """
    game = played(kernel, shape, policy, line, target=target)
    lines = perft(game.current.program, depth, game.target, game.policy)
    if as_json:
        out.print_json(
            data={
                "depth": depth,
                "target": game.target,
                "policy": game.policy,
                "lines": lines.total(),
                "last": lines,
            }
        )
        return
    table = columns("last move", "family", "lines", right=("lines",))
    for name, move in REGISTRY.items():
        if lines[name]:
            table.add_row(name, move.family, f"{lines[name]:,}")
    print_table(table)
    count = f"{lines.total():,} {'line' if lines.total() == 1 else 'lines'} of {counted(depth, 'legal move')}"
    err.print(f"{count} ({game.target}, {game.policy}).", style="dim")
