"""``dojo compare``: agents side by side on kernels, with several seeds, plots and statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agents.agent import Budget
from agents.comparison import Curve, as_json, from_json, summaries
from agents.players import NoAgent, agent_named
from agents.plots import Table, write_page, write_picture
from agents.run_log import RunBusy
from agents.timing import no_clock
from agents.tuning import Tuning
from dojo_core.bounded_json import read_object
from dojo_core.cli.positions import PolicyOption, ShapeOption, TargetOption, kernels_and_shapes, played
from dojo_core.cli.records import opened
from dojo_core.cli.reporting import tell_unit
from dojo_core.cli.terminal import (
    Failure,
    columns,
    counted,
    err,
    out,
    print_table,
    read_file,
    tell_machine,
    write_file,
)
from dojo_core.game import Game
from dojo_core.measure.measurement import seconds_text
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend

FIGURE = "random-edges,random-lines,sampling-edges,sampling-lines,annealing-edges,annealing-lines"


def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="KERNEL…", help="Kernels (softmax, softmax:96x64), or table3."),
    ] = None,
    agents: Annotated[str, typer.Option("--agents", help="Names with commas between.")] = FIGURE,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=100, help="Runs of each, with other seeds.")
    ] = 3,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Programs measured in a run.")] = 200,
    reference: Annotated[str, typer.Option("--against", help="The agent to compare with.")] = "random-lines",
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    target: TargetOption = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for compare.json, .html and .png.")] = Path(
        "compare"
    ),
    again: Annotated[Path | None, typer.Option("--plot", help="Plot a compare.json again; no run.")] = None,
) -> None:
    """Compare agents: best-so-far against evaluations and seconds, and how sure the difference is.

    What was stopped goes on where it was.
    Example: [bold]dojo compare softmax matmul --agents random-lines,annealing-lines --seeds 3[/bold]
    """
    chosen = [name.strip() for name in agents.split(",") if name.strip()]
    try:
        for name in (*chosen, reference):
            agent_named(name)
    except NoAgent as missing:
        raise Failure(str(missing)) from None
    if again is not None:
        try:
            curves = from_json(read_object(read_file(again), nonfinite=True))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise Failure(f"{again} is no comparison: dojo compare writes compare.json.") from None
    elif not names:
        raise Failure("Name the kernels to compare on (see: dojo kernels).")
    else:
        if reference not in chosen:
            chosen.insert(0, reference)
        untimed = no_clock(target or DEFAULT_TARGET, "let a pass play")
        if untimed:
            raise Failure(untimed)
        games = [
            played(name, sizes, policy, target=target) for name, sizes in kernels_and_shapes(names, shape)
        ]
        if backend(target or DEFAULT_TARGET).clock().gauged:
            tell_machine()
        curves = _run(games, chosen, seeds, Budget(budget))
    _write(folder, curves, reference)
    _tell(curves, reference)
    tell_unit(target)


def _run(games: list[Game], agents: list[str], seeds: int, budget: Budget) -> list[Curve]:
    curves = []
    shown = (TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn())
    with opened() as records, Measurer(records) as measurer, Progress(*shown, console=err) as bar:
        # Seed by seed and agent by agent, so that a slow hour of the machine meets all agents.
        for seed in range(seeds):
            for game in games:
                for agent in agents:
                    try:
                        tuning = Tuning(game, agent_named(agent), measurer, budget, seed)
                    except RunBusy as busy:
                        raise Failure(str(busy)) from None
                    task = bar.add_task(f"{game.title} {agent} {seed}", total=budget.evaluations)
                    events = []
                    for event in tuning.events():
                        events.append(event)
                        bar.update(task, completed=event.evaluation)
                    bar.remove_task(task)
                    curves.append(Curve.of(game.title, agent, seed, events, len(tuning.task.before)))
    return curves


def _write(folder: Path, curves: list[Curve], reference: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    comparison = as_json(curves, summaries(curves, reference), reference)
    write_file(folder / "compare.json", json.dumps(comparison, indent=1) + "\n")
    title = "Best so far: the median of the seeds, from the best to the worst"
    write_page(folder / "compare.html", curves, title, _tables(curves, reference))
    write_picture(folder / "compare.png", curves, title)
    err.print(f"Wrote compare.json, compare.html and compare.png to {escape(str(folder))}.", style="dim")


def _tables(curves: list[Curve], reference: str) -> tuple[Table, Table]:
    """The final speeds, and the statistics."""
    agents = list(dict.fromkeys(curve.agent for curve in curves))
    finals = []
    for kernel in dict.fromkeys(curve.kernel for curve in curves):
        times = (
            [c.final for c in curves if (c.kernel, c.agent) == (kernel, agent) and c.final is not None]
            for agent in agents
        )
        finals.append((kernel, *(seconds_text(min(each)) if each else "–" for each in times)))
    statistics = []
    for each in summaries(curves, reference):
        p = "" if each.p is None else f"{each.p:.2g}"
        share = f"{each.better}/{each.pairs}" if each.agent != reference else ""
        statistics.append((each.agent, f"{each.speedup:.2f}×", str(each.kernels), share, p))
    seeds = counted(len({curve.seed for curve in curves}), "seed")
    note = (
        f"Speed: geometric mean over kernels of {reference}'s median time over the agent's. "
        "p: one-sided Wilcoxon signed-rank test, paired by kernel and seed."
    )
    return (
        Table(("kernel", *agents), tuple(finals), f"The best of {seeds} a kernel."),
        Table(("agent", "speed", "kernels", "faster in", "p"), tuple(statistics), note),
    )


def _tell(curves: list[Curve], reference: str) -> None:
    tables = _tables(curves, reference)
    for each in tables:
        shown = columns(*each.columns, right=each.columns[1:])
        for row in each.rows:
            shown.add_row(*map(escape, row))
        print_table(shown)
    out.print(" ".join(each.note for each in tables), style="dim", soft_wrap=True)
