"""``dojo compare``: agents side by side on kernels, with several seeds, plots and statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agents import leaderboard
from agents.agent import Agent, Budget, Task
from agents.comparison import Curve, as_json, from_json, summaries
from agents.llm.options import AddressOption, PriceOption, TokensOption, filled
from agents.match import PlayedLine, Run, Tried, match_of
from agents.match import as_json as match_as_json
from agents.match import from_json as match_from_json
from agents.match_page import write_match
from agents.outside import cost_text
from agents.players import NoAgent, agent_named
from agents.plots import Table, write_page, write_picture
from agents.ranking import rank
from agents.run_log import RunBusy
from agents.timing import MachineTiming, no_clock
from agents.tuning import Tuning
from dojo_core.bounded_json import LARGEST, read_object
from dojo_core.cli.positions import PolicyOption, ShapeOption, TargetOption, kernels_and_shapes, played
from dojo_core.cli.records import opened
from dojo_core.cli.reporting import tell_unit
from dojo_core.cli.terminal import (
    Failure,
    check_writable,
    columns,
    err,
    out,
    print_table,
    read_file,
    tell_machine,
    write_file,
)
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Measurement, seconds_text
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

HEAD = ("agent", "speed", "kernels", "faster in", "p", "programs")
FIGURE = "random-edges,random-lines,sampling-edges,sampling-lines,annealing-edges,annealing-lines"


def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="KERNEL…", help="Kernels (softmax, softmax:96x64), or table3."),
    ] = None,
    agents: Annotated[
        str,
        typer.Option(
            "--agents",
            help="Players with commas between: passes, searches, perfllm, llm:NAME@ADDRESS, game:FILE.",
        ),
    ] = FIGURE,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=100, help="Runs of each, with other seeds.")
    ] = 3,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Programs measured in a run.")] = 200,
    reference: Annotated[str, typer.Option("--against", help="The agent to compare with.")] = "random-lines",
    address: AddressOption = None,
    tokens: TokensOption = None,
    price: PriceOption = None,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    target: TargetOption = None,
    folder: Annotated[Path, typer.Option("--out", help="Folder for compare.json, .html and .png.")] = Path(
        "compare"
    ),
    match: Annotated[
        bool, typer.Option("--match", help="Write match.html too: the best lines move by move.")
    ] = False,
    again: Annotated[Path | None, typer.Option("--plot", help="Plot a compare.json again; no run.")] = None,
    board: Annotated[
        Path | None, typer.Option("--leaderboard", help="Add the best results to this leaderboard.")
    ] = None,
    boards: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Rank the results of leaderboards; no run. May be given several times."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="With --from: play each entry again, verify and time it here.")
    ] = False,
) -> None:
    """Compare players: best-so-far against evaluations and seconds, and how sure the difference is.

    What was stopped goes on where it was.
    Example: [bold]dojo compare softmax matmul --agents random-lines,annealing-lines --seeds 3[/bold]
    or [bold]dojo compare softmax --agents heuristic,game:mine.dojo --against heuristic --match[/bold]
    """
    if boards:
        if names or again is not None or board is not None:
            raise Failure("--from ranks results that there are: leave kernels, --plot and --leaderboard out.")
        if not rank(boards, check):
            raise typer.Exit(1)
        return
    if check:
        raise Failure("--check is for the entries of a leaderboard: name it with --from.")
    chosen = [name.strip() for name in agents.split(",") if name.strip()]
    if reference not in chosen:
        chosen.insert(0, reference)
    try:
        texts = filled(chosen, address, tokens, price)
        players = {name: agent_named(text) for name, text in texts.items()}
    except NoAgent as missing:
        raise Failure(str(missing)) from None
    told: list[PlayedLine] = []
    if again is not None:
        try:
            document = read_object(read_file(again, LARGEST), nonfinite=True)
            curves, told = from_json(document), match_from_json(document.get("match", []))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise Failure(f"{again} is no comparison: dojo compare writes compare.json.") from None
    elif not names:
        raise Failure("Name the kernels to compare on (see: dojo kernels).")
    else:
        untimed = no_clock(target or DEFAULT_TARGET, "let a pass play")
        if untimed:
            raise Failure(untimed)
        games = [
            played(name, sizes, policy, target=target) for name, sizes in kernels_and_shapes(names, shape)
        ]
        if backend(target or DEFAULT_TARGET).clock().gauged:
            tell_machine()
        if board is not None:
            check_writable(board)
        curves, told = _run(games, players, seeds, Budget(budget), match, board)
    _write(folder, curves, reference, told)
    _tell(curves, reference)
    tell_unit(target)


def _run(
    games: list[Game],
    players: dict[str, Agent],
    seeds: int,
    budget: Budget,
    match: bool,
    board: Path | None,
) -> tuple[list[Curve], list[PlayedLine]]:
    """The curves of all runs; the best lines, move by move, where that is wanted."""
    pairs = _fitting(games, players)
    curves: list[Curve] = []
    runs: dict[Run, tuple[Tried, ...]] = {}
    told: list[PlayedLine] = []
    shown = (TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn())
    with opened() as records, Measurer(records) as measurer, Progress(*shown, console=err) as bar:
        # Seed by seed and agent by agent, so that a slow hour of the machine meets all agents.
        for seed in range(seeds):
            for game, name in pairs:
                try:
                    tuning = Tuning(game, players[name], measurer, budget, seed)
                except RunBusy as busy:
                    raise Failure(str(busy)) from None
                task = bar.add_task(escape(f"{game.title} {name} {seed}"), total=budget.evaluations)
                events = []
                for event in tuning.events():
                    events.append(event)
                    bar.update(task, completed=event.evaluation)
                bar.remove_task(task)
                before = len(tuning.task.before)
                curves.append(Curve.of(game.title, name, seed, events, before, tuning.answers))
                runs[game.title, name, seed] = Tried.of(events)
        begun = {game.title: game for game in games}

        def measure(game: Game, programs: Sequence[Program], moves: Sequence[str]) -> Sequence[Measurement]:
            lines = {each.hash: "\n".join(moves[:number]) for number, each in enumerate(programs)}
            timing = MachineTiming(measurer, "match")
            return timing.measure(Task(game).workload, programs, lines, Effort.NORMAL, lambda: False)

        if match:
            told = match_of(curves, begun, runs, measure)
        if board is not None:
            starts = {title: measure(game, [game.start], [])[0].seconds for title, game in begun.items()}
            _add(board, curves, begun, starts, measurer)
    return curves, told


def _fitting(games: list[Game], players: dict[str, Agent]) -> list[tuple[Game, str]]:
    """Who plays on what; who cannot is told. Raises Failure for a player who can play on nothing."""
    pairs = []
    for name, player in players.items():
        unfit = [player.unfit(game) for game in games]
        if all(unfit):
            raise Failure(unfit[0])
        for why in filter(None, unfit):
            err.print(escape(why), style="dim", soft_wrap=True)
        pairs += [(game, name) for game, why in zip(games, unfit, strict=True) if not why]
    order = {id(game): number for number, game in enumerate(games)}
    return sorted(pairs, key=lambda pair: order[id(pair[0])])


def _add(
    board: Path,
    curves: list[Curve],
    games: dict[str, Game],
    starts: dict[str, float | None],
    measurer: Measurer,
) -> None:
    """Add the best results to a leaderboard, which may be a new one. Raises Failure."""
    origin = backend(next(iter(games.values())).target).clock().origin
    here = measurer.machine
    fingerprint = here.fingerprint if origin is None else origin.fingerprint
    try:
        known = leaderboard.read(board) if board.exists() else []
    except leaderboard.NoLeaderboard as wrong:
        raise Failure(str(wrong)) from None
    new = leaderboard.entries_of(
        [replace(curve, start=curve.start or starts[curve.kernel]) for curve in curves],
        games, fingerprint, here.summary, date.today(),
    )  # fmt: skip
    leaderboard.write(board, leaderboard.merged(known, new))
    err.print(f"Added {counted(len(new), 'result')} to {escape(str(board))}.", style="dim")


def _write(folder: Path, curves: list[Curve], reference: str, told: list[PlayedLine]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    comparison = as_json(curves, summaries(curves, reference), reference)
    if told:
        comparison["match"] = match_as_json(told)
        write_match(folder / "match.html", told)
    write_file(folder / "compare.json", json.dumps(comparison, indent=1) + "\n")
    title = "Best so far: the median of the seeds, from the best to the worst"
    write_page(folder / "compare.html", curves, title, _tables(curves, reference))
    write_picture(folder / "compare.png", curves, title)
    files = f"compare.json, compare.html{', match.html' if told else ''} and compare.png"
    err.print(f"Wrote {files} to {escape(str(folder))}.", style="dim")


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
    talks = any(curve.tokens is not None for curve in curves)
    for each in summaries(curves, reference):
        p = "" if each.p is None else f"{each.p:.2g}"
        share = f"{each.better}/{each.pairs}" if each.agent != reference else ""
        runs = [curve for curve in curves if curve.agent == each.agent]
        spent = (_range([curve.programs for curve in runs]), *(_words_of(runs) if talks else ()))
        statistics.append((each.agent, f"{each.speedup:.2f}×", str(each.kernels), share, p, *spent))
    seeds = counted(len({curve.seed for curve in curves}), "seed")
    note = (
        f"Speed: geometric mean over kernels of {reference}'s median time over the agent's. "
        "p: one-sided Wilcoxon signed-rank test, paired by kernel and seed. Programs: measured in a run."
    )
    return (
        Table(("kernel", *agents), tuple(finals), f"The best of {seeds} a kernel."),
        Table((*HEAD, *(("tokens", "cost") if talks else ())), tuple(statistics), note),
    )


def _range(counts: list[int]) -> str:
    """How many programs runs measured: all alike, or from the fewest to the most."""
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)}–{max(counts)}"


def _words_of(runs: list[Curve]) -> tuple[str, str]:
    """Tokens and cost of all runs together."""
    tokens = [curve.tokens for curve in runs if curve.tokens is not None]
    costs = [curve.cost for curve in runs if curve.cost is not None]
    return f"{sum(tokens):,}" if tokens else "", cost_text(sum(costs)) if costs else ""


def _tell(curves: list[Curve], reference: str) -> None:
    tables = _tables(curves, reference)
    for each in tables:
        shown = columns(*each.columns, right=each.columns[1:])
        for row in each.rows:
            shown.add_row(*map(escape, row))
        print_table(shown)
    out.print(" ".join(each.note for each in tables), style="dim", soft_wrap=True)
