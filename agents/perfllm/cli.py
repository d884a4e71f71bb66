"""``dojo train``, ``dojo train-encoder``, ``dojo probe-encoder``; torch is imported when one of them runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agents.expert import EXPERT, expert_seconds
from agents.perfllm.across.folders import LIBRARY, known_experts, libraries, write_experts
from agents.perfllm.settings import EncoderSettings, Settings
from agents.run_log import RunBusy
from agents.timing import CountTiming, MachineTiming, Timing, no_clock
from dojo_core.bounded_json import read_object
from dojo_core.cli.positions import LineOption, PolicyOption, ShapeOption, TargetOption, played
from dojo_core.cli.records import opened
from dojo_core.cli.reporting import tell_unit
from dojo_core.cli.terminal import Failure, columns, err, out, print_table
from dojo_core.extras import need
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.places import cache_directory
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend
from dojo_core.wording import counted

EncoderOption = Annotated[
    str, typer.Option("--encoder", help="ir, bag, counts, minilm, or a model's folder or name.")
]
PoolingOption = Annotated[str, typer.Option("--pooling", help="Of such a model: auto, mean, cls or last.")]
LengthOption = Annotated[int, typer.Option("--max-length", min=8, help="Of such a model: tokens.")]
DtypeOption = Annotated[str, typer.Option("--dtype", help="Of such a model: float32, bfloat16 or float16.")]


def train(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="KERNEL…", help="Kernels or text files; with --library all of its list."),
    ] = None,
    library: Annotated[
        bool,
        typer.Option(
            "--library",
            help="Learn what carries over to other kernels: many of them, in several shapes, round by round.",
        ),
    ] = False,
    shapes: Annotated[
        int, typer.Option("--shapes", min=1, max=3, help="With --library: of each kernel.")
    ] = 3,
    budget: Annotated[
        int,
        typer.Option(
            "--budget", min=2, help="Programs measured, for each kernel on average: they take turns."
        ),
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", help="The same seed and times give the same run.")] = 0,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    target: TargetOption = None,
    line: LineOption = None,
    encoder: EncoderOption = EncoderSettings.model,
    pooling: PoolingOption = "auto",
    max_length: LengthOption = 512,
    dtype: DtypeOption = "float32",
    plain: Annotated[bool, typer.Option("--plain", help="Plain Q-learning: the sum of rewards.")] = False,
    double: Annotated[bool, typer.Option(help="Double DQN.")] = True,
    dueling: Annotated[bool, typer.Option(help="Dueling heads.")] = True,
    replay: Annotated[
        bool, typer.Option(help="Learn from all that was seen, not from the last moves only.")
    ] = True,
    target_network: Annotated[bool, typer.Option(help="A target network.")] = True,
    symlog: Annotated[bool, typer.Option(help="Learn the logarithm of speed-ups.")] = True,
    tightened: Annotated[
        bool, typer.Option(help="Targets are at least what moves already made have come to.")
    ] = True,
    tried: Annotated[
        bool, typer.Option(help="Targets look ahead through actions that were tried, not through guesses.")
    ] = True,
    kinds: Annotated[bool, typer.Option(help="Tell the network the kind of each move.")] = Settings.kinds,
    restarts: Annotated[
        float, typer.Option("--restarts", min=0.0, max=1.0, help="Share of episodes from a fast program met.")
    ] = Settings.restarts,
    sampled: Annotated[
        int,
        typer.Option("--sampled", min=0, help="A greedy move is the best of so many drawn; 0: of all."),
    ] = Settings.sampled,
    novelty: Annotated[
        float, typer.Option("--novelty", min=0.0, help="So much more counts an action never tried.")
    ] = Settings.novelty,
    epsilon_first: Annotated[
        float, typer.Option("--epsilon-first", min=0.0, max=1.0, help="Share of random moves at first …")
    ] = Settings.epsilon_first,
    epsilon_last: Annotated[
        float, typer.Option("--epsilon-last", min=0.0, max=1.0, help="… and from then on.")
    ] = Settings.epsilon_last,
    gamma: Annotated[float, typer.Option("--gamma", min=0.0, max=1.0)] = Settings.gamma,
    moves: Annotated[int, typer.Option("--moves", min=1, help="Of an episode.")] = Settings.episode_moves,
    actions: Annotated[
        int, typer.Option("--actions", min=0, help="Legal moves looked at in a position; 0: all.")
    ] = Settings.most_actions,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Begin with what this machine's records know of the kernels.")
    ] = False,
    attempts: Annotated[
        list[str] | None,
        typer.Option("--try", help="Then play this kernel greedily, without learning. Repeatable."),
    ] = None,
    counting: Annotated[
        bool, typer.Option("--count", help="Count operations instead of measuring: to look at how it learns.")
    ] = False,
    folder: Annotated[Path | None, typer.Option("--out", help="The run's folder.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Begin anew, also where a run is done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Let PerfLLM learn on kernels. A run that was stopped goes on where it was.

    Example: [bold]dojo train softmax rmsnorm --budget 300 --seed 1 --try layernorm[/bold]
    Example: [bold]dojo train --library --target snitch --budget 300[/bold]
    """
    need("learn", "Training")
    if library:
        _train_library(names or [], shapes, budget, seed, target, counting, folder, again, as_json)
        return
    if not names:
        raise Failure("Which kernels? Name some, or give --library to learn on all of its list.")
    settings = Settings(
        max_bellman=not plain, double=double, dueling=dueling, replay=replay,
        target_network=target_network, symlog=symlog, tightened=tightened, tried=tried, kinds=kinds,
        restarts=restarts, sampled=sampled, novelty=novelty, gamma=gamma, epsilon_first=epsilon_first,
        epsilon_last=epsilon_last,
        episode_moves=moves, most_actions=actions,
        encoder=EncoderSettings(encoder, pooling, max_length, dtype),
    )  # fmt: skip
    if shape is not None and len(names) > 1:
        raise Failure("--shape is of one kernel: name one, or leave it out.")
    games = tuple(played(name, shape, policy, line, target=target) for name in names)
    others = [played(name, None, policy, target=target) for name in attempts or []]
    untimed = (
        ""
        if counting
        else no_clock(games[0].target, "count operations instead (--count), or let a pass play")
    )
    if untimed:
        raise Failure(untimed)
    from agents.perfllm.training import Plan, Training  # with torch, whose import takes seconds

    with opened() as records, Measurer(records) as measurer:
        plan = Plan(games, settings, budget, seed, recorded)
        timing: Timing = CountTiming() if counting else MachineTiming(measurer, "perfllm")
        origin = None if counting else backend(games[0].target).clock().origin
        machine = origin.fingerprint if origin else "count"
        try:
            training = Training(plan, timing, folder, machine, again, None if counting else records)
        except (RunBusy, ValueError) as fault:
            raise Failure(str(fault)) from None
        finals = _followed(training, as_json)
        attempted: list[dict[str, Any]] = []
        for entry in training.tried(others, timing):
            attempted.append(entry)
            if as_json:
                out.print(json.dumps(entry), soft_wrap=True, markup=False)
    if not as_json:
        _print_results(finals, attempted, counting)
        tell_unit("" if counting else games[0].target)
    err.print(f"The run is in {escape(str(training.folder))}.", style="dim", soft_wrap=True)


def _train_library(
    names: list[str],
    shapes: int,
    budget: int,
    seed: int,
    target: str | None,
    counting: bool,
    folder: Path | None,
    again: bool,
    as_json: bool,
) -> None:
    """Rounds of teachers and a policy, on kernels of the library's list."""
    from agents.perfllm.across.loop import (  # with torch, whose import takes seconds
        COMPILE_SECONDS,
        Loop,
        Plan,
        listed,
        told,
    )

    on = target or DEFAULT_TARGET
    known = [kernel for of in listed(on).values() for kernel in of]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Failure(f"The library's list has no {unknown[0]}: it has {', '.join(known)}.")
    untimed = "" if counting else no_clock(on, "count operations instead (--count)")
    if untimed:
        raise Failure(untimed)
    plan = Plan.of(names or known, shapes, target=on, seed=seed, blind=3 * budget, guided=budget)
    folder = folder or libraries() / f"{LIBRARY}{on}-{seed}"
    with opened() as records, Measurer(records, compile_seconds=COMPILE_SECONDS) as measurer:
        timing: Timing = CountTiming() if counting else MachineTiming(measurer, "perfllm")
        try:
            loop = Loop(plan, timing, folder, again)
        except ValueError as fault:
            raise Failure(str(fault)) from None
        _take_experts(plan.problems, folder, on, timing if counting else MachineTiming(measurer, EXPERT))
        for entry in loop.events():
            if as_json:
                out.print(json.dumps(entry), soft_wrap=True, markup=False)
            else:
                out.print(told(entry), soft_wrap=True, markup=False)
    err.print(f"The run is in {escape(str(folder))}.", style="dim", soft_wrap=True)


def _take_experts(problems: Sequence[tuple[str, str]], folder: Path, target: str, timing: Timing) -> None:
    """What the expert comes to on what is learned on, in the run's folder: teachers are told beside it (the
    app's page Train), and never hear of it."""
    from agents.perfllm.across.loop import game_of

    experts = known_experts(folder)
    for problem in problems:
        if problem not in experts and (seconds := expert_seconds(game_of(*problem, target), timing)):
            experts[problem] = seconds
            write_experts(folder, experts)


def try_policy(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of a run, as dojo train names it.")],
    names: Annotated[list[str], typer.Argument(metavar="KERNEL…", help="Kernels or text files.")],
    policy: PolicyOption = None,
    target: TargetOption = None,
    counting: Annotated[bool, typer.Option("--count", help="Count operations instead of measuring.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as a line of JSON.")] = False,
) -> None:
    """Let what PerfLLM has learned play kernels, greedily and without learning more.

    Example: [bold]dojo try runs/mine layernorm bmm:8x64x64x64[/bold]
    """
    need("learn", "Playing what was learned")
    games = [played(name, None, policy, target=target) for name in names]
    untimed = "" if counting else no_clock(games[0].target, "count operations instead (--count)")
    if untimed:
        raise Failure(untimed)
    from agents.perfllm.training import played_greedily, trained  # with torch, whose import takes seconds

    try:
        player = trained(folder, games)
    except ValueError as fault:
        raise Failure(str(fault)) from None
    with opened() as records, Measurer(records) as measurer:
        timing: Timing = CountTiming() if counting else MachineTiming(measurer, "perfllm")
        attempted = []
        for entry in played_greedily(player, games, timing, lambda: False):
            attempted.append(entry)
            if as_json:
                out.print(json.dumps(entry), soft_wrap=True, markup=False)
    if not as_json:
        _print_results([], attempted, counting)
        tell_unit("" if counting else games[0].target)
        for entry in attempted:
            out.print("\n".join([f"\n{entry['kernel']}:", *entry["line"]]), markup=False)


def _followed(training: Any, as_json: bool) -> list[dict[str, Any]]:
    """Run it, shown as it goes; the events that tell how it ended."""
    if training.finished and not as_json:
        err.print("This run is done (--again begins anew).", style="dim")
    elif training.resumed and not as_json:
        known = counted(training.resumed, "program")
        err.print(f"Going on from {known} (--again begins anew).", style="dim")
    finals = []
    shown = (
        TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[best]}"), TextColumn("[dim]{task.fields[learning]}"),
    )  # fmt: skip
    if training.finished:
        for line in (training.folder / "events.jsonl").open(encoding="utf-8"):
            if as_json:
                out.print(line.rstrip(), soft_wrap=True, markup=False)
            if (entry := read_object(line, nonfinite=True)).get("event") == "final":
                finals.append(entry)
        return finals
    with Progress(*shown, console=err, disable=as_json) as bar:
        task = bar.add_task(
            "training", total=training.player.evaluations, completed=training.resumed, best="", learning=""
        )
        for entry in training.events():
            if as_json:
                out.print(json.dumps(entry), soft_wrap=True, markup=False)
            if entry["event"] == "start":
                if entry["seconds"] is None:
                    err.print(
                        f"{escape(entry['kernel'])} cannot be measured here: it is left out.", style="red"
                    )
            elif entry["event"] == "move" and entry["best"] is not None:
                first = training.starts.get(entry["kernel"])
                ratio = f" {first / entry['best']:.3g}×" if first else ""
                best = f"{escape(entry['kernel'])} [bold]{seconds_text(entry['best'])}[/bold]{ratio}"
                bar.update(task, completed=entry["evaluation"], best=best)
            elif entry["event"] == "learn":
                loss = "" if entry["loss"] is None else f"loss {entry['loss']:.3g}, "
                bar.update(task, learning=f"{loss}ε {entry['epsilon']:.2f}")
            elif entry["event"] == "final":
                finals.append(entry)
    return finals


def _print_results(finals: list[dict[str, Any]], tried: list[dict[str, Any]], counting: bool) -> None:
    if not finals and not tried:
        raise Failure("Nothing was measured that works: try another kernel, or see dojo check.")
    table = columns("kernel", "start", "best", "faster", "moves", right=("start", "best", "faster", "moves"))
    for entry in [*finals, *tried]:
        start, best = entry["start"], entry["best"]
        name = escape(entry["kernel"]) + (" (tried, not learned on)" if entry in tried and finals else "")
        if start is None or best is None:
            table.add_row(name, "–", "–", "", str(len(entry["line"])), style="red")
            continue
        cells = seconds_text(start), seconds_text(best), f"{start / best:.2f}×", str(len(entry["line"]))
        table.add_row(name, *cells)
    print_table(table)
    if counting:
        out.print(
            "Operations were counted, not measured: these are no times, and no program was run or verified.",
            style="dim", soft_wrap=True,
        )  # fmt: skip


def train_encoder(
    folder: Annotated[Path, typer.Option("--out", help="Where weights, corpus and checkpoint go.")] = Path(
        "build/encoder"
    ),
    walks: Annotated[int, typer.Option("--walks", min=1, help="Random walks over each kernel.")] = 48,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Of gradient descent.")] = 1500,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    objective: Annotated[
        str, typer.Option("--objective", help="What is asked while it learns, of these.")
    ] = "token,move,structure,legal",
    threads: Annotated[int, typer.Option("--threads", min=1)] = 1,
    again: Annotated[bool, typer.Option("--again", help="Begin anew, the corpus too.")] = False,
) -> None:
    """Pretrain our own encoder on random legal walks. What was stopped goes on.

    The weights that come with the Dojo were made so, with the defaults.
    Example: [bold]dojo train-encoder --out build/encoder[/bold]
    """
    need("learn", "Training an encoder")
    import torch

    from agents.perfllm import corpus, ir_encoder, pretraining

    named = {word.strip() for word in objective.split(",")}
    asked = tuple(name for name in pretraining.SHARES if name in named)
    if not named <= set(pretraining.SHARES):
        raise Failure(f"--objective is some of {','.join(pretraining.SHARES)}, told apart by commas.")
    settings = pretraining.Settings(steps=steps, seed=seed, objective=asked)
    torch.set_num_threads(threads)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"corpus-{walks}-{corpus.COUNTED}.jsonl.gz"
    if again:
        path.unlink(missing_ok=True)
        for name in ("checkpoint", "checkpoint.old"):
            shutil.rmtree(folder / name, ignore_errors=True)
    with err.status("Playing random walks"):
        corpus_walks = corpus.load_or_make(path, lambda: corpus.walks(1, walks))
    positions = counted(sum(len(w.texts) for w in corpus_walks), "position")
    err.print(f"{positions} of {counted(len(corpus_walks), 'walk')}.", style="dim")
    log = pretraining.log_to(folder / "log.jsonl")
    shown = (TextColumn("pretraining"), BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn(),
             TextColumn("{task.fields[losses]}"))  # fmt: skip
    with Progress(*shown, console=err) as bar:
        task = bar.add_task("pretraining", total=steps, losses="")

        def report(entry: dict[str, float]) -> None:
            log(entry)
            losses = ", ".join(f"{k} {v:.3f}" for k, v in entry.items() if k not in ("step", "seconds"))
            bar.update(task, completed=int(entry["step"]), losses=losses)

        try:
            model = pretraining.pretrain(corpus_walks, settings, folder, report)
        except ValueError as fault:
            raise Failure(str(fault)) from None
    ir_encoder.save(model, folder / "weights")
    out.print(f"Wrote {escape(str(folder / 'weights'))}.", soft_wrap=True)


def probe_encoder(
    encoders: Annotated[
        list[str] | None,
        typer.Option("--encoder", help="ir, bag, counts, minilm, or a model's folder or name. Repeatable."),
    ] = None,
    weights: Annotated[str, typer.Option("--weights", help="Other weights of our own encoder.")] = "",
    pooling: PoolingOption = "auto",
    max_length: LengthOption = 512,
    dtype: DtypeOption = "float32",
    walks: Annotated[int, typer.Option("--walks", min=1, help="Random walks over each kernel.")] = 8,
    times: Annotated[
        Path | None, typer.Option("--times", help="Measured positions; a missing file is measured first.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What embeddings know of kernels that our encoder never saw: structure, legal moves, moves, run time.

    Example: [bold]dojo probe-encoder --encoder ir --encoder bag --times build/times.jsonl[/bold]
    """
    need("learn", "Probing an encoder")
    from agents.perfllm import corpus, probing
    from agents.perfllm.encoders import encoder
    from dojo_core import kernels

    settings = EncoderSettings("", pooling, max_length, dtype, weights=weights)
    made = {}
    try:
        for name in encoders or ["ir", "bag"]:
            made[name] = encoder(replace(settings, model=name))
    except ValueError as fault:
        raise Failure(str(fault)) from None
    path = cache_directory() / f"probes-{walks}-{corpus.COUNTED}.jsonl.gz"
    with err.status("Playing random walks"):
        corpus_walks = corpus.load_or_make(path, lambda: corpus.walks(2, walks, names=kernels.names()))
    tasks = {
        "structure": probing.structure_of(corpus_walks, 4, 0), "legal moves": probing.legal_of(corpus_walks),
        "kind of move": probing.moves_of(corpus_walks, 4, 0),
    }  # fmt: skip
    if times is not None:
        if not times.exists():
            with err.status("Measuring positions"):
                measured = sum(seconds is not None for _, seconds in probing.measure(times, walks, 3))
                err.print(f"Measured {counted(measured, 'position')}.", style="dim")
        tasks["log run time"] = probing.times_of(times)
    scores = [
        probing.probe(task, name, embed, rows) for task, rows in tasks.items() for name, embed in made.items()
    ]
    if as_json:
        out.print(json.dumps([score.__dict__ for score in scores]), soft_wrap=True, markup=False)
        return
    numbers = ("R²", "95%", "within kernels", "95% ", "positions")
    table = columns("predicts", "encoder", *numbers, right=numbers)
    for score in scores:
        cells = []
        for value, (low, high) in (
            (score.everywhere, score.everywhere_interval),
            (score.within, score.within_interval),
        ):
            cells += [f"{value:.2f}", f"{low:.2f} to {high:.2f}"]
        table.add_row(score.task, escape(score.encoder), *cells, str(score.positions))
    print_table(table)
    out.print(
        "Ridge regression on frozen embeddings, fitted on other kernels, judged on "
        f"{', '.join(corpus.HELD_OUT)}.", style="dim", soft_wrap=True,
    )  # fmt: skip
