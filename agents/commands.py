"""``dojo pass`` plays without measuring, ``dojo tune`` searches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agents.agent import FOUND_NOTHING, Agent, Best, Budget, Event
from agents.jobs.journal import Writer, event_line
from agents.jobs.spec import MOST_SECONDS, JobSpec
from agents.llm.options import AddressOption, PriceOption, TokensOption, filled
from agents.model_tuning import tune_model
from agents.outside import Answer, cost_of, cost_text
from agents.outside import told as told_answers
from agents.passes import PASSES, play_pass
from agents.players import AGENTS, KINDS, MODEL, NoAgent, agent_named
from agents.run_log import RunBusy, run_file
from agents.scale import commands as scale
from agents.scale.pool import PoolTiming, WorkerPool
from agents.scale.wire import OtherVersion
from agents.timing import no_clock
from agents.tuning import Tuning, key_of
from dojo_core import kernels
from dojo_core.cli.listing import print_assembly, print_code
from dojo_core.cli.positions import (
    KernelArgument,
    LineOption,
    MachineOption,
    ModelOption,
    PolicyOption,
    ShapeOption,
    TargetOption,
    kernels_and_shapes,
    played,
)
from dojo_core.cli.records import opened
from dojo_core.cli.reporting import tell_unit
from dojo_core.cli.terminal import (
    Failure,
    columns,
    err,
    out,
    print_table,
    tell_machine,
    write_file,
)
from dojo_core.game import Game
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import seconds_text
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

_PASSES = ", ".join(PASSES)
_AGENTS = "; ".join((", ".join(AGENTS), *(kind.form for kind in KINDS.values())))


def play_a_pass(
    kernel: KernelArgument,
    name: Annotated[str, typer.Argument(metavar="PASS", help=f"One of: {_PASSES}.")] = "heuristic",
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    machine: MachineOption = None,
    moves: Annotated[bool, typer.Option("--moves", help="Print the moves, one a line.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Print the final program (default).")] = False,
    code: Annotated[bool, typer.Option("--code", help="Print the generated C.")] = False,
    asm: Annotated[bool, typer.Option("--asm", help="Print the assembly.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the game as text.")] = None,
) -> None:
    """Let a pass play: it measures nothing and follows the structure of the program.

    Example: [bold]dojo pass softmax heuristic --policy algebraic --code[/bold]
    """
    if name not in PASSES:
        raise Failure(f"There is no pass {name!r}. The passes: {_PASSES}.")
    game = played(kernel, shape, policy, line, None, target, machine)
    began = time.monotonic()
    count = play_pass(game, name)
    took = time.monotonic() - began
    if save is not None:
        write_file(save, game.to_text())
        err.print(f"Saved {save}.", style="dim")
    if moves:
        for position in game.line()[1:]:
            out.print(escape(str(position.move)), soft_wrap=True)
    if text or not (code or asm or moves):
        out.print(escape(game.current.program.text), end="", soft_wrap=True)
    if code:
        print_code(game)
    if asm:
        print_assembly(game)
    err.print(f"{name}: {counted(count, 'move')} in {seconds_text(took)}.", style="dim")


def tune(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KERNEL…",
            help="Kernels (softmax, softmax:96x64), text files, a network, or table3: the paper's 16.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every kernel in each of its shapes.")] = False,
    agent: Annotated[str, typer.Option("--agent", help=f"One of: {_AGENTS}.")] = "sampling-lines",
    budget: Annotated[int, typer.Option("--budget", min=1, help="Programs measured, for each kernel.")] = 200,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1, help="At most so long a kernel.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed and times give the same run.")] = 0,
    address: AddressOption = None,
    tokens: TokensOption = None,
    price: PriceOption = None,
    cost_model: Annotated[
        bool, typer.Option("--cost-model", help="A cost model picks what the search measures.")
    ] = False,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    target: TargetOption = None,
    line: LineOption = None,
    again: Annotated[bool, typer.Option("--again", help="Begin anew, also where a run is done.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the best line as a game.")] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Write the run as a recording that the Watch page replays."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
    model: ModelOption = None,
    scheduler: scale.SchedulerOption = None,
    workers: scale.WorkersOption = None,
    slurm: scale.SlurmOption = None,
    machine: scale.MachineOption = None,
    lanes: scale.LanesOption = None,
    key: scale.KeyOption = None,
    insecure: scale.InsecureFlag = False,
) -> None:
    """Let an agent make kernels fast. A run that was stopped goes on where it was.

    With --model the budget is the whole model's, and each kernel is searched by its share of the time.

    Example: [bold]dojo tune softmax --budget 200[/bold] or [bold]dojo tune --all --policy algebraic[/bold]
    or [bold]dojo tune --model model.dojo --budget 500[/bold]
    or [bold]dojo tune softmax --agent llm:NAME --address http://127.0.0.1:11434/v1[/bold]
    """
    agent = filled([agent], address, tokens, price)[agent]
    if cost_model and not agent.endswith(MODEL):
        agent += MODEL
    try:
        player = agent_named(agent)
    except NoAgent as missing:
        raise Failure(str(missing)) from None
    if model is not None:
        if names or everything or shape or line or target or save or record or scheduler or workers or slurm:
            raise Failure("--model is tuned here as it is: leave kernels, files and machines out.")
        with opened() as records, Measurer(records) as measurer:
            spend = Budget(budget, seconds)
            run = partial(_tuned, as_json=as_json)
            tune_model(model, player, spend, seed, policy, again, records, measurer, run)
        return
    if everything == bool(names):
        raise Failure("Name the kernels to tune, or give --all (see: dojo kernels).")
    if everything and (shape or line or save or record):
        raise Failure("--all takes every kernel as it is: leave --shape, --line, --save and --record out.")
    if save is not None and len(names or []) != 1:
        raise Failure("--save keeps one game: name one kernel.")
    if record is not None and len(names or []) != 1:
        raise Failure("--record keeps one run: name one kernel.")
    wanted: list[tuple[str, str | None]]
    if everything:
        wanted = [(name, "x".join(map(str, s))) for name in kernels.names() for s in kernels.get(name).shapes]
    else:
        wanted = kernels_and_shapes(names or [], shape)
    beginnings = [partial(played, name, sizes, policy, line, target=target) for name, sizes in wanted]
    games: list[Game] = []
    if scheduler is None and slurm is None:
        games = [begin() for begin in beginnings]
        untimed = next(filter(None, (no_clock(game.target, "let a pass play") for game in games)), "")
        if untimed:
            raise Failure(untimed)
    results = []
    spend = Budget(budget, seconds)
    with (
        opened() as records,
        Measurer(records) as measurer,
        scale.worker_pool(scheduler, workers, slurm, key, insecure, _aside) as pool,
    ):
        if pool is None and (machine is not None or lanes is not None):
            raise Failure("--machine and --lanes are for --scheduler, --workers or --slurm.")
        if pool is None and not as_json and any(backend(game.target).clock().gauged for game in games):
            tell_machine()
        side_by_side = (lanes or scale.LANES) if pool is not None else 1
        for number, begin in enumerate(beginnings):
            if pool is None:
                where, game = None, games[number]
            else:
                where, game = _machine(pool, machine, begin, player, spend, seed, side_by_side)
            timing = PoolTiming(pool, where, agent, records) if pool is not None and where else None
            try:
                tuning = Tuning(
                    game,
                    player,
                    measurer,
                    spend,
                    seed,
                    again,
                    timing=timing,
                    machine=where,
                    lanes=side_by_side,
                )
            except RunBusy as busy:
                raise Failure(str(busy)) from None
            result = _tuned(tuning, as_json, record)
            results.append(result)
            if save is not None and result.best is not None:
                write_file(save, tuning.game(result.best).to_text())
                err.print(f"Saved {save}.", style="dim")
    if not as_json:
        _summary(results)
        tell_unit(target)
        if asked := told_answers([answer for result in results for answer in result.answers]):
            _aside(asked)
    if all(result.best is None for result in results):
        raise typer.Exit(1)


def _aside(text: str) -> None:
    err.print(escape(text), style="dim", soft_wrap=True)


def _machine(
    pool: WorkerPool,
    wanted: str | None,
    begin: Callable[..., Game],
    agent: Agent,
    budget: Budget,
    seed: int,
    lanes: int,
) -> tuple[str, Game]:
    """Which of the pool's machines to tune on (those where this run was stopped, if they are there), and the
    game as it is played for their processor. Raises OtherVersion where they do not tell it."""

    @cache
    def on(fingerprint: str) -> Game:
        pool.processor(fingerprint)
        return begin(machine=fingerprint)

    def begun(fingerprint: str) -> bool:
        try:
            key = key_of(on(fingerprint), agent, budget, seed, fingerprint, lanes)
        except (Failure, OtherVersion):  # no such line there, or no word of it: others may be chosen
            return False
        return run_file(key).exists()

    chosen = pool.choose(wanted, begun)
    game = on(chosen)
    workers = counted(pool.machines().get(chosen, 0), "worker")
    _aside(f"{game.title}: {workers} on machine {chosen}, {pool.processor(chosen).name}.")
    return chosen, game


@dataclass(frozen=True)
class _Result:
    """What tuning a kernel came to. ``first``: seconds of the start, or of the first program measured."""

    title: str
    evaluations: int
    first: float | None = None
    best: Best | None = None
    message: str = ""
    answers: tuple[Answer, ...] = ()


def _tuned(tuning: Tuning, as_json: bool, record: Path | None = None) -> _Result:
    """Run it, shown as it goes."""
    if tuning.resumed and not as_json:
        status = "This run is done" if tuning.was_done else "Going on where this run was stopped"
        err.print(
            f"{status}: {counted(tuning.resumed, 'measurement')} known (--again begins anew).", style="dim"
        )
    first: float | None = None
    event: Event | None = None
    message = ""
    recorded = tuning.events() if record is None else _recorded(tuning, record)
    with _shown(tuning, as_json) as show:
        for event in recorded:
            if first is None or (event.move is None and not event.final):
                first = event.measurement.seconds or first
            if event.measurement.status != "ok":
                message = event.measurement.message
            show(event, first)
    title = tuning.task.game.title
    answers = tuple(tuning.answers)
    if event is None:
        return _Result(title, 0, message=FOUND_NOTHING, answers=answers)
    return _Result(title, event.evaluation, first, event.best, message, answers)


def _recorded(tuning: Tuning, path: Path) -> Iterator[Event]:
    """The events, each written to a journal as well; those of an earlier part too."""
    game, budget = tuning.task.game, tuning.budget
    limit = budget.seconds or MOST_SECONDS
    spec = JobSpec.of(game, tuning.agent.name, tuning.seed, budget.evaluations, limit)
    before = len(tuning.task.before)
    with Writer(path, spec) as writer:
        for number, event in enumerate(tuning.events(), 1):
            writer.write(event_line(event, before, number))
            yield event
        day = datetime.now().strftime("%Y-%m-%d")
        writer.state("done", f"Measured on {this_machine().summary}, {day}.")
    err.print(f"Recorded {path}.", style="dim")


@contextmanager
def _shown(tuning: Tuning, as_json: bool) -> Iterator[Callable[[Event, float | None], None]]:
    """Show events: as lines of JSON, or one line of best-so-far that changes."""
    if as_json:
        yield lambda event, _: out.print(json.dumps(_as_json(tuning, event)), soft_wrap=True, markup=False)
        return
    shown = (
        TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[best]}"), TextColumn("[dim]{task.fields[last]}"),
        TextColumn("{task.fields[said]}"),
    )  # fmt: skip
    with Progress(*shown, console=err) as bar:
        task = bar.add_task(
            tuning.task.game.title, total=tuning.budget.evaluations, best="", last="starting", said=""
        )

        def show(event: Event, first: float | None) -> None:
            best = ""
            if event.best is not None:
                ratio = f" {first / event.best.seconds:.3g}×" if first else ""
                best = f"[bold]{seconds_text(event.best.seconds)}[/bold]{ratio}"
            took = event.measurement.seconds
            last = event.measurement.status.replace("_", " ") if took is None else seconds_text(took)
            if event.final:
                last = f"finalist {last}"
            said = "" if event.final else _spent(tuning.answers)
            bar.update(task, completed=event.evaluation, best=best, last=last, said=said)
            for thought in event.thoughts:
                if thought.words:
                    bar.console.print(escape(f"{thought.decision}: {thought.words}"), style="dim")

        yield show


def _spent(answers: Sequence[Answer]) -> str:
    """Tokens so far, and their cost."""
    if not answers:
        return ""
    cost = cost_of(answers)
    price = "" if cost is None else f", cost {cost_text(cost)}"
    return f"{sum(answer.tokens for answer in answers):,} tokens{price}"


def _as_json(tuning: Tuning, event: Event) -> dict[str, Any]:
    measured = event.measurement
    return {
        "kernel": tuning.task.game.kernel,
        "shape": tuning.task.game.shape,
        "agent": tuning.agent.name,
        "seed": tuning.seed,
        "evaluation": event.evaluation,
        "elapsed": round(event.seconds, 3),
        "final": event.final,
        "move": None if event.move is None else str(event.move),
        "moves": len(event.line),
        "program": event.program.hash,
        "status": measured.status,
        "seconds": measured.seconds,
        "best": None if event.best is None else event.best.seconds,
        "said": [
            {"decision": t.decision, "words": t.words, "tokens": t.tokens, "cost": t.cost}
            for t in event.thoughts
            if t.words or t.tokens is not None
        ],
    }


def _summary(results: list[_Result]) -> None:
    table = columns(
        "kernel",
        "programs",
        "first",
        "best",
        "faster",
        "moves",
        right=("programs", "first", "best", "faster", "moves"),
    )
    for result in results:
        if result.best is None or result.first is None:
            table.add_row(
                result.title, str(result.evaluations), "–", "–", "", escape(result.message[:160]), style="red"
            )
            continue
        ratio = f"{result.first / result.best.seconds:.2f}×"
        best = seconds_text(result.best.seconds)
        moves = str(len(result.best.line))
        table.add_row(result.title, str(result.evaluations), seconds_text(result.first), best, ratio, moves)
    print_table(table)
