"""Profiling: where the time of a position goes, and what bounds each part of it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.actions.timing import workload_of
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
from dojo_core.cli.terminal import Failure, columns, out, print_table
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.profile import Part, Profile, told_share
from dojo_core.targets.registry import backend

LEAST_SHARE = 0.005  # of what is shown without --all


def profile(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show also what takes less than half a per cent.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Tell where the time of a position goes: each loop's and operation's share, and what bounds it.

    A timer tells what takes a microsecond and more each
    time; a model parts what is shorter.

    Example: [bold]dojo profile softmax --line softmax[/bold]
    """
    game = played(kernel, shape, policy, line, target=target)
    on = backend(game.target)
    clock = on.clock()
    if clock.kind != "measured":
        raise Failure(f"Nothing here measures programs for {game.target}. {clock.missing}".strip())
    workload = workload_of(game)
    with opened() as records, on.measurer(records) as measurer:
        try:
            told = measurer.profile(workload, game.current.program)
        except ValueError as fault:
            raise Failure(str(fault)) from None
    if as_json:
        out.print_json(data=told.data)
        return
    _show(told, everything)


def _show(told: Profile, everything: bool) -> None:
    table = columns("share", "time", "by", "bound by", "", "program", right=("share", "time"))
    for part in told.parts:
        if everything or part.share >= LEAST_SHARE:
            table.add_row(
                f"{100 * part.share:.1f}%",
                seconds_text(part.seconds),
                part.source,
                part.bound,
                _explained(part),
                "  " * (len(part.path) - 1) + escape(part.text),
            )
    print_table(table)
    out.print(escape(told.sentence), style="dim", soft_wrap=True)


def _explained(part: Part) -> str:
    """The limit that is named, as a share of the time; of one that is not explained, the largest."""
    if not part.bound:
        return ""
    if part.bound not in {limit.kind for limit in part.limits}:
        return f"{part.limits[0].kind} is {100 * part.explained:.0f}% of it" if part.limits else ""
    return f"{told_share(part.explained)} of it"
