"""The evidence of benchmarks/perfllm.py as text: a section of docs/perfllm.md, a picture, lines found."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.comparison import Curve, Point, wilcoxon
from agents.intervals import interval
from agents.passes import pass_moves
from agents.plots import write_picture
from agents.trail import Trail
from benchmarks.sections import fill
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort, Workload, seconds_text
from dojo_core.moves.notation import parse_move
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer

BEGIN, END = "<!-- evidence: python -m benchmarks.perfllm report -->", "<!-- end of evidence -->"
NONE = "No run is in this repository yet, so nothing is claimed here about which is faster."
LINES = 60  # of a listing
ROUNDS = 9  # of programs timed side by side
SWITCHED = (
    "perfllm-plain",
    "perfllm-single",
    "perfllm-flat",
    "perfllm-bag",
    "perfllm-kinds",
    "perfllm-argmax",
    "perfllm-blind",
)
PAPERS = ("perfllm-paper", "perfllm-paper-plain")
RIVALS = ("random-edges", "sampling-edges", "annealing-edges")
Run = dict[str, Any]


def write(folder: Path, page: Path) -> str:
    """Put the evidence of a folder into its section of the page, and hand it back."""
    text = section(folder, page.parent)
    fill(page, BEGIN, END, text)
    return text


def section(folder: Path, beside: Path) -> str:
    """The evidence as Markdown, its links from ``beside``; the pictures are drawn anew."""
    parts = []
    names = ("runs.json", "snitch.json", "alike.json", "learnable.json", "transfer.json")
    runs_file, model_file, alike_file, learnable_file, transfer_file = (folder / name for name in names)
    found_file = folder / "found.md"
    if runs_file.exists():
        parts.append(_compared(json.loads(runs_file.read_text()), folder / "search.png", beside))
    if model_file.exists():
        parts.append(
            "On the Snitch model a program takes the same cycles always (1 µs stands for 1,000), so nothing "
            "below is luck of the clock; no compiler improves what is played, and most gains come after "
            "several moves that gain nothing."
        )
        parts.append(_compared(json.loads(model_file.read_text()), folder / "snitch.png", beside))
    if alike_file.exists():
        parts.append(_alike(json.loads(alike_file.read_text())))
    if learnable_file.exists():
        parts.append(_learnable(json.loads(learnable_file.read_text())))
    if transfer_file.exists():
        rows = json.loads(transfer_file.read_text())["runs"]
        last = {name: rows[-1][name] for name in ("settings", "fingerprint")}
        parts.append(_transferred([row for row in rows if last.items() <= row.items()]))
    if found_file.exists():
        link = found_file.resolve().relative_to(beside.resolve())
        parts.append(f"What it found beside the heuristic's lines, with the code: [{link}]({link}).")
    return "\n\n".join(parts) or NONE


# ---------------------------------------------------------------------------- searches and ablations


def newest(runs: Sequence[Run]) -> list[Run]:
    """Of each machine, kernel, agent and seed the last run, of those with the settings of the agent's last
    run and the last run's budget."""
    form = {run["agent"]: run["settings"] for run in runs}
    chosen = {
        (r["fingerprint"], r["kernel"], r["agent"], r["seed"]): r
        for r in runs
        if (r["settings"], r["budget"]) == (form[r["agent"]], runs[-1]["budget"])
    }
    return list(chosen.values())


def _compared(told: dict[str, Any], picture: Path, beside: Path) -> str:
    runs = newest(told["runs"])
    agents = list(dict.fromkeys(run["agent"] for run in runs))
    of_machine = {
        summary: [run for run in runs if run["fingerprint"] == fingerprint]
        for fingerprint, summary in told["machines"].items()
    }
    drawn = max((_rivals(own) for own in of_machine.values()), key=len)
    title = "Best so far: the median of the seeds, from the best to the worst"
    write_picture(picture, list(map(_curve, drawn)), title)
    parts = [
        f"{len(runs)} runs of {runs[0]['budget']} evaluations. Times are those of the best finalist, timed "
        "anew after the search; the median of the seeds, whose number stands behind each agent."
    ]
    parts += [f"On {summary}:\n\n{_times(own)}" for summary, own in of_machine.items() if own]
    lines = [
        "| | geometric mean of ratios | 95% interval | faster in | p | without seed 0 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for rival in (*RIVALS, *SWITCHED, PAPERS[0]):
        lines += _ratio_row(runs, "perfllm-scratch", rival)
    lines += _ratio_row(runs, *PAPERS)
    lines += [
        "",
        "Ratio: the other's time over the first one's, over all pairs of kernel and seed on one machine; "
        "above 1 the first is faster. Interval: kernels drawn with replacement, then pairs of each. p: "
        "one-sided Wilcoxon signed-rank test. Without seed 0: runs of that seed chose an earlier form.",
    ]
    parts.append("\n".join(lines))
    parts.append("\n".join([
        "| agent | evaluations per second | of a run's time, thinking | recorded |",
        "|---|---:|---:|---:|",
        *(_speed_row(agent, [run for run in runs if run["agent"] == agent]) for agent in agents),
    ]))  # fmt: skip
    parts.append(
        "A program that was timed before on the machine takes its recorded time; the rates are what a run "
        "would have had if it had measured all of its programs itself."
    )
    parts += _expected(runs, agents)
    link = picture.resolve().relative_to(beside.resolve())
    parts.append(f"![best so far against evaluations and seconds]({link})")
    return "\n\n".join(parts)


def _rivals(runs: Sequence[Run]) -> list[Run]:
    """Those of the picture: on one machine, for seconds are compared too."""
    return [run for run in runs if run["agent"] in ("perfllm-scratch", *RIVALS)]


def _times(runs: Sequence[Run]) -> str:
    """The table of one machine: a row for each kernel, a column for each agent."""
    seeds: dict[str, set[int]] = defaultdict(set)
    for run in runs:
        seeds[run["agent"]].add(run["seed"])
    heads = " | ".join(f"{agent} ({len(own)})" for agent, own in seeds.items())
    lines = [f"| kernel | start | {heads} |", f"|---|---:|{'---:|' * len(seeds)}"]
    for kernel, shape in {run["kernel"]: run["shape"] for run in runs}.items():
        own = [run for run in runs if run["kernel"] == kernel]
        cells = [f"{kernel} {shape}", _time([run["start"] for run in own])]
        cells += [_time([run["final"] for run in own if run["agent"] == agent]) for agent in seeds]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _expected(runs: Sequence[Run], agents: Sequence[str]) -> list[str]:
    """How well the values expected rank what was measured, where runs tell it."""
    rows = []
    for agent in agents:
        told = [run["expected"] for run in runs if run["agent"] == agent and run.get("expected")]
        if told:
            means = " | ".join(f"{statistics.mean(each):.2f}" for each in zip(*told, strict=True))
            rows.append(f"| {agent} | {len(told)} | {means} |")
    if not rows:
        return []
    return [
        "Do the values that the network expects of moves rank what is then measured? The rank correlation "
        "(Spearman's) of both, in each quarter of a run, the mean over runs:",
        "\n".join(
            ["| agent | runs | first | second | third | last |", "|---|---:|---:|---:|---:|---:|", *rows]
        ),
    ]


def _curve(run: Run) -> Curve:
    """A run's curve. Seconds are stretched as if nothing had been recorded before."""
    whole = run["points"][-1]["elapsed"] if run["points"] else 0.0
    stretch = _alone(run) / whole if whole else 1.0
    points = tuple(Point(p["evaluation"], p["elapsed"] * stretch, p["best"]) for p in run["points"])
    return Curve(
        f"{run['kernel']} {run['shape']}", run["agent"], run["seed"], run["start"], points, run["final"]
    )


def _alone(run: Run) -> float:
    """Seconds of a run that would have had to measure every program."""
    each = run["measuring_seconds"] / run["measured"] if run["measured"] else 0.0
    return float(run["thinking_seconds"] + each * run["evaluations"])


def _time(found: Sequence[float | None]) -> str:
    known = [seconds for seconds in found if seconds is not None]
    return seconds_text(statistics.median(known)) if known else "–"


def ratios(runs: Sequence[Run], agent: str, rival: str) -> dict[str, list[float]]:
    """By kernel the logarithms of the rival's time over the agent's, of each seed that both finished on one
    machine."""
    finals = {
        (r["agent"], r["fingerprint"], r["kernel"], r["seed"]): r["final"]
        for r in runs
        if r["final"] is not None
    }
    found: dict[str, list[float]] = defaultdict(list)
    for (who, *pair), seconds in finals.items():
        if who == agent and (rival, *pair) in finals:
            found[pair[1]].append(math.log(finals[(rival, *pair)] / seconds))
    return found


def _ratio_row(runs: Sequence[Run], agent: str, rival: str) -> list[str]:
    groups = list(ratios(runs, agent, rival).values())
    pairs = [each for group in groups for each in group]
    if not pairs:
        return []
    mean, low, high = interval(groups)
    p = wilcoxon(pairs)
    better = sum(each > 0 for each in pairs)
    told = "–" if p is None else f"{p:.2g}"
    others = [
        each for group in ratios([r for r in runs if r["seed"] != 0], agent, rival).values() for each in group
    ]
    held_out = (
        f"{math.exp(statistics.mean(others)):.2f}, {sum(e > 0 for e in others)}/{len(others)}"
        if others
        else "–"
    )
    return [
        f"| {agent} against {rival} | {mean:.2f} | {low:.2f} to {high:.2f} | {better}/{len(pairs)} | {told} "
        f"| {held_out} |"
    ]


def _speed_row(agent: str, runs: Sequence[Run]) -> str:
    seconds = sum(_alone(run) for run in runs)
    evaluations = sum(run["evaluations"] for run in runs)
    thinking = sum(run["thinking_seconds"] for run in runs) / seconds if seconds else 0.0
    recorded = sum(run["recorded"] for run in runs) / max(1, evaluations)
    return f"| {agent} | {evaluations / seconds if seconds else 0.0:.1f} | {thinking:.0%} | {recorded:.0%} |"


def _alike(told: dict[str, Run]) -> str:
    lines = [
        "Max and plain Q-learning can differ only where the best reward ahead and the sum of rewards ahead "
        "ask for different moves. In all that was measured behind the positions from which several moves "
        "were tried:",
        "",
        "| runs of | positions | both ask for one move | best behind the sum's move, slower by |",
        "|---|---:|---:|---:|",
    ]
    for agent, each in told.items():
        share = each["same"] / each["positions"]
        lines.append(f"| {agent} | {each['positions']} | {share:.0%} | {each['lost']:.1%} |")
    return "\n".join(lines)


def _learnable(told: dict[str, Any]) -> str:
    """How far moves tell of other moves."""
    rows = told["kernels"]
    features = list(rows[0]["correlation"])
    taught = told["taught"]
    heads = ["kernel", "moves", "faster by 5%", "by 30%", "slower by 5%", "a time varies by", *features]
    lines = [
        f"What do {taught} moves teach about others of the same kernel? Of all moves that any of the agents "
        f"measured on {told['machine']}: how many changed the time; by how much a time varies when it is "
        "taken again (the standard deviation of its logarithm); and the rank correlation (Spearman's) of "
        f"what ridge regression on {taught} of the moves expects the others to gain with what was measured, "
        "by what it is told of a move:",
        "",
        f"| {' | '.join(heads)} |",
        f"|---|{'---:|' * (len(heads) - 1)}",
    ]
    for row in rows:
        shares = " | ".join(f"{row[name]:.0%}" for name in ("faster", "much_faster", "slower", "noise"))
        ranked = " | ".join(f"{row['correlation'][name]:.2f}" for name in features)
        lines.append(f"| {row['kernel']} {row['shape']} | {row['moves']} | {shares} | {ranked} |")
    return "\n".join(lines)


# ---------------------------------------------------------------------------- kernels never seen


def _transferred(rows: Sequence[Run]) -> str:
    lines = [
        f"One policy, trained on {', '.join(rows[0]['learned_on'])} with {rows[0]['budget']} evaluations "
        "each, then played greedily on kernels that it has not seen; beside it random moves with as many "
        "programs measured. Speed-up over the start, of each seed:",
        "",
        "| kernel | programs of the line | the best of the line | its end | random moves |",
        "|---|---:|---:|---:|---:|",
    ]
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        cells = [f"{kernel} {own[0]['shape']}", ", ".join(str(row["evaluations"]) for row in own)]
        for name in ("best", "last", "random"):
            cells.append(", ".join(_speedup(row["start"], row[name]) for row in own))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _speedup(start: float | None, seconds: float | None) -> str:
    return "–" if start is None or seconds is None else f"{start / seconds:.2f}"


# ---------------------------------------------------------------------------- what it found


def write_found(folder: Path, measurer: Measurer) -> None:
    """The best line of PerfLLM on each kernel beside the heuristic's: timed side by side, with the code."""
    path = folder / "runs.json"
    if not path.exists():
        raise SystemExit(f"There is no {path}: run python -m benchmarks.perfllm search first.")
    here = ("perfllm-scratch", measurer.machine.fingerprint)
    runs = [
        run
        for run in newest(json.loads(path.read_text())["runs"])
        if (run["agent"], run["fingerprint"]) == here
    ]
    parts = [
        "# What PerfLLM found",
        "Of each kernel the best line of all seeds beside that of the heuristic, which an expert wrote. Both "
        f"and the start were timed in turn, {ROUNDS} rounds, by `python -m benchmarks.perfllm found` on "
        f"{measurer.machine.summary}, where the runs were played.",
    ]
    for kernel in dict.fromkeys(run["kernel"] for run in runs):
        own = [run for run in runs if run["kernel"] == kernel and run["final"] is not None]
        if own:
            parts.append(_found(min(own, key=lambda run: float(run["final"])), measurer))
    (folder / "found.md").write_text("\n\n".join(parts) + "\n")


def _found(run: Run, measurer: Measurer) -> str:
    kernel = kernels.get(run["kernel"])
    game = Game.new(kernel.program(kernel.shape(run["shape"])), run["kernel"], run["shape"])
    start = Trail.at(game)
    ours = start.played(map(parse_move, run["line"]))
    experts = start.played(pass_moves(game, "heuristic"))
    trails = {"start": start, "PerfLLM": ours, "heuristic": experts}
    times = side_by_side(game, [trail.program for trail in trails.values()], measurer)
    rows = ["| | time | speed-up | moves |", "|---|---:|---:|---:|"]
    for (name, trail), own in zip(trails.items(), times, strict=True):
        time = seconds_text(min(own)) if own else "–"
        rows.append(f"| {name} | {time} | {_ratio_text(_ratio(times[0], own))} | {len(trail.moves)} |")
    kinds = [sorted({move.name for move in trail.moves}) for trail in (ours, experts)]
    only = [name for name in kinds[0] if name not in kinds[1]]
    told = " ".join(filter(None, [_judged(_ratio(times[2], times[1])), _unknown(only)]))
    return "\n\n".join(filter(None, [
        f"## {game.title}", "\n".join(rows), told,
        "PerfLLM's line:", _fenced("\n".join(run["line"])),
        "The program it comes to:", _fenced(ours.program.text),
        "Its code:", _fenced(_shortened(measurer.code_text(ours.program, game.policy)), "c"),
        "The heuristic's program:", _fenced(experts.program.text),
    ]))  # fmt: skip


def side_by_side(game: Game, programs: Sequence[Program], measurer: Measurer) -> list[list[float]]:
    """The shortest run of each program in each round, all of them in turn: a machine's memory has slow and
    fast minutes. Of a program that fails in one, nothing."""
    workload = Workload(game.start, game.kernel, game.policy, game.target)
    rounds = [
        [measurer.measure(workload, [each], Effort.ROUND, player="perfllm", fresh=True)[0].seconds
         for each in programs]
        for _ in range(ROUNDS)
    ]  # fmt: skip
    return [
        [] if None in own else [seconds for seconds in own if seconds is not None]
        for own in zip(*rounds, strict=True)
    ]


def _ratio(others: Sequence[float], own: Sequence[float]) -> float | None:
    """The median over rounds of the other's time over one's own."""
    if not (others and own):
        return None
    return statistics.median(other / each for other, each in zip(others, own, strict=True))


def _ratio_text(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


def _judged(ratio: float | None) -> str:
    """What the heuristic's time over PerfLLM's says."""
    if ratio is None:
        return ""
    if ratio < 1 / 1.05:
        return f"The heuristic's program is {1 / ratio:.1f} times as fast: nothing was found that it lacks."
    if ratio > 1.05:
        return f"PerfLLM's program is {ratio:.1f} times as fast as the heuristic's."
    return "Both programs are as fast."


def _unknown(kinds: Sequence[str]) -> str:
    return f"Kinds of moves that the heuristic's line does not have: {', '.join(kinds)}." if kinds else ""


def _shortened(code: str) -> str:
    """The first lines of a long text, and how many more there are."""
    lines = code.strip().splitlines()
    left = len(lines) - LINES
    return code if left <= 0 else "\n".join([*lines[:LINES], f"/* … and {left} lines more */"])


def _fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text.strip()}\n```"
